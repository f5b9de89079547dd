# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/graph/densenet.c \
	train/graph/graph.c \
	train/graph/graph.h \
	train/graph/models.c \
	train/graph/models.h \
	train/graph/resnet.c
