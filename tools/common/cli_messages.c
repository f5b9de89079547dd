/*
 * cli_messages.c - errors, warnings and exit codes, see cli.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli.h"

#include "common/color.h"
#include "common/printable.h"

#include <errno.h>
#include <stdarg.h>

enum cli_exit
cli_exit_of(enum chex_status status)
{
    switch (status) {
    case CHEX_OK:
        return EXIT_GOOD;
    case CHEX_ERR_USAGE:
        return EXIT_USAGE;
    case CHEX_ERR_MISSING:
    case CHEX_ERR_READ:
        return EXIT_MISSING;
    case CHEX_ERR_MEMORY:
    case CHEX_ERR_WRITE:
        return EXIT_OUTPUT;
    case CHEX_ERR_LOCKED:
        return EXIT_LOCKED;
    case CHEX_ERR_INCOMPATIBLE:
        return EXIT_INCOMPATIBLE;
    case CHEX_ERR_STOPPED:
        return EXIT_STOPPED;
    case CHEX_ERR_LOST:
        return EXIT_LOST;
    case CHEX_ERR_DIVERGED:
        return EXIT_DIVERGED;
    case CHEX_ERR_EMPTY:
    case CHEX_ERR_TRUNCATED:
    case CHEX_ERR_CHECKSUM:
    case CHEX_ERR_DAMAGED:
    case CHEX_ERR_UNSUPPORTED:
    case CHEX_ERR_LIMIT:
    case CHEX_ERR_NOT_IMAGE:
        return EXIT_DATA;
    case CHEX_ERR_BUG:
        break;
    }
    return EXIT_BUG;
}

static void print(const struct cli_program *program, const char *color, const char *off, const char *kind,
                  const char *format, va_list args) __attribute__((format(printf, 5, 0)));

static void
print(const struct cli_program *program, const char *color, const char *off, const char *kind, const char *format,
      va_list args)
{
    char text[PRINTABLE_MESSAGE];
    int used = snprintf(text, sizeof(text), "%s: %s", program->name, kind);

    vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
    printable_put(stderr, color, off, text);
}

void
cli_complain(const struct cli_program *program, const struct cli_common *common, const char *format, ...)
{
    struct color color = color_for(common, stderr);
    va_list args;

    va_start(args, format);
    print(program, color.red, color.off, "", format, args);
    va_end(args);
}

int
cli_error(const struct cli_program *program, const struct cli_common *common, const struct chex_error *err)
{
    cli_complain(program, common, "%s", err->text);
    return cli_exit_of(err->status);
}

void
cli_warn(const struct cli_program *program, const struct cli_common *common, const char *format, ...)
{
    struct color color = color_for(common, stderr);
    va_list args;

    if (common->quiet)
        return;
    va_start(args, format);
    print(program, color.yellow, color.off, "warning: ", format, args);
    va_end(args);
}

int
cli_finish(const struct cli_program *program, const struct cli_common *common, int code)
{
    int failed = ferror(stdout);

    if (fclose(stdout) != 0 || failed) {
        /* The reader of a pipe may stop, as head(1) does. */
        if (errno != EPIPE)
            cli_complain(program, common, "cannot write to standard output: %s", errno_text(errno));
        return EXIT_OUTPUT;
    }
    return code;
}
