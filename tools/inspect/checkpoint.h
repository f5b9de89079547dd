/*
 * checkpoint.h - parts of a checkpoint that both its description and `diff` show
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_CHECKPOINT_H
#define CHEX_TOOLS_INSPECT_CHECKPOINT_H

#include "inspect/inspect.h"

#include "checkpoint/safetensors.h"

/* Format the shape of a tensor: "64x3x7x7", or "a single value". */
#define CHECKPOINT_SHAPE (SAFETENSORS_RANK * 22)
char *checkpoint_shape(const struct tensor_entry *e, char out[CHECKPOINT_SHAPE]);

/* Values are read in pieces, so that memory never holds a whole tensor. */
#define CHECKPOINT_PIECE 1024
#define CHECKPOINT_BYTES (8 * CHECKPOINT_PIECE)

/* Returns the number of values in the piece that begins at value `at`. */
static inline size_t
checkpoint_piece(const struct tensor_entry *e, uint64_t at)
{
    return e->count - at < CHECKPOINT_PIECE ? (size_t)(e->count - at) : CHECKPOINT_PIECE;
}

#endif
