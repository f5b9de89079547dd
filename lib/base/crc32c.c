/*
 * crc32c.c - CRC-32C with ISA-L, which chooses PCLMUL, SSE4.2 or ARM instructions at run time; and the version
 *
 * ISA-L's function takes and returns the raw register, so chex_crc32c() inverts it before and after.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "chex.h"

#include "base/cpu.h"

#include <isa-l/crc.h>

/* The length in ISA-L is an int. */
#define PIECE (1u << 30)

uint32_t
chex_crc32c(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *p = data;
    unsigned state = ~crc;

    while (size > 0) {
        size_t piece = size < PIECE ? size : PIECE;

        /* The parameter lacks a const; nothing is written. */
        state = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)piece, state);
        p += piece;
        size -= piece;
    }
    cpu_vzeroupper();
    return ~state;
}

uint32_t
chex_crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

const char *
chex_version(void)
{
    return PACKAGE_VERSION;
}

unsigned
chex_version_number(void)
{
    return CHEX_VERSION_NUMBER;
}
