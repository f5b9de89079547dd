/*
 * lock.h - one writer for a folder
 *
 * A file .chex.lock, since flock may be off on Lustre and NFS, names its holder: host, pid, boot id, pid namespace,
 * start of the process, machine-id, time.  It is written under another name, synced and linked to its own name, so that
 * neither a kill nor a power loss leaves a lock without a holder; where the file system has no links it is made with
 * O_EXCL.  The lock of a dead process of this host, or of an earlier boot of this machine, is taken over; the lock of a
 * living process never is.  Whether a process of another host or container is alive cannot be known, even where the
 * name of the host is the same: there the user decides.
 *
 * A process that does part 1 of 4 takes .chex.lock-00001-of-00004.  Parts of the same number of parts may work side by
 * side; a part and a whole conversion, or parts of 4 and of 5, may not.  A process makes its own file first and then
 * looks for files of others, so at most one of two rivals gets the folder (none, where both began at the same moment).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LOCK_H
#define CHEX_LIB_LOCK_H

#include "base/part.h"
#include "io/file.h"

#define LOCK_NAME      ".chex.lock"
#define LOCK_NAME_SIZE 64

#define LOCK_TEXT 512

struct lock {
    const struct folder *folder;
    char name[LOCK_NAME_SIZE];
    bool held;
    char text[LOCK_TEXT]; /* what is in our lock file */
};

/*
 * Take the lock.  break_lock takes it also where this host cannot know whether its holder lives: the user says that it
 * is dead.
 * CHEX_ERR_LOCKED "'out' is in use by host n07 pid 4242 since 10:31 (--break-lock if that is dead)"
 * CHEX_ERR_WRITE  it cannot be made; or what has its name is no file
 */
enum chex_status lock_take(struct lock *lock, const struct folder *folder, bool break_lock, struct chex_error *err);
/* The lock of this part of the folder. */
enum chex_status lock_take_part(struct lock *lock, const struct folder *folder, struct part part, bool break_lock,
                                struct chex_error *err);
/* Does a process hold the lock of the whole folder, as far as this host can know? */
bool lock_is_held(const struct folder *folder);
/*
 * Is it still ours?
 * CHEX_ERR_LOCKED  it was removed, or another process has taken the folder
 * CHEX_ERR_WRITE   it cannot be read (EACCES, EIO), or is damaged (empty, cut);  CHEX_ERR_MEMORY
 */
enum chex_status lock_check(const struct lock *lock, struct chex_error *err);
/*
 * Release the lock; one that is not held, or that another process has taken, stays.
 * CHEX_ERR_WRITE where it could not be read or removed: the next run takes it over.
 */
enum chex_status lock_drop(struct lock *lock, struct chex_error *err);

#endif
