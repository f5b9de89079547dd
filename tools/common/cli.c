/*
 * cli.c - parses command lines with getopt_long(); see cli.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli.h"

#include "base/ascii.h"
#include "common/completion.h"
#include "common/versions.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ids of the common options, larger than the ids of any tool. */
enum { ID_HELP = 1000, ID_VERSION, ID_QUIET, ID_VERBOSE, ID_JSON, ID_COLOR, ID_PROGRESS, ID_THREADS, ID_COMPLETION };

static const struct cli_option common_options[] = {
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

/* The --help text for the exit codes of cli.h. */
static const char exit_codes[] = "Exit status\n"
                                 "  0      good\n"
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

/* The PyTorch and torchvision scripts, Hugging Face's Trainer, make. */
static const struct cli_alias common_aliases[] = {
    {"workers", "threads"},      {"num-workers", "threads"}, {"jobs", "threads"},
    {"out-dir", "output"},       {"output-dir", "output"},   {"save-dir", "output"},
    {"output-folder", "output"}, {"random-seed", "seed"},    {NULL, NULL},
};

#define MAX_OPTIONS  96
#define NAME_LONGEST 64 /* bytes of an unknown option that we compare with known names */

static bool
offered(const struct cli_program *program, const struct cli_option *o)
{
    return !(o->id == ID_THREADS && !program->threads) && !(o->id == ID_PROGRESS && !program->progress);
}

/* The text wraps at HELP_WIDTH columns. */
enum { HELP_INDENT = 28, HELP_WIDTH = 80 };

static void
help_option(const struct cli_option *o)
{
    const char *word = o->help;
    int column;

    if (o->group)
        printf("\n%s\n", o->group);
    column = printf("  %c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->letter ? "," : " ",
                    o->name, o->value ? " " : "", o->value ? o->value : "");
    if (column > HELP_INDENT - 2)
        column = HELP_WIDTH;
    else
        column += printf("%*s", HELP_INDENT - 1 - column, "");
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
help(const struct cli_program *program)
{
    const struct cli_option *o;
    const char *line;
    bool first = true;

    printf("%s - %s\n\n", program->name, program->summary);
    for (line = program->examples; *line; line += strcspn(line, "\n"), line += *line == '\n')
        printf("    %.*s\n", (int)strcspn(line, "\n"), line);
    printf("\n");
    for (line = program->usage; *line; line += strcspn(line, "\n"), line += *line == '\n', first = false)
        printf("%s %*s %.*s\n", first ? "usage:" : "      ", (int)strlen(program->name),
               *line == ' ' ? "" : program->name, (int)strcspn(line, "\n"), line);
    for (o = program->options; o->name; o++)
        help_option(o);
    for (o = common_options; o->name; o++)
        if (offered(program, o))
            help_option(o);
    if (program->notes)
        printf("\n%s\n", program->notes);
    printf("\n%s\nSee %s(1).  Research use only, not for diagnosis.\n", exit_codes, program->name);
    if (PACKAGE_URL[0])
        printf("Home page: %s\n", PACKAGE_URL);
}

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

/* Stores a common option here and passes any other option to the tool. */
static enum chex_status
take(const struct cli_program *program, const struct cli_option *o, const char *value, void *options,
     struct cli_common *common, struct chex_error *err)
{
    uint64_t number = 0;
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
        status = cli_number(value, 1, 1024, &number, err);
        if (status == CHEX_OK)
            common->threads = (unsigned)number;
        break;
    default:
        if (o->id < CLI_AT_FLAG)
            return program->apply(options, o, value, err);
        put(o, value, options);
    }
    return status;
}

/* getopt returns a letter, or this offset plus the index of a long option; so no index equals a letter, '?' or ':'. */
enum {
    LONG_OPTION = 1 << 16,
};

struct getopt_tables {
    struct option longs[MAX_OPTIONS + 1];
    const struct cli_option *option[MAX_OPTIONS]; /* of each long option */
    char shorts[3 * MAX_OPTIONS + 2];
    size_t count, letters;
};

static void
add_options(const struct cli_program *program, int argc, char **argv, struct getopt_tables *t,
            const struct cli_option *o)
{
    for (; o->name && t->count < MAX_OPTIONS; o++) {
        if (!offered(program, o))
            continue;
        if (!program->means || program->means(o, argc, argv)) {
            t->longs[t->count] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                                 LONG_OPTION + (int)t->count};
            t->option[t->count++] = o;
        }
        if (o->letter) {
            t->shorts[t->letters++] = o->letter;
            if (o->value)
                t->shorts[t->letters++] = ':';
        }
    }
}

