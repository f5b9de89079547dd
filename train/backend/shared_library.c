/*
 * shared_library.c - see shared_library.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/shared_library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum opened { MISSING, BROKEN, OPENED };

/* Distinguishes a missing library from one that does not load: then the linker's text names what is missing. */
static enum opened
try_to_open(struct shared_library *l, const char *path, char *why, size_t size)
{
    size_t length = strlen(path);
    const char *text;

    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (l->handle)
        return OPENED;
    text = dlerror();
    if (!text || (strncmp(text, path, length) == 0 && strstr(text, "No such file")))
        return MISSING;
    snprintf(why, size, "%s", text);
    return BROKEN;
}

/* Writes DIR for a program DIR/bin/NAME; false for a program elsewhere, as one that was built and not installed. */
static bool
find_prefix(char out[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", out, PATH_MAX - 1);
    char *slash;

    if (length < 0)
        return false;
    out[length] = '\0';
    slash = strrchr(out, '/');
    if (!slash)
        return false;
    *slash = '\0';
    slash = strrchr(out, '/');
    if (!slash || strcmp(slash, "/bin") != 0)
        return false;
    *slash = '\0';
    return true;
}

/* Returns N of the largest "python3.N" below `before` in this folder, or -1. */
static int
newest_python(const char *folder, int before)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int newest = -1;

    while (dir && (entry = readdir(dir))) {
        char *end;
        long minor;

        if (strncmp(entry->d_name, "python3.", 8) != 0 || entry->d_name[8] < '0' || entry->d_name[8] > '9')
            continue;
        minor = strtol(entry->d_name + 8, &end, 10);
        if (*end == '\0' && minor < before && minor > newest)
            newest = (int)minor;
    }
    if (dir)
        closedir(dir);
    return newest;
}

static enum opened
open_of_python(struct shared_library *l, char *why, size_t size)
{
    static const char *const parts[] = {"lib", "lib64"}, *const packages[] = {"site-packages", "dist-packages"};
    char prefix[PATH_MAX], folder[PATH_MAX + 8], path[PATH_MAX + 256];
    enum opened opened = MISSING;

    if (!find_prefix(prefix))
        return MISSING;
    for (size_t i = 0; i < 2 && opened == MISSING; i++) {
        snprintf(folder, sizeof(folder), "%s/%s", prefix, parts[i]);
        for (int minor = INT_MAX; opened == MISSING && (minor = newest_python(folder, minor)) >= 0;)
            for (size_t k = 0; k < 2 && opened == MISSING; k++) {
                snprintf(path, sizeof(path), "%s/python3.%d/%s/nvidia/%s/lib/%s", folder, minor, packages[k],
                         l->package, l->name);
                opened = try_to_open(l, path, why, size);
            }
    }
    return opened;
}

bool
shared_library_open(struct shared_library *l, char *why, size_t size)
{
    const char *const places[] = {l->name, l->place};
    enum opened opened = MISSING;

    snprintf(why, size, "%s was not found", l->name);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && opened == MISSING; i++)
        opened = try_to_open(l, places[i], why, size);
    if (opened == MISSING)
        opened = open_of_python(l, why, size);
    return opened == OPENED;
}

bool
shared_library_find(const struct shared_library *l, const char *call, void *pointer, char *why, size_t size)
{
    void *address = dlsym(l->handle, call);

    memcpy(pointer, &address, sizeof(address));
    if (!address)
        snprintf(why, size, "%s is too old: it has no %s()", l->name, call);
    return address;
}
