/*
 * cli.h - the shared command line of all tools: parser, --help, completion, messages, exit codes
 *
 * The parser, --help and the shell completion of a tool come from one table.  The options that every tool has (help,
 * version, quiet, verbose, json, color, progress, threads) are defined here, not in the tables of the tools.
 *
 * A tool may have commands, as git has: `chex-inspect list SHARDS`.  Each command has its own table.  The first
 * argument that is not an option selects the command; the common options may precede it.
 *
 * Data goes to stdout, messages to stderr.  Only the tools print: libchex returns a struct chex_error, and cli_error()
 * prints it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CLI_H
#define CHEX_TOOLS_CLI_H

#include "base/error.h"

#include <stddef.h>
#include <stdio.h>

/* Exit codes of all tools.  The man pages document them, so they must not change. */
enum cli_exit {
    EXIT_GOOD = 0,
    EXIT_DATA = 1,         /* finished, but the data had faults */
    EXIT_USAGE = 2,        /* wrong usage or configuration; the tool changed nothing */
    EXIT_MISSING = 3,      /* input missing or unreadable */
    EXIT_OUTPUT = 4,       /* output failed or resources ran out; a rerun resumes */
    EXIT_LOCKED = 5,       /* in use by another process */
    EXIT_INCOMPATIBLE = 6, /* a checkpoint, shard or manifest does not fit this run */
    EXIT_DIVERGED = 7,     /* training: a loss or gradient is not finite */
    EXIT_LOST = 8,         /* another process of the same job is lost; a rerun resumes */
    EXIT_BUG = 70,
    EXIT_STOPPED = 75, /* stopped early after a clean save; a rerun resumes */
    CLI_GO_ON = -1     /* not an exit code: the command line is valid, continue */
};

enum cli_exit cli_exit_of(enum chex_status status);

/* Makes a NULL-terminated list of names. */
#define CLI_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/*
 * Ids of options that need no code: cli_parse() sets a member of the tool's options.  CLI_FLAG() sets a bool to true,
 * CLI_TEXT() a text to the argument, CLI_CHOICE() an enum to the index of the value in the choices.
 */
enum { CLI_AT_FLAG = 1 << 16, CLI_AT_TEXT = 2 << 16, CLI_AT_CHOICE = 3 << 16 };
#define CLI_FLAG(type, member)   (CLI_AT_FLAG + (int)offsetof(type, member))
#define CLI_TEXT(type, member)   (CLI_AT_TEXT + (int)offsetof(type, member))
#define CLI_CHOICE(type, member) (CLI_AT_CHOICE + (int)offsetof(type, member))

struct cli_option {
    int id;           /* id of the tool, or CLI_FLAG(), CLI_TEXT(), CLI_CHOICE() */
    char letter;      /* 'i' for -i, or 0 */
    const char *name; /* "input" for --input; NULL ends the table */
    /*
     * Name of the argument in --help, such as "N"; NULL for a flag.  The completion offers files for FILE and PATH, and
     * folders for DIR.
     */
    const char *value;
    const char *const *choices; /* valid values, the parser rejects all others; NULL: any value */
    const char *group;          /* a heading before this option, or NULL */
    /*
     * First the meaning; then, after ':', ';' or '(', the values and the default.  The completion shows only the
     * meaning.  --help wraps the text.
     */
    const char *help;
};

/* Values that the completion offers for an option; the parser accepts other values too. */
struct cli_words {
    const char *name; /* name of the option; NULL ends the table */
    bool list;        /* the option takes several words, separated by commas */
    const char *const *words;
};

/* Name of an option in other toolkits.  If a user types it, the error message suggests our name. */
struct cli_alias {
    const char *other, *name; /* without dashes; NULL ends the table */
};

/* A command of a tool, such as `list` of chex-inspect. */
struct cli_command {
    const char *name;             /* "list" */
    const char *summary;          /* one line */
    const char *usage;            /* synopsis without the names of program and command, lines separated by '\n' */
    const char *examples, *notes; /* as in struct cli_program */
    const struct cli_option *options;
};

/*
 * An option of an earlier version that is now a command or an option of one.  The parser refuses it, prints the command
 * line that replaces it, and the tool exits with EXIT_USAGE.
 */
struct cli_retired {
    const char *name;    /* old name without dashes; NULL ends the table */
    bool value;          /* took a value */
    const char *command; /* the command that replaces it; NULL: only the name of the option changed */
    const char *option;  /* the option with the same meaning, "--full"; NULL: none, a value becomes the last operand */
};

