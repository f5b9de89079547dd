# SPDX-License-Identifier: Apache-2.0
# Convolutions by cuDNN; in a build without its header none.c replaces them.
cudnn_sources = \
	train/cuda/cudnn/descriptors.c \
	train/cuda/cudnn/descriptors.h \
	train/cuda/cudnn/engine.c \
	train/cuda/cudnn/engine.h \
	train/cuda/cudnn/library.h
if CUDNN
real_cudnn_sources = $(cudnn_sources) train/cuda/cudnn/library.c
else
real_cudnn_sources = train/cuda/cudnn/engine.h train/cuda/cudnn/none.c
endif
EXTRA_DIST += $(cudnn_sources) train/cuda/cudnn/library.c train/cuda/cudnn/none.c
