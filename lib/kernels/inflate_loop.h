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

/* The part of the stream that an iteration uses.  It never leaves the function, so compilers keep it in registers. */
struct LOOP_NAME(place) {
    uint64_t bits, count; /* above its 6 bits, count has other bits of the entries added to it */
    const uint8_t *in;
    uint8_t *out;
};

static inline __attribute__((always_inline)) LOOP_TARGET void
LOOP_NAME(fill)(struct LOOP_NAME(place) * p)
{
    p->bits |= inflater_load(p->in) << (p->count & 63);
    p->in += 7 - (p->count >> 3 & 7);
    p->count |= 56;
}

static inline __attribute__((always_inline)) LOOP_TARGET void
LOOP_NAME(get)(const struct stream *s, struct LOOP_NAME(place) * p)
{
    *p = (struct LOOP_NAME(place)){s->bits, s->count, s->in, s->out};
    LOOP_NAME(fill)(p);
}

static inline __attribute__((always_inline)) LOOP_TARGET void
LOOP_NAME(put)(const struct LOOP_NAME(place) * p, struct stream *s)
{
    s->bits = p->bits;
    s->count = (unsigned)p->count & 63;
    s->in = p->in;
    s->out = p->out;
}

/*
 * One iteration.  s: the stream, which has the state only where a rare symbol is decoded, and if the result is not
 * BLOCK_GOES_ON.  near: a distance may reach before the beginning of the output; a constant wherever this is expanded.
 */
static inline __attribute__((always_inline)) LOOP_TARGET enum block_end
LOOP_NAME(iteration)(const struct inflater *t, struct stream *s, struct LOOP_NAME(place) * p, bool near)
{
    size_t index = LOOP_LOWEST(p->bits, LOOP_BITS), length, distance;
    unsigned first = t->first[index], next;
    const uint8_t *second, *from;
    enum block_end end;

    if (__builtin_expect((first & IS_OTHER) != 0, 0)) {
        LOOP_NAME(put)(p, s);
        end = LOOP_NAME(symbol)(t, s);
        if (end == BLOCK_GOES_ON)
            LOOP_NAME(get)(s, p);
        return end;
    }
    p->bits >>= first & 63;
    p->count -= first;
    second = (const uint8_t *)t->second + (first >> 8);
    LOOP_KEEP(second);
    memcpy(p->out, t->literals[index], sizeof(t->literals[0]));
    length = t->literals[index][3];
    p->out += t->count[index];
    index = LOOP_LOWEST(p->bits, DIST_BITS) * sizeof(t->second[0]);
    next = second[index];
    LOOP_NAME(fill)(p);
    distance = second[index + 2] + ((size_t)second[index + 3] << 8) +
               (size_t)(LOOP_LOWEST(p->bits, next) >> (second[index + 1] & 63));
    from = (const uint8_t *)((uintptr_t)p->out - distance);
    LOOP_UNLESS(from, first >> 8, second + index + 1);
    /* The distance is 0 if it does not fit into an entry of `second`. */
    if (__builtin_expect(from == p->out || (near && first >> 8 && distance > (size_t)(p->out - s->out_begin)), 0)) {
        LOOP_NAME(put)(p, s);
        end = LOOP_NAME(match)(t, s, length);
        if (end == BLOCK_GOES_ON)
            LOOP_NAME(get)(s, p);
        return end;
    }
    p->bits >>= next & 63;
    p->count -= next;
    memcpy(p->out, from, LOOP_COPY);
    p->out += length + (next >> 6);
    return BLOCK_GOES_ON;
}

static inline __attribute__((always_inline)) LOOP_TARGET enum block_end
LOOP_NAME(iterations)(const struct inflater *t, struct stream *stream, const uint8_t *stop, bool near)
{
    struct stream s = *stream;
    const uint8_t *const in_end = s.in_end + 8;
    struct LOOP_NAME(place) p;
    enum block_end end;

    LOOP_NAME(get)(&s, &p);
    do {
        if (p.out > stop || p.in > in_end) {
            LOOP_NAME(put)(&p, &s);
            end = p.in <= in_end && p.out <= s.out_end ? BLOCK_GOES_ON : BLOCK_DAMAGED;
            break;
        }
        end = LOOP_NAME(iteration)(t, &s, &p, near);
    } while (end == BLOCK_GOES_ON);
    *stream = s;
    return end;
}

/*
 * The iterations of two blocks take turns, so that one fills the time in which the other waits for its look-ups.  Stops
 * when either passes its bounds or does not go on, and returns that one's number and its end.
 */
enum block_end LOOP_TARGET
LOOP_NAME(inflater_blocks)(struct inflater *const *t, const uint8_t *const *stop, unsigned *number)
{
    struct stream a = t[0]->stream, b = t[1]->stream;
    const struct inflater *const ta = t[0], *const tb = t[1];
    const uint8_t *const stop_a = stop[0], *const stop_b = stop[1];
    const uint8_t *const end_a = a.in_end + 8, *const end_b = b.in_end + 8;
    struct LOOP_NAME(place) pa, pb;
    enum block_end end;
    int i;

    LOOP_NAME(get)(&a, &pa);
    LOOP_NAME(get)(&b, &pb);
    for (;;) {
        if (pa.out > stop_a || pa.in > end_a || pb.out > stop_b || pb.in > end_b) {
            *number = !(pa.out > stop_a || pa.in > end_a);
            LOOP_NAME(put)(&pa, &a);
            LOOP_NAME(put)(&pb, &b);
            end = BLOCK_GOES_ON;
            break;
        }
#pragma GCC unroll 4
        for (i = 0; i < INFLATER_UNCHECKED; i++) {
            end = LOOP_NAME(iteration)(ta, &a, &pa, false);
            if (end != BLOCK_GOES_ON)
                goto first;
            end = LOOP_NAME(iteration)(tb, &b, &pb, false);
            if (end != BLOCK_GOES_ON)
                goto second;
        }
    }
    goto leave;
first:
    *number = 0;
    LOOP_NAME(put)(&pb, &b);
    goto leave;
second:
    *number = 1;
    LOOP_NAME(put)(&pa, &a);
leave:
    t[0]->stream = a;
    t[1]->stream = b;
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
