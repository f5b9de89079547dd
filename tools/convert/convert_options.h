/*
 * convert_options.h - parses and checks the command line of chex-convert
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_OPTIONS_H
#define CHEX_TOOLS_CONVERT_OPTIONS_H

#include "common/cli.h"
#include "convert/convert.h"

struct convert_cli {
    struct convert_options convert;
    const char **inputs; /* owned array; convert.inputs points to it */
    size_t input_capacity;
    const char **prefixes;      /* owned array of texts in id_prefix; convert.id_prefix points to it */
    char *id_prefix;            /* --id-prefix, cut at its commas; owned */
    struct label_kind *columns; /* --columns; owned */
    bool dry_run, profile;
    uint64_t limit;       /* images of --profile; 0: not given */
    const char *withdraw; /* a patient, or a list of patients; NULL: convert */
};

extern const struct cli_program convert_program;

/* Returns the defaults; free them with convert_cli_release(). */
struct convert_cli convert_cli_default(void);
void convert_cli_release(struct convert_cli *cli);

/* Check required options and their combinations after parsing.  CHEX_ERR_USAGE */
enum chex_status convert_cli_check(struct convert_cli *cli, struct chex_error *err);

/* If an input is missing, add a suggestion to the error's text. */
void convert_cli_suggest(const struct convert_cli *cli, struct chex_error *err);

#endif
