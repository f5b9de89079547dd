/*
 * digest.c - see digest.h
 *
 * The algorithm is fetched once for a digest: EVP_sha256() would look it up, under a lock, for each of the hundred
 * thousand small texts that are hashed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "digest.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>
#include <stdlib.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L /* 1.1.1 fetches nothing: its algorithms are constants */
#define EVP_MD_fetch(library, name, properties) ((EVP_MD *)EVP_sha256())
#define EVP_MD_free(md)                         ((void)(md))
#endif

struct digest {
    EVP_MD *md;
    EVP_MD_CTX *context;
};

struct digest *
digest_new(void)
{
    struct digest *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    d->context = EVP_MD_CTX_new();
    /* Tried here, so that what comes later cannot fail: this allocates what the algorithm needs. */
    if (!d->md || !d->context || EVP_DigestInit_ex(d->context, d->md, NULL) != 1) {
        digest_free(d);
        return NULL;
    }
    return d;
}

void
digest_free(struct digest *d)
{
    if (!d)
        return;
    EVP_MD_CTX_free(d->context);
    EVP_MD_free(d->md);
    free(d);
}

void
digest_start(struct digest *d)
{
    int good = EVP_DigestInit_ex(d->context, d->md, NULL);

    assert(good == 1);
    (void)good;
}

void
digest_add(struct digest *d, const void *data, size_t size)
{
    int good = size == 0 || EVP_DigestUpdate(d->context, data, size);

    assert(good == 1);
    (void)good;
}

void
digest_finish(struct digest *d, uint8_t out[DIGEST_SIZE])
{
    unsigned size = 0;
    int good = EVP_DigestFinal_ex(d->context, out, &size);

    assert(good == 1 && size == DIGEST_SIZE);
    (void)good;
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
