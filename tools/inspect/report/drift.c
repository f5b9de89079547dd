/*
 * drift.c - compares each split with the first one for the report: prevalence, age, sex and view
 *
 * A difference counts if |z| reaches SPLIT_Z, see ratio.h.  A check without such a difference names the largest one, to
 * show the reader the comparison.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/checks.h"

#include <math.h>

#define NOT_COMPARED                                                               \
    "a split has too few images (fewer than %.0f would be expected to count), or " \
    "the images of a single patient."

/* The difference between the first split and another one that has the largest |z|. */
struct difference {
    unsigned split, variable;
    double z;
    unsigned compared, of; /* number of compared differences, number of all differences */
};

/* Merge the differences of a variable into d; zero-initialise *d before the first call. */
static void
find_largest(const struct html_report *r, unsigned variable, struct difference *d)
{
    const struct ratio *a = &r->split[0].variable[variable];
    unsigned s;

    for (s = 1; s < r->dataset->info.split_count; s++) {
        const struct ratio *b = &r->split[s].variable[variable];
        double z = ratio_z(a, b, SPLIT_EXPECTED);

        d->of++;
        if (!ratio_comparable(a, b, SPLIT_EXPECTED))
            continue;
        if (d->compared++ == 0 || fabs(z) > fabs(d->z)) {
            d->split = s;
            d->variable = variable;
            d->z = z;
        }
    }
}

/* ---- prevalence -------------------------------------------------------------------------------------------------- */

/* Find the findings (and No Finding) whose share in split s differs from the first split; returns 0 for none. */
static unsigned
drift_of(const struct html_report *r, struct report_check *c, unsigned s)
{
    const struct ratio *a = r->split[0].variable, *b = r->split[s].variable;
    unsigned f, differ = 0;

    for (f = 0; f <= VARIABLE_NONE; f = report_next(r, f))
        differ += fabs(ratio_z(&a[f], &b[f], SPLIT_EXPECTED)) >= SPLIT_Z;
    if (differ == 0)
        return 0;
    report_check_say(c, "%s differs from %s in %u of %u: ", report_split_name(r, s), report_split_name(r, 0), differ,
                     r->dataset->info.finding_count + 1);
    for (f = 0; f <= VARIABLE_NONE; f = report_next(r, f)) {
        double z = ratio_z(&a[f], &b[f], SPLIT_EXPECTED);

        if (fabs(z) >= SPLIT_Z)
            report_check_say(c, "%s %.2f to %.2f %% (z %+.1f)%s", report_finding_name(r, f), 100 * ratio_value(&a[f]),
                             100 * ratio_value(&b[f]), z, --differ ? ", " : ". ");
    }
    return 1;
}

static void
say_largest_prevalence(const struct html_report *r, struct report_check *c)
{
    struct difference d = {0};
    unsigned f;

    for (f = 0; f <= VARIABLE_NONE; f = report_next(r, f))
        find_largest(r, f, &d);
    if (d.compared == 0) {
        c->level = LEVEL_NOTE;
        report_check_say(c, "No prevalence can be compared: " NOT_COMPARED, SPLIT_EXPECTED);
        return;
    }
    report_check_say(c,
                     "None. Of %u differences of prevalence from %s, No Finding too, %u have enough images to compare. "
                     "The largest is that of %s: %.2f %% in %s, %.2f %% in %s (z %+.1f). ",
                     d.of, report_split_name(r, 0), d.compared, report_finding_name(r, d.variable),
                     100 * ratio_value(&r->split[0].variable[d.variable]), report_split_name(r, 0),
                     100 * ratio_value(&r->split[d.split].variable[d.variable]), report_split_name(r, d.split), d.z);
    report_check_say(c, "A difference counts from |z| = %.2f (p < .001, patients as clusters).", SPLIT_Z);
}

static void
check_prevalence(struct html_report *r)
{
    struct report_check *c = report_check_begin(r, "prevalence", "Drift of prevalence", LEVEL_GOOD, 0);
    unsigned s;

    if (r->dataset->info.split_count == 1) {
        report_check_say(c, "One split: nothing to compare.");
        return;
    }
    for (s = 1; s < r->dataset->info.split_count; s++)
        c->count += drift_of(r, c, s);
    if (c->count == 0) {
        say_largest_prevalence(r, c);
        return;
    }
    c->level = LEVEL_LOOK;
    report_check_say(c, "Thresholds, class weights and precision do not carry over. ");
    report_check_say(c, "Shown is |z| from %.2f (p < .001, patients as clusters).", SPLIT_Z);
}

/* ---- age, sex, view ---------------------------------------------------------------------------------------------- */

static const struct {
    enum report_variable variable;
    const char *name, *unit;
    double scale;
} people[] = {{VARIABLE_AGE, "mean age", " years", 1},
              {VARIABLE_FEMALE, "share of women", " %", 100},
              {VARIABLE_AP, "share of AP views", " %", 100}};
#define PEOPLE (sizeof(people) / sizeof(people[0]))

static void
say_largest_of_people(const struct html_report *r, struct report_check *c)
{
    unsigned i, compared = 0;

    for (i = 0; i < PEOPLE; i++) {
        struct difference d = {0};
        const char *before = i ? "; " : "None. The largest differences are: ";

        find_largest(r, people[i].variable, &d);
        compared += d.compared;
        if (d.compared == 0)
            report_check_say(c, "%s%s cannot be compared", before, people[i].name);
        else
            report_check_say(c, "%s%s %.1f%s in %s, %.1f%s in %s (z %+.1f)", before, people[i].name,
                             people[i].scale * ratio_value(&r->split[0].variable[d.variable]), people[i].unit,
                             report_split_name(r, 0),
                             people[i].scale * ratio_value(&r->split[d.split].variable[d.variable]), people[i].unit,
                             report_split_name(r, d.split), d.z);
    }
    if (compared > 0) {
        report_check_say(c, ". A difference counts from |z| = %.2f.", SPLIT_Z);
        return;
    }
    c->level = LEVEL_NOTE;
    c->text[0] = '\0';
    report_check_say(c, "Neither age nor sex nor view can be compared: " NOT_COMPARED, SPLIT_EXPECTED);
}

static void
check_people(struct html_report *r)
{
    struct report_check *c = report_check_begin(r, "people", "Drift of age, sex, view", LEVEL_GOOD, 0);
    unsigned s, i;

    if (r->dataset->info.split_count == 1) {
        report_check_say(c, "One split: nothing to compare.");
        return;
    }
    for (s = 1; s < r->dataset->info.split_count; s++) {
        for (i = 0; i < PEOPLE; i++) {
            const struct ratio *a = &r->split[0].variable[people[i].variable];
            const struct ratio *b = &r->split[s].variable[people[i].variable];
            double z = ratio_z(a, b, SPLIT_EXPECTED);

            if (fabs(z) < SPLIT_Z)
                continue;
            c->count++;
            report_check_say(c, "%s: %s %.1f%s, %.1f in %s (z %+.1f). ", report_split_name(r, s), people[i].name,
                             people[i].scale * ratio_value(b), people[i].unit, people[i].scale * ratio_value(a),
                             report_split_name(r, 0), z);
        }
    }
    if (c->count == 0) {
        say_largest_of_people(r, c);
        return;
    }
    c->level = LEVEL_LOOK;
    report_check_say(c, "AP films are mostly taken at the bed of sicker patients, so a network can learn the view in "
                        "place of the finding: report results by view.");
}

void
report_check_drift(struct html_report *r)
{
    check_prevalence(r);
    check_people(r);
}
