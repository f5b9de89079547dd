# build.mk - the emulator and its tests, for one compiler and one kind of build; check_emulator.py calls it (GNU make)
#
#     make -f build.mk SOURCE=. CXX=g++ CC=gcc KIND=plain|ucontext|asan|tsan OUT=folder PROGRAMS
#
# Kernels and host code are instrumented by a sanitizer; the emulator is not by the thread sanitizer (sanitizer.h).
#
# SPDX-License-Identifier: Apache-2.0
HERE = $(SOURCE)/tests/emulator
FLAGS_plain =
FLAGS_ucontext = -DEMULATOR_UCONTEXT
FLAGS_asan = -fsanitize=address,undefined -fno-sanitize-recover=all
FLAGS_tsan = -fsanitize=thread
EMULATOR_plain =
EMULATOR_ucontext = $(FLAGS_ucontext)
EMULATOR_asan = $(FLAGS_asan)
EMULATOR_tsan = -DEMULATOR_TSAN
WARNINGS = -Wall -Wextra -Wshadow -Werror
COMMON = -g -MMD $(WARNINGS) -iquote $(HERE) -I$(HERE)

emulator = async_copy block device fiber graph matrix memory stream warp
objects = $(emulator:%=$(OUT)/%.o)

all: $(OUT)/rules $(OUT)/api $(OUT)/matrices $(OUT)/halves

$(objects): $(OUT)/%.o: $(HERE)/%.cc | $(OUT)
	$(CXX) -std=c++17 -O2 $(COMMON) $(EMULATOR_$(KIND)) -c $< -o $@
$(OUT)/halves.o: $(HERE)/halves.cc | $(OUT)
	$(CXX) -std=c++17 -O2 $(COMMON) $(HALVES) $(FLAGS_$(KIND)) -c $< -o $@
$(OUT)/rule_kernels.o: $(HERE)/rule_kernels.cc | $(OUT)
	$(CXX) -std=c++17 -O1 $(COMMON) $(FLAGS_$(KIND)) -c $< -o $@
$(OUT)/rules.o $(OUT)/api.o $(OUT)/matrices.o: $(OUT)/%.o: $(HERE)/%.c | $(OUT)
	$(CC) -std=c11 -D_DEFAULT_SOURCE -O1 $(COMMON) $(FLAGS_$(KIND)) -c $< -o $@

$(OUT)/rules $(OUT)/api $(OUT)/matrices: $(OUT)/%: $(OUT)/%.o $(OUT)/rule_kernels.o $(objects)
	$(CXX) $(FLAGS_$(KIND)) $^ -o $@
$(OUT)/halves: $(OUT)/halves.o
	$(CXX) $(FLAGS_$(KIND)) $^ -o $@
$(OUT):
	mkdir -p $@

-include $(wildcard $(OUT)/*.d)
.PHONY: all
