/*
 * runs_report.c - prints the table of many runs; see runs.h
 *
 * No run is marked as the best: a choice by the split that is reported makes its number too good.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/wrap.h"
#include "eval/predictions.h"
#include "inspect/diff/runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_TEXT 40

static bool
is_ensemble(const struct runs_diff *d, unsigned row)
{
    return row == d->count;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const char *
auroc_text(const struct runs_row *r, char out[NUMBER_TEXT])
{
    if (isnan(r->low))
        snprintf(out, NUMBER_TEXT, "%.4f [too few]", r->auroc);
    else
        snprintf(out, NUMBER_TEXT, "%.4f [%.4f, %.4f]", r->auroc, r->low, r->high);
    return out;
}

static const char *
difference_text(const struct measured *m, char out[NUMBER_TEXT])
{
    if (isnan(m->value))
        return "";
    if (isnan(m->low))
        snprintf(out, NUMBER_TEXT, "%+.4f [too few]", m->value);
    else
        snprintf(out, NUMBER_TEXT, "%+.4f [%+.4f, %+.4f]", m->value, m->low, m->high);
    return out;
}

static const char *
p_text(double p, char out[NUMBER_TEXT])
{
    snprintf(out, NUMBER_TEXT, "%.3f", p);
    return isnan(p) ? "" : out;
}

static void
print_row(const struct runs_diff *d, unsigned i)
{
    const struct runs_row *r = &d->row[i];
    char number[NUMBER_TEXT] = "ensemble", auroc[NUMBER_TEXT], difference[NUMBER_TEXT], p[NUMBER_TEXT],
         holm[NUMBER_TEXT], finding[INSPECT_TEXT];

    if (!is_ensemble(d, i))
        snprintf(number, sizeof(number), "%u", i + 1);
    if (d->defined == 0) {
        printf("%-8s n/a\n", number);
        return;
    }
    printf("%-8s %-24s %-27s %6s %6s  %s %.4f\n", number, auroc_text(r, auroc),
           difference_text(&r->difference, difference), p_text(r->p, p), p_text(r->holm, holm),
           inspect_text(inspect_bytes(d->run[0].p.finding[r->worst]), finding), r->worst_auroc);
}

static void
print_options(const struct runs_diff *d, unsigned i)
{
    const struct scored_run *run = &d->run[i];
    char path[PRINTABLE_TEXT], value[SCORED_OPTION], name[INSPECT_TEXT], text[INSPECT_TEXT];
    struct wrap w = {.out = stdout};
    unsigned k;

    wrap_put(&w, "", "%-8u %s", i + 1, printable_text(run->path, path));
    if (!run->options)
        wrap_put(&w, ": ", "options not known, there is no run.json");
    for (k = 0; run->options && k < d->options; k++)
        wrap_put(&w, k == 0 ? ": " : ", ", "%s %s", inspect_text(inspect_bytes(d->option[k]), name),
                 inspect_text(inspect_bytes(scored_run_option(run, d->option[k], value)), text));
    if (run->p.leaky)
        wrap_put(&w, "; ", "leaky: its results are too good");
    if (run->p.short_run[0])
        wrap_put(&w, "; ", "short run: %s", inspect_text(inspect_bytes(run->p.short_run), text));
    if (d->images.only[i] > 0)
        wrap_put(&w, "; ", "%llu of its images are not in all runs", (unsigned long long)d->images.only[i]);
    wrap_end(&w);
}

static void
print_seeds(const struct runs_diff *d)
{
    unsigned i, k;

    for (i = 0; i < d->groups; i++) {
        const struct seed_group *g = &d->seeds[i];
        struct wrap w = {.out = stdout};

        wrap_put(&w, "", "seeds    runs %u", g->run[0] + 1);
        for (k = 1; k < g->count; k++)
            wrap_put(&w, k + 1 < g->count ? ", " : " and ", "%u", g->run[k] + 1);
        wrap_put(&w, " ", "differ only in their seed: mean %.4f,", g->mean);
        wrap_put(&w, " ", "SD %.4f, %.4f to %.4f", g->deviation, g->least, g->most);
        wrap_end(&w);
    }
}

static void
print_text(void *result)
{
    const struct runs_diff *d = result;
    const char *warning = scored_split_warning(d->split);
    char images[FORMAT_THINGS], patients[FORMAT_THINGS], mean[NUMBER_TEXT], split[INSPECT_TEXT];
    unsigned i;

    if (d->in->common->quiet)
        return;
    printf("split    %s, %s of %s in all runs, members %.16s\n", inspect_text(inspect_bytes(d->split), split),
           format_things(d->images.count, "image", images), format_things(d->images.patients, "patient", patients),
           d->run[0].members);
    if (warning)
        printf("note     %s\n", warning);
    snprintf(mean, sizeof(mean), "mean AUROC of %u", d->defined);
    printf("%-8s %-24s %-27s %6s %6s  %s\n", "run", mean, "difference to run 1", "p", "Holm", "lowest AUROC");
    for (i = 0; i <= d->count; i++)
        print_row(d, i);
    for (i = 0; i < d->count; i++)
        print_options(d, i);
    print_seeds(d);
    wrap_line(stdout, "note",
              "intervals and p show how much the result depends on the patients of the split, and leave out "
              "the variance between seeds; the order is that of the command, and no run is chosen by this split");
    printf("         research use only, not for diagnosis\n");
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static const struct table_column columns[] = {{.name = "run"},
                                              {.name = "path"},
                                              {.name = "auroc"},
                                              {.name = "low"},
                                              {.name = "high"},
                                              {.name = "difference"},
                                              {.name = "difference_low"},
                                              {.name = "difference_high"},
                                              {.name = "p"},
                                              {.name = "holm"},
                                              {.name = "lowest_finding"},
                                              {.name = "lowest_auroc"},
                                              {.name = "left_out"},
                                              {.name = "leaky"},
                                              {.name = "short_run"},
                                              {.name = "options"},
                                              {.name = RESEARCH_COLUMN},
                                              {.name = NULL}};

static struct cell
number_cell(double x)
{
    return isnan(x) ? cell_none() : cell_number(x);
}

void
runs_diff_options(const struct runs_diff *d, unsigned run, char out[RUNS_OPTIONS_TEXT])
{
    char value[SCORED_OPTION];
    size_t used = 0;
    unsigned k;

    out[0] = '\0';
    for (k = 0; d->run[run].options && k < d->options && used < RUNS_OPTIONS_TEXT; k++)
        used += (size_t)snprintf(out + used, RUNS_OPTIONS_TEXT - used, "%s%s=%s", k > 0 ? " " : "", d->option[k],
                                 scored_run_option(&d->run[run], d->option[k], value));
}

static void
put_rows(struct table_writer *t, void *result)
{
    const struct runs_diff *d = result;
    char finding[INSPECT_TEXT], path[SCORED_FILE], options[RUNS_OPTIONS_TEXT], listed[4 * RUNS_OPTIONS_TEXT],
        shown[INSPECT_TEXT], number[16];
    unsigned i;

    for (i = 0; i <= d->count; i++) {
        const struct runs_row *r = &d->row[i];
        const struct scored_run *run = is_ensemble(d, i) ? NULL : &d->run[i];

        snprintf(number, sizeof(number), "%u", i + 1);
        if (run)
            runs_diff_options(d, i, options);
        table_row(
            t,
            (struct cell[]){
                cell_text(run ? number : "ensemble"),
                run ? inspect_name(t, run->path, path, sizeof(path)) : cell_none(), number_cell(r->auroc),
                number_cell(r->low), number_cell(r->high), number_cell(r->difference.value),
                number_cell(r->difference.low), number_cell(r->difference.high), number_cell(r->p),
                number_cell(r->holm),
                d->defined > 0 ? inspect_name(t, d->run[0].p.finding[r->worst], finding, sizeof(finding)) : cell_none(),
                d->defined > 0 ? cell_number(r->worst_auroc) : cell_none(),
                run ? cell_count(d->images.only[i]) : cell_none(), run ? cell_count(run->p.leaky) : cell_none(),
                run ? inspect_name(t, run->p.short_run, shown, sizeof(shown)) : cell_none(),
                run && run->options ? inspect_name(t, options, listed, sizeof(listed)) : cell_none(), cell_count(1)});
    }
}

static json_t *
row_json(const struct runs_diff *d, unsigned i)
{
    const struct runs_row *r = &d->row[i];
    json_t *row = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "auroc", real_json(r->auroc), "low",
                            real_json(r->low), "high", real_json(r->high), "difference", real_json(r->difference.value),
                            "difference_low", real_json(r->difference.low), "difference_high",
                            real_json(r->difference.high), "p", real_json(r->p), "holm", real_json(r->holm));
    json_t *lowest = d->defined == 0 ? json_null()
                                     : json_pack("{s:o, s:f}", "finding", text_json(d->run[0].p.finding[r->worst]),
                                                 "auroc", r->worst_auroc);

    (void)json_object_set_new(row, "lowest", lowest);
    return row;
}

static json_t *
run_json(const struct runs_diff *d, unsigned i)
{
    const struct scored_run *run = &d->run[i];
    json_t *object = row_json(d, i), *options = run->options ? json_object() : json_null();
    char value[SCORED_OPTION];
    unsigned k;

    for (k = 0; run->options && k < d->options; k++)
        (void)json_object_set_new(options, d->option[k], text_json(scored_run_option(run, d->option[k], value)));
    (void)json_object_set_new(object, "path", text_json(run->path));
    (void)json_object_set_new(object, "options", options);
    (void)json_object_set_new(object, "left_out", count_json(d->images.only[i]));
    (void)json_object_set_new(object, "leaky", json_boolean(run->p.leaky));
    (void)json_object_set_new(object, "short_run", text_json(run->p.short_run));
    return object;
}

static json_t *
seeds_json(const struct runs_diff *d)
{
    json_t *list = json_array();
    unsigned i, k;

    for (i = 0; i < d->groups; i++) {
        const struct seed_group *g = &d->seeds[i];
        json_t *runs = json_array();

        for (k = 0; k < g->count; k++)
            inspect_json_push(&runs, count_json(g->run[k] + 1));
        inspect_json_push(&list, json_pack("{s:o, s:f, s:f, s:f, s:f}", "runs", runs, "mean", g->mean, "sd",
                                           g->deviation, "min", g->least, "max", g->most));
    }
    return list;
}

static json_t *
result_json(void *result)
{
    const struct runs_diff *d = result;
    json_t *runs = json_array();
    unsigned i;

    for (i = 0; i < d->count; i++)
        inspect_json_push(&runs, run_json(d, i));
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o}", "kind", "runs", "use",
                     "research only, not for diagnosis", "split", text_json(d->split), "members_sha256",
                     d->run[0].members, "images", count_json(d->images.count), "patients",
                     count_json(d->images.patients), "findings", count_json(d->defined), "replicates", DIFF_DRAWS,
                     "swaps", DIFF_DRAWS, "seed", DIFF_SEED, "runs", runs, "ensemble", row_json(d, d->count), "seeds",
                     seeds_json(d));
}

const struct inspect_result runs_result = {columns, put_rows, result_json, print_text};
