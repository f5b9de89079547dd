# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/plan/source_fixture.c \
	tests/lib/plan/source_fixture.h \
	tests/lib/plan/test_plan.c \
	tests/lib/plan/test_preflight.c \
	tests/lib/plan/test_source.c \
	tests/lib/plan/test_split.c \
	tests/lib/plan/test_split_rule.c
