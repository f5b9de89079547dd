# SPDX-License-Identifier: Apache-2.0
# The emulator of CUDA's execution model, and on it the backend `cuda-emulated` for the programs of the tests, with a
# cuDNN and an NCCL of its own (../cudnn, ../nccl).  It needs a C++ compiler, which nothing else here does.  build.mk
# builds emulator and kernels once more for `make check-emulator`, with several compilers and sanitizers.
emulator_sources = \
	tests/emulator/async_copy.cc \
	tests/emulator/block.cc \
	tests/emulator/device.cc \
	tests/emulator/fiber.cc \
	tests/emulator/graph.cc \
	tests/emulator/matrix.cc \
	tests/emulator/memory.cc \
	tests/emulator/stream.cc \
	tests/emulator/warp.cc \
	tests/cudnn/fake_cudnn.cc \
	tests/nccl/fake_nccl.cc
EXTRA_DIST += $(emulator_sources) \
	tests/emulator/api.c \
	tests/emulator/block.h \
	tests/emulator/build.mk \
	tests/emulator/check_emulator.py \
	tests/emulator/check_sm70.py \
	tests/emulator/cuda_runtime_api.h \
	tests/emulator/emulated.h \
	tests/emulator/emulator.h \
	tests/emulator/fiber.h \
	tests/emulator/half.h \
	tests/emulator/halves.cc \
	tests/emulator/matrices.c \
	tests/emulator/nvrtc.py \
	tests/emulator/rule_kernels.cc \
	tests/emulator/rule_kernels.h \
	tests/emulator/rules.c \
	tests/emulator/runtime.h \
	tests/emulator/sanitizer.h \
	tests/emulator/traffic.cc \
	tests/emulator/traffic.h \
	tests/emulator/traffic_rules.cc \
	tests/nccl/fake_nccl.h \
	tests/nccl/library.c \
	tests/nccl/nccl.h

# The C code of the backend is compiled where there is no C++ too.
# Buckets are small enough that the networks of tests have some.
emulated_cppflags = $(cuda_cppflags) -I$(srcdir)/tests/emulator -I$(srcdir)/tests/cudnn -I$(srcdir)/tests/nccl \
	-DCUDA_EMULATED -DCUDA_BUCKET=4096 -DCUDA_FRONT=1024
check_LTLIBRARIES += libcudaemulated.la
libcudaemulated_la_SOURCES = $(cuda_sources) $(cudnn_sources) tests/cudnn/library.c $(nccl_sources) tests/nccl/library.c
libcudaemulated_la_CPPFLAGS = $(emulated_cppflags)

if EMULATOR
check_LTLIBRARIES += libemulator.la libemulated_fp16.la libemulated_bf16.la libemulated_float.la
libemulator_la_SOURCES = $(emulator_sources)
libemulator_la_CPPFLAGS = $(emulated_cppflags)
libemulated_fp16_la_SOURCES = $(cuda_table)
nodist_libemulated_fp16_la_SOURCES = $(cuda_kernels:.cu=.cc)
libemulated_fp16_la_CPPFLAGS = $(emulated_cppflags) $(cuda_fp16)
libemulated_bf16_la_SOURCES = $(cuda_table)
nodist_libemulated_bf16_la_SOURCES = $(cuda_kernels:.cu=.cc)
libemulated_bf16_la_CPPFLAGS = $(emulated_cppflags) $(cuda_bf16)
libemulated_float_la_SOURCES = $(cuda_table)
nodist_libemulated_float_la_SOURCES = $(cuda_kernels:.cu=.cc)
libemulated_float_la_CPPFLAGS = $(emulated_cppflags) $(cuda_float)
# A C++ source for each kernel source, which automake compiles.
$(cuda_kernels:.cu=.cc): Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo '#include "$(@:train/%.cc=%.cu)"' > $@
CLEANFILES += $(cuda_kernels:.cu=.cc)
endif

# Programs that have the backend stand before libtrain.la with a list of backends of their own, and C++ links them.
emulated_backends = tests/emulated/train/backends.c tests/emulated/train/backends.h
emulated_ldadd = libcudaemulated.la libemulated_fp16.la libemulated_bf16.la libemulated_float.la libemulator.la
emulated_link = $(LIBTOOL) $(AM_V_lt) --tag=CXX --mode=link $(CXX) $(CXXFLAGS) $(CFLAGS)
tests/emulated/train/backends.c: Makefile
	$(call list_backends,cuda-emulated cpu ref)
tests/emulated/train/backends.h: Makefile
	$(call name_backends,cuda-emulated cpu ref)
CLEANFILES += $(emulated_backends)
# also where the command line says that there are no check_LTLIBRARIES
CLEANFILES += libcudaemulated.la libemulator.la libemulated_bf16.la libemulated_float.la libemulated_fp16.la

if EMULATOR
check_PROGRAMS += tests/chex-train-emulated tests/train-step-emulated
endif
tests_chex_train_emulated_SOURCES = tools/chex-train.c $(train_sources)
nodist_tests_chex_train_emulated_SOURCES = $(emulated_backends)
tests_chex_train_emulated_CPPFLAGS = -iquote tests/emulated $(tools_cppflags)
tests_chex_train_emulated_LDADD = libdraw.la $(emulated_ldadd) libtrain.la $(launcher_ldadd) $(tools_ldadd) -lm
tools/train/tests_chex_train_emulated-train_options.$(OBJEXT): tests/emulated/train/backends.h
tests_chex_train_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

tests_train_step_emulated_SOURCES = tests/train_step.c
nodist_tests_train_step_emulated_SOURCES = tests/emulated/train/backends.c
tests_train_step_emulated_CPPFLAGS = $(train_cppflags)
tests_train_step_emulated_LDADD = $(emulated_ldadd) libtrain.la
tests_train_step_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

# The suites of train/cuda.
if EMULATOR
if HAVE_CHECK
check_PROGRAMS += tests/unit-gpu
TESTS += tests/unit-gpu
endif
endif
tests_unit_gpu_SOURCES = \
	tests/unit_gpu.c \
	tests/gpu_fixture.c \
	tests/gpu_fixture.h \
	tests/post_office.c \
	tests/post_office.h \
	tests/rank_fixture.c \
	tests/rank_fixture.h \
	tests/step_fixture.c \
	tests/step_fixture.h \
	tests/test_cuda.c \
	tests/test_cuda_cudnn.c \
	tests/test_cuda_engine.c \
	tests/test_cuda_faults.c \
	tests/test_cuda_ranks.c \
	tests/test_cuda_splits.c \
	tests/test_cuda_state.c \
	tests/unit.h
nodist_tests_unit_gpu_SOURCES = tests/emulated/train/backends.c
tests_unit_gpu_CPPFLAGS = $(emulated_cppflags) -iquote $(srcdir)/tests $(CHECK_CFLAGS)
tests_unit_gpu_LDADD = $(emulated_ldadd) libtrain.la libchexcore.la $(CHECK_LIBS) -lm
tests_unit_gpu_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

#: check-emulator     the emulator of CUDA's execution model: its rules, and that it finds who breaks one; minutes
check-emulator:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/emulator/check_emulator.py $(CHECK_CASES)

#: check-sm70         kernels compiled for sm_70, sm_80 and sm_90 by NVRTC 12.9, their registers and spills
check-sm70:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/emulator/check_sm70.py $(CHECK_CASES)

.PHONY: check-emulator check-sm70
