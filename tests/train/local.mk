# SPDX-License-Identifier: Apache-2.0
# Unit tests of train/, arranged like train/, and programs for comparisons with other software.
include tests/train/graph/local.mk
include tests/train/maps/local.mk
include tests/train/math/local.mk
include tests/train/backend/local.mk
include tests/train/cpu/local.mk
include tests/train/checkpoint/local.mk
include tests/train/data/local.mk
include tests/train/eval/local.mk
include tests/train/log/local.mk
