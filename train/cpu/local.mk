# SPDX-License-Identifier: Apache-2.0
# The CPU backend.  Its kernels are compiled once for each instruction set, and products and sums of theirs may be
# fused: which instructions run is a matter of the machine, and so are the last bits.  Those of bf16 are the same on
# every machine: there FUSED, or the instruction set, fuses all of them.
libtrain_la_SOURCES += \
	train/cpu/ahead.c \
	train/cpu/conv.c \
	train/cpu/conv_backward.c \
	train/cpu/conv_pairs.c \
	train/cpu/cpu.c \
	train/cpu/cpu_plan.h \
	train/cpu/kernels.h \
	train/cpu/kernels_best.c \
	train/cpu/kernels_tiles.h \
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
noinst_LTLIBRARIES += libkernels_fused.la libproducts_plain.la
libkernels_fused_la_SOURCES = train/cpu/kernels.c
libkernels_fused_la_CPPFLAGS = $(train_cppflags) -DKERNELS_TABLE=kernels_fused '-DKERNELS_NAME="plain C"' -DFUSED \
	-DLANES=4 -DTILE=2 -DOUTS=1 -DWEIGHT_OUTS=1 -DWEIGHT_INPUTS=2 -DWEIGHT_MORE=2
libkernels_fused_la_CFLAGS = $(kernels_cflags)
libproducts_plain_la_SOURCES = train/cpu/kernels_bf16.c
libproducts_plain_la_CPPFLAGS = $(train_cppflags) -DPRODUCTS_TABLE=products_plain -DFUSED \
	-DLANES=4 -DTILE=2 -DOUTS=1 -DWEIGHT_OUTS=1 -DWEIGHT_INPUTS=2
libproducts_plain_la_CFLAGS = $(kernels_cflags)
cpu_libs = libkernels_plain.la libkernels_fused.la libproducts_plain.la
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
noinst_LTLIBRARIES += libproducts_avx2.la
libproducts_avx2_la_SOURCES = train/cpu/kernels_bf16.c
libproducts_avx2_la_CPPFLAGS = $(train_cppflags) -DPRODUCTS_TABLE=products_avx2 \
	-DLANES=8 -DTILE=2 -DOUTS=1 -DWEIGHT_OUTS=1 -DWEIGHT_INPUTS=2
libproducts_avx2_la_CFLAGS = $(kernels_cflags) -mavx2 -mfma
cpu_libs += libkernels_avx2.la libkernels_avx512.la libproducts_avx2.la
endif
if HAVE_AVX512_BF16
libtrain_la_CPPFLAGS += -DKERNELS_AVX512_BF16
noinst_LTLIBRARIES += libproducts_avx512.la
libproducts_avx512_la_SOURCES = train/cpu/kernels_bf16.c
libproducts_avx512_la_CPPFLAGS = $(train_cppflags) -DPRODUCTS_TABLE=products_avx512 \
	-DLANES=16 -DTILE=14 -DOUTS=2 -DWEIGHT_OUTS=3 -DWEIGHT_INPUTS=8
libproducts_avx512_la_CFLAGS = $(kernels_cflags) -mavx512f -mavx512dq -mavx512vl -mavx512bf16 -mfma \
	-mprefer-vector-width=512
cpu_libs += libproducts_avx512.la
endif
