# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/labels/label_fixture.c \
	tests/lib/labels/label_fixture.h \
	tests/lib/labels/labels_mask.h \
	tests/lib/labels/test_box_list.c \
	tests/lib/labels/test_columns_file.c \
	tests/lib/labels/test_label_errors.c \
	tests/lib/labels/test_label_kinds.c \
	tests/lib/labels/test_labels.c

check_PROGRAMS += check-tables
check_tables_SOURCES = tests/lib/labels/check_tables.c
check_tables_LDADD = libchexcore.la

EXTRA_DIST += \
	tests/lib/labels/check_tables.py
