/*
 * notes.h - what was read in another way than it was written: counted by kind, and the first of each kept with its line
 *
 * A finding in another spelling, an unknown sex, a line of a list without an image: none of them ends a run, and none
 * should be corrected in silence.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_NOTES_H
#define CHEX_LIB_NOTES_H

#include "base/error.h"

enum note_kind {
    NOTE_SPELLING, /* a finding's name in another spelling, taken for it */
    NOTE_AGE,      /* text that is no age, taken as unknown */
    NOTE_SEX,      /* begins neither with M nor with F, taken as unknown */
    NOTE_VIEW,     /* no word of letters and digits, taken as unknown */
    NOTE_JUNK,     /* a line of a list that is no name of an image: it counts for nothing */
    NOTE_GLUED,    /* a line of a list that looks like two names, between which a newline is missing */
    NOTE_KINDS
};

#define NOTES_KEPT 20 /* of each kind */

struct notes { /* zero-initialise */
    size_t count[NOTE_KINDS];
    char *text[NOTE_KINDS][NOTES_KEPT]; /* "PATH:LINE: TEXT", with what no terminal should be given as \xNN */
};

/* CHEX_ERR_MEMORY */
enum chex_status notes_add(struct notes *n, enum note_kind kind, const char *path, unsigned long line, const char *text,
                           size_t length, struct chex_error *err);
/* Move what is in `from` to the end of n; from is empty then. */
void notes_move(struct notes *n, struct notes *from);
void notes_release(struct notes *n);

#endif
