# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/ref/ops.h \
	train/ref/ops_conv.c \
	train/ref/ops_norm.c \
	train/ref/ops_pool.c \
	train/ref/ref.c
