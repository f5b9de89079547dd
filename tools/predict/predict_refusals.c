/*
 * predict_refusals.c - lists what a prediction refused; see predict_write.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_write.h"

#include "base/ascii.h"
#include "dataset/dataset.h"

#include <stdlib.h>
#include <string.h>

static int
compare_refusals(const void *a, const void *b)
{
    const struct refusal *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->detail, y->detail);
}

size_t
prediction_damaged(const struct images *images)
{
    size_t count = 0, i;

    for (i = 0; i < images->source.archive_count; i++)
        count += images->content[i].damaged;
    return count;
}

/* The reason of --strict is the first doubt. */
static const char *
reason_of(const struct image_result *r)
{
    unsigned i;

    for (i = 0; i < DOUBTS; i++)
        if (r->doubts >> i & 1 && r->refused == CHEX_ERR_UNSUPPORTED)
            return doubt_names[i];
    return chex_status_name(r->refused);
}

struct refusal *
prediction_refusals(const struct prediction *p, size_t *count)
{
    const struct results *r = p->results;
    const struct source *s = &p->images->source;
    struct refusal *list = calloc((size_t)r->refused + s->archive_count + 1, sizeof(*list));
    size_t i;

    *count = 0;
    for (i = 0; list && i < r->count; i++)
        if (r->image[i].refused != CHEX_OK)
            list[(*count)++] = (struct refusal){p->images->names.entry[i].name, reason_of(&r->image[i]),
                                                r->image[i].detail};
    for (i = 0; list && i < s->archive_count; i++) {
        const struct archive_content *c = &p->images->content[i];

        if (c->damaged)
            list[(*count)++] = (struct refusal){path_tail(s->archive[i], strlen(s->archive[i]), 1),
                                                chex_status_name(c->fault.error.status), c->fault.error.text};
    }
    if (list)
        qsort(list, *count, sizeof(*list), compare_refusals);
    return list;
}
