/*
 * details_json.c - findings, answers, groups and shortcuts of a run for scripts; see run.h, schemas/inspect.schema.json
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include <math.h>

json_t *
run_measured_json(const struct measured *m)
{
    return json_pack("{s:o,s:o,s:o}", "value", real_json(m->value), "low", real_json(m->low), "high",
                     real_json(m->high));
}

json_t *
run_spread_json(const struct run_spread *s)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "mean", real_json(s->mean), "sd", real_json(s->deviation), "min",
                     real_json(s->least), "max", real_json(s->most), "ensemble", real_json(s->ensemble));
}

static json_t *
bins_json(const struct calibration *c)
{
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < c->bins; i++)
        inspect_json_push(&list,
                          json_pack("{s:o,s:o,s:o}", "images", count_json(c->bin[i].images), "positives",
                                    count_json(c->bin[i].positives), "probability", real_json(c->bin[i].probability)));
    return list;
}

static json_t *
calibration_json(const struct calibration *c)
{
    if (isnan(c->brier))
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "brier", real_json(c->brier), "skill", real_json(c->skill),
                     "slope", real_json(c->slope), "intercept", real_json(c->intercept), "ece", real_json(c->ece),
                     "ece_perfect", real_json(c->perfect), "bins", bins_json(c));
}

static json_t *
point_json(const struct finding_metrics *m, const struct run_point *p)
{
    uint64_t tp = p->true_positives, fp = p->false_positives, fn = m->positives - tp, tn = m->negatives - fp;

    if (isnan(p->threshold))
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "threshold", real_json(p->threshold), "sensitivity",
                     real_json(run_share(tp, m->positives)), "specificity", real_json(run_share(tn, m->negatives)),
                     "ppv", real_json(run_share(tp, tp + fp)), "npv", real_json(run_share(tn, tn + fn)),
                     "true_positives", count_json(tp), "false_positives", count_json(fp), "true_negatives",
                     count_json(tn), "false_negatives", count_json(fn));
}

static json_t *
floor_json(const struct run_report *r, unsigned k)
{
    const struct compared *c = &r->floor->result.finding[k];

    if (!r->floor->fitted[k])
        return json_null();
    return json_pack("{s:o,s:o}", "auroc", real_json(c->auroc[0]), "difference", run_measured_json(&c->difference));
}

static json_t *
decision_json(const struct run_decision *d)
{
    json_t *list = json_array();
    unsigned t;

    for (t = 0; t < RUN_DECISIONS; t++)
        inspect_json_push(&list, json_pack("{s:f,s:f,s:f}", "threshold", d->threshold[t], "network", d->network[t],
                                           "all", d->all[t]));
    return list;
}

/* A finding with too few patients has only counts. */
static json_t *
finding_json(const struct run_report *r, unsigned k)
{
    const struct finding_metrics *m = &r->metrics->finding[k];
    const struct run_finding *f = &r->finding[k];
    json_t *object = json_pack("{s:o,s:o,s:o,s:o,s:b}", "name", text_json(f->name), "positives",
                               count_json(m->positives), "negatives", count_json(m->negatives), "positive_patients",
                               count_json(m->positive_patients), "too_few", !f->enough);
    unsigned i;

    if (!f->enough)
        return object;
    for (i = 0; i < METRIC_COUNT; i++)
        inspect_json_set(&object, metric_info[i].name, run_measured_json(&m->metric[i]));
    inspect_json_set(&object, "floor", floor_json(r, k));
    inspect_json_set(&object, "raw", calibration_json(&f->raw));
    inspect_json_set(&object, "calibrated", calibration_json(&f->calibrated));
    inspect_json_set(&object, "net_benefit", decision_json(&f->decision));
    inspect_json_set(&object, "refused", text_json(f->refused[0] ? f->refused : NULL));
    for (i = 0; i < OPERATING_RULES; i++)
        inspect_json_set(&object, operating_rule_name[i], point_json(m, &f->point[i]));
    return object;
}

json_t *
run_findings_json(const struct run_report *r)
{
    json_t *list = json_array();
    unsigned k;

    for (k = 0; k < r->p.outputs; k++)
        inspect_json_push(&list, finding_json(r, k));
    return list;
}

static json_t *
answers_json(const struct run_report *r)
{
    static const char *const level[RUN_ANSWER_LEVELS] = {[RUN_GOOD] = "good", [RUN_NOTE] = "note", [RUN_LOOK] = "look"};
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < r->answers; i++)
        inspect_json_push(&list, json_pack("{s:s,s:s,s:s,s:o}", "id", r->answer[i].id, "title", r->answer[i].title,
                                           "level", level[r->answer[i].level], "text", text_json(r->answer[i].text)));
    return list;
}

static json_t *
gap_json(const struct subgroup_cell *c)
{
    if (isnan(c->gap.value))
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "group", real_json(c->value[0]), "rest", real_json(c->value[1]), "gap",
                     run_measured_json(&c->gap), "p", real_json(c->p), "holm", real_json(c->holm));
}

static json_t *
group_json(const struct run_report *r, unsigned g)
{
    const struct subgroup *s = &r->groups->of[g];
    const struct run_group *group = &r->groups->group[g];
    json_t *list = json_array();
    unsigned k;

    for (k = 0; k < r->p.outputs; k++)
        inspect_json_push(&list,
                          json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", text_json(r->finding[k].name), "tpr",
                                    gap_json(&s->cell[SUBGROUP_TPR][k]), "fpr", gap_json(&s->cell[SUBGROUP_FPR][k]),
                                    "auroc", gap_json(&s->cell[SUBGROUP_AUROC][k]), "bias",
                                    gap_json(&s->cell[SUBGROUP_BIAS][k]), "ece", real_json(group->calibration[k].ece),
                                    "ece_perfect", real_json(group->calibration[k].perfect)));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "name", text_json(group->name), "rest", text_json(group->rest),
                     "images", count_json(s->images[0]), "rest_images", count_json(s->images[1]), "underdiagnosis",
                     gap_json(&s->underdiagnosis), "findings", list);
}

static json_t *
groups_json(const struct run_report *r)
{
    json_t *list = json_array();
    unsigned g;

    for (g = 0; g < r->groups->count; g++)
        if (r->groups->group[g].shown)
            inspect_json_push(&list, group_json(r, g));
    return list;
}

static json_t *
shortcuts_json(const struct run_report *r)
{
    json_t *list = json_array();
    unsigned k;

    for (k = 0; k < r->p.outputs && !r->groups->missing[0]; k++) {
        const struct run_shortcut *s = &r->groups->shortcut[k];

        inspect_json_push(&list, json_pack("{s:o,s:o,s:o,s:o}", "name", text_json(r->finding[k].name), "both_views",
                                           run_measured_json(&s->pooled), "within_views", real_json(s->within), "view",
                                           run_measured_json(&s->view)));
    }
    return list;
}

json_t *
run_details_json(const struct run_report *r)
{
    return json_pack("{s:o,s:o,s:o,s:o}", "answers", answers_json(r), "findings", run_findings_json(r), "groups",
                     groups_json(r), "shortcuts", shortcuts_json(r));
}
