/*
 * checks.c - writes the checks of the report: the questions of a careful reviewer and the answers; see report.h
 *
 * fault   always makes results wrong: damaged records, a patient or an image in two splits
 * look    may be intended, but a publication must mention it
 * note    describes the data set and needs no action: padding records
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/checks.h"

#include <math.h>
#include <string.h>

#define FEW        30 /* positives of a finding in a split */
#define FEW_NAMED  4  /* of such findings in a split */
#define OLD        100
#define NIH_IMAGES 112120 /* rows of both label files of NIH */
#define AUROC      0.85

/* ---- records ----------------------------------------------------------------------------------------------------- */

static void
check_records(struct html_report *r)
{
    struct report_check *c = report_check_begin(r, "records", "Records", r->walk.faults ? LEVEL_FAULT : LEVEL_GOOD,
                                                r->walk.faults);
    uint64_t wanted = r->dataset->info.image_count;
    unsigned i, named = 0;

    if (r->walk.faults == 0) {
        report_check_say(c, "All %s records are complete: framing, both checksums, encoding and position of each.",
                         TEXT(r->records));
    } else {
        report_check_say(
            c, "%s fault%s: records that cannot be used are left out of this page, which shows %s of %s images.",
            TEXT(r->walk.faults), report_plural(r->walk.faults), TEXT(r->check.count), TEXT(wanted));
        for (i = 0; i < r->dataset->info.shard_count && named < EXAMPLES; i++)
            if (r->shard[i].bad > 0) {
                report_check_say(c, " %s: %s.", r->dataset->shard[i].name, r->shard[i].why);
                named++;
            }
    }
}

static void
check_rejects(struct html_report *r)
{
    uint64_t n = r->dataset->manifest.rejects;
    struct report_check *c = report_check_begin(r, "rejects", "Rejected images", n ? LEVEL_LOOK : LEVEL_GOOD, n);

    if (n == 0)
        report_check_say(c, "No image was rejected at conversion.");
    else
        report_check_say(
            c,
            "%s image%s could not be used at conversion. If they are of one kind (a scanner, a view, a finding), their "
            "absence is a bias; their names and reasons stand below.",
            TEXT(n), report_plural(n));
    if (r->dataset->manifest.withdrawal_count > 0)
        report_check_say(c, " %s images were withdrawn later (chex-convert --withdraw), the last at %s.",
                         TEXT(manifest_withdrawn(&r->dataset->manifest)),
                         r->dataset->manifest.withdrawal[r->dataset->manifest.withdrawal_count - 1].time);
    if (r->reject_count > n)
        report_check_say(c, " Besides, %s line%s of rejects.jsonl name rows or images without their other half.",
                         TEXT(r->reject_count - n), report_plural(r->reject_count - n));
}

/* If the label file is NIH's: check that the data set has all of ChestX-ray14. */
static void
check_complete(struct html_report *r)
{
    const char *labels = report_label_file(r->dataset->manifest.labels_sha256);
    uint64_t here = r->dataset->info.image_count + r->dataset->manifest.rejects;
    uint64_t n = here < NIH_IMAGES ? NIH_IMAGES - here : 0;
    struct report_check *c;

    if (!labels)
        return;
    c = report_check_begin(r, "complete", "Completeness", n ? LEVEL_LOOK : LEVEL_GOOD, n);
    if (n == 0)
        report_check_say(c, "Every image of the label file is here or among the rejects.");
    else
        report_check_say(c,
                         "%s of %s images are here: the others were left out (--allow-missing, --view, --where, "
                         "--exclude, --tail drop, --withdraw), so results are none of the whole of ChestX-ray14.",
                         TEXT(here), TEXT(NIH_IMAGES));
}

static void
check_padding(struct html_report *r)
{
    uint64_t n = r->all.padding;
    struct report_check *c = report_check_begin(r, "padding", "Padding records", n ? LEVEL_NOTE : LEVEL_GOOD, n);

    if (n == 0)
        report_check_say(c, "No record is padding.");
    else
        report_check_say(
            c,
            "%s record%s of weight 0: copies of other images, in the room at the end of a split and in place of "
            "rejects. "
            "This page leaves them out; leave them out of loss, metrics and statistics. A reader that ignores "
            "image/weight reads these images twice.",
            TEXT(n), report_plural(n));
}

/* ---- few positives ----------------------------------------------------------------------------------------------- */

/* Returns half the 95 % interval of an AUROC (Hanley and McNeil, Radiology 143, 1982, 29-36). */
static double
half_interval(double positives, double negatives)
{
    double a = AUROC, q1 = a / (2 - a), q2 = 2 * a * a / (1 + a);

    return 1.96 * sqrt((a * (1 - a) + (positives - 1) * (q1 - a * a) + (negatives - 1) * (q2 - a * a)) /
                       (positives * negatives));
}

