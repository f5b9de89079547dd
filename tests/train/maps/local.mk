# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/maps/test_boxes.c \
	tests/train/maps/test_maps.c \
	tests/train/maps/test_rank.c

check_PROGRAMS += check-boxes
check_boxes_SOURCES = tests/train/maps/check_boxes.c
check_boxes_CPPFLAGS = $(train_cppflags)
check_boxes_LDADD = libtrain.la

EXTRA_DIST += \
	tests/train/maps/check_boxes.py