enum cli_when { CLI_AUTO, CLI_ALWAYS, CLI_NEVER };
enum cli_progress { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_LINE, PROGRESS_NONE };

/* Parsed values of the common options. */
struct cli_common {
    const struct cli_command *command; /* NULL: the command line has none */
    bool quiet, json;
    int verbose;
    enum cli_when color;
    enum cli_progress progress;
    unsigned threads; /* at least 1; default: cli_cores() */
    unsigned fewest;  /* of a range -j FEWEST..THREADS; 0: -j was not a range */
};

struct cli_program {
    const char *name;     /* "chex-convert" */
    const char *summary;  /* one line */
    const char *usage;    /* synopsis without the program's name, lines separated by '\n' */
    const char *examples; /* --help shows them first; each line is a command or a comment */
    const char *notes;    /* after the options, or NULL */
    const char *exits;    /* lines of --help for the exit status, "  0      good\n"; NULL: those of enum cli_exit */
    const struct cli_option *options;
    const struct cli_command *const *commands; /* ends with NULL; or NULL: the tool has no commands */
    const struct cli_retired *retired;         /* or NULL */
    const struct cli_words *words;             /* or NULL */
    const struct cli_alias *aliases;           /* or NULL */
    bool threads;                              /* has -j */
    bool ranges;                               /* -j takes ranges, too: cli_common.fewest */
    bool progress;                             /* has --progress */

    /*
     * Apply one option whose id belongs to the tool (value is NULL for a flag), or an operand (option is NULL).  The
     * value is not empty.  Returns CHEX_OK, or CHEX_ERR_USAGE with the reason; the parser prefixes the option's name.
     */
    enum chex_status (*apply)(void *options, const struct cli_option *option, const char *value,
                              struct chex_error *err);

    /* Explain why a value is not among the option's choices; returns NULL without an explanation.  May be NULL. */
    const char *(*explain)(const struct cli_option *option, const char *value);

    /*
     * Both are NULL unless the program may run as several processes.  misused: report a usage error once for all
     * processes and return the exit code, or return CLI_GO_ON if there is one process; then cli_parse() reports it.
     * versions: print additional lines for --version --verbose.
     */
    int (*on_usage_error)(const struct chex_error *err);
    void (*versions)(void);
};

/*
 * Parse the command line: sets *common, calls apply for each option and operand.  Removes the name of the command from
 * argv.  Returns CLI_GO_ON, or the exit code
 * of the program after --help or --version (printed to stdout) or an error (printed to stderr).  Also ignores SIGPIPE
 * and SIGXFSZ, so that a closed pipe or a file size limit becomes an ordinary write error.
 */
int cli_parse(const struct cli_program *program, int argc, char **argv, void *options, struct cli_common *common);

/* ---- cli_messages.c ---- */

/* Print "chex-convert: TEXT" to stderr, in red if colours are on.  Returns the exit code for err->status. */
int cli_error(const struct cli_program *program, const struct cli_common *common, const struct chex_error *err);
/* Print the same line for any text. */
void cli_complain(const struct cli_program *program, const struct cli_common *common, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Print "chex-convert: warning: TEXT" to stderr, in yellow if colours are on; nothing if quiet. */
void cli_warn(const struct cli_program *program, const struct cli_common *common, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * If the error says that the input `path` (NULL is allowed) does not exist, add advice to its text: the existing file
 * or folder with the nearest name, or that only a shell expands a pattern.
 */
void cli_suggest_path(struct chex_error *err, const char *path);
/*
 * If the missing input `path` may be a mistyped or misplaced command of the program, add that to the text of the error
 * and return true.
 */
bool cli_suggest_command(const struct cli_program *program, const struct cli_common *common, struct chex_error *err,
                         const char *path);

/* Flush and close stdout at the end of main().  Returns code, or EXIT_OUTPUT if stdout fails. */
int cli_finish(const struct cli_program *program, const struct cli_common *common, int code);

/* ---- cli_values.c ---- */

/* Parse a number.  CHEX_ERR_USAGE: the text is not a number in min .. max; the message names the range. */
enum chex_status cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct chex_error *err);
/* Parse a number that may end with K, M or G: 2^10, 2^20, 2^30. */
enum chex_status cli_count(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct chex_error *err);
/* Parse "5%", "0.5%" or "5", above 0 and at most 100, to 5, 0.5 and 5. */
enum chex_status cli_percent(const char *text, double *out, struct chex_error *err);

/* Returns the number of cores that the affinity mask and the cgroup's cpu.max allow this process. */
unsigned cli_cores(void);

#endif
