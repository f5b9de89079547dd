# SPDX-License-Identifier: Apache-2.0
# Kernels, the structs that they take, and launches of them; ../local.mk compiles the .cu files and the table once for
# each type of value.
cuda_kernel_sources = \
	train/cuda/kernels/args.h \
	train/cuda/kernels/blocks.h \
	train/cuda/kernels/both.h \
	train/cuda/kernels/both_end.h \
	train/cuda/kernels/both_tile.h \
	train/cuda/kernels/conv_args.h \
	train/cuda/kernels/device.h \
	train/cuda/kernels/epilogue.h \
	train/cuda/kernels/gemm.h \
	train/cuda/kernels/gemm_tile.h \
	train/cuda/kernels/launch.c \
	train/cuda/kernels/launch.h \
	train/cuda/kernels/loader.h \
	train/cuda/kernels/mainloop.h \
	train/cuda/kernels/norm.h \
	train/cuda/kernels/norm_args.h \
	train/cuda/kernels/partial.h \
	train/cuda/kernels/pixels.h \
	train/cuda/kernels/pool_args.h \
	train/cuda/kernels/prologue.h \
	train/cuda/kernels/sums.h \
	train/cuda/kernels/tile.h
cuda_kernels = \
	train/cuda/kernels/conv_backward.cu \
	train/cuda/kernels/conv_both.cu \
	train/cuda/kernels/conv_data.cu \
	train/cuda/kernels/conv_forward.cu \
	train/cuda/kernels/conv_halo.cu \
	train/cuda/kernels/conv_weights.cu \
	train/cuda/kernels/head.cu \
	train/cuda/kernels/input.cu \
	train/cuda/kernels/norm.cu \
	train/cuda/kernels/norm_pool.cu \
	train/cuda/kernels/pack.cu \
	train/cuda/kernels/pool.cu \
	train/cuda/kernels/settle.cu \
	train/cuda/kernels/step.cu
cuda_table = train/cuda/kernels/table.c
