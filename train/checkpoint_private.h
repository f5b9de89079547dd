/*
 * checkpoint_private.h - what checkpoint.c and checkpoint_state.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CHECKPOINT_PRIVATE_H
#define CHEX_TRAIN_CHECKPOINT_PRIVATE_H

#include "checkpoint.h"

/* "step-004800" */
void checkpoint_name(uint64_t step, char out[CHECKPOINT_NAME]);

/* The model with the state in its metadata; hex as of safetensors_write(). */
enum chex_status checkpoint_write_model(const struct folder *folder, const char *file, const struct graph *g,
                                        const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                                        char *hex, struct chex_error *err);

/* SHA-256 of a file of the folder. */
enum chex_status checkpoint_hash(const struct folder *folder, const char *file, char hex[DIGEST_HEX],
                                 struct chex_error *err);

#endif
