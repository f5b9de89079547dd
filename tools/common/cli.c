/*
 * cli.c - parses command lines with getopt_long(); see cli.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli.h"

#include "base/ascii.h"
#include "common/cli_tables.h"
#include "common/completion.h"
#include "common/versions.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The PyTorch and torchvision scripts, Hugging Face's Trainer, make. */
static const struct cli_alias common_aliases[] = {
    {"workers", "threads"},      {"num-workers", "threads"}, {"jobs", "threads"},
    {"out-dir", "output"},       {"output-dir", "output"},   {"save-dir", "output"},
    {"output-folder", "output"}, {"random-seed", "seed"},    {NULL, NULL},
};

#define NAME_LONGEST 64 /* bytes of an unknown option that we compare with known names */

/* Reports "takes a|b|c, not 'd'" and the reason, if known. */
static enum chex_status
refuse_choice(const struct cli_program *program, const struct cli_option *o, const char *value, struct chex_error *err)
{
    const char *why = program->explain ? program->explain(o, value) : NULL;
    char text[256];
    size_t i, used = 0;

    for (i = 0; o->choices[i] && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? "|" : "", o->choices[i]);
    return error_set(err, CHEX_ERR_USAGE, "takes %s, not '%s'%s%s", text, value, why ? ": " : "", why ? why : "");
}

/* Stores the value of an option in a member of the tool's options. */
static void
put(const struct cli_option *o, const char *value, void *options)
{
    void *at = (char *)options + (o->id & 0xffff);

    switch (o->id & ~0xffff) {
    case CLI_AT_FLAG:
        *(bool *)at = true;
        break;
    case CLI_AT_TEXT:
        *(const char **)at = value;
        break;
    default:
        *(int *)at = name_index(o->choices, value);
    }
}

/* Parses "8", or a range "1..8". */
static enum chex_status
set_threads(const struct cli_program *program, const char *value, struct cli_common *common, struct chex_error *err)
{
    const char *dots = program->ranges ? strstr(value, "..") : NULL;
    uint64_t most = 0, fewest = 0;
    char first[8] = "";
    enum chex_status status;

    if (dots && (size_t)(dots - value) < sizeof(first))
        memcpy(first, value, (size_t)(dots - value));
    status = cli_number(dots ? dots + 2 : value, 1, 1024, &most, err);
    if (status == CHEX_OK && dots)
        status = cli_number(first, 1, 1024, &fewest, err);
    if (dots && (status != CHEX_OK || fewest > most))
        return error_set(err, CHEX_ERR_USAGE, "takes a number or a range such as 1..8, up to 1024, not '%.40s'", value);
    if (status == CHEX_OK) {
        common->threads = (unsigned)most;
        common->fewest = (unsigned)fewest;
    }
    return status;
}

/* Stores a common option here and passes any other option to the tool. */
static enum chex_status
take(const struct cli_program *program, const struct cli_option *o, const char *value, void *options,
     struct cli_common *common, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (o->choices && name_index(o->choices, value) < 0)
        return refuse_choice(program, o, value, err);
    switch (o->id) {
    case ID_QUIET:
        common->quiet = true;
        break;
    case ID_VERBOSE:
        common->verbose++;
        break;
    case ID_JSON:
        common->json = true;
        break;
    case ID_COLOR:
        common->color = (enum cli_when)name_index(o->choices, value);
        break;
    case ID_PROGRESS:
        common->progress = (enum cli_progress)name_index(o->choices, value);
        break;
    case ID_THREADS:
        return set_threads(program, value, common, err);
    default:
        if (o->id < CLI_AT_FLAG)
            return program->apply(options, o, value, err);
        put(o, value, options);
    }
    return status;
}

