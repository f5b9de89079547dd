# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/kernels/deflate_fixture.c \
	tests/lib/kernels/deflate_fixture.h \
	tests/lib/kernels/test_inflate.c \
	tests/lib/kernels/test_inflate_streams.c \
	tests/lib/kernels/test_inflate_tables.c

EXTRA_DIST += \
	tests/lib/kernels/check_aarch64.sh \
	tests/lib/kernels/check_kernels.c
