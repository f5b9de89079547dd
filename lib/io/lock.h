/*
 * lock.h - allows only one writer in a folder
 *
 * The holder of a folder writes a file .chex.lock to it, because Lustre and NFS may not support flock().  The file
 * describes the holder (lock_private.h).  If the holder is dead, the lock is taken over.  A lock of a living process is
 * never taken over.  If this process cannot find out whether the holder is alive (another host or container), the user
 * decides.
 *
 * Part 1 of 4 takes .chex.lock-00001-of-00004.  Different parts with the same number of parts may work at the same
 * time.  A part and a whole conversion, or parts of 4 and of 5, may not.  A process first creates its own file and then
 * searches for those of others.  So at most one of two rivals gets the folder, and neither if both began at the same
 * moment.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LOCK_H
#define CHEX_LIB_LOCK_H

#include "base/part.h"
#include "io/file.h"

#define LOCK_NAME      ".chex.lock"
#define LOCK_NAME_SIZE 64
#define LOCK_TEXT      512

struct lock {
    const struct folder *folder;
    char name[LOCK_NAME_SIZE];
    bool held;
    char text[LOCK_TEXT]; /* content of our lock file */
};

/*
 * Take the lock of this part of the folder.  break_lock: the user says that the holder is dead; it is used only if this
 * process cannot find out.
 * CHEX_ERR_LOCKED "'out' is in use by host n07 pid 4242 since 10:31 (--break-lock if that is dead)"
 * CHEX_ERR_WRITE  the lock cannot be written, or its name belongs to something other than a file;  CHEX_ERR_MEMORY
 */
enum chex_status lock_take_part(struct lock *lock, const struct folder *folder, struct part part, bool break_lock,
                                struct chex_error *err);
/* Returns whether a process holds the lock of the whole folder, as far as this host can find out. */
bool lock_is_held(const struct folder *folder);
/*
 * Check that this process still has the lock.
 * CHEX_ERR_LOCKED  it was removed, or another process has taken the folder
 * CHEX_ERR_WRITE   it is unreadable (EACCES, EIO) or damaged (empty, truncated);  CHEX_ERR_MEMORY
 */
enum chex_status lock_check(const struct lock *lock, struct chex_error *err);
/*
 * Release the lock.  A lock that is not held, or that another process has taken, stays.
 * CHEX_ERR_WRITE if it could not be read or removed: the next run takes it over.
 */
enum chex_status lock_drop(struct lock *lock, struct chex_error *err);

/* Take the lock of the whole folder. */
static inline enum chex_status
lock_take(struct lock *lock, const struct folder *folder, bool break_lock, struct chex_error *err)
{
    return lock_take_part(lock, folder, (struct part){0}, break_lock, err);
}

#endif
