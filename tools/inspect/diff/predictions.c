/*
 * predictions.c - `diff --split NAME A B`: AUROC of two runs on the same images, with intervals and a test; see
 * eval/compare.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/predictions.h"

#include "base/json.h"
#include "common/printable.h"
#include "eval/compare.h"
#include "eval/predictions.h"
#include "inspect/diff/scored_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHANGED 20 /* images in the list of the largest changes */

struct change {
    size_t image; /* of the matched images */
    unsigned finding;
    float by;
};

struct predictions_diff {
    struct inspect *in;
    const char *split;
    struct scored_run side[2];
    struct matched images;
    struct score_pair pair;
    struct comparison result;
    struct flag_agreement flags[METRICS_OUTPUTS];
    bool flagged; /* some finding has thresholds in both runs */
    struct change *change;
};

/* ---- images that changed most ------------------------------------------------------------------------------------ */

static int
by_change(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->by != y->by)
        return x->by < y->by ? 1 : -1;
    return x->image < y->image ? -1 : x->image > y->image;
}

/* For each image, the finding whose probability changed most; the largest changes first. */
static enum chex_status
find_changes(struct predictions_diff *d, struct chex_error *err)
{
    const struct score_pair *p = &d->pair;
    size_t i;
    unsigned k;

    d->change = calloc(p->count, sizeof(*d->change));
    if (!d->change)
        return error_memory(err);
    for (i = 0; i < p->count; i++) {
        struct change *c = &d->change[i];

        c->image = i;
        for (k = 0; k < p->outputs; k++) {
            float by = fabsf(p->score[1][i * p->outputs + k] - p->score[0][i * p->outputs + k]);

            if (by > c->by)
                *c = (struct change){i, k, by};
        }
    }
    qsort(d->change, p->count, sizeof(*d->change), by_change);
    return CHEX_OK;
}

