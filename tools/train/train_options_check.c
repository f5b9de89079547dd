/*
 * train_options_check.c - checks the options of chex-train together, after all of them were parsed; see train_options.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_options.h"

#include "data/limit.h"
#include "store/store.h"
#include "train/train_audit.h"
#include "train/train_storage_options.h"
#include "train/train_values.h"

#include <string.h>

/* Checks the options of --eval-only. */
static enum chex_status
check_evaluation(const struct train_cli *cli, struct chex_error *err)
{
    const struct trainer_options *o = &cli->train;

    if (cli->trace)
        return error_set(err, CHEX_ERR_USAGE, "--trace goes with training, not with --eval-only");
    if (!o->run && !o->init)
        return error_set(err, CHEX_ERR_USAGE, "--eval-only needs RUN (-o) or weights (--init)");
    if (!o->run && !o->predict)
        return error_set(err, CHEX_ERR_USAGE, "give a folder for the results with -o, or a file with --predict");
    if (strcmp(o->resume, "auto") != 0)
        return error_set(
            err, CHEX_ERR_USAGE,
            "--eval-only evaluates the best model of RUN: select another checkpoint by --init, not --resume");
    return CHEX_OK;
}

/* Checks the options of the model of scale. */
static enum chex_status
check_scale(const struct train_cli *cli, struct chex_error *err)
{
    unsigned nodes = cli->nodes > 0 ? cli->nodes : 1;

    if (cli->ranks == 0 && (cli->nodes > 0 || cli->network >= 0))
        return error_set(err, CHEX_ERR_USAGE, "--nodes and --network go with --ranks");
    if (cli->ranks == 0)
        return CHEX_OK;
    if (cli->train.evaluate_only)
        return error_set(err, CHEX_ERR_USAGE, "--ranks models training: it does not go with --eval-only");
    if (!cli->dry_run)
        return error_set(err, CHEX_ERR_USAGE,
                         "--ranks models training: it goes with -n; mpirun -np or srun starts the ranks of a run");
    if (cli->ranks % nodes != 0)
        return error_set(err, CHEX_ERR_USAGE, "--ranks %u is not a multiple of --nodes %u", cli->ranks, nodes);
    if ((nodes > 1) != (cli->network >= 0))
        return error_set(err, CHEX_ERR_USAGE,
                         nodes > 1 ? "--nodes %u needs --network: edr, hdr, ndr or 10g"
                                   : "--network goes with --nodes 2 or more",
                         nodes);
    return CHEX_OK;
}

enum chex_status
train_cli_check(struct train_cli *cli, const struct cli_common *common, struct chex_error *err)
{
    struct trainer_options *o = &cli->train;
    struct sample_limit limit;
    struct fold_choice fold;

    o->threads = common->threads;
    o->plan_only = cli->dry_run;
    if (o->audit)
        return train_audit_check_options(cli, err);
    if (cli->decay >= 0)
        o->optimizer.decay = cli->decay;
    if (o->schedule.base < 0)
        o->schedule.base = optimizer_default_rate(o->optimizer.kind);
    if (!o->data)
        return error_set(err, CHEX_ERR_USAGE, "no data set: give its folder with -d");
    if (train_storage_check_options(cli, err) != CHEX_OK)
        return err->status;
    if (o->evaluate_only) {
        enum chex_status status = check_evaluation(cli, err);

        if (status != CHEX_OK)
            return status;
    } else if (!o->run && !cli->dry_run && !o->storage_check) {
        return error_set(err, CHEX_ERR_USAGE, "no folder for the run: give one with -o");
    }
    if (!o->storage_check && check_scale(cli, err) != CHEX_OK)
        return err->status;
    if (o->limit && o->evaluate_only)
        return error_set(err, CHEX_ERR_USAGE, "--limit goes with training, not with --eval-only");
    if (o->fold && fold_parse(o->fold, &fold, err) != CHEX_OK)
        return error_context(err, CHEX_ERR_USAGE, "--fold");
    if (o->limit && limit_parse(o->limit, &limit, err) != CHEX_OK)
        return error_context(err, CHEX_ERR_USAGE, "--limit");
    if (o->patience > 0 && o->evaluate_every == 0)
        return error_set(err, CHEX_ERR_USAGE, "--early-stop needs evaluations: not with --eval-every never");
    if (o->split && !o->evaluate_only)
        return error_set(err, CHEX_ERR_USAGE, "--split goes with --eval-only");
    if (o->positive != POSITIVE_GIVEN)
        return CHEX_OK;
    cli->train.given = cli->given;
    cli->train.given_path = cli->positive_file;
    return value_weights(cli->positive_file, "Hernia,57.3", cli->given, &cli->train.given_count, err);
}

enum chex_status
train_cli_check_outputs(const struct train_cli *cli, struct chex_error *err)
{
    struct folder folder;
    const char *name;

    if (!cli->trace)
        return CHEX_OK;
    if (store_open_output(cli->trace, &folder, &name, err) != CHEX_OK)
        return error_context(err, err->status, "--trace");
    folder_close(&folder);
    return CHEX_OK;
}

void
train_cli_suggest(const struct train_cli *cli, struct chex_error *err)
{
    const char *const path[] = {cli->train.data, cli->train.init, cli->train.resume, cli->positive_file,
                                cli->train.audit};
    size_t i;

    for (i = 0; i < sizeof(path) / sizeof(path[0]); i++)
        cli_suggest_path(err, path[i]);
}
