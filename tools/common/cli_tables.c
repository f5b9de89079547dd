/*
 * cli_tables.c - the common options, and lookups in the option tables of a program; see cli_tables.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli_tables.h"

#include "base/ascii.h"

#include <string.h>

const struct cli_option cli_common_options[] = {
    {ID_THREADS, 'j', "threads", "N", NULL, "Common",
     "number of threads; default: the cores that affinity and cgroup allow"},
    {ID_JSON, 0, "json", NULL, NULL, NULL, "print one JSON document to stdout, for scripts"},
    {ID_PROGRESS, 0, "progress", "WHEN", CLI_NAMES("auto", "bar", "line", "none"), NULL,
     "how to show progress: auto (default; a line that is redrawn on a terminal, otherwise one line a minute), bar, "
     "line or none"},
    {ID_COLOR, 0, "color", "WHEN", CLI_NAMES("auto", "always", "never"), NULL,
     "when to use colours: auto (default; respects NO_COLOR and TERM=dumb), always or never"},
    {ID_QUIET, 'q', "quiet", NULL, NULL, NULL, "print only errors"},
    {ID_VERBOSE, 'v', "verbose", NULL, NULL, NULL, "print more; with --version: the versions of the libraries"},
    {ID_COMPLETION, 0, "completion", "SHELL", CLI_NAMES("bash", "zsh", "fish"), NULL,
     "print the completion script for this shell"},
    {ID_HELP, 'h', "help", NULL, NULL, NULL, "print this help"},
    {ID_VERSION, 'V', "version", NULL, NULL, NULL, "print the version"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

bool
cli_is_offered(const struct cli_program *program, const struct cli_option *o)
{
    return !(o->id == ID_THREADS && !program->threads) && !(o->id == ID_PROGRESS && !program->progress);
}

size_t
cli_list_options(const struct cli_program *program, const struct cli_command *command,
                 const struct cli_option *out[CLI_MAX_OPTIONS])
{
    const struct cli_option *o;
    size_t count = 0;

    for (o = command ? command->options : program->options; o->name && count < CLI_MAX_OPTIONS; o++)
        out[count++] = o;
    for (o = cli_common_options; o->name && count < CLI_MAX_OPTIONS; o++)
        if (cli_is_offered(program, o))
            out[count++] = o;
    return count;
}

const struct cli_option *
cli_find_option(const struct cli_option *table, const char *name, size_t length)
{
    for (; table->name; table++)
        if (strlen(table->name) == length && strncmp(table->name, name, length) == 0)
            return table;
    return NULL;
}

const struct cli_command *
cli_find_command(const struct cli_program *program, const char *name)
{
    const struct cli_command *const *c;

    for (c = program->commands; c && *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

const struct cli_command *
cli_near_command(const struct cli_program *program, const char *name)
{
    const struct cli_command *const *c, *found = NULL;
    unsigned least = (unsigned)(strlen(name) / 3) + 1;

    for (c = program->commands; c && *c; c++) {
        unsigned distance = ascii_distance(name, strlen(name), (*c)->name, strlen((*c)->name));

        if (distance >= least)
            continue;
        least = distance;
        found = *c;
    }
    return found;
}

void
cli_getopt_init(struct cli_getopt *g, const char *mode)
{
    *g = (struct cli_getopt){.letters = strlen(mode) + 1};
    memcpy(g->shorts, mode, strlen(mode));
    g->shorts[strlen(mode)] = ':';
}

void
cli_getopt_add(struct cli_getopt *g, const struct cli_option *o)
{
    size_t i;

    for (i = 0; i < g->count; i++)
        if (strcmp(g->longs[i].name, o->name) == 0)
            return;
    if (g->count == CLI_MAX_OPTIONS)
        return;
    g->longs[g->count] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                         CLI_LONG + (int)g->count};
    g->option[g->count++] = o;
    if (!o->letter || strchr(g->shorts, o->letter))
        return;
    g->shorts[g->letters++] = o->letter;
    if (o->value)
        g->shorts[g->letters++] = ':';
}

const struct cli_option *
cli_getopt_option(const struct cli_getopt *g, int found)
{
    size_t i;

    if (found >= CLI_LONG)
        return g->option[found - CLI_LONG];
    for (i = 0; i < g->count; i++)
        if (g->option[i]->letter == found)
            return g->option[i];
    return NULL;
}
