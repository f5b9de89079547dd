/*
 * lock_holder.c - see lock_private.h
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

/* The beginning of a file as a text, "" where there is none.  Without stdio: a lock is judged without memory too. */
static void
read_head(const char *path, char *out, size_t size)
{
    int fd = file_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    size_t used = 0;
    ssize_t got = 1;

    while (fd >= 0 && got > 0 && used + 1 < size) {
        got = read(fd, out + used, size - used - 1);
        if (got > 0)
            used += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    if (fd >= 0)
        close(fd);
    out[used] = '\0';
}

/* The first word of a file; "unknown" where there is none. */
static void
read_word(const char *path, char *out, size_t size)
{
    read_head(path, out, size);
    out[strcspn(out, " \n")] = '\0';
    if (!out[0])
        snprintf(out, size, "unknown");
}

static void
machine_id(char *out, size_t size)
{
    read_word("/etc/machine-id", out, size);
    if (strcmp(out, "unknown") == 0 || strcmp(out, "uninitialized") == 0)
        read_word("/var/lib/dbus/machine-id", out, size);
}

/* When this machine was started, in seconds since 1970; 0: unknown. */
static long long
boot_time(void)
{
    struct timespec up;

    return clock_gettime(CLOCK_BOOTTIME, &up) == 0 ? (long long)time(NULL) - (long long)up.tv_sec : 0;
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
    int i;

    *ended = false;
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    read_head(path, text, sizeof(text));
    /* The second field is a name in brackets, with anything in it. */
    p = strrchr(text, ')');
    *ended = p && (strncmp(p, ") Z", 3) == 0 || strncmp(p, ") X", 3) == 0);
    for (i = 2; p && i < 22; i++)
        p = strchr(p + 1, ' ');
    if (p && sscanf(p, "%llu", &start) != 1)
        start = 0;
    return start;
}

void
lock_describe_self(struct lock_holder *self)
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
    read_word("/proc/sys/kernel/random/boot_id", self->boot, sizeof(self->boot));
    if (!localtime_r(&now, &tm) || strftime(self->since, sizeof(self->since), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(self->since, sizeof(self->since), "unknown");
    machine_id(self->machine, sizeof(self->machine));
    self->made = (long long)now;
    self->machine_up = boot_time();
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
    int found = sscanf(text,
                       "host %127s\npid %ld\nboot %63s\nspace %llu\nstart %llu\nsince %31s\nmachine %63s\nmade %lld",
                       out->host, &out->pid, out->boot, &out->space, &out->start, out->since, out->machine, &out->made);

    if (found < 7)
        snprintf(out->machine, sizeof(out->machine), "unknown");
    if (found < 8)
        out->made = 0;
    return found >= 6;
}

static bool
is_earlier_boot(const struct lock_holder *holder, const struct lock_holder *self)
{
    return strcmp(self->machine, "unknown") != 0 && strcmp(holder->machine, self->machine) == 0 &&
           self->space == LOCK_FIRST_SPACE && holder->space == LOCK_FIRST_SPACE && holder->made > 0 &&
           holder->made < self->machine_up;
}

enum lock_life
lock_life(const struct lock_holder *holder, const struct lock_holder *self)
{
    unsigned long long start;
    bool ended;

    if (strcmp(holder->host, self->host) != 0)
        return LOCK_UNKNOWN;
    if (strcmp(holder->boot, self->boot) != 0)
        return is_earlier_boot(holder, self) ? LOCK_DEAD : LOCK_UNKNOWN;
    if (holder->space != self->space)
        return LOCK_UNKNOWN;
    if (holder->pid <= 0 || (kill((pid_t)holder->pid, 0) != 0 && errno == ESRCH))
        return LOCK_DEAD;
    start = process_start(holder->pid, &ended);
    return ended || (start != 0 && start != holder->start) ? LOCK_DEAD : LOCK_ALIVE;
}
