/*
 * inflate_turn.h - the loop over a block of Huffman codes, for one kind of CPU
 *
 * Included once for each, after it has defined
 *     TURN_TARGET         the function attribute          TURN_NAME(x)   x with the kind in its name
 *     TURN_LOWEST(v, n)   the lowest n bits of v; n is below 64 in its lowest 8 bits
 *     TURN_UNLESS(to, condition, from)     to = from unless condition, without a branch
 *     TURN_KEEP(pointer)                   keeps the compiler from adding it to others before it is known
 *     TURN_SPREAD(out, distance)           16 bytes to out, those before it over and over; distance is 1 to 15
 *
 * Filtered rows of a radiograph are short runs of literals between short matches, and which comes next cannot be
 * predicted: a branch that asks costs more than all else.  So nothing asks.  A turn takes up to three literals, or up
 * to two and a length; then whatever it calls for of two that stand side by side in `then`: a distance, or up to three
 * literals more.  Either is 16 bytes copied to the output, from further up or from the table, of which some count.
 *
 * The chain from turn to turn is two look-ups and two shifts; the refill stands beside the second.  At least 56 bits
 * are there then.  A distance takes at most 21 of them, the next turn's literals and length 10, and there are enough
 * left for the index of what comes then.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* ---- one symbol at a time ------------------------------------------------------------------------------------- */

/* match() and symbol() are rare, and within the loop would take registers from it: so they stay outside. */

static inline TURN_TARGET void
TURN_NAME(drop)(struct stream *s, uint32_t n)
{
    s->bits >>= n & 63;
    s->count -= n;
}

/* A distance's code and extra bits; 0 for an invalid one. */
static inline TURN_TARGET size_t
TURN_NAME(read_distance)(const struct inflater *t, struct stream *s)
{
    uint32_t e = t->dist[TURN_LOWEST(s->bits, DIST_BITS)];
    uint64_t before;

    if (e & IS_OTHER_DIST) {
        if (e >> 16 == 0)
            return 0;
        TURN_NAME(drop)(s, BITS(e));
        e = t->dist[(e >> 16) + TURN_LOWEST(s->bits, DIST_CODE_BITS(e))];
        if (e & IS_OTHER_DIST)
            return 0;
    }
    before = s->bits;
    TURN_NAME(drop)(s, BITS(e));
    return (e >> 16) + (size_t)(TURN_LOWEST(before, BITS(e)) >> DIST_CODE_BITS(e));
}

/* Up to 15 bytes behind the match are written too. */
static inline TURN_TARGET void
TURN_NAME(copy)(uint8_t *out, size_t distance, size_t length)
{
    const uint8_t *end = out + length, *from = out - distance;

    if (distance >= 16) {
        for (; out < end; out += 16, from += 16)
            memcpy(out, from, 16);
        return;
    }
    TURN_SPREAD(out, distance);
    if (length > 16) {
        size_t step = 16 - 16 % distance; /* as many whole distances as fit */

        for (from = out, out += step; out < end; out += step)
            memmove(out, from, 16);
    }
}

/* A match whose length is known. */
static TURN_TARGET __attribute__((noinline)) enum block_end
TURN_NAME(match)(const struct inflater *t, struct stream *s, size_t length)
{
    size_t distance = TURN_NAME(read_distance)(t, s);

    if (distance == 0 || distance > (size_t)(s->out - s->out_begin))
        return BLOCK_DAMAGED;
    TURN_NAME(copy)(s->out, distance, length);
    s->out += length;
    return BLOCK_GOES_ON;
}

/* A literal, a match, or the end: 20 bits at most for a length with its code, 28 for the distance. */
static TURN_TARGET __attribute__((noinline)) enum block_end
TURN_NAME(symbol)(const struct inflater *t, struct stream *s)
{
    uint64_t e, before;

    REFILL(*s);
    e = t->symbol[TURN_LOWEST(s->bits, LITLEN_BITS)];
    if (e & IS_SUBTABLE) {
        TURN_NAME(drop)(s, BITS(e));
        e = t->symbol[(e >> 32) + TURN_LOWEST(s->bits, CODE_BITS(e))];
    }
    before = s->bits;
    TURN_NAME(drop)(s, BITS(e));
    if (!(e & IS_OTHER) && COUNT(e) > 0) {
        *s->out++ = (uint8_t)(e >> 32);
        return BLOCK_GOES_ON;
    }
    if (!(e & IS_OTHER))
        return TURN_NAME(match)(t, s, LENGTH(e));
    if (e & IS_LENGTH)
        return TURN_NAME(match)(t, s, LENGTH(e) + (size_t)(TURN_LOWEST(before, BITS(e)) >> CODE_BITS(e)));
    return (e & IS_END) && s->out <= s->out_end ? BLOCK_ENDED : BLOCK_DAMAGED;
}

