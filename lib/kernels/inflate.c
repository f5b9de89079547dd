/*
 * inflate.c - see inflate.h
 *
 * This file reads the stream header, the block headers and the stored blocks.  inflate_loop.h has the loop over the
 * compressed blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/inflate_private.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

/*
 * Building the tables of a block takes as long as decoding thousands of bytes, but a block may have only ten bits.
 * zlib's smallest buffer makes blocks of 127 symbols.  A stream of much smaller blocks is refused, and zlib decodes it.
 */
#define BLOCK_OUTPUT 100
#define BLOCKS_LEAST 256

/* ---- block headers -------------------------------------------------------------------------------------------- */

static inline uint32_t
take(struct stream *s, unsigned n)
{
    uint32_t v = (uint32_t)(s->bits & (((uint64_t)1 << n) - 1));

    s->bits >>= n;
    s->count -= n;
    return v;
}

static bool
fixed_tables(struct inflater *t)
{
    unsigned i;

    for (i = 0; i < LITLEN_CODES; i++)
        t->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(t->lengths + LITLEN_CODES, 5, DIST_CODES);
    return inflater_make_tables(t, LITLEN_CODES, DIST_CODES);
}

/* Read the code of the code lengths: symbol and bits for each value of the next 7 bits. */
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
    return inflater_make_small_table(length, LENGTH_CODES, symbol, bits);
}

static bool
dynamic_tables(struct inflater *t, struct stream *s)
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
        if (!inflate_within(s))
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
    return inflater_make_tables(t, litlen, dist);
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

static bool
stored_block(struct stream *s)
{
    uint32_t size;

    /* Return the unused whole bytes: go back to the byte after the last one used. */
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

/* ---- blocks of codes ------------------------------------------------------------------------------------------ */

static inline void
spread(uint8_t *out, size_t distance)
{
    for (int i = 0; i < 16; i++)
        out[i] = *(out + i - distance);
}

#define LOOP_TARGET
#define LOOP_NAME(x)                     x##_c
#define LOOP_LOWEST(v, n)                ((v) & (((uint64_t)1 << ((n)&63)) - 1))
#define LOOP_UNLESS(to, condition, from) ((to) = (condition) ? (to) : (from))
#define LOOP_KEEP(pointer)               (void)(pointer)
#define LOOP_SPREAD(out, distance)       spread(out, distance)

#include "kernels/inflate_loop.h"

static bool
always(void)
{
    return true;
}

const struct inflater_kind inflater_kinds[] = {
#ifdef INFLATER_HAVE_X86
    {"avx2", inflater_avx2_supported, inflater_block_bmi2, inflater_blocks_bmi2, inflater_adler_avx2},
    {"bmi2", inflater_bmi2_supported, inflater_block_bmi2, inflater_blocks_bmi2, isal_adler32},
#endif
    {"c", always, inflater_block_c, inflater_blocks_c, isal_adler32},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct inflater_kind *
inflater_best(void)
{
    const struct inflater_kind *kind = inflater_kinds;

    while (!kind->supported())
        kind++;
    return kind;
}

struct inflater *
inflater_new(const struct inflater_kind *kind)
{
    struct inflater *t = malloc(sizeof(*t));

    if (t) {
        t->kind = kind;
        inflater_prepare_tables(t);
    }
    return t;
}

void
inflater_free(struct inflater *t)
{
    free(t);
}

bool
inflater_begin(struct inflater *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    /* Accept deflate with a window of 32 KiB and no dictionary. */
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
        .tables = BLOCKS_LEAST + out_size / BLOCK_OUTPUT,
    };
    return true;
}

/* Read the header of a block; copy the block if it is stored. */
static bool
begin_block(struct inflater *t, struct stream *s)
{
    unsigned type;

    if (!inflate_within(s))
        return false;
    REFILL(*s);
    s->last = take(s, 1) == 1;
    type = take(s, 2);
    if (type == 0)
        return stored_block(s);
    if (s->tables == 0)
        return false;
    s->tables--;
    s->in_block = true;
    return type == 1 ? fixed_tables(t) : type == 2 && dynamic_tables(t, s);
}

/* Inflate to `stop` or to the end of the last block. */
static bool
run_blocks(struct inflater *t, const uint8_t *stop)
{
    struct stream *s = &t->stream;

    while (s->in_block || !s->last) {
        if (s->in_block) {
            enum block_end end = t->kind->block(t, s, stop);

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

/*
 * Bring a stream into a compressed block after its first 32 KiB of output, with output to come before `goal`.  Returns
 * false if that is not possible: the goal is reached, or the stream ends or has a fault.
 */
static bool
enter_block(struct inflater *t, const uint8_t *goal)
{
    struct stream *s = &t->stream;
    const uint8_t *far = s->out_begin + WINDOW;

    if (s->damaged || goal <= far)
        return false;
    if (s->out <= far && !run_blocks(t, far))
        s->damaged = true;
    while (!s->damaged && !s->in_block && !s->last && s->out < goal)
        s->damaged = !begin_block(t, s);
    return !s->damaged && s->in_block && s->out < goal;
}

unsigned
inflater_together(struct inflater *const t[2], const size_t wanted[2])
{
    const uint8_t *const goal[2] = {t[0]->stream.out_begin + wanted[0], t[1]->stream.out_begin + wanted[1]};
    const uint8_t *const stop[2] = {goal[0] - 1, goal[1] - 1};
    unsigned number;

    for (;;) {
        enum block_end end;

        if (!enter_block(t[0], goal[0]))
            return 0;
        if (!enter_block(t[1], goal[1]))
            return 1;
        end = t[0]->kind->blocks(t, stop, &number);
        if (end == BLOCK_GOES_ON)
            return number;
        t[number]->stream.in_block = false;
        t[number]->stream.damaged = end == BLOCK_DAMAGED;
    }
}

/* Compute the Adler-32 up to s->out.  Bytes after the end may be written, but then the stream is refused. */
static void
check_sum(struct inflater *t)
{
    struct stream *s = &t->stream;

    if (s->out <= s->out_end) {
        s->adler = t->kind->adler(s->adler, s->checked, (uint64_t)(s->out - s->checked));
        s->checked = s->out;
    }
}

bool
inflater_until(struct inflater *t, size_t wanted)
{
    struct stream *s = &t->stream;
    const uint8_t *goal = s->out_begin + wanted;

    if (s->damaged || (s->out < goal && (!run_blocks(t, goal - 1) || s->out < goal)))
        return false;
    check_sum(t);
    return true;
}

bool
inflater_end(struct inflater *t)
{
    struct stream *s = &t->stream;
    const uint8_t *p = s->in_end;

    /* Without the whole bytes that were loaded but not used, the stream must end where the checksum begins. */
    if (s->damaged || !run_blocks(t, s->out_end) || s->in_block || !s->last || s->in - (s->count >> 3) != p ||
        s->out != s->out_end)
        return false;
    check_sum(t);
    return s->adler == ((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

bool
inflater_exactly(struct inflater *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    return inflater_begin(t, in, in_size, out, out_size) && inflater_end(t);
}