/* Find a split's findings with too few positives, rarest first; returns their number. */
static unsigned
find_few(const struct report_split *s, unsigned findings, unsigned few[FINDINGS_MAX])
{
    unsigned f, i, used = 0;

    for (f = 0; s->images > 0 && f < findings; f++) {
        if (s->variable[f].y >= FEW)
            continue;
        for (i = used++; i > 0 && s->variable[few[i - 1]].y > s->variable[f].y; i--)
            few[i] = few[i - 1];
        few[i] = f;
    }
    return used;
}

/* How precise an AUROC can be for the findings of find_few(). */
struct auroc_precision {
    unsigned without;          /* findings without a positive, or without a negative: no AUROC */
    unsigned too_wide;         /* findings whose interval would exceed 1 */
    const struct ratio *least; /* the rarest remaining finding, or NULL */
};

static void
add_precision(struct auroc_precision *p, const struct ratio *v)
{
    if (v->y < 1 || v->n <= v->y)
        p->without++;
    else if (AUROC + half_interval(v->y, v->n - v->y) > 1)
        p->too_wide++;
    else if (!p->least || v->y < p->least->y)
        p->least = v;
}

static void
say_precision(struct report_check *c, const struct auroc_precision *p)
{
    if (p->without > 0)
        report_check_say(c, " %u cannot be evaluated without a positive and a negative image.", p->without);
    if (p->too_wide > 0)
        report_check_say(c,
                         " %u cannot be evaluated with so few: the 95 %% interval of an AUROC of %.2f would reach "
                         "past 1.",
                         p->too_wide, AUROC);
    if (p->least)
        report_check_say(c,
                         " With %.0f, an AUROC of %.2f would be known to within %.2f (95 %%), and less well since "
                         "images of a patient are alike.",
                         p->least->y, AUROC, half_interval(p->least->y, p->least->n - p->least->y));
}

