/*
 * cli_messages.c - prints errors and warnings and derives exit codes; see cli.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli_tables.h"

#include "base/ascii.h"
#include "common/color.h"
#include "common/printable.h"
#include "input/image_name.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define NAME_BYTES 256 /* longest entry of a folder, with its terminator */
#define PATTERN    "*?["

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
        /* The reader of a pipe may close it early, as head(1) does. */
        if (errno != EPIPE)
            cli_complain(program, common, "cannot write to standard output: %s", errno_text(errno));
        return EXIT_OUTPUT;
    }
    return code;
}

/* ---- which input was meant? -------------------------------------------------------------------------------------- */

static void add_text(struct chex_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
add_text(struct chex_error *err, const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list args;

    va_start(args, format);
    vsnprintf(err->text + used, sizeof(err->text) - used, format, args);
    va_end(args);
}

/* The entry of the folder whose name is nearest to the `length` bytes at name, into out; "": none is near. */
static void
find_nearest(const char *folder, const char *name, size_t length, char out[NAME_BYTES])
{
    unsigned best = (unsigned)(length / 3);
    const struct dirent *d;
    DIR *dir = opendir(folder);

    out[0] = '\0';
    while (dir && (d = readdir(dir)) != NULL) {
        unsigned distance = ascii_distance(name, length, d->d_name, strlen(d->d_name));

        /* Skip hidden files.  Among equal distances take the first name in the alphabet, for any folder order. */
        if (d->d_name[0] == '.' || distance > best || (distance == best && out[0] && strcmp(d->d_name, out) > 0))
            continue;
        best = distance;
        snprintf(out, NAME_BYTES, "%s", d->d_name);
    }
    if (dir)
        closedir(dir);
}

static bool
is_missing(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
}

/* Compare the first part of the path that does not exist with the names in its folder. */
static void
suggest_name(struct chex_error *err, const char *path)
{
    char text[PATH_BYTES + NAME_BYTES], found[NAME_BYTES];
    size_t begin, end = 0;

    do {
        begin = end + strspn(path + end, "/");
        end = begin + strcspn(path + begin, "/");
        snprintf(text, sizeof(text), "%.*s", (int)end, path);
    } while (path[end] && !is_missing(text));
    snprintf(text, sizeof(text), "%.*s", (int)begin, path);
    find_nearest(begin > 0 ? text : ".", path + begin, end - begin, found);
    if (!found[0])
        return;
    snprintf(text, sizeof(text), "%.*s%s%s", (int)begin, path, found, path + end);
    if (is_missing(text))
        text[begin + strlen(found)] = '\0';
    add_text(err, "; did you mean '%s'?", text);
}

/* The shell did not expand the pattern: it was quoted, or nothing matches it. */
static void
explain_pattern(struct chex_error *err, const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + (slash == path) : 0; /* bytes of the folder's name */
    glob_t matches;
    bool any = glob(path, GLOB_NOSORT, NULL, &matches) == 0;

    if (any)
        globfree(&matches);
    if (!any)
        add_text(err, "; nothing matches this pattern");
    else if (image_name_is_known(path) && strcspn(path, PATTERN) >= (size_t)folder)
        add_text(err, "; only the shell expands a pattern: give the folder '%.*s', or leave out the quotes",
                 folder ? folder : 1, folder ? path : ".");
    else
        add_text(err, "; only the shell expands a pattern: leave out the quotes");
}

void
cli_suggest_path(struct chex_error *err, const char *path)
{
    if (err->status != CHEX_ERR_MISSING || !path || strlen(path) >= PATH_BYTES || !strstr(err->text, path) ||
        !is_missing(path))
        return;
    if (strpbrk(path, PATTERN))
        explain_pattern(err, path);
    else
        suggest_name(err, path);
}

bool
cli_suggest_command(const struct cli_program *program, const struct cli_common *common, struct chex_error *err,
                    const char *path)
{
    const struct cli_command *nearest;

    if (common->command || err->status != CHEX_ERR_MISSING || !path || !is_missing(path))
        return false;
    nearest = cli_near_command(program, path);
    if (!nearest)
        return false;
    if (strcmp(path, nearest->name) == 0)
        add_text(err, "; the command comes first: %s %s", program->name, nearest->name);
    else
        add_text(err, "; did you mean the command '%s'?", nearest->name);
    return true;
}
