# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/input/archive.h \
	lib/input/entry_decode.c \
	lib/input/entry_decode.h \
	lib/input/image_name.c \
	lib/input/image_name.h \
	lib/input/image_reader.c \
	lib/input/image_reader.h \
	lib/input/input_scan.c \
	lib/input/input_scan.h \
	lib/input/stored_reader.c \
	lib/input/stored_reader.h \
	lib/input/stored_scan.c \
	lib/input/stored_scan.h \
	lib/input/unlabeled.c \
	lib/input/unlabeled.h
if HAVE_LIBARCHIVE
libchexcore_la_SOURCES += \
	lib/input/archive.c \
	lib/input/archive_fault.c \
	lib/input/archive_private.h \
	lib/input/archive_stream.c
else
libchexcore_la_SOURCES += \
	lib/input/archive_none.c
endif
