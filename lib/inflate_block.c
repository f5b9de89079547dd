/*
 * inflate_block.c - a block of Huffman codes: one symbol at a time, and the loop in plain C
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inflate_private.h"

/* Copy a match; up to 15 bytes behind it are written too. */
static inline void
copy_far(uint8_t *out, const uint8_t *from, const uint8_t *end)
{
    do {
        memcpy(out, from, 16);
        out += 16;
        from += 16;
    } while (out < end);
}

/* A distance below 16.  The bytes behind it repeat, so what is copied may be twice as far away each time. */
static inline void
copy_near(uint8_t *out, size_t distance, const uint8_t *end)
{
    const uint8_t *from = out - distance;

    while (distance < 16 && out < end) {
        memmove(out, from, 16);
        out += distance;
        distance *= 2;
    }
    if (out < end)
        copy_far(out, from, end);
}

/* The lowest n bits, n at most 63. */
static inline uint64_t
lowest(uint64_t bits, unsigned n)
{
    return bits & (((uint64_t)1 << n) - 1);
}

static inline void
drop(struct stream *s, unsigned n)
{
    s->bits >>= n;
    s->count -= n;
}

/* A distance's code and extra bits; 0 for an invalid one. */
static size_t
read_distance(const struct inflate_tables *t, struct stream *s)
{
    uint32_t e = t->dist[lowest(s->bits, DIST_BITS)];
    uint64_t before;

    if (e & IS_OTHER_DIST) {
        if (e == IS_OTHER_DIST)
            return 0;
        drop(s, BITS(e));
        e = t->dist[(e >> 16) + lowest(s->bits, DIST_CODE_BITS(e))];
        if (e & IS_OTHER_DIST)
            return 0;
    }
    before = s->bits;
    drop(s, BITS(e));
    return (e >> 16) + (size_t)(lowest(before, BITS(e)) >> DIST_CODE_BITS(e));
}

enum block_end
inflate_match(const struct inflate_tables *t, struct stream *s, size_t length)
{
    size_t distance = read_distance(t, s);

    if (distance == 0 || distance > (size_t)(s->out - s->out_begin))
        return BLOCK_DAMAGED;
    if (distance >= 16)
        copy_far(s->out, s->out - distance, s->out + length);
    else
        copy_near(s->out, distance, s->out + length);
    s->out += length;
    return BLOCK_GOES_ON;
}

/* 20 bits at most for a length with its code, 28 for the distance: one refill is enough. */
enum block_end
inflate_symbol(const struct inflate_tables *t, struct stream *s)
{
    uint64_t e, before;

    REFILL(*s);
    e = t->symbol[lowest(s->bits, LITLEN_BITS)];
    if (e & IS_SUBTABLE) {
        drop(s, BITS(e));
        e = t->symbol[(e >> 32) + lowest(s->bits, CODE_BITS(e))];
    }
    before = s->bits;
    drop(s, BITS(e));
    if (!(e & IS_OTHER) && COUNT(e) > 0) {
        *s->out++ = (uint8_t)(e >> 32);
        return BLOCK_GOES_ON;
    }
    if (!(e & IS_OTHER))
        return inflate_match(t, s, LENGTH(e));
    if (e & IS_LENGTH)
        return inflate_match(t, s, LENGTH(e) + (size_t)(lowest(before, BITS(e)) >> CODE_BITS(e)));
    return (e & IS_END) && s->out <= s->out_end ? BLOCK_ENDED : BLOCK_DAMAGED;
}

/* ---- the loop in plain C -------------------------------------------------------------------------------------- */

#define TURN_TARGET
#define TURN_NAME(x)                     x##_c
#define TURN_LOWEST(v, n)                ((v) & (((uint64_t)1 << ((n)&63)) - 1))
#define TURN_UNLESS(to, condition, from) ((to) = (condition) ? (to) : (from))
#define TURN_KEEP(pointer)

#include "inflate_turn.h"
