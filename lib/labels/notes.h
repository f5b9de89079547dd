/*
 * notes.h - values that were read differently than written: a count per kind, and the first of each kind with its line
 *
 * Examples: another spelling of a finding, an unknown sex, a line of a list without an image.  None of them should end
 * a run, and none should be corrected silently.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_NOTES_H
#define CHEX_LIB_NOTES_H

#include "base/error.h"

enum note_kind {
    NOTE_SPELLING, /* another spelling of a finding's name */
    NOTE_AGE,      /* not a valid age; read as unknown */
    NOTE_SEX,      /* begins neither with M nor with F; read as unknown */
    NOTE_VIEW,     /* not a word of letters and digits; read as unknown */
    NOTE_JUNK,     /* a line of a list that is not an image name: it matches nothing */
    NOTE_GLUED,    /* a line of a list that looks like two names without the newline between them */
    NOTE_KINDS
};

#define NOTES_KEPT 20 /* notes kept per kind */

struct notes { /* zero-initialise */
    size_t count[NOTE_KINDS];
    char *text[NOTE_KINDS][NOTES_KEPT]; /* "PATH:LINE: TEXT"; bytes outside printable ASCII are escaped as \xNN */
};

/* Add a note.  CHEX_ERR_MEMORY */
enum chex_status notes_add(struct notes *n, enum note_kind kind, const char *path, unsigned long line, const char *text,
                           size_t length, struct chex_error *err);
/* Append the notes of `from` to n, and empty `from`. */
void notes_move(struct notes *n, struct notes *from);
void notes_release(struct notes *n);

#endif
