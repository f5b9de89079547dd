# SPDX-License-Identifier: Apache-2.0
# Kernels for NVIDIA GPUs and their launches from C.  No backend links them yet: the C files are compiled in every
# build, against the emulator's header, and tests/emulator/build.mk compiles the kernels for the emulator.
noinst_LTLIBRARIES += libcudalaunch.la
libcudalaunch_la_SOURCES = \
	train/cuda/cuda_backward.c \
	train/cuda/cuda_build.c \
	train/cuda/cuda_build.h \
	train/cuda/cuda_device.h \
	train/cuda/cuda_eights.c \
	train/cuda/cuda_eights.h \
	train/cuda/cuda_forward.c \
	train/cuda/cuda_gemm.h \
	train/cuda/cuda_kernels.h \
	train/cuda/cuda_launch.c \
	train/cuda/cuda_launch.h \
	train/cuda/cuda_layout.c \
	train/cuda/cuda_layout.h \
	train/cuda/cuda_memory.c \
	train/cuda/cuda_memory.h \
	train/cuda/cuda_tile.h
libcudalaunch_la_CPPFLAGS = $(train_cppflags) -I$(srcdir)/tests/emulator
# compiled once for each type of value
EXTRA_DIST += \
	train/cuda/conv_data.cu \
	train/cuda/conv_forward.cu \
	train/cuda/conv_weights.cu \
	train/cuda/cuda_head.cu \
	train/cuda/cuda_input.cu \
	train/cuda/cuda_norm.cu \
	train/cuda/cuda_pack.cu \
	train/cuda/cuda_pool.cu \
	train/cuda/cuda_step.cu \
	train/cuda/cuda_table.c