/* ---- turns ---------------------------------------------------------------------------------------------------- */

#define WINDOW 32768

#define FILL()                                     \
    do {                                           \
        bits |= inflater_load(in) << (count & 63); \
        in += 7 - (count >> 3 & 7);                \
        count |= 56;                               \
    } while (0)

/* What is in registers, to and from the stream.  Above its 6 bits, count is whatever the entries had there. */
#define PUT() (s.bits = bits, s.count = (unsigned)count & 63, s.in = in, s.out = out)
#define GET() (bits = s.bits, count = s.count, in = s.in, out = s.out)

/* near, a constant where this is expanded: a distance may reach over the beginning. */
static inline __attribute__((always_inline)) TURN_TARGET enum block_end
TURN_NAME(turns)(const struct inflater *t, struct stream *stream, const uint8_t *stop, bool near)
{
    struct stream s = *stream;
    const uint8_t *const in_end = s.in_end + 8;
    enum block_end end;
    uint64_t bits, count;
    const uint8_t *in;
    uint8_t *out;

    GET();
    FILL();
    for (;;) {
        const uint8_t *then, *from;
        size_t index, length, distance;
        unsigned step, next;

        if (out > stop || in > in_end) {
            PUT();
            end = in <= in_end && out <= s.out_end ? BLOCK_GOES_ON : BLOCK_DAMAGED;
            break;
        }
        index = TURN_LOWEST(bits, TURN_BITS);
        step = t->step[index];
        if (step & IS_OTHER) {
            PUT();
            end = TURN_NAME(symbol)(t, &s);
            if (end != BLOCK_GOES_ON)
                break;
            GET();
            FILL();
            continue;
        }
        bits >>= step & 63;
        count -= step;
        then = (const uint8_t *)t->then + (step >> 8);
        TURN_KEEP(then);
        memcpy(out, t->literals[index], sizeof(t->literals[0]));
        length = t->literals[index][3];
        out += t->count[index];
        index = TURN_LOWEST(bits, DIST_BITS) * sizeof(t->then[0]);
        next = then[index];
        FILL();
        distance = then[index + 2] + ((size_t)then[index + 3] << 8) +
                   (size_t)(TURN_LOWEST(bits, next) >> (then[index + 1] & 63));
        from = (const uint8_t *)((uintptr_t)out - distance);
        TURN_UNLESS(from, step >> 8, then + index + 1);
        /* Not of one step: 0 for the distance. */
        if (from == out || (near && step >> 8 && distance > (size_t)(out - s.out_begin))) {
            PUT();
            end = TURN_NAME(match)(t, &s, length);
            if (end != BLOCK_GOES_ON)
                break;
            GET();
            FILL();
            continue;
        }
        bits >>= next & 63;
        count -= next;
        memcpy(out, from, TURN_COPY);
        out += length + (next >> 6);
    }
    *stream = s;
    return end;
}

enum block_end TURN_TARGET
TURN_NAME(inflater_block)(const struct inflater *t, struct stream *stream, const uint8_t *stop)
{
    const uint8_t *far = stream->out_end - stream->out_begin > WINDOW ? stream->out_begin + WINDOW : stream->out_end;
    enum block_end end = BLOCK_GOES_ON;

    if (stream->out <= far)
        end = TURN_NAME(turns)(t, stream, stop < far ? stop : far, true);
    /* Behind that no distance reaches over the beginning. */
    if (end == BLOCK_GOES_ON && stream->out <= stop)
        end = TURN_NAME(turns)(t, stream, stop, false);
    return end;
}

#undef TURN_TARGET
#undef TURN_NAME
#undef TURN_LOWEST
#undef TURN_UNLESS
#undef TURN_KEEP
#undef TURN_SPREAD
#undef WINDOW
#undef FILL
#undef PUT
#undef GET
