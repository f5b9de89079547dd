# SPDX-License-Identifier: Apache-2.0
# Kernels, the structs that they take, and launches of them; ../local.mk compiles the .cu files and the table once for
# each type of value.
cuda_kernel_sources = \
	train/cuda/kernels/args.h \
	train/cuda/kernels/blocks.h \
	train/cuda/kernels/conv_args.h \
	train/cuda/kernels/counts.c \
	train/cuda/kernels/counts.h \
	train/cuda/kernels/device.h \
	train/cuda/kernels/dgrad_halo.h \
	train/cuda/kernels/epilogue.h \
	train/cuda/kernels/gemm.h \
	train/cuda/kernels/gemm_tile.h \
	train/cuda/kernels/launch.c \
	train/cuda/kernels/launch.h \
	train/cuda/kernels/loader.h \
	train/cuda/kernels/mainloop.h \
	train/cuda/kernels/norm.h \
	train/cuda/kernels/norm_args.h \
	train/cuda/kernels/one_pass.h \
	train/cuda/kernels/one_pass_end.h \
	train/cuda/kernels/one_pass_tile.h \
	train/cuda/kernels/partial.h \
	train/cuda/kernels/pixels.h \
	train/cuda/kernels/pool_args.h \
	train/cuda/kernels/prologue.h \
	train/cuda/kernels/runtime.h \
	train/cuda/kernels/sums.h \
	train/cuda/kernels/tile.h \
	train/cuda/kernels/wgrad_halo.h
cuda_runtime_sources = train/cuda/kernels/runtime.c
cuda_kernels = \
	train/cuda/kernels/conv_dgrad.cu \
	train/cuda/kernels/conv_dgrad_halo.cu \
	train/cuda/kernels/conv_dgrad_wgrad.cu \
	train/cuda/kernels/conv_fprop.cu \
	train/cuda/kernels/conv_halo.cu \
	train/cuda/kernels/conv_one_pass.cu \
	train/cuda/kernels/conv_stem.cu \
	train/cuda/kernels/conv_wgrad.cu \
	train/cuda/kernels/finalize.cu \
	train/cuda/kernels/head.cu \
	train/cuda/kernels/input.cu \
	train/cuda/kernels/norm.cu \
	train/cuda/kernels/norm_pool.cu \
	train/cuda/kernels/pack.cu \
	train/cuda/kernels/pool.cu \
	train/cuda/kernels/step.cu
cuda_table = train/cuda/kernels/table.c
