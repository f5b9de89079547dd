# build.mk - the interpreter of PTX and its own tests (GNU make)
#
#     make -f tests/ptx/build.mk check-interpreter [CXX=g++] [OUT=folder] [PTX_FLAGS=-fsanitize=address,undefined]
#
# Nothing outside this folder is needed.  A makefile that links the interpreter includes this one, for example
# tests/cuda/emulated.mk.
#
# SPDX-License-Identifier: Apache-2.0
PTX := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
OUT ?= ptx
CXX ?= g++
# -fwrapv: PTX integers wrap.  -ffp-contract=off: each operation rounds as the PTX says.
ptx_compile = $(CXX) -std=c++17 -g -O2 -fwrapv -ffp-contract=off -MMD -MT $@ -Wall -Wextra -Wshadow -Werror \
	-iquote $(PTX) $(PTX_FLAGS)
ptx = $(patsubst %,$(OUT)/ptx/%.o,arithmetic block decode lanes matrix memory module parser shared warp)

.PHONY: check-interpreter
check-interpreter: $(OUT)/ptx/rules
	$<

$(OUT)/ptx/%.o: $(PTX)/%.cc
	mkdir -p $(@D)
	$(ptx_compile) -c $< -o $@
$(OUT)/ptx/rules: $(patsubst %,$(OUT)/ptx/%.o,rules rule_forms rule_values) $(ptx)
	$(CXX) $(PTX_FLAGS) $^ -o $@

-include $(wildcard $(OUT)/ptx/*.d)
