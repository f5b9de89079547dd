/*
 * runs.c - compares many runs on one split; see runs.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/runs.h"

#include "run/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Returns whether an option can change the model: not paths, threads and how often a run saves. */
static bool
is_of_model(const char *name)
{
    const struct setting *s;

    if (strcmp(name, "init") == 0 || strcmp(name, "max-steps") == 0)
        return true;
    for (s = trainer_settings; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s->kind >= SETTING_FREE;
    return true; /* of another version */
}

static bool
differs(const struct runs_diff *d, const char *name)
{
    const json_t *value = NULL;
    bool first = true;
    unsigned i;

    for (i = 0; i < d->count; i++) {
        const json_t *other = json_object_get(d->run[i].options, name);

        if (!d->run[i].options)
            continue;
        if (!first && !(value == other || (value && other && json_equal(value, other))))
            return true;
        value = other;
        first = false;
    }
    return false;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool
is_listed(const struct runs_diff *d, const char *name)
{
    unsigned i;

    for (i = 0; i < d->options; i++)
        if (strcmp(d->option[i], name) == 0)
            return true;
    return false;
}

/* List the options that differ among the runs, by name. */
static void
find_options(struct runs_diff *d)
{
    const char *name;
    json_t *value;
    unsigned i;

    for (i = 0; i < d->count; i++) {
        json_object_foreach (d->run[i].options, name, value) {
            if (d->options < RUNS_OPTIONS && is_of_model(name) && !is_listed(d, name) && differs(d, name))
                d->option[d->options++] = name;
        }
    }
    qsort(d->option, d->options, sizeof(*d->option), by_name);
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

/* Returns whether two runs are known to differ in nothing but their seed. */
static bool
is_other_seed(const struct runs_diff *d, const struct scored_run *a, const struct scored_run *b)
{
    unsigned i;

    if (!a->options || !b->options || d->options == RUNS_OPTIONS)
        return false;
    for (i = 0; i < d->options; i++) {
        const json_t *x = json_object_get(a->options, d->option[i]), *y = json_object_get(b->options, d->option[i]);
        bool equal = x == y || (x && y && json_equal(x, y));

        if (equal == (strcmp(d->option[i], "seed") == 0))
            return false;
    }
    return is_listed(d, "seed");
}

static void
describe_group(const struct runs_diff *d, struct seed_group *g)
{
    double sum = 0, squares = 0;
    unsigned i;

    g->least = INFINITY;
    g->most = -INFINITY;
    for (i = 0; i < g->count; i++) {
        double auroc = d->row[g->run[i]].auroc;

        sum += auroc;
        g->least = fmin(g->least, auroc);
        g->most = fmax(g->most, auroc);
    }
    g->mean = sum / g->count;
    for (i = 0; i < g->count; i++)
        squares += (d->row[g->run[i]].auroc - g->mean) * (d->row[g->run[i]].auroc - g->mean);
    g->deviation = sqrt(squares / (g->count - 1));
}

/* A run belongs to the group of the first run that differs only in its seed from it; a seed is in a group once. */
static void
find_seeds(struct runs_diff *d)
{
    bool taken[SCORED_RUNS] = {false};
    unsigned i, k, n;

    for (i = 0; i < d->count && d->defined > 0; i++) {
        struct seed_group g = {.run = {i}, .count = 1};

        for (k = i + 1; k < d->count && !taken[i]; k++) {
            bool other = !taken[k];

            for (n = 0; n < g.count && other; n++)
                other = is_other_seed(d, &d->run[g.run[n]], &d->run[k]);
            if (other) {
                g.run[g.count++] = k;
                taken[k] = true;
            }
        }
        if (g.count < 2)
            continue;
        describe_group(d, &g);
        d->seeds[d->groups++] = g;
    }
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

/* Take the row of A or of B. */
static void
take_row(struct runs_diff *d, const struct comparison *c, int side, struct runs_row *row)
{
    unsigned k;

    *row = (struct runs_row){.auroc = c->mean.auroc[side],
                             .low = c->mean.low[side],
                             .high = c->mean.high[side],
                             .difference = {(double)NAN, (double)NAN, (double)NAN},
                             .p = (double)NAN,
                             .holm = (double)NAN,
                             .worst = c->outputs};
    if (side == 1) {
        row->difference = c->mean.difference;
        row->p = c->mean.p;
    }
    for (k = 0; k < c->outputs; k++) {
        double auroc = c->finding[k].auroc[side];

        if (!isnan(auroc) && (row->worst == c->outputs || auroc < row->worst_auroc)) {
            row->worst = k;
            row->worst_auroc = auroc;
        }
    }
    d->defined = c->defined;
}

static enum chex_status
mean_scores(const struct matched *m, float **out, struct chex_error *err)
{
    size_t values = m->count * m->outputs, i;
    unsigned k;

    *out = malloc(values * sizeof(**out));
    if (!*out)
        return error_memory(err);
    for (i = 0; i < values; i++) {
        double sum = 0;

        for (k = 0; k < m->runs; k++)
            sum += (double)m->score[k][i];
        (*out)[i] = (float)(sum / m->runs);
    }
    return CHEX_OK;
}

static enum chex_status
compare_runs(struct runs_diff *d, struct chex_error *err)
{
    const struct compare_options options = {
        .replicates = DIFF_DRAWS, .swaps = DIFF_DRAWS, .seed = DIFF_SEED, .threads = d->in->common->threads};
    struct comparison *c = malloc(sizeof(*c));
    double p[SCORED_RUNS + 1], holm[SCORED_RUNS + 1];
    enum chex_status status = c ? mean_scores(&d->images, &d->ensemble, err) : error_memory(err);
    unsigned i;

    for (i = 1; i <= d->count && status == CHEX_OK; i++) {
        const float *other = i < d->count ? d->images.score[i] : d->ensemble;
        const struct score_pair pair = matched_pair(&d->images, d->images.score[0], other);

        status = compare_scores(&pair, &options, c, err);
        if (status == CHEX_OK && i == 1)
            take_row(d, c, 0, &d->row[0]);
        if (status == CHEX_OK)
            take_row(d, c, 1, &d->row[i]);
    }
    for (i = 0; i <= d->count && status == CHEX_OK; i++)
        p[i] = d->row[i].p;
    if (status == CHEX_OK)
        compare_holm(p, holm, d->count + 1);
    for (i = 0; i <= d->count && status == CHEX_OK; i++)
        d->row[i].holm = holm[i];
    free(c);
    return status;
}

enum chex_status
runs_diff_make(struct inspect *in, const char *const *path, unsigned count, const char *split, struct runs_diff **out,
               unsigned *failed, struct chex_error *err)
{
    struct runs_diff *d = *out = calloc(1, sizeof(*d));
    enum chex_status status;
    unsigned i;

    *failed = 0;
    if (!d)
        return error_memory(err);
    d->in = in;
    d->split = split;
    d->count = count;
    for (i = 0; i < count; i++) {
        d->run[i].path = path[i];
        snprintf(d->run[i].label, sizeof(d->run[i].label), "run %u", i + 1);
    }
    status = scored_runs_read(d->run, count, split, failed, err);
    if (status == CHEX_OK)
        status = scored_runs_read_options(d->run, count, failed, err);
    if (status == CHEX_OK)
        status = matched_make(d->run, count, &d->images, err);
    if (status == CHEX_OK)
        status = compare_runs(d, err);
    if (status == CHEX_OK) {
        find_options(d);
        find_seeds(d);
    }
    return status;
}

void
runs_diff_free(struct runs_diff *d)
{
    unsigned i;

    if (!d)
        return;
    for (i = 0; i < d->count; i++)
        scored_run_release(&d->run[i]);
    matched_release(&d->images);
    free(d->ensemble);
    free(d);
}

int
inspect_runs_diff(struct inspect *in, const char *const *path, unsigned count, const char *split)
{
    struct runs_diff *d;
    struct chex_error err;
    unsigned failed;
    enum chex_status status = runs_diff_make(in, path, count, split, &d, &failed, &err);
    int code;

    if (status == CHEX_OK)
        inspect_print_result(in, &runs_result, d);
    code = status != CHEX_OK                  ? inspect_fail(in, path[failed], &err)
           : matched_left_out(&d->images) > 0 ? EXIT_DATA
                                              : EXIT_GOOD;
    runs_diff_free(d);
    return code;
}
