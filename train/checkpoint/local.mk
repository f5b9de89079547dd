# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/checkpoint/checkpoint.c \
	train/checkpoint/checkpoint.h \
	train/checkpoint/checkpoint_fields.c \
	train/checkpoint/checkpoint_find.c \
	train/checkpoint/checkpoint_private.h \
	train/checkpoint/checkpoint_state.c \
	train/checkpoint/pickle.c \
	train/checkpoint/pickle.h \
	train/checkpoint/pickle_private.h \
	train/checkpoint/pickle_tensor.c \
	train/checkpoint/run_value.h \
	train/checkpoint/safetensors.c \
	train/checkpoint/safetensors.h \
	train/checkpoint/safetensors_write.c \
	train/checkpoint/settings.c \
	train/checkpoint/settings.h \
	train/checkpoint/torch_file.c \
	train/checkpoint/torch_file.h \
	train/checkpoint/weights.c \
	train/checkpoint/weights.h \
	train/checkpoint/zip_members.c \
	train/checkpoint/zip_members.h
