# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/train/eval/evaluate_fixture.c \
	tests/train/eval/evaluate_fixture.h \
	tests/train/eval/test_evaluate.c \
	tests/train/eval/test_evaluate_ranks.c \
	tests/train/eval/test_metrics.c \
	tests/train/eval/test_operating.c

check_PROGRAMS += check-metrics
check_metrics_SOURCES = tests/train/eval/check_metrics.c
check_metrics_CPPFLAGS = $(train_cppflags)
check_metrics_LDADD = libtrain.la

check_PROGRAMS += check-operating
check_operating_SOURCES = tests/train/eval/check_operating.c
check_operating_CPPFLAGS = $(train_cppflags)
check_operating_LDADD = libtrain.la

check_PROGRAMS += evaluate-split
evaluate_split_SOURCES = tests/train/eval/evaluate_split.c tools/train/roc_plot.c tools/train/roc_plot.h
evaluate_split_CPPFLAGS = $(tools_cppflags)
evaluate_split_LDADD = libdraw.la libtrain.la $(launcher_ldadd) $(tools_ldadd)

EXTRA_DIST += \
	tests/train/eval/check_auroc.py \
	tests/train/eval/check_operating.py
