/*
 * test_crc32c.c - CRC-32C and its masked form
 *
 * Check values: RFC 3720, appendix B.4; "123456789" is the check value of CRC-32/ISCSI in Ross Williams' model.  The
 * mask is that of TensorFlow's crc32c.h.  Its value for "123456789" follows from the formula: the CRC e3069283, rotated
 * right by 15 bits, is 2507c60d; plus a282ead8 is c78ab0e5.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "chex.h"

#include <stdlib.h>
#include <string.h>

/* Castagnoli's polynomial, reflected; computed bit by bit from the definition. */
static uint32_t
crc_by_definition(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

TEST_CASE("crc32c", "crc32c", NULL, NULL);

TEST(crc32c_matches_rfc3720)
{
    uint8_t block[32];

    memset(block, 0, sizeof(block));
    ck_assert_uint_eq(chex_crc32c(0, block, sizeof(block)), 0x8a9136aau);
    memset(block, 0xff, sizeof(block));
    ck_assert_uint_eq(chex_crc32c(0, block, sizeof(block)), 0x62a8ab43u);
    for (unsigned i = 0; i < sizeof(block); i++)
        block[i] = (uint8_t)i;
    ck_assert_uint_eq(chex_crc32c(0, block, sizeof(block)), 0x46dd794eu);
    for (unsigned i = 0; i < sizeof(block); i++)
        block[i] = (uint8_t)(sizeof(block) - 1 - i);
    ck_assert_uint_eq(chex_crc32c(0, block, sizeof(block)), 0x113fdb5cu);
}

TEST(the_check_value_and_its_masked_form)
{
    ck_assert_uint_eq(chex_crc32c(0, "123456789", 9), 0xe3069283u);
    ck_assert_uint_eq(chex_crc32c_mask(0xe3069283u), 0xc78ab0e5u);
    ck_assert_uint_eq(chex_crc32c_mask(0), 0xa282ead8u);
    ck_assert_uint_eq(chex_crc32c_mask(0xffffffffu), 0xa282ead7u);
}

TEST(nothing_changes_nothing)
{
    ck_assert_uint_eq(chex_crc32c(0, "", 0), 0);
    ck_assert_uint_eq(chex_crc32c(0xe3069283u, NULL, 0), 0xe3069283u);
}

/* Sizes and alignments around those at which the fast versions switch between code paths. */
TEST(every_size_and_alignment_agrees_with_the_definition)
{
    static uint8_t data[2100];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * i * 31 + i / 7);
    for (size_t size = 0; size < 2080; size += size < 300 ? 1 : 13)
        for (size_t offset = 0; offset < 16; offset += 5)
            ck_assert_uint_eq(chex_crc32c(0, data + offset, size), crc_by_definition(data + offset, size));
}

TEST(pieces_give_the_same_as_the_whole)
{
    static uint8_t data[1000];
    uint32_t whole;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 151 >> 2);
    whole = chex_crc32c(0, data, sizeof(data));
    for (size_t cut = 0; cut <= sizeof(data); cut++)
        ck_assert_uint_eq(chex_crc32c(chex_crc32c(0, data, cut), data + cut, sizeof(data) - cut), whole);
}

TEST(the_version_equals_the_version_of_the_package)
{
    ck_assert_str_eq(chex_version(), PACKAGE_VERSION);
}
