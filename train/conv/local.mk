# SPDX-License-Identifier: Apache-2.0
# Kernels of convolutions, and which of their forms a convolution gets; ../cuda/local.mk has what compiles them.
conv_sources = \
	train/conv/cuda_address.h \
	train/conv/cuda_both.c \
	train/conv/cuda_both.h \
	train/conv/cuda_both_end.h \
	train/conv/cuda_both_tile.h \
	train/conv/cuda_conv.c \
	train/conv/cuda_gemm.h \
	train/conv/cuda_leave.h \
	train/conv/cuda_pixels.h \
	train/conv/cuda_product.c \
	train/conv/cuda_product.h \
	train/conv/cuda_tile.h
conv_kernels = \
	train/conv/conv_backward.cu \
	train/conv/conv_both.cu \
	train/conv/conv_data.cu \
	train/conv/conv_forward.cu \
	train/conv/conv_halo.cu \
	train/conv/conv_weights.cu
