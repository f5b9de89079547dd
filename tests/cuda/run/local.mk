# SPDX-License-Identifier: Apache-2.0
# The suites of train/cuda.
if EMULATOR
if HAVE_CHECK
check_PROGRAMS += tests/unit-gpu
unit_tests_gpu = tests/unit-gpu
endif
endif
tests_unit_gpu_SOURCES = \
	tests/cuda/run/gpu_fixture.c \
	tests/cuda/run/gpu_fixture.h \
	tests/cuda/run/test_cuda.c \
	tests/cuda/run/test_cuda_cudnn.c \
	tests/cuda/run/test_cuda_engine.c \
	tests/cuda/run/test_cuda_faults.c \
	tests/cuda/run/test_cuda_measure.c \
	tests/cuda/run/test_cuda_ranks.c \
	tests/cuda/run/test_cuda_splits.c \
	tests/cuda/run/test_cuda_state.c \
	tests/fakes/comm/post_office.c \
	tests/fakes/comm/post_office.h \
	tests/train/backend/step_fixture.c \
	tests/train/backend/step_fixture.h \
	tests/lib/ranks/rank_fixture.c \
	tests/lib/ranks/rank_fixture.h \
	tests/unit.c \
	tests/unit.h
nodist_tests_unit_gpu_SOURCES = tests/emulated/train/backends.c
tests_unit_gpu_CPPFLAGS = -iquote tests/emulated $(emulated_cppflags) -iquote $(srcdir)/tests $(CHECK_CFLAGS)
tests_unit_gpu_LDADD = $(emulated_ldadd) libtrain.la libchexcore.la $(CHECK_LIBS) -lm
tests/cuda/run/tests_unit_gpu-test_cuda_faults.$(OBJEXT): tests/emulated/train/backends.h
tests_unit_gpu_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

#: check-nccl         ranks on emulated GPUs that sum by NCCL, with all slow cases; minutes
check-nccl: all tests/unit-gpu tests/chex-train-emulated
	CK_RUN_SUITE=cuda_ranks tests/unit-gpu
	CHEX_SLOW=1; export CHEX_SLOW; $(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/cuda/run/check_train_nccl.py

.PHONY: check-nccl

EXTRA_DIST += \
	tests/cuda/run/check_train_cuda.py \
	tests/cuda/run/check_train_nccl.py
