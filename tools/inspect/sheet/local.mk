# SPDX-License-Identifier: Apache-2.0
inspect_sheet_sources = \
	tools/inspect/sheet/draw.c \
	tools/inspect/sheet/sheet.c \
	tools/inspect/sheet/sheet.h
