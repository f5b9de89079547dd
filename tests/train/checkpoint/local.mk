# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/checkpoint/checkpoint_fixture.c \
	tests/train/checkpoint/checkpoint_fixture.h \
	tests/train/checkpoint/state_cases.c \
	tests/train/checkpoint/state_cases.h \
	tests/train/checkpoint/test_checkpoint.c \
	tests/train/checkpoint/test_safetensors.c \
	tests/train/checkpoint/test_settings.c \
	tests/train/checkpoint/test_state.c \
	tests/train/checkpoint/test_weights.c

EXTRA_DIST += \
	tests/train/checkpoint/check_weights.py
