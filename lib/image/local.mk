# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/image/decode.c \
	lib/image/decode.h \
	lib/image/image.c \
	lib/image/image.h \
	lib/image/jpeg_decode.c \
	lib/image/jpeg_decode.h \
	lib/image/png_chunk.c \
	lib/image/png_chunk.h \
	lib/image/png_decode.c \
	lib/image/png_decode.h \
	lib/image/png_fast.c \
	lib/image/png_fast.h \
	lib/image/resample.c \
	lib/image/resample.h
