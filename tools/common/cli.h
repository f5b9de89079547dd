/*
 * cli.h - what the command lines of all tools have in common
 *
 * The parser, --help and the shell completion of a tool come from one table.  The options that every tool has (help,
 * version, quiet, verbose, json, color, progress, threads) are added here and are not in the tools' tables.
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

/* Exit codes of every tool: promises, in the man pages. */
enum cli_exit {
    EXIT_GOOD = 0,
    EXIT_DATA = 1,         /* finished, but the data had faults */
    EXIT_USAGE = 2,        /* usage or configuration; nothing was touched */
    EXIT_MISSING = 3,      /* input missing or unreadable */
    EXIT_OUTPUT = 4,       /* output failed or resources ran out; a rerun resumes */
    EXIT_LOCKED = 5,       /* in use by another process */
    EXIT_INCOMPATIBLE = 6, /* checkpoint, shard or manifest of another kind */
    EXIT_DIVERGED = 7,     /* training: a loss or a gradient that is not finite */
    EXIT_LOST = 8,         /* another process of the same job is lost; a rerun resumes */
    EXIT_BUG = 70,
    EXIT_STOPPED = 75, /* stopped early after a clean save; a rerun resumes */
    CLI_GO_ON = -1     /* not an exit code: the command line was good, do the work */
};

enum cli_exit cli_exit_of(enum chex_status status);

/* A list of names up to NULL. */
#define CLI_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/*
 * Ids of options that need no code: cli_parse() sets a member of the tool's options.  CLI_FLAG() sets a bool to true,
 * CLI_TEXT() a text to the argument, CLI_CHOICE() an enum to the place of the value among the choices.
 */
enum { CLI_AT_FLAG = 1 << 16, CLI_AT_TEXT = 2 << 16, CLI_AT_CHOICE = 3 << 16 };
#define CLI_FLAG(type, member)   (CLI_AT_FLAG + (int)offsetof(type, member))
#define CLI_TEXT(type, member)   (CLI_AT_TEXT + (int)offsetof(type, member))
#define CLI_CHOICE(type, member) (CLI_AT_CHOICE + (int)offsetof(type, member))

struct cli_option {
    int id;           /* the tool's number for it, or CLI_FLAG() and its like */
    char letter;      /* 'i' for -i, or 0 */
    const char *name; /* "input" for --input; NULL ends the table */
    /*
     * What --help calls its argument, "N"; NULL for a flag.  To the completion FILE and PATH mean a file, DIR a folder.
     */
    const char *value;
    const char *const *choices; /* names: any other value is refused here; NULL: anything */
    const char *group;          /* a heading before this option, or NULL */
    /*
     * First the meaning, which the completion shows alone; then, after ':', ';' or '(', the values and the default.
     * --help wraps the text.
     */
    const char *help;
};

/* What the completion of an option's value offers where other values are good too. */
struct cli_words {
    const char *name; /* of the option; NULL ends the table */
    bool list;        /* several, separated by commas */
    const char *const *words;
};

/* An option's name in other toolkits, where its meaning is certain: an unknown option suggests ours. */
struct cli_alias {
    const char *other, *name; /* without dashes; NULL ends the table */
};

enum cli_when { CLI_AUTO, CLI_ALWAYS, CLI_NEVER };
enum cli_progress { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_LINE, PROGRESS_NONE };

/* The common options, as parsed. */
struct cli_common {
    bool quiet, json;
    int verbose;
    enum cli_when color;
    enum cli_progress progress;
    unsigned threads; /* at least 1; default: the cores that affinity and cgroup allow */
};

struct cli_program {
    const char *name;     /* "chex-convert" */
    const char *summary;  /* one line */
    const char *usage;    /* lines of synopsis, each without the program's name, separated by '\n' */
    const char *examples; /* shown first, each line a command or its comment */
    const char *notes;    /* after the options, or NULL */
    const struct cli_option *options;
    const struct cli_words *words;   /* or NULL */
    const struct cli_alias *aliases; /* or NULL */
    bool threads;                    /* has -j */
    bool progress;                   /* has --progress */

    /*
     * Take one option with an id of the tool's own (value is NULL for a flag), or an operand (option is NULL).  The
     * value is not empty.  Returns CHEX_OK, or CHEX_ERR_USAGE with the reason; the name of the option is put before it.
     */
    enum chex_status (*apply)(void *options, const struct cli_option *option, const char *value,
                              struct chex_error *err);

    /*
     * NULL unless two options of the table have one long name: is this option meant in this command line?  The
     * completion offers the last of them.
     */
    bool (*means)(const struct cli_option *option, int argc, char **argv);

    /* NULL, or: what to say of a value that is none of the option's choices; it returns NULL where that is nothing. */
    const char *(*explain)(const struct cli_option *option, const char *value);

    /*
     * Both NULL unless the program may be one process of several.  misused: report once for all of them what is
     * wrong with the command line, and return the exit code; CLI_GO_ON: a single process, cli_parse() reports it.
     * versions: lines for --version --verbose.
     */
    int (*misused)(const struct chex_error *err);
    void (*versions)(void);
};

/*
 * Parse the command line: sets *common, calls apply for each option and operand.  Returns CLI_GO_ON, or the exit code
 * with which to end: after --help or --version (printed to stdout) or an error (printed to stderr).  Also
 * ignores SIGPIPE and SIGXFSZ, so that a closed pipe or a file limit is an error like others.
 */
int cli_parse(const struct cli_program *program, int argc, char **argv, void *options, struct cli_common *common);

/* ---- cli_messages.c ---- */

/* "chex-convert: TEXT" on stderr, in red where there are colours; returns the exit code for err->status. */
int cli_error(const struct cli_program *program, const struct cli_common *common, const struct chex_error *err);
/* The same line of any text. */
void cli_complain(const struct cli_program *program, const struct cli_common *common, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "chex-convert: warning: TEXT" on stderr unless quiet, in yellow. */
void cli_warn(const struct cli_program *program, const struct cli_common *common, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * If the error says that the input `path` (NULL is allowed) does not exist, add advice to its text: the existing file
 * or folder with the nearest name, or that only a shell expands a pattern.
 */
void cli_suggest_path(struct chex_error *err, const char *path);

/* End of main: stdout is flushed and closed; a failure there is EXIT_OUTPUT, whatever code says. */
int cli_finish(const struct cli_program *program, const struct cli_common *common, int code);

/* ---- cli_values.c ---- */

/* Values: the whole text must be a number in min .. max.  CHEX_ERR_USAGE says what is allowed. */
enum chex_status cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct chex_error *err);
/* The same with K, M, G: 2^10, 2^20, 2^30. */
enum chex_status cli_count(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct chex_error *err);

/* The cores that this process may use: affinity and the cgroup's cpu.max. */
unsigned cli_cores(void);

#endif
