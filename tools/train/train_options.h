/*
 * train_options.h - parses and checks the command line of chex-train
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TRAIN_OPTIONS_H
#define CHEX_TOOLS_TRAIN_OPTIONS_H

#include "common/cli.h"
#include "run/trainer.h"

struct train_cli {
    struct trainer_options train;
    const char *positive_file;                    /* --pos-weight FILE, read by train_cli_check() */
    struct given_weight given[CHEX_FINDINGS_MAX]; /* its lines */
    double decay;                                 /* --weight-decay; negative: use the default of the optimizer */
    bool dry_run;
    unsigned ranks, nodes; /* of the model of scale; 0: not given */
    int network;           /* enum scale_link; -1: not given */
    const char *trace;     /* or NULL */
    const char *computing; /* the first option given that --device none does not use, or NULL */
    bool epochs_given;
    const char *not_audit; /* the first option given that does not go with --audit, or NULL */
    int argc;              /* the command line itself, for run.json */
    char **argv;
};

extern const struct cli_program train_program;

struct train_cli train_cli_default(void);

/* Check required options and combinations, and read files of options.  CHEX_ERR_USAGE, CHEX_ERR_MISSING */
enum chex_status train_cli_check(struct train_cli *cli, const struct cli_common *common, struct chex_error *err);

/* Rank 0: checks that the file of --trace can be created.  CHEX_ERR_WRITE */
enum chex_status train_cli_check_outputs(const struct train_cli *cli, struct chex_error *err);

/* If an input is missing, add a suggestion to the error's text. */
void train_cli_suggest(const struct train_cli *cli, struct chex_error *err);

#endif
