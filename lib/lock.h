/*
 * lock.h - one writer for a folder
 *
 * A file .chex.lock, since flock may be off on Lustre and NFS; it says who holds it: host, pid, boot id, pid namespace,
 * start of the process.  It is written whole under another name, synced and linked to its own, so that neither a kill
 * nor a power loss leaves a lock of which nobody can say whose it was; where the file system has no links it is made
 * with O_EXCL.  A lock of a process of this host that is no more, or of an earlier boot, is
 * taken over; one that is alive never is. Of another host or container it cannot be known: there the user's word counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LOCK_H
#define CHEX_LIB_LOCK_H

#include "file.h"

#define LOCK_NAME ".chex.lock"

#define LOCK_TEXT 512

struct lock {
    const struct folder *folder;
    bool held;
    char text[LOCK_TEXT]; /* what is in our lock file */
};

/*
 * Take the lock.  break_lock takes it also where nobody here can know whether its holder lives: the user's word that it is
 * dead.
 * CHEX_ERR_LOCKED "'out' is in use by host n07 pid 4242 since 10:31 (--break-lock if that is dead)"; CHEX_ERR_WRITE.
 */
enum chex_status lock_take(struct lock *lock, const struct folder *folder, bool break_lock, struct chex_error *err);
/* False where somebody broke it meanwhile. */
bool lock_is_ours(const struct lock *lock);
/*
 * One that is not held, or is somebody else's by now, is left alone.
 * CHEX_ERR_WRITE where it could not be removed: the next run takes it over.
 */
enum chex_status lock_drop(struct lock *lock, struct chex_error *err);

#endif
