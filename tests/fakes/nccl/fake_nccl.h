/*
 * fake_nccl.h - an NCCL for the emulated GPU: the calls of nccl.h over shared memory of the processes
 *
 * As strict as NCCL, or stricter.  A communicator in progress accepts no call.  A call in progress puts its sum into
 * the stream at the ncclCommGetAsyncError() that completes it.  A sum waits for all ranks.  A communicator must not be
 * destroyed while a graph contains its sums.  These end the process:
 * - a host that waits for a sum in another way than by polling (runtime.h);
 * - a rank that records a sum alone, or replays a graph of another recording than the other ranks;
 * - a rank that records a sum although none of that size and type ran before: NCCL would connect during the capture.
 * Sums are computed as in a ring: each part of the data starts at another rank and follows the order of the ranks, and
 * each addition rounds to the type of the data.
 *
 * From the environment:
 *     FAKE_NCCL          "none": no library
 *     FAKE_NCCL_VERSION  22800 by default
 *     FAKE_NCCL_LATE     seed of random delays; 0, the default: everything happens as early as possible
 *     FAKE_NCCL_FAIL     "RANK NAME COUNT WHAT, ...": call COUNT of NAME on this rank.  NAME: a function; "sum", which
 *                        the device computes; "capture", a sum that a stream captures.  WHAT: the number of an error
 *                        (ncclCommGetAsyncError() returns that of a sum or a capture), "hang" (it never ends), "kill"
 *                        or "stop" (the process)
 *     FAKE_NCCL_EXIT     if set: a process that aborts a communicator must end by _exit()
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
