/*
 * inspect_checkpoint.h - what the parts of chex-inspect that read checkpoints share, and what --diff found of two
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_CHECKPOINT_H
#define CHEX_TOOLS_INSPECT_CHECKPOINT_H

#include "inspect/inspect.h"
#include "inspect/inspect_values.h"

/*
 * The state of the run as chex-train keeps it (train/checkpoint/checkpoint_state.c), or NULL; json_decref().
 * CHEX_ERR_MEMORY
 */
enum chex_status checkpoint_state_of(const struct safetensors *s, json_t **out, struct chex_error *err);

/* "64x3x7x7", "a single value". */
#define CHECKPOINT_SHAPE (SAFETENSORS_RANK * 22)
char *checkpoint_shape(const struct tensor_entry *e, char out[CHECKPOINT_SHAPE]);

/* ---- two of them (inspect_checkpoint_diff.c) ------------------------------------------------------------------- */

enum tensor_diff_kind {
    TENSOR_META, /* metadata, of the state of the run each field and option */
    TENSOR_ONLY_A,
    TENSOR_ONLY_B,
    TENSOR_SHAPE,
    TENSOR_TYPE,
    TENSOR_VALUES,
    TENSOR_DIFF_KINDS
};

/* Name of a kind, as in JSON and CSV. */
const char *tensor_diff_name(enum tensor_diff_kind kind);

/* A line of metadata; both texts of the arena. */
struct meta_line {
    const char *name, *value;
};

struct checkpoint_side {
    const struct target *target;
    struct safetensors file;
    struct meta_line *meta; /* by name */
    size_t meta_count, meta_capacity;
    struct arena strings;
};

/* A tensor that is in both with one shape, and has other values. */
struct tensor_pair {
    const struct tensor_entry *a, *b;
    struct value_difference values;
};

struct checkpoint_diff {
    struct inspect *in;
    struct checkpoint_side side[2];
    struct tensor_pair *pair; /* by name */
    size_t pair_count;
    uint64_t both; /* tensors */
    uint64_t count[TENSOR_DIFF_KINDS];
    struct value_difference all; /* of the tensors in both with one shape; integers are in its counts only */
};

/* One difference, with the value of each side; pair: of TENSOR_VALUES, or NULL. */
typedef void tensor_diff_fn(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
                            const struct tensor_pair *pair);

/* Have both tensors the same type and shape? */
bool tensor_same_shape(const struct tensor_entry *a, const struct tensor_entry *b);
/* The next tensor by name: found[i] is that of side i, or NULL.  at[] begins with zeros.  False at the end. */
bool checkpoint_diff_next(const struct checkpoint_diff *d, size_t at[2], const struct tensor_entry *found[2]);

/* Call fn for every difference, the metadata first, then by name of the tensor. */
void checkpoint_diff_walk(struct checkpoint_diff *d, tensor_diff_fn *fn, void *context);
bool checkpoint_diff_same_model(const struct checkpoint_diff *d); /* names and shapes */
bool checkpoint_diff_is_same(const struct checkpoint_diff *d);

/* Its result is a struct checkpoint_diff (inspect_checkpoint_diff_report.c). */
extern const struct inspect_result checkpoint_diff_result;

#endif
