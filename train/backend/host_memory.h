/*
 * host_memory.h - how much memory this process can still take
 *
 * Linux promises more than it has, and ends a process that believes it.  So a caller that needs much asks before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_HOST_MEMORY_H
#define CHEX_TRAIN_HOST_MEMORY_H

#include <stdint.h>

/*
 * Bytes: what the system has available (which includes caches that it would give up), but not more than any control
 * group of this process allows beyond what it holds.  UINT64_MAX where the system does not say.
 */
uint64_t host_memory_available(void);

/*
 * The part of control groups, of version 1 and 2.  `groups` is /proc/self/cgroup, `mount` /sys/fs/cgroup: others for
 * tests.  A limit of a group above counts too.  What a group holds is what cannot be given up; files in the page cache
 * can.
 */
uint64_t host_memory_of_groups(const char *groups, const char *mount);

#endif
