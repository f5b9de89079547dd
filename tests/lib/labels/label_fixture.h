/*
 * label_fixture.h - label files from texts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_LABEL_FIXTURE_H
#define CHEX_TESTS_LABEL_FIXTURE_H

#include "labels/label_file.h"

#define LABELS_HEADER "Image Index,Finding Labels,Patient ID\n"
#define LABELS_FULL   "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View Position\n"

/* Reads a file with this text, which must succeed. */
void labels_read_text(const char *csv, const struct labels_options *options, struct labels *out);
/* Requires an error whose text is the path and `wanted`. */
void labels_expect_error(const char *csv, const char *wanted);

#endif
