# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/plan/coverage.c \
	lib/plan/coverage.h \
	lib/plan/plan.c \
	lib/plan/plan.h \
	lib/plan/split.c \
	lib/plan/split.h \
	lib/plan/split_file.c \
	lib/plan/split_work.c \
	lib/plan/split_work.h
