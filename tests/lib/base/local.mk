# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/base/test_ascii.c \
	tests/lib/base/test_crc32c.c \
	tests/lib/base/test_digest.c \
	tests/lib/base/test_error.c \
	tests/lib/base/test_keyed_hash.c \
	tests/lib/base/test_progress.c \
	tests/lib/base/test_queue.c \
	tests/lib/base/test_threads.c
