/*
 * tables.c - writes the tables of the report; see report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/report.h"

#include "base/ascii.h"
#include "base/number_format.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS_SHOWN  1000
#define REJECTS_SHOWN 100
#define REASONS       24
#define EQUAL_SHOWN   1000

#define TEXT(number) format_count(number, (char[FORMAT_TEXT]){0})

static unsigned
age_quantile(const struct report_split *s, double share)
{
    uint64_t known = s->images - s->unknown_age, below = 0;
    unsigned year;

    for (year = 0; year < REPORT_YEARS - 1; year++) {
        below += s->years[year];
        if ((double)below >= share * (double)known)
            break;
    }
    return year;
}

enum people { IMAGES, PATIENTS, NO_FINDING, VISITS, FINDINGS, AGE, WOMEN, AP, PADDING };

static const char *
people_text(const struct report_split *s, enum people what, char out[64])
{
    const double images = s->images ? (double)s->images : 1; /* avoids 0 / 0 without images */

    switch (what) {
    case IMAGES:
        return format_count(s->images, out);
    case PATIENTS:
        return format_count(s->patients, out);
    case NO_FINDING:
        return format_count((uint64_t)s->variable[VARIABLE_NONE].y, out);
    case PADDING:
        return format_count(s->padding, out);
    case VISITS:
        snprintf(out, 64, "%.2f", s->patients ? (double)s->images / (double)s->patients : 0.0);
        break;
    case FINDINGS:
        snprintf(out, 64, "%.2f", (double)s->labels / images);
        break;
    case AGE:
        if (s->images == s->unknown_age)
            return "unknown";
        snprintf(out, 64, "%u (%u-%u)", age_quantile(s, 0.5), age_quantile(s, 0.25), age_quantile(s, 0.75));
        break;
    case WOMEN:
        snprintf(out, 64, "%.1f %%", 100 * (double)s->sex[SEX_F] / images);
        break;
    case AP:
        snprintf(out, 64, "%.1f %%", 100 * (double)s->view[VIEW_AP] / images);
        break;
    }
    return out;
}

/* Write one cell per split and one for the total. */
static void
row(struct html *h, const struct html_report *r, const char *name, enum people what)
{
    unsigned splits = r->dataset->info.split_count, i;
    char text[64];

    html_format(h, "<tr><th>%s</th>", name);
    for (i = 0; i <= splits; i++)
        html_format(h, "<td>%s</td>", people_text(i < splits ? &r->split[i] : &r->all, what, text));
    html_raw(h, "</tr>\n");
}

static void
head_of_splits(struct html *h, const struct html_report *r, const char *last)
{
    unsigned i;

    html_raw(h, "<div class=\"wide\"><table><thead><tr><th></th>");
    for (i = 0; i < r->dataset->info.split_count; i++) {
        html_raw(h, "<th>");
        html_text(h, r->dataset->split[i].name);
        html_raw(h, "</th>");
    }
    html_format(h, "%s</tr></thead>\n<tbody>", last);
}

void
report_table_splits(struct html *h, const struct html_report *r)
{
    unsigned i;
    uint64_t shards = 0;

    head_of_splits(h, r, "<th>all</th>");
    row(h, r, "images", IMAGES);
    row(h, r, "patients", PATIENTS);
    row(h, r, "images without a finding", NO_FINDING);
    row(h, r, "images of a patient, mean", VISITS);
    row(h, r, "findings of an image, mean", FINDINGS);
    row(h, r, "age in years, median (quartiles)", AGE);
    row(h, r, "women", WOMEN);
    row(h, r, "AP views", AP);
    html_raw(h, "<tr><th>shards</th>");
    for (i = 0; i < r->dataset->info.split_count; i++) {
        html_format(h, "<td>%s</td>", TEXT(r->dataset->split[i].shard_count));
        shards += r->dataset->split[i].shard_count;
    }
    html_format(h, "<td>%s</td></tr>\n", TEXT(shards));
    row(h, r, "padding records", PADDING);
    html_raw(h, "<tr><th>SHA-256 of the members</th>");
    for (i = 0; i < r->dataset->info.split_count; i++)
        html_format(h, "<td><code title=\"%.64s\">%.12s</code></td>", r->dataset->split[i].members_sha256,
                    r->dataset->split[i].members_sha256);
    html_raw(h, "<td></td></tr>\n</tbody></table></div>\n");
}

void
report_table_prevalence(struct html *h, const struct html_report *r)
{
    unsigned i, f;

    html_fold_begin(h, "numbers", "The data of this plot", false);
    head_of_splits(h, r, "");
    for (f = 0; f <= VARIABLE_NONE; f = report_next(r, f)) {
        html_format(h, "<tr><th>%s</th>", report_finding_name(r, f));
        for (i = 0; i < r->dataset->info.split_count; i++) {
            const struct ratio *v = &r->split[i].variable[f];
            struct share_interval ci = ratio_wilson(v);

            html_format(h, "<td>%s<br><span class=\"dim\">%.2f %% (%.2f-%.2f)</span></td>", TEXT((uint64_t)v->y),
                        100 * ratio_value(v), 100 * ci.low, 100 * ci.high);
        }
        html_raw(h, "</tr>\n");
    }
    html_raw(h, "</tbody></table></div>");
    html_fold_end(h);
}