static const struct cli_option *
option_of_letter(const struct cli_program *program, int letter)
{
    const struct cli_option *o;

    for (o = program->options; o->name; o++)
        if (o->letter == letter)
            return o;
    for (o = common_options; o->letter != letter; o++)
        ;
    return o;
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
            fprintf(stderr, "Try '%s --help'.\n", program->name);
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

/* Returns whether the table has a later option of the same name. */
static bool
comes_again(const struct cli_option *option)
{
    const struct cli_option *o;

    for (o = option + 1; o->name; o++)
        if (strcmp(o->name, option->name) == 0)
            return true;
    return false;
}

/* Lists all options of the program, each name once.  Returns their number. */
static size_t
list_offered(const struct cli_program *program, const struct cli_option *out[2 * MAX_OPTIONS])
{
    const struct cli_option *o;
    size_t count = 0;

    for (o = program->options; o->name && count < MAX_OPTIONS; o++)
        if (!comes_again(o))
            out[count++] = o;
    for (o = common_options; o->name; o++)
        if (offered(program, o))
            out[count++] = o;
    return count;
}

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

static int
unknown_option(const struct cli_program *program, const struct cli_common *common, const char *argument)
{
    const struct cli_option *offer[2 * MAX_OPTIONS];
    const char *name = argument + strspn(argument, "-"), *nearest;
    size_t count = list_offered(program, offer), length = strcspn(name, "="), matches = 0, i;
    char text[320];

    for (i = 0; i < count; i++)
        matches += strncmp(offer[i]->name, name, length) == 0;
    nearest = suggest_option(program, offer, count, name);
    if (*name && matches > 1)
        snprintf(text, sizeof(text), "'%.200s' may be several options", argument);
    else
        snprintf(text, sizeof(text), "unknown option '%.200s'%s%s%s", argument, nearest ? " (did you mean '--" : "",
                 nearest ? nearest : "", nearest ? "'?)" : "");
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
misuse(const struct cli_program *program, const struct cli_common *common, int what, char **argv)
{
    char text[256];

    if (optopt < LONG_OPTION && what == ':')
        snprintf(text, sizeof(text), "option -%c needs a value", optopt);
    else if (optopt >= LONG_OPTION)
        snprintf(text, sizeof(text), what == ':' ? "option '%.200s' needs a value" : "option '%.200s' takes no value",
                 argv[optind - 1]);
    else
        return unknown_option(program, common, unknown_argument(argv));
    return usage_error(program, common, text);
}

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

static int
print_completion(const struct cli_program *program, const struct cli_common *common, const char *shell)
{
    const struct cli_option *offer[2 * MAX_OPTIONS];
    size_t count = list_offered(program, offer);

    completion_print(program, offer, count, shell);
    return cli_finish(program, common, EXIT_GOOD);
}

int
cli_parse(const struct cli_program *program, int argc, char **argv, void *options, struct cli_common *common)
{
    struct getopt_tables tables = {.letters = 1, .shorts = ":"};
    struct chex_error err;
    bool version = false;
    int found;

    occupy_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    *common = (struct cli_common){.threads = cli_cores()};
    if (argc <= 1)
        return no_arguments(program, common);
    add_options(program, argc, argv, &tables, program->options);
    add_options(program, argc, argv, &tables, common_options);
    opterr = 0;
    while ((found = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
        const struct cli_option *o;

        if (found == '?' || found == ':')
            return misuse(program, common, found, argv);
        o = found >= LONG_OPTION ? tables.option[found - LONG_OPTION] : option_of_letter(program, found);
        if (o->id == ID_HELP) {
            help(program);
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
