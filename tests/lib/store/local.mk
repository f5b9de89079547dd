# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/store/resume_fixture.c \
	tests/lib/store/resume_fixture.h \
	tests/lib/store/store_fixture.c \
	tests/lib/store/store_fixture.h \
	tests/lib/store/test_journal.c \
	tests/lib/store/test_part.c \
	tests/lib/store/test_resume.c \
	tests/lib/store/test_store.c \
	tests/lib/store/test_store_folder.c
