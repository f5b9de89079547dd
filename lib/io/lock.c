/*
 * lock.c - see lock.h
 *
 * A dead holder's lock is moved aside by rename before it is removed, so that of two processes which both found it
 * dead only one takes over: the other one's rename finds another file or none, and puts back what is not stale.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/lock_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Nothing is allocated: the end of a run that has no memory left drops its lock too. */
static enum chex_status
read_lock(const struct folder *folder, const char *name, char text[LOCK_TEXT], struct chex_error *err)
{
    uint64_t size;
    size_t got;
    int fd;
    enum chex_status status = file_open(folder->fd, name, &fd, &size, err);

    if (status != CHEX_OK)
        return status;
    if (size >= LOCK_TEXT)
        status = error_set(err, CHEX_ERR_LIMIT, "%llu bytes are more than the %d allowed", (unsigned long long)size,
                           LOCK_TEXT - 1);
    else
        status = file_pread(fd, 0, text, LOCK_TEXT - 1, &got, err);
    if (status == CHEX_OK)
        text[got] = '\0';
    close(fd);
    return status;
}

/* Make a file with this text: 0, or the errno, and then there is none. */
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

static bool
knows_no_links(int error)
{
    return error == EPERM || error == ENOSYS || error == ENOTSUP || error == EMLINK;
}

