/*
 * sha256.c - see sha256.h: the table of implementations, pieces of any size, padding (FIPS 180-4, 5.1.1)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256.h"

#include "base/sha256_private.h"

#include <stdlib.h>
#include <string.h>

static bool
always(void)
{
    return true;
}

const struct sha256_kind sha256_kinds[] = {
#ifdef SHA256_HAVE_X86
    {"sha-ni", sha256_x86_supported, sha256_blocks_x86},
#endif
#ifdef SHA256_HAVE_ARM
    {"sha2", sha256_arm_supported, sha256_blocks_arm},
#endif
    {"c", always, sha256_blocks_c},
    {NULL, NULL, NULL},
};

struct digest {
    sha256_blocks_fn *blocks;
    uint32_t state[8];
    uint64_t size;              /* bytes added */
    uint8_t rest[SHA256_BLOCK]; /* the last size % 64 of them, not yet in the state */
};

struct digest *
digest_new(void)
{
    const struct sha256_kind *kind = sha256_kinds;
    struct digest *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    while (!kind->supported())
        kind++;
    d->blocks = kind->blocks;
    return d;
}

void
digest_free(struct digest *d)
{
    free(d);
}

void
digest_start(struct digest *d)
{
    /* The first 32 bits of the fractional parts of the square roots of the first eight primes (5.3.3). */
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    memcpy(d->state, initial, sizeof(initial));
    d->size = 0;
}

void
digest_add(struct digest *d, const void *data, size_t size)
{
    const uint8_t *from = data;
    size_t held = (size_t)(d->size % SHA256_BLOCK), whole;

    if (size == 0)
        return;
    d->size += size;
    if (held > 0) {
        size_t part = size < SHA256_BLOCK - held ? size : SHA256_BLOCK - held;

        memcpy(d->rest + held, from, part);
        if (held + part < SHA256_BLOCK)
            return;
        d->blocks(d->state, d->rest, 1);
        from += part;
        size -= part;
    }
    whole = size / SHA256_BLOCK;
    d->blocks(d->state, from, whole);
    memcpy(d->rest, from + whole * SHA256_BLOCK, size % SHA256_BLOCK);
}

/* Write the lowest `bytes` bytes of x, most significant first. */
static void
put_big_endian(uint64_t x, size_t bytes, uint8_t *out)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(x >> 8 * (bytes - 1 - i));
}

void
digest_finish(struct digest *d, uint8_t out[DIGEST_SIZE])
{
    static const uint8_t padding[SHA256_BLOCK] = {0x80};
    size_t held = (size_t)(d->size % SHA256_BLOCK);
    uint8_t bits[8];

    put_big_endian(d->size * 8, sizeof(bits), bits);
    digest_add(d, padding, (held < 56 ? 56 : 120) - held);
    digest_add(d, bits, sizeof(bits));
    for (size_t i = 0; i < 8; i++)
        put_big_endian(d->state[i], 4, out + 4 * i);
}

void
crc_hex(uint32_t crc, char out[CRC_HEX])
{
    const uint8_t bytes[] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8), (uint8_t)crc};

    digest_hex(bytes, sizeof(bytes), out);
}

void
digest_hex(const uint8_t *digest, size_t bytes, char *out)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes; i++) {
        out[2 * i] = hex[digest[i] >> 4];
        out[2 * i + 1] = hex[digest[i] & 15];
    }
    out[2 * bytes] = '\0';
}

bool
digest_data(const void *data, size_t size, char hex[DIGEST_HEX])
{
    struct digest *d = digest_new();
    uint8_t hash[DIGEST_SIZE];

    if (!d)
        return false;
    digest_start(d);
    digest_add(d, data, size);
    digest_finish(d, hash);
    digest_free(d);
    digest_hex(hash, sizeof(hash), hex);
    return true;
}
