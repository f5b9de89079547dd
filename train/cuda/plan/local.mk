# SPDX-License-Identifier: Apache-2.0
# A plan before there is a GPU: which tiles convolutions get, where everything is in memory, the lists of launches, and
# the cost model.
cuda_plan_sources = \
	train/cuda/plan/backward.c \
	train/cuda/plan/build.c \
	train/cuda/plan/build.h \
	train/cuda/plan/conv.c \
	train/cuda/plan/conv.h \
	train/cuda/plan/cost.c \
	train/cuda/plan/cost.h \
	train/cuda/plan/cost_areas.c \
	train/cuda/plan/cost_norm.c \
	train/cuda/plan/cost_seconds.c \
	train/cuda/plan/cost_seconds.h \
	train/cuda/plan/cost_step.c \
	train/cuda/plan/cudnn_launches.c \
	train/cuda/plan/device.c \
	train/cuda/plan/device.h \
	train/cuda/plan/end.c \
	train/cuda/plan/finalize.c \
	train/cuda/plan/fold.c \
	train/cuda/plan/fold.h \
	train/cuda/plan/forward.c \
	train/cuda/plan/gpu.c \
	train/cuda/plan/gpu.h \
	train/cuda/plan/layout.c \
	train/cuda/plan/layout.h \
	train/cuda/plan/memory.c \
	train/cuda/plan/memory.h \
	train/cuda/plan/model.c \
	train/cuda/plan/model.h \
	train/cuda/plan/one_pass.c \
	train/cuda/plan/one_pass.h \
	train/cuda/plan/product.c \
	train/cuda/plan/product.h \
	train/cuda/plan/product_load.c \
	train/cuda/plan/product_load.h \
	train/cuda/plan/scoring.c \
	train/cuda/plan/size.c \
	train/cuda/plan/size.h \
	train/cuda/plan/sums.c \
	train/cuda/plan/tables.c
