/*
 * checkpoint.h - reads checkpoints for chex-inspect and compares two of them for --diff
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_CHECKPOINT_H
#define CHEX_TOOLS_INSPECT_CHECKPOINT_H

#include "inspect/inspect.h"
#include "inspect/values.h"

/*
 * Get the run state that chex-train stores (train/checkpoint/checkpoint_state.c), or NULL.  The caller calls
 * json_decref().  CHEX_ERR_MEMORY
 */
enum chex_status checkpoint_state_of(const struct safetensors *s, json_t **out, struct chex_error *err);

/* Format the shape of a tensor: "64x3x7x7", or "a single value". */
#define CHECKPOINT_SHAPE (SAFETENSORS_RANK * 22)
char *checkpoint_shape(const struct tensor_entry *e, char out[CHECKPOINT_SHAPE]);

/* ---- differences (diff/checkpoint.c) ----------------------------------------------------------------------------- */

enum tensor_diff_kind {
    TENSOR_META, /* metadata: also each field and option of the run state */
    TENSOR_ONLY_A,
    TENSOR_ONLY_B,
    TENSOR_SHAPE,
    TENSOR_TYPE,
    TENSOR_VALUES,
    TENSOR_DIFF_KINDS
};

/* Returns the name of a kind in JSON and CSV. */
const char *tensor_diff_name(enum tensor_diff_kind kind);

/* One entry of the metadata; the arena owns both strings. */
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

/* A tensor that has the same shape in both checkpoints, but different values. */
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
    struct value_difference all; /* over the tensors with equal shapes; integers only add to the counts */
};

/* Called for one difference, with the value on each side; pair is NULL except for TENSOR_VALUES. */
typedef void tensor_diff_fn(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
                            const struct tensor_pair *pair);

/* Returns true if both tensors have the same type and shape. */
bool tensor_same_shape(const struct tensor_entry *a, const struct tensor_entry *b);
/* Step to the next name: found[i] is the tensor of side i, or NULL.  at[] starts at 0.  Returns false at the end. */
bool checkpoint_diff_next(const struct checkpoint_diff *d, size_t at[2], const struct tensor_entry *found[2]);

/* Call fn for every difference: first the metadata, then the tensors by name. */
void checkpoint_diff_walk(struct checkpoint_diff *d, tensor_diff_fn *fn, void *context);
bool checkpoint_diff_same_model(const struct checkpoint_diff *d); /* compares names and shapes */
bool checkpoint_diff_is_same(const struct checkpoint_diff *d);

/* Formats a struct checkpoint_diff (diff/checkpoint_report.c). */
extern const struct inspect_result checkpoint_diff_result;

#endif
