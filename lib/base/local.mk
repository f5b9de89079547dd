# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/base/ascii.c \
	lib/base/ascii.h \
	lib/base/base64.c \
	lib/base/base64.h \
	lib/base/clock.c \
	lib/base/clock.h \
	lib/base/cpu.c \
	lib/base/cpu.h \
	lib/base/crc32c.c \
	lib/base/error.c \
	lib/base/error.h \
	lib/base/json.c \
	lib/base/json.h \
	lib/base/json_sum.c \
	lib/base/json_sum.h \
	lib/base/keyed_hash.c \
	lib/base/keyed_hash.h \
	lib/base/member.h \
	lib/base/memory.c \
	lib/base/memory.h \
	lib/base/number_format.c \
	lib/base/number_format.h \
	lib/base/part.h \
	lib/base/progress.c \
	lib/base/progress.h \
	lib/base/queue.c \
	lib/base/queue.h \
	lib/base/sha256.c \
	lib/base/sha256.h \
	lib/base/sha256_arm.c \
	lib/base/sha256_plain.c \
	lib/base/sha256_private.h \
	lib/base/sha256_x86.c \
	lib/base/threads.c \
	lib/base/threads.h
