# SPDX-License-Identifier: Apache-2.0
# The trainer.  Backends are chosen here, by file lists; train/backends.c is the list that the program walks.
train_cppflags = $(AM_CPPFLAGS) -iquote $(srcdir)/train
train_backends = ref

noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES = train/backend.c train/backend.h \
	train/checkpoint.c train/checkpoint.h train/checkpoint_private.h train/checkpoint_state.c train/densenet.c train/graph.c train/graph.h \
	train/loader.c train/loader.h train/loss.c \
	train/loss.h train/metrics.c train/metrics.h train/models.h train/optimizer.c train/optimizer.h \
	train/order.c train/order.h 	train/random.c train/random.h train/resnet.c train/safetensors.c train/safetensors.h \
	train/safetensors_write.c train/schedule.c train/schedule.h train/weights.c train/weights.h \
	train/ref/ops.h train/ref/ops_conv.c train/ref/ops_norm.c train/ref/ops_pool.c train/ref/ref.c
nodist_libtrain_la_SOURCES = train/backends.c
libtrain_la_CPPFLAGS = $(train_cppflags) $(JANSSON_CFLAGS)
libtrain_la_CFLAGS = $(AM_CFLAGS) -O3
libtrain_la_LIBADD = libchexcore.la -lm

train/backends.c: Makefile
	$(AM_V_GEN)$(MKDIR_P) train && { \
	  echo '/* Made by make: the backends of this build. */'; \
	  echo '#include <config.h>'; echo; echo '#include "backend.h"'; echo; \
	  for b in $(train_backends); do echo "extern const struct backend backend_$$b;"; done; echo; \
	  echo 'const struct backend *const backends[] = {'; \
	  for b in $(train_backends); do echo "    &backend_$$b,"; done; \
	  echo '    NULL,'; echo '};'; } > $@
BUILT_SOURCES += train/backends.c
CLEANFILES += train/backends.c
