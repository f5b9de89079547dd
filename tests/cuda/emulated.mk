# emulated.mk - tests of kernels and plans on the emulator, for one compiler and one kind of build (GNU make)
#
#     make -f tests/cuda/emulated.mk SOURCE=. CXX=g++ CC=gcc OUT=folder BUILD=folder-of-config.h [HALVES=-mf16c] \
#         [PROGRAMS=...] KIND=plain|volta|turing|asan|tsan|counted|counted_volta
#
# check_emulated.py calls it.  ../emulator/build.mk describes the kinds and builds the emulator.
#
# SPDX-License-Identifier: Apache-2.0
TESTS = $(SOURCE)/tests/cuda/kernels
PLANS = $(SOURCE)/tests/cuda/plan
KERNELS = $(SOURCE)/train/cuda/kernels
INCLUDES = -iquote $(SOURCE)/train -iquote $(SOURCE)/lib
kernel_programs = conv_choices conv_kernels finalize_kernels fused_kernels head_kernels input_kernels norm_kernels \
	one_pass_kernels pool_kernels step_kernels sum_kernels
PROGRAMS = $(kernel_programs) layout_steps layout_lives
include $(SOURCE)/tests/emulator/build.mk
include $(SOURCE)/tests/ptx/build.mk
VALUES = $(if $(filter volta turing asan tsan counted%,$(KIND)),fp16,fp16 bf16 tf32 float)
BYTES_fp16 = 2
BYTES_bf16 = 2
BYTES_tf32 = 4
BYTES_float = 4

cu = $(notdir $(basename $(wildcard $(KERNELS)/*.cu)))
# the launches of one kernel; the other files of plan/ are about plans
launch = $(patsubst %,cuda/kernels/%,counts launch runtime) $(patsubst %,cuda/plan/%,conv cost cost_areas cost_norm \
	cost_seconds cost_step gpu one_pass product product_load)
host = $(launch:%=$(OUT)/plan/%.o)
kernels = $(foreach v,$(VALUES),$(patsubst %,$(OUT)/%.$(v).o,$(cu) table)) $(host)
tests_of_kernels = $(kernel_programs:%=$(OUT)/%) $(OUT)/bank_conflicts
math = $(OUT)/loss.o $(OUT)/optimizer.o $(OUT)/backend.o $(OUT)/crop.o
# a plan without its backend and its device, and the backend ref
layout = $(filter-out $(launch) cuda/plan/device cuda/plan/size,\
	$(patsubst $(SOURCE)/train/%.c,%,$(wildcard $(SOURCE)/train/cuda/plan/*.c)))
ref = $(filter-out backend/ranges_nvtx,$(foreach f,graph backend ref,$(patsubst $(SOURCE)/train/%.c,%,\
	$(wildcard $(SOURCE)/train/$(f)/*.c))))
plan = $(patsubst %,$(OUT)/plan/%.o,$(layout) $(filter-out backend/backend backend/crop backend/registry,$(ref)) \
	base/clock base/cpu base/error base/memory base/number_format base/sha256 base/sha256_arm base/sha256_plain \
	base/sha256_x86)

$(OUT)/kernel_fixture.o $(tests_of_kernels:%=%.o): $(OUT)/%.o: $(TESTS)/%.cc | $(OUT)
	$(CC17) -O1 $(FLAGS) -c $< -o $@
$(OUT)/loss.o $(OUT)/optimizer.o: $(OUT)/%.o: $(SOURCE)/train/math/%.c | $(OUT)
	$(C) -I$(BUILD) -c $< -o $@
$(OUT)/backend.o $(OUT)/crop.o: $(OUT)/%.o: $(SOURCE)/train/backend/%.c | $(OUT)
	$(C) -I$(BUILD) -c $< -o $@

$(OUT)/plan/base/%.o: $(SOURCE)/lib/base/%.c
	mkdir -p $(@D)
	$(C) -I$(BUILD) -iquote $(SOURCE)/lib -c $< -o $@
$(OUT)/plan/%.o: $(SOURCE)/train/%.c
	mkdir -p $(@D)
	$(C) -I$(BUILD) -iquote $(SOURCE)/lib -c $< -o $@
$(patsubst %,$(OUT)/%.o,layout_steps layout_lives traffic_steps layout_fixture): $(OUT)/%.o: $(PLANS)/%.c | $(OUT)
	$(C) -iquote $(SOURCE)/lib -c $< -o $@

define of_value
$$(patsubst %,$$(OUT)/%.$(1).o,$$(cu)): $$(OUT)/%.$(1).o: $$(KERNELS)/%.cu | $$(OUT)
	$$(CC17) -x c++ $$(if $$(filter asan tsan,$$(KIND)),-O1,-O2) $$(FLAGS) $$(KERNEL_FLAGS_$$(KIND)) \
		-DCUDA_VALUE=$(1) -c $$< -o $$@
$$(OUT)/table.$(1).o: $$(KERNELS)/table.c | $$(OUT)
	$$(C) -DCUDA_VALUE=$(1) -DCUDA_VALUE_BYTES=$$(BYTES_$(1)) -c $$< -o $$@
endef
$(foreach v,$(VALUES),$(eval $(call of_value,$(v))))

$(tests_of_kernels): %: %.o $(OUT)/kernel_fixture.o $(kernels) $(math) $(emulator)
	$(CXX) $(FLAGS) $^ -o $@ -lm
$(OUT)/layout_steps: $(OUT)/layout_steps.o $(OUT)/layout_fixture.o $(plan) $(kernels) $(math) $(emulator)
	$(CXX) $(FLAGS) $^ -o $@ -lm
$(OUT)/layout_lives $(OUT)/traffic_steps: %: %.o $(OUT)/layout_fixture.o $(plan) $(kernels) $(math) $(emulator)
	$(CXX) $(FLAGS) $^ -o $@ -lm

# The same programs with kernels from PTX (ptx/check_ptx.py).
executor = $(OUT)/ptx_executor.o $(ptx)
$(OUT)/ptx_executor.o: $(SOURCE)/tests/cuda/ptx/ptx_executor.cc | $(OUT)
	$(CC17) -iquote $(PTX) -O2 $(FLAGS) -c $< -o $@
$(kernel_programs:%=$(OUT)/%-ptx): %-ptx: %.o $(OUT)/kernel_fixture.o $(kernels) $(math) $(emulator) $(executor)
	$(CXX) $(FLAGS) $^ -o $@ -lm
$(OUT)/layout_steps-ptx: $(OUT)/layout_steps.o $(OUT)/layout_fixture.o $(plan) $(kernels) $(math) $(emulator) \
		$(executor)
	$(CXX) $(FLAGS) $^ -o $@ -lm

-include $(wildcard $(OUT)/plan/*/*.d $(OUT)/plan/*/*/*.d)
