# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/graph/test_graph.c