/* Over NFS the answer to a link may be lost, and the client's second try then fails, since there is one: ours. */
static bool
is_same_file(const struct folder *folder, const char *a, const char *b)
{
    struct stat sa, sb;

    return fstatat(folder->fd, a, &sa, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(folder->fd, b, &sb, AT_SYMLINK_NOFOLLOW) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* Make the lock file; text[LOCK_TEXT] gets what is in it: 0, or the errno, EEXIST where there is one. */
static int
create_lock(const struct folder *folder, const char *name, char *text)
{
    struct lock_holder self;
    struct timespec now;
    char made[LOCK_NAME_SIZE + 64];
    int error;

    lock_describe_self(&self);
    lock_format_holder(&self, text);
    /* A pid is not enough for a name of its own: in containers everybody may be number 1. */
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(made, sizeof(made), "%s.new.%ld.%ld", name, self.pid, now.tv_nsec);
    error = write_text(folder, made, text);
    if (error != 0)
        return error;
    error = linkat(folder->fd, made, folder->fd, name, 0) == 0 ? 0 : errno;
    if (error == ENOENT) /* a rival that got the lock meanwhile took our file for a leftover */
        error = EAGAIN;
    if (error == EEXIST && is_same_file(folder, made, name))
        error = 0;
    unlinkat(folder->fd, made, 0);
    return knows_no_links(error) ? write_text(folder, name, text) : error;
}

/*
 * Behind the name of a lock, with a part or without: ".new." or ".stale."; only of the lock `own` where that is given.
 */
static const char *
behind_lock_name(const char *name, const char *own)
{
    const char *rest = name + strlen(own ? own : LOCK_NAME);
    struct part part;

    if (strncmp(name, own ? own : LOCK_NAME, strlen(own ? own : LOCK_NAME)) != 0)
        return NULL;
    return !own && part_parse_suffix(rest, &part) ? rest + PART_SUFFIX_LENGTH : rest;
}

/* Does the holder of this lock live?  False where its file cannot be read. */
static bool
look_at_holder(const struct folder *folder, const char *name, enum lock_life *life)
{
    struct lock_holder holder, self;
    char text[LOCK_TEXT];

    if (read_lock(folder, name, text, NULL) != CHEX_OK || !lock_parse_holder(text, &holder))
        return false;
    lock_describe_self(&self);
    *life = lock_life(&holder, &self);
    return true;
}

/* May this one go?  What was moved aside by mistake is about to be put back. */
static bool
is_leftover(const struct folder *folder, const char *name, const char *own)
{
    static const char new[] = ".new.", stale[] = ".stale.";
    const char *rest = behind_lock_name(name, own);
    enum lock_life life;

    /* One that a rival is making at this moment may be among them: it then begins again, and finds our lock. */
    if (rest && strncmp(rest, new, strlen(new)) == 0)
        return true;
    return rest && strncmp(rest, stale, strlen(stale)) == 0 && look_at_holder(folder, name, &life) && life == LOCK_DEAD;
}

/*
 * Lock files that killed processes made or moved aside.  A process that has the whole folder removes those of parts
 * too.
 */
static void
remove_leftovers(const struct folder *folder, const char *own)
{
    int fd = file_openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *d;

    if (!dir && fd >= 0)
        close(fd);
    while (dir && (d = readdir(dir)))
        if (is_leftover(folder, d->d_name, own))
            unlinkat(folder->fd, d->d_name, 0);
    if (dir)
        closedir(dir);
}

/* Move aside the lock whose text was `stale`; what was moved must be that one. */
static void
remove_stale(const struct folder *folder, const char *name, const char *stale)
{
    char aside[LOCK_NAME_SIZE + 32], text[LOCK_TEXT];

    snprintf(aside, sizeof(aside), "%s.stale.%ld", name, (long)getpid());
    if (renameat(folder->fd, name, folder->fd, aside) != 0)
        return;
    if (read_lock(folder, aside, text, NULL) == CHEX_OK && strcmp(text, stale) != 0 &&
        linkat(folder->fd, aside, folder->fd, name, 0) != 0 &&
        !(knows_no_links(errno) && write_text(folder, name, text) == 0))
        return;
    /* What the user's word removed may be a folder; one that holds something keeps its new name. */
    if (unlinkat(folder->fd, aside, 0) != 0 && errno == EISDIR)
        unlinkat(folder->fd, aside, AT_REMOVEDIR);
}

/* A lock cannot be opened: it was dropped meanwhile, or is a link that leads nowhere, which no converter made. */
static enum chex_status
clear_link(const struct folder *folder, const char *name, bool break_lock, struct chex_error *err)
{
    struct stat st;

    if (fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode))
        return CHEX_OK;
    if (!break_lock)
        return error_set(err, CHEX_ERR_LOCKED, "'%s/%s' is a link that leads nowhere (--break-lock removes it)",
                         folder->path, name);
    unlinkat(folder->fd, name, 0);
    return CHEX_OK;
}

/*
 * Somebody's lock is in the way.  CHEX_OK: it is gone, since its holder is dead (or the user says so);
 * CHEX_ERR_LOCKED: it stays.
 */
static enum chex_status
clear_away(const struct folder *folder, const char *name, bool break_lock, struct chex_error *err)
{
    struct lock_holder holder = {.pid = 0}, self;
    enum lock_life life = LOCK_UNKNOWN;
    char text[LOCK_TEXT];
    enum chex_status status = read_lock(folder, name, text, err);

    if (status == CHEX_ERR_MISSING)
        return clear_link(folder, name, break_lock, err);
    if (status != CHEX_OK && break_lock)
        text[0] = '\0'; /* whatever it is */
    else if (status == CHEX_ERR_NOT_IMAGE)
        return error_set(err, CHEX_ERR_WRITE,
                         "'%s/%s' is not a file, so the folder cannot be locked (--break-lock removes it)",
                         folder->path, name);
    else if (status != CHEX_OK)
        return error_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_LOCKED, "'%s/%s'", folder->path, name);
    lock_describe_self(&self);
    if (lock_parse_holder(text, &holder))
        life = lock_life(&holder, &self);
    else
        snprintf(holder.host, sizeof(holder.host), "unknown");
    if (life == LOCK_ALIVE || (life == LOCK_UNKNOWN && !break_lock)) {
        struct part part;
        char whose[48] = "";

        if (part_parse_suffix(name + strlen(LOCK_NAME), &part))
            snprintf(whose, sizeof(whose), "part %u of %u of ", part.index + 1, part.count);
        return error_set(err, CHEX_ERR_LOCKED, "%s'%s' is in use by host %s pid %ld since %s%s", whose, folder->path,
                         holder.host, holder.pid, holder.since[0] ? holder.since : "unknown",
                         life == LOCK_ALIVE ? ", which is alive" : " (--break-lock if that is dead)");
    }
    remove_stale(folder, name, text);
    return CHEX_OK;
}

/* ---- taking --------------------------------------------------------------------------------------------------- */

static bool
is_lock(const char *name)
{
    size_t length = strlen(LOCK_NAME);
    struct part part;

    if (strncmp(name, LOCK_NAME, length) != 0)
        return false;
    return name[length] == '\0' ||
           (part_parse_suffix(name + length, &part) && name[length + PART_SUFFIX_LENGTH] == '\0');
}

/* May the holder of the lock `name` work beside this part? */
static bool
may_work_beside(struct part mine, const char *name)
{
    struct part part;

    return !part_is_whole(mine) && part_parse_suffix(name + strlen(LOCK_NAME), &part) && part.count == mine.count;
}

