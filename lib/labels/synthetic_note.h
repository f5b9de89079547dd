/*
 * synthetic_note.h - the file by which a folder of chex-synth is recognised: it is next to the label file and the
 * folder of images
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SYNTHETIC_NOTE_H
#define CHEX_LIB_SYNTHETIC_NOTE_H

#include <stdbool.h>

#define SYNTHETIC_NOTE "SYNTHETIC.txt"

/* Returns whether the note is next to this file or folder. */
bool synthetic_note_beside(const char *path);
/* Returns whether it is in this folder or next to it. */
bool synthetic_note_at(const char *path);

#endif
