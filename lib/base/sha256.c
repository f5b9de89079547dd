/*
 * sha256.c - see sha256.h
 *
 * It uses functions of libcrypto that OpenSSL 3 deprecates, on purpose: they run the same code without a provider,
 * allocate nothing and never fail.  With the new functions, EVP_MD_fetch() of OpenSSL 3.0 dereferences NULL if an
 * allocation fails, EVP_DigestInit_ex() can fail in each call, and loading the providers takes 4000 allocations per
 * process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/sha256.h"

#include <openssl/sha.h>
#include <stdlib.h>

struct digest {
    SHA256_CTX context;
};

struct digest *
digest_new(void)
{
    return calloc(1, sizeof(struct digest));
}

void
digest_free(struct digest *d)
{
    free(d);
}

void
digest_start(struct digest *d)
{
    SHA256_Init(&d->context);
}

void
digest_add(struct digest *d, const void *data, size_t size)
{
    SHA256_Update(&d->context, data, size);
}

void
digest_finish(struct digest *d, uint8_t out[DIGEST_SIZE])
{
    SHA256_Final(out, &d->context);
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
