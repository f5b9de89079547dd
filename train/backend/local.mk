# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/backend/backend.c \
	train/backend/backend.h \
	train/backend/batch.h \
	train/backend/crop.c \
	train/backend/crop.h \
	train/backend/host.c \
	train/backend/host.h \
	train/backend/host_memory.c \
	train/backend/host_memory.h \
	train/backend/host_step.c \
	train/backend/input.h \
	train/backend/live_ranges.c \
	train/backend/live_ranges.h \
	train/backend/ranges.h \
	train/backend/reduce.h \
	train/backend/registry.c \
	train/backend/shared_library.c \
	train/backend/shared_library.h \
	train/backend/step_parts.c \
	train/backend/step_parts.h

# Ranges for Nsight; without NVTX's header ranges_none.c.
if NVTX
libtrain_la_SOURCES += train/backend/ranges_nvtx.c
else
libtrain_la_SOURCES += train/backend/ranges_none.c
endif
EXTRA_DIST += train/backend/ranges_none.c train/backend/ranges_nvtx.c
