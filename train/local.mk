# SPDX-License-Identifier: Apache-2.0
# The trainer.  Backends are chosen here, by file lists; train/backends.c is the list that the program walks.
train_cppflags = $(AM_CPPFLAGS) -iquote $(srcdir)/train
train_backends = cpu ref

noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES = \
	train/backend.c \
	train/backend.h \
	train/collective.c \
	train/collective.h \
	train/collective_broadcast.c \
	train/collective_bulk.c \
	train/collective_private.h \
	train/collective_wait.c \
	train/checkpoint.c \
	train/checkpoint.h \
	train/checkpoint_find.c \
	train/checkpoint_private.h \
	train/checkpoint_state.c \
	train/densenet.c \
	train/graph.c \
	train/graph.h \
	train/host_memory.c \
	train/host_memory.h \
	train/loader.c \
	train/loader.h \
	train/loss.c \
	train/loss.h \
	train/metrics.c \
	train/metrics.h \
	train/models.h \
	train/optimizer.c \
	train/optimizer.h \
	train/order.c \
	train/order.h \
	train/random.c \
	train/random.h \
	train/reader.c \
	train/reader.h \
	train/resnet.c \
	train/safetensors.c \
	train/safetensors.h \
	train/safetensors_write.c \
	train/schedule.c \
	train/schedule.h \
	train/weights.c \
	train/weights.h \
	train/append.c \
	train/append.h \
	train/events.c \
	train/events.h \
	train/events_plugin.c \
	train/events_private.h \
	train/events_read.c \
	train/events_read.h \
	train/prometheus.c \
	train/prometheus.h \
	train/run_file.c \
	train/run_file.h \
	train/run_json.c \
	train/run_json.h \
	train/run_log.c \
	train/run_log.h \
	train/run_log_lines.c \
	train/run_log_private.h \
	train/run_value.h \
	train/staging.c \
	train/staging.h \
	train/staging_private.h \
	train/staging_shard.c \
	train/step_parts.c \
	train/step_parts.h \
	train/trace.c \
	train/trace.h \
	train/ref/ops.h \
	train/ref/ops_conv.c \
	train/ref/ops_norm.c \
	train/ref/ops_pool.c \
	train/ref/ref.c
nodist_libtrain_la_SOURCES = train/backends.c schemas/event.pb-c.c schemas/event.pb-c.h
libtrain_la_CPPFLAGS = $(train_cppflags) $(JANSSON_CFLAGS) $(PROTOBUF_C_CFLAGS)
# evaluation
libtrain_la_SOURCES += \
	train/evaluate.c \
	train/evaluate.h \
	train/evaluate_judge.c \
	train/evaluate_private.h \
	train/metrics_document.c \
	train/predictions.c \
	train/predictions.h
# a run
libtrain_la_SOURCES += \
	train/settings.c \
	train/settings.h \
	train/trainer.c \
	train/trainer.h \
	train/trainer_data.c \
	train/trainer_judge.c \
	train/trainer_prepare.c \
	train/trainer_preview.c \
	train/trainer_private.h \
	train/trainer_save.c \
	train/trainer_start.c \
	train/trainer_step.c \
	train/trainer_ranks.c
libtrain_la_CFLAGS = $(AM_CFLAGS) -O3
libtrain_la_LIBADD = $(cpu_libs) libchexcore.la -lm

# The CPU backend.  Its kernels are compiled once for each instruction set, and products and sums of theirs may be fused:
# which instructions run is a matter of the machine, and so are the last bits.
libtrain_la_SOURCES += \
	train/cpu/conv.c \
	train/cpu/conv_backward.c \
	train/cpu/kernels.h \
	train/cpu/kernels_best.c \
	train/cpu/norm.c \
	train/cpu/cpu.c \
	train/cpu/operand.c \
	train/cpu/patches.c \
	train/cpu/plan.h \
	train/cpu/plan_build.c \
	train/cpu/plan_memory.c \
	train/cpu/pool.c \
	train/cpu/team.c \
	train/cpu/team.h
kernels_cflags = $(AM_CFLAGS) -O3 -fno-math-errno -ffp-contract=fast
noinst_LTLIBRARIES += libkernels_plain.la
libkernels_plain_la_SOURCES = train/cpu/kernels.c
libkernels_plain_la_CPPFLAGS = $(train_cppflags) -DKERNELS_TABLE=kernels_plain '-DKERNELS_NAME="plain C"' -DLANES=4 -DTILE=2 \
	-DOUTS=1 -DWEIGHT_OUTS=1 -DWEIGHT_INPUTS=2 -DWEIGHT_MORE=2
libkernels_plain_la_CFLAGS = $(kernels_cflags)
cpu_libs = libkernels_plain.la
if HOST_X86_64
libtrain_la_CPPFLAGS += -DKERNELS_X86
noinst_LTLIBRARIES += libkernels_avx2.la libkernels_avx512.la
libkernels_avx2_la_SOURCES = train/cpu/kernels.c
libkernels_avx2_la_CPPFLAGS = $(train_cppflags) -DKERNELS_X86 -DKERNELS_TABLE=kernels_avx2 '-DKERNELS_NAME="AVX2"' -DLANES=8 -DTILE=6 \
	-DOUTS=1 -DWEIGHT_OUTS=1 -DWEIGHT_INPUTS=6 -DWEIGHT_MORE=4
libkernels_avx2_la_CFLAGS = $(kernels_cflags) -mavx2 -mfma
libkernels_avx512_la_SOURCES = train/cpu/kernels.c
libkernels_avx512_la_CPPFLAGS = $(train_cppflags) -DKERNELS_X86 -DKERNELS_TABLE=kernels_avx512 '-DKERNELS_NAME="AVX-512"' -DLANES=16 \
	-DTILE=14 -DOUTS=2 -DWEIGHT_OUTS=3 -DWEIGHT_INPUTS=12 -DWEIGHT_MORE=8
libkernels_avx512_la_CFLAGS = $(kernels_cflags) -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
cpu_libs += libkernels_avx2.la libkernels_avx512.la
endif

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
