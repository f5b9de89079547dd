/*
 * inflate_loop.h - the loop over a block of Huffman codes, for one kind of CPU
 *
 * One file for each kind of CPU includes this header, after it has defined
 *     LOOP_TARGET         the function attribute          LOOP_NAME(x)   x with the kind in its name
 *     LOOP_LOWEST(v, n)   the lowest n bits of v; n is below 64 in its lowest 8 bits
 *     LOOP_UNLESS(to, condition, from)     to = from unless condition, without a branch
 *     LOOP_KEEP(pointer)                   prevents the compiler from adding it to others before it is known
 *     LOOP_SPREAD(out, distance)           writes 16 bytes to out that repeat the `distance` bytes before; 1 to 15
 *
 * Filtered rows of a radiograph are short runs of literals between short matches.  The CPU cannot predict which of the
 * two comes next, and a wrong prediction costs more than all other work.  So the loop has no branch for it.  An
 * iteration takes up to three literals, or up to two literals and a length, from the table `first`.  Then it reads an
 * entry of `second`, which has a distance and also up to three more literals.  The entry of `first` selects one of the
 * two.  In both cases it copies 16 bytes to the output, from earlier output or from the table, and counts the valid
 * ones.
 *
 * The critical path of an iteration is two look-ups and two shifts.  The refill runs in parallel with the second
 * look-up and leaves at least 56 bits.  A distance takes at most 21 of them, the literals and the length of the next
 * iteration take 10, and the remaining bits are enough for the index into `second`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* ---- one symbol at a time ------------------------------------------------------------------------------------- */

/* match() and symbol() are rare.  Inlined into the loop they would take registers from it, so they are not inlined. */

static inline LOOP_TARGET void
LOOP_NAME(drop)(struct stream *s, uint32_t n)
{
    s->bits >>= n & 63;
    s->count -= n;
}

/* Decode a distance: its code and extra bits.  Returns 0 for an invalid code. */
static inline LOOP_TARGET size_t
LOOP_NAME(read_distance)(const struct inflater *t, struct stream *s)
{
    uint32_t e = t->dist[LOOP_LOWEST(s->bits, DIST_BITS)];
    uint64_t before;

    if (e & IS_OTHER_DIST) {
        if (e >> 16 == 0)
            return 0;
        LOOP_NAME(drop)(s, BITS(e));
        e = t->dist[(e >> 16) + LOOP_LOWEST(s->bits, DIST_CODE_BITS(e))];
        if (e & IS_OTHER_DIST)
            return 0;
    }
    before = s->bits;
    LOOP_NAME(drop)(s, BITS(e));
    return (e >> 16) + (size_t)(LOOP_LOWEST(before, BITS(e)) >> DIST_CODE_BITS(e));
}

/* Copy a match.  May write up to 15 bytes after its end. */
static inline LOOP_TARGET void
LOOP_NAME(copy)(uint8_t *out, size_t distance, size_t length)
{
    const uint8_t *end = out + length, *from = out - distance;

    if (distance >= 16) {
        for (; out < end; out += 16, from += 16)
            memcpy(out, from, 16);
        return;
    }
    LOOP_SPREAD(out, distance);
    if (length > 16) {
        size_t step = 16 - 16 % distance; /* the largest multiple of distance up to 16 */

        for (from = out, out += step; out < end; out += step)
            memmove(out, from, 16);
    }
}

/* Copy a match of known length. */
static LOOP_TARGET __attribute__((noinline)) enum block_end
LOOP_NAME(match)(const struct inflater *t, struct stream *s, size_t length)
{
    size_t distance = LOOP_NAME(read_distance)(t, s);

    if (distance == 0 || distance > (size_t)(s->out - s->out_begin))
        return BLOCK_DAMAGED;
    LOOP_NAME(copy)(s->out, distance, length);
    s->out += length;
    return BLOCK_GOES_ON;
}

