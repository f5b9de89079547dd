/*
 * lock_holder.c - see lock_private.h
 *
 * It allocates no memory: a run that is out of memory must still release its lock.
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

#define MACHINE_ID_LENGTH 32

/* Read the beginning of a file as a text; "" if it cannot be read. */
static void
read_head(const char *path, char *out, size_t size)
{
    int fd = file_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    size_t got = 0;

    if (fd >= 0) {
        if (file_pread(fd, 0, out, size - 1, &got, NULL) != CHEX_OK)
            got = 0;
        close(fd);
    }
    out[got] = '\0';
}

/* Read the first word of a file, or "unknown". */
static void
read_word(const char *path, char *out, size_t size)
{
    read_head(path, out, size);
    out[strcspn(out, " \n")] = '\0';
    if (!out[0])
        snprintf(out, size, "unknown");
}

/*
 * Returns field 22 of /proc/PID/stat, or 0.  *ended: the process is a zombie; its parent (a killed mpirun, a container
 * without init) may never collect it.
 */
static unsigned long long
process_start(long pid, bool *ended)
{
    unsigned long long start = 0;
    char path[64], text[1024], state = '?';
    const char *name_end;

    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    read_head(path, text, sizeof(text));
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

    *self = (struct lock_holder){.pid = (long)getpid(), .made = (long long)now};
    if (gethostname(self->host, sizeof(self->host) - 1) != 0 || !self->host[0])
        snprintf(self->host, sizeof(self->host), "unknown");
    if (!localtime_r(&now, &tm) || strftime(self->since, sizeof(self->since), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(self->since, sizeof(self->since), "unknown");
    read_word("/proc/sys/kernel/random/boot_id", self->boot, sizeof(self->boot));
    read_word("/etc/machine-id", self->machine, sizeof(self->machine));
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
        return self->space == LOCK_FIRST_SPACE && strlen(self->machine) == MACHINE_ID_LENGTH &&
                       strcmp(holder->machine, self->machine) == 0 && holder->made < self->machine_up
                   ? LOCK_DEAD
                   : LOCK_UNKNOWN;
    if (holder->pid <= 0 || (kill((pid_t)holder->pid, 0) != 0 && errno == ESRCH))
        return LOCK_DEAD;
    start = process_start(holder->pid, &ended);
    return ended || (start != 0 && start != holder->start) ? LOCK_DEAD : LOCK_ALIVE;
}
