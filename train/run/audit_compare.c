/*
 * audit_compare.c - compares tensors, states and predictions bit by bit; see audit_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/audit_private.h"

#include "base/member.h"
#include "checkpoint/checkpoint_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Note the first difference; returns false if there was one before. */
static bool
note_first(struct audit_part *part, const char *prefix, const char *name)
{
    if (part->outcome == AUDIT_DIFFERS) {
        part->others++;
        return false;
    }
    part->outcome = AUDIT_DIFFERS;
    snprintf(part->name, sizeof(part->name), "%s%.200s", prefix, name);
    return true;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool
same_bits(const float *a, const float *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Count one differing value; a difference that is not a number stays the largest. */
static void
count_value(struct audit_part *part, float was, float now)
{
    double difference = fabs((double)was - (double)now);

    if (part->differing++ == 0) {
        snprintf(part->was, sizeof(part->was), "%.9g", (double)was);
        snprintf(part->now, sizeof(part->now), "%.9g", (double)now);
        part->largest = 0;
    }
    if (!isfinite(difference))
        part->largest = (double)NAN;
    else if (difference > part->largest)
        part->largest = difference;
}

void
audit_compare_tensors(struct audit_part *part, const char *prefix, const struct graph_tensor *tensor, size_t count,
                      const float *was, const float *now)
{
    size_t i, k;

    for (i = 0; was && now && i < count; i++) {
        const float *x = was + tensor[i].offset, *y = now + tensor[i].offset;

        if (memcmp(x, y, tensor[i].count * sizeof(*x)) == 0 || !note_first(part, prefix, tensor[i].name))
            continue;
        part->values = tensor[i].count;
        for (k = 0; k < tensor[i].count; k++)
            if (!same_bits(&x[k], &y[k]))
                count_value(part, x[k], y[k]);
    }
}

/* ---- the state --------------------------------------------------------------------------------------------------- */

static void
field_text(const struct state_field *f, const struct checkpoint_state *state, char *out, size_t size)
{
    const char *at = (const char *)state + f->offset;
    double real;

    switch (f->kind) {
    case STATE_COUNT:
    case STATE_NUMBER:
        snprintf(out, size, "%llu", (unsigned long long)member_get(at, f->size));
        break;
    case STATE_REAL:
        memcpy(&real, at, sizeof(real));
        snprintf(out, size, "%.17g", isnan(real) ? fabs(real) : real);
        break;
    case STATE_TEXT:
        snprintf(out, size, "%.40s", at);
        break;
    }
}

/*
 * Returns whether a field is compared.  Evaluations use the running statistics, and the mean loss of an epoch is a sum
 * of the ranks.
 */
static bool
is_compared(const char *name, bool reduced)
{
    static const char *const other[] = {"schedule_factor", "schedule_best", "schedule_bad_epochs", "best", "best_step",
                                        "bad_epochs",      "loss_sum"};
    size_t i;

    for (i = 0; reduced && i < sizeof(other) / sizeof(other[0]); i++)
        if (strcmp(name, other[i]) == 0)
            return false;
    return strcmp(name, "settings") != 0;
}

void
audit_compare_state(struct audit_part *part, const struct checkpoint_state *was, const struct checkpoint_state *now)
{
    const struct state_field *f;

    for (f = state_fields; f->name; f++) {
        char x[sizeof(part->was)], y[sizeof(part->now)];

        field_text(f, was, x, sizeof(x));
        field_text(f, now, y, sizeof(y));
        if (!is_compared(f->name, part->reduced) || strcmp(x, y) == 0 || !note_first(part, "state.", f->name))
            continue;
        memcpy(part->was, x, sizeof(x));
        memcpy(part->now, y, sizeof(y));
    }
}

/* ---- predictions ------------------------------------------------------------------------------------------------- */

static void
differ(struct audit_part *part, const char *name, const char *was, const char *now)
{
    if (!note_first(part, "", name))
        return;
    snprintf(part->was, sizeof(part->was), "%.60s", was);
    snprintf(part->now, sizeof(part->now), "%.60s", now);
}

static bool
same_columns(struct audit_part *part, const struct predictions *was, const struct evaluation *now)
{
    char x[24], y[24];
    unsigned k;

    snprintf(x, sizeof(x), "%zu", was->count);
    snprintf(y, sizeof(y), "%zu", now->count);
    if (was->count != now->count)
        differ(part, "images", x, y);
    snprintf(x, sizeof(x), "%u", was->outputs);
    snprintf(y, sizeof(y), "%u", now->outputs);
    if (was->outputs != now->outputs)
        differ(part, "findings", x, y);
    for (k = 0; part->outcome == AUDIT_EQUAL && k < now->outputs; k++)
        if (strcmp(was->finding[k], now->findings[k]) != 0)
            differ(part, "findings", was->finding[k], now->findings[k]);
    return part->outcome == AUDIT_EQUAL;
}

static const char *
label_text(uint8_t label)
{
    return label == CHEX_LABEL_UNKNOWN ? "unknown" : label ? "1" : "0";
}

/* The values of one image. */
static void
compare_image(struct audit_part *part, const struct predictions *was, const struct evaluation *now, size_t i)
{
    const struct evaluated_image *image = &now->image[i];
    char name[AUDIT_NAME];
    unsigned k;

    if (strcmp(was->image[i], image->name) != 0)
        differ(part, "image", was->image[i], image->name);
    if (strcmp(was->patient[i], image->person) != 0)
        differ(part, "patient", was->patient[i], image->person);
    for (k = 0; k < now->outputs; k++) {
        const size_t at = i * now->outputs + k;

        if (was->label[at] != now->label[at]) {
            snprintf(name, sizeof(name), "%.100s label_%.60s", image->name, now->findings[k]);
            differ(part, name, label_text(was->label[at]), label_text(now->label[at]));
        }
        if (same_bits(&was->probability[at], &now->probability[at]))
            continue;
        snprintf(name, sizeof(name), "%.100s prob_%.60s", image->name, now->findings[k]);
        if (part->outcome == AUDIT_EQUAL)
            note_first(part, "", name);
        if (part->differing > 0 || strcmp(part->name, name) == 0)
            count_value(part, was->probability[at], now->probability[at]);
        else
            part->others++;
    }
}

void
audit_compare_predictions(struct audit_part *part, const struct predictions *was, const struct evaluation *now)
{
    size_t i;

    if (!same_columns(part, was, now))
        return;
    part->values = (uint64_t)now->count * now->outputs;
    for (i = 0; i < now->count; i++)
        compare_image(part, was, now, i);
}
