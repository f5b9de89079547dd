/*
 * test_keyed_hash.c - keyed_hash.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/keyed_hash.h"
#include "unit.h"

#include <string.h>

enum { SIZE = 1000 };

TEST_CASE("plan", "keyed hash", NULL, NULL);

TEST(each_bit_and_each_length_counts)
{
    static uint8_t data[SIZE], copy[SIZE + 1];
    struct hash_key key;
    uint64_t hash;

    for (int i = 0; i < SIZE; i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    hash_key_make(&key);
    hash = keyed_hash(&key, data, SIZE);
    memcpy(copy + 1, data, SIZE);
    ck_assert_uint_eq(keyed_hash(&key, copy + 1, SIZE), hash);
    for (size_t bit = 0; bit < SIZE * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_uint_ne(keyed_hash(&key, data, SIZE), hash);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(data, 0, SIZE);
    for (size_t size = 0; size < SIZE; size++)
        ck_assert_uint_ne(keyed_hash(&key, data, size), keyed_hash(&key, data, size + 1));
}

TEST(another_key_gives_another_hash)
{
    struct hash_key a, b;

    hash_key_make(&a);
    hash_key_make(&b);
    ck_assert_uint_ne(keyed_hash(&a, "abc", 3), keyed_hash(&b, "abc", 3));
}
