# SPDX-License-Identifier: Apache-2.0
inspect_check_sources = \
	tools/inspect/check/check.c \
	tools/inspect/check/check.h \
	tools/inspect/check/split.c \
	tools/inspect/check/split.h \
	tools/inspect/check/split_check.c \
	tools/inspect/check/split_report.c \
	tools/inspect/check/verify.c