void
report_table_shards(struct html *h, const struct html_report *r)
{
    const struct chex_dataset *ds = r->dataset;
    unsigned i, shown = 0, faulty = 0;
    char title[100];

    for (i = 0; i < ds->info.shard_count; i++)
        faulty += r->shard[i].bad > 0;
    snprintf(title, sizeof(title), "%s shard%s, %s with faults", TEXT(ds->info.shard_count),
             ds->info.shard_count == 1 ? "" : "s", faulty ? TEXT(faulty) : "none");
    html_fold_begin(h, "table-of-shards", title, faulty > 0);
    html_raw(
        h, "<div class=\"wide\"><table><thead><tr><th>shard</th><th>images</th><th>padding</th><th>bytes</th><th>mean "
           "gray</th>"
           "<th>SHA-256 by the manifest</th><th>faults</th></tr></thead>\n<tbody>");
    for (i = 0; i < ds->info.shard_count; i++) {
        const struct report_shard *s = &r->shard[i];

        /* After SHARDS_SHOWN shards, list only those with faults. */
        if (s->bad == 0 && shown >= SHARDS_SHOWN)
            continue;
        shown++;
        html_raw(h, "<tr><th>");
        html_text(h, ds->shard[i].name);
        html_format(h, "</th><td>%u</td><td>%u</td><td>%s</td><td>%.1f</td><td><code>%.12s</code></td><td class=\"t\">",
                    s->images, s->padding, TEXT(ds->shard[i].size),
                    s->images ? (double)s->sum / ((double)s->images * ds->info.width * ds->info.height) : 0.0,
                    ds->shard[i].sha256);
        if (s->bad > 0)
            html_format(h, "%u: ", s->bad);
        html_text(h, s->why);
        html_raw(h, "</td></tr>\n");
    }
    html_raw(h, "</tbody></table></div>");
    if (shown < ds->info.shard_count)
        html_format(h, "<p>and %s without faults</p>", TEXT(ds->info.shard_count - shown));
    html_fold_end(h);
}

/* ---- equal images ------------------------------------------------------------------------------------------------ */

static void
equal_row(struct html *h, const struct html_report *r, const struct seen *seen, bool first)
{
    char labels[INSPECT_LABELS_TEXT];

    inspect_labels_text(&r->dataset->manifest.findings, seen->label, labels);
    html_format(h, "<tr%s><th>", first ? " class=\"first\"" : "");
    html_text(h, seen->name);
    html_raw(h, "</th><td class=\"t\">");
    html_text(h, r->dataset->split[seen->split].name);
    html_raw(h, "</td><td class=\"t\">");
    html_text(h, seen->patient);
    html_raw(h, "</td><td class=\"t\">");
    html_text(h, labels);
    html_raw(h, "</td></tr>\n");
}

/* Write all groups of equal images. */
void
report_table_equal(struct html *h, const struct html_report *r)
{
    const struct split_check *k = &r->check;
    uint64_t left_out = 0;
    size_t i, j, next, shown = 0;

    html_raw(h, "<div class=\"wide\"><table class=\"equal\"><thead><tr><th>image</th><th class=\"t\">split</th>"
                "<th class=\"t\">patient</th><th class=\"t\">findings</th></tr></thead>\n<tbody>");
    for (i = 0; i < k->count; i = next) {
        if (report_equal_to(r, i, &next) == 0)
            continue;
        if (shown + (next - i) > EQUAL_SHOWN) {
            left_out += next - i;
            continue;
        }
        for (j = i; j < next; j++, shown++)
            equal_row(h, r, k->by_hash[j], j == i);
    }
    html_raw(h, "</tbody></table></div>\n");
    if (left_out > 0)
        html_format(h, "<p>and %s more</p>\n", TEXT(left_out));
}

/* ---- rejects ----------------------------------------------------------------------------------------------------- */

/* Write the count of each reason, if memory allows. */
static void
reasons(struct html *h, const struct html_report *r)
{
    const char **all = calloc(r->reject_count, sizeof(*all));
    size_t i, next, shown = 0;

    for (i = 0; all && i < r->reject_count; i++)
        all[i] = r->reject[i].reason;
    if (all)
        qsort(all, r->reject_count, sizeof(*all), compare_texts);
    html_raw(h, "<p>By reason:");
    for (i = 0; all && i < r->reject_count && shown < REASONS; i = next, shown++) {
        for (next = i; next < r->reject_count && strcmp(all[i], all[next]) == 0;)
            next++;
        html_raw(h, shown ? ", " : " ");
        html_text(h, all[i]);
        html_format(h, " %s", TEXT(next - i));
    }
    html_raw(h, ".</p>\n");
    free(all);
}

void
report_table_rejects(struct html *h, const struct html_report *r)
{
    size_t i;

    if (r->reject_count == 0) {
        html_raw(h, r->dataset->manifest.rejects
                        ? "<p>The manifest counts rejects, but rejects.jsonl is missing.</p>\n"
                        : "<p>None: every image of the label file that was asked for is in the data set.</p>\n");
        return;
    }
    reasons(h, r);
    html_raw(h, "<div class=\"wide\"><table><thead><tr><th>name</th><th>kind</th><th>reason</th><th>detail</th></tr>"
                "</thead>\n<tbody>");
    for (i = 0; i < r->reject_count && i < REJECTS_SHOWN; i++) {
        const struct report_reject *reject = &r->reject[i];

        html_raw(h, "<tr><th>");
        html_text(h, reject->name);
        html_raw(h, "</th><td class=\"t\">");
        html_text(h, reject->kind);
        html_raw(h, "</td><td class=\"t\">");
        html_text(h, reject->reason);
        html_raw(h, "</td><td class=\"t\">");
        html_text(h, reject->detail);
        html_raw(h, "</td></tr>\n");
    }
    html_raw(h, "</tbody></table></div>\n");
    if (r->reject_count > REJECTS_SHOWN)
        html_format(h, "<p>and %s more in rejects.jsonl</p>\n", TEXT(r->reject_count - REJECTS_SHOWN));
}
