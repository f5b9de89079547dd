/*
 * nccl_library.c - opens NCCL as a shared library on first use; see nccl_library.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/comm/nccl_library.h"

#include "backend/shared_library.h"

static bool
find_calls(const struct shared_library *library, struct nccl_calls *calls, char *why, size_t size)
{
#define FIND(name)                                                            \
    if (!shared_library_find(library, "nccl" #name, &calls->name, why, size)) \
        return false;
    NCCL_CALLS(FIND)
#undef FIND
    return true;
}

const struct nccl_calls *
nccl_open(char *why, size_t size)
{
    static struct shared_library library = {.name = "libnccl.so.2", .place = NCCL_LIBRARY, .package = "nccl"};
    static struct nccl_calls calls;
    static bool whole;

    if (!whole)
        whole = shared_library_open(&library, why, size) && find_calls(&library, &calls, why, size);
    return whole ? &calls : NULL;
}
