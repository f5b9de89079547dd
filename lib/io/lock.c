/*
 * lock.c - see lock.h and lock_private.h
 *
 * A new lock is written under another name, synced and then linked, so a kill or a power loss leaves a complete lock or
 * none.  The lock of a dead holder is first renamed and then removed: if two processes find it dead, only one rename
 * succeeds, or the second one moves the new lock of the first, which it then restores.
 *
 * It allocates memory only in search_others(): a run that is out of memory must still release its lock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/lock_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES      4
#define MACHINE_ID 32        /* characters of a machine-id(5) */
#define NEW        ".new."   /* LOCK.new.PID.NANOSECONDS: written, but not linked yet */
#define STALE      ".stale." /* LOCK.stale.PID: moved aside */

/* ---- holders --------------------------------------------------------------------------------------------------- */

/* Read the beginning of a file, up to one of the characters in `stop`; "unknown" if there is none. */
static void
read_text(const char *path, const char *stop, char *out, size_t size)
{
    int fd = file_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    size_t got = 0;

    if (fd >= 0) {
        if (file_pread(fd, 0, out, size - 1, &got, NULL) != CHEX_OK)
            got = 0;
        close(fd);
    }
    out[got] = '\0';
    out[strcspn(out, stop)] = '\0';
    if (!out[0])
        snprintf(out, size, "unknown");
}

/*
 * Returns the start of a process, field 22 of /proc/PID/stat, or 0.  *ended: it is a zombie; its parent (a killed
 * mpirun, a container without init) may never collect it.
 */
static unsigned long long
process_start(long pid, bool *ended)
{
    unsigned long long start = 0;
    char path[64], text[1024], state = '?';
    const char *name_end;

    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    read_text(path, "", text, sizeof(text));
    name_end = strrchr(text, ')'); /* field 2 is a name in brackets, with any characters */
    if (name_end)
        sscanf(name_end + 1, " %c%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%llu", &state, &start);
    *ended = state == 'Z' || state == 'X';
    return start;
}

void
lock_describe_self(struct lock_holder *self)
{
    time_t now = time(NULL);
    struct timespec up;
    struct stat st;
    struct tm tm;
    bool ended;

    *self = (struct lock_holder){.host = "", .pid = (long)getpid(), .since = "unknown", .made = (long long)now};
    if (gethostname(self->host, sizeof(self->host) - 1) != 0 || !self->host[0])
        snprintf(self->host, sizeof(self->host), "unknown");
    if (localtime_r(&now, &tm))
        strftime(self->since, sizeof(self->since), "%Y-%m-%dT%H:%M:%S", &tm);
    read_text("/proc/sys/kernel/random/boot_id", " \n", self->boot, sizeof(self->boot));
    read_text("/etc/machine-id", " \n", self->machine, sizeof(self->machine));
    self->start = process_start(self->pid, &ended);
    if (stat("/proc/self/ns/pid", &st) == 0)
        self->space = (unsigned long long)st.st_ino;
    if (clock_gettime(CLOCK_BOOTTIME, &up) == 0)
        self->machine_up = self->made - (long long)up.tv_sec;
}

void
lock_format_holder(const struct lock_holder *h, char text[LOCK_TEXT])
{
    snprintf(text, LOCK_TEXT, "host %s\npid %ld\nboot %s\nspace %llu\nstart %llu\nsince %s\nmachine %s\nmade %lld\n",
             h->host, h->pid, h->boot, h->space, h->start, h->since, h->machine, h->made);
}

bool
lock_parse_holder(const char *text, struct lock_holder *out)
{
    return sscanf(text, "host %127s\npid %ld\nboot %63s\nspace %llu\nstart %llu\nsince %31s\nmachine %63s\nmade %lld",
                  out->host, &out->pid, out->boot, &out->space, &out->start, out->since, out->machine, &out->made) == 8;
}