/* Decode a literal, a match or the end of the block.  A length takes at most 20 bits, a distance 28. */
static LOOP_TARGET __attribute__((noinline)) enum block_end
LOOP_NAME(symbol)(const struct inflater *t, struct stream *s)
{
    uint64_t e, before;

    REFILL(*s);
    e = t->symbol[LOOP_LOWEST(s->bits, LITLEN_BITS)];
    if (e & IS_SUBTABLE) {
        LOOP_NAME(drop)(s, BITS(e));
        e = t->symbol[(e >> 32) + LOOP_LOWEST(s->bits, CODE_BITS(e))];
    }
    before = s->bits;
    LOOP_NAME(drop)(s, BITS(e));
    if (!(e & IS_OTHER) && COUNT(e) > 0) {
        *s->out++ = (uint8_t)(e >> 32);
        return BLOCK_GOES_ON;
    }
    if (!(e & IS_OTHER))
        return LOOP_NAME(match)(t, s, LENGTH(e));
    if (e & IS_LENGTH)
        return LOOP_NAME(match)(t, s, LENGTH(e) + (size_t)(LOOP_LOWEST(before, BITS(e)) >> CODE_BITS(e)));
    return (e & IS_END) && s->out <= s->out_end ? BLOCK_ENDED : BLOCK_DAMAGED;
}

/* ---- iterations ----------------------------------------------------------------------------------------------- */

#define WINDOW 32768

#define FILL()                                     \
    do {                                           \
        bits |= inflater_load(in) << (count & 63); \
        in += 7 - (count >> 3 & 7);                \
        count |= 56;                               \
    } while (0)

/* Load the stream into registers and store it.  Above its 6 bits, count has other bits of the entries added to it. */
#define PUT() (s.bits = bits, s.count = (unsigned)count & 63, s.in = in, s.out = out)
#define GET() (bits = s.bits, count = s.count, in = s.in, out = s.out)

/* near: a distance may reach before the beginning of the output; a constant wherever this is expanded. */
static inline __attribute__((always_inline)) LOOP_TARGET enum block_end
LOOP_NAME(iterations)(const struct inflater *t, struct stream *stream, const uint8_t *stop, bool near)
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
        const uint8_t *second, *from;
        size_t index, length, distance;
        unsigned first, next;

        if (out > stop || in > in_end) {
            PUT();
            end = in <= in_end && out <= s.out_end ? BLOCK_GOES_ON : BLOCK_DAMAGED;
            break;
        }
        index = LOOP_LOWEST(bits, LOOP_BITS);
        first = t->first[index];
        if (first & IS_OTHER) {
            PUT();
            end = LOOP_NAME(symbol)(t, &s);
            if (end != BLOCK_GOES_ON)
                break;
            GET();
            FILL();
            continue;
        }
        bits >>= first & 63;
        count -= first;
        second = (const uint8_t *)t->second + (first >> 8);
        LOOP_KEEP(second);
        memcpy(out, t->literals[index], sizeof(t->literals[0]));
        length = t->literals[index][3];
        out += t->count[index];
        index = LOOP_LOWEST(bits, DIST_BITS) * sizeof(t->second[0]);
        next = second[index];
        FILL();
        distance = second[index + 2] + ((size_t)second[index + 3] << 8) +
                   (size_t)(LOOP_LOWEST(bits, next) >> (second[index + 1] & 63));
        from = (const uint8_t *)((uintptr_t)out - distance);
        LOOP_UNLESS(from, first >> 8, second + index + 1);
        /* The distance is 0 if it does not fit into an entry of `second`. */
        if (from == out || (near && first >> 8 && distance > (size_t)(out - s.out_begin))) {
            PUT();
            end = LOOP_NAME(match)(t, &s, length);
            if (end != BLOCK_GOES_ON)
                break;
            GET();
            FILL();
            continue;
        }
        bits >>= next & 63;
        count -= next;
        memcpy(out, from, LOOP_COPY);
        out += length + (next >> 6);
    }
    *stream = s;
    return end;
}

enum block_end LOOP_TARGET
LOOP_NAME(inflater_block)(const struct inflater *t, struct stream *stream, const uint8_t *stop)
{
    const uint8_t *far = stream->out_end - stream->out_begin > WINDOW ? stream->out_begin + WINDOW : stream->out_end;
    enum block_end end = BLOCK_GOES_ON;

    if (stream->out <= far)
        end = LOOP_NAME(iterations)(t, stream, stop < far ? stop : far, true);
    /* After 32 KiB of output no distance can reach before the beginning. */
    if (end == BLOCK_GOES_ON && stream->out <= stop)
        end = LOOP_NAME(iterations)(t, stream, stop, false);
    return end;
}

#undef LOOP_TARGET
#undef LOOP_NAME
#undef LOOP_LOWEST
#undef LOOP_UNLESS
#undef LOOP_KEEP
#undef LOOP_SPREAD
#undef WINDOW
#undef FILL
#undef PUT
#undef GET