static size_t
changes(const struct predictions_diff *d)
{
    size_t count = 0;

    while (count < CHANGED && count < d->pair.count && d->change[count].by > 0)
        count++;
    return count;
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

static void
compare_all_flags(struct predictions_diff *d)
{
    unsigned k;

    for (k = 0; k < d->pair.outputs; k++) {
        const double threshold[2] = {d->side[0].threshold[k], d->side[1].threshold[k]};

        compare_flags(&d->pair, k, threshold, &d->flags[k]);
        d->flagged |= !isnan(threshold[0]) && !isnan(threshold[1]);
    }
}

/* Returns the images that a run flags; 0 is A. */
static uint64_t
flagged_by(const struct flag_agreement *f, int run)
{
    return f->count[1][1] + (run == 0 ? f->count[1][0] : f->count[0][1]);
}

static bool
has_flags(const struct predictions_diff *d, unsigned finding)
{
    return !isnan(d->side[0].threshold[finding]) && !isnan(d->side[1].threshold[finding]);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

#define NUMBER_TEXT 40

static const char *
p_text(double p, char out[NUMBER_TEXT])
{
    if (isnan(p))
        return "";
    snprintf(out, NUMBER_TEXT, "%.3f", p);
    return out;
}

static const char *
difference_text(const struct compared *c, char out[NUMBER_TEXT])
{
    if (isnan(c->difference.low))
        snprintf(out, NUMBER_TEXT, "%+.4f [too few]", c->difference.value);
    else
        snprintf(out, NUMBER_TEXT, "%+.4f [%+.4f, %+.4f]", c->difference.value, c->difference.low, c->difference.high);
    return out;
}

static void
print_row(int width, const char *name, const char *positives, const struct compared *c, const char *kappa)
{
    char difference[NUMBER_TEXT], p[NUMBER_TEXT], holm[NUMBER_TEXT];

    if (isnan(c->auroc[0]))
        printf("%-*s %9s  %-6s  %-6s  %-27s %6s %6s", width, name, positives, "n/a", "", "", "", "");
    else
        printf("%-*s %9s  %.4f  %.4f  %-27s %6s %6s", width, name, positives, c->auroc[0], c->auroc[1],
               difference_text(c, difference), p_text(c->p, p), p_text(c->holm, holm));
    printf(kappa[0] ? " %6s\n" : "%s\n", kappa);
}

static const char *
kappa_text(const struct flag_agreement *f, char out[NUMBER_TEXT])
{
    snprintf(out, NUMBER_TEXT, "%.3f", f->kappa);
    return isnan(f->kappa) ? "n/a" : out;
}

static void
print_changes(const struct predictions_diff *d)
{
    char name[INSPECT_TEXT], finding[INSPECT_TEXT];
    size_t i, count = changes(d);

    for (i = 0; i < count; i++) {
        const struct change *c = &d->change[i];
        size_t at = c->image * d->pair.outputs + c->finding;
        const char *label = d->images.label[at] == 1 ? "1" : d->images.label[at] == 0 ? "0" : "unknown";

        printf("%-8s %s  %s %.3f -> %.3f, label %s\n", i == 0 ? "changed" : "",
               inspect_text(inspect_bytes(d->side[0].p.image[d->images.row[c->image]]), name),
               inspect_text(inspect_bytes(d->side[0].p.finding[c->finding]), finding), (double)d->images.score[0][at],
               (double)d->images.score[1][at], label);
    }
}

static void
print_marks(const struct predictions_diff *d)
{
    char name[INSPECT_TEXT];
    int i;

    for (i = 0; i < 2; i++) {
        if (d->side[i].p.leaky)
            printf("leaky    %c is of a leaky run: its results are too good\n", 'A' + i);
        if (d->side[i].p.short_run[0])
            printf("short    %c is of a short run: %s\n", 'A' + i,
                   inspect_text(inspect_bytes(d->side[i].p.short_run), name));
    }
}

static void
print_text(void *result)
{
    const struct predictions_diff *d = result;
    const char *warning = scored_split_warning(d->split);
    char file[PRINTABLE_TEXT], both[FORMAT_THINGS], patients[FORMAT_THINGS], a[FORMAT_TEXT], b[FORMAT_TEXT],
        mean[NUMBER_TEXT], name[INSPECT_TEXT], kappa[NUMBER_TEXT];
    int width = 20, i;
    unsigned k;

    if (d->in->common->quiet)
        return;
    for (i = 0; i < 2; i++)
        printf("%c        %s\n", 'A' + i, printable_text(d->side[i].file, file));
    printf("images   %s of %s in both, %s only in A, %s only in B\n", format_things(d->pair.count, "image", both),
           format_things(d->pair.patients, "patient", patients), format_count(d->images.only[0], a),
           format_count(d->images.only[1], b));
    print_marks(d);
    if (warning)
        printf("note     %s\n", warning);
    for (k = 0; k < d->pair.outputs; k++) {
        int length = (int)strlen(inspect_text(inspect_bytes(d->side[0].p.finding[k]), name));

        width = length > width ? length : width;
    }
    printf("%-*s %9s  %-6s  %-6s  %-27s %6s %6s %6s\n", width, "AUROC", "positives", "A", "B", "B - A", "p", "Holm",
           "kappa");
    for (k = 0; k < d->pair.outputs; k++)
        print_row(width, inspect_text(inspect_bytes(d->side[0].p.finding[k]), name),
                  format_count(d->result.positives[k], a), &d->result.finding[k], kappa_text(&d->flags[k], kappa));
    snprintf(mean, sizeof(mean), "mean of %u", d->result.defined);
    print_row(width, mean, "", &d->result.mean, "");
    printf("kappa    %s\n", d->flagged ? "agreement of the flags of A and B, each at its own threshold of val (Youden)"
                                       : "n/a: a run has no thresholds of val");
    print_changes(d);
    printf("         research use only, not for diagnosis\n");
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
    {.name = "finding"},   {.name = "positives"},    {.name = "negatives"},     {.name = "a"},
    {.name = "b"},         {.name = "difference"},   {.name = "low"},           {.name = "high"},
    {.name = "p"},         {.name = "holm"},         {.name = "kappa"},         {.name = "flagged_a"},
    {.name = "flagged_b"}, {.name = "flagged_both"}, {.name = RESEARCH_COLUMN}, {.name = NULL}};

static struct cell
number_cell(double x)
{
    return isnan(x) ? cell_none() : cell_number(x);
}

static struct cell
flag_cell(const struct predictions_diff *d, unsigned finding, uint64_t count)
{
    return has_flags(d, finding) ? cell_count(count) : cell_none();
}

static void
put_rows(struct table_writer *t, void *result)
{
    const struct predictions_diff *d = result;
    char name[INSPECT_TEXT];
    unsigned k;

    for (k = 0; k < d->pair.outputs; k++) {
        const struct compared *c = &d->result.finding[k];
        const struct flag_agreement *f = &d->flags[k];

        table_row(t,
                  (struct cell[]){inspect_name(t, d->side[0].p.finding[k], name, sizeof(name)),
                                  cell_count(d->result.positives[k]), cell_count(d->result.negatives[k]),
                                  number_cell(c->auroc[0]), number_cell(c->auroc[1]), number_cell(c->difference.value),
                                  number_cell(c->difference.low), number_cell(c->difference.high), number_cell(c->p),
                                  number_cell(c->holm), number_cell(f->kappa), flag_cell(d, k, flagged_by(f, 0)),
                                  flag_cell(d, k, flagged_by(f, 1)), flag_cell(d, k, f->count[1][1]),
                                  t->list ? cell_none() : cell_count(1)}); /* a document says it at its top */
    }
}

static json_t *
changes_json(const struct predictions_diff *d)
{
    json_t *list = json_array();
    size_t i, count = changes(d);

    for (i = 0; i < count; i++) {
        const struct change *c = &d->change[i];
        size_t at = c->image * d->pair.outputs + c->finding, row = d->images.row[c->image];

        inspect_json_push(&list,
                          json_pack("{s:o, s:o, s:o, s:f, s:f, s:o}", "image", text_json(d->side[0].p.image[row]),
                                    "patient", text_json(d->side[0].p.patient[row]), "finding",
                                    text_json(d->side[0].p.finding[c->finding]), "a", (double)d->images.score[0][at],
                                    "b", (double)d->images.score[1][at], "label",
                                    d->images.label[at] > 1 ? json_null() : json_integer(d->images.label[at])));
    }
    return list;
}

static json_t *
marks_json(const struct predictions_diff *d, bool leaky)
{
    if (leaky)
        return json_pack("[b, b]", d->side[0].p.leaky, d->side[1].p.leaky);
    return json_pack("[o, o]", text_json(d->side[0].p.short_run), text_json(d->side[1].p.short_run));
}

static json_t *
result_json(void *result)
{
    struct predictions_diff *d = result;
    const struct compared *m = &d->result.mean;
    json_t *mean = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "findings", count_json(d->result.defined), "a",
                             real_json(m->auroc[0]), "b", real_json(m->auroc[1]), "difference",
                             real_json(m->difference.value), "low", real_json(m->difference.low), "high",
                             real_json(m->difference.high), "p", real_json(m->p));

    return json_pack("{s:s, s:s, s:[o, o], s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o}",
                     "kind", "predictions", "use", "research only, not for diagnosis", "paths",
                     text_json(d->side[0].path), text_json(d->side[1].path), "split", text_json(d->split),
                     "members_sha256", d->side[0].members, "images", count_json(d->pair.count), "patients",
                     count_json(d->pair.patients), "only_a", count_json(d->images.only[0]), "only_b",
                     count_json(d->images.only[1]), "leaky", marks_json(d, true), "short_run", marks_json(d, false),
                     "replicates", DIFF_DRAWS, "swaps", DIFF_DRAWS, "seed", DIFF_SEED, "findings",
                     inspect_rows_json(columns, put_rows, d), "mean", mean, "changed", changes_json(d));
}

static const struct inspect_result how = {columns, put_rows, result_json, print_text};

int
inspect_predictions_diff(struct inspect *in, const char *a, const char *b, const char *split)
{
    struct predictions_diff d = {
        .in = in, .split = split, .side = {{.path = a, .label = "A"}, {.path = b, .label = "B"}}};
    const struct compare_options options = {
        .replicates = DIFF_DRAWS, .swaps = DIFF_DRAWS, .seed = DIFF_SEED, .threads = in->common->threads};
    struct chex_error err;
    unsigned failed = 1;
    enum chex_status status = scored_runs_read(d.side, 2, split, &failed, &err);
    int code;

    if (status == CHEX_OK)
        status = matched_make(d.side, 2, &d.images, &err);
    if (status == CHEX_OK) {
        d.pair = matched_pair(&d.images, d.images.score[0], d.images.score[1]);
        status = compare_scores(&d.pair, &options, &d.result, &err);
        compare_all_flags(&d);
    }
    if (status == CHEX_OK)
        status = find_changes(&d, &err);
    if (status == CHEX_OK)
        inspect_print_result(in, &how, &d);
    code = status != CHEX_OK                 ? inspect_fail(in, d.side[failed].path, &err)
           : matched_left_out(&d.images) > 0 ? EXIT_DATA
                                             : EXIT_GOOD;
    scored_run_release(&d.side[0]);
    scored_run_release(&d.side[1]);
    matched_release(&d.images);
    free(d.change);
    return code;
}
