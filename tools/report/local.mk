# SPDX-License-Identifier: Apache-2.0
report_sources = \
	tools/report/inspect_report.c \
	tools/report/report.h \
	tools/report/report_checks.c \
	tools/report/report_checks.h \
	tools/report/report_count.c \
	tools/report/report_drift.c \
	tools/report/report_leaks.c \
	tools/report/report_matrix.c \
	tools/report/report_page.c \
	tools/report/report_pictures.c \
	tools/report/report_plots.c \
	tools/report/report_scan.c \
	tools/report/report_sentence.c \
	tools/report/report_style.c \
	tools/report/report_style.h \
	tools/report/report_tables.c
