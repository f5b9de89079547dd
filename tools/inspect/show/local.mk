# SPDX-License-Identifier: Apache-2.0
inspect_show_sources = \
	tools/inspect/show/escape.c \
	tools/inspect/show/show.c \
	tools/inspect/show/show.h \
	tools/inspect/show/terminal.c
