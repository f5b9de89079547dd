# SPDX-License-Identifier: Apache-2.0
inspect_sources = \
	tools/inspect/inspect.h \
	tools/inspect/inspect_checkpoint.c \
	tools/inspect/inspect_checkpoint.h \
	tools/inspect/inspect_describe.c \
	tools/inspect/inspect_describe.h \
	tools/inspect/inspect_events.c \
	tools/inspect/inspect_extract.c \
	tools/inspect/inspect_labels.c \
	tools/inspect/inspect_list.c \
	tools/inspect/inspect_options.c \
	tools/inspect/inspect_options.h \
	tools/inspect/inspect_other.c \
	tools/inspect/inspect_output.c \
	tools/inspect/inspect_record.c \
	tools/inspect/inspect_sheet.c \
	tools/inspect/inspect_sheet.h \
	tools/inspect/inspect_sheet_draw.c \
	tools/inspect/inspect_show.c \
	tools/inspect/inspect_show.h \
	tools/inspect/inspect_show_escape.c \
	tools/inspect/inspect_show_terminal.c \
	tools/inspect/inspect_split.c \
	tools/inspect/inspect_split.h \
	tools/inspect/inspect_split_check.c \
	tools/inspect/inspect_split_report.c \
	tools/inspect/inspect_target.c \
	tools/inspect/inspect_values.c \
	tools/inspect/inspect_values.h \
	tools/inspect/inspect_verify.c \
	tools/inspect/inspect_walk.c \
	tools/inspect/inspect_where.c \
	tools/inspect/inspect_where.h
