# SPDX-License-Identifier: Apache-2.0
# The CPU backend.  Its kernels are compiled once for each instruction set, and products and sums of theirs may be
# fused: which instructions run is a matter of the machine, and so are the last bits.
libtrain_la_SOURCES += \
	train/cpu/conv.c \
	train/cpu/conv_backward.c \
	train/cpu/conv_pairs.c \
	train/cpu/cpu.c \
	train/cpu/cpu_plan.h \
	train/cpu/kernels.h \
	train/cpu/kernels_best.c \
	train/cpu/kernels_vector.h \
	train/cpu/norm.c \
	train/cpu/patches.c \
	train/cpu/plan_build.c \
	train/cpu/plan_memory.c \
	train/cpu/pool.c \
	train/cpu/strip.c \
	train/cpu/team.c \
	train/cpu/team.h \
	train/cpu/view.c
kernels_cflags = $(AM_CFLAGS) -O3 -fno-math-errno -ffp-contract=fast
noinst_LTLIBRARIES += libkernels_plain.la
libkernels_plain_la_SOURCES = train/cpu/kernels.c
libkernels_plain_la_CPPFLAGS = $(train_cppflags) -DKERNELS_TABLE=kernels_plain '-DKERNELS_NAME="plain C"' \
	-DLANES=4 -DTILE=2 -DOUTS=1 -DWEIGHT_OUTS=1 -DWEIGHT_INPUTS=2 -DWEIGHT_MORE=2
libkernels_plain_la_CFLAGS = $(kernels_cflags)
cpu_libs = libkernels_plain.la
if HOST_X86_64
libtrain_la_CPPFLAGS += -DKERNELS_X86
noinst_LTLIBRARIES += libkernels_avx2.la libkernels_avx512.la
libkernels_avx2_la_SOURCES = train/cpu/kernels.c
libkernels_avx2_la_CPPFLAGS = $(train_cppflags) -DKERNELS_X86 -DKERNELS_TABLE=kernels_avx2 '-DKERNELS_NAME="AVX2"' \
	-DLANES=8 -DTILE=6 -DOUTS=1 -DWEIGHT_OUTS=1 -DWEIGHT_INPUTS=6 -DWEIGHT_MORE=4
libkernels_avx2_la_CFLAGS = $(kernels_cflags) -mavx2 -mfma
libkernels_avx512_la_SOURCES = train/cpu/kernels.c
libkernels_avx512_la_CPPFLAGS = $(train_cppflags) -DKERNELS_X86 -DKERNELS_TABLE=kernels_avx512 \
	'-DKERNELS_NAME="AVX-512"' -DLANES=16 -DTILE=14 -DOUTS=2 -DWEIGHT_OUTS=3 -DWEIGHT_INPUTS=12 -DWEIGHT_MORE=8
libkernels_avx512_la_CFLAGS = $(kernels_cflags) -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
cpu_libs += libkernels_avx2.la libkernels_avx512.la
endif
