# SPDX-License-Identifier: Apache-2.0
# Unit tests of lib/, arranged like lib/.  test_calls.c lets calls of several folders fail.
tests_unit_SOURCES += \
	tests/lib/test_calls.c

include tests/lib/base/local.mk
include tests/lib/ranks/local.mk
include tests/lib/io/local.mk
include tests/lib/kernels/local.mk
include tests/lib/image/local.mk
include tests/lib/dataset/local.mk
include tests/lib/labels/local.mk
include tests/lib/input/local.mk
include tests/lib/plan/local.mk
include tests/lib/store/local.mk
include tests/lib/verify/local.mk
include tests/lib/convert/local.mk
