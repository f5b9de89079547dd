/*
 * nccl_library.h - the functions of NCCL, looked up at run time
 *
 * A program that was built with NCCL must also run without the library: on a login node, on one GPU, on CPUs.  So
 * nccl_library.c opens the library when it is needed, and the program is not linked with it.  A build without NCCL's
 * header compiles nccl_none.c instead of this file and nccl.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_COMM_NCCL_LIBRARY_H
#define CHEX_CUDA_COMM_NCCL_LIBRARY_H

#include <nccl.h>
#include <stddef.h>

/* ncclBfloat16: older headers declare it in C++ only.  The number is a part of NCCL's interface. */
#define NCCL_BFLOAT16 ((ncclDataType_t)9)

/* The calls in use: X(name without the prefix "nccl"). */
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

/*
 * Opens the library on the first call.  Returns NULL on failure, with the reason in `why` (shared_library.h).  Not
 * thread-safe.
 */
const struct nccl_calls *nccl_open(char *why, size_t size);

#endif
