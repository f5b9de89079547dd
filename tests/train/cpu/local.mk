# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/cpu/test_ahead.c tests/train/cpu/test_bf16.c tests/train/cpu/test_windows.c
