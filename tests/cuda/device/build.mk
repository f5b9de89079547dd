# build.mk - what runs on a GPU alone, built by nvcc (GNU make)
#
#     make -f build.mk SOURCE=. OUT=folder BUILD=folder-of-config.h [NVCC=nvcc] [ARCHS='80 90 100'] [PROGRAMS=...]
#
# The tests of kernels are those of ../kernels, linked with the CUDA runtime instead of the emulator.  gpu-rates
# measures what the device gives to a copy and to products of matrices.  The runtime and libstdc++ are linked into the
# programs, which then need a driver and glibc.  nvcc compiles host code too, by g++: it knows where its headers are.
#
# SPDX-License-Identifier: Apache-2.0
NVCC = nvcc
ARCHS = 80 90 100
HERE = $(SOURCE)/tests/cuda/kernels
CUDA = $(SOURCE)/train/cuda
comma = ,
# Machine code for each, and text of the newest for what comes after it.
CODE = $(foreach a,$(ARCHS),-gencode arch=compute_$(a)$(comma)code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(ARCHS))$(comma)code=compute_$(lastword $(ARCHS))
WARNINGS = -Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-Werror
COMMON = -g -MD $(WARNINGS) -Xcompiler -iquote,$(HERE),-iquote,$(SOURCE)/tests/emulator \
	-Xcompiler -iquote,$(SOURCE)/train,-iquote,$(SOURCE)/lib -I$(BUILD)
CC17 = $(NVCC) -std=c++17 -O1 $(COMMON) -DON_DEVICE
C11 = $(NVCC) -x c -Xcompiler -std=c11 -O2 $(COMMON) -D_DEFAULT_SOURCE

VALUES = fp16 bf16 tf32
BYTES_fp16 = 2
BYTES_bf16 = 2
BYTES_tf32 = 4
all_tests = $(notdir $(basename $(wildcard $(HERE)/*_kernels.cc)))
PROGRAMS = $(all_tests) gpu-rates
tests_of_kernels = $(patsubst %,$(OUT)/%,$(filter %_kernels,$(PROGRAMS)))
cu = $(notdir $(basename $(wildcard $(CUDA)/kernels/*.cu)))
host = $(patsubst %,$(OUT)/kernels/%.o,counts launch runtime) $(patsubst %,$(OUT)/plan/%.o,conv cost cost_areas \
	cost_norm cost_seconds cost_step gpu one_pass product product_load)
kernels = $(foreach v,$(VALUES),$(patsubst %,$(OUT)/%.$(v).o,$(cu) table)) $(host)
math = $(OUT)/loss.o $(OUT)/optimizer.o $(OUT)/backend.o
LINK = $(NVCC) -cudart static -Xcompiler -static-libstdc++,-static-libgcc

all: $(PROGRAMS:%=$(OUT)/%)

$(OUT)/kernel_fixture.o $(tests_of_kernels:%=%.o): $(OUT)/%.o: $(HERE)/%.cc | $(OUT)
	$(CC17) -c $< -o $@
$(OUT)/loss.o $(OUT)/optimizer.o: $(OUT)/%.o: $(SOURCE)/train/math/%.c | $(OUT)
	$(C11) -c $< -o $@
$(OUT)/backend.o: $(SOURCE)/train/backend/backend.c | $(OUT)
	$(C11) -c $< -o $@
$(host): $(OUT)/%.o: $(CUDA)/%.c
	mkdir -p $(@D)
	$(C11) -c $< -o $@

define of_value
$$(patsubst %,$$(OUT)/%.$(1).o,$$(cu)): $$(OUT)/%.$(1).o: $$(CUDA)/kernels/%.cu | $$(OUT)
	$$(NVCC) -std=c++17 -O3 -lineinfo -Xfatbin -compress-all -MD -I$$(SOURCE)/train $$(CODE) \
		-DCUDA_VALUE=$(1) -c $$< -o $$@
$$(OUT)/table.$(1).o: $$(CUDA)/kernels/table.c | $$(OUT)
	$$(C11) -DCUDA_VALUE=$(1) -DCUDA_VALUE_BYTES=$$(BYTES_$(1)) -c $$< -o $$@
endef
$(foreach v,$(VALUES),$(eval $(call of_value,$(v))))

$(tests_of_kernels): %: %.o $(OUT)/kernel_fixture.o $(kernels) $(math)
	$(LINK) $^ -o $@ -lm
$(OUT)/gpu-rates: $(SOURCE)/bench/gpu_rates.cu | $(OUT)
	$(NVCC) -std=c++17 -O3 $(CODE) -cudart static -Xcompiler -static-libstdc++,-static-libgcc $< -o $@
$(OUT):
	mkdir -p $@

-include $(wildcard $(OUT)/*.d $(OUT)/*/*.d)
.PHONY: all
