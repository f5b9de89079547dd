/*
 * label_fixture.c - see label_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "label_fixture.h"

#include "unit.h"

#include "labels/label_file.h"
#include "labels/label_row.h"

#include <stdio.h>
#include <string.h>

void
labels_read_text(const char *csv, const struct labels_options *options, struct labels *out)
{
    static const struct labels_options none;
    struct chex_error err = {0};
    const char *path = unit_file("labels.csv", csv, strlen(csv));

    ck_assert_msg(labels_read(path, options ? options : &none, out, &err) == CHEX_OK, "%s", err.text);
}

void
labels_expect_error(const char *csv, const char *wanted)
{
    struct labels_options options = {0};
    struct labels labels = {0};
    struct chex_error err = {0};
    const char *path = unit_file("wrong.csv", csv, strlen(csv));
    char text[CHEX_ERROR_TEXT + 1100];

    ck_assert_int_eq(labels_read(path, &options, &labels, &err), CHEX_ERR_USAGE);
    ck_assert_int_eq(err.status, CHEX_ERR_USAGE);
    snprintf(text, sizeof(text), "%s%s", path, wanted);
    ck_assert_str_eq(err.text, text);
    labels_release(&labels);
}
