# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/math/bf16.h \
	train/math/loss.c \
	train/math/loss.h \
	train/math/optimizer.c \
	train/math/optimizer.h \
	train/math/random.c \
	train/math/random.h \
	train/math/scale_model.c \
	train/math/scale_model.h \
	train/math/schedule.c \
	train/math/schedule.h
