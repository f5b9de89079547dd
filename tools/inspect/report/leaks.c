/*
 * leaks.c - checks of the report for leaks between splits, and for equal and nearly equal images; see report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/checks.h"

#define EQUAL_NAMED 4 /* maximum of named images per group of equal images */

void
report_check_patients(struct html_report *r)
{
    const struct split_check *k = &r->check;
    uint64_t n = k->shared_patients, images[SPLIT_MAX];
    struct report_check *c = report_check_begin(r, "patients", "Patients in two splits", n ? LEVEL_FAULT : LEVEL_GOOD,
                                                n);
    unsigned shown = 0, s;
    size_t i, next;

    if (r->dataset->info.split_count == 1) {
        report_check_say(c,
                         "There is one split, so nothing can leak between splits. Divide by patient, never by image.");
        return;
    }
    if (n == 0) {
        report_check_say(c, "No patient is in two splits (%s patients).", TEXT(k->patients));
        return;
    }
    report_check_say(c, "%s patient%s %s images in more than one split: results on the later splits are too good.",
                     TEXT(n), report_plural(n), n == 1 ? "has" : "have");
    for (i = 0; i < k->count && shown < EXAMPLES; i = next) {
        if (!split_check_patient(k, i, &next, images))
            continue;
        report_check_say(c, shown ? "; " : " ");
        report_check_name(c, k->seen[i].patient);
        for (s = 0; s < r->dataset->info.split_count; s++)
            if (images[s] > 0)
                report_check_say(c, " %s %s", report_split_name(r, s), TEXT(images[s]));
        shown++;
    }
    if (n > shown)
        report_check_say(c, ", and %s more", TEXT(n - shown));
    report_check_say(c, ".");
}

/* Append the images by_hash[i .. next - 1]: " train a.png = b.png = test c.png". */
static void
say_equal(const struct html_report *r, struct report_check *c, size_t i, size_t next)
{
    unsigned split = SPLIT_MAX, named;

    for (named = 0; named < EQUAL_NAMED && i < next; named++, i++) {
        const struct seen *seen = r->check.by_hash[i];

        report_check_say(c, named ? " = " : " ");
        if (seen->split != split)
            report_check_say(c, "%s ", report_split_name(r, seen->split));
        split = seen->split;
        report_check_name(c, seen->name);
    }
    if (i < next)
        report_check_say(c, " = %s more", TEXT(next - i));
}

/* Append the first groups of this kind; groups is their total number. */
static void
say_groups(const struct html_report *r, struct report_check *c, enum report_equal kind, uint64_t groups)
{
    unsigned shown = 0;
    size_t i, next;

    for (i = 0; i < r->check.count && shown < EXAMPLES; i = next) {
        if (!(report_equal_to(r, i, &next) & kind))
            continue;
        report_check_say(c, shown++ ? ";" : "");
        say_equal(r, c, i, next);
    }
    if (groups > shown)
        report_check_say(c, "; %s more below", TEXT(groups - shown));
    report_check_say(c, ".");
}

void
report_check_equal(struct html_report *r)
{
    uint64_t n = r->check.shared_images;
    struct report_check *c = report_check_begin(r, "images", "Images in two splits", n ? LEVEL_FAULT : LEVEL_GOOD, n);

    if (n == 0) {
        report_check_say(c, "No image, by the hash of its pixels, is in two splits.");
    } else {
        report_check_say(c, "%s image%s in more than one split:", TEXT(n), n == 1 ? " is" : "s are");
        say_groups(r, c, EQUAL_SHARED, n);
    }
    n = r->repeated;
    c = report_check_begin(r, "duplicates", "Duplicates within a split", n ? LEVEL_LOOK : LEVEL_GOOD, n);
    if (n == 0) {
        report_check_say(c, "No image is equal to another one of its split.");
    } else {
        report_check_say(
            c, "%s image%s equal to another one of the same split (%s group%s) and weigh%s more than others:", TEXT(n),
            n == 1 ? " is" : "s are", TEXT(r->repeated_group), report_plural(r->repeated_group), n == 1 ? "s" : "");
        say_groups(r, c, EQUAL_REPEATED, r->repeated_group);
    }
    n = r->equal_unlike;
    c = report_check_begin(r, "contradictions", "Equal images, other labels", n ? LEVEL_LOOK : LEVEL_GOOD, n);
    if (n == 0) {
        report_check_say(c, "No two equal images have different findings or patients.");
    } else {
        report_check_say(c, "In %s group%s of equal images findings or patients differ, so some of them are wrong:",
                         TEXT(n), report_plural(n));
        say_groups(r, c, EQUAL_UNLIKE, n);
    }
}

void
report_check_near(struct html_report *r)
{
    const struct near_search *near = &r->near;
    uint64_t n = near->pair_count;
    struct report_check *c = report_check_begin(r, "near", "Nearly equal images in two splits",
                                                n || near->too_many ? LEVEL_LOOK : LEVEL_GOOD, n);
    size_t i;

    if (r->dataset->info.split_count == 1) {
        report_check_say(c, "There is one split.");
    } else if (near->too_many) {
        report_check_say(c, "More than %s pairs of images may be nearly equal: the images of this data set are alike.",
                         TEXT(NEAR_MAX));
    } else if (n == 0) {
        report_check_say(c,
                         "No image is nearly equal to an image of another split (correlation of 64 x 64 means: %.2f).",
                         NEAR_LEAST);
    } else {
        report_check_say(c, "%s pair%s of nearly equal images %s in two splits (correlation of 64 x 64 means: %.2f):",
                         TEXT(n), report_plural(n), n == 1 ? "is" : "are", NEAR_LEAST);
        for (i = 0; i < n && i < EXAMPLES; i++) {
            const struct seen *a = near->image[near->pair[i].a].seen, *b = near->image[near->pair[i].b].seen;

            report_check_say(c, "%s %s ", i ? ";" : "", report_split_name(r, a->split));
            report_check_name(c, a->name);
            report_check_say(c, " ~ %s ", report_split_name(r, b->split));
            report_check_name(c, b->name);
        }
        report_check_say(c, n > i ? "; %s more (chex-inspect check --near)." : ".", TEXT(n - i));
    }
}
