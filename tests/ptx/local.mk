# SPDX-License-Identifier: Apache-2.0
# The interpreter of PTX.  build.mk builds it alone; ../cuda/emulated.mk links it with the tests of kernels.
EXTRA_DIST += \
	tests/ptx/README.md \
	tests/ptx/arithmetic.cc \
	tests/ptx/block.cc \
	tests/ptx/build.mk \
	tests/ptx/core.h \
	tests/ptx/decode.cc \
	tests/ptx/half.h \
	tests/ptx/lanes.cc \
	tests/ptx/matrix.cc \
	tests/ptx/memory.cc \
	tests/ptx/module.cc \
	tests/ptx/operations.h \
	tests/ptx/parser.cc \
	tests/ptx/ptx.h \
	tests/ptx/rule_forms.cc \
	tests/ptx/rule_values.cc \
	tests/ptx/rules.cc \
	tests/ptx/rules.h \
	tests/ptx/shared.cc \
	tests/ptx/text.h \
	tests/ptx/warp.cc
