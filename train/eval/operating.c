/*
 * operating.c - thresholds and calibration of the best model, from its evaluation on val; see operating.h
 *
 * Newton's method with step halving, on logits of mean 0 and deviation 1: Lin, Lin and Weng, "A note on Platt's
 * probabilistic outputs for support vector machines", Machine Learning 68 (2007).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/operating.h"

#include "eval/ranking.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ITERATIONS 100
#define HALVINGS   50
#define FLAT       1e-10 /* the mean gradient at the optimum */
#define NEARLY     1e-7  /* accepted if rounding prevents a better one */

const char *const operating_rule_name[OPERATING_RULES] = {"youden", "sensitivity_90"};

const char *
operating_refusal_text(enum operating_refusal refusal)
{
    static const char *const text[] = {
        [OPERATING_COMPLETE] = NULL,
        [OPERATING_FEW_POSITIVES] = "fewer than 10 positives",
        [OPERATING_FEW_NEGATIVES] = "fewer than 10 negatives",
        [OPERATING_CONSTANT] = "all outputs are equal",
        [OPERATING_NO_OPTIMUM] = "the calibration does not converge",
    };

    return text[refusal];
}

_Static_assert(OPERATING_FEWEST == 10, "the texts above name it");

/* ---- calibration ------------------------------------------------------------------------------------------------- */

/* The images with a known label. */
struct fit {
    const float *logit;
    const uint8_t *label;
    size_t count, stride;
    double mean, deviation; /* of their logits */
    double target[2];       /* by label */
    size_t of[2];           /* images by label */
};

/* The mean loss at (a, b), with its gradient and the matrix of second derivatives. */
struct slope {
    double loss, ga, gb, haa, hab, hbb;
};

static void
describe(struct fit *f)
{
    double sum = 0, squares = 0;
    size_t i;

    for (i = 0; i < f->count; i++) {
        if (f->label[i * f->stride] > 1)
            continue;
        f->of[f->label[i * f->stride]]++;
        sum += (double)f->logit[i * f->stride];
    }
    f->mean = sum / (double)(f->of[0] + f->of[1]);
    for (i = 0; i < f->count; i++) {
        double d = (double)f->logit[i * f->stride] - f->mean;

        squares += f->label[i * f->stride] > 1 ? 0 : d * d;
    }
    f->deviation = sqrt(squares / (double)(f->of[0] + f->of[1]));
    f->target[0] = 1 / ((double)f->of[0] + 2);
    f->target[1] = ((double)f->of[1] + 1) / ((double)f->of[1] + 2);
}

static struct slope
slope_at(const struct fit *f, double a, double b)
{
    struct slope s = {.loss = 0};
    double n = (double)(f->of[0] + f->of[1]);
    size_t i;

    for (i = 0; i < f->count; i++) {
        unsigned label = f->label[i * f->stride];
        double z, x, t, p, d, w;

        if (label > 1)
            continue;
        z = ((double)f->logit[i * f->stride] - f->mean) / f->deviation;
        x = a * z + b;
        t = f->target[label];
        p = 1 / (1 + exp(-x));
        d = p - t;
        w = p * (1 - p);
        s.loss += (x > 0 ? x : 0) - t * x + log1p(exp(-fabs(x)));
        s.ga += d * z;
        s.gb += d;
        s.haa += w * z * z;
        s.hab += w * z;
        s.hbb += w;
    }
    return (struct slope){s.loss / n, s.ga / n, s.gb / n, s.haa / n, s.hab / n, s.hbb / n};
}

static bool
is_flat(const struct slope *s, double limit)
{
    return fabs(s->ga) < limit && fabs(s->gb) < limit;
}

/* Go along Newton's direction, half as far each time until the loss is lower; returns false if it never is. */
static bool
descend(const struct fit *f, double *a, double *b, struct slope *s)
{
    double determinant = s->haa * s->hbb - s->hab * s->hab, step = 1;
    double da = -(s->hbb * s->ga - s->hab * s->gb) / determinant;
    double db = -(s->haa * s->gb - s->hab * s->ga) / determinant;
    int i;

    if (!(determinant > 0) || !isfinite(da) || !isfinite(db))
        return false;
    for (i = 0; i < HALVINGS; i++, step /= 2) {
        struct slope next = slope_at(f, *a + step * da, *b + step * db);

        if (next.loss < s->loss) {
            *a += step * da;
            *b += step * db;
            *s = next;
            return true;
        }
    }
    return false;
}

