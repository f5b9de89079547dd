# build.mk - the emulator and its own tests, for one compiler and one kind of build (GNU make)
#
#     make -f tests/emulator/build.mk check                    build and run the tests of the emulator
#     make -f tests/emulator/build.mk [CXX=g++ CC=gcc] [OUT=folder] [HALVES=-mf16c] [PROGRAMS=...] \
#         [KIND=plain|ucontext|volta|turing|asan|tsan|counted|counted_volta]
#
# Nothing outside this folder is needed.  A makefile that adds kernels includes this one (tests/cuda/emulated.mk), and
# sets INCLUDES for their headers.  A sanitizer instruments kernels and host code; the thread sanitizer does not
# instrument the emulator (sanitizer.h).  KIND=volta: kernels as for a V100 (sm_70); KIND=turing: as for sm_75.  Both
# have no bf16.  They and the sanitizers compile fp16 only; the other types are instances of the same templates.
# KIND=counted, and counted_volta for a V100, g++ only: kernels are compiled as for the thread sanitizer, and traffic.cc
# takes the place of its library.
#
# SPDX-License-Identifier: Apache-2.0
EMULATOR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
KIND = plain
OUT = emulator-$(KIND)
CC = gcc
CXX = g++
emulator_tests = halves api matrices rules
PROGRAMS ?= $(emulator_tests)
FLAGS_plain =
FLAGS_ucontext = -DEMULATOR_UCONTEXT
FLAGS_volta = -DDEVICE_ARCH=700 -DONLY_FP16
FLAGS_turing = -DDEVICE_ARCH=750 -DONLY_FP16
FLAGS_asan = -fsanitize=address,undefined -fno-sanitize-recover=all -DONLY_FP16
FLAGS_tsan = -fsanitize=thread -DONLY_FP16
FLAGS_counted = -DEMULATOR_COUNTED -DONLY_FP16
FLAGS_counted_volta = $(FLAGS_counted) -DDEVICE_ARCH=700
KERNEL_FLAGS_counted = -fsanitize=thread
KERNEL_FLAGS_counted_volta = $(KERNEL_FLAGS_counted)
EMULATOR_FLAGS_ucontext = $(FLAGS_ucontext)
EMULATOR_FLAGS_asan = $(FLAGS_asan)
EMULATOR_FLAGS_tsan = -DEMULATOR_TSAN
EMULATOR_FLAGS_counted = -DEMULATOR_COUNTED
EMULATOR_FLAGS_counted_volta = $(EMULATOR_FLAGS_counted)
FLAGS = $(FLAGS_$(KIND))
WARNINGS = -Wall -Wextra -Wshadow -Wno-unknown-pragmas -Wno-pass-failed -Werror
COMMON = -g -MMD -MT $@ $(HALVES) $(WARNINGS) -iquote $(EMULATOR) $(INCLUDES) -I$(EMULATOR)
C = $(CC) -std=c11 -D_DEFAULT_SOURCE -O1 $(COMMON) $(FLAGS)
CC17 = $(CXX) -std=c++17 $(COMMON)

emulator = $(patsubst %,$(OUT)/%.o,async_copy block device fiber graph matrix memory stream warp \
	$(if $(filter counted%,$(KIND)),traffic))
tests_in_c = $(OUT)/rules $(OUT)/api $(OUT)/matrices

all: $(PROGRAMS:%=$(OUT)/%)

check: all
	for program in $(PROGRAMS); do $(OUT)/$$program || exit 1; done

$(emulator): $(OUT)/%.o: $(EMULATOR)/%.cc | $(OUT)
	$(CC17) -O3 $(EMULATOR_FLAGS_$(KIND)) -c $< -o $@
$(OUT)/traffic_rules.o: $(OUT)/%.o: $(EMULATOR)/%.cc | $(OUT)
	$(CC17) -O1 $(FLAGS) $(KERNEL_FLAGS_$(KIND)) -c $< -o $@
$(OUT)/halves.o $(OUT)/rule_kernels.o: $(OUT)/%.o: $(EMULATOR)/%.cc | $(OUT)
	$(CC17) -O1 $(FLAGS) -c $< -o $@
$(tests_in_c:%=%.o): $(OUT)/%.o: $(EMULATOR)/%.c | $(OUT)
	$(C) -c $< -o $@

$(tests_in_c): %: %.o $(OUT)/rule_kernels.o $(emulator)
	$(CXX) $(FLAGS) $^ -o $@
$(OUT)/traffic_rules: %: %.o $(emulator)
	$(CXX) $(FLAGS) $^ -o $@
$(OUT)/halves: $(OUT)/halves.o
	$(CXX) $(FLAGS) $^ -o $@
$(OUT):
	mkdir -p $@

-include $(wildcard $(OUT)/*.d)
.PHONY: all check
