# SPDX-License-Identifier: Apache-2.0
# The backend for NVIDIA GPUs, but for its kernels; cuda/local.mk says how it is built.
gpu_sources = \
	train/gpu/cuda_backend.c \
	train/gpu/cuda_buckets.c \
	train/gpu/cuda_check.c \
	train/gpu/cuda_clock.c \
	train/gpu/cuda_devices.c \
	train/gpu/cuda_feed.c \
	train/gpu/cuda_model.c \
	train/gpu/cuda_model.h \
	train/gpu/cuda_plan.c \
	train/gpu/cuda_plan.h \
	train/gpu/cuda_record.c \
	train/gpu/cuda_reduce.c \
	train/gpu/cuda_reduce.h \
	train/gpu/cuda_score.c \
	train/gpu/cuda_steps.c \
	train/gpu/cuda_store.c \
	train/gpu/cuda_streams.c \
	train/gpu/reduce_staged.c

# Sums by NCCL; without its header nccl_none.c.
nccl_sources = train/gpu/nccl_library.h train/gpu/reduce_nccl.c
if NCCL
real_nccl_sources = $(nccl_sources) train/gpu/nccl_library.c
else
real_nccl_sources = train/gpu/nccl_none.c
endif
EXTRA_DIST += $(nccl_sources) train/gpu/nccl_library.c train/gpu/nccl_none.c
