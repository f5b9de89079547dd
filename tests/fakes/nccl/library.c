/*
 * library.c - see comm/nccl_library.h: the NCCL of the tests is linked into the program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/comm/nccl_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct nccl_calls *
nccl_open(char *why, size_t size)
{
    static const struct nccl_calls calls = {NCCL_CALLS(NCCL_ENTRY)};
    const char *setting = getenv("FAKE_NCCL");

    if (!setting || strcmp(setting, "none") != 0)
        return &calls;
    snprintf(why, size, "libnccl.so.2 was not found");
    return NULL;
}
