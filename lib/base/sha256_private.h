/*
 * sha256_private.h - the implementations of SHA-256's compression function (FIPS 180-4, 6.2.2)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SHA256_PRIVATE_H
#define CHEX_LIB_SHA256_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BLOCK 64 /* bytes */

/* Adds `blocks` blocks of 64 bytes to the eight words a to h of the state. */
typedef void sha256_blocks_fn(uint32_t state[8], const uint8_t *data, size_t blocks);

/* The constants of the 64 rounds. */
extern const uint32_t sha256_k[64];

struct sha256_kind {
    const char *name;
    bool (*supported)(void);
    sha256_blocks_fn *blocks;
};

/* The fastest first; plain C, which any CPU supports, last.  A name of NULL ends the list. */
extern const struct sha256_kind sha256_kinds[];

sha256_blocks_fn sha256_blocks_c;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define SHA256_HAVE_X86 1
bool sha256_x86_supported(void);
sha256_blocks_fn sha256_blocks_x86;
#endif

/* The arm_neon.h of an older clang has these instructions only if the whole file is compiled for them. */
#if defined(__aarch64__) && defined(__linux__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && \
    !(defined(__clang__) && __clang_major__ < 16)
#define SHA256_HAVE_ARM 1
bool sha256_arm_supported(void);
sha256_blocks_fn sha256_blocks_arm;
#endif

#endif
