/*
 * audit_compare.c - compares tensors and states bit by bit; see audit_private.h
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

void
audit_differ(struct audit_part *part, const char *prefix, const char *name, const char *was, const char *now)
{
    if (!note_first(part, prefix, name))
        return;
    snprintf(part->was, sizeof(part->was), "%.60s", was);
    snprintf(part->now, sizeof(part->now), "%.60s", now);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool
same_bits(const float *a, const float *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

void
audit_count_value(struct audit_part *part, float was, float now)
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
                audit_count_value(part, x[k], y[k]);
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
        if (is_compared(f->name, part->reduced) && strcmp(x, y) != 0)
            audit_differ(part, "state.", f->name, x, y);
    }
}
