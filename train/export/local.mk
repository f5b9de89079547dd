# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/export/onnx.c \
	train/export/onnx.h \
	train/export/onnx_builder.c \
	train/export/onnx_graph.c \
	train/export/onnx_private.h
