# SPDX-License-Identifier: Apache-2.0
inspect_check_sources = \
	tools/inspect/check/certificate.c \
	tools/inspect/check/check.c \
	tools/inspect/check/check.h \
	tools/inspect/check/leaks.c \
	tools/inspect/check/leaks.h \
	tools/inspect/check/leaks_find.c \
	tools/inspect/check/leaks_report.c \
	tools/inspect/check/near.c \
	tools/inspect/check/near.h \
	tools/inspect/check/verify.c
