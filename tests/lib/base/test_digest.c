/*
 * test_digest.c - SHA-256 (sha256.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256.h"
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
