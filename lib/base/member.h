/*
 * member.h - reads and writes integer members of structs by address and size: bool, 4 or 8 bytes
 *
 * Tables that describe structs use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_MEMBER_H
#define CHEX_LIB_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t
member_get(const void *at, size_t size)
{
    if (size == sizeof(bool))
        return *(const bool *)at;
    return size == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

static inline void
member_put(void *at, size_t size, uint64_t number)
{
    if (size == sizeof(bool))
        *(bool *)at = number > 0;
    else if (size == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)number;
    else
        *(uint64_t *)at = number;
}

#endif
