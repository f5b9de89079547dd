# SPDX-License-Identifier: Apache-2.0
tests_unit_SOURCES += \
	tests/lib/dataset/record_fixture.c \
	tests/lib/dataset/record_fixture.h \
	tests/lib/dataset/small_dataset.c \
	tests/lib/dataset/small_dataset.h \
	tests/lib/dataset/test_dataset.c \
	tests/lib/dataset/test_example.c \
	tests/lib/dataset/test_findings.c \
	tests/lib/dataset/test_manifest.c \
	tests/lib/dataset/test_manifest_check.c \
	tests/lib/dataset/test_record.c \
	tests/lib/dataset/test_record_faults.c \
	tests/lib/dataset/test_shard_scan.c
