# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/verify/test_verify.c \
	tests/lib/verify/test_verify_folder.c \
	tests/lib/verify/verify_fixture.c \
	tests/lib/verify/verify_fixture.h
