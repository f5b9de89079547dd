# SPDX-License-Identifier: Apache-2.0
inspect_source_sources = \
	tools/inspect/source/archive.c \
	tools/inspect/source/probe.c \
	tools/inspect/source/report.c \
	tools/inspect/source/rows.c \
	tools/inspect/source/source.c \
	tools/inspect/source/source.h \
	tools/inspect/source/sum.c
