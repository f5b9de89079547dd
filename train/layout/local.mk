# SPDX-License-Identifier: Apache-2.0
# A plan on a GPU before there is a GPU: where everything lies, and the lists of its launches.
layout_sources = \
	train/layout/cuda_backward.c \
	train/layout/cuda_build.c \
	train/layout/cuda_build.h \
	train/layout/cuda_eights.c \
	train/layout/cuda_eights.h \
	train/layout/cuda_end.c \
	train/layout/cuda_engine.c \
	train/layout/cuda_fold.c \
	train/layout/cuda_fold.h \
	train/layout/cuda_forward.c \
	train/layout/cuda_layout.c \
	train/layout/cuda_layout.h \
	train/layout/cuda_memory.c \
	train/layout/cuda_memory.h \
	train/layout/cuda_place.c \
	train/layout/cuda_place.h \
	train/layout/cuda_plain.c \
	train/layout/cuda_scoring.c \
	train/layout/cuda_settle.c \
	train/layout/cuda_sums.c \
	train/layout/cuda_tables.c
