/*
 * test_digest.c - SHA-256 (sha256.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256.h"
#include "base/sha256_private.h"
#include "unit.h"

#include <stddef.h>
#include <string.h>

TEST_CASE("split", "digest", NULL, NULL);

/* FIPS 180-2, appendix B, examples 1 to 3; the empty text: NIST CAVP, SHA256ShortMsg.rsp, Len = 0. */
TEST(sha256_matches_fips_180)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static char a[1000];
    struct digest *d = digest_new();
    uint8_t sum[DIGEST_SIZE];
    char hex[DIGEST_HEX];

    ck_assert_ptr_nonnull(d);
    digest_start(d);
    digest_add(d, "abc", 3);
    digest_finish(d, sum);
    digest_hex(sum, DIGEST_SIZE, hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

    digest_start(d); /* again, in pieces */
    for (size_t i = 0; i < sizeof(two_blocks) - 1; i++)
        digest_add(d, two_blocks + i, 1);
    digest_finish(d, sum);
    digest_hex(sum, DIGEST_SIZE, hex);
    ck_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");

    memset(a, 'a', sizeof(a));
    digest_start(d);
    for (int i = 0; i < 1000; i++)
        digest_add(d, a, sizeof(a));
    digest_finish(d, sum);
    digest_hex(sum, DIGEST_SIZE, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");

    digest_start(d);
    digest_add(d, NULL, 0);
    digest_finish(d, sum);
    digest_hex(sum, DIGEST_SIZE, hex);
    ck_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

    digest_hex(sum, 8, hex);
    ck_assert_str_eq(hex, "e3b0c44298fc1c14");
    digest_free(d);
    digest_free(NULL);
}

/* The longest rest in one piece, one byte more, and so on: padding in the same block and in the next. */
TEST(pieces_of_any_size_give_the_sum_of_the_whole)
{
    static uint8_t text[300];
    struct digest *d = digest_new();
    uint8_t whole[DIGEST_SIZE], pieces[DIGEST_SIZE];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7);
    for (size_t size = 0; size <= sizeof(text); size++) {
        digest_start(d);
        digest_add(d, text, size);
        digest_finish(d, whole);
        for (size_t cut = 1; cut <= size; cut += 13) {
            digest_start(d);
            digest_add(d, text, cut);
            digest_add(d, text + cut, size - cut);
            digest_finish(d, pieces);
            ck_assert_mem_eq(whole, pieces, sizeof(whole));
        }
    }
    digest_free(d);
}

/* The block of "abc" (FIPS 180-2, appendix B.1), then blocks of any bytes: the last implementation is plain C. */
TEST(each_implementation_on_this_cpu_gives_the_state_of_plain_c)
{
    static const uint32_t sum[8] = {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                    0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t abc[SHA256_BLOCK] = {'a', 'b', 'c', 0x80, [63] = 24};
    uint8_t bytes[5 * SHA256_BLOCK];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    for (const struct sha256_kind *kind = sha256_kinds; kind->name; kind++) {
        uint32_t got[8], want[8];

        if (!kind->supported())
            continue;
        memcpy(got, initial, sizeof(got));
        kind->blocks(got, abc, 1);
        ck_assert_mem_eq(got, sum, sizeof(sum));
        for (size_t shift = 0; shift < SHA256_BLOCK; shift++) {
            memcpy(got, sum, sizeof(got));
            memcpy(want, sum, sizeof(want));
            kind->blocks(got, bytes + shift, shift % 5);
            sha256_blocks_c(want, bytes + shift, shift % 5);
            ck_assert_mem_eq(got, want, sizeof(want));
        }
    }
}

TEST(a_digest_that_was_left_unfinished_starts_again)
{
    struct digest *d = digest_new();
    uint8_t sum[DIGEST_SIZE];
    char hex[DIGEST_HEX];

    digest_start(d);
    digest_add(d, "something else", 14);
    digest_start(d);
    digest_add(d, "abc", 3);
    digest_finish(d, sum);
    digest_hex(sum, DIGEST_SIZE, hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_free(d);
}
