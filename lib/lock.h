/*
 * lock.h - one writer for a folder
 *
 * A file .chex.lock made with O_EXCL, since flock may be off on Lustre and NFS; it says who holds it: host, pid, boot
 * id, start time.  A lock of a process of this host that is no more, or of an earlier boot, is taken over.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LOCK_H
#define CHEX_LIB_LOCK_H

#include "file.h"

#define LOCK_NAME ".chex.lock"

struct lock {
    const struct folder *folder;
    bool held;
};

/*
 * Take the lock.  break_lock takes it whoever holds it (the user's word that the holder is dead).
 * CHEX_ERR_LOCKED "'out' is in use by host n07 pid 4242 since 10:31 (--break-lock if that is dead)"; CHEX_ERR_WRITE.
 */
enum chex_status lock_take(struct lock *lock, const struct folder *folder, bool break_lock, struct chex_error *err);
void lock_drop(struct lock *lock); /* one that is not held is fine */

#endif
