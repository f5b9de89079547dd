/*
 * test_preflight.c - what is reported about images and archives before the first one is read (coverage.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/coverage.h"
#include "source_fixture.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Makes names in the form of the data set, in order: images 0 to 9 of each patient. */
static struct labels
labels_of(size_t rows)
{
    const struct labels_options options = {.empty_is_no_finding = true}; /* an empty label is short */
    char *csv = malloc(64 + rows * 32);
    size_t used = (size_t)sprintf(csv, "Image Index,Finding Labels,Patient ID\n");
    struct labels labels = {0};

    for (size_t i = 0; i < rows; i++)
        used += (size_t)sprintf(csv + used, "%08zu_%03zu.png,,%zu\n", i / 10 + 1, i % 10, i / 10 + 1);
    ck_assert_int_eq(labels_read(unit_file("whole.csv", csv, used), &options, &labels, &inputs.err), CHEX_OK);
    free(csv);
    return labels;
}

TEST_CASE("plan", "preflight", inputs_setup, inputs_teardown);

/* From README_CHESTXRAY.pdf: 4,999 images in images_001, 10,000 in each of the next ten, 7,121 in images_012. */
TEST(images_are_counted_by_their_archive)
{
    enum { ROWS = 112120, FIRST = 4999, EACH = 10000, LAST = 7121 };
    struct labels labels = labels_of(ROWS);
    struct source_file *found = calloc(ROWS, sizeof(*found));
    struct source whole = {.file = found};
    bool *missing = calloc(ROWS, 1), *skip = calloc(ROWS, 1);
    struct preflight p;

    /* images_003 is not unpacked, one image of images_012 is missing, and one of images_001 has no row. */
    for (size_t i = 0; i < ROWS; i++)
        if ((i < FIRST + EACH || i >= FIRST + 2 * EACH) && i != ROWS - 1)
            found[whole.count++].name = labels.entry[i].name;
    skip[0] = true;
    preflight_count(&labels, skip, &whole, missing, &p);
    ck_assert(p.whole);
    ck_assert_uint_eq(p.wanted, ROWS - 1);
    ck_assert_uint_eq(p.missing, EACH + 1);
    ck_assert_uint_eq(p.found, ROWS - 1 - EACH - 1);
    ck_assert_uint_eq(p.extra, 1); /* that of the row that takes no part */
    for (unsigned i = 0; i < PREFLIGHT_ARCHIVES; i++) {
        size_t wanted = i == 0 ? FIRST - 1 : i == 11 ? LAST : EACH;

        ck_assert_uint_eq(p.archive[i].wanted, wanted);
        ck_assert_uint_eq(p.archive[i].found, i == 2 ? 0 : i == 11 ? LAST - 1 : wanted);
    }
    for (unsigned i = 0; i < PREFLIGHT_SAMPLES; i++)
        ck_assert_ptr_eq(p.sample[i], labels.entry[FIRST + EACH + i].name);
    for (size_t i = 0; i < ROWS; i++)
        if (missing[i] != ((i >= FIRST + EACH && i < FIRST + 2 * EACH) || i == ROWS - 1))
            ck_abort_msg("row %zu", i);
    free(found);
    free(missing);
    free(skip);
    labels_release(&labels);
}

TEST(a_part_of_the_data_set_has_no_archives)
{
    struct labels labels = labels_of(30);
    struct preflight p;

    preflight_count(&labels, NULL, &inputs.source, NULL, &p);
    ck_assert(!p.whole);
    ck_assert(p.wanted == 30 && p.missing == 30 && p.found == 0 && p.extra == 0);
    ck_assert_str_eq(p.sample[4], "00000001_004.png");
    inputs_file("00000002_003.png", "");
    inputs_file("unknown.png", "");
    ck_assert_int_eq(inputs_scan(inputs.base, NULL), CHEX_OK);
    preflight_count(&labels, NULL, &inputs.source, NULL, &p);
    ck_assert(p.missing == 29 && p.found == 1 && p.extra == 1);
    labels_release(&labels);
}
