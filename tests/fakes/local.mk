# SPDX-License-Identifier: Apache-2.0
# Stand-ins: a communicator of threads (comm), cuDNN, NCCL, Slurm's commands, and a device that is late.
# cuda/local.mk builds cudnn and nccl.
tests_unit_SOURCES += \
	tests/fakes/comm/post_office.c \
	tests/fakes/comm/post_office.h

# chex-train with a backend that is late; its own list of backends stands before that of libtrain.la.
check_PROGRAMS += late-train
late_train_SOURCES = \
	tools/chex-train.c \
	$(train_sources) $(train_values_sources) \
	tests/fakes/device/late.h \
	tests/fakes/device/late_backend.c \
	tests/fakes/device/late_memory.c \
	tests/fakes/device/late_reduce.c \
	tests/fakes/device/late_store.c
late_train_CPPFLAGS = $(tools_cppflags)
late_train_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
late_train_LDADD = libdraw.la libtrain.la $(launcher_ldadd) $(tools_ldadd) -lm

EXTRA_DIST += \
	tests/fakes/cudnn/cudnn_graph.h \
	tests/fakes/cudnn/fake_cudnn.h \
	tests/fakes/cudnn/library.c \
	tests/fakes/nccl/fake_nccl.h \
	tests/fakes/nccl/library.c \
	tests/fakes/nccl/nccl.h \
	tests/fakes/slurm/fake_slurm.py
