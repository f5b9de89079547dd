# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/convert/convert.c \
	lib/convert/convert.h \
	lib/convert/convert_image.c \
	lib/convert/convert_image.h \
	lib/convert/convert_index.c \
	lib/convert/convert_missing.c \
	lib/convert/convert_pass.c \
	lib/convert/convert_private.h \
	lib/convert/convert_publish.c \
	lib/convert/convert_ranks.c \
	lib/convert/convert_retry.c \
	lib/convert/convert_run.c \
	lib/convert/convert_run.h \
	lib/convert/convert_stored.c \
	lib/convert/cross_check.c \
	lib/convert/cross_check.h \
	lib/convert/profile.c \
	lib/convert/profile.h \
	lib/convert/rank_work.c \
	lib/convert/rank_work.h \
	lib/convert/withdraw.c \
	lib/convert/withdraw.h \
	lib/convert/withdraw_journal.c \
	lib/convert/withdraw_private.h \
	lib/convert/withdraw_scan.c \
	lib/convert/withdraw_shard.c
