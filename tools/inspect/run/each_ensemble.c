/*
 * each_ensemble.c - measures the ensemble of several runs for the report of a run; see each.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/each.h"

#include "inspect/diff/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- val --------------------------------------------------------------------------------------------------------- */

static bool
same_findings(const struct predictions *a, const struct predictions *b)
{
    unsigned k;

    for (k = 0; k < a->outputs && k < b->outputs && strcmp(a->finding[k], b->finding[k]) == 0; k++)
        ;
    return k == a->outputs && k == b->outputs;
}

/* Add the predictions of val of a run; returns false if they are of other images, or made in another way. */
static bool
add_predictions(struct each_validation *v, const struct run_report *val)
{
    const struct run_report *first = v->first;
    size_t values = val->p.count * val->p.outputs, i;

    if (strcmp(first->split, val->split) != 0 || strcmp(first->members, val->members) != 0 ||
        strcmp(first->tta, val->tta) != 0 || !predictions_same_images(&first->p, &val->p))
        return false;
    for (i = 0; i < values; i++)
        v->sum[i] += (double)val->p.probability[i];
    v->runs++;
    return true;
}

enum chex_status
each_validation_add(struct each_validation *v, const struct run_report *o, unsigned number, struct chex_error *err)
{
    struct run_report *val;
    struct chex_error why;
    enum chex_status status;

    if (!v->why[0] && !o->chosen_on[0])
        snprintf(v->why, sizeof(v->why), "run %u has no thresholds of its own", number);
    if (v->why[0])
        return CHEX_OK;
    val = calloc(1, sizeof(*val));
    if (!val)
        return error_memory(err);
    val->in = o->in;
    val->path = o->path;
    val->split = o->chosen_on;
    val->is_other = true;
    status = run_report_read(val, &why);
    if (status == CHEX_OK && !v->first) {
        v->first = val;
        v->sum = calloc(val->p.count * val->p.outputs, sizeof(*v->sum));
    }
    if (status == CHEX_ERR_MEMORY || (status == CHEX_OK && !v->sum))
        error_memory(err);
    else if (status != CHEX_OK)
        snprintf(v->why, sizeof(v->why), "run %u has no complete predictions of '%.64s'", number, o->chosen_on);
    else if (strcmp(val->checkpoint_sha256, o->checkpoint_sha256) != 0)
        snprintf(v->why, sizeof(v->why), "the predictions of '%.64s' of run %u are of other weights", o->chosen_on,
                 number);
    else if (!same_findings(&val->p, &o->p))
        snprintf(v->why, sizeof(v->why), "the predictions of '%.64s' of run %u have other findings", o->chosen_on,
                 number);
    else if (!add_predictions(v, val))
        snprintf(v->why, sizeof(v->why), "run %u chose its thresholds on other images, or other views of them", number);
    if (val != v->first)
        run_report_free(val);
    return status == CHEX_ERR_MEMORY || (status == CHEX_OK && !v->sum) ? CHEX_ERR_MEMORY : CHEX_OK;
}

void
each_validation_release(struct each_validation *v)
{
    run_report_free(v->first);
    free(v->sum);
}

/* ---- thresholds -------------------------------------------------------------------------------------------------- */

static void
set_operating(const struct operating *chosen, struct run_report *o)
{
    unsigned k, i;

    for (k = 0; k < o->p.outputs; k++) {
        const struct finding_operating *from = &chosen->finding[k];
        struct run_finding *f = &o->finding[k];
        const char *refused = operating_refusal_text(from->refusal);

        snprintf(f->refused, sizeof(f->refused), "%s", refused ? refused : "");
        f->a = from->a;
        f->b = from->b;
        for (i = 0; i < OPERATING_RULES; i++)
            f->point[i].threshold = from->point[i].threshold;
    }
}

/* The thresholds of a single run do not hold for the ensemble. */
static void
drop_operating(struct run_report *o)
{
    unsigned k, i;

    o->chosen_on[0] = '\0';
    o->optimistic = false;
    for (k = 0; k < o->p.outputs; k++) {
        struct run_finding *f = &o->finding[k];

        f->refused[0] = '\0';
        f->a = f->b = (double)NAN;
        for (i = 0; i < OPERATING_RULES; i++)
            f->point[i].threshold = (double)NAN;
    }
}

static enum chex_status
choose_operating(struct each_validation *v, struct run_report *o, struct chex_error *err)
{
    struct run_report *val = v->first;
    struct operating *chosen;
    enum chex_status status;
    size_t i;

    drop_operating(o);
    memcpy(o->unfitted, v->why, sizeof(o->unfitted));
    if (v->why[0])
        return CHEX_OK;
    chosen = calloc(1, sizeof(*chosen));
    if (!chosen)
        return error_memory(err);
    for (i = 0; i < val->p.count * val->p.outputs; i++)
        v->sum[i] /= v->runs;
    {
        const struct mean_scores mean = {
            .count = val->p.count, .outputs = val->p.outputs, .probability = v->sum, .label = val->p.label};
        const struct chex_split_info split = {.name = val->split, .members_sha256 = val->members};

        status = operating_choose_mean(&mean, &split, PRECISION_AUTO, TTA_NONE, chosen, err);
    }
    if (status == CHEX_OK && !chosen->there)
        snprintf(o->unfitted, sizeof(o->unfitted), "a mean probability of '%.64s' is 0 or 1", val->split);
    if (status == CHEX_OK && chosen->there) {
        snprintf(o->chosen_on, sizeof(o->chosen_on), "%s", val->split);
        o->optimistic = strcmp(val->members, o->members) == 0;
        set_operating(chosen, o);
    }
    free(chosen);
    return status;
}

/* ---- the ensemble ------------------------------------------------------------------------------------------------ */

/* The answers need to know on which images the runs were trained, and what their results are marked with. */
static void
copy_facts(const struct run_report *r, struct run_report *o)
{
    unsigned i;

    snprintf(o->id, sizeof(o->id), "ensemble-");
    memcpy(o->members, r->members, sizeof(o->members));
    memcpy(o->of, r->of, sizeof(o->of));
    o->splits = r->splits;
    o->used = r->many->each->used;
    o->used_of = r->many->diff->count;
    memcpy(o->limit, r->limit, sizeof(o->limit));
    for (i = 0; i < r->many->diff->count; i++) {
        const struct predictions *p = &r->many->diff->run[i].p;

        o->p.leaky |= p->leaky;
        if (p->short_run[0])
            memcpy(o->p.short_run, p->short_run, sizeof(o->p.short_run));
    }
}

enum chex_status
each_ensemble_make(const struct run_report *r, struct each_validation *v, bool floor, struct run_report **out,
                   struct chex_error *err)
{
    const struct matched *images = &r->many->diff->images;
    enum chex_status status = run_report_subset(r, images->row, images->count, out, err);
    struct run_report *o = *out;

    if (status != CHEX_OK)
        return status;
    memcpy(o->p.probability, r->many->diff->ensemble, images->count * images->outputs * sizeof(*o->p.probability));
    copy_facts(r, o);
    status = choose_operating(v, o, err);
    if (status == CHEX_OK)
        status = run_report_measure(o, err);
    if (status == CHEX_OK)
        status = floor ? run_report_same_floor(o, r->floor, err)
                       : run_report_no_floor(o, "the runs are not known to have the same training images", err);
    if (status == CHEX_OK)
        status = run_report_groups(o, err);
    if (status == CHEX_OK)
        run_report_answer(o);
    return status;
}
