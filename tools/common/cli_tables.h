/*
 * cli_tables.h - the option tables of a program as its parser, --help and completion see them; see cli.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CLI_TABLES_H
#define CHEX_TOOLS_CLI_TABLES_H

#include "common/cli.h"

#include <getopt.h>

#define CLI_MAX_OPTIONS 96

/* Ids of the common options, larger than the ids of any tool. */
enum { ID_HELP = 1000, ID_VERSION, ID_QUIET, ID_VERBOSE, ID_JSON, ID_COLOR, ID_PROGRESS, ID_THREADS, ID_COMPLETION };

extern const struct cli_option cli_common_options[];

/* Returns whether the program has this common option. */
bool cli_is_offered(const struct cli_program *program, const struct cli_option *o);
/* List the options of a command (NULL: of the program itself), then the common ones.  Returns their number. */
size_t cli_list_options(const struct cli_program *program, const struct cli_command *command,
                        const struct cli_option *out[CLI_MAX_OPTIONS]);
/* Returns the option of a table with this long name, or NULL. */
const struct cli_option *cli_find_option(const struct cli_option *table, const char *name, size_t length);
/* Returns the command with this name, or NULL. */
const struct cli_command *cli_find_command(const struct cli_program *program, const char *name);
/* Returns the command whose name has the smallest edit distance to `name`; NULL if none is near. */
const struct cli_command *cli_near_command(const struct cli_program *program, const char *name);

/* getopt returns a letter, or this offset plus the index of a long option; so no index equals a letter, '?' or ':'. */
enum {
    CLI_LONG = 1 << 16,
};

/* Option tables in the form that getopt_long() needs.  The first character of shorts is its mode, or ':'. */
struct cli_getopt {
    struct option longs[CLI_MAX_OPTIONS + 1];
    const struct cli_option *option[CLI_MAX_OPTIONS]; /* of each long option */
    char shorts[3 * CLI_MAX_OPTIONS + 3];
    size_t count, letters;
};

/* Begin with a mode of getopt: "" permutes operands, "+" stops at the first one, "-" returns each as option 1. */
void cli_getopt_init(struct cli_getopt *g, const char *mode);
/* Add an option, unless one with the same name is there. */
void cli_getopt_add(struct cli_getopt *g, const struct cli_option *o);
/* Returns the option that getopt_long() found. */
const struct cli_option *cli_getopt_option(const struct cli_getopt *g, int found);

/* ---- cli_help.c ---- */

/* Print --help of a command, or of the program if it is NULL. */
void cli_help(const struct cli_program *program, const struct cli_command *command);

/* ---- cli_retired.c ---- */

/*
 * If the command line has an option of program->retired, print the command line that replaces it to stderr and return
 * true.
 */
bool cli_refuse_retired(const struct cli_program *program, const struct cli_common *common, int argc, char **argv);

#endif
