# SPDX-License-Identifier: Apache-2.0
# The backend for NVIDIA GPUs.  With CUDA, nvcc compiles the kernels once for each type of value.  Without it, the
# backend has no devices, but plans of imagined ones (`chex-train -n`).  tests/emulator/local.mk compiles the same files
# for the emulator.
include train/cuda/kernels/local.mk
include train/cuda/plan/local.mk
include train/cuda/cudnn/local.mk
include train/cuda/run/local.mk
include train/cuda/comm/local.mk

cuda_planning_sources = $(cuda_kernel_sources) $(cuda_plan_sources) \
	train/cuda/backend.h
cuda_sources = $(cuda_planning_sources) $(cuda_runtime_sources) $(cuda_run_sources) $(cuda_comm_sources) \
	train/cuda/backend.c
EXTRA_DIST += $(cuda_sources) $(cuda_kernels) $(cuda_table) train/cuda/backend_none.c

cuda_cppflags = $(train_cppflags) $(JANSSON_CFLAGS)
cuda_fp16 = -DCUDA_VALUE=fp16 -DCUDA_VALUE_BYTES=2
cuda_bf16 = -DCUDA_VALUE=bf16 -DCUDA_VALUE_BYTES=2
cuda_tf32 = -DCUDA_VALUE=tf32 -DCUDA_VALUE_BYTES=4
cuda_float = -DCUDA_VALUE=float -DCUDA_VALUE_BYTES=4

if CUDA
EXTRA_LTLIBRARIES += libcudahost.la libcuda_fp16.la libcuda_bf16.la libcuda_tf32.la
CLEANFILES += libcudahost.la libcuda_fp16.la libcuda_bf16.la libcuda_tf32.la
libcudahost_la_SOURCES = $(cuda_sources) $(real_cudnn_sources) $(real_nccl_sources)
libcudahost_la_CPPFLAGS = $(cuda_cppflags) $(CUDNN_CPPFLAGS) $(NCCL_CPPFLAGS) $(CUDA_CPPFLAGS)
libcudahost_la_LIBADD = libcuda_fp16.la libcuda_bf16.la libcuda_tf32.la $(CUDA_LIBS)
libcuda_fp16_la_SOURCES = $(cuda_table)
libcuda_fp16_la_CPPFLAGS = $(cuda_cppflags) $(CUDA_CPPFLAGS) $(cuda_fp16)
libcuda_fp16_la_LIBADD = $(cuda_kernels:.cu=.fp16.lo)
libcuda_bf16_la_SOURCES = $(cuda_table)
libcuda_bf16_la_CPPFLAGS = $(cuda_cppflags) $(CUDA_CPPFLAGS) $(cuda_bf16)
libcuda_bf16_la_LIBADD = $(cuda_kernels:.cu=.bf16.lo)
libcuda_tf32_la_SOURCES = $(cuda_table)
libcuda_tf32_la_CPPFLAGS = $(cuda_cppflags) $(CUDA_CPPFLAGS) $(cuda_tf32)
libcuda_tf32_la_LIBADD = $(cuda_kernels:.cu=.tf32.lo)
libtrain_la_LIBADD += libcudahost.la

nvcc_compile = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile $(NVCC) $(NVCCFLAGS) \
	-I$(srcdir)/train -c
%.fp16.lo: %.cu $(filter %.h,$(cuda_kernel_sources))
	$(nvcc_compile) $(cuda_fp16) $(CUDA_CODE_fp16) -o $@ $<
%.bf16.lo: %.cu $(filter %.h,$(cuda_kernel_sources))
	$(nvcc_compile) $(cuda_bf16) $(CUDA_CODE_bf16) -o $@ $<
%.tf32.lo: %.cu $(filter %.h,$(cuda_kernel_sources))
	$(nvcc_compile) $(cuda_tf32) $(CUDA_CODE_bf16) -o $@ $<
else
noinst_LTLIBRARIES += libcudaplan.la libcudaplan_fp16.la libcudaplan_bf16.la libcudaplan_tf32.la
libcudaplan_la_SOURCES = $(cuda_planning_sources) train/cuda/backend_none.c
libcudaplan_la_CPPFLAGS = $(cuda_cppflags)
libcudaplan_la_LIBADD = libcudaplan_fp16.la libcudaplan_bf16.la libcudaplan_tf32.la
libcudaplan_fp16_la_SOURCES = $(cuda_table)
libcudaplan_fp16_la_CPPFLAGS = $(cuda_cppflags) $(cuda_fp16) -DCUDA_NO_KERNELS
libcudaplan_bf16_la_SOURCES = $(cuda_table)
libcudaplan_bf16_la_CPPFLAGS = $(cuda_cppflags) $(cuda_bf16) -DCUDA_NO_KERNELS
libcudaplan_tf32_la_SOURCES = $(cuda_table)
libcudaplan_tf32_la_CPPFLAGS = $(cuda_cppflags) $(cuda_tf32) -DCUDA_NO_KERNELS
libtrain_la_LIBADD += libcudaplan.la
endif
