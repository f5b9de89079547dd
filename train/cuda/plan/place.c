/*
 * place.c - see place.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/place.h"

struct cuda_place
cuda_place_of(const struct cuda_layout *l)
{
    struct cuda_place p = {.value_bytes = l->chip.value_bytes};
    int i;

    _Static_assert(CUDA_TABLE_COUNT <= CUDA_KNOWN_TABLES, "room for all tables");
    for (i = 0; i < CUDA_TABLE_COUNT; i++)
        p.table[i] = (struct cuda_known_table){l->table[i].host, l->table[i].at, l->table[i].bytes};
    return p;
}
