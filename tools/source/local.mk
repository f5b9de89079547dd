# SPDX-License-Identifier: Apache-2.0
source_sources = \
	tools/source/inspect_source.c \
	tools/source/inspect_source.h \
	tools/source/inspect_source_archive.c \
	tools/source/inspect_source_probe.c \
	tools/source/inspect_source_report.c \
	tools/source/inspect_source_rows.c \
	tools/source/inspect_source_sum.c
