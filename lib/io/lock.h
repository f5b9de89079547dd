/*
 * lock.h - one writer for a folder
 *
 * The holder of a folder writes a file .chex.lock into it, because flock() may be off on Lustre and NFS.  It names the
 * holder: host, process and its start, boot, pid namespace, machine-id, time.  The file is written under another name,
 * synced and then linked, so a kill or a power loss leaves a complete lock or none.  File systems without hard links
 * get it by O_EXCL.
 *
 * A lock whose holder is dead is taken over.  The lock of a living process never is.  If this process cannot know
 * whether the holder lives (another host or container), the user decides.
 *
 * Part 1 of 4 takes .chex.lock-00001-of-00004.  Parts of one division may work at the same time.  A part and a whole
 * conversion, or parts of 4 and of 5, may not.  A process first makes its own file and then looks for those of others,
 * so of two rivals at most one gets the folder, and none if both began at the same moment.
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
    char text[LOCK_TEXT]; /* what is in our lock file */
};

/*
 * Take the lock.  break_lock: the user says that a holder is dead of which this process cannot know whether it lives.
 * CHEX_ERR_LOCKED "'out' is in use by host n07 pid 4242 since 10:31 (--break-lock if that is dead)"
 * CHEX_ERR_WRITE  it cannot be made, or something that is not a file has its name;  CHEX_ERR_MEMORY
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
 * Release the lock.  One that is not held, or that another process has taken, stays.
 * CHEX_ERR_WRITE if it could not be read or removed: the next run takes it over.
 */
enum chex_status lock_drop(struct lock *lock, struct chex_error *err);

#endif
