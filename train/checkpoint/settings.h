/*
 * settings.h - all options of a run as they are in effect, by name
 *
 * A table of struct setting says of each: where its value is, how the command line reads it, and what a difference
 * means.  From it come the options of chex-train, run.json, the comparison of ranks, and that of a run with the
 * checkpoint from which it resumes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SETTINGS_H
#define CHEX_TRAIN_SETTINGS_H

#include "base/memory.h"
#include "checkpoint/run_value.h"

#include <stdint.h>

/* What a run that resumes does where one differs from the checkpoint. */
enum setting_kind {
    SETTING_UNSAID,    /* an option only: not in run.json either */
    SETTING_LOCAL,     /* may differ: decides about no number; not in the checkpoint, and not compared across ranks */
    SETTING_SHARED,    /* the same, but the same on all ranks */
    SETTING_FREE,      /* may change, and that is said: the learning rate */
    SETTING_BATCH,     /* may change where the user says so: --allow-batch-change */
    SETTING_DATA,      /* --allow-new-data */
    SETTING_PRECISION, /* --allow-precision-change */
    SETTING_FIXED      /* may not change: another run */
};

enum setting_type {
    SETTING_TEXT,   /* const char * */
    SETTING_NUMBER, /* uint32_t or uint64_t */
    SETTING_DIGITS, /* the same, kept as a text: a double has 53 bits */
    SETTING_REAL,   /* double */
    SETTING_TIME,   /* double, seconds */
    SETTING_FLAG,   /* bool */
    SETTING_CHOICE  /* an enum or bool: a place among names */
};

struct setting {
    const char *name; /* as the long option; NULL ends a table */
    enum setting_kind kind;
    enum setting_type type;
    size_t offset, size;      /* of the member */
    uint64_t min, max;        /* NUMBER, DIGITS */
    double most;              /* REAL: from 0 to this */
    const char *const *names; /* CHOICE */
    const char *none;         /* TEXT: in the place of NULL */
    bool training;            /* means nothing to an evaluation alone */
};

/* The offset and size of struct setting. */
#define SETTING_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

#define SETTINGS_MAX  64
#define SETTINGS_TEXT 2048 /* of settings_keep(), with its terminator */

/* Zero-initialise; settings_release(). */
struct settings {
    struct run_value value[SETTINGS_MAX];
    enum setting_kind kind[SETTINGS_MAX];
    bool training[SETTINGS_MAX]; /* of the setting */
    size_t count;
    bool failed; /* memory ran out, or there are too many */
    struct arena strings;
};

/* Add the value that the object has; its text is copied. */
void settings_add(struct settings *s, const struct setting *setting, const void *object);
void settings_release(struct settings *s);

/* Lines "NAME VALUE" of all that ranks must agree on, appended to b with a terminator. */
enum chex_status settings_common(const struct settings *s, struct buffer *b, struct chex_error *err);

/* What a checkpoint keeps: "NAME VALUE" of all but local and shared ones, lines.  CHEX_ERR_BUG where it is too long. */
enum chex_status settings_keep(const struct settings *s, char out[SETTINGS_TEXT], struct chex_error *err);

#define SETTINGS_CHANGE 512
struct settings_change {
    char text[SETTINGS_CHANGE]; /* "lr 0.001 -> 0.0005, epochs 10 -> 20"; "" where nothing changed */
    bool batch, data, precision;
};

/*
 * Compare with what a checkpoint kept.  A name that one of the two does not have is no difference.
 * allowed  kinds that may differ as the user says, bits 1 << enum setting_kind
 * CHEX_ERR_INCOMPATIBLE "it was made with other options: crop 224 -> 192", and what allows that, where there is such an
 * option
 */
enum chex_status settings_compare(const struct settings *s, const char *kept, unsigned allowed,
                                  struct settings_change *out, struct chex_error *err);

/*
 * Settings of the training alone that differ from what a checkpoint kept, as in settings_change.text.
 * kinds  bits 1 << enum setting_kind
 */
void settings_compare_training(const struct settings *s, const char *kept, unsigned kinds, char out[SETTINGS_CHANGE]);

/* The value that a checkpoint kept, a number; `otherwise` where it has none of this name. */
double settings_kept_number(const char *kept, const char *name, double otherwise);

/* The shortest decimal that reads back as the same number.  Returns out. */
#define SETTINGS_NUMBER 32
char *settings_format(double number, char out[SETTINGS_NUMBER]);

#endif
