/*
 * host_memory.c - see host_memory.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/host_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PATH_SIZE 1024

/* Read the number after `name` from a file of lines "name number", or the first number if name is NULL.  false: none */
static bool
file_number(const char *path, const char *name, uint64_t *out)
{
    FILE *f = fopen(path, "re");
    char line[256];
    bool found = false;

    while (f && !found && fgets(line, sizeof(line), f)) {
        size_t length = name ? strlen(name) : 0;

        found = (!name || strncmp(line, name, length) == 0) && sscanf(line + length, " %" SCNu64, out) == 1;
    }
    if (f)
        fclose(f);
    return found;
}

/* Names of the files of a control group, by version. */
struct kind_of_group {
    const char *folder;                /* below the mount */
    const char *limit, *held, *shared; /* shared: memory and files of tmpfs, which cannot be reclaimed */
};

/* Returns the available bytes of the group at mount + folder + path and of its parents; shortens path. */
static uint64_t
available_up(const char *mount, const struct kind_of_group *kind, char *path)
{
    uint64_t least = UINT64_MAX;
    char *slash;

    for (;;) {
        uint64_t limit, held = 0, shared = 0;
        char file[PATH_SIZE];

        /* A truncated path names no existing file. */
        snprintf(file, sizeof(file), "%.400s%s%.400s/%s", mount, kind->folder, path, kind->limit);
        if (file_number(file, NULL, &limit)) {
            snprintf(file, sizeof(file), "%.400s%s%.400s/memory.stat", mount, kind->folder, path);
            file_number(file, kind->held, &held);
            file_number(file, kind->shared, &shared);
            limit = limit > held ? limit - held : 0;
            limit = limit > shared ? limit - shared : 0;
            if (limit < least)
                least = limit;
        }
        slash = strrchr(path, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

uint64_t
host_memory_of_groups(const char *groups, const char *mount)
{
    static const struct kind_of_group version1 = {"/memory", "memory.limit_in_bytes", "total_rss ", "total_shmem "},
                                      version2 = {"", "memory.max", "anon ", "shmem "};
    uint64_t least = UINT64_MAX;
    FILE *f = fopen(groups, "re");
    char line[PATH_SIZE];

    /* "0::/user.slice/a" is version 2, "4:memory:/b" version 1. */
    while (f && fgets(line, sizeof(line), f)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        uint64_t available = UINT64_MAX;

        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(line, "0:") == 0)
            available = available_up(mount, &version2, path);
        else if (strcmp(controllers, ":memory") == 0)
            available = available_up(mount, &version1, path);
        if (available < least)
            least = available;
    }
    if (f)
        fclose(f);
    return least;
}

/* Returns the address space that is left under `ulimit -v`, which batch systems set. */
static uint64_t
available_of_addresses(void)
{
    struct rlimit limit;
    uint64_t kib;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !file_number("/proc/self/status", "VmSize:", &kib) || kib > UINT64_MAX / 1024)
        return UINT64_MAX;
    return limit.rlim_cur > kib * 1024 ? limit.rlim_cur - kib * 1024 : 0;
}

uint64_t
host_memory_available(void)
{
    uint64_t kib, least = host_memory_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
    uint64_t addresses = available_of_addresses();

    if (addresses < least)
        least = addresses;
    if (file_number("/proc/meminfo", "MemAvailable:", &kib) && kib < UINT64_MAX / 1024 && kib * 1024 < least)
        return kib * 1024;
    return least;
}
