# SPDX-License-Identifier: Apache-2.0
# Convolutions by cuDNN; without its header cudnn_none.c.
cudnn_sources = train/cudnn/cuda_cudnn.c train/cudnn/cuda_cudnn.h train/cudnn/cudnn_descriptors.c \
	train/cudnn/cudnn_descriptors.h train/cudnn/cudnn_library.h
if CUDNN
real_cudnn_sources = $(cudnn_sources) train/cudnn/cudnn_library.c
else
real_cudnn_sources = train/cudnn/cuda_cudnn.h train/cudnn/cudnn_none.c
endif
EXTRA_DIST += $(cudnn_sources) train/cudnn/cudnn_library.c train/cudnn/cudnn_none.c
