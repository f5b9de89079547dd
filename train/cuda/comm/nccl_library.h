/*
 * nccl_library.h - NCCL's functions, found when they are needed
 *
 * A program that was built with NCCL runs where the library is not: on a login node, on one GPU, on CPUs.  So it is not
 * linked but opened, by nccl_library.c.  In a build without its header nccl_none.c stands in the place of this file and
 * of nccl.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_COMM_NCCL_LIBRARY_H
#define CHEX_CUDA_COMM_NCCL_LIBRARY_H

#include <nccl.h>
#include <stddef.h>

/* The calls that are used: X(the name behind "nccl"). */
/* clang-format off */
#define NCCL_CALLS(X) \
    X(GetVersion) X(GetUniqueId) X(CommInitRankConfig) X(CommGetAsyncError) X(AllReduce) X(CommFinalize) \
    X(CommDestroy) X(CommAbort) X(GetErrorString) X(GetLastError)
/* clang-format on */

#define NCCL_MEMBER(name) __typeof__(&nccl##name) name;
#define NCCL_ENTRY(name)  .name = nccl##name,
struct nccl_calls {
    NCCL_CALLS(NCCL_MEMBER)
};

/* The library, opened once; or NULL, and why, as shared_library.h says.  From one thread at a time. */
const struct nccl_calls *nccl_open(char *why, size_t size);

#endif
