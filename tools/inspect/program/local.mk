# SPDX-License-Identifier: Apache-2.0
inspect_program_sources = \
	tools/inspect/program/options.c \
	tools/inspect/program/program.h
