# SPDX-License-Identifier: Apache-2.0
# The emulator of CUDA's execution model.  It needs a C++ compiler, which nothing else here does: build.mk builds it,
# with several compilers and sanitizers, in folders of its own.
EXTRA_DIST += \
	tests/emulator/api.c \
	tests/emulator/async_copy.cc \
	tests/emulator/block.cc \
	tests/emulator/block.h \
	tests/emulator/build.mk \
	tests/emulator/check_emulator.py \
	tests/emulator/check_sm70.py \
	tests/emulator/conv_kernels.cc \
	tests/emulator/cuda_runtime_api.h \
	tests/emulator/device.cc \
	tests/emulator/emulated.h \
	tests/emulator/emulator.h \
	tests/emulator/fiber.cc \
	tests/emulator/fiber.h \
	tests/emulator/graph.cc \
	tests/emulator/half.h \
	tests/emulator/halves.cc \
	tests/emulator/head_kernels.cc \
	tests/emulator/input_kernels.cc \
	tests/emulator/kernel_fixture.cc \
	tests/emulator/kernel_fixture.h \
	tests/emulator/layout_steps.c \
	tests/emulator/matrices.c \
	tests/emulator/matrix.cc \
	tests/emulator/memory.cc \
	tests/emulator/norm_kernels.cc \
	tests/emulator/pool_kernels.cc \
	tests/emulator/rule_kernels.cc \
	tests/emulator/rule_kernels.h \
	tests/emulator/rules.c \
	tests/emulator/runtime.h \
	tests/emulator/sanitizer.h \
	tests/emulator/step_kernels.cc \
	tests/emulator/stream.cc \
	tests/emulator/warp.cc

#: check-emulator     the emulator of CUDA's execution model: its rules, and that it finds who breaks one; minutes
check-emulator:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/emulator/check_emulator.py $(CHECK_CASES)

#: check-sm70         kernels compiled for sm_70, sm_80 and sm_90 by NVRTC 12.9, their registers and spills
check-sm70:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/emulator/check_sm70.py $(CHECK_CASES)

.PHONY: check-emulator check-sm70
