# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/convert/test_convert.c \
	tests/lib/convert/test_cross_check.c \
	tests/lib/convert/test_ranks.c
