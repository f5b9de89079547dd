/*
 * lock.c - see lock.h
 *
 * A dead holder's lock is moved aside by rename before it is removed, so that of two processes which both found it
 * dead only one takes over: the other one's rename finds another file or none, and puts back what is not stale.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct holder {
    char host[128];
    long pid;
    char boot[64];
    unsigned long long space; /* the pid's namespace, its inode: a container has its own numbers */
    unsigned long long start; /* of the process, in ticks since boot: a number may be used again */
    char since[32];
};

static void
boot_id(char *out, size_t size)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    out[0] = '\0';
    if (f) {
        if (fgets(out, (int)size, f))
            out[strcspn(out, "\n")] = '\0';
        fclose(f);
    }
    if (!out[0])
        snprintf(out, size, "unknown");
}

/*
 * Field 22 of /proc/PID/stat; 0 where there is no such process, or no /proc.  *ended: it is a zombie, which its parent
 * (mpirun killed with its job, a container without an init) may never collect.
 */
static unsigned long long
process_start(long pid, bool *ended)
{
    unsigned long long start = 0;
    char path[64], text[1024];
    const char *p;
    size_t got;
    FILE *f;
    int i;

    *ended = false;
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    got = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[got] = '\0';
    /* The second field is a name in brackets, with anything in it. */
    p = strrchr(text, ')');
    *ended = p && (strncmp(p, ") Z", 3) == 0 || strncmp(p, ") X", 3) == 0);
    for (i = 2; p && i < 22; i++)
        p = strchr(p + 1, ' ');
    if (p && sscanf(p, "%llu", &start) != 1)
        start = 0;
    return start;
}

