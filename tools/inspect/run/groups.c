/*
 * groups.c - groups of images, and how outputs depend on the view, in the report of a run; see run.h, eval/subgroups.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/floor.h"
#include "inspect/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOW_UP_MOST 100000
#define OLD            60 /* years */
#define GROUP_AP       1  /* in the list below */

enum group_kind { KIND_SEX, KIND_VIEW, KIND_AGE, KIND_FOLLOW_UP, KIND_SEX_AGE };

/* low and high: ages of KIND_AGE (enum floor_age), numbers of KIND_FOLLOW_UP, sex and whether old of KIND_SEX_AGE */
static const struct {
    const char *name, *rest;
    enum group_kind kind;
    int low, high;
} groups[RUN_GROUPS] = {
    {"female", "male", KIND_SEX, 0, 0},
    [GROUP_AP] = {"AP", "PA", KIND_VIEW, 0, 0},
    {"age 0-19", "other ages", KIND_AGE, FLOOR_0, 0},
    {"age 20-39", "other ages", KIND_AGE, FLOOR_20, 0},
    {"age 40-59", "other ages", KIND_AGE, FLOOR_40, 0},
    {"age 60-79", "other ages", KIND_AGE, FLOOR_60, 0},
    {"age 80 and more", "other ages", KIND_AGE, FLOOR_80, 0},
    {"first image", "follow-ups", KIND_FOLLOW_UP, 0, 0},
    {"follow-up 1-4", "other images", KIND_FOLLOW_UP, 1, 4},
    {"follow-up 5 and more", "other images", KIND_FOLLOW_UP, 5, FOLLOW_UP_MOST},
    {"female below 60", "all others", KIND_SEX_AGE, 'F', 0},
    {"female from 60", "all others", KIND_SEX_AGE, 'F', 1},
    {"male below 60", "all others", KIND_SEX_AGE, 'M', 0},
    {"male from 60", "all others", KIND_SEX_AGE, 'M', 1},
};

/* ---- sides ------------------------------------------------------------------------------------------------------- */

/* Returns the follow-up number of a name such as 00000123_004.png, or -1. */
static int
follow_up(const char *name)
{
    const char *mark = strrchr(name, '_');
    size_t digits = mark ? strspn(mark + 1, "0123456789") : 0;

    return digits > 0 && digits <= 5 && mark[1 + digits] == '.' ? atoi(mark + 1) : -1;
}

static enum subgroup_side
side_if(bool known, bool member)
{
    return !known ? SUBGROUP_OUT : member ? SUBGROUP_IN : SUBGROUP_REST;
}

