# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/verify/verify.c \
	lib/verify/verify.h \
	lib/verify/verify_file.c \
	lib/verify/verify_index.c \
	lib/verify/verify_private.h \
	lib/verify/verify_report.c \
	lib/verify/verify_shard.c
