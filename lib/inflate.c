/*
 * inflate.c - see inflate.h
 *
 * Filtered rows of a radiograph are short runs of literals between short matches, and which comes next cannot be
 * predicted.  So an entry of the first table holds all that its index covers: up to three literals, or up to two and
 * the length behind them; one branch then asks whether there is a length.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inflate_private.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__)
#define HAVE_BMI2_VARIANT 1
#endif

/* ---- bits ----------------------------------------------------------------------------------------------------- */

static ALWAYS_INLINE uint64_t
load_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* At least 56 bits; behind the input come whatever bytes are there, and the position is compared at the end. */
#define REFILL(s)                                  \
    do {                                           \
        (s).bits |= load_u64((s).in) << (s).count; \
        (s).in += (63 - (s).count) >> 3;           \
        (s).count |= 56;                           \
    } while (0)

static inline uint32_t
take(struct stream *s, unsigned n)
{
    uint32_t v = (uint32_t)(s->bits & (((uint64_t)1 << n) - 1));

    s->bits >>= n;
    s->count -= n;
    return v;
}

static ALWAYS_INLINE bool
within(const struct stream *s)
{
    return s->in <= s->in_end + 8;
}

/* ---- block headers -------------------------------------------------------------------------------------------- */

static bool
fixed_tables(struct inflate_tables *t)
{
    unsigned i;

    for (i = 0; i < LITLEN_CODES; i++)
        t->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(t->lengths + LITLEN_CODES, 5, DIST_CODES);
    return inflate_make_tables(t, LITLEN_CODES, DIST_CODES);
}

