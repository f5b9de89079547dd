/*
 * plan_memory.c - memory of a plan: allocates small arrays immediately; sums up large ones, compares the total with the
 * available memory, and allocates them at the end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include "backend/host_memory.h"
#include "base/number_format.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define HUGE_PAGE ((size_t)2 << 20)

/* Compute the bytes of an allocation with its alignment; false on overflow. */
static bool
piece_bytes(size_t count, size_t size, size_t *align, size_t *bytes)
{
    if (!size_mul(count ? count : 1, size, bytes) || *bytes > SIZE_MAX - HUGE_PAGE)
        return false;
    *align = *bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    *bytes = (*bytes + *align - 1) / *align * *align;
    return true;
}

void *
plan_take(struct plan *plan, size_t count, size_t size)
{
    void **owned = array_grow(plan->owned, &plan->owned_capacity, plan->owned_count, sizeof(*owned)), *p;
    size_t bytes, align;

    if (!owned)
        return NULL;
    plan->owned = owned;
    if (!piece_bytes(count, size, &align, &bytes))
        return NULL;
    p = aligned_alloc(align, bytes);
    if (!p)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (align == HUGE_PAGE)
        madvise(p, bytes, MADV_HUGEPAGE);
#endif
    memset(p, 0, bytes);
    plan->bytes += bytes;
    plan->owned[plan->owned_count++] = p;
    return p;
}

bool
plan_want(struct plan *plan, void *where, size_t count, size_t size)
{
    struct wanted *wanted = array_grow(plan->wanted, &plan->wanted_capacity, plan->wanted_count, sizeof(*wanted));
    size_t bytes, align;

    if (!wanted)
        return false;
    plan->wanted = wanted;
    wanted[plan->wanted_count++] = (struct wanted){where, count, size};
    /* An overflowing size counts as more than the available memory. */
    if (!piece_bytes(count, size, &align, &bytes) || !size_add(plan->wanted_bytes, bytes, &plan->wanted_bytes))
        plan->wanted_bytes = SIZE_MAX;
    return true;
}

static enum chex_status
too_little(const struct plan *plan, uint64_t available, struct chex_error *err)
{
    char needed[FORMAT_TEXT], there[FORMAT_TEXT];

    if (plan->wanted_bytes == SIZE_MAX)
        return error_set(err, CHEX_ERR_MEMORY, "a micro-batch of %u images needs more memory than can be counted",
                         plan->host.options.batch);
    return error_set(err, CHEX_ERR_MEMORY, "a micro-batch of %u images needs %s of memory, of which %s are free",
                     plan->host.options.batch, format_bytes_compared(plan->wanted_bytes, available, needed),
                     format_bytes_compared(available, plan->wanted_bytes, there));
}

enum chex_status
plan_count(const struct plan *plan, struct plan_memory *out, struct chex_error *err)
{
    if (plan->wanted_bytes == SIZE_MAX)
        return too_little(plan, 0, err);
    host_memory_parts(&plan->host.options, out);
    out->activations = plan->activation_floats * sizeof(float);
    out->workspace = plan->bytes + plan->wanted_bytes - out->parameters - out->optimizer - out->activations;
    return CHEX_OK;
}

enum chex_status
plan_allocate(struct plan *plan, struct chex_error *err)
{
    uint64_t available = host_memory_available();
    size_t i;

    if (plan->wanted_bytes > available)
        return too_little(plan, available, err);
    for (i = 0; i < plan->wanted_count; i++) {
        void *p = plan_take(plan, plan->wanted[i].count, plan->wanted[i].size);

        if (!p)
            return too_little(plan, available, err);
        memcpy(plan->wanted[i].where, &p, sizeof(p)); /* `where` is the address of a pointer of any type */
    }
    for (i = 0; i < plan->span_count; i++)
        *plan->span[i].where = plan->activations + plan->span[i].at;
    return CHEX_OK;
}

/* ---- activations by lifetime ----------------------------------------------------------------------------------- */

/*
 * Node i runs forward at time i and backward at time 2 * nodes - 1 - i.  Without training each slot has its own layout,
 * because different images may be at different nodes at the same time.
 */

static int
larger_first(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    if (x->floats != y->floats)
        return x->floats < y->floats ? 1 : -1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/*
 * Returns the lowest offset that overlaps no span with an overlapping live range; the first `count` spans have offsets.
 */
static size_t
lowest_place(const struct span *span, size_t count)
{
    const struct span *s = &span[count];
    size_t at = 0, i;

    for (i = 0; i < count; i++) {
        bool together = span[i].begin <= s->end && s->begin <= span[i].end;

        if (together && span[i].at < at + s->floats && at < span[i].at + span[i].floats) {
            at = span[i].at + span[i].floats;
            i = (size_t)-1; /* restart: the offset has moved up */
        }
    }
    return at;
}

static size_t
make_spans(struct plan *plan, struct span *span)
{
    size_t last = 2 * plan->graph->node_count - 1, count = 0, i;
    bool kept;

    for (i = 0; i < plan->graph->buffer_count; i++) {
        struct tensor *s = &plan->tensor[i];

        if (i == plan->graph->input || s->norm != NO_NODE)
            continue;
        s->image = (size_t)s->blocks * BLOCK * s->pixels;
        kept = plan->host.options.train && plan->host.options.keep;
        span[count++] = (struct span){.floats = (plan->host.options.train ? plan->host.options.batch : 1) * s->image,
                                      .begin = kept ? 0 : s->first,
                                      .end = kept                       ? last
                                             : plan->host.options.train ? last - s->first
                                                                        : s->last,
                                      .where = &s->value};
        if (plan->host.options.train)
            span[count++] = (struct span){.floats = plan->host.options.batch * s->image,
                                          .begin = kept ? 0 : last - s->last,
                                          .end = kept ? last : last - s->first,
                                          .where = &s->gradient};
    }
    return count;
}

bool
plan_want_activations(struct plan *plan)
{
    struct span *span = plan_take(plan, 2 * plan->graph->buffer_count, sizeof(*span));
    size_t i;

    if (!span)
        return false;
    plan->span = span;
    plan->span_count = make_spans(plan, span);
    qsort(span, plan->span_count, sizeof(*span), larger_first);
    for (i = 0; i < plan->span_count; i++) {
        span[i].at = lowest_place(span, i);
        if (span[i].at + span[i].floats > plan->activation_floats)
            plan->activation_floats = span[i].at + span[i].floats;
    }
    for (i = 0; i < plan->graph->buffer_count; i++)
        plan->tensor[i].slot = plan->host.options.train ? plan->tensor[i].image : plan->activation_floats;
    if (!plan->host.options.train)
        plan->activation_floats *= plan->slots;
    return plan_want(plan, &plan->activations, plan->activation_floats, sizeof(float));
}
