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
    for (i = 0; i < plan->range_count; i++)
        *plan->range_of[i] = plan->activations + plan->range[i].offset;
    return CHEX_OK;
}

/* ---- activations by live range --------------------------------------------------------------------------------- */

/*
 * Node i runs forward at time i and backward at time 2 * nodes - 1 - i.  Without training each slot has its own layout,
 * because different images may be at different nodes at the same time.
 */

static void
add_range(struct plan *plan, size_t begin, size_t end, size_t floats, float **where)
{
    bool kept = plan->host.options.train && plan->host.options.keep;
    size_t last = 2 * plan->graph->node_count - 1;

    plan->range[plan->range_count] = (struct live_range){
        .size = floats, .begin = kept ? 0 : begin, .end = kept ? last : end};
    plan->range_of[plan->range_count++] = where;
}

static void
make_ranges(struct plan *plan)
{
    size_t last = 2 * plan->graph->node_count - 1, i;
    unsigned batch = plan->host.options.batch;
    bool train = plan->host.options.train;

    for (i = 0; i < plan->graph->buffer_count; i++) {
        struct tensor *s = &plan->tensor[i];

        if (i == plan->graph->input || s->norm != NO_NODE)
            continue;
        s->image = (size_t)s->blocks * BLOCK * s->pixels;
        if (train) {
            add_range(plan, s->first, last - s->first, batch * s->image, &s->value);
            add_range(plan, last - s->last, last - s->first, batch * s->image, &s->gradient);
        } else {
            add_range(plan, s->first, s->last, s->image, &s->value);
        }
    }
}

bool
plan_want_activations(struct plan *plan)
{
    size_t i;

    plan->range = plan_take(plan, 2 * plan->graph->buffer_count, sizeof(*plan->range));
    plan->range_of = plan_take(plan, 2 * plan->graph->buffer_count, sizeof(*plan->range_of));
    if (!plan->range || !plan->range_of)
        return false;
    make_ranges(plan);
    if (!live_ranges_place(plan->range, plan->range_count, &plan->activation_floats))
        return false;
    for (i = 0; i < plan->graph->buffer_count; i++)
        plan->tensor[i].slot = plan->host.options.train ? plan->tensor[i].image : plan->activation_floats;
    if (!plan->host.options.train && !size_mul(plan->activation_floats, plan->slots, &plan->activation_floats))
        plan->activation_floats = SIZE_MAX;
    return plan_want(plan, &plan->activations, plan->activation_floats, sizeof(float));
}
