# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/ranks/rank_fixture.c \
	tests/lib/ranks/rank_fixture.h \
	tests/lib/ranks/test_collective.c \
	tests/lib/ranks/test_collective_faults.c
