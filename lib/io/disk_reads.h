/*
 * disk_reads.h - how many bytes of this process's reads came from a disk, not from the page cache
 *
 * The kernel counts them when it starts a transfer, with its readahead (/proc/self/io, read_bytes).  Some network file
 * systems and FUSE are not counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DISK_READS_H
#define CHEX_LIB_DISK_READS_H

#include <stdbool.h>
#include <stdint.h>

/* Get the bytes since the process began, of all its threads.  Returns false if the kernel does not count them. */
bool disk_reads(uint64_t *bytes);

/* Returns the share of `bytes` that came from a disk; -1 if the kernel does not count, or nothing was read. */
double disk_share(bool known, uint64_t from_disk, uint64_t bytes);

#endif
