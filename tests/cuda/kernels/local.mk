# SPDX-License-Identifier: Apache-2.0
# Tests of kernels: on the emulator (../emulated.mk, `make check-kernels`), on a GPU (../device/build.mk), and of the
# code that the compilers make of them.
EXTRA_DIST += \
	tests/cuda/kernels/bank_conflicts.cc \
	tests/cuda/kernels/check_sass.py \
	tests/cuda/kernels/check_sm70.py \
	tests/cuda/kernels/conv_choices.cc \
	tests/cuda/kernels/conv_kernels.cc \
	tests/cuda/kernels/finalize_kernels.cc \
	tests/cuda/kernels/fused_kernels.cc \
	tests/cuda/kernels/head_kernels.cc \
	tests/cuda/kernels/input_kernels.cc \
	tests/cuda/kernels/kernel_fixture.cc \
	tests/cuda/kernels/kernel_fixture.h \
	tests/cuda/kernels/kernel_sizes.c \
	tests/cuda/kernels/kernels.txt \
	tests/cuda/kernels/norm_kernels.cc \
	tests/cuda/kernels/nvrtc.py \
	tests/cuda/kernels/one_pass_kernels.cc \
	tests/cuda/kernels/pool_kernels.cc \
	tests/cuda/kernels/step_kernels.cc \
	tests/cuda/kernels/sum_kernels.cc

#: check-sm70         kernels compiled for sm_70, sm_75, sm_80 and sm_90 by NVRTC 12.9, their registers and spills
check-sm70:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/cuda/kernels/check_sm70.py $(CHECK_CASES)

#: check-sass         machine code of the kernels for sm_75, sm_80 and sm_90: spills, accesses, kernels.txt
check-sass:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/cuda/kernels/check_sass.py $(CHECK_CASES)

#: kernels-table      that table, written anew after a kernel has changed
kernels-table:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/cuda/kernels/check_sass.py --write

.PHONY: check-sass check-sm70 kernels-table
