/*
 * train_storage_options.c - see train_storage_options.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_storage_options.h"

#include <string.h>

#define DEVICE_NONE "none"

/* The options that change which images are read, and how. */
static const char *const used[] = {"data",       "device",    "rate",  "ranks",      "epochs",        "fold",  "limit",
                                   "seed",       "max-steps", "batch", "accumulate", "micro-batch",   "stage", "cache",
                                   "break-lock", "shuffle",   "crc",   "timeout",    "on-bad-record", NULL};

void
train_storage_note_option(struct train_cli *cli, const char *name)
{
    size_t i = 0;

    while (used[i] && strcmp(used[i], name) != 0)
        i++;
    if (!used[i] && !cli->computing)
        cli->computing = name;
    cli->epochs_given |= strcmp(name, "epochs") == 0;
}

bool
train_storage_is_wanted(const struct train_cli *cli)
{
    return strcmp(cli->train.device, DEVICE_NONE) == 0;
}

enum chex_status
train_storage_check_options(struct train_cli *cli, struct chex_error *err)
{
    struct trainer_options *o = &cli->train;
    const char *other = cli->dry_run ? "dry-run" : cli->trace ? "trace" : cli->computing;

    o->storage_check = train_storage_is_wanted(cli);
    if (!o->storage_check)
        return o->rate > 0 ? error_set(err, CHEX_ERR_USAGE, "--rate goes with --device none") : CHEX_OK;
    if (other)
        return error_set(err, CHEX_ERR_USAGE,
                         "--%s does not go with --device none, which only reads: no run, no weights, no results",
                         other);
    if (o->cache == CACHE_DEVICE)
        return error_set(err, CHEX_ERR_USAGE, "--cache device needs a GPU: not with --device none");
    if (o->cache == CACHE_AUTO)
        o->cache = CACHE_NONE; /* every image comes from the file system, in every epoch */
    if (!cli->epochs_given)
        o->epochs = 1;
    return CHEX_OK;
}

enum chex_status
train_storage_check_ranks(const struct train_cli *cli, int ranks, struct chex_error *err)
{
    if (!cli->train.storage_check || cli->ranks == 0 || cli->ranks == (unsigned)ranks)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_USAGE, "--ranks %u, and this job has %d: start them with mpirun -np %u or srun",
                     cli->ranks, ranks, cli->ranks);
}
