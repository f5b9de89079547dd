# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/eval/calibration.c \
	train/eval/calibration.h \
	train/eval/compare.c \
	train/eval/compare.h \
	train/eval/evaluate.c \
	train/eval/evaluate.h \
	train/eval/evaluate_compute.c \
	train/eval/evaluate_private.h \
	train/eval/floor.c \
	train/eval/floor.h \
	train/eval/gate.c \
	train/eval/gate.h \
	train/eval/gate_json.c \
	train/eval/localization.c \
	train/eval/localization.h \
	train/eval/logistic.c \
	train/eval/logistic.h \
	train/eval/metrics.c \
	train/eval/metrics.h \
	train/eval/metrics_document.c \
	train/eval/operating.c \
	train/eval/operating.h \
	train/eval/operating_json.c \
	train/eval/predictions.c \
	train/eval/predictions.h \
	train/eval/predictions_index.c \
	train/eval/predictions_index.h \
	train/eval/predictions_read.c \
	train/eval/predictions_read.h \
	train/eval/ranking.c \
	train/eval/ranking.h \
	train/eval/subgroup_bias.c \
	train/eval/subgroup_gap.c \
	train/eval/subgroups.c \
	train/eval/subgroups.h \
	train/eval/subgroups_private.h
