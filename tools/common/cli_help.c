/*
 * cli_help.c - prints --help of a program or of one of its commands; see cli_tables.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli_tables.h"

#include <string.h>

/* The --help text for the exit codes of cli.h. */
static const char exit_codes[] = "  0      good\n"
                                 "  1      finished, but the data had faults\n"
                                 "  2      usage or configuration\n"
                                 "  3      input missing or unreadable\n"
                                 "  4      output failed, or out of resources; a rerun resumes\n"
                                 "  5      in use by another process\n"
                                 "  6      incompatible shard, manifest, checkpoint or driver\n"
                                 "  7      training diverged: the loss or a gradient is not finite\n"
                                 "  8      another process of the job is lost; a rerun resumes\n"
                                 "  70     a bug\n"
                                 "  75     stopped early after a clean save; a rerun resumes\n"
                                 "  128+n  killed by signal n.  If a rank is killed, plain mpirun ends the job\n"
                                 "         with 137 (SIGKILL), not with 8\n";

enum { HELP_INDENT = 28, HELP_WIDTH = 80 };

/* Print words from a column on; lines wrap at HELP_WIDTH and continue at HELP_INDENT. */
static void
help_words(const char *word, int column)
{
    while (*word) {
        int length = (int)strcspn(word, " ");

        if (column + 1 + length > HELP_WIDTH)
            column = printf("\n%*s", HELP_INDENT - 1, "") - 1;
        column += printf(" %.*s", length, word);
        word += length;
        word += strspn(word, " ");
    }
    printf("\n");
}

static void
help_option(const struct cli_option *o)
{
    int column;

    if (o->group)
        printf("\n%s\n", o->group);
    column = printf("  %c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->letter ? "," : " ",
                    o->name, o->value ? " " : "", o->value ? o->value : "");
    if (column > HELP_INDENT - 2)
        column = HELP_WIDTH;
    else
        column += printf("%*s", HELP_INDENT - 1 - column, "");
    help_words(o->help, column);
}

static void
help_examples(const char *line)
{
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n')
        printf("    %.*s\n", (int)strcspn(line, "\n"), line);
    printf("\n");
}

/* A line of the synopsis that begins with a blank continues the previous one. */
static void
help_usage(const char *name, const char *line)
{
    bool first = true;

    for (; *line; line += strcspn(line, "\n"), line += *line == '\n', first = false)
        printf("%s %*s %.*s\n", first ? "usage:" : "      ", (int)strlen(name), *line == ' ' ? "" : name,
               (int)strcspn(line, "\n"), line);
}

static void
help_commands(const struct cli_program *program)
{
    const struct cli_command *const *c;

    printf("\nCommands\n");
    for (c = program->commands; *c; c++)
        help_words((*c)->summary, printf("  %-*s", HELP_INDENT - 3, (*c)->name));
    help_words("print the options of a command", printf("  %-*s", HELP_INDENT - 3, "help COMMAND"));
}

static void
help_options(const struct cli_program *program, const struct cli_command *command)
{
    const struct cli_option *option[CLI_MAX_OPTIONS];
    size_t count = cli_list_options(program, command, option), i;

    if (command && !option[0]->group)
        printf("\nOptions\n");
    for (i = 0; i < count; i++)
        help_option(option[i]);
}

static void
help_command(const struct cli_program *program, const struct cli_command *command)
{
    char name[64];

    snprintf(name, sizeof(name), "%s %s", program->name, command->name);
    printf("%s - %s\n\n", name, command->summary);
    help_examples(command->examples);
    help_usage(name, command->usage);
    help_options(program, command);
    if (command->notes)
        printf("\n%s\n", command->notes);
    printf("\nSee %s(1), and %s --help for the exit status.\n", program->name, program->name);
}

void
cli_help(const struct cli_program *program, const struct cli_command *command)
{
    if (command) {
        help_command(program, command);
        return;
    }
    printf("%s - %s\n\n", program->name, program->summary);
    help_examples(program->examples);
    help_usage(program->name, program->usage);
    if (program->commands)
        help_commands(program);
    help_options(program, NULL);
    if (program->notes)
        printf("\n%s\n", program->notes);
    printf("\nExit status\n%s\nSee %s(1).  Research use only, not for diagnosis.\n",
           program->exits ? program->exits : exit_codes, program->name);
    if (PACKAGE_URL[0])
        printf("Home page: %s\n", PACKAGE_URL);
}