enum lock_life
lock_life(const struct lock_holder *holder, const struct lock_holder *self)
{
    unsigned long long start;
    bool ended;

    if (strcmp(holder->host, self->host) != 0 || holder->space != self->space)
        return LOCK_UNKNOWN;
    if (strcmp(holder->boot, self->boot) != 0)
        return self->space == LOCK_FIRST_SPACE && strlen(self->machine) == MACHINE_ID &&
                       strcmp(holder->machine, self->machine) == 0 && holder->made < self->machine_up
                   ? LOCK_DEAD
                   : LOCK_UNKNOWN;
    if (holder->pid <= 0 || (kill((pid_t)holder->pid, 0) != 0 && errno == ESRCH))
        return LOCK_DEAD;
    start = process_start(holder->pid, &ended);
    return ended || (start != 0 && start != holder->start) ? LOCK_DEAD : LOCK_ALIVE;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* The content of a lock file. */
struct content {
    char text[LOCK_TEXT];
    bool understood; /* the text is that of a lock; if not, the host is "unknown" */
    struct lock_holder holder;
    enum lock_life life;
};

static enum chex_status
read_lock(const struct folder *folder, const char *name, struct content *out, struct chex_error *err)
{
    struct lock_holder self;
    uint64_t size;
    size_t got = 0;
    int fd;
    enum chex_status status = file_open_own(folder, name, &fd, &size, err);

    *out = (struct content){.life = LOCK_UNKNOWN};
    if (status == CHEX_OK) {
        status = file_pread(fd, 0, out->text, LOCK_TEXT, &got, err);
        close(fd);
    }
    if (status == CHEX_OK && got == LOCK_TEXT)
        status = error_set(err, CHEX_ERR_LIMIT, "too long for a lock");
    out->text[status == CHEX_OK ? got : 0] = '\0';
    out->understood = lock_parse_holder(out->text, &out->holder);
    if (out->understood) {
        lock_describe_self(&self);
        out->life = lock_life(&out->holder, &self);
    } else {
        out->holder = (struct lock_holder){.host = "unknown", .since = "unknown"};
    }
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
    char aside[LOCK_NAME_SIZE + 32];
    struct content moved;

    snprintf(aside, sizeof(aside), "%s" STALE "%ld", name, (long)getpid());
    if (renameat(folder->fd, name, folder->fd, aside) != 0)
        return;
    if (read_lock(folder, aside, &moved, NULL) == CHEX_OK && strcmp(moved.text, stale) != 0 &&
        link_lock(folder, aside, name, moved.text) != 0)
        return;
    /* With --break-lock it may be a folder.  A folder with files keeps its new name. */
    if (unlinkat(folder->fd, aside, 0) != 0 && errno == EISDIR)
        unlinkat(folder->fd, aside, AT_REMOVEDIR);
}

/* ---- taking ---------------------------------------------------------------------------------------------------- */

/*
 * Handle a lock of another process that excludes us.  CHEX_OK: the lock is gone, because its holder is dead or the user
 * says so.  CHEX_ERR_LOCKED: it stays; CHEX_ERR_WRITE: it is not a file.
 */
static enum chex_status
clear_away(const struct folder *folder, const char *name, bool break_lock, struct chex_error *err)
{
    struct content found;
    struct chex_error own = {.status = CHEX_OK};
    struct part part;
    char whose[48] = "";
    enum chex_status status = read_lock(folder, name, &found, err = err ? err : &own);

    if (status == CHEX_ERR_MISSING && err->cause == ENOENT) /* it was released meanwhile */
        return CHEX_OK;
    if (found.life == LOCK_DEAD || (found.life == LOCK_UNKNOWN && break_lock)) {
        remove_stale(folder, name, found.text);
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
                     found.holder.host, found.holder.pid, found.holder.since,
                     found.life == LOCK_ALIVE ? ", which is alive" : " (--break-lock if that is dead)");
}

static bool
has_lock_name(const char *name)
{
    return strncmp(name, LOCK_NAME, strlen(LOCK_NAME)) == 0;
}

/*
 * After creating our lock, search for the locks of other processes that must not work at the same time, and remove
 * files of killed processes.  A NEW file may belong to a living rival, which then tries again and finds our lock.
 */
static enum chex_status
search_others(const struct lock *lock, struct part mine, bool break_lock, struct chex_error *err)
{
    struct folder_names names = {0};
    enum chex_status status = folder_list(lock->folder, has_lock_name, &names, err);
    struct content stale;
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++) {
        const char *name = names.name[i], *rest = name + strlen(LOCK_NAME);
        struct part part;

        if (part_parse_suffix(rest, &part))
            rest += PART_SUFFIX_LENGTH;
        else
            part = (struct part){0};
        if (!*rest && strcmp(name, lock->name) != 0 && (part_is_whole(mine) || part.count != mine.count))
            status = clear_away(lock->folder, name, break_lock, err);
        if (!part_is_whole(mine) && (part.index != mine.index || part.count != mine.count))
            continue;
        if (strncmp(rest, NEW, strlen(NEW)) == 0 ||
            (strncmp(rest, STALE, strlen(STALE)) == 0 && read_lock(lock->folder, name, &stale, NULL) == CHEX_OK &&
             stale.life == LOCK_DEAD))
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

    *lock = (struct lock){.folder = folder, .name = LOCK_NAME};
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
    status = search_others(lock, part, break_lock, err);
    if (status != CHEX_OK)
        lock_drop(lock, NULL);
    return status;
}

/* ---- held ------------------------------------------------------------------------------------------------------ */

bool
lock_is_held(const struct folder *folder)
{
    struct content found;

    return read_lock(folder, LOCK_NAME, &found, NULL) == CHEX_OK && found.life != LOCK_DEAD;
}

enum chex_status
lock_check(const struct lock *lock, struct chex_error *err)
{
    const char *path = lock->folder->path;
    struct content found;
    struct chex_error own = {.status = CHEX_OK};
    enum chex_status status;

    err = err ? err : &own;
    if (!lock->held)
        return error_set(err, CHEX_ERR_LOCKED, "the lock of '%s' was released", path);
    status = read_lock(lock->folder, lock->name, &found, err);
    if (status == CHEX_ERR_MISSING && err->cause == ENOENT)
        return error_set(err, CHEX_ERR_LOCKED, "'%s/%s' was removed: another process may have taken the folder", path,
                         lock->name);
    if (status != CHEX_OK)
        return error_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_WRITE, "the lock '%s/%s'", path,
                             lock->name);
    if (strcmp(found.text, lock->text) == 0)
        return CHEX_OK;
    if (found.understood && strncmp(found.text, lock->text, strlen(found.text)) != 0)
        return error_set(err, CHEX_ERR_LOCKED, "'%s' was taken over by host %s pid %ld", path, found.holder.host,
                         found.holder.pid);
    return error_set(err, CHEX_ERR_WRITE, "the lock '%s/%s' is damaged: %zu bytes, not the %zu that were written", path,
                     lock->name, strlen(found.text), strlen(lock->text));
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
