/*
 * deflate_fixture.c - see deflate_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "deflate_fixture.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- writing bits ---------------------------------------------------------------------------------------------- */

void
put(struct bits *b, uint32_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++, b->used++) {
        ck_assert_uint_lt(b->used / 8, ROOM - 8);
        b->data[b->used / 8] |= (uint8_t)((value >> i & 1) << b->used % 8);
    }
}

void
put_code(struct bits *b, uint32_t code, unsigned n)
{
    while (n-- > 0)
        put(b, code >> n, 1);
}

struct bits *
new_bits(void)
{
    struct bits *b = calloc(1, sizeof(*b));

    ck_assert_ptr_nonnull(b);
    put(b, 0x9c78, 16); /* RFC 1950: deflate, window of 32 KiB */
    return b;
}

void
put_block(struct bits *b, bool last, unsigned type)
{
    put(b, last, 1);
    put(b, type, 2);
}

void
put_fixed(struct bits *b, unsigned symbol)
{
    if (symbol < 144)
        put_code(b, 0x30 + symbol, 8);
    else if (symbol < 256)
        put_code(b, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(b, symbol - 256, 7);
    else
        put_code(b, 0xc0 + symbol - 280, 8);
}

void
put_length(struct bits *b, unsigned symbol)
{
    if (symbol < 13)
        put_code(b, symbol, 4);
    else
        put_code(b, 26 + symbol - 13, 5);
}

void
put_counts(struct bits *b, unsigned litlen, unsigned dist)
{
    static const uint8_t position[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

    put_block(b, true, 2);
    put(b, litlen - 257, 5);
    put(b, dist - 1, 5);
    put(b, LENGTH_CODES - 4, 4);
    for (int i = 0; i < LENGTH_CODES; i++)
        put(b, position[i] < 13 ? 4 : 5, 3);
}

void
put_dynamic(struct bits *b, unsigned litlen, const uint8_t *litlen_bits, unsigned dist, const uint8_t *dist_bits)
{
    put_counts(b, litlen, dist);
    for (unsigned i = 0; i < litlen; i++)
        put_length(b, litlen_bits[i]);
    for (unsigned i = 0; i < dist; i++)
        put_length(b, dist_bits[i]);
}

void
put_symbol(struct bits *b, const uint8_t *length, unsigned symbols, unsigned symbol)
{
    uint32_t code = 0;

    ck_assert_uint_gt(length[symbol], 0);
    for (unsigned n = 1; n <= length[symbol]; n++) {
        code <<= 1;
        for (unsigned i = 0; i < symbols; i++)
            if (length[i] == n && (n < length[symbol] || i < symbol))
                code++;
    }
    put_code(b, code, length[symbol]);
}

/* ---- evaluation ------------------------------------------------------------------------------------------------ */

/* Returns zlib's result: NULL, its message, or "short" if the stream has no end. */
static const char *
ask_zlib(const uint8_t *data, size_t size, uint8_t *out, size_t *out_size)
{
    z_stream z = {0};
    const char *text = NULL;
    int code;

    ck_assert_int_eq(inflateInit2(&z, -15), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = ROOM;
    code = inflate(&z, Z_FINISH);
    if (code != Z_STREAM_END)
        text = code == Z_DATA_ERROR ? z.msg : "short";
    else if (z.avail_in > 0)
        text = "surplus";
    *out_size = z.total_out;
    inflateEnd(&z);
    return text;
}

static bool
ours(struct inflater *t, const struct bits *b, size_t size, const uint8_t *want, size_t out_size)
{
    uint8_t *out = malloc(out_size + INFLATER_OUT_SLACK);
    bool taken = inflater_exactly(t, b->data, size, out, out_size);

    if (taken)
        ck_assert_mem_eq(out, want, out_size);
    free(out);
    return taken;
}

void
judge(struct bits *b, const char *text)
{
    const struct inflater_kind *kind;
    uint8_t *want = malloc(ROOM);
    size_t out_size, body = (b->used + 7) / 8 - 2;
    const char *said = ask_zlib(b->data + 2, body, want, &out_size);
    uLong sum = adler32(1, want, (uInt)out_size);

    ck_assert_msg(text ? said && strcmp(said, text) == 0 : !said, "zlib says: %s", said ? said : "good");
    for (unsigned i = 0; i < 4; i++)
        b->data[body + 2 + i] = (uint8_t)(sum >> (24 - 8 * i));
    for (kind = inflater_kinds; kind->name; kind++) {
        struct inflater *t = kind->supported() ? inflater_new(kind) : NULL;

        if (!t)
            continue;
        ck_assert_int_eq(ours(t, b, body + 6, want, out_size), !text);
        ck_assert(!ours(t, b, body + 6, want, out_size + 1));
        ck_assert(out_size == 0 || !ours(t, b, body + 6, want, out_size - 1));
        b->data[body + 5] ^= 1; /* a byte of the checksum */
        ck_assert(!ours(t, b, body + 6, want, out_size));
        b->data[body + 5] ^= 1;
        inflater_free(t);
    }
    free(want);
    free(b);
}
