# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/data/test_loader.c \
	tests/train/data/test_reader.c
