/*
 * each.c - measures each of several runs for the report of a run; see each.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/each.h"

#include "inspect/diff/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is collected of all runs, and last of the ensemble. */
struct collected {
    unsigned runs, outputs;
    size_t cells;     /* gaps of all groups */
    double *gap;      /* [runs + 1][cells] */
    double *point;    /* [runs + 1][outputs][EACH_POINTS] */
    unsigned *marked; /* [cells] */
    bool same_groups; /* all runs have the groups of the first one */
    const struct run_groups *first;
    bool same_training; /* all runs were trained on the same images */
};

static enum chex_status
collect_begin(const struct run_report *r, struct collected *c, struct chex_error *err)
{
    const unsigned runs = r->many->diff->count, outputs = r->p.outputs;

    *c = (struct collected){.first = r->groups,
                            .runs = runs,
                            .outputs = outputs,
                            .cells = (size_t)r->groups->count * EACH_GAPS(outputs),
                            .same_groups = true,
                            .same_training = true};
    c->gap = calloc((runs + 1) * (c->cells + 1), sizeof(*c->gap));
    c->point = calloc((size_t)(runs + 1) * outputs * EACH_POINTS, sizeof(*c->point));
    c->marked = calloc(c->cells + 1, sizeof(*c->marked));
    return c->gap && c->point && c->marked ? CHEX_OK : error_memory(err);
}

static void
collect_gap(struct collected *c, unsigned run, size_t at, const struct subgroup_cell *cell)
{
    c->gap[run * c->cells + at] = cell->gap.value;
    if (run < c->runs)
        c->marked[at] += cell->holm < RUN_SIGNIFICANT;
}

static bool
have_same_names(const struct run_groups *a, const struct run_groups *b)
{
    unsigned g;

    if (a->count != b->count)
        return false;
    for (g = 0; g < a->count; g++)
        if (strcmp(a->group[g].name, b->group[g].name) != 0 || strcmp(a->group[g].rest, b->group[g].rest) != 0)
            return false;
    return true;
}

/* Collect the numbers of a run, or of the ensemble (run: the number of runs). */
static void
collect(struct collected *c, unsigned run, const struct run_report *o)
{
    unsigned g, m, k;

    for (k = 0; k < c->outputs; k++) {
        const struct finding_metrics *f = &o->metrics->finding[k];
        const struct run_point *p = &o->finding[k].point[OPERATING_YOUDEN];
        double *out = c->point + (run * c->outputs + k) * EACH_POINTS;
        bool there = o->finding[k].enough && !isnan(p->threshold);

        out[EACH_SENSITIVITY] = there ? run_share(p->true_positives, f->positives) : (double)NAN;
        out[EACH_SPECIFICITY] = there ? 1 - run_share(p->false_positives, f->negatives) : (double)NAN;
    }
    c->same_groups &= have_same_names(c->first, o->groups);
    for (g = 0; c->same_groups && g < o->groups->count; g++) {
        size_t at = (size_t)g * EACH_GAPS(c->outputs);

        for (k = 0; k < c->outputs; k++)
            for (m = 0; m < SUBGROUP_METRICS; m++)
                collect_gap(c, run, at + EACH_GAP(m, k), &o->groups->of[g].cell[m][k]);
        collect_gap(c, run, at + EACH_UNDERDIAGNOSIS(c->outputs), &o->groups->of[g].underdiagnosis);
    }
}

