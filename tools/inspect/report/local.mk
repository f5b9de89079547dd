# SPDX-License-Identifier: Apache-2.0
inspect_report_sources = \
	tools/inspect/report/checks.c \
	tools/inspect/report/checks.h \
	tools/inspect/report/count.c \
	tools/inspect/report/drift.c \
	tools/inspect/report/leaks.c \
	tools/inspect/report/matrix.c \
	tools/inspect/report/page.c \
	tools/inspect/report/pictures.c \
	tools/inspect/report/plots.c \
	tools/inspect/report/report.c \
	tools/inspect/report/report.h \
	tools/inspect/report/scan.c \
	tools/inspect/report/sentence.c \
	tools/inspect/report/style.c \
	tools/inspect/report/style.h \
	tools/inspect/report/tables.c
