# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/io/content.c \
	lib/io/content.h \
	lib/io/csv.c \
	lib/io/csv.h \
	lib/io/digest_file.c \
	lib/io/digest_file.h \
	lib/io/disk_reads.c \
	lib/io/disk_reads.h \
	lib/io/file.c \
	lib/io/file.h \
	lib/io/file_calls.c \
	lib/io/file_folder.c \
	lib/io/file_own.c \
	lib/io/file_private.c \
	lib/io/file_read.c \
	lib/io/file_same.c \
	lib/io/gunzip.c \
	lib/io/gunzip.h \
	lib/io/line_reader.c \
	lib/io/line_reader.h \
	lib/io/lock.c \
	lib/io/lock.h \
	lib/io/lock_private.h
if !HAVE_LIBCSV
libchexcore_la_SOURCES += \
	lib/io/csv_included.c \
	lib/io/csv_included.h
endif
if HAVE_LIBARCHIVE
libchexcore_la_SOURCES += \
	lib/io/unxz.c \
	lib/io/unxz.h
endif
