# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/labels/box_list.c \
	lib/labels/box_list.h \
	lib/labels/columns_file.c \
	lib/labels/columns_file.h \
	lib/labels/label_file.c \
	lib/labels/label_file.h \
	lib/labels/label_kinds.c \
	lib/labels/label_kinds.h \
	lib/labels/label_row.c \
	lib/labels/label_row.h \
	lib/labels/name_list.c \
	lib/labels/name_list.h \
	lib/labels/notes.c \
	lib/labels/notes.h \
	lib/labels/patient_ids.c \
	lib/labels/patient_ids.h \
	lib/labels/synthetic_note.c \
	lib/labels/synthetic_note.h
