/*
 * cli_retired.c - refuses options of earlier versions and prints the command line that replaces theirs
 *
 * It reads the old command line three times: to find the command, to print its options, and to print its operands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli_tables.h"

#include "common/printable.h"
#include "common/shell_word.h"
#include "common/wrap.h"

#include <string.h>

#define MAX_ACTIONS 16 /* old options on a command line that are commands now; ignores the rest */
#define OPERAND     1  /* getopt returns it for an operand in mode "-" */

struct old_line {
    int argc;
    char **argv;
    struct cli_getopt getopt;                           /* all options of all commands, and the retired ones */
    struct cli_option option[CLI_MAX_OPTIONS];          /* of retired options that no command has */
    const struct cli_retired *retired[CLI_MAX_OPTIONS]; /* of each long option, or NULL */
    bool only_operands;                                 /* "--" was read */
    bool wrong;                                         /* getopt refused an option */
};

struct argument {
    const struct cli_option *option;   /* NULL: an operand */
    const struct cli_retired *retired; /* or NULL */
    bool letter;                       /* the option was given by its letter */
    const char *value;                 /* or NULL */
};

/* ---- reading the old command line -------------------------------------------------------------------------------- */

/* An option that once was a flag and has a value now may have a value. */
static void
add_retired(struct old_line *l, const struct cli_retired *r, struct cli_option *option)
{
    struct cli_getopt *g = &l->getopt;
    size_t i;

    *option = (struct cli_option){.name = r->name, .value = r->value ? "" : NULL};
    cli_getopt_add(g, option);
    for (i = 0; i < g->count && strcmp(g->longs[i].name, r->name) != 0; i++)
        ;
    if (i == g->count)
        return;
    if ((g->longs[i].has_arg == required_argument) != r->value)
        g->longs[i].has_arg = optional_argument;
    l->retired[i] = r;
}

static void
read_tables(const struct cli_program *program, struct old_line *l)
{
    const struct cli_option *offer[CLI_MAX_OPTIONS];
    const struct cli_command *const *c;
    size_t count, i;

    cli_getopt_init(&l->getopt, "-");
    for (c = program->commands; *c; c++) {
        count = cli_list_options(program, *c, offer);
        for (i = 0; i < count; i++)
            cli_getopt_add(&l->getopt, offer[i]);
    }
    for (i = 0; i < CLI_MAX_OPTIONS && program->retired[i].name; i++)
        add_retired(l, &program->retired[i], &l->option[i]);
}

static void
start(struct old_line *l)
{
    optind = 0;
    l->only_operands = false;
}

static bool
next_argument(struct old_line *l, struct argument *a)
{
    int found = -1;

    *a = (struct argument){.value = NULL};
    if (!l->only_operands)
        found = getopt_long(l->argc, l->argv, l->getopt.shorts, l->getopt.longs, NULL);
    if (found == -1) {
        l->only_operands = true;
        a->value = optind < l->argc ? l->argv[optind++] : NULL;
        return a->value != NULL;
    }
    l->wrong |= found == '?' || found == ':';
    a->value = optarg;
    if (found != OPERAND && !l->wrong) {
        a->option = cli_getopt_option(&l->getopt, found);
        a->letter = found < CLI_LONG;
        a->retired = a->letter ? NULL : l->retired[found - CLI_LONG];
    }
    return !l->wrong;
}

/* ---- the command that replaces it -------------------------------------------------------------------------------- */

/* Returns whether the retired option is an option, with a value, of a command that another one has become. */
static bool
is_option_of(const struct cli_program *program, const struct cli_retired *r, const struct cli_retired *other)
{
    const struct cli_option *o = cli_find_option(cli_find_command(program, other->command)->options, r->name,
                                                 strlen(r->name));

    return r != other && o && o->value && !r->value;
}

/* Finds the old options that are commands now, each once.  Returns their number. */
static size_t
find_actions(const struct cli_program *program, struct old_line *l, const struct cli_retired *out[MAX_ACTIONS])
{
    size_t count = 0, kept = 0, i, j;
    struct argument a;

    for (start(l); next_argument(l, &a);) {
        for (i = 0; i < count && out[i] != a.retired; i++)
            ;
        if (a.retired && a.retired->command && i == count && count < MAX_ACTIONS)
            out[count++] = a.retired;
    }
    for (i = 0; i < count; i++) {
        for (j = 0; j < count && !is_option_of(program, out[i], out[j]); j++)
            ;
        if (j == count)
            out[kept++] = out[i];
    }
    return l->wrong ? 0 : kept;
}

static void
put(struct wrap *w, const char *option, const char *value)
{
    char word[SHELL_WORD], shown[PRINTABLE_TEXT];

    if (value && strlen(value) >= PATH_MAX) /* too long for shell_word() */
        value = printable_text(value, shown);
    else if (value && strcmp(value, "-") != 0) /* shell_word() would make it a file */
        value = shell_word(value, word);
    wrap_put(w, " ", "%s%s%s", option, option[0] && value ? " " : "", value ? value : "");
}

static void
put_option(struct wrap *w, const struct argument *a, const struct cli_retired *action)
{
    char name[80];

    if (a->letter)
        snprintf(name, sizeof(name), "-%c", a->option->letter);
    else
        snprintf(name, sizeof(name), "--%s", a->option->name);
    if (a->retired && (a->retired == action || !a->retired->command)) {
        if (a->retired->option)
            put(w, a->retired->option, a->value);
    } else {
        put(w, name, a->value);
    }
}

/*
 * Print the options, or the operands.  The operand that follows an option with a value is this value: as a retired flag
 * it had none.
 */
static void
put_arguments(struct wrap *w, struct old_line *l, const struct cli_retired *action, bool options)
{
    const char *last = NULL;
    struct argument a;
    bool waits = false;

    for (start(l); next_argument(l, &a);) {
        if (a.option && options)
            put_option(w, &a, action);
        if (!a.option && waits == options)
            put(w, "", a.value);
        waits = a.option && a.retired != action && a.option->value && !a.value;
        if (a.retired == action && a.option && !action->option)
            last = a.value;
    }
    if (last && !options)
        put(w, "", last);
}

bool
cli_refuse_retired(const struct cli_program *program, const struct cli_common *common, int argc, char **argv)
{
    struct old_line l = {.argc = argc, .argv = argv};
    const struct cli_retired *action[MAX_ACTIONS];
    struct wrap w = {.out = stderr};
    char words[80];
    size_t count;

    if (!program->retired)
        return false;
    read_tables(program, &l);
    count = find_actions(program, &l, action);
    if (count == 0)
        return false;
    if (count > 1) {
        cli_complain(program, common, "'--%s' and '--%s' cannot go together; the commands are '%s' and '%s'",
                     action[0]->name, action[1]->name, action[0]->command, action[1]->command);
        if (!common->quiet)
            fprintf(stderr, "Try '%s --help'.\n", program->name);
        return true;
    }
    cli_complain(program, common, "'--%s' is now the command '%s':", action[0]->name, action[0]->command);
    snprintf(words, sizeof(words), "next     %s %s", program->name, action[0]->command);
    wrap_command(&w, words);
    put_arguments(&w, &l, action[0], true);
    put_arguments(&w, &l, action[0], false);
    wrap_end(&w);
    return true;
}
