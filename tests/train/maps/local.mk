# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/maps/test_maps.c \
	tests/train/maps/test_rank.c