static void
check_positives(struct html_report *r)
{
    struct report_check *c = report_check_begin(r, "positives", "Few positives", LEVEL_GOOD, 0);
    struct auroc_precision precision = {0};
    unsigned s, i, few[FINDINGS_MAX];

    for (s = 0; s < r->dataset->info.split_count; s++) {
        const struct ratio *v = r->split[s].variable;
        unsigned used = find_few(&r->split[s], r->dataset->info.finding_count, few);

        if (used == 0)
            continue;
        report_check_say(c, "%s%s: ", c->count ? "; " : "", report_split_name(r, s));
        for (i = 0; i < used && i < FEW_NAMED; i++)
            report_check_say(c, "%s%s %.0f", i ? ", " : "", r->dataset->manifest.findings.name[few[i]], v[few[i]].y);
        if (used > FEW_NAMED)
            report_check_say(c, " and %u more", used - FEW_NAMED);
        for (i = 0; i < used; i++)
            add_precision(&precision, &v[few[i]]);
        c->count += used;
    }
    if (c->count == 0) {
        report_check_say(c, "Every finding has at least %d positives in every split.", FEW);
        return;
    }
    c->level = LEVEL_LOOK;
    report_check_say(c, ".");
    say_precision(c, &precision);
    report_check_say(c, " Named are those with fewer than %d.", FEW);
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

static void
check_flag(struct html_report *r, unsigned flag, const char *id, const char *title, const char *rule)
{
    uint64_t n = r->flagged[flag];
    struct report_check *c = report_check_begin(r, id, title, n ? LEVEL_LOOK : LEVEL_GOOD, n);
    unsigned shown = 0;
    size_t i;

    if (n == 0)
        report_check_say(c, "None (%s).", rule);
    else
        report_check_say(c, "%s image%s (%s):", TEXT(n), report_plural(n), rule);
    for (i = 0; n > 0 && i < r->check.count && shown < EXAMPLES; i++) {
        const struct seen *seen = &r->check.seen[i];

        if (!(report_image_of(r, seen)->flags >> flag & 1))
            continue;
        report_check_say(c, "%s ", shown++ ? "," : "");
        report_check_name(c, seen->name);
    }
    if (n > shown)
        report_check_say(c, ", ...");
}

static void
check_pixels(struct html_report *r)
{
    check_flag(r, 0, "constant", "Constant images", "all pixels have one value");
    check_flag(r, 1, "black", "Near-black images", "99 % of the pixels below 32");
    check_flag(r, 2, "white", "Near-white images", "99 % of the pixels above 223");
    check_flag(r, 3, "flat", "Low contrast", "1st to 99th percentile spans fewer than 32 levels");
    check_flag(r, 4, "inverted", "Inverted gray",
               "8x8 means correlate below -0.2 with the mean image: white air, MONOCHROME1 taken for MONOCHROME2");
    if (r->all_inverted) {
        struct report_check *c = &r->checks[r->check_count - 1];

        c->level = LEVEL_LOOK;
        report_check_say(
            c, " The mean of all images is brighter in its upper corners than in its centre: the whole data set may be "
               "inverted.");
    }
    check_flag(r, 5, "unlike", "Unlike the others",
               "8x8 means correlate between -0.2 and 0.2 with the mean image: rotated, cropped, another body part, or "
               "only unusual");
}

/* ---- people ------------------------------------------------------------------------------------------------------ */

static void
check_ages(struct html_report *r)
{
    uint64_t unknown = r->all.unknown_age, old = 0;
    struct report_check *c;
    unsigned i;

    for (i = OLD + 1; i < REPORT_YEARS; i++)
        old += r->all.years[i];
    c = report_check_begin(r, "ages", "Ages", unknown + old ? LEVEL_LOOK : LEVEL_GOOD, unknown + old);
    if (unknown > 0)
        report_check_say(
            c, "%s image%s of unknown age: the label file has none, or an impossible one (negative, above 120). ",
            TEXT(unknown), report_plural(unknown));
    if (old > 0)
        report_check_say(c, "%s above %d years. ", TEXT(old), OLD);
    if (unknown + old == 0)
        report_check_say(c, "All ages are known and at most %d years. ", OLD);
    if (r->all.years[0] > 0)
        report_check_say(c, "%s in the first year of life: children are other images, decide whether they belong.",
                         TEXT(r->all.years[0]));
}

static void
check_texts(struct html_report *r)
{
    uint64_t views = r->all.view[VIEW_UNKNOWN] + r->all.view[VIEW_OTHER], sexes = r->all.sex[SEX_U];
    struct report_check *c = report_check_begin(r, "views", "Views", views ? LEVEL_LOOK : LEVEL_GOOD, views);

    if (views == 0)
        report_check_say(c, "Every image is PA or AP.");
    else
        report_check_say(c, "%s image%s of unknown view, %s of another one than PA and AP.",
                         TEXT(r->all.view[VIEW_UNKNOWN]), report_plural(r->all.view[VIEW_UNKNOWN]),
                         TEXT(r->all.view[VIEW_OTHER]));
    c = report_check_begin(r, "sexes", "Sex", sexes || r->two_sexes ? LEVEL_LOOK : LEVEL_GOOD, sexes + r->two_sexes);
    if (sexes == 0 && r->two_sexes == 0)
        report_check_say(c, "Known for every image, and one for each patient.");
    if (sexes > 0)
        report_check_say(c, "Unknown for %s image%s. ", TEXT(sexes), report_plural(sexes));
    if (r->two_sexes > 0)
        report_check_say(c, "%s patient%s F and M both: two people under one id, or an error of the label file.",
                         TEXT(r->two_sexes), r->two_sexes == 1 ? " has" : "s have");
}

/* Check that the sums of the manifest agree with the records. */
static void
check_manifest(struct html_report *r)
{
    const struct chex_dataset *ds = r->dataset;
    struct report_check *c;
    uint64_t differ = 0;
    unsigned s, f;

    for (s = 0; s < ds->info.split_count; s++) {
        differ += ds->split[s].image_count != r->split[s].images;
        differ += ds->split[s].patient_count != r->split[s].patients;
        for (f = 0; f < ds->info.finding_count; f++)
            differ += (double)ds->split[s].positives[f] != r->split[s].variable[f].y;
    }
    c = report_check_begin(r, "manifest", "Sums of the manifest", differ ? LEVEL_FAULT : LEVEL_GOOD, differ);
    if (differ == 0)
        report_check_say(
            c, "Images, patients and positives of each finding, counted from the records, are those of the manifest.");
    else
        report_check_say(c, "%s number%s of images, patients or positives differ%s from the manifest.", TEXT(differ),
                         report_plural(differ), differ == 1 ? "s" : "");
}

void
report_run_checks(struct html_report *r)
{
    check_records(r);
    check_manifest(r);
    report_check_patients(r);
    report_check_equal(r);
    report_check_near(r);
    report_check_drift(r);
    check_positives(r);
    check_pixels(r);
    check_ages(r);
    check_texts(r);
    check_rejects(r);
    check_complete(r);
    check_padding(r);
}

bool
report_has_fault(const struct html_report *r)
{
    unsigned i;

    for (i = 0; i < r->check_count; i++)
        if (r->checks[i].level == LEVEL_FAULT)
            return true;
    return false;
}
