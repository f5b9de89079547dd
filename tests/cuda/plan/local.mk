# SPDX-License-Identifier: Apache-2.0
# Tests of the lists of launches, on the emulator: ../emulated.mk builds them.
EXTRA_DIST += \
	tests/cuda/plan/layout_fixture.c \
	tests/cuda/plan/layout_fixture.h \
	tests/cuda/plan/layout_lives.c \
	tests/cuda/plan/layout_steps.c \
	tests/cuda/plan/traffic_steps.c
