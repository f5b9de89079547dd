# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/log/append.c \
	train/log/append.h \
	train/log/events.c \
	train/log/events.h \
	train/log/rank_advice.c \
	train/log/rank_times.c \
	train/log/rank_times.h \
	train/log/rank_times_json.c \
	train/log/run_check.c \
	train/log/run_check.h \
	train/log/run_file.c \
	train/log/run_file.h \
	train/log/run_json.c \
	train/log/run_json.h \
	train/log/run_log.c \
	train/log/run_log.h \
	train/log/run_log_lines.c \
	train/log/run_log_private.h \
	train/log/trace.c \
	train/log/trace.h
