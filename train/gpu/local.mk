# SPDX-License-Identifier: Apache-2.0
# The backend for NVIDIA GPUs, but for its kernels; cuda/local.mk says how it is built.
gpu_sources = \
	train/gpu/cuda_backend.c \
	train/gpu/cuda_backward.c \
	train/gpu/cuda_build.c \
	train/gpu/cuda_build.h \
	train/gpu/cuda_check.c \
	train/gpu/cuda_clock.c \
	train/gpu/cuda_devices.c \
	train/gpu/cuda_eights.c \
	train/gpu/cuda_eights.h \
	train/gpu/cuda_feed.c \
	train/gpu/cuda_forward.c \
	train/gpu/cuda_layout.c \
	train/gpu/cuda_layout.h \
	train/gpu/cuda_memory.c \
	train/gpu/cuda_memory.h \
	train/gpu/cuda_plan.c \
	train/gpu/cuda_plan.h \
	train/gpu/cuda_record.c \
	train/gpu/cuda_score.c \
	train/gpu/cuda_steps.c \
	train/gpu/cuda_store.c \
	train/gpu/cuda_streams.c \
	train/gpu/reduce_staged.c