/* The code that the code lengths are in: symbol and bits for each value of the next 7 bits. */
static bool
read_length_code(struct stream *s, unsigned symbols, uint8_t *symbol, uint8_t *bits)
{
    static const uint8_t position[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t length[LENGTH_CODES] = {0};
    unsigned i;

    for (i = 0; i < symbols; i++) {
        REFILL(*s);
        length[position[i]] = (uint8_t)take(s, 3);
    }
    return inflate_make_small_table(length, LENGTH_CODES, symbol, bits);
}

static bool
dynamic_tables(struct inflate_tables *t, struct stream *s)
{
    uint8_t symbol[128], bits[128];
    unsigned litlen, dist, codes, i = 0;

    REFILL(*s);
    litlen = 257 + take(s, 5);
    dist = 1 + take(s, 5);
    codes = 4 + take(s, 4);
    if (litlen > 286 || dist > 30 || !read_length_code(s, codes, symbol, bits))
        return false;
    while (i < litlen + dist) {
        unsigned what, repeat = 1;
        uint8_t value;

        REFILL(*s);
        if (!within(s))
            return false;
        what = symbol[s->bits & 127];
        take(s, bits[s->bits & 127]);
        value = (uint8_t)what;
        if (what == 16) {
            if (i == 0)
                return false;
            value = t->lengths[i - 1];
            repeat = 3 + take(s, 2);
        } else if (what > 16) {
            value = 0;
            repeat = what == 17 ? 3 + take(s, 3) : 11 + take(s, 7);
        }
        if (repeat > litlen + dist - i)
            return false;
        memset(t->lengths + i, value, repeat);
        i += repeat;
    }
    return inflate_make_tables(t, litlen, dist);
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

static bool
stored_block(struct stream *s)
{
    uint32_t size;

    /* Back to the byte behind the last one used. */
    take(s, s->count & 7);
    s->in -= s->count >> 3;
    s->bits = s->count = 0;
    if (s->in > s->in_end || s->in_end - s->in < 4)
        return false;
    size = (uint32_t)s->in[0] | (uint32_t)s->in[1] << 8;
    if ((size ^ 0xffff) != ((uint32_t)s->in[2] | (uint32_t)s->in[3] << 8))
        return false;
    s->in += 4;
    if ((size_t)(s->in_end - s->in) < size || (size_t)(s->out_end - s->out) < size)
        return false;
    memcpy(s->out, s->in, size);
    s->in += size;
    s->out += size;
    return true;
}

/* Copy a match; up to 15 bytes behind it are written too. */
static ALWAYS_INLINE void
copy_far(uint8_t *out, const uint8_t *from, const uint8_t *end)
{
    do {
        memcpy(out, from, 16);
        out += 16;
        from += 16;
    } while (out < end);
}

/* A distance below 16.  The bytes behind it repeat, so what is copied may be twice as far away each time. */
static ALWAYS_INLINE void
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

/* The lowest n bits; n is a part of an entry, of which only bits 0 to 5 count. */
static ALWAYS_INLINE uint64_t
lowest(uint64_t bits, uint32_t n)
{
    return bits & (((uint64_t)1 << (n & 63)) - 1);
}

/* A distance's code and extra bits; 0 for an invalid one. */
static ALWAYS_INLINE size_t
read_distance(const struct inflate_tables *t, uint64_t *bits, unsigned *count)
{
    uint32_t e = t->dist[*bits & ((1u << DIST_BITS) - 1)];
    uint64_t before;

    if (e & IS_OTHER_DIST) {
        if (e == IS_OTHER_DIST)
            return 0;
        *bits >>= DIST_BITS;
        *count -= DIST_BITS;
        e = t->dist[(e >> 16) + lowest(*bits, SUBTABLE_BITS(e))];
        if (e & IS_OTHER_DIST)
            return 0;
    }
    before = *bits;
    *bits >>= BITS(e);
    *count -= BITS(e);
    return (e >> 16) + (size_t)(lowest(before, e) >> SUBTABLE_BITS(e));
}

/* Take what one entry holds: its literals go out, its bits away. */
#define TAKE_ENTRY()                                            \
    do {                                                        \
        entry = t->entry[s.bits & mask];                        \
        before = s.bits;                                        \
        memcpy(s.out, &(uint32_t){(uint32_t)(entry >> 32)}, 4); \
        s.out += COUNT(entry);                                  \
        s.bits >>= BITS(entry);                                 \
        s.count -= BITS(entry);                                 \
    } while (0)

/*
 * A block of Huffman codes.  A turn of the loop writes at most 6 literals and a match, 264 bytes and 15 beyond, within
 * the slack.  It uses at most 56 bits, so one refill is enough: 10 for the first entry where there is a second, 15 for
 * the length with its code and extra bits (20 where its code is in a subtable, but then alone), 28 for the distance.
 */
static ALWAYS_INLINE enum block_end
coded_block(const struct inflate_tables *t, struct stream *stream, const uint8_t *stop)
{
    const uint32_t mask = (1u << LITLEN_BITS) - 1;
    struct stream s = *stream;
    enum block_end end = BLOCK_DAMAGED;

    for (;;) {
        uint64_t entry, before;
        size_t length, distance;

        if (s.out > stop || !within(&s)) {
            end = within(&s) && s.out <= s.out_end ? BLOCK_GOES_ON : BLOCK_DAMAGED;
            break;
        }
        REFILL(s);
        TAKE_ENTRY();
        if (LENGTH(entry) == 0) {
            TAKE_ENTRY();
            if (LENGTH(entry) == 0)
                continue;
        }
        if (entry & IS_OTHER) {
            if (entry & IS_SUBTABLE) {
                REFILL(s);
                entry = t->symbol[(entry >> 32) + lowest(s.bits, SUBTABLE_BITS(entry))];
                before = s.bits;
                s.bits >>= BITS(entry);
                s.count -= BITS(entry);
                if (LENGTH(entry) == 0) {
                    *s.out++ = (uint8_t)(entry >> 32);
                    continue;
                }
            }
            if (entry & IS_OTHER) {
                end = (entry & IS_END) && s.out <= s.out_end ? BLOCK_ENDED : BLOCK_DAMAGED;
                break;
            }
        }
        length = LENGTH(entry) + (size_t)(lowest(before, (uint32_t)entry) >> CODE_BITS(entry));
        distance = read_distance(t, &s.bits, &s.count);
        if (distance == 0 || distance > (size_t)(s.out - s.out_begin))
            break;
        if (distance >= 16)
            copy_far(s.out, s.out - distance, s.out + length);
        else
            copy_near(s.out, distance, s.out + length);
        s.out += length;
    }
    *stream = s;
    return end;
}

enum block_end
inflate_coded_block_c(const struct inflate_tables *t, struct stream *s, const uint8_t *stop)
{
    return coded_block(t, s, stop);
}

#ifdef HAVE_BMI2_VARIANT
/* The same with shifts by any register: a tenth faster. */
static __attribute__((target("bmi,bmi2"))) enum block_end
coded_block_bmi2(const struct inflate_tables *t, struct stream *s, const uint8_t *stop)
{
    return coded_block(t, s, stop);
}
#endif

static coded_block_fn *
best_coded_block(void)
{
#ifdef HAVE_BMI2_VARIANT
    if (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return coded_block_bmi2;
#endif
    return inflate_coded_block_c;
}

struct inflate_tables *
inflate_tables_new(void)
{
    struct inflate_tables *t = malloc(sizeof(*t));

    if (t) {
        t->coded_block = best_coded_block();
        inflate_prepare_tables(t);
    }
    return t;
}

void
inflate_tables_free(struct inflate_tables *t)
{
    free(t);
}

bool
inflate_begin(struct inflate_tables *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    /* Deflate, a window of 32 KiB, no dictionary. */
    if (in_size < 8 || in[0] != 0x78 || (in[1] & 0x20) != 0 || (in[0] * 256 + in[1]) % 31 != 0)
        return false;
    t->stream = (struct stream){
        .in = in + 2,
        .in_end = in + in_size - 4,
        .out = out,
        .out_begin = out,
        .out_end = out + out_size,
        .checked = out,
        .adler = 1,
    };
    return true;
}

/* The header of a block, and all of one that is stored. */
static bool
begin_block(struct inflate_tables *t, struct stream *s)
{
    unsigned type;

    if (!within(s))
        return false;
    REFILL(*s);
    s->last = take(s, 1) == 1;
    type = take(s, 2);
    if (type == 0)
        return stored_block(s);
    s->in_block = true;
    return type == 1 ? fixed_tables(t) : type == 2 && dynamic_tables(t, s);
}

/* To `stop`, or to the end of the last block. */
static bool
run_blocks(struct inflate_tables *t, const uint8_t *stop)
{
    struct stream *s = &t->stream;

    while (s->in_block || !s->last) {
        if (s->in_block) {
            enum block_end end = t->coded_block(t, s, stop);

            if (end == BLOCK_DAMAGED)
                return false;
            s->in_block = end == BLOCK_GOES_ON;
        } else if (!begin_block(t, s)) {
            return false;
        }
        if (s->out > stop)
            break;
    }
    return true;
}

/* What may have been written behind the end is no part of the stream, which is refused then. */
static void
check_sum(struct stream *s)
{
    if (s->out <= s->out_end) {
        s->adler = isal_adler32(s->adler, s->checked, (uint64_t)(s->out - s->checked));
        s->checked = s->out;
    }
}

bool
inflate_until(struct inflate_tables *t, size_t wanted)
{
    struct stream *s = &t->stream;
    const uint8_t *goal = s->out_begin + wanted;

    if (s->out < goal && (!run_blocks(t, goal - 1) || s->out < goal))
        return false;
    check_sum(s);
    return true;
}

bool
inflate_end(struct inflate_tables *t)
{
    struct stream *s = &t->stream;
    const uint8_t *p = s->in_end;

    /* Whole bytes that were loaded and not used go back; then the stream must end where the checksum begins. */
    if (!run_blocks(t, s->out_end) || s->in_block || !s->last || s->in - (s->count >> 3) != p || s->out != s->out_end)
        return false;
    check_sum(s);
    return s->adler == ((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

bool
inflate_exactly(struct inflate_tables *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    return inflate_begin(t, in, in_size, out, out_size) && inflate_end(t);
}
