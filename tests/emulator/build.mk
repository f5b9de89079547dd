# build.mk - the emulator, its tests and train/cuda/kernels/, for one compiler and one kind of build (GNU make)
#
#     make -f build.mk SOURCE=. CXX=g++ CC=gcc KIND=plain|ucontext|volta|asan|tsan|counted OUT=folder \
#         BUILD=folder-of-config.h [HALVES=-mf16c] [PROGRAMS=...]
#
# check_emulator.py calls it.  Kernels and host code are instrumented by a sanitizer; by the thread sanitizer the
# emulator is not (sanitizer.h).  volta: kernels as a V100 computes them, which has no bf16; with sanitizers fp16 alone,
# of which the others are copies by templates.  counted: kernels are compiled as for the thread sanitizer, whose place
# traffic.cc takes; g++ alone.
#
# SPDX-License-Identifier: Apache-2.0
HERE = $(SOURCE)/tests/emulator
TESTS = $(SOURCE)/tests/cuda/kernels
PLANS = $(SOURCE)/tests/cuda/plan
KERNELS = $(SOURCE)/train/cuda/kernels
FLAGS_plain =
FLAGS_ucontext = -DEMULATOR_UCONTEXT
FLAGS_volta = -DDEVICE_ARCH=700 -DONLY_FP16
FLAGS_asan = -fsanitize=address,undefined -fno-sanitize-recover=all -DONLY_FP16
FLAGS_tsan = -fsanitize=thread -DONLY_FP16
FLAGS_counted = -DEMULATOR_COUNTED -DONLY_FP16
KERNEL_FLAGS_counted = -fsanitize=thread
EMULATOR_FLAGS_ucontext = $(FLAGS_ucontext)
EMULATOR_FLAGS_asan = $(FLAGS_asan)
EMULATOR_FLAGS_tsan = -DEMULATOR_TSAN
EMULATOR_FLAGS_counted = -DEMULATOR_COUNTED
FLAGS = $(FLAGS_$(KIND))
WARNINGS = -Wall -Wextra -Wshadow -Wno-unknown-pragmas -Wno-pass-failed -Werror
COMMON = -g -MMD $(HALVES) $(WARNINGS) -iquote $(HERE) -iquote $(SOURCE)/train -iquote $(SOURCE)/lib -I$(HERE)
C = $(CC) -std=c11 -D_DEFAULT_SOURCE -O1 $(COMMON) $(FLAGS)
CC17 = $(CXX) -std=c++17 $(COMMON)
VALUES = $(if $(filter volta asan tsan counted,$(KIND)),fp16,fp16 bf16 float)
BYTES_fp16 = 2
BYTES_bf16 = 2
BYTES_float = 4

kernel_programs = both_kernels conv_kernels fused_kernels head_kernels input_kernels norm_kernels pool_kernels \
	settle_kernels step_kernels sum_kernels
PROGRAMS = halves api matrices rules $(kernel_programs) layout_steps layout_lives
emulator = $(patsubst %,$(OUT)/%.o,async_copy block device fiber graph matrix memory stream warp \
	$(if $(filter counted,$(KIND)),traffic))
cu = $(notdir $(basename $(wildcard $(KERNELS)/*.cu)))
# the launches of one kernel; the other files of plan/ are about plans
launch = cuda/kernels/launch $(patsubst %,cuda/plan/%,both conv gpu product)
host = $(launch:%=$(OUT)/plan/%.o)
kernels = $(foreach v,$(VALUES),$(patsubst %,$(OUT)/%.$(v).o,$(cu) table)) $(host)
tests_in_c = $(OUT)/rules $(OUT)/api $(OUT)/matrices
tests_of_kernels = $(kernel_programs:%=$(OUT)/%) $(OUT)/bank_conflicts
math = $(OUT)/loss.o $(OUT)/optimizer.o $(OUT)/backend.o
# a plan without its backend, and beside it the backend ref
layout = $(filter-out $(launch),$(patsubst $(SOURCE)/train/%.c,%,$(wildcard $(SOURCE)/train/cuda/plan/*.c)))
ref = $(filter-out backend/ranges_nvtx,$(foreach f,graph backend ref,$(patsubst $(SOURCE)/train/%.c,%,\
	$(wildcard $(SOURCE)/train/$(f)/*.c))))
plan = $(patsubst %,$(OUT)/plan/%.o,$(layout) $(filter-out backend/backend backend/registry,$(ref)) \
	base/clock base/error base/memory base/number_format base/sha256)

all: $(PROGRAMS:%=$(OUT)/%)

$(emulator): $(OUT)/%.o: $(HERE)/%.cc | $(OUT)
	$(CC17) -O3 $(EMULATOR_FLAGS_$(KIND)) -c $< -o $@
$(OUT)/traffic_rules.o: $(OUT)/%.o: $(HERE)/%.cc | $(OUT)
	$(CC17) -O1 $(FLAGS) $(KERNEL_FLAGS_$(KIND)) -c $< -o $@
$(OUT)/halves.o: $(OUT)/%.o: $(HERE)/%.cc | $(OUT)
	$(CC17) -O1 $(FLAGS) -c $< -o $@
$(OUT)/kernel_fixture.o $(tests_of_kernels:%=%.o): $(OUT)/%.o: $(TESTS)/%.cc | $(OUT)
	$(CC17) -O1 $(FLAGS) -c $< -o $@
$(OUT)/rule_kernels.o: $(OUT)/%.o: $(HERE)/%.cc | $(OUT)
	$(CC17) -O1 $(FLAGS) -c $< -o $@
$(tests_in_c:%=%.o): $(OUT)/%.o: $(HERE)/%.c | $(OUT)
	$(C) -c $< -o $@
$(OUT)/loss.o $(OUT)/optimizer.o: $(OUT)/%.o: $(SOURCE)/train/math/%.c | $(OUT)
	$(C) -I$(BUILD) -c $< -o $@
$(OUT)/backend.o: $(SOURCE)/train/backend/backend.c | $(OUT)
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

$(tests_in_c): %: %.o $(OUT)/rule_kernels.o $(emulator)
	$(CXX) $(FLAGS) $^ -o $@
$(OUT)/traffic_rules: %: %.o $(emulator)
	$(CXX) $(FLAGS) $^ -o $@
$(tests_of_kernels): %: %.o $(OUT)/kernel_fixture.o $(kernels) $(math) $(emulator)
	$(CXX) $(FLAGS) $^ -o $@ -lm
$(OUT)/layout_steps: $(OUT)/layout_steps.o $(OUT)/layout_fixture.o $(plan) $(kernels) $(math) $(emulator)
	$(CXX) $(FLAGS) $^ -o $@ -lcrypto -lm
$(OUT)/layout_lives $(OUT)/traffic_steps: %: %.o $(OUT)/layout_fixture.o $(plan) $(kernels) $(math) $(emulator)
	$(CXX) $(FLAGS) $^ -o $@ -lcrypto -lm
$(OUT)/halves: $(OUT)/halves.o
	$(CXX) $(FLAGS) $^ -o $@
$(OUT):
	mkdir -p $@

-include $(wildcard $(OUT)/*.d $(OUT)/plan/*/*.d $(OUT)/plan/*/*/*.d)
.PHONY: all