static void
describe_self(struct holder *self)
{
    struct stat st;
    bool ended;
    time_t now = time(NULL);
    struct tm tm;

    if (gethostname(self->host, sizeof(self->host)) != 0 || !self->host[0])
        snprintf(self->host, sizeof(self->host), "unknown");
    self->host[sizeof(self->host) - 1] = '\0';
    self->pid = (long)getpid();
    self->space = stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long long)st.st_ino : 0;
    self->start = process_start(self->pid, &ended);
    boot_id(self->boot, sizeof(self->boot));
    if (!localtime_r(&now, &tm) || strftime(self->since, sizeof(self->since), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(self->since, sizeof(self->since), "unknown");
}

/* A lock file's text; false where it is not one (torn, foreign). */
static bool
parse_holder(const char *text, struct holder *out)
{
    return sscanf(text, "host %127s\npid %ld\nboot %63s\nspace %llu\nstart %llu\nsince %31s", out->host, &out->pid,
                  out->boot, &out->space, &out->start, out->since) == 6;
}

enum life { ALIVE, DEAD, UNKNOWN };

/* Whether the holder is at work, as far as it can be seen from here. */
static enum life
life_of(const struct holder *holder)
{
    struct holder self;
    unsigned long long start;
    bool ended;

    describe_self(&self);
    if (strcmp(holder->host, self.host) != 0)
        return UNKNOWN;
    if (strcmp(holder->boot, self.boot) != 0)
        return DEAD;
    if (holder->space != self.space)
        return UNKNOWN;
    if (holder->pid <= 0 || (kill((pid_t)holder->pid, 0) != 0 && errno == ESRCH))
        return DEAD;
    start = process_start(holder->pid, &ended);
    return ended || (start != 0 && start != holder->start) ? DEAD : ALIVE;
}

static enum chex_status
read_lock(const struct folder *folder, const char *name, char *text, size_t size, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = file_read(folder->fd, name, size - 1, &b, err);

    if (status == CHEX_OK) {
        if (b.size > 0)
            memcpy(text, b.data, b.size);
        text[b.size] = '\0';
    }
    buffer_release(&b);
    return status;
}

/* Make the lock file; text[LOCK_TEXT] gets what is in it.  False with errno EEXIST where there is one. */
static bool
create_lock(const struct folder *folder, const char *name, char *text)
{
    struct holder self;
    int length, fd;
    bool good;

    describe_self(&self);
    length = snprintf(text, LOCK_TEXT, "host %s\npid %ld\nboot %s\nspace %llu\nstart %llu\nsince %s\n", self.host,
                      self.pid, self.boot, self.space, self.start, self.since);
    fd = openat(folder->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    errno = 0; /* a short write sets none */
    good = write(fd, text, (size_t)length) == (ssize_t)length;
    good &= close(fd) == 0;
    if (!good) {
        int saved = errno ? errno : ENOSPC;

        unlinkat(folder->fd, name, 0);
        errno = saved;
    }
    return good;
}

/* Move aside the lock whose text was `stale`; what was moved must be that one. */
static void
remove_stale(const struct folder *folder, const char *name, const char *stale)
{
    char aside[LOCK_NAME_SIZE + 32], text[LOCK_TEXT];

    snprintf(aside, sizeof(aside), "%s.stale.%ld", name, (long)getpid());
    if (renameat(folder->fd, name, folder->fd, aside) != 0)
        return;
    if (read_lock(folder, aside, text, sizeof(text), NULL) == CHEX_OK && strcmp(text, stale) != 0 &&
        linkat(folder->fd, aside, folder->fd, name, 0) != 0)
        return;
    unlinkat(folder->fd, aside, 0);
}

/*
 * Somebody's lock is in the way.  CHEX_OK: it is gone, since its holder is dead (or the user says so);
 * CHEX_ERR_LOCKED: it stays.
 */
static enum chex_status
clear_away(const struct folder *folder, const char *name, bool break_lock, struct chex_error *err)
{
    struct holder holder = {.pid = 0};
    enum life life = UNKNOWN;
    char text[LOCK_TEXT];
    enum chex_status status = read_lock(folder, name, text, sizeof(text), err);

    if (status == CHEX_ERR_MISSING)
        return CHEX_OK; /* dropped meanwhile */
    if (status != CHEX_OK && break_lock)
        text[0] = '\0'; /* whatever it is */
    else if (status != CHEX_OK)
        return chex_context(err, CHEX_ERR_LOCKED, "'%s/%s'", folder->path, name);
    if (parse_holder(text, &holder))
        life = life_of(&holder);
    else
        snprintf(holder.host, sizeof(holder.host), "unknown");
    if (life == ALIVE || (life == UNKNOWN && !break_lock)) {
        struct share share;
        char part[48] = "";

        if (share_parse_suffix(name + strlen(LOCK_NAME), &share))
            snprintf(part, sizeof(part), "part %u of %u of ", share.part + 1, share.of);
        return chex_fail(err, CHEX_ERR_LOCKED, "%s'%s' is in use by host %s pid %ld since %s%s", part, folder->path,
                         holder.host, holder.pid, holder.since[0] ? holder.since : "unknown",
                         life == ALIVE ? ", which is alive" : " (--break-lock if that is dead)");
    }
    remove_stale(folder, name, text);
    return CHEX_OK;
}

/* ---- taking --------------------------------------------------------------------------------------------------- */

static bool
is_lock(const char *name)
{
    size_t length = strlen(LOCK_NAME);
    struct share share;

    if (strncmp(name, LOCK_NAME, length) != 0)
        return false;
    return name[length] == '\0' ||
           (share_parse_suffix(name + length, &share) && name[length + SHARE_SUFFIX_LENGTH] == '\0');
}

/* May the holder of the lock `name` work beside this share? */
static bool
may_work_beside(struct share mine, const char *name)
{
    struct share share;

    return !share_is_whole(mine) && share_parse_suffix(name + strlen(LOCK_NAME), &share) && share.of == mine.of;
}

/* With our lock there: is nobody at work whom it does not keep out? */
static enum chex_status
look_around(const struct lock *lock, struct share share, bool break_lock, struct chex_error *err)
{
    struct folder_names names = {0};
    enum chex_status status = folder_list(lock->folder, is_lock, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++)
        if (strcmp(names.name[i], lock->name) != 0 && !may_work_beside(share, names.name[i]))
            status = clear_away(lock->folder, names.name[i], break_lock, err);
    folder_names_release(&names);
    return status;
}

enum chex_status
lock_take_share(struct lock *lock, const struct folder *folder, struct share share, bool break_lock,
                struct chex_error *err)
{
    int tries;

    *lock = (struct lock){.folder = folder};
    snprintf(lock->name, sizeof(lock->name), LOCK_NAME);
    if (!share_is_whole(share))
        snprintf(lock->name, sizeof(lock->name), LOCK_NAME SHARE_FORMAT, share.part + 1, share.of);
    for (tries = 0; tries < 4; tries++) {
        enum chex_status status;

        if (create_lock(folder, lock->name, lock->text)) {
            lock->held = true;
            status = look_around(lock, share, break_lock, err);
            if (status != CHEX_OK)
                lock_drop(lock);
            return status;
        }
        if (errno != EEXIST)
            return chex_fail(err, CHEX_ERR_WRITE, "cannot write to the folder '%s': %s", folder->path, strerror(errno));
        status = clear_away(folder, lock->name, break_lock, err);
        if (status != CHEX_OK)
            return status;
    }
    return chex_fail(err, CHEX_ERR_LOCKED, "'%s' is being taken over by another process", folder->path);
}

enum chex_status
lock_take(struct lock *lock, const struct folder *folder, bool break_lock, struct chex_error *err)
{
    return lock_take_share(lock, folder, (struct share){0}, break_lock, err);
}

bool
lock_has_text(const struct folder *folder, const char *text)
{
    char there[LOCK_TEXT];

    return read_lock(folder, LOCK_NAME, there, sizeof(there), NULL) == CHEX_OK && strcmp(there, text) == 0;
}

bool
lock_is_ours(const struct lock *lock)
{
    char text[LOCK_TEXT];

    return lock->held && read_lock(lock->folder, lock->name, text, sizeof(text), NULL) == CHEX_OK &&
           strcmp(text, lock->text) == 0;
}

void
lock_drop(struct lock *lock)
{
    if (lock_is_ours(lock))
        unlinkat(lock->folder->fd, lock->name, 0);
    lock->held = false;
}