static int
usage_error(const struct cli_program *program, const struct cli_common *common, const char *text)
{
    struct chex_error err;
    int code = CLI_GO_ON;

    if (program->on_usage_error) {
        error_set(&err, CHEX_ERR_USAGE, "%s", text);
        code = program->on_usage_error(&err);
    }
    if (code == CLI_GO_ON) {
        cli_complain(program, common, "%s", text);
        if (!common->quiet)
            fprintf(stderr, "Try '%s%s%s --help'.\n", program->name, common->command ? " " : "",
                    common->command ? common->command->name : "");
        code = EXIT_USAGE;
    }
    return code;
}

/* Reports a rejected value or operand: wrong usage, or out of memory. */
static int
refused(const struct cli_program *program, const struct cli_common *common, const struct chex_error *err)
{
    return err->status == CHEX_ERR_USAGE ? usage_error(program, common, err->text) : cli_error(program, common, err);
}

/* ---- options that the table does not have ------------------------------------------------------------------------ */

/* Returns the option whose name has the smallest edit distance to `name`; NULL if it exceeds `most`. */
static const char *
find_near(const struct cli_option *const *offer, size_t count, const char *name, unsigned most)
{
    const char *found = NULL;
    size_t i;

    for (i = 0; i < count; i++) {
        unsigned distance = ascii_distance(name, strlen(name), offer[i]->name, strlen(offer[i]->name));

        if (distance > most || (distance == most && found))
            continue;
        most = distance;
        found = offer[i]->name;
    }
    return found;
}

/* Guesses the option for NAME[=VALUE]: by its name, an alias, or a small edit distance.  NULL: no guess. */
static const char *
suggest_option(const struct cli_program *program, const struct cli_option *const *offer, size_t count, const char *name)
{
    const struct cli_alias *const tables[] = {program->aliases, common_aliases}, *a;
    size_t length = strcspn(name, "="), i;
    char folded[NAME_LONGEST];
    const char *found;

    if (length >= sizeof(folded))
        return NULL;
    for (i = 0; i < length; i++)
        folded[i] = name[i] == '_' ? '-' : name[i];
    folded[length] = '\0';
    found = find_near(offer, count, folded, 0);
    for (i = 0; i < 2; i++)
        for (a = tables[i]; !found && a && a->other; a++)
            if (ascii_same(a->other, strlen(a->other), folded, length))
                found = find_near(offer, count, a->name, 0);
    return found ? found : find_near(offer, count, folded, (unsigned)(length / 3));
}

/* Returns whether the command has the option of an argument "--where=..." or "-o". */
static bool
has_option(const struct cli_command *command, const char *argument)
{
    const char *name = argument + strspn(argument, "-");
    const struct cli_option *o;

    if (argument[0] == '-' && argument[1] == '-')
        return cli_find_option(command->options, name, strcspn(name, "="));
    for (o = command->options; o->name; o++)
        if (o->letter && o->letter == name[0] && !name[1])
            return true;
    return false;
}

/* Lists the commands that have the option: "list, labels and sheet".  Returns false if none has it. */
static bool
option_of_others(const struct cli_program *program, const char *argument, char *text, size_t size)
{
    const struct cli_command *const *c, *last = NULL;
    size_t used = 0;

    for (c = program->commands; c && *c && used < size; c++) {
        if (!has_option(*c, argument))
            continue;
        if (last)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", last->name);
        last = *c;
    }
    if (last && used < size)
        snprintf(text + used, size - used, "%s%s", used ? " and " : "", last->name);
    return last != NULL;
}

/* Guesses the option among those of all commands: "check --full".  Returns false without a guess. */
static bool
suggest_of_others(const struct cli_program *program, const char *name, char *text, size_t size)
{
    const struct cli_option *offer[CLI_MAX_OPTIONS];
    const struct cli_command *const *c;

    for (c = program->commands; c && *c; c++) {
        size_t count = cli_list_options(program, *c, offer);
        const char *nearest = suggest_option(program, offer, count, name);

        if (nearest) {
            snprintf(text, size, "%s --%s", (*c)->name, nearest);
            return true;
        }
    }
    return false;
}

