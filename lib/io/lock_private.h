/*
 * lock_private.h - the holder of a lock, and the rule that says whether it is alive
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LOCK_PRIVATE_H
#define CHEX_LIB_LOCK_PRIVATE_H

#include "io/lock.h"

/* Inode of the kernel's first pid namespace (PROC_PID_INIT_INO).  Containers have others. */
#define LOCK_FIRST_SPACE 0xeffffffcu

struct lock_holder {
    char host[128], boot[64], machine[64], since[32]; /* boot id; machine-id(5); local time for people */
    long pid;
    unsigned long long space; /* inode of the pid namespace */
    unsigned long long start; /* of the process, in ticks since boot, because a pid may be reused */
    long long made;           /* time of the lock, in seconds since 1970 */
    long long machine_up;     /* only for this process: boot time of its machine; 0: unknown */
};

void lock_describe_self(struct lock_holder *self);
/* Format the text of a lock file, and parse it. */
void lock_format_holder(const struct lock_holder *holder, char text[LOCK_TEXT]);
bool lock_parse_holder(const char *text, struct lock_holder *out);

/*
 * The rule: unknown, unless both have the same host name and pid namespace.  Then a holder of this boot is alive if a
 * process with its pid and start exists.  A holder of another boot is dead if the machine-id is the same, neither is in
 * a container, and the lock is older than this boot: containers have the machine-id of their image, and another machine
 * may have the same host name.
 */
enum lock_life { LOCK_ALIVE, LOCK_DEAD, LOCK_UNKNOWN };
enum lock_life lock_life(const struct lock_holder *holder, const struct lock_holder *self);

#endif
