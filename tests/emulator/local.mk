# SPDX-License-Identifier: Apache-2.0
# The emulator of CUDA's execution model.  It needs a C++ compiler, which nothing else here does.  tests/cuda/local.mk
# builds it for the programs of the tests; build.mk builds it alone, with several compilers and sanitizers.
emulator_sources = \
	tests/emulator/async_copy.cc \
	tests/emulator/block.cc \
	tests/emulator/device.cc \
	tests/emulator/fiber.cc \
	tests/emulator/graph.cc \
	tests/emulator/matrix.cc \
	tests/emulator/memory.cc \
	tests/emulator/stream.cc \
	tests/emulator/warp.cc
EXTRA_DIST += \
	$(emulator_sources) \
	tests/emulator/README.md \
	tests/emulator/api.c \
	tests/emulator/block.h \
	tests/emulator/build.mk \
	tests/emulator/check_emulator.py \
	tests/emulator/cuda_runtime_api.h \
	tests/emulator/emulated.h \
	tests/emulator/emulator.h \
	tests/emulator/fiber.h \
	tests/emulator/half.h \
	tests/emulator/halves.cc \
	tests/emulator/matrices.c \
	tests/emulator/rule_kernels.cc \
	tests/emulator/rule_kernels.h \
	tests/emulator/rules.c \
	tests/emulator/runtime.h \
	tests/emulator/sanitizer.h \
	tests/emulator/traffic.cc \
	tests/emulator/traffic.h \
	tests/emulator/traffic_rules.cc

#: check-emulator     the emulator of CUDA's execution model: its rules, and that it finds each violation; minutes
check-emulator:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/emulator/check_emulator.py $(CHECK_CASES)

.PHONY: check-emulator
