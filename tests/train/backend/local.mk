# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/backend/kinks.c \
	tests/train/backend/kinks.h \
	tests/train/backend/step_fixture.c \
	tests/train/backend/step_fixture.h \
	tests/train/backend/test_backends.c \
	tests/train/backend/test_crop.c \
	tests/train/backend/test_live_ranges.c \
	tests/train/backend/test_padding.c \
	tests/train/backend/test_seam.c \
	tests/train/backend/test_unknown.c

check_PROGRAMS += train-step
train_step_SOURCES = tests/train/backend/train_step.c
train_step_CPPFLAGS = $(train_cppflags)
train_step_LDADD = libtrain.la

check_PROGRAMS += crop-levels
crop_levels_SOURCES = tests/train/backend/crop_levels.c
crop_levels_CPPFLAGS = $(train_cppflags)
crop_levels_LDADD = libtrain.la

EXTRA_DIST += \
	tests/train/backend/check_crop.py \
	tests/train/backend/check_half.py \
	tests/train/backend/check_parity.py
