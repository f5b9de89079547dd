# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/dataset/certificate.c \
	lib/dataset/certificate.h \
	lib/dataset/dali_index.c \
	lib/dataset/dali_index.h \
	lib/dataset/dataset.c \
	lib/dataset/dataset.h \
	lib/dataset/dataset_reader.c \
	lib/dataset/example.c \
	lib/dataset/example.h \
	lib/dataset/findings.c \
	lib/dataset/findings.h \
	lib/dataset/findings_lists.c \
	lib/dataset/format.c \
	lib/dataset/format.h \
	lib/dataset/manifest.h \
	lib/dataset/manifest_check.c \
	lib/dataset/manifest_fields.c \
	lib/dataset/manifest_format.c \
	lib/dataset/manifest_json.h \
	lib/dataset/manifest_parse.c \
	lib/dataset/record.c \
	lib/dataset/record.h \
	lib/dataset/shard_scan.c \
	lib/dataset/shard_scan.h \
	lib/dataset/tfrecord.c \
	lib/dataset/tfrecord.h \
	lib/dataset/where.c \
	lib/dataset/where.h
