/*
 * sha256.h - SHA-256 (FIPS 180-4) of data in several pieces; hexadecimal digests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DIGEST_H
#define CHEX_LIB_DIGEST_H

#include "base/error.h"

#define DIGEST_SIZE 32
#define DIGEST_HEX  65 /* with its terminator */
#define CRC_HEX     9  /* of a CRC-32C, with its terminator */

struct digest; /* opaque, reusable: digest_start() resets it */

/* NULL when out of memory.  Each thread needs its own. */
struct digest *digest_new(void);
void digest_free(struct digest *d); /* NULL is allowed */

/* These cannot fail. */
void digest_start(struct digest *d);
void digest_add(struct digest *d, const void *data, size_t size);
void digest_finish(struct digest *d, uint8_t out[DIGEST_SIZE]);

/* Format a CRC-32C, most significant digit first. */
void crc_hex(uint32_t crc, char out[CRC_HEX]);

/* Format the SHA-256 of `size` bytes.  Returns false when out of memory. */
bool digest_data(const void *data, size_t size, char hex[DIGEST_HEX]);

/* Format the first `bytes` bytes as lower-case hexadecimal, terminated; out has 2 * bytes + 1 characters. */
void digest_hex(const uint8_t *digest, size_t bytes, char *out);

#endif
