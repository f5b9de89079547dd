/*
 * test_inflate_tables.c - compares the loop tables of inflate with their definition, which decodes symbol by symbol
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/inflate_private.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 300

/* ---- random codes ---------------------------------------------------------------------------------------------- */

static uint32_t
next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Give `used` of the symbols a complete code of at most MAX_BITS bits, symbol `needed` among them; the rest get 0. */
static void
make_code(uint64_t *state, unsigned symbols, unsigned used, unsigned needed, uint8_t *length)
{
    uint8_t leaf[LITLEN_CODES] = {1, 1};
    unsigned leaves = 2, i;

    while (leaves < used) {
        /* The first ones are split more often, which makes some codes long. */
        unsigned split = next_random(state) % (next_random(state) % leaves + 1);

        if (leaf[split] == MAX_BITS)
            continue;
        leaf[leaves++] = ++leaf[split];
    }
    memset(length, 0, symbols);
    length[needed] = leaf[--leaves];
    while (leaves > 0) {
        i = next_random(state) % symbols;
        if (length[i] == 0)
            length[i] = leaf[--leaves];
    }
}

/* ---- the definition -------------------------------------------------------------------------------------------- */

/* Returns the symbol at the lowest of n bits, and the bits of its code; 0 bits: none is complete. */
static unsigned
read_code(const uint8_t *length, unsigned symbols, uint32_t bits, unsigned n, unsigned *size)
{
    uint32_t code = 0, first = 0;

    for (*size = 1; *size <= n; ++*size, first <<= 1) {
        code = code << 1 | (bits >> (*size - 1) & 1);
        for (unsigned i = 0; i < symbols; i++)
            if (length[i] == *size && first++ == code)
                return i;
    }
    *size = 0;
    return 0;
}

/* Up to three symbols: literals, or literals and a length that an iteration can copy. */
struct expected {
    unsigned bits, literal_bits, count, length;
    uint8_t literal[4];
};

static struct expected
expect(const uint8_t *lengths, unsigned symbols, uint32_t bits, unsigned n)
{
    struct expected e = {0};

    for (unsigned taken = 0; taken < 3; taken++) {
        unsigned size, symbol = read_code(lengths, symbols, bits >> e.bits, n - e.bits, &size);

        if (size > 0 && symbol < 256) {
            e.literal[e.count++] = (uint8_t)symbol;
            e.bits += size;
            e.literal_bits += size;
            continue;
        }
        if (size > 0 && symbol > 256 && symbol < 265) {
            e.length = symbol - 254;
            e.bits += size;
        } else if (size > 0 && symbol >= 265 && symbol < 268 && e.bits + size < n) { /* 11 to 16: one extra bit */
            e.length = 11 + 2 * (symbol - 265) + (bits >> (e.bits + size) & 1);
            e.bits += size + 1;
        }
        break;
    }
    return e;
}

static void
compare_first(const struct inflater *t, const uint8_t *lengths, unsigned symbols, uint32_t i)
{
    struct expected e = expect(lengths, symbols, i, LOOP_BITS);

    e.literal[3] = (uint8_t)e.length;
    ck_assert_uint_eq(t->first[i], e.bits == 0 ? IS_OTHER : e.bits | (e.length ? HAS_LENGTH : 0));
    ck_assert_uint_eq(t->count[i], e.count);
    ck_assert_mem_eq(t->literals[i], e.literal, 4);
}

static void
compare_second(const struct inflater *t, const uint8_t *lengths, unsigned litlen, unsigned dist, uint32_t i)
{
    struct expected e = expect(lengths, litlen, i, DIST_BITS);
    unsigned size, symbol = read_code(lengths + litlen, dist, i, DIST_BITS, &size), extra = symbol / 2 - 1;
    uint32_t far = 0, got;

    ck_assert_uint_eq(t->second[i][0][0], e.literal_bits | e.count << 6);
    ck_assert_mem_eq(t->second[i][0] + 1, e.literal, 3);
    got = (uint32_t)t->second[i][1][0] | (uint32_t)t->second[i][1][1] << 8 | (uint32_t)t->second[i][1][2] << 16 |
          (uint32_t)t->second[i][1][3] << 24;
    if (size > 0 && symbol >= 8) /* distances of at least 17 */
        far = (1 + ((2 + (symbol & 1)) << extra)) << 16 | size << DIST_CODE_SHIFT | (size + extra);
    ck_assert_uint_eq(got, far);
}

/* -------------------------------------------------------------------------------------------------------------------*/

TEST_CASE("inflate", "tables", NULL, NULL);

TEST(loop_tables_of_random_codes_have_what_symbol_by_symbol_gives)
{
    struct inflater *t = inflater_new(inflater_best());
    uint64_t state = 7;

    ck_assert_ptr_nonnull(t);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned litlen = 257 + next_random(&state) % 30, dist = 2 + next_random(&state) % 29;
        uint8_t lengths[LITLEN_CODES + DIST_CODES] = {0};

        make_code(&state, litlen, 2 + next_random(&state) % (round % 3 ? 60 : litlen - 2), 256, lengths);
        make_code(&state, dist, 2 + next_random(&state) % (dist - 1), 0, lengths + litlen);
        memcpy(t->lengths, lengths, sizeof(lengths));
        ck_assert(inflater_make_tables(t, litlen, dist));
        for (uint32_t i = 0; i < 1u << LOOP_BITS; i++)
            compare_first(t, lengths, litlen, i);
        for (uint32_t i = 0; i < 1u << DIST_BITS; i++)
            compare_second(t, lengths, litlen, dist, i);
    }
    inflater_free(t);
}
