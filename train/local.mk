# SPDX-License-Identifier: Apache-2.0
# The trainer.  Backends are chosen here, by file lists, the best first.  train/backends.c is the list that a program
# walks; one with a list of its own is not given this one, since libtrain.la is an archive.  train/backends.h has the
# words of --device.
train_cppflags = $(AM_CPPFLAGS) -iquote $(srcdir)/train
train_backends = cpu ref

noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES =
nodist_libtrain_la_SOURCES = train/backends.c train/backends.h schemas/event.pb-c.c schemas/event.pb-c.h
libtrain_la_CPPFLAGS = $(train_cppflags) $(JANSSON_CFLAGS) $(PROTOBUF_C_CFLAGS)
libtrain_la_CFLAGS = $(AM_CFLAGS) -O3
libtrain_la_LIBADD = $(cpu_libs) libchexcore.la -lm

include train/graph/local.mk
include train/math/local.mk
include train/backend/local.mk
include train/checkpoint/local.mk
include train/comm/local.mk
include train/data/local.mk
include train/ref/local.mk
include train/cpu/local.mk
include train/cuda/local.mk
include train/eval/local.mk
include train/log/local.mk
include train/run/local.mk

train/backends.c: Makefile
	$(AM_V_GEN)$(MKDIR_P) train && { \
	  echo '/* Made by make: the backends of this build. */'; \
	  echo '#include <config.h>'; echo; echo '#include "backend/backend.h"'; echo; \
	  for b in $(train_backends); do echo "extern const struct backend backend_$$b;"; done; echo; \
	  echo 'const struct backend *const backends[] = {'; \
	  for b in $(train_backends); do echo "    &backend_$$b,"; done; \
	  echo '    NULL,'; echo '};'; } > $@
train/backends.h: Makefile
	$(AM_V_GEN)$(MKDIR_P) train && { \
	  echo '/* Made by make: the words of --device, for completion and for help. */'; \
	  printf '#define BACKEND_NAMES '; printf '"%s", ' $(train_backends); echo 'NULL'; \
	  printf '#define BACKEND_HELP "auto (default)'; printf ', %s' $(train_backends); echo '"'; } > $@
BUILT_SOURCES += train/backends.c train/backends.h
CLEANFILES += train/backends.c train/backends.h
