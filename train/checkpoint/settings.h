/*
 * settings.h - all options of a run with their effective values, by name
 *
 * A table of struct setting defines for each option where its value is stored, how the command line parses it, and what
 * a difference means.  The options of chex-train, run.json, the comparison of ranks, and the comparison of a resumed
 * run with its checkpoint all use this table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SETTINGS_H
#define CHEX_TRAIN_SETTINGS_H

#include "base/memory.h"
#include "checkpoint/run_value.h"

#include <stdint.h>

/* Effect of a difference between a resumed run and its checkpoint. */
enum setting_kind {
    SETTING_UNSAID,    /* only an option: not in run.json either */
    SETTING_LOCAL,     /* may differ, affects no number; not in the checkpoint, not compared across ranks */
    SETTING_SHARED,    /* as local, but equal on all ranks */
    SETTING_FREE,      /* may change, and the change is reported: the learning rate */
    SETTING_BATCH,     /* may change with --allow-batch-change */
    SETTING_DATA,      /* --allow-new-data */
    SETTING_PRECISION, /* --allow-precision-change */
    SETTING_FIXED      /* may not change: that is another run */
};

enum setting_type {
    SETTING_TEXT,   /* const char * */
    SETTING_NUMBER, /* uint32_t or uint64_t */
    SETTING_DIGITS, /* as SETTING_NUMBER, stored as a text, because a double has only 53 bits */
    SETTING_REAL,   /* double */
    SETTING_TIME,   /* double, seconds */
    SETTING_FLAG,   /* bool */
    SETTING_CHOICE  /* an enum or bool: index into names */
};

struct setting {
    const char *name; /* as the long option; NULL ends a table */
    enum setting_kind kind;
    enum setting_type type;
    size_t offset, size;      /* of the member */
    uint64_t min, max;        /* NUMBER, DIGITS */
    double most;              /* REAL: from 0 to this */
    const char *const *names; /* CHOICE */
    const char *none;         /* TEXT: shown instead of NULL */
    const char *before;       /* the value, as text, of checkpoints without this name; NULL: not compared with them */
    bool training;            /* not used by an evaluation without training */
};

/* The offset and size of struct setting. */
#define SETTING_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

#define SETTINGS_MAX  64
#define SETTINGS_TEXT 10240 /* size for settings_keep(), with terminator: CHEX_FINDINGS_MAX weights fit */

/* Initialize with zeros; release with settings_release(). */
struct settings {
    struct run_value value[SETTINGS_MAX];
    enum setting_kind kind[SETTINGS_MAX];
    bool training[SETTINGS_MAX]; /* copied from the setting */
    const char *before[SETTINGS_MAX];
    size_t count;
    bool failed; /* memory ran out, or too many settings */
    struct arena strings;
};

/* Add the value from the object; copies its text. */
void settings_add(struct settings *s, const struct setting *setting, const void *object);
void settings_release(struct settings *s);

/* Append lines "NAME VALUE" of all settings that must be equal on all ranks, with a terminator. */
enum chex_status settings_common(const struct settings *s, struct buffer *b, struct chex_error *err);

/* Write the lines "NAME VALUE" for a checkpoint: all but local and shared settings.  CHEX_ERR_BUG: too long */
enum chex_status settings_keep(const struct settings *s, char out[SETTINGS_TEXT], struct chex_error *err);

#define SETTINGS_CHANGE 512
struct settings_change {
    char text[SETTINGS_CHANGE]; /* "lr 0.001 -> 0.0005, epochs 10 -> 20"; "" if nothing changed */
    bool batch, data, precision;
};

/*
 * Compare with the settings of a checkpoint.  A name that only the checkpoint has is not a difference.  A name that it
 * lacks, because it is older than the option, has the value setting.before; if that is NULL, it is not a difference.
 *     allowed   kinds that may differ at the user's request: bits 1 << enum setting_kind
 * CHEX_ERR_INCOMPATIBLE with "it was made with other options: crop 224 -> 192", and the option that allows it, if there
 * is one
 */
enum chex_status settings_compare(const struct settings *s, const char *kept, unsigned allowed,
                                  struct settings_change *out, struct chex_error *err);

/* Append "NAME BEFORE -> NOW" to a text. */
void settings_note(char *out, size_t size, const char *name, const char *before, const char *now);

/*
 * List the training-only settings of these kinds (bits 1 << enum setting_kind) that differ from those of a checkpoint,
 * as in settings_change.text.
 */
void settings_compare_training(const struct settings *s, const char *kept, unsigned kinds, char out[SETTINGS_CHANGE]);

/*
 * List the differences of settings whose kind is in `kinds` (bits 1 << enum setting_kind) or whose name is in the
 * NULL-terminated list, as in settings_change.text.
 */
void settings_compare_names(const struct settings *s, const char *kept, unsigned kinds, const char *const *names,
                            char out[SETTINGS_CHANGE]);

/* Find the text after a name in the settings of a checkpoint; returns false if the name is missing. */
bool settings_kept_text(const char *kept, const char *name, char *out, size_t size);
/* Returns a number from the settings of a checkpoint; `otherwise` if the name is missing. */
double settings_kept_number(const char *kept, const char *name, double otherwise);

/* Write the shortest decimal that parses to the same number; returns out. */
#define SETTINGS_NUMBER 32
char *settings_format(double number, char out[SETTINGS_NUMBER]);

#endif