enum operating_refusal
operating_calibrate(const float *logit, const uint8_t *label, size_t count, size_t stride, double *a, double *b)
{
    struct fit f = {.logit = logit, .label = label, .count = count, .stride = stride};
    double slope = 0, offset;
    struct slope s;
    int i;

    *a = *b = (double)NAN;
    describe(&f);
    if (f.of[1] < OPERATING_FEWEST)
        return OPERATING_FEW_POSITIVES;
    if (f.of[0] < OPERATING_FEWEST)
        return OPERATING_FEW_NEGATIVES;
    if (!(f.deviation > 0))
        return OPERATING_CONSTANT;
    offset = log(((double)f.of[1] + 1) / ((double)f.of[0] + 1));
    s = slope_at(&f, slope, offset);
    for (i = 0; i < ITERATIONS && !is_flat(&s, FLAT); i++)
        if (!descend(&f, &slope, &offset, &s))
            break;
    if (!is_flat(&s, NEARLY))
        return OPERATING_NO_OPTIMUM;
    *a = slope / f.deviation;
    *b = offset - slope * f.mean / f.deviation;
    return OPERATING_COMPLETE;
}

/* ---- thresholds -------------------------------------------------------------------------------------------------- */

static double
value_of(enum operating_rule rule, uint64_t tp, uint64_t fp, uint64_t positives, uint64_t negatives)
{
    double sensitivity = positives > 0 ? (double)tp / (double)positives : (double)NAN;

    if (rule == OPERATING_SENSITIVITY)
        return sensitivity;
    return negatives > 0 ? sensitivity - (double)fp / (double)negatives : (double)NAN;
}

/* The highest threshold with 9 of 10 positives above it. */
static struct operating_point
find_sensitivity(const struct ranking *r, uint64_t positives, uint64_t negatives)
{
    uint64_t tp = 0, fp = 0;
    size_t i;

    for (i = 0; i < r->steps; i++) {
        tp += r->step[i].positives;
        fp += r->step[i].before + r->step[i].negatives;
        if (10 * tp >= 9 * positives)
            break;
    }
    return (struct operating_point){metrics_threshold(r->step[i].score),
                                    value_of(OPERATING_SENSITIVITY, tp, fp, positives, negatives), tp, fp};
}

static void
choose_finding(const struct evaluation *e, const struct ranking *ranking, unsigned k, struct finding_operating *out)
{
    const struct finding_metrics *m = &e->metrics.finding[k];
    unsigned i;

    out->positives = m->positives;
    out->negatives = m->negatives;
    out->refusal = operating_calibrate(e->logit + k, e->label + k, e->count, e->outputs, &out->a, &out->b);
    for (i = 0; i < OPERATING_RULES; i++)
        out->point[i] = (struct operating_point){.threshold = (double)NAN, .value = (double)NAN};
    if (out->refusal != OPERATING_COMPLETE && out->refusal != OPERATING_NO_OPTIMUM)
        return;
    out->point[OPERATING_YOUDEN] = m->point[CRITERION_YOUDEN];
    out->point[OPERATING_SENSITIVITY] = find_sensitivity(&ranking[k], m->positives, m->negatives);
}

enum chex_status
operating_choose(const struct evaluation *e, const struct chex_split_info *split, enum precision precision,
                 struct operating *out, struct chex_error *err)
{
    struct scores scores = {
        .count = e->count, .outputs = e->outputs, .score = e->probability, .label = e->label, .patients = e->patients};
    uint32_t *patient = calloc(e->count ? e->count : 1, sizeof(*patient)); /* thresholds count images */
    struct ranking *ranking = NULL;
    enum chex_status status = patient ? CHEX_OK : error_memory(err);
    unsigned k;

    *out = (struct operating){.there = e->not_finite == 0 && e->count > 0};
    scores.patient = patient;
    if (status == CHEX_OK && out->there)
        status = rankings_new(&scores, 1, &ranking, err);
    if (status == CHEX_OK && out->there) {
        snprintf(out->split, sizeof(out->split), "%s", split->name);
        snprintf(out->members, sizeof(out->members), "%s", split->members_sha256);
        out->precision = precision;
        out->tta = e->tta;
        out->images = e->count;
        out->patients = e->patients;
        out->outputs = e->outputs;
        for (k = 0; k < e->outputs; k++)
            choose_finding(e, ranking, k, &out->finding[k]);
    }
    rankings_free(ranking, e->outputs);
    free(patient);
    out->there = out->there && status == CHEX_OK;
    return status;
}

struct operating_point
operating_apply(const struct evaluation *e, unsigned finding, enum operating_rule rule, double threshold)
{
    const struct finding_metrics *m = &e->metrics.finding[finding];
    struct operating_point out = {.threshold = threshold};
    size_t i;

    for (i = 0; i < e->count; i++) {
        size_t at = i * e->outputs + finding;

        if (e->probability[at] >= (float)threshold) {
            out.true_positives += e->label[at] == 1;
            out.false_positives += e->label[at] == 0;
        }
    }
    out.value = value_of(rule, out.true_positives, out.false_positives, m->positives, m->negatives);
    return out;
}
