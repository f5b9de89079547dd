/*
 * fake_nccl.h - an NCCL for the emulated GPU: the calls of nccl.h over shared memory of the processes
 *
 * As strict as NCCL, or stricter.  A communicator in progress accepts no call.  A call in progress puts its sum into
 * the stream at the ncclCommGetAsyncError() that completes it.  A sum waits for all ranks, and a host that waits for it
 * in another way than by polling ends the process (runtime.h).  So does a rank that records a sum alone, replays a graph
 * of another recording than the other ranks, or records a sum although none of that size and type ran before: NCCL
 * would connect the ranks during the capture.  A communicator must not be destroyed while a graph contains its sums.
 * Sums are computed as in a ring: each part of the data starts at another rank and follows the order of the ranks, and
 * each addition rounds to the type of the data.
 *
 * From the environment:
 *     FAKE_NCCL          "none": no library
 *     FAKE_NCCL_VERSION  22800 by default
 *     FAKE_NCCL_LATE     seed of random delays; 0, the default: everything happens as early as possible
 *     FAKE_NCCL_FAIL     "RANK NAME COUNT WHAT, ...": call COUNT of NAME on this rank.  NAME: a function; "sum", which
 *                        the device computes; "capture", a sum that a stream captures.  WHAT: a number (the error, which
 *                        ncclCommGetAsyncError() returns for a sum and for a capture), "hang" (it never ends), "kill"
 *                        or "stop" (the process)
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

/* Sums of this process, and the number of kernels that the emulator had run before the first and the last of them. */
struct fake_nccl_counts {
    uint64_t sums, bytes, kernels_before_first, kernels_before_last;
};
/* Returns the counts since the last call. */
struct fake_nccl_counts fake_nccl_count(void);

#ifdef __cplusplus
}
#endif

#endif
