# SPDX-License-Identifier: Apache-2.0
compare_sources = \
	tools/compare/inspect_checkpoint_diff.c \
	tools/compare/inspect_checkpoint_diff_report.c \
	tools/compare/inspect_checkpoint_diff_walk.c \
	tools/compare/inspect_diff.c \
	tools/compare/inspect_diff.h \
	tools/compare/inspect_diff_report.c \
	tools/compare/inspect_diff_walk.c
