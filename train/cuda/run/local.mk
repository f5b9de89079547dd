# SPDX-License-Identifier: Apache-2.0
# A plan on a GPU: devices, streams, steps.
cuda_run_sources = \
	train/cuda/run/arenas.c \
	train/cuda/run/buckets.c \
	train/cuda/run/check.c \
	train/cuda/run/clock.c \
	train/cuda/run/devices.c \
	train/cuda/run/images.c \
	train/cuda/run/measure.c \
	train/cuda/run/plan.c \
	train/cuda/run/plan.h \
	train/cuda/run/record.c \
	train/cuda/run/score.c \
	train/cuda/run/steps.c \
	train/cuda/run/streams.c
