# SPDX-License-Identifier: Apache-2.0
run_times_sources = \
	tools/train/run_times.c \
	tools/train/run_times.h
train_values_sources = \
	tools/train/train_values.c \
	tools/train/train_values.h
train_sources = \
	tools/train/roc_plot.c \
	tools/train/roc_plot.h \
	tools/train/train_audit.c \
	tools/train/train_audit.h \
	tools/train/train_json.c \
	tools/train/train_options.c \
	tools/train/train_options.h \
	tools/train/train_options_check.c \
	tools/train/train_report.c \
	tools/train/train_report.h \
	tools/train/train_report_model.c \
	tools/train/train_report_plan.c \
	tools/train/train_report_reading.c \
	tools/train/train_report_result.c \
	tools/train/train_storage.c \
	tools/train/train_storage.h \
	tools/train/train_storage_options.c \
	tools/train/train_storage_options.h \
	tools/train/train_watch.c \
	tools/train/train_watch.h
