# SPDX-License-Identifier: Apache-2.0
convert_sources = \
	tools/convert/convert_json.c \
	tools/convert/convert_notes.c \
	tools/convert/convert_options.c \
	tools/convert/convert_options.h \
	tools/convert/convert_part.c \
	tools/convert/convert_part.h \
	tools/convert/convert_profile.c \
	tools/convert/convert_profile.h \
	tools/convert/convert_report.c \
	tools/convert/convert_report.h \
	tools/convert/convert_withdraw.c \
	tools/convert/convert_withdraw.h
