# SPDX-License-Identifier: Apache-2.0
inspect_labels_sources = \
	tools/inspect/labels/labels.c
