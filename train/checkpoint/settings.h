/*
 * settings.h - all options of a run as they are in effect, by name: for run.json, for the comparison of ranks, and for
 * that of a run with the checkpoint that it goes on from
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SETTINGS_H
#define CHEX_TRAIN_SETTINGS_H

#include "base/memory.h"
#include "checkpoint/run_value.h"

#include <stdint.h>

/* What a run that goes on does where one differs from the checkpoint. */
enum setting_kind {
    SETTING_LOCAL,  /* may differ: decides about no number; not in the checkpoint, and not compared across ranks */
    SETTING_SHARED, /* the same, but the same on all ranks */
    SETTING_FREE,   /* may change, and that is said: the learning rate */
    SETTING_BATCH,  /* may change where the user says so */
    SETTING_DATA,   /* likewise, by another option */
    SETTING_FIXED   /* may not change: another run */
};

#define SETTINGS_MAX  64
#define SETTINGS_TEXT 2048 /* of settings_keep(), with its terminator */

/* Zero-initialise; settings_release(). */
struct settings {
    struct run_value value[SETTINGS_MAX];
    enum setting_kind kind[SETTINGS_MAX];
    size_t count;
    bool failed; /* memory ran out, or there are too many */
    struct arena strings;
};

void settings_add_text(struct settings *s, enum setting_kind kind, const char *name, const char *text);
void settings_add_number(struct settings *s, enum setting_kind kind, const char *name, double number);
void settings_add_bool(struct settings *s, enum setting_kind kind, const char *name, bool yes);
void settings_release(struct settings *s);

/* Lines "NAME VALUE" of all that ranks must agree on, appended to b with a terminator. */
enum chex_status settings_common(const struct settings *s, struct buffer *b, struct chex_error *err);

/* What a checkpoint keeps: "NAME VALUE" of all but local and shared ones, lines.  CHEX_ERR_BUG where it is too long. */
enum chex_status settings_keep(const struct settings *s, char out[SETTINGS_TEXT], struct chex_error *err);

struct settings_change {
    char text[512]; /* "lr 0.001 -> 0.0005, epochs 10 -> 20"; "" where nothing changed */
    bool batch, data;
};

/*
 * Compare with what a checkpoint kept.  A name that one of the two does not have is no difference.
 * CHEX_ERR_INCOMPATIBLE "it was made with other options: crop 224 -> 192", and what allows that, where there is such an
 * option
 */
enum chex_status settings_compare(const struct settings *s, const char *kept, bool allow_batch, bool allow_data,
                                  struct settings_change *out, struct chex_error *err);

/* The shortest decimal that reads back as the same number.  Returns out. */
#define SETTINGS_NUMBER 32
char *settings_format(double number, char out[SETTINGS_NUMBER]);

#endif
