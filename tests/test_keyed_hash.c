/*
 * test_keyed_hash.c - keyed_hash.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "base/keyed_hash.h"
#include "cases.h"

#include <string.h>

enum { SIZE = 1000 };

START_TEST(each_bit_and_each_length_counts)
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
END_TEST

START_TEST(another_key_gives_another_hash)
{
    struct hash_key a, b;

    hash_key_make(&a);
    hash_key_make(&b);
    ck_assert_uint_ne(keyed_hash(&a, "abc", 3), keyed_hash(&b, "abc", 3));
    b = a;
    b.point ^= 1;
    ck_assert_uint_ne(keyed_hash(&a, "abc", 3), keyed_hash(&b, "abc", 3));
    b = a;
    b.block[1] ^= 1; /* multiplied with what is in the first word */
    ck_assert_uint_ne(keyed_hash(&a, "abc", 3), keyed_hash(&b, "abc", 3));
}
END_TEST

/* By another way: the definition, in numbers that do not overflow. */
static uint64_t
plain(const struct hash_key *key, const uint8_t *data, size_t size)
{
    const uint64_t prime = (UINT64_C(1) << 61) - 1;
    unsigned __int128 hash = size + 1, sum;

    for (size_t at = 0; at < size; at += 256) {
        uint64_t word[32] = {0};

        memcpy(word, data + at, size - at < 256 ? size - at : 256);
        sum = 0;
        for (int i = 0; i < 32; i += 2)
            sum += (unsigned __int128)(uint64_t)(word[i] + key->block[i]) * (uint64_t)(word[i + 1] + key->block[i + 1]);
        for (int i = 0; i < 3; i++, sum >>= 61)
            hash = (hash * key->point + ((uint64_t)sum & prime)) % prime;
    }
    return (uint64_t)hash;
}

START_TEST(it_is_the_polynomial_of_the_sums)
{
    static uint8_t data[SIZE];
    struct hash_key key;

    hash_key_make(&key);
    for (size_t size = 0; size <= SIZE; size++) {
        memset(data, size & 1 ? 0xff : 0, size);
        ck_assert_uint_eq(keyed_hash(&key, data, size), plain(&key, data, size) % ((UINT64_C(1) << 61) - 1));
    }
}
END_TEST

void
keyed_hash_case(Suite *suite)
{
    TCase *tests = tcase_create("keyed hash");

    tcase_add_test(tests, each_bit_and_each_length_counts);
    tcase_add_test(tests, another_key_gives_another_hash);
    tcase_add_test(tests, it_is_the_polynomial_of_the_sums);
    suite_add_tcase(suite, tests);
}
