# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/io/file_fixture.c \
	tests/lib/io/file_fixture.h \
	tests/lib/io/lock_fixture.c \
	tests/lib/io/lock_fixture.h \
	tests/lib/io/test_file.c \
	tests/lib/io/test_file_read.c \
	tests/lib/io/test_gunzip.c \
	tests/lib/io/test_lock.c \
	tests/lib/io/test_lock_faults.c \
	tests/lib/io/test_table.c
# Both parsers of CSV, compared with each other.
if HAVE_LIBCSV
tests_unit_SOURCES += \
	lib/io/csv_included.c \
	lib/io/csv_included.h \
	tests/lib/io/test_csv_included.c
endif