static enum subgroup_side
side_of(const struct predictions *p, size_t i, unsigned group)
{
    int low = groups[group].low, high = groups[group].high, number;
    bool sexed = p->sex[i] != 'U', ap = strcmp(p->view[i], "AP") == 0;

    switch (groups[group].kind) {
    case KIND_SEX:
        return side_if(sexed, p->sex[i] == 'F');
    case KIND_VIEW:
        return side_if(ap || strcmp(p->view[i], "PA") == 0, ap);
    case KIND_AGE:
        return side_if(!isnan(p->age[i]), (int)floor_age(p->age[i]) == low);
    case KIND_FOLLOW_UP:
        number = follow_up(p->image[i]);
        return side_if(number >= 0, number >= low && number <= high);
    case KIND_SEX_AGE:
        break;
    }
    return side_if(sexed && !isnan(p->age[i]), p->sex[i] == low && (p->age[i] >= OLD) == (high == 1));
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* Count the gaps that the tables show. */
static unsigned
count_gaps(const struct run_groups *of, size_t outputs)
{
    unsigned g, m, count = 0;
    size_t k;

    for (g = 0; g < of->count; g++) {
        count += isnan(of->of[g].underdiagnosis.gap.value) ? 0 : 1;
        for (m = 0; m < SUBGROUP_METRICS; m++)
            for (k = 0; k < outputs; k++)
                count += isnan(of->of[g].cell[m][k].gap.value) ? 0 : 1;
    }
    return count;
}

/* Measure the calibration of the group by itself, without the rest. */
static enum chex_status
calibrate_group(const struct run_report *r, const struct subgroup_input *in, struct run_group *g,
                struct chex_error *err)
{
    const size_t outputs = in->s->outputs;
    double *p = malloc(in->s->count * sizeof(*p));
    uint8_t *label = malloc(in->s->count);
    enum chex_status status;
    unsigned k;
    size_t i, n;

    g->calibration = calloc(outputs, sizeof(*g->calibration));
    status = p && label && g->calibration ? CHEX_OK : error_memory(err);
    for (k = 0; k < outputs && status == CHEX_OK; k++) {
        for (i = n = 0; i < in->s->count && r->finding[k].enough; i++) {
            if (in->side[i] != SUBGROUP_IN)
                continue;
            p[n] = (double)in->probability[i * outputs + k];
            label[n++] = in->s->label[i * outputs + k];
        }
        status = calibration_measure(p, label, n, 1, &g->calibration[k], err);
    }
    free(p);
    free(label);
    return status;
}

/* Measure the groups that `file` has, or those that this file knows. */
static enum chex_status
measure_groups(struct run_report *r, struct subgroup_input *in, uint8_t *side, const struct group_file *file,
               struct chex_error *err)
{
    unsigned count = file ? file->groups : RUN_GROUPS, g;
    enum chex_status status = CHEX_OK;
    size_t i;

    in->side = side;
    for (g = 0; g < count && status == CHEX_OK; g++) {
        struct run_group *group = &r->groups->group[r->groups->count];
        struct subgroup *out = &r->groups->of[r->groups->count++];

        for (i = 0; i < in->s->count; i++)
            side[i] = (uint8_t)(file ? group_file_side(file, g, i) : side_of(&r->p, i, g));
        if (file) {
            group_file_name(file, g, group->name, group->rest);
        } else {
            snprintf(group->name, sizeof(group->name), "%s", groups[g].name);
            snprintf(group->rest, sizeof(group->rest), "%s", groups[g].rest);
        }
        status = subgroup_measure(in, out, err);
        group->shown = out->images[0] > 0 && out->images[1] > 0;
        if (status == CHEX_OK && group->shown)
            status = calibrate_group(r, in, group, err);
    }
    return status;
}

/* Set probabilities for the calibration of groups: calibrated where the model can. */
static void
calibrate(const struct run_report *r, float *probability)
{
    unsigned k;
    size_t i;

    for (k = 0; k < r->p.outputs; k++) {
        const struct run_finding *f = &r->finding[k];

        for (i = 0; i < r->p.count; i++) {
            size_t at = i * r->p.outputs + k;
            double z = calibration_logit((double)r->p.probability[at]);

            probability[at] = isnan(f->a) ? r->p.probability[at] : (float)(1 / (1 + exp(-(f->a * z + f->b))));
        }
    }
}

static enum chex_status
measure_all_groups(struct run_report *r, const struct group_file *file, struct chex_error *err)
{
    const struct scores s = run_scores(r);
    float *threshold = malloc(s.outputs * sizeof(*threshold));
    float *probability = malloc(s.count * s.outputs * sizeof(*probability));
    uint8_t *side = malloc(s.count);
    struct subgroup_input in = {.s = &s,
                                .threshold = threshold,
                                .probability = probability,
                                .replicates = RUN_DRAWS,
                                .seed = RUN_SEED,
                                .threads = r->in->common->threads};
    enum chex_status status = threshold && probability && side ? CHEX_OK : error_memory(err);
    unsigned k;

    for (k = 0; k < s.outputs && status == CHEX_OK; k++)
        threshold[k] = (float)r->finding[k].point[OPERATING_YOUDEN].threshold;
    if (status == CHEX_OK)
        calibrate(r, probability);
    if (status == CHEX_OK && r->p.people)
        status = measure_groups(r, &in, side, NULL, err);
    if (status == CHEX_OK && file)
        status = measure_groups(r, &in, side, file, err);
    free(threshold);
    free(probability);
    free(side);
    r->groups->shown_gaps = status == CHEX_OK ? count_gaps(r->groups, s.outputs) : 0;
    return status == CHEX_OK ? subgroups_correct(r->groups->of, r->groups->count, s.outputs, &r->groups->tested, err)
                             : status;
}

/* ---- shortcuts --------------------------------------------------------------------------------------------------- */

/* Labels of two outputs: the finding among AP and PA images, and the view AP among those without the finding. */
static void
label_views(const struct predictions *p, unsigned k, float *score, uint8_t *label)
{
    size_t i;

    for (i = 0; i < p->count; i++) {
        uint8_t finding = p->label[i * p->outputs + k];
        enum subgroup_side side = side_of(p, i, GROUP_AP);

        score[2 * i] = score[2 * i + 1] = p->probability[i * p->outputs + k];
        label[2 * i] = side == SUBGROUP_OUT ? CHEX_LABEL_UNKNOWN : finding;
        label[2 * i + 1] = side == SUBGROUP_OUT || finding != 0 ? CHEX_LABEL_UNKNOWN : side == SUBGROUP_IN;
    }
}

static double
within_views(const struct run_report *r, unsigned k)
{
    const struct subgroup_cell *c = &r->groups->of[GROUP_AP].cell[SUBGROUP_AUROC][k];
    double positives[2] = {0, 0};
    size_t i;

    for (i = 0; i < r->p.count; i++) {
        enum subgroup_side side = side_of(&r->p, i, GROUP_AP);

        if (side != SUBGROUP_OUT)
            positives[side] += r->p.label[i * r->p.outputs + k] == 1;
    }
    return (c->value[0] * positives[0] + c->value[1] * positives[1]) / (positives[0] + positives[1]);
}

static const struct measured no_value = {(double)NAN, (double)NAN, (double)NAN};

static enum chex_status
measure_shortcut(struct run_report *r, unsigned k, float *score, uint8_t *label, struct metrics *m,
                 struct chex_error *err)
{
    struct run_shortcut *out = &r->groups->shortcut[k];
    const struct scores s = {.count = r->p.count,
                             .outputs = 2,
                             .score = score,
                             .label = label,
                             .patient = r->patient,
                             .patients = r->patients};
    const struct finding_metrics *f = &m->finding[1];
    enum chex_status status;

    label_views(&r->p, k, score, label);
    status = metrics_compute(&s, RUN_DRAWS, RUN_SEED, r->in->common->threads, m, err);
    *out = (struct run_shortcut){no_value, within_views(r, k), no_value};
    if (status == CHEX_OK && !isnan(out->within))
        out->pooled = m->finding[0].metric[METRIC_AUROC];
    if (status == CHEX_OK && f->positives >= SUBGROUP_FEWEST && f->negatives >= SUBGROUP_FEWEST &&
        f->positive_patients >= METRICS_FEWEST_PATIENTS)
        out->view = f->metric[METRIC_AUROC];
    return status;
}

static enum chex_status
measure_shortcuts(struct run_report *r, struct chex_error *err)
{
    float *score = malloc(2 * r->p.count * sizeof(*score));
    uint8_t *label = malloc(2 * r->p.count);
    struct metrics *m = malloc(sizeof(*m));
    enum chex_status status = score && label && m ? CHEX_OK : error_memory(err);
    unsigned k;

    for (k = 0; k < r->p.outputs && status == CHEX_OK; k++)
        status = measure_shortcut(r, k, score, label, m, err);
    free(score);
    free(label);
    free(m);
    return status;
}

enum chex_status
run_report_groups(struct run_report *r, struct chex_error *err)
{
    const char *path = r->in->options->groups;
    struct group_file file = {.columns = 0};
    enum chex_status status;

    r->groups = calloc(1, sizeof(*r->groups));
    if (!r->groups)
        return error_memory(err);
    status = path ? group_file_read(path, &r->p, &file, err) : CHEX_OK;
    r->groups->of_file = file.groups;
    r->groups->without = file.without;
    r->groups->others = file.others;
    if (!r->p.people)
        snprintf(r->groups->missing, sizeof(r->groups->missing), "the predictions have no age, sex and view");
    if (status == CHEX_OK)
        status = measure_all_groups(r, path ? &file : NULL, err);
    if (status == CHEX_OK && r->p.people)
        status = measure_shortcuts(r, err);
    group_file_release(&file);
    return status;
}

void
run_groups_free(struct run_groups *g)
{
    unsigned i;

    for (i = 0; g && i < g->count; i++)
        free(g->group[i].calibration);
    free(g);
}
