# SPDX-License-Identifier: Apache-2.0
# The trainer.  Backends are chosen here, by file lists, the best first.  train/backends.c is the list that a program
# walks; one with a list of its own is not given this one, since libtrain.la is an archive.  train/backends.h has the
# words of --device.
train_cppflags = $(AM_CPPFLAGS) -iquote $(srcdir)/train
train_backends = cuda cpu ref
# The models of GPUs that a dry run can plan for: the table of train/cuda/plan/gpu.c.
cuda_models = V100 A100 H100 H200

noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES =
nodist_libtrain_la_SOURCES = train/backends.c train/backends.h schemas/event.pb-c.c schemas/event.pb-c.h \
	schemas/onnx.pb-c.c schemas/onnx.pb-c.h
libtrain_la_CPPFLAGS = $(train_cppflags) $(JANSSON_CFLAGS) $(PROTOBUF_C_CFLAGS) $(NVTX_CPPFLAGS)
libtrain_la_CFLAGS = $(AM_CFLAGS) -O3
libtrain_la_LIBADD = $(cpu_libs) libchexcore.la -lm

include train/graph/local.mk
include train/maps/local.mk
include train/math/local.mk
include train/backend/local.mk
include train/checkpoint/local.mk
include train/comm/local.mk
include train/data/local.mk
include train/ref/local.mk
include train/cpu/local.mk
include train/cuda/local.mk
include train/eval/local.mk
include train/export/local.mk
include train/log/local.mk
include train/run/local.mk

# $(call list_backends,NAMES), $(call name_backends,NAMES): what makes such a list, and such words.
list_backends = $(AM_V_GEN)$(MKDIR_P) $(@D) && { \
	echo '/* Made by make: the backends of this build. */'; \
	echo '\#include <config.h>'; echo; echo '\#include "backend/backend.h"'; echo; \
	for b in $(subst -,_,$(1)); do echo "extern const struct backend backend_$$b;"; done; echo; \
	echo 'const struct backend *const backends[] = {'; \
	for b in $(subst -,_,$(1)); do echo "    &backend_$$b,"; done; \
	echo '    NULL,'; echo '};'; } > $@
name_backends = $(AM_V_GEN)$(MKDIR_P) $(@D) && { \
	echo '/* Made by make: the words of --device, for completion and for help. */'; \
	printf '\#define BACKEND_NAMES '; printf '"%s", ' $(1) $(patsubst %,$(filter cuda%,$(1)):%,$(cuda_models)); \
	echo 'NULL'; \
	printf '\#define BACKEND_HELP "auto (default)'; printf ', %s' $(1); echo '"'; } > $@
train/backends.c: Makefile
	$(call list_backends,$(train_backends))
train/backends.h: Makefile
	$(call name_backends,$(train_backends))
BUILT_SOURCES += train/backends.c train/backends.h
CLEANFILES += train/backends.c train/backends.h
