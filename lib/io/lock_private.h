/*
 * lock_private.h - the holder of a lock, for lock.c: how a process describes itself, and what it can know of another
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LOCK_PRIVATE_H
#define CHEX_LIB_LOCK_PRIVATE_H

#include "io/lock.h"

/* The inode of the pid namespace that the kernel begins with (PROC_PID_INIT_INO): that of no container. */
#define LOCK_FIRST_SPACE 0xeffffffcu

struct lock_holder {
    char host[128];
    long pid;
    char boot[64];
    unsigned long long space; /* the pid's namespace, its inode: a container has its own numbers */
    unsigned long long start; /* of the process, in ticks since boot: a number may be used again */
    char since[32];
    char machine[64];     /* machine-id(5), "unknown" where there is none */
    long long made;       /* the lock, in seconds since 1970; 0: unknown */
    long long machine_up; /* of this process only: when this machine was booted; 0: unknown */
};

void lock_describe_self(struct lock_holder *self);
/* The text of a lock file. */
void lock_format_holder(const struct lock_holder *holder, char text[LOCK_TEXT]);
/* False where it is not one (torn, foreign).  Locks of 0.1 lack the last two lines. */
bool lock_parse_holder(const char *text, struct lock_holder *out);

enum lock_life { LOCK_ALIVE, LOCK_DEAD, LOCK_UNKNOWN };

/*
 * Is the holder alive, as far as this host can know?  A holder of another boot is dead only where that was an earlier
 * boot of this machine.  Another machine, or a container on it, may have the same host name; so the machine-id must be
 * the same too, neither may be in a container (which may have both from its image), and the lock must be older than
 * this boot.
 */
enum lock_life lock_life(const struct lock_holder *holder, const struct lock_holder *self);

#endif
