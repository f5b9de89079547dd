/*
 * train_storage_options.h - the options of the storage check (--device none)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TRAIN_STORAGE_OPTIONS_H
#define CHEX_TOOLS_TRAIN_STORAGE_OPTIONS_H

#include "train/train_options.h"

/* Remember an option of the command line if --device none does not use it. */
void train_storage_note_option(struct train_cli *cli, const char *name);
/* Returns whether --device none was given. */
bool train_storage_is_wanted(const struct train_cli *cli);
/* Decide whether this is a storage check, and check and complete its options.  CHEX_ERR_USAGE */
enum chex_status train_storage_check_options(struct train_cli *cli, struct chex_error *err);
/* Compare --ranks with the ranks of the job.  CHEX_ERR_USAGE */
enum chex_status train_storage_check_ranks(const struct train_cli *cli, int ranks, struct chex_error *err);

#endif
