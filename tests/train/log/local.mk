# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/log/test_rank_times.c

check_PROGRAMS += write-run
write_run_SOURCES = tests/train/log/write_run.c
write_run_CPPFLAGS = $(train_cppflags)
write_run_LDADD = libtrain.la

EXTRA_DIST += \
	tests/train/log/check_events.py \
	tests/train/log/read_events.py