static enum chex_status
collect_end(struct collected *c, struct run_each *each, unsigned groups, struct chex_error *err)
{
    unsigned k, i;
    size_t at;

    for (k = 0; k < c->outputs; k++)
        for (i = 0; i < EACH_POINTS; i++)
            each->point[k][i] = run_spread_of(c->point + k * EACH_POINTS + i, (size_t)c->outputs * EACH_POINTS,
                                              c->runs);
    if (!c->same_groups || groups == 0)
        return CHEX_OK;
    each->gap = calloc(c->cells, sizeof(*each->gap));
    if (!each->gap)
        return error_memory(err);
    each->groups = groups;
    for (at = 0; at < c->cells; at++) {
        each->gap[at] = (struct each_gap){run_spread_of(c->gap + at, c->cells, c->runs), c->marked[at]};
        each->some += c->marked[at] > 0;
        each->all += c->marked[at] == c->runs;
    }
    return CHEX_OK;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static bool
same_training(const struct run_report *a, const struct run_report *b)
{
    return strcmp(a->dataset_id, b->dataset_id) == 0 && a->train[0] && strcmp(a->train, b->train) == 0 &&
           strcmp(a->fold, b->fold) == 0 && strcmp(a->limit, b->limit) == 0 && (!a->limit[0] || a->seed == b->seed);
}

/* Runs that were trained on the same images have the same floor. */
static enum chex_status
find_floor(const struct run_report *r, struct run_report *o, struct chex_error *err)
{
    if (same_training(r, o))
        return run_report_same_floor(o, r->floor, err);
    if (strcmp(r->dataset_id, o->dataset_id) == 0)
        return run_report_floor(o, err);
    return run_report_no_floor(o, "the data set of the run is not that of run 1", err);
}

static enum chex_status
measure_run(const struct run_report *r, struct run_report *o, struct chex_error *err)
{
    enum chex_status status = run_report_read(o, err);

    if (status == CHEX_OK)
        status = run_report_measure(o, err);
    if (status == CHEX_OK)
        status = find_floor(r, o, err);
    if (status == CHEX_OK)
        status = run_report_groups(o, err);
    if (status == CHEX_OK)
        run_report_answer(o);
    return status;
}

/* Measure a run after the first one, and collect its numbers. */
static enum chex_status
add_run(struct run_report *r, unsigned run, struct collected *c, struct each_validation *v, struct chex_error *err)
{
    struct run_each *each = r->many->each;
    struct run_report *o = calloc(1, sizeof(*o));
    enum chex_status status;

    if (!o)
        return error_memory(err);
    o->in = r->in;
    o->path = r->many->diff->run[run].path;
    o->split = r->split;
    o->is_other = true;
    snprintf(o->id, sizeof(o->id), "run%u-", run + 1);
    status = measure_run(r, o, err);
    if (status == CHEX_OK) {
        collect(c, run, o);
        each->used += run_report_is_used(o);
        c->same_training &= same_training(r, o);
        status = each_validation_add(v, o, run + 1, err);
    }
    if (status == CHEX_OK && run < EACH_SHOWN)
        each->of[each->shown++] = o;
    else
        run_report_free(o);
    return status;
}

enum chex_status
run_report_each(struct run_report *r, unsigned *failed, struct chex_error *err)
{
    struct each_validation v = {.why = ""};
    struct collected c = {.gap = NULL};
    struct run_each *each;
    char text[64];
    enum chex_status status;
    unsigned i;

    if (!r->many)
        return CHEX_OK;
    r->many->each = each = calloc(1, sizeof(*each));
    if (!each)
        return error_memory(err);
    each->of[each->shown++] = r;
    status = collect_begin(r, &c, err);
    if (status == CHEX_OK) {
        collect(&c, 0, r);
        each->used = run_report_is_used(r);
        status = each_validation_add(&v, r, 1, err);
    }
    for (i = 1; i < r->many->diff->count && status == CHEX_OK; i++) {
        *failed = i;
        snprintf(text, sizeof(text), "report   run %u of %u", i + 1, r->many->diff->count);
        progress_line_update(&r->in->line, text);
        status = add_run(r, i, &c, &v, err);
    }
    if (status == CHEX_OK) {
        *failed = 0;
        status = each_ensemble_make(r, &v, c.same_training, &each->ensemble, err);
    }
    if (status == CHEX_OK) {
        collect(&c, c.runs, each->ensemble);
        status = collect_end(&c, each, r->groups->count, err);
    }
    progress_line_clear(&r->in->line);
    each_validation_release(&v);
    free(c.gap);
    free(c.point);
    free(c.marked);
    return status;
}