static int
unknown_option(const struct cli_program *program, const struct cli_common *common, const char *argument)
{
    const struct cli_option *offer[CLI_MAX_OPTIONS];
    const char *name = argument + strspn(argument, "-"), *nearest;
    size_t count = cli_list_options(program, common->command, offer), length = strcspn(name, "="), matches = 0, i;
    char text[512], others[160];
    bool whole = false;

    for (i = 0; i < count; i++)
        if (strncmp(offer[i]->name, name, length) == 0) {
            matches++;
            whole |= !offer[i]->name[length]; /* as -lr */
        }
    nearest = suggest_option(program, offer, count, name);
    if (*name && matches > 1 && !whole)
        snprintf(text, sizeof(text), "'%.200s' may be several options", argument);
    else if (option_of_others(program, argument, others, sizeof(others)))
        snprintf(text, sizeof(text), "'%.*s' is an option of %s", (int)strcspn(argument, "="), argument, others);
    else if (nearest)
        snprintf(text, sizeof(text), "unknown option '%.200s' (did you mean '--%s'?)", argument, nearest);
    else if (!common->command && suggest_of_others(program, name, others, sizeof(others)))
        snprintf(text, sizeof(text), "unknown option '%.200s' (did you mean '%s'?)", argument, others);
    else
        snprintf(text, sizeof(text), "unknown option '%.200s'", argument);
    return usage_error(program, common, text);
}

/* While getopt reads several letters after one dash, optind is still at that argument; otherwise it is after it. */
static const char *
unknown_argument(char **argv)
{
    const char *at = argv[optind];

    return optopt && at && at[0] == '-' && at[1] != '-' && strchr(at, optopt) ? at : argv[optind - 1];
}

/* Reports an option that getopt rejected. */
static int
misuse(const struct cli_program *program, const struct cli_common *common, int what, int argc, char **argv)
{
    const char *argument;
    char text[256];

    if (optopt < CLI_LONG && what == ':') {
        snprintf(text, sizeof(text), "option -%c needs a value", optopt);
    } else if (optopt >= CLI_LONG) {
        snprintf(text, sizeof(text), what == ':' ? "option '%.200s' needs a value" : "option '%.200s' takes no value",
                 argv[optind - 1]);
    } else {
        argument = unknown_argument(argv);
        if (!common->command && cli_refuse_retired(program, common, argc, argv))
            return EXIT_USAGE;
        return unknown_option(program, common, argument);
    }
    return usage_error(program, common, text);
}

/* ---- the whole command line -------------------------------------------------------------------------------------- */

/*
 * Opens standard streams that are closed (cron, >&-).  Otherwise the next opened file would get their descriptor, and
 * messages would go into a shard.  Reads and writes on these streams still fail.
 */
