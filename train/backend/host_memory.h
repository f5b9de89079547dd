/*
 * host_memory.h - memory that this process can still allocate
 *
 * Linux overcommits memory and kills a process that uses more than there is.  So check before a large allocation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_HOST_MEMORY_H
#define CHEX_TRAIN_HOST_MEMORY_H

#include <stdint.h>

/*
 * Returns the available bytes of the system (including caches that it can drop), limited by what each control group of
 * this process leaves.  UINT64_MAX: unknown.
 */
uint64_t host_memory_available(void);

/*
 * Returns the limit of control groups, version 1 and 2.  `groups` is /proc/self/cgroup, `mount` is /sys/fs/cgroup;
 * tests pass other paths.  Limits of parent groups count too.  The usage of a group leaves out the page cache, which
 * can be reclaimed.
 */
uint64_t host_memory_of_groups(const char *groups, const char *mount);

#endif
