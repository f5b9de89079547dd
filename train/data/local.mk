# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/data/fold.c \
	train/data/fold.h \
	train/data/limit.c \
	train/data/limit.h \
	train/data/loader.c \
	train/data/loader.h \
	train/data/order.c \
	train/data/order.h \
	train/data/pace.c \
	train/data/pace.h \
	train/data/reader.c \
	train/data/reader.h \
	train/data/sample_texts.c \
	train/data/sample_texts.h \
	train/data/staging.c \
	train/data/staging.h \
	train/data/staging_private.h \
	train/data/staging_shard.c
