/*
 * checkpoint_private.h - shared by the files of checkpoints: names, lines of `latest`, fields of the state
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CHECKPOINT_PRIVATE_H
#define CHEX_TRAIN_CHECKPOINT_PRIVATE_H

#include "base/json.h"
#include "checkpoint/checkpoint.h"

#define CHECKPOINT_SUFFIX     ".safetensors"
#define CHECKPOINT_OPT_SUFFIX ".opt.safetensors"
#define CHECKPOINT_NEXT       ".next.safetensors"
#define CHECKPOINT_LINES      16 /* most lines of `latest` */
#define CHECKPOINT_FILE       (CHECKPOINT_NAME + 24)

/* "step-004800" */
void checkpoint_name(uint64_t step, char out[CHECKPOINT_NAME]);
/* Returns the step of such a name; for other names 0, with *is false. */
uint64_t checkpoint_step_of(const char *name, bool *is);
/* "step-004800.safetensors" */
void checkpoint_file_name(const char *name, const char *suffix, char out[CHECKPOINT_FILE]);

/* List the steps that have files, newest first, each once.  The caller frees *step with free(). */
enum chex_status checkpoint_list_steps(const struct folder *folder, uint64_t **step, size_t *count,
                                       struct chex_error *err);

/* One line of `latest`: hashes of both files. */
struct checkpoint_line {
    char name[CHECKPOINT_NAME], model[DIGEST_HEX], optimizer[DIGEST_HEX];
};

/* Read up to `room` lines of `latest`, newest first. */
enum chex_status checkpoint_read_lines(const struct folder *folder, struct checkpoint_line *line, size_t room,
                                       size_t *count, struct chex_error *err);

/* ---- fields of the state (checkpoint_fields.c) ------------------------------------------------------------------- */

/* In JSON, 64-bit numbers and reals are strings, so that no reader rounds them; reals are hexadecimal. */
enum state_kind {
    STATE_COUNT,  /* uint64_t, a text of decimal digits */
    STATE_NUMBER, /* uint32_t or an enum, a number */
    STATE_REAL,   /* double, a text */
    STATE_TEXT    /* char[], terminated */
};

/* Bits: special values that a real may have outside least .. most, and a condition on normal values. */
enum state_real { STATE_ZERO = 1, STATE_INFINITY = 2, STATE_NAN = 4, STATE_POWER_OF_TWO = 8 };

struct state_field {
    const char *name;
    enum state_kind kind;
    size_t offset, size;   /* of the member in struct checkpoint_state */
    uint64_t min, max;     /* of a count or a number, or the length of a text */
    const char *up_to;     /* name of a field whose number is an upper limit; NULL: none */
    double least, most;    /* of a real */
    unsigned also;         /* enum state_real */
    const char *letters;   /* allowed characters of a text; NULL: any */
    bool added;            /* older files lack it; then it has this value: */
    const char *otherwise; /* that of another field; NULL: 0 */
};

/* All fields; the last entry has no name. */
extern const struct state_field state_fields[];
/* Returns the field with this name, or NULL. */
const struct state_field *state_field(const char *name);
/* Returns the upper limit of a count or a number, given the values of earlier fields. */
uint64_t state_max(const struct state_field *f, const struct checkpoint_state *state);

/* Returns the value of a field as JSON; NULL if memory runs out. */
json_t *state_format(const struct state_field *f, const struct checkpoint_state *state);
/*
 * Parse all fields of a JSON object.  CHEX_ERR_DAMAGED: a field is missing, has a wrong type or is out of bounds; err
 * has its name, its value and the bounds.
 */
enum chex_status state_parse(const json_t *object, struct checkpoint_state *state, struct chex_error *err);
/* Check that all fields are within their bounds.  CHEX_ERR_DAMAGED as above; CHEX_ERR_MEMORY */
enum chex_status state_check(const struct checkpoint_state *state, struct chex_error *err);

/* ---- the model file (checkpoint_state.c) ------------------------------------------------------------------------- */

/* Write the model file with the state and `operating` (may be NULL) in its metadata; hex as in safetensors_write(). */
enum chex_status checkpoint_write_model(const struct folder *folder, const char *file, const struct graph *g,
                                        const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                                        const char *operating, char *hex, struct chex_error *err);

/*
 * Check that the findings in the metadata of a model are those of the graph, in the same order.  A file or a graph
 * without names is not checked.
 * CHEX_ERR_INCOMPATIBLE "its findings are 'A,B' (2), those of the data set 'A,C' (2)"; CHEX_ERR_MEMORY
 */
enum chex_status checkpoint_check_findings(const struct safetensors *s, const struct graph *g, struct chex_error *err);

/* Compute the SHA-256 of a file in the folder. */
enum chex_status checkpoint_hash(const struct folder *folder, const char *file, char hex[DIGEST_HEX],
                                 struct chex_error *err);

#endif
