# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/store/journal.c \
	lib/store/journal.h \
	lib/store/journal_line.c \
	lib/store/store.c \
	lib/store/store.h \
	lib/store/store_finish.c \
	lib/store/store_folder.c \
	lib/store/store_private.h \
	lib/store/store_resume.c \
	lib/store/store_shard.c
