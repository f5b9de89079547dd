# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/input/archive_fixture.c \
	tests/lib/input/archive_fixture.h \
	tests/lib/input/test_archive.c \
	tests/lib/input/test_names.c
