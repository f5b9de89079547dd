/*
 * checkpoint_private.h - what checkpoint.c and checkpoint_state.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CHECKPOINT_PRIVATE_H
#define CHEX_TRAIN_CHECKPOINT_PRIVATE_H

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
