# SPDX-License-Identifier: Apache-2.0
inspect_sources = \
	tools/inspect/checkpoint.c \
	tools/inspect/checkpoint.h \
	tools/inspect/command.c \
	tools/inspect/command.h \
	tools/inspect/describe.c \
	tools/inspect/describe.h \
	tools/inspect/inspect.h \
	tools/inspect/options.h \
	tools/inspect/output.c \
	tools/inspect/record.c \
	tools/inspect/target.c \
	tools/inspect/walk.c
