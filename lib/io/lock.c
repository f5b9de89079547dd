/*
 * lock.c - see lock.h
 *
 * A dead holder's lock is first renamed and then removed.  If two processes find it dead, only one takes it over.  The
 * other's rename fails or moves another lock, which it then restores.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/lock_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES 4
#define NEW   ".new."   /* LOCK.new.PID.NANOSECONDS: written, but not linked yet */
#define STALE ".stale." /* LOCK.stale.PID: moved aside */

/* ---- files ----------------------------------------------------------------------------------------------------- */

static enum chex_status
read_lock(const struct folder *folder, const char *name, char text[LOCK_TEXT], struct chex_error *err)
{
    uint64_t size;
    size_t got;
    int fd;
    enum chex_status status = file_open_own(folder, name, &fd, &size, err);

    text[0] = '\0';
    if (status != CHEX_OK)
        return status;
    status = file_pread(fd, 0, text, LOCK_TEXT, &got, err);
    close(fd);
    if (status == CHEX_OK && got == LOCK_TEXT)
        status = error_set(err, CHEX_ERR_LIMIT, "too long for a lock");
    text[status == CHEX_OK ? got : 0] = '\0';
    return status;
}

/* Create a file with this text.  Returns 0, or the errno; then the file does not exist. */
static int
write_text(const struct folder *folder, const char *name, const char *text)
{
    int fd = file_openat(folder->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
                         folder_file_mode(folder));
    int error;

    if (fd < 0)
        return -fd;
    error = file_pwrite(fd, 0, text, strlen(text));
    if (error == 0)
        error = file_fsync(fd);
    if (close(fd) != 0 && errno != EINTR && error == 0)
        error = errno;
    if (error != 0)
        unlinkat(folder->fd, name, 0);
    return error;
}

/*
 * Give the file `from` with this text also the name `name`.  Returns 0, or the errno; EEXIST if another file has that
 * name.
 */
