/*
 * synthetic_note.c - see synthetic_note.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/synthetic_note.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns whether the folder has the note.  The name "" is the current folder. */
static bool
has_note(const char *folder, size_t length)
{
    char path[PATH_MAX];
    int used = snprintf(path, sizeof(path), "%.*s%s" SYNTHETIC_NOTE, (int)length, folder, length > 0 ? "/" : "");

    return used > 0 && (size_t)used < sizeof(path) && access(path, F_OK) == 0;
}

bool
synthetic_note_beside(const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    return has_note(path, length);
}

bool
synthetic_note_at(const char *path)
{
    return has_note(path, strlen(path)) || synthetic_note_beside(path);
}
