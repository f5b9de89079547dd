/*
 * warp.cc - collective operations of a warp: __syncwarp(), shuffles, votes
 *
 * Only __syncwarp() orders memory, as in CUDA.  It is a violation if lanes wait at different operations that need each
 * other's lanes, or if a lane never arrives (block.cc: deadlock).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "block.h"

#include <stdlib.h>

namespace emulated
{
/*
 * The active operations of a warp.  Two of them never share a lane, except that lanes may still be leaving a completed
 * one.  These are plain arrays, because the thread sanitizer intercepts library functions that a fiber calls.
 */
static struct {
    meeting *open[WARP];
    unsigned count;
} warps[THREADS_MAX / WARP];
static meeting *spare;

static meeting *
new_meeting(uint32_t mask, place at)
{
    meeting *m = spare;

    if (m)
        spare = m->next;
    else
        m = new meeting;
    m->mask = mask;
    m->arrived = m->left = 0;
    m->at = at;
    TSAN(m->sync = NULL;)
    return m;
}

/* Copy single words: the thread sanitizer intercepts memcpy(). */
static void
copy_words(volatile uint32_t *to, const volatile uint32_t *from, size_t words)
{
    for (size_t i = 0; i < words; i++)
        to[i] = from[i];
}

meeting *
meet(uint32_t mask, place at, const void *in, size_t size, void (*complete)(meeting *m), bool orders_memory)
{
    auto &warp = warps[running->seen.warp];
    uint32_t bit = 1u << running->seen.lane;
    meeting *m = NULL;

    (void)orders_memory;
    if (!(mask & bit))
        violation(at, "a lane is not in its own mask %08x", mask);
    for (unsigned i = 0; i < warp.count; i++) {
        meeting *o = warp.open[i];

        if (o->mask & mask) {
            if (o->mask != mask || o->at.line != at.line)
                violation(at, "lanes of a warp meet in different places or with different masks, others at %s:%d",
                          o->at.file, o->at.line);
            m = o;
        }
    }
    if (!m)
        warp.open[warp.count++] = m = new_meeting(mask, at);
    copy_words(m->lane[running->seen.lane].in, (const uint32_t *)in, size / 4);
    m->arrived |= bit;
    TSAN(if (orders_memory) {
        if (!m->sync)
            m->sync = (char *)malloc(1);
        __tsan_release(m->sync);
    })
    if (m->arrived != mask) {
        wait_here(at);
    } else {
        for (unsigned i = 0; i < warp.count; i++)
            if (warp.open[i] == m)
                warp.open[i] = warp.open[--warp.count];
        if (complete)
            complete(m);
        COUNTED(if (mask == 0xffffffffu) traffic_warp(running->seen.warp);)
        for (unsigned lane = 0; lane < WARP; lane++)
            if ((mask & ~bit) >> lane & 1)
                release(lane_of_warp(lane));
    }
    TSAN(if (orders_memory) __tsan_acquire(m->sync);)
    return m;
}

void
leave(meeting *m)
{
    m->left |= 1u << running->seen.lane;
    if (m->left != m->mask)
        return;
    TSAN(free(m->sync);)
    m->next = spare;
    spare = m;
}

void
sync_warp(uint32_t mask, place at)
{
    leave(meet(mask, at, NULL, 0, NULL, true));
}

void
shuffle(uint32_t mask, const uint32_t *mine, unsigned words, unsigned from, uint32_t *out, place at)
{
    meeting *m = meet(mask, at, mine, words * 4, NULL, false);

    if (mask >> from & 1)
        copy_words(out, m->lane[from].in, words);
    else /* the value of a lane that takes no part is undefined */
        for (unsigned i = 0; i < words; i++)
            out[i] = 0xffffffffu;
    leave(m);
}

uint32_t
ballot(uint32_t mask, bool vote, place at)
{
    uint32_t word = vote, votes = 0;
    meeting *m = meet(mask, at, &word, 4, NULL, false);

    for (unsigned lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1)
            votes |= m->lane[lane].in[0] << lane;
    leave(m);
    return votes;
}
} // namespace emulated
