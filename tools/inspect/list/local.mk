# SPDX-License-Identifier: Apache-2.0
inspect_list_sources = \
	tools/inspect/list/list.c \
	tools/inspect/list/trained.c \
	tools/inspect/list/trained.h
