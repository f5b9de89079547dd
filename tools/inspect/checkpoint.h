/*
 * checkpoint.h - parts of a checkpoint that both its description and `diff` show
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_CHECKPOINT_H
#define CHEX_TOOLS_INSPECT_CHECKPOINT_H

#include "inspect/inspect.h"

#include "checkpoint/safetensors.h"

/*
 * Get the run state that chex-train stores (train/checkpoint/checkpoint_state.c), or NULL.  The caller calls
 * json_decref().  CHEX_ERR_MEMORY
 */
enum chex_status checkpoint_state_of(const struct safetensors *s, json_t **out, struct chex_error *err);

/* Format the shape of a tensor: "64x3x7x7", or "a single value". */
#define CHECKPOINT_SHAPE (SAFETENSORS_RANK * 22)
char *checkpoint_shape(const struct tensor_entry *e, char out[CHECKPOINT_SHAPE]);

#define CHECKPOINT_PIECE 1024 /* values that are read together, so that memory never holds a whole tensor */
#define CHECKPOINT_BYTES (8 * CHECKPOINT_PIECE)

#endif