static int
link_lock(const struct folder *folder, const char *from, const char *name, const char *text)
{
    int error = linkat(folder->fd, from, folder->fd, name, 0) == 0 ? 0 : errno;
    struct stat st;

    /* Over NFS the answer may be lost.  The client then repeats the call and finds our own link. */
    if (error == EEXIST && fstatat(folder->fd, from, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink > 1)
        return 0;
    if (error == EPERM || error == ENOSYS || error == ENOTSUP || error == EMLINK) /* no hard links */
        return write_text(folder, name, text);
    return error;
}

static int
create_lock(const struct folder *folder, const char *name, const char *text)
{
    char made[LOCK_NAME_SIZE + 64];
    struct timespec now;
    int error;

    clock_gettime(CLOCK_REALTIME, &now); /* in containers every process may have pid 1 */
    snprintf(made, sizeof(made), "%s" NEW "%ld.%ld", name, (long)getpid(), now.tv_nsec);
    error = write_text(folder, made, text);
    if (error != 0)
        return error;
    error = link_lock(folder, made, name, text);
    unlinkat(folder->fd, made, 0);
    return error == ENOENT ? EAGAIN : error; /* a rival that got the lock removed our file as a leftover */
}

/* Remove the lock with the text `stale`. */
static void
remove_stale(const struct folder *folder, const char *name, const char *stale)
{
    char aside[LOCK_NAME_SIZE + 32], text[LOCK_TEXT];

    snprintf(aside, sizeof(aside), "%s" STALE "%ld", name, (long)getpid());
    if (renameat(folder->fd, name, folder->fd, aside) != 0)
        return;
    if (read_lock(folder, aside, text, NULL) == CHEX_OK && strcmp(text, stale) != 0 &&
        link_lock(folder, aside, name, text) != 0)
        return;
    /* With --break-lock it may be a folder.  A folder with files keeps its new name. */
    if (unlinkat(folder->fd, aside, 0) != 0 && errno == EISDIR)
        unlinkat(folder->fd, aside, AT_REMOVEDIR);
}

/* ---- holders --------------------------------------------------------------------------------------------------- */

/*
 * Parse a lock and find out whether its holder is alive.  If it is not the text of a lock: unknown, with host
 * "unknown".
 */
static enum lock_life
life_of(const char *text, struct lock_holder *holder)
{
    struct lock_holder self;

    if (!lock_parse_holder(text, holder)) {
        *holder = (struct lock_holder){.host = "unknown", .since = "unknown"};
        return LOCK_UNKNOWN;
    }
    lock_describe_self(&self);
    return lock_life(holder, &self);
}

/* Returns whether the lock exists, is readable, and has a dead holder (dead) or one that is not dead (!dead). */
static bool
is_lock_of(const struct folder *folder, const char *name, bool dead)
{
    struct lock_holder holder;
    char text[LOCK_TEXT];

    return read_lock(folder, name, text, NULL) == CHEX_OK && (life_of(text, &holder) == LOCK_DEAD) == dead;
}

/*
 * Handle a lock of another process that excludes us.  CHEX_OK: the lock is gone, because its holder is dead or the user
 * says so.  CHEX_ERR_LOCKED: it stays; CHEX_ERR_WRITE: it is not a file.
 */
static enum chex_status
clear_away(const struct folder *folder, const char *name, bool break_lock, struct chex_error *err)
{
    struct lock_holder holder;
    struct chex_error own = {.status = CHEX_OK};
    struct part part;
    char text[LOCK_TEXT], whose[48] = "";
    enum chex_status status;
    enum lock_life life;

    err = err ? err : &own;
    status = read_lock(folder, name, text, err);
    life = status == CHEX_OK ? life_of(text, &holder) : LOCK_UNKNOWN;
    if (status == CHEX_ERR_MISSING && err->cause == ENOENT) /* it was released meanwhile */
        return CHEX_OK;
    if (life == LOCK_DEAD || (life == LOCK_UNKNOWN && break_lock)) {
        remove_stale(folder, name, text);
        return CHEX_OK;
    }
    if (status == CHEX_ERR_MEMORY)
        return error_context(err, status, "'%s/%s'", folder->path, name);
    if (status != CHEX_OK)
        return error_context(err, status == CHEX_ERR_NOT_IMAGE ? CHEX_ERR_WRITE : CHEX_ERR_LOCKED,
                             "'%s/%s' cannot be read as a lock (--break-lock removes it)", folder->path, name);
    if (part_parse_suffix(name + strlen(LOCK_NAME), &part))
        snprintf(whose, sizeof(whose), "part %u of %u of ", part.index + 1, part.count);
    return error_set(err, CHEX_ERR_LOCKED, "%s'%s' is in use by host %s pid %ld since %s%s", whose, folder->path,
                     holder.host, holder.pid, holder.since,
                     life == LOCK_ALIVE ? ", which is alive" : " (--break-lock if that is dead)");
}

/* ---- taking ---------------------------------------------------------------------------------------------------- */

static bool
has_lock_name(const char *name)
{
    return strncmp(name, LOCK_NAME, strlen(LOCK_NAME)) == 0;
}

/*
 * Returns the part of a lock's name after the prefix: "" for a lock, NEW or STALE and more for other files.  *part is
 * the part of the lock.
 */
static const char *
after_lock_name(const char *name, struct part *part)
{
    const char *rest = name + strlen(LOCK_NAME);

    if (part_parse_suffix(rest, part))
        return rest + PART_SUFFIX_LENGTH;
    *part = (struct part){0};
    return rest;
}

/*
 * After creating our lock, search for other processes that must not work at the same time, and remove files of killed
 * processes.  A NEW file may belong to a living rival, which then tries again and finds our lock.
 */
static enum chex_status
look_around(const struct lock *lock, struct part mine, bool break_lock, struct chex_error *err)
{
    struct folder_names names = {0};
    enum chex_status status = folder_list(lock->folder, has_lock_name, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++) {
        const char *name = names.name[i], *rest;
        struct part part;

        rest = after_lock_name(name, &part);
        if (!*rest && strcmp(name, lock->name) != 0 && (part_is_whole(mine) || part.count != mine.count))
            status = clear_away(lock->folder, name, break_lock, err);
        else if ((part_is_whole(mine) || (part.index == mine.index && part.count == mine.count)) &&
                 (strncmp(rest, NEW, strlen(NEW)) == 0 ||
                  (strncmp(rest, STALE, strlen(STALE)) == 0 && is_lock_of(lock->folder, name, true))))
            unlinkat(lock->folder->fd, name, 0);
    }
    folder_names_release(&names);
    return status;
}

enum chex_status
lock_take_part(struct lock *lock, const struct folder *folder, struct part part, bool break_lock,
               struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    struct lock_holder self;
    int tries, error = EAGAIN;

    *lock = (struct lock){.folder = folder};
    snprintf(lock->name, sizeof(lock->name), LOCK_NAME);
    if (!part_is_whole(part))
        snprintf(lock->name, sizeof(lock->name), LOCK_NAME PART_FORMAT, part.index + 1, part.count);
    lock_describe_self(&self);
    lock_format_holder(&self, lock->text);
    for (tries = 0; status == CHEX_OK && tries < TRIES && (error == EAGAIN || error == EEXIST); tries++) {
        error = create_lock(folder, lock->name, lock->text);
        /* The user's decision is about the first lock, not about one that a rival creates at this moment. */
        if (error == EEXIST)
            status = clear_away(folder, lock->name, break_lock && tries == 0, err);
    }
    if (status != CHEX_OK)
        return status;
    if (error == EAGAIN || error == EEXIST)
        return error_set(err, CHEX_ERR_LOCKED, "'%s' is being taken over by another process", folder->path);
    if (error != 0)
        return error_system(err, CHEX_ERR_WRITE, error, "cannot write to the folder '%s'", folder->path);
    lock->held = true;
    status = look_around(lock, part, break_lock, err);
    if (status != CHEX_OK)
        lock_drop(lock, NULL);
    return status;
}

enum chex_status
lock_take(struct lock *lock, const struct folder *folder, bool break_lock, struct chex_error *err)
{
    return lock_take_part(lock, folder, (struct part){0}, break_lock, err);
}

/* ---- held ------------------------------------------------------------------------------------------------------ */

bool
lock_is_held(const struct folder *folder)
{
    return is_lock_of(folder, LOCK_NAME, false);
}

enum chex_status
lock_check(const struct lock *lock, struct chex_error *err)
{
    struct lock_holder rival;
    struct chex_error own = {.status = CHEX_OK};
    char text[LOCK_TEXT];
    enum chex_status status;

    err = err ? err : &own;
    if (!lock->held)
        return error_set(err, CHEX_ERR_LOCKED, "the lock of '%s' was released", lock->folder->path);
    status = read_lock(lock->folder, lock->name, text, err);
    if (status == CHEX_ERR_MISSING && err->cause == ENOENT)
        return error_set(err, CHEX_ERR_LOCKED, "'%s/%s' was removed: another process may have taken the folder",
                         lock->folder->path, lock->name);
    if (status != CHEX_OK)
        return error_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_WRITE, "the lock '%s/%s'",
                             lock->folder->path, lock->name);
    if (strcmp(text, lock->text) == 0)
        return CHEX_OK;
    if (lock_parse_holder(text, &rival) && strncmp(text, lock->text, strlen(text)) != 0)
        return error_set(err, CHEX_ERR_LOCKED, "'%s' was taken over by host %s pid %ld", lock->folder->path, rival.host,
                         rival.pid);
    return error_set(err, CHEX_ERR_WRITE, "the lock '%s/%s' is damaged: %zu bytes, not the %zu that were written",
                     lock->folder->path, lock->name, strlen(text), strlen(lock->text));
}

enum chex_status
lock_drop(struct lock *lock, struct chex_error *err)
{
    enum chex_status status = lock->held ? lock_check(lock, err) : CHEX_ERR_LOCKED;

    lock->held = false;
    if (status == CHEX_OK)
        return folder_remove(lock->folder, lock->name, err);
    return status == CHEX_ERR_LOCKED ? CHEX_OK : error_context(err, CHEX_ERR_WRITE, "cannot release the folder");
}
