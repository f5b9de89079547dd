# SPDX-License-Identifier: Apache-2.0
# Tests of train/cuda.  Programs of the tests have the backend `cuda` as `cuda-emulated`: on the emulator, with the
# cuDNN and the NCCL of fakes/.
fake_sources = tests/fakes/cudnn/fake_cudnn.cc tests/fakes/nccl/fake_nccl.cc
EXTRA_DIST += \
	$(fake_sources) \
	tests/cuda/check_emulated.py \
	tests/cuda/emulated.mk \
	tests/cuda/ptx/check_mutants.py \
	tests/cuda/ptx/check_ptx.py \
	tests/cuda/ptx/mutants.py \
	tests/cuda/ptx/ptx_executor.cc \
	tests/cuda/ptx/ptx_files.py \
	tests/cuda/ptx/ptx_forms.py \
	tests/cuda/toolkit11.sh

# The C code of the backend is compiled where there is no C++ too.
# Buckets are small enough that the networks of tests have some.
emulated_cppflags = $(cuda_cppflags) -I$(srcdir)/tests/emulator -I$(srcdir)/tests/fakes/cudnn \
	-I$(srcdir)/tests/fakes/nccl -DCUDA_EMULATED -DCUDA_BUCKET=4096 -DCUDA_FRONT=1024
check_LTLIBRARIES += libcudaemulated.la
libcudaemulated_la_SOURCES = $(cuda_sources) $(cudnn_sources) $(nccl_sources) tests/fakes/cudnn/library.c \
	tests/fakes/nccl/library.c
libcudaemulated_la_CPPFLAGS = $(emulated_cppflags)

if EMULATOR
check_LTLIBRARIES += libemulator.la libemulated_fp16.la libemulated_bf16.la libemulated_tf32.la libemulated_float.la
libemulator_la_SOURCES = $(emulator_sources) $(fake_sources)
libemulator_la_CPPFLAGS = $(emulated_cppflags)
libemulated_fp16_la_SOURCES = $(cuda_table)
nodist_libemulated_fp16_la_SOURCES = $(cuda_kernels:.cu=.cc)
libemulated_fp16_la_CPPFLAGS = $(emulated_cppflags) $(cuda_fp16)
libemulated_bf16_la_SOURCES = $(cuda_table)
nodist_libemulated_bf16_la_SOURCES = $(cuda_kernels:.cu=.cc)
libemulated_bf16_la_CPPFLAGS = $(emulated_cppflags) $(cuda_bf16)
libemulated_tf32_la_SOURCES = $(cuda_table)
nodist_libemulated_tf32_la_SOURCES = $(cuda_kernels:.cu=.cc)
libemulated_tf32_la_CPPFLAGS = $(emulated_cppflags) $(cuda_tf32)
libemulated_float_la_SOURCES = $(cuda_table)
nodist_libemulated_float_la_SOURCES = $(cuda_kernels:.cu=.cc)
libemulated_float_la_CPPFLAGS = $(emulated_cppflags) $(cuda_float)
if SANITIZERS
# The programs with sanitizers test the C code of the backend; `make check-kernels` has the sanitizers for the kernels.
# Their templates take clang 25 times as long with sanitizers and -O2.
$(libemulated_fp16_la_OBJECTS) $(libemulated_bf16_la_OBJECTS) $(libemulated_tf32_la_OBJECTS) \
$(libemulated_float_la_OBJECTS): \
	CXXFLAGS = -g -O0 -fno-sanitize=all
endif
# A C++ source for each kernel source, which automake compiles.
$(cuda_kernels:.cu=.cc): Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo '#include "$(@:train/%.cc=%.cu)"' > $@
CLEANFILES += $(cuda_kernels:.cu=.cc)
endif

# Programs that have the backend stand before libtrain.la with a list of backends of their own, and C++ links them.
emulated_backends = tests/emulated/train/backends.c tests/emulated/train/backends.h
emulated_ldadd = libcudaemulated.la libemulated_fp16.la libemulated_bf16.la libemulated_tf32.la libemulated_float.la \
	libemulator.la
emulated_link = $(LIBTOOL) $(AM_V_lt) --tag=CXX --mode=link $(CXX) $(CXXFLAGS) $(CFLAGS)
tests/emulated/train/backends.c: Makefile
	$(call list_backends,cuda-emulated cpu ref)
tests/emulated/train/backends.h: Makefile
	$(call name_backends,cuda-emulated cpu ref)
CLEANFILES += $(emulated_backends)
# also where the command line says that there are no check_LTLIBRARIES
CLEANFILES += libcudaemulated.la libemulator.la libemulated_bf16.la libemulated_float.la libemulated_fp16.la \
	libemulated_tf32.la

if EMULATOR
check_PROGRAMS += tests/chex-train-emulated tests/train-step-emulated
endif
tests_chex_train_emulated_SOURCES = tools/chex-train.c $(train_sources) $(train_values_sources)
nodist_tests_chex_train_emulated_SOURCES = $(emulated_backends)
tests_chex_train_emulated_CPPFLAGS = -iquote tests/emulated $(tools_cppflags)
tests_chex_train_emulated_LDADD = libdraw.la $(emulated_ldadd) libtrain.la $(launcher_ldadd) $(tools_ldadd) -lm
tools/train/tests_chex_train_emulated-train_options.$(OBJEXT): tests/emulated/train/backends.h
tests_chex_train_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

tests_train_step_emulated_SOURCES = tests/train/backend/train_step.c
nodist_tests_train_step_emulated_SOURCES = tests/emulated/train/backends.c
tests_train_step_emulated_CPPFLAGS = $(train_cppflags)
tests_train_step_emulated_LDADD = $(emulated_ldadd) libtrain.la
tests_train_step_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

#: check-kernels      kernels and plans on the emulator, with several compilers and sanitizers; minutes
check-kernels:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/cuda/check_emulated.py $(CHECK_CASES)

#: check-ptx          kernels from their PTX: the small shapes for sm_70 and sm_90
check-ptx:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/cuda/ptx/check_ptx.py $(CHECK_CASES)

#: check-ptx-all      the same for sm_70, sm_75, sm_80 and sm_90, with all shapes; many minutes
check-ptx-all:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' CHEX_SLOW=1 \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/cuda/ptx/check_ptx.py $(CHECK_CASES)

#: check-ptx-mutants  wrong edits of the PTX, each of which the tests of kernels must find; minutes
check-ptx-mutants:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/cuda/ptx/check_mutants.py $(CHECK_CASES)

.PHONY: check-kernels check-ptx check-ptx-all check-ptx-mutants

include tests/cuda/kernels/local.mk
include tests/cuda/plan/local.mk
include tests/cuda/cudnn/local.mk
include tests/cuda/run/local.mk
include tests/cuda/device/local.mk
