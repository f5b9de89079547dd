/*
 * fake_nccl.h - an NCCL for the emulated GPU: the calls of nccl.h over memory that processes share
 *
 * As strict as NCCL, or stricter: a communicator that is in progress takes no call; a call that is in progress puts its
 * sum into the stream at the ncclCommGetAsyncError() that ends it; a sum waits for all ranks, and a host that waits for
 * it otherwise than by polling ends the process (runtime.h); a communicator whose sums are in a graph is not destroyed.
 * Sums are made as by a ring: each part of the data in the order of the ranks that begins with another one, rounded to
 * the type of the data at each addition.
 *
 * From the environment:
 *     FAKE_NCCL          "none": there is no such library
 *     FAKE_NCCL_VERSION  22800 by default
 *     FAKE_NCCL_LATE     seed of how late things are; 0, the default: as early as they can
 *     FAKE_NCCL_FAIL     "RANK NAME COUNT WHAT, ...": call COUNT of NAME on this rank.  NAME: a function, or "sum",
 *                        which the device makes.  WHAT: a number (the error), "hang" (it never ends), "kill" or "stop"
 *                        (the process)
 *     FAKE_NCCL_COUNT    a file: a communicator that is destroyed appends the number of its sums
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAKE_NCCL_H_COUNTS
#define FAKE_NCCL_H_COUNTS

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of this process; kernels that the emulator had run before the first and the last of them. */
struct fake_nccl_counts {
    uint64_t sums, bytes, kernels_before_first, kernels_before_last;
};
/* Since the last call. */
struct fake_nccl_counts fake_nccl_count(void);

#ifdef __cplusplus
}
#endif

#endif
