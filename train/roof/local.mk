# SPDX-License-Identifier: Apache-2.0
# What the launches of a GPU move and multiply, and how long that would take: of the backend for NVIDIA GPUs.
roof_sources = \
	train/roof/areas.c \
	train/roof/seconds.c \
	train/roof/seconds.h \
	train/roof/work.c \
	train/roof/work.h \
	train/roof/work_norm.c \
	train/roof/work_step.c
