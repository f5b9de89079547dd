/*
 * shared_library.c - see shared_library.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/shared_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Separate a missing library from one that exists but does not load: then the linker's text names what is missing. */
bool
shared_library_open(struct shared_library *l, char *why, size_t size)
{
    const char *const places[] = {l->name, l->place};
    size_t i;

    snprintf(why, size, "%s was not found", l->name);
    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        size_t length = strlen(places[i]);
        const char *text;

        l->handle = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        if (l->handle)
            return true;
        text = dlerror();
        if (text && (strncmp(text, places[i], length) != 0 || !strstr(text, "No such file"))) {
            snprintf(why, size, "%s", text);
            return false;
        }
    }
    return false;
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
