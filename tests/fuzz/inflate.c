/*
 * inflate.c - fuzz target: compares our inflate with zlib's
 *
 * The input is the blocks of a stream.  The target adds the header of the stream and the checksum of our output, so a
 * checksum never hides a difference.  What our inflate accepts, zlib accepts, with the same bytes.  All implementations
 * and all call patterns give the same result.  Nothing is written beyond the slack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "kernels/inflate_private.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define MOST  (128u << 10) /* bytes of output */
#define GUARD 64
#define KINDS 8

static struct inflater *tables[KINDS], *twins[KINDS];
static size_t kinds;
static uint8_t *out;

static void
prepare(void)
{
    const struct inflater_kind *kind;

    for (kind = inflater_kinds; kind->name; kind++)
        if (kind->supported()) {
            FUZZ_REQUIRE(kinds < KINDS);
            tables[kinds] = inflater_new(kind);
            twins[kinds] = inflater_new(kind);
            FUZZ_REQUIRE(tables[kinds] && twins[kinds]);
            kinds++;
        }
    out = malloc(MOST + INFLATER_OUT_SLACK + GUARD);
    FUZZ_REQUIRE(kinds > 0 && out);
}

/*
 * Returns the number of bytes that the stream decodes to, or -1 if it does not end with the input.  The bytes are in
 * out.
 */
static long
probe(struct inflater *t, const uint8_t *in, size_t size)
{
    const struct stream *s = &t->stream;

    if (!inflater_begin(t, in, size, out, MOST))
        return -1;
    inflater_end(t); /* errors of size and checksum do not matter here */
    if (s->in_block || !s->last || s->in - (s->count >> 3) != s->in_end || s->out > s->out_end)
        return -1;
    return (long)(s->out - s->out_begin);
}

/* zlib gives the same bytes, and uses the whole input. */
static void
require_zlib(const uint8_t *in, size_t in_size, const uint8_t *made, size_t size)
{
    uint8_t *theirs = malloc(size + 1);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)in_size};

    FUZZ_REQUIRE(theirs && inflateInit(&z) == Z_OK);
    z.next_out = theirs;
    z.avail_out = (uInt)size + 1;
    FUZZ_REQUIRE(inflate(&z, Z_FINISH) == Z_STREAM_END);
    FUZZ_REQUIRE(z.total_out == size && z.avail_in == 0 && memcmp(made, theirs, size) == 0);
    inflateEnd(&z);
    free(theirs);
}

/* Decodes in parts, with the size known in advance. */
static bool
in_parts(struct inflater *t, const uint8_t *in, size_t in_size, uint8_t *to, size_t size)
{
    size_t at;

    if (!inflater_begin(t, in, in_size, to, size))
        return false;
    for (at = size / 3; at < size; at += size / 3 + 1)
        if (!inflater_until(t, at))
            return false;
    return inflater_end(t);
}

/* Decodes the stream twice in one loop, with other goals for each, and requires the answer that it has alone. */
static void
require_together(size_t k, const uint8_t *in, size_t in_size, const uint8_t *made, size_t size, bool answer)
{
    struct inflater *const t[2] = {tables[k], twins[k]};
    uint8_t *to[2];
    size_t goal[2] = {size / 2 + 1, size / 3 + 1};
    bool good[2];
    int i;

    for (i = 0; i < 2; i++) {
        to[i] = malloc(size + INFLATER_OUT_SLACK);
        FUZZ_REQUIRE(to[i]);
        good[i] = inflater_begin(t[i], in, in_size, to[i], size);
    }
    while (good[0] && good[1] && goal[0] <= size && goal[1] <= size) {
        unsigned n = inflater_together(t, goal);

        good[n] = inflater_until(t[n], goal[n]);
        goal[n] += size / 4 + 1;
    }
    for (i = 0; i < 2; i++) {
        FUZZ_REQUIRE((good[i] && inflater_end(t[i])) == answer);
        FUZZ_REQUIRE(!answer || memcmp(to[i], made, size) == 0);
        free(to[i]);
    }
}

static void
require_same(const uint8_t *in, size_t in_size, const uint8_t *made, size_t size)
{
    bool good = false;

    for (size_t k = 0; k < kinds; k++) {
        uint8_t *to = malloc(size + INFLATER_OUT_SLACK + GUARD);
        bool answer;

        FUZZ_REQUIRE(to);
        memset(to + size + INFLATER_OUT_SLACK, 0xa5, GUARD);
        answer = k % 2 ? in_parts(tables[k], in, in_size, to, size)
                       : inflater_exactly(tables[k], in, in_size, to, size);
        FUZZ_REQUIRE(k == 0 || answer == good);
        good = answer;
        FUZZ_REQUIRE(!answer || memcmp(to, made, size) == 0);
        for (size_t i = 0; i < GUARD; i++)
            FUZZ_REQUIRE(to[size + INFLATER_OUT_SLACK + i] == 0xa5);
        free(to);
        require_together(k, in, in_size, made, size, answer);
    }
    if (good)
        require_zlib(in, in_size, made, size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *in = calloc(1, size + 6 + INFLATER_IN_SLACK), *made;
    long bytes = -1;

    FUZZ_REQUIRE(in);
    if (!out)
        prepare();
    in[0] = 0x78;
    in[1] = 0x9c;
    memcpy(in + 2, data, size);
    for (size_t k = kinds; k-- > 0;) {
        long found = probe(tables[k], in, size + 6);

        FUZZ_REQUIRE(k == kinds - 1 || found == bytes);
        bytes = found;
    }
    if (bytes >= 0) {
        made = malloc((size_t)bytes + 1);
        FUZZ_REQUIRE(made);
        memcpy(made, out, (size_t)bytes);
        fuzz_put_u32be(in + 2 + size, (uint32_t)adler32_z(1, made, (size_t)bytes));
        require_same(in, size + 6, made, (size_t)bytes);
        free(made);
    }
    free(in);
    return 0;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

static void
give_blocks(const char *name, const uint8_t *text, size_t size, int level, int strategy, fuzz_seed_fn *give,
            void *context)
{
    static uint8_t packed[70000];
    z_stream z = {0};

    FUZZ_REQUIRE(deflateInit2(&z, level, Z_DEFLATED, -15, 8, strategy) == Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)(size / 2);
    z.next_out = packed;
    z.avail_out = sizeof(packed);
    FUZZ_REQUIRE(deflate(&z, Z_BLOCK) == Z_OK);
    z.avail_in = (uInt)(size - size / 2);
    FUZZ_REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    give(name, packed, z.total_out, context);
    deflateEnd(&z);
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const uint8_t no_meaning[] = {0x63, 0x60, 0x80, 0x3f, 0, 0}; /* fixed codes, distance symbols 30 and 31 */
    static uint8_t text[3000];
    uint64_t state = 1;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 300 < 150 ? (uint8_t)(i / 7) : (uint8_t)fuzz_below(&state, i < 1500 ? 4 : 256);
    give("empty", "\3\0", 2, context);
    give("no-meaning", no_meaning, sizeof(no_meaning), context);
    give_blocks("fixed", text, 600, 6, Z_FIXED, give, context);
    give_blocks("stored", text, 100, 0, Z_DEFAULT_STRATEGY, give, context);
    give_blocks("dynamic", text, sizeof(text), 9, Z_DEFAULT_STRATEGY, give, context);
    give_blocks("huffman", text, 1000, 6, Z_HUFFMAN_ONLY, give, context);
    give_blocks("runs", text, 1000, 6, Z_RLE, give, context);
}
