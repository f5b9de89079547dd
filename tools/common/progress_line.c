/*
 * progress_line.c - see progress_line.h
 *
 * Draws a line as carriage return, text, and erase to the end of the line (ECMA-48 EL).  So the line does not flicker,
 * and a shorter text fully replaces a longer one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/progress_line.h"

#include "base/clock.h"
#include "chex.h"
#include "common/printable.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR_PERIOD  0.1
#define LINE_PERIOD 60.0
#define ERASE       "\r\033[K"

void
progress_line_init(struct progress_line *m, const struct cli_common *common)
{
    *m = (struct progress_line){
        .last = clock_now(), .is_log = !isatty(STDERR_FILENO), .color = color_for(common, stderr)};
    pthread_mutex_init(&m->lock, NULL);
    if (common->quiet || common->progress == PROGRESS_NONE)
        m->kind = PROGRESS_LINE_NONE;
    else if (common->progress == PROGRESS_BAR)
        m->kind = PROGRESS_LINE_BAR;
    else if (common->progress == PROGRESS_AUTO && isatty(STDERR_FILENO) && !color_terminal_is_dumb())
        m->kind = PROGRESS_LINE_BAR;
    else
        m->kind = PROGRESS_LINE_LINE;
}

void
progress_line_release(struct progress_line *m)
{
    progress_line_clear(m);
    pthread_mutex_destroy(&m->lock);
}

static bool
due(const struct progress_line *m)
{
    if (m->kind == PROGRESS_LINE_NONE)
        return false;
    return clock_now() - m->last >= (m->kind == PROGRESS_LINE_BAR ? BAR_PERIOD : LINE_PERIOD);
}

bool
progress_line_due(struct progress_line *m)
{
    bool result;

    pthread_mutex_lock(&m->lock);
    result = due(m);
    pthread_mutex_unlock(&m->lock);
    return result;
}

static size_t
terminal_width(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* Returns the bytes of the text that fit into `columns` columns; counts one column per UTF-8 character. */
static size_t
cut(const char *text, size_t columns)
{
    size_t i, used = 0;

    for (i = 0; text[i]; i++) {
        bool continuation = ((unsigned char)text[i] & 0xc0) == 0x80;

        if (!continuation && used++ == columns)
            break;
    }
    return i;
}

void
progress_line_update(struct progress_line *m, const char *text)
{
    pthread_mutex_lock(&m->lock);
    if (due(m)) {
        m->last = clock_now();
        if (m->kind == PROGRESS_LINE_BAR) {
            /* The last column stays free: some terminals wrap when it is written. */
            fprintf(stderr, "\r%.*s\033[K", (int)cut(text, terminal_width() - 1), text);
            m->drawn = true;
        } else {
            char stamp[PROGRESS_LINE_STAMP];

            fprintf(stderr, "%s%s%s\n", m->is_log ? progress_line_stamp(stamp) : "", m->is_log ? "  " : "", text);
        }
        fflush(stderr);
    }
    pthread_mutex_unlock(&m->lock);
}

static void
erase(struct progress_line *m)
{
    if (m->drawn)
        fputs(ERASE, stderr);
    m->drawn = false;
    fflush(stderr);
}

void
progress_line_clear(struct progress_line *m)
{
    pthread_mutex_lock(&m->lock);
    erase(m);
    pthread_mutex_unlock(&m->lock);
}

static void print(struct progress_line *m, const char *color, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void
print(struct progress_line *m, const char *color, const char *format, va_list args)
{
    char text[PRINTABLE_MESSAGE];

    vsnprintf(text, sizeof(text), format, args);
    pthread_mutex_lock(&m->lock);
    erase(m);
    printable_put(stderr, color, *color ? m->color.off : "", text);
    fflush(stderr);
    pthread_mutex_unlock(&m->lock);
}

void
progress_line_print(struct progress_line *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(m, "", format, args);
    va_end(args);
}

void
progress_line_fault(struct progress_line *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(m, m->color.red, format, args);
    va_end(args);
}

void
progress_line_warn(struct progress_line *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(m, m->color.yellow, format, args);
    va_end(args);
}

/* ---- logs -------------------------------------------------------------------------------------------------------- */

char *
progress_line_stamp(char out[PROGRESS_LINE_STAMP])
{
    time_t now = time(NULL);
    struct tm tm;
    char date[32] = "", host[64] = "";

    if (localtime_r(&now, &tm))
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S%z", &tm);
    /* POSIX does not guarantee a terminator after a truncated name. */
    if (gethostname(host, sizeof(host)) != 0)
        host[0] = '\0';
    host[sizeof(host) - 1] = '\0';
    snprintf(out, PROGRESS_LINE_STAMP, "%s %s", date, host[0] ? host : "unknown");
    return out;
}

void
progress_line_begin_log(const struct cli_common *common, const char *program)
{
    char stamp[PROGRESS_LINE_STAMP];

    if (!common->quiet && !isatty(STDERR_FILENO))
        printable_line(stderr, "log      %s  %s %s", progress_line_stamp(stamp), program, chex_version());
}
