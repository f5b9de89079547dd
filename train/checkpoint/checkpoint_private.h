/*
 * checkpoint_private.h - names, lines of `latest` and the fields of the state: what the files of a checkpoint share
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
#define CHECKPOINT_LINES      16 /* of `latest` */
#define CHECKPOINT_FILE       (CHECKPOINT_NAME + 24)

/* "step-004800" */
void checkpoint_name(uint64_t step, char out[CHECKPOINT_NAME]);
/* The step of such a name; 0 and *is false for any other. */
uint64_t checkpoint_step_of(const char *name, bool *is);
/* "step-004800.safetensors" */
void checkpoint_file_name(const char *name, const char *suffix, char out[CHECKPOINT_FILE]);

/* The steps of which there are files, newest first; each once.  *step is the caller's: free(). */
enum chex_status checkpoint_list_steps(const struct folder *folder, uint64_t **step, size_t *count,
                                       struct chex_error *err);

/* One line of `latest`: hashes of both files. */
struct checkpoint_line {
    char name[CHECKPOINT_NAME], model[DIGEST_HEX], optimizer[DIGEST_HEX];
};

/* The lines of `latest`, newest first; at most `room` of them. */
enum chex_status checkpoint_read_lines(const struct folder *folder, struct checkpoint_line *line, size_t room,
                                       size_t *count, struct chex_error *err);

/* ---- fields of the state (checkpoint_fields.c) ------------------------------------------------------------------- */

/* JSON has 64-bit numbers and reals as texts, so that no reader rounds them; reals are hexadecimal. */
enum state_kind {
    STATE_COUNT,  /* uint64_t, a text of decimal digits */
    STATE_NUMBER, /* uint32_t or an enum, a number */
    STATE_REAL,   /* double, a text */
    STATE_TEXT    /* char[], terminated */
};

/* What a real may be besides a number from least to most, and what such a number has to be; bits. */
enum state_real { STATE_ZERO = 1, STATE_INFINITY = 2, STATE_NAN = 4, STATE_POWER_OF_TWO = 8 };

struct state_field {
    const char *name;
    enum state_kind kind;
    size_t offset, size;   /* of the member of struct checkpoint_state */
    uint64_t min, max;     /* of a count or a number; of a text its length */
    const char *up_to;     /* a field with a number that this one does not exceed; NULL: none */
    double least, most;    /* of a real */
    unsigned also;         /* enum state_real */
    const char *letters;   /* of a text; NULL: any */
    bool added;            /* older files lack it, and imply: */
    const char *otherwise; /* the value of another field; NULL: 0 */
};

/* All fields, up to one without a name. */
extern const struct state_field state_fields[];
/* NULL: there is none of this name. */
const struct state_field *state_field(const char *name);
/* The largest value of a count or a number, given the fields before it. */
uint64_t state_max(const struct state_field *f, const struct checkpoint_state *state);

/* The value of one field; NULL: no memory. */
json_t *state_format(const struct state_field *f, const struct checkpoint_state *state);
/*
 * All fields of a JSON object.  CHEX_ERR_DAMAGED one is missing, of another type or outside its bounds: err names the
 * field, its value and the bounds.
 */
enum chex_status state_parse(const json_t *object, struct checkpoint_state *state, struct chex_error *err);
/* Are all fields of a state within their bounds?  CHEX_ERR_DAMAGED as above; CHEX_ERR_MEMORY */
enum chex_status state_check(const struct checkpoint_state *state, struct chex_error *err);

/* ---- the model file (checkpoint_state.c) ------------------------------------------------------------------------- */

/* The model with the state in its metadata; hex as of safetensors_write(). */
enum chex_status checkpoint_write_model(const struct folder *folder, const char *file, const struct graph *g,
                                        const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                                        char *hex, struct chex_error *err);

/* The findings, in their order, as the metadata of a model names them. */
#define CHECKPOINT_LABELS 512
const char *checkpoint_labels(char out[CHECKPOINT_LABELS]);

/* SHA-256 of a file of the folder. */
enum chex_status checkpoint_hash(const struct folder *folder, const char *file, char hex[DIGEST_HEX],
                                 struct chex_error *err);

#endif
