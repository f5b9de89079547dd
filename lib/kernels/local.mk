# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/kernels/convolve.c \
	lib/kernels/convolve.h \
	lib/kernels/convolve_neon.c \
	lib/kernels/convolve_plain.c \
	lib/kernels/convolve_private.h \
	lib/kernels/convolve_small.h \
	lib/kernels/convolve_wide.h \
	lib/kernels/convolve_x86.c \
	lib/kernels/inflate.c \
	lib/kernels/inflate.h \
	lib/kernels/inflate_loop.h \
	lib/kernels/inflate_private.h \
	lib/kernels/inflate_tables.c \
	lib/kernels/inflate_x86.c \
	lib/kernels/resample_axis.c \
	lib/kernels/resample_axis.h \
	lib/kernels/transpose_block.h \
	lib/kernels/unfilter.c \
	lib/kernels/unfilter.h \
	lib/kernels/unfilter_neon.c \
	lib/kernels/unfilter_plain.c \
	lib/kernels/unfilter_private.h \
	lib/kernels/unfilter_wave.h \
	lib/kernels/unfilter_x86.c
