/*
 * blake2b.h - BLAKE2b (RFC 7693) with a digest of 32 bytes, without a key
 *
 * To compare images with each other: about twice as fast as SHA-256 on a CPU without instructions for that, and it
 * needs no memory that could be lacking.  What users check with sha256sum is digest.h's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_BLAKE2B_H
#define CHEX_TOOLS_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

#define BLAKE2B_SIZE 32

/* Thread-safe. */
void blake2b(const uint8_t *data, size_t size, uint8_t out[BLAKE2B_SIZE]);

#endif
