# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/math/test_random.c \
	tests/train/math/test_step.c
