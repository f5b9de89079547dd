# SPDX-License-Identifier: Apache-2.0
# Sums over the ranks: by NCCL, or by messages between the hosts.  In a build without NCCL's header nccl_none.c replaces
# nccl.c.
cuda_comm_sources = \
	train/cuda/comm/reduce.c \
	train/cuda/comm/reduce.h \
	train/cuda/comm/staged.c
nccl_sources = \
	train/cuda/comm/nccl.c \
	train/cuda/comm/nccl_library.h
if NCCL
real_nccl_sources = $(nccl_sources) train/cuda/comm/nccl_library.c
else
real_nccl_sources = train/cuda/comm/nccl_none.c
endif
EXTRA_DIST += $(nccl_sources) train/cuda/comm/nccl_library.c train/cuda/comm/nccl_none.c
