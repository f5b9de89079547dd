# SPDX-License-Identifier: Apache-2.0
inspect_diff_sources = \
	tools/inspect/diff/checkpoint.c \
	tools/inspect/diff/diff.c \
	tools/inspect/diff/diff.h \
	tools/inspect/diff/match.c \
	tools/inspect/diff/predictions.c \
	tools/inspect/diff/predictions.h \
	tools/inspect/diff/report.c \
	tools/inspect/diff/runs.c \
	tools/inspect/diff/runs.h \
	tools/inspect/diff/runs_report.c \
	tools/inspect/diff/scored_run.c \
	tools/inspect/diff/scored_run.h \
	tools/inspect/diff/walk.c