/* With our lock made: does any process work here that it does not keep out? */
static enum chex_status
look_around(const struct lock *lock, struct part part, bool break_lock, struct chex_error *err)
{
    struct folder_names names = {0};
    enum chex_status status = folder_list(lock->folder, is_lock, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++)
        if (strcmp(names.name[i], lock->name) != 0 && !may_work_beside(part, names.name[i]))
            status = clear_away(lock->folder, names.name[i], break_lock, err);
    folder_names_release(&names);
    return status;
}

enum chex_status
lock_take_part(struct lock *lock, const struct folder *folder, struct part part, bool break_lock,
               struct chex_error *err)
{
    bool may_break = break_lock;
    int tries, error;

    *lock = (struct lock){.folder = folder};
    snprintf(lock->name, sizeof(lock->name), LOCK_NAME);
    if (!part_is_whole(part))
        snprintf(lock->name, sizeof(lock->name), LOCK_NAME PART_FORMAT, part.index + 1, part.count);
    for (tries = 0; tries < 4; tries++) {
        enum chex_status status;

        error = create_lock(folder, lock->name, lock->text);
        if (error == 0) {
            lock->held = true;
            status = look_around(lock, part, break_lock, err);
            if (status != CHEX_OK)
                lock_drop(lock, NULL);
            else
                remove_leftovers(folder, part_is_whole(part) ? NULL : lock->name);
            return status;
        }
        if (error == EAGAIN)
            continue;
        if (error != EEXIST)
            return error_system(err, CHEX_ERR_WRITE, error, "cannot write to the folder '%s'", folder->path);
        status = clear_away(folder, lock->name, may_break, err);
        if (status != CHEX_OK)
            return status;
        /* The user's word was about the lock that lay there, not about one that a rival makes at this moment. */
        may_break = false;
    }
    return error_set(err, CHEX_ERR_LOCKED, "'%s' is being taken over by another process", folder->path);
}

enum chex_status
lock_take(struct lock *lock, const struct folder *folder, bool break_lock, struct chex_error *err)
{
    return lock_take_part(lock, folder, (struct part){0}, break_lock, err);
}

bool
lock_is_held(const struct folder *folder)
{
    enum lock_life life;

    return look_at_holder(folder, LOCK_NAME, &life) && life != LOCK_DEAD;
}

/*
 * What happened to our lock file?
 * CHEX_OK                          it is as we wrote it
 * CHEX_ERR_LOCKED                  it is gone, or another process wrote it
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY  it cannot be read, or is damaged: nobody has taken the folder
 */
static enum chex_status
check_own(const struct lock *lock, struct chex_error *err)
{
    struct lock_holder rival;
    struct chex_error why;
    char text[LOCK_TEXT];
    enum chex_status status = read_lock(lock->folder, lock->name, text, &why);

    if (status == CHEX_ERR_MISSING && why.cause == ENOENT)
        return error_set(err, CHEX_ERR_LOCKED, "'%s/%s' was removed: another process may have taken the folder",
                         lock->folder->path, lock->name);
    if (status != CHEX_OK) {
        if (err)
            *err = why;
        return error_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_WRITE, "the lock '%s/%s'",
                             lock->folder->path, lock->name);
    }
    if (strcmp(text, lock->text) == 0)
        return CHEX_OK;
    /* The beginning of our own text can look like a holder too: it names ourselves. */
    if (strncmp(text, lock->text, strlen(text)) != 0 && lock_parse_holder(text, &rival))
        return error_set(err, CHEX_ERR_LOCKED, "'%s' was taken over by host %s pid %ld", lock->folder->path, rival.host,
                         rival.pid);
    return error_set(err, CHEX_ERR_WRITE, "the lock '%s/%s' is damaged: %zu bytes, not the %zu that were written",
                     lock->folder->path, lock->name, strlen(text), strlen(lock->text));
}

enum chex_status
lock_check(const struct lock *lock, struct chex_error *err)
{
    if (!lock->held)
        return error_set(err, CHEX_ERR_LOCKED, "the lock of '%s' was released", lock->folder->path);
    return check_own(lock, err);
}

enum chex_status
lock_drop(struct lock *lock, struct chex_error *err)
{
    enum chex_status status;

    if (!lock->held)
        return CHEX_OK;
    lock->held = false;
    status = check_own(lock, err);
    if (status == CHEX_OK)
        return folder_remove(lock->folder, lock->name, err);
    return status == CHEX_ERR_LOCKED ? CHEX_OK : error_context(err, CHEX_ERR_WRITE, "cannot release the folder");
}
