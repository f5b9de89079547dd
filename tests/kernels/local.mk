# SPDX-License-Identifier: Apache-2.0
# Tests of kernels and of the lists of launches, on the emulator: ../emulator/build.mk builds them, for `make
# check-emulator`.
EXTRA_DIST += \
	tests/kernels/bank_conflicts.cc \
	tests/kernels/both_kernels.cc \
	tests/kernels/conv_kernels.cc \
	tests/kernels/fused_kernels.cc \
	tests/kernels/head_kernels.cc \
	tests/kernels/input_kernels.cc \
	tests/kernels/kernel_fixture.cc \
	tests/kernels/kernel_fixture.h \
	tests/kernels/layout_fixture.c \
	tests/kernels/layout_fixture.h \
	tests/kernels/layout_lives.c \
	tests/kernels/layout_steps.c \
	tests/kernels/norm_kernels.cc \
	tests/kernels/pool_kernels.cc \
	tests/kernels/settle_kernels.cc \
	tests/kernels/step_kernels.cc \
	tests/kernels/sum_kernels.cc \
	tests/kernels/traffic_steps.c
