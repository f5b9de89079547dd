/*
 * command.h - the commands of chex-inspect: option table, operands, function; see inspect.h
 *
 * Each command has its own folder, inspect/NAME, which defines its struct inspect_command.  inspect/program/program.c
 * lists the commands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_COMMAND_H
#define CHEX_TOOLS_INSPECT_COMMAND_H

#include "inspect/inspect.h"

#include <limits.h>

/* Ids of the options that need code: apply() in inspect/program/options.c. */
enum {
    ID_QUICK = 1,
    ID_SAMPLE,
    ID_FULL,
    ID_LEAKS,
    ID_NEAR,
    ID_FIELDS,
    ID_WHERE,
    ID_FIRST,
    ID_RANDOM,
    ID_SEED,
    ID_COLUMNS,
    ID_TITLE,
    ID_INPUT,
    ID_LABEL_FILE,
    ID_LABEL_KIND,
    ID_LABEL_COLUMNS,
    ID_MAX_MEMORY,
    ID_PREDICT,
    ID_NETWORK,
    ID_NODE
};

#define AT_FLAG(member)   CLI_FLAG(struct inspect_options, member)
#define AT_TEXT(member)   CLI_TEXT(struct inspect_options, member)
#define AT_CHOICE(member) CLI_CHOICE(struct inspect_options, member)

/* Rows of the option tables of several commands. */
#define ROW_SPLIT                                                             \
    {                                                                         \
        AT_TEXT(split), 0, "split", "NAME", NULL, NULL, "use only this split" \
    }
#define ROW_WHERE                                                                                                    \
    {                                                                                                                \
        ID_WHERE, 0, "where", "TERMS", NULL, NULL,                                                                   \
            "use only images that match one of these terms, separated by commas: a finding, No_Finding, FINDING=0, " \
            "view=PA, "                                                                                              \
            "sex=F, age=40-59, patient=ID, name=NAME; repeated: all must match"                                      \
    }
#define ROW_FORMAT                                                                               \
    {                                                                                            \
        AT_CHOICE(format), 0, "format", "HOW", CLI_NAMES("table", "csv", "json", "jsonl"), NULL, \
            "output format: table (default), csv (RFC 4180), json (as --json) or jsonl"          \
    }
#define ROW_TITLE                                                               \
    {                                                                           \
        ID_TITLE, 0, "title", "TEXT", NULL, NULL, "print this title at the top" \
    }
#define ROW_END                            \
    {                                      \
        0, 0, NULL, NULL, NULL, NULL, NULL \
    }

struct inspect_command {
    struct cli_command cli; /* the first member: struct cli_common has a pointer to it */
    enum inspect_action action;
    unsigned min, max;    /* number of operands */
    const char *operands; /* "one PATH", for the message about a wrong number */
    /* Check which options go together, or NULL.  CHEX_ERR_USAGE. */
    enum chex_status (*check)(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err);
    /* One of the two: called for each PATH, or once.  A command with both has a function that chooses. */
    bool (*once)(const struct inspect_options *o);
    int (*each)(struct inspect *in, struct target *t);
    int (*all)(struct inspect *in);
};

extern const struct inspect_command inspect_list_command, inspect_labels_command, inspect_check_command,
    inspect_sheet_command, inspect_show_command, inspect_extract_command, inspect_diff_command, inspect_source_command,
    inspect_report_command, inspect_scaling_command;

/* Returns whether --format asks for rows, csv or jsonl. */
bool inspect_wants_rows(const struct inspect_options *o);
/* --format of a command that can write rows of one PATH.  CHEX_ERR_USAGE. */
enum chex_status inspect_check_format(const struct inspect_options *o, const struct cli_common *common,
                                      struct chex_error *err);
/* Returns false and sets err if the text of --fields is not a list of known fields (list/list.c). */
bool inspect_fields_known(const char *fields, struct chex_error *err);

#endif
