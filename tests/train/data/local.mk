# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/data/test_fold.c \
	tests/train/data/test_loader.c \
	tests/train/data/test_reader.c

check_PROGRAMS += relabel
relabel_SOURCES = tests/train/data/relabel.c
relabel_CPPFLAGS = $(train_cppflags)
relabel_LDADD = libtrain.la
