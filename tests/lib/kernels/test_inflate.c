/*
 * test_inflate.c - compares every implementation of inflate.h with zlib
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/memory.h"
#include "kernels/inflate_private.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* xorshift32 (Marsaglia 2003): the same numbers on every machine. */
static uint32_t
next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* ---- streams -------------------------------------------------------------------------------------------------- */

/* Inputs: noise, small noise as in filtered rows, rows like the previous one, and runs of a short period. */
static void
make_data(uint8_t *data, size_t size, unsigned what, uint32_t *random)
{
    size_t i, row = 300 + next_random(random) % 1000, period = 1 + next_random(random) % 40;

    for (i = 0; i < size; i++) {
        uint32_t r = next_random(random);

        switch (what % 4) {
        case 0:
            data[i] = (uint8_t)(r >> 8);
            break;
        case 1:
            data[i] = (uint8_t)((r >> 8 & 7) + (r >> 16 & 7) - (r % 50 == 0 ? r >> 24 : 7));
            break;
        case 2:
            data[i] = i >= row && r % 9 ? data[i - row] : (uint8_t)(r >> 28);
            break;
        default:
            data[i] = i >= period && r % 200 ? data[i - period] : (uint8_t)(r >> 24);
        }
    }
}

/* Compresses data to a zlib stream, with some forced block boundaries. */
static void
compress_data(struct buffer *out, const uint8_t *data, size_t size, uint32_t *random)
{
    static const int strategy[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
    int level = (int)(next_random(random) % 10), memory = 1 + (int)(next_random(random) % 9);
    size_t cut = next_random(random) % (size + 1);
    z_stream z = {0};

    ck_assert_int_eq(deflateInit2(&z, level, Z_DEFLATED, 15, memory, strategy[next_random(random) % 5]), Z_OK);
    ck_assert_int_eq(buffer_reserve(out, deflateBound(&z, (uLong)size) + 64 + INFLATER_IN_SLACK, NULL), CHEX_OK);
    z.next_out = out->data;
    z.avail_out = (uInt)(out->capacity - INFLATER_IN_SLACK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)cut;
    ck_assert_int_eq(deflate(&z, next_random(random) % 2 ? Z_FULL_FLUSH : Z_BLOCK), Z_OK);
    z.avail_in = (uInt)(size - cut);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->size = z.total_out;
    memset(out->data + out->size, 0, INFLATER_IN_SLACK);
    deflateEnd(&z);
}

/* An implementation must not write beyond its slack. */
#define GUARD 64

static uint8_t *
new_output(size_t size)
{
    uint8_t *out = malloc(size + INFLATER_OUT_SLACK + GUARD);

    ck_assert_ptr_nonnull(out);
    memset(out + size + INFLATER_OUT_SLACK, 0xa5, GUARD);
    return out;
}

static void
check_guard(const uint8_t *out, size_t size)
{
    int i;

    for (i = 0; i < GUARD; i++)
        ck_assert_uint_eq(out[size + INFLATER_OUT_SLACK + (size_t)i], 0xa5);
}

/* Decodes everything in random parts; returns true if the stream is accepted. */
static bool
inflater_parts(const struct inflater_kind *kind, const struct buffer *in, uint8_t *out, size_t size, uint32_t random)
{
    struct inflater *t = inflater_new(kind);
    size_t done = 0;
    bool right = inflater_begin(t, in->data, in->size, out, size);

    while (right && done < size) {
        done += 1 + next_random(&random) % (1 + size / 3);
        done = done > size ? size : done;
        right = inflater_until(t, done);
    }
    right = right && inflater_end(t);
    inflater_free(t);
    return right;
}

TEST_CASE("inflate", "streams", NULL, NULL);

TEST(every_kind_inflates_the_output_of_zlib)
{
    const struct inflater_kind *kind;
    uint32_t random = 1, i;

    for (i = 0; i < 300; i++) {
        size_t size = 1 + next_random(&random) % (i % 10 == 0 ? 300000 : 3000);
        uint8_t *data = malloc(size);
        struct buffer packed = {0};

        make_data(data, size, i, &random);
        compress_data(&packed, data, size, &random);
        for (kind = inflater_kinds; kind->name; kind++) {
            uint8_t *out;

            if (!kind->supported())
                continue;
            out = new_output(size);
            ck_assert_msg(inflater_parts(kind, &packed, out, size, random), "%s refuses stream %u", kind->name, i);
            ck_assert_mem_eq(out, data, size);
            check_guard(out, size);
            free(out);
        }
        buffer_release(&packed);
        free(data);
    }
}

/* ---- Adler-32 --------------------------------------------------------------------------------------------------- */

/* The largest bytes after the largest checksum make the largest sums. */
TEST(every_kind_has_the_adler_32_of_zlib)
{
    static uint8_t data[20000];
    const struct inflater_kind *kind;
    uint32_t random = 1;

    for (unsigned round = 0; round < 200; round++) {
        size_t from = next_random(&random) % 64, size = next_random(&random) % (sizeof(data) - 64);
        uint32_t before = round % 2 ? 65520u << 16 | 65520u : 1;

        if (round % 3)
            make_data(data, sizeof(data), round, &random);
        else
            memset(data, 255, sizeof(data));
        size = round % 5 ? size : round;
        for (kind = inflater_kinds; kind->name; kind++)
            if (kind->supported())
                ck_assert_uint_eq(kind->adler(before, data + from, size), adler32(before, data + from, (uInt)size));
    }
}

/* ---- damage --------------------------------------------------------------------------------------------------- */

/* Corrects the checksum for this output, so that it does not reveal the damage. */
static void
repair_sum(struct buffer *b, const uint8_t *data, size_t size)
{
    uLong sum = adler32(adler32(0, NULL, 0), data, (uInt)size);
    int i;

    for (i = 0; i < 4; i++)
        b->data[b->size - 4 + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
}

/* Decodes a stream that may be damaged with zlib; returns true if it accepts all of it and gives exactly size bytes. */
static bool
zlib_takes(struct buffer *b, uint8_t *out, size_t size)
{
    uLongf got = (uLongf)size;
    uLong used = (uLong)b->size;
    z_stream z = {.next_in = b->data, .avail_in = (uInt)b->size - 4, .next_out = out, .avail_out = (uInt)size};

    memset(out, 0, size);
    ck_assert_int_eq(inflateInit(&z), Z_OK);
    inflate(&z, Z_FINISH);
    if (z.total_out == size)
        repair_sum(b, out, size);
    inflateEnd(&z);
    return uncompress2(out, &got, b->data, &used) == Z_OK && got == size && used == b->size;
}

TEST(every_kind_reports_damage_as_zlib_does)
{
    const struct inflater_kind *kind;
    uint32_t random = 5, i, k, taken = 0, refused = 0;

    for (i = 0; i < 3000; i++) {
        size_t size = 1 + next_random(&random) % (i % 30 == 0 ? 100000 : 2000);
        uint8_t *data = malloc(size), *want = malloc(size);
        struct buffer packed = {0};
        bool right;

        make_data(data, size, i, &random);
        compress_data(&packed, data, size, &random);
        for (k = 0; k <= i % 3; k++) {
            size_t at = 2 + next_random(&random) % (packed.size - 2);

            packed.data[at] ^= (uint8_t)(1u << next_random(&random) % 8);
        }
        right = zlib_takes(&packed, want, size);
        *(right ? &taken : &refused) += 1;
        for (kind = inflater_kinds; kind->name; kind++) {
            uint8_t *out;

            if (!kind->supported())
                continue;
            out = new_output(size);
            ck_assert_msg(inflater_parts(kind, &packed, out, size, random) == right, "%s differs on stream %u",
                          kind->name, i);
            if (right)
                ck_assert_mem_eq(out, want, size);
            check_guard(out, size);
            free(out);
        }
        buffer_release(&packed);
        free(want);
        free(data);
    }
    /* Both must occur, otherwise the test proves nothing. */
    ck_assert_uint_gt(taken, 100);
    ck_assert_uint_gt(refused, 100);
}

/* ---- two streams ---------------------------------------------------------------------------------------------- */

struct part {
    struct buffer packed;
    uint8_t *out;
    size_t size, done, goal;
    bool good;
};

static void
next_goal(struct part *p, uint32_t *random)
{
    p->done = p->goal;
    p->goal += 1 + next_random(random) % (1 + p->size / 3);
    p->goal = p->goal > p->size ? p->size : p->goal;
}

/* Decodes two streams together in random parts until one ends or has a fault, and then the rest of the other. */
static void
inflate_both(const struct inflater_kind *kind, struct part p[2], uint32_t random)
{
    struct inflater *t[2] = {inflater_new(kind), inflater_new(kind)};
    int i;

    for (i = 0; i < 2; i++) {
        p[i].good = inflater_begin(t[i], p[i].packed.data, p[i].packed.size, p[i].out, p[i].size);
        p[i].goal = 0;
        next_goal(&p[i], &random);
    }
    while (p[0].good && p[1].good && p[0].done < p[0].size && p[1].done < p[1].size) {
        unsigned n = inflater_together(t, (size_t[]){p[0].goal, p[1].goal});

        ck_assert_uint_lt(n, 2);
        p[n].good = inflater_until(t[n], p[n].goal);
        next_goal(&p[n], &random);
    }
    for (i = 0; i < 2; i++) {
        p[i].good = p[i].good && inflater_end(t[i]);
        inflater_free(t[i]);
    }
}

/* Makes a stream of random data; every other is damaged in a bit. */
static void
make_part(struct part *p, unsigned i, uint32_t *random)
{
    uint8_t *data;

    *p = (struct part){.size = 1 + next_random(random) % (i % 8 == 0 ? 3000 : 200000)};
    data = malloc(p->size);
    make_data(data, p->size, i, random);
    compress_data(&p->packed, data, p->size, random);
    if (next_random(random) % 2)
        p->packed.data[2 + next_random(random) % (p->packed.size - 2)] ^= (uint8_t)(1u << next_random(random) % 8);
    p->out = new_output(p->size);
    free(data);
}

TEST(two_streams_in_one_loop_give_what_each_gives_alone)
{
    const struct inflater_kind *kind;
    uint32_t random = 9, i, counts[2][2] = {{0}};

    for (i = 0; i < 400; i++) {
        struct part p[2];
        uint32_t k;

        make_part(&p[0], i, &random);
        make_part(&p[1], i / 3, &random);
        for (kind = inflater_kinds; kind->name; kind++) {
            if (!kind->supported())
                continue;
            inflate_both(kind, p, random);
            for (k = 0; k < 2; k++) {
                uint8_t *alone = new_output(p[k].size);
                bool right = inflater_parts(kind, &p[k].packed, alone, p[k].size, random);

                ck_assert_msg(p[k].good == right, "%s: stream %u of pair %u", kind->name, k, i);
                if (right)
                    ck_assert_mem_eq(p[k].out, alone, p[k].size);
                check_guard(p[k].out, p[k].size);
                free(alone);
            }
            counts[p[0].good][p[1].good]++;
        }
        for (k = 0; k < 2; k++) {
            buffer_release(&p[k].packed);
            free(p[k].out);
        }
    }
    for (i = 0; i < 4; i++)
        ck_assert_uint_gt(counts[i / 2][i % 2], 50);
}

/* ---- distances ------------------------------------------------------------------------------------------------ */

struct bits {
    struct buffer b;
    unsigned used; /* bits of the last byte */
};

static void
put_bits(struct bits *w, uint32_t value, unsigned n)
{
    for (; n > 0; n--, value >>= 1) {
        if (w->used % 8 == 0)
            ck_assert_int_eq(buffer_append(&w->b, "", 1, NULL), CHEX_OK);
        w->b.data[w->b.size - 1] |= (uint8_t)((value & 1) << (w->used++ % 8));
    }
}

/* Appends a Huffman code, most significant bit first. */
static void
put_code(struct bits *w, uint32_t code, unsigned n)
{
    while (n-- > 0)
        put_bits(w, code >> n & 1, 1);
}

/* Makes a block of fixed codes: `literals` bytes, a match of 3 whose distance has 0 or 3 extra bits, and the end. */
static void
make_match(struct buffer *out, unsigned literals, uint32_t distance)
{
    struct bits w = {0};
    unsigned i;

    put_bits(&w, 0x0178, 16);
    put_bits(&w, 3, 3); /* the last block; fixed codes */
    for (i = 0; i < literals; i++)
        put_code(&w, 0x30 + i, 8);
    put_code(&w, 1, 7); /* a length of 3 */
    if (distance <= 4) {
        put_code(&w, distance - 1, 5);
    } else {
        ck_assert_uint_ge(distance, 17); /* 17 to 24: code 8 */
        ck_assert_uint_le(distance, 24);
        put_code(&w, 8, 5);
        put_bits(&w, distance - 17, 3);
    }
    put_code(&w, 0, 7);
    *out = w.b;
    ck_assert_int_eq(buffer_append(out, "\0\0\0\0", 4, NULL), CHEX_OK);
    ck_assert_int_eq(buffer_reserve(out, out->size + INFLATER_IN_SLACK, NULL), CHEX_OK);
    memset(out->data + out->size, 0, INFLATER_IN_SLACK);
}

/* Bytes in front of the output; no match may copy them. */
#define BEFORE 32

TEST(no_distance_reaches_over_the_beginning)
{
    static const struct {
        unsigned literals;
        uint32_t distance;
    } cases[] = {{1, 1}, {1, 2}, {3, 4}, {4, 4}, {20, 20}, {20, 21}, {17, 17}, {16, 17}, {24, 24}, {23, 24}, {2, 24}};
    const struct inflater_kind *kind;
    size_t i, k;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = cases[i].literals + 3;
        bool right = cases[i].distance <= cases[i].literals;
        uint8_t want[BEFORE + 64] = {0}, unused[64];
        struct buffer b;

        make_match(&b, cases[i].literals, cases[i].distance);
        for (k = 0; k < size; k++)
            want[BEFORE + k] = k < cases[i].literals ? (uint8_t)k : want[BEFORE + k - cases[i].distance];
        /* A checksum must not be the reason why a distance beyond the start is refused. */
        repair_sum(&b, want + BEFORE, size);
        ck_assert_int_eq(zlib_takes(&b, unused, size), right);
        repair_sum(&b, want + BEFORE, size);
        for (kind = inflater_kinds; kind->name; kind++) {
            uint8_t *out;

            if (!kind->supported())
                continue;
            out = new_output(BEFORE + size);
            memset(out, 0, BEFORE);
            ck_assert_msg(inflater_parts(kind, &b, out + BEFORE, size, 3) == right,
                          "%s: distance %u behind %u literals", kind->name, cases[i].distance, cases[i].literals);
            if (right)
                ck_assert_mem_eq(out + BEFORE, want + BEFORE, size);
            free(out);
        }
        buffer_release(&b);
    }
}
