/*
 * notes.c - see notes.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/notes.h"

#include "base/ascii.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum chex_status
notes_add(struct notes *n, enum note_kind kind, const char *path, unsigned long line, const char *text, size_t length,
          struct chex_error *err)
{
    char shown[300];
    size_t size = strlen(path) + sizeof(shown) + 32;
    char *kept;

    if (n->count[kind] < NOTES_KEPT) {
        kept = malloc(size);
        if (!kept)
            return error_memory(err);
        snprintf(kept, size, "%s:%lu: %s", path, line, ascii_escape(text, length, shown, sizeof(shown)));
        n->text[kind][n->count[kind]] = kept;
    }
    n->count[kind]++;
    return CHEX_OK;
}

void
notes_move(struct notes *n, struct notes *from)
{
    for (int kind = 0; kind < NOTE_KINDS; kind++) {
        for (size_t i = 0; i < NOTES_KEPT && i < from->count[kind]; i++) {
            size_t at = n->count[kind] + i;

            if (at < NOTES_KEPT)
                n->text[kind][at] = from->text[kind][i];
            else
                free(from->text[kind][i]);
        }
        n->count[kind] += from->count[kind];
    }
    *from = (struct notes){0};
}

void
notes_release(struct notes *n)
{
    for (int kind = 0; kind < NOTE_KINDS; kind++)
        for (size_t i = 0; i < NOTES_KEPT && i < n->count[kind]; i++)
            free(n->text[kind][i]);
    *n = (struct notes){0};
}