static void
occupy_standard_streams(void)
{
    int fd;

    for (fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* Reports "no arguments; usage: ..." with the first line of the synopsis. */
static int
no_arguments(const struct cli_program *program, const struct cli_common *common)
{
    char text[256];

    snprintf(text, sizeof(text), "no arguments; usage: %s %.*s", program->name, (int)strcspn(program->usage, "\n"),
             program->usage);
    return usage_error(program, common, text);
}

/* Applies an option, or an operand if it is NULL.  An empty value usually comes from an unset shell variable. */
static enum chex_status
parse_argument(const struct cli_program *program, const struct cli_option *o, const char *value, void *options,
               struct cli_common *common, struct chex_error *err)
{
    enum chex_status status;

    if (value && !*value)
        status = error_set(err, CHEX_ERR_USAGE, o ? "the value is empty" : "an argument is empty");
    else
        status = o ? take(program, o, value, options, common, err) : program->apply(options, NULL, value, err);
    return status == CHEX_OK || !o ? status : error_context(err, status, "--%s", o->name);
}

static void
getopt_tables(const struct cli_program *program, const struct cli_command *command, const char *mode,
              struct cli_getopt *g)
{
    const struct cli_option *offer[CLI_MAX_OPTIONS];
    size_t count = cli_list_options(program, command, offer), i;

    cli_getopt_init(g, mode);
    for (i = 0; i < count; i++)
        cli_getopt_add(g, offer[i]);
    opterr = 0;
    optind = 0; /* start again: an extension of GNU and musl */
}

/* Returns the index of the first argument that is not an option; 0 if there is none, or if "--" precedes it. */
static int
first_operand(const struct cli_program *program, int argc, char **argv)
{
    struct cli_getopt g;
    int next = 1, found;

    getopt_tables(program, NULL, "+", &g);
    while ((found = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
        if (found == '?' || found == ':')
            return 0;
        next = optind;
    }
    return next == optind && next < argc ? next : 0;
}

/* "help" and "help COMMAND" */
static int
help_on(const struct cli_program *program, const struct cli_common *common, const char *name)
{
    const struct cli_command *command = name ? cli_find_command(program, name) : NULL, *nearest;
    char text[320];

    if (!name || name[0] == '-' || command) {
        cli_help(program, command);
        return cli_finish(program, common, EXIT_GOOD);
    }
    nearest = cli_near_command(program, name);
    snprintf(text, sizeof(text), "no command '%.200s'%s%s%s", name, nearest ? " (did you mean '" : "",
             nearest ? nearest->name : "", nearest ? "'?)" : "");
    return usage_error(program, common, text);
}

/* Sets common->command and removes its name from argv. */
static int
choose_command(const struct cli_program *program, int *argc, char **argv, struct cli_common *common)
{
    int at = program->commands ? first_operand(program, *argc, argv) : 0;

    if (at == 0)
        return CLI_GO_ON;
    if (strcmp(argv[at], "help") == 0)
        return help_on(program, common, argv[at + 1]);
    common->command = cli_find_command(program, argv[at]);
    if (common->command) {
        memmove(argv + at, argv + at + 1, (size_t)(*argc - at) * sizeof(*argv));
        --*argc;
    }
    return CLI_GO_ON;
}

static int
print_completion(const struct cli_program *program, const struct cli_common *common, const char *shell)
{
    completion_print(program, shell);
    return cli_finish(program, common, EXIT_GOOD);
}

int
cli_parse(const struct cli_program *program, int argc, char **argv, void *options, struct cli_common *common)
{
    struct cli_getopt g;
    struct chex_error err;
    bool version = false;
    int found, code;

    occupy_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    *common = (struct cli_common){.threads = cli_cores()};
    if (argc <= 1)
        return no_arguments(program, common);
    code = choose_command(program, &argc, argv, common);
    if (code != CLI_GO_ON)
        return code;
    getopt_tables(program, common->command, "", &g);
    while ((found = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
        const struct cli_option *o;

        if (found == '?' || found == ':')
            return misuse(program, common, found, argc, argv);
        o = cli_getopt_option(&g, found);
        if (o->id == ID_HELP) {
            cli_help(program, common->command);
            return cli_finish(program, common, EXIT_GOOD);
        }
        if (o->id == ID_COMPLETION && name_index(o->choices, optarg) >= 0)
            return print_completion(program, common, optarg);
        version |= o->id == ID_VERSION;
        if (o->id != ID_VERSION && parse_argument(program, o, optarg, options, common, &err) != CHEX_OK)
            return refused(program, common, &err);
    }
    if (version) {
        versions_print(program->name, common->verbose > 0);
        if (program->versions && common->verbose > 0)
            program->versions();
        return cli_finish(program, common, EXIT_GOOD);
    }
    for (; optind < argc; optind++)
        if (parse_argument(program, NULL, argv[optind], options, common, &err) != CHEX_OK)
            return refused(program, common, &err);
    return CLI_GO_ON;
}
