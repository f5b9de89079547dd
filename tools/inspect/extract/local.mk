# SPDX-License-Identifier: Apache-2.0
inspect_extract_sources = \
	tools/inspect/extract/extract.c
