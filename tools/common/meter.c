/*
 * meter.c - see meter.h
 *
 * A drawn line is: return, text, erase to the end of the line (ECMA-48 EL); so nothing flickers, and a shorter text
 * leaves nothing of a longer one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/meter.h"

#include "base/progress.h"
#include "chex.h"
#include "common/plain.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR_PERIOD  0.1
#define LINE_PERIOD 60.0
#define ERASE       "\r\033[K"

void
meter_init(struct meter *m, const struct cli_common *common)
{
    *m = (struct meter){.last = progress_clock(), .is_log = !isatty(STDERR_FILENO), .color = color_for(common, stderr)};
    pthread_mutex_init(&m->lock, NULL);
    if (common->quiet || common->progress == PROGRESS_NONE)
        m->kind = METER_NONE;
    else if (common->progress == PROGRESS_BAR)
        m->kind = METER_BAR;
    else if (common->progress == PROGRESS_AUTO && isatty(STDERR_FILENO) && !color_terminal_is_dumb())
        m->kind = METER_BAR;
    else
        m->kind = METER_LINE;
}

void
meter_release(struct meter *m)
{
    meter_clear(m);
    pthread_mutex_destroy(&m->lock);
}

static bool
due(const struct meter *m)
{
    if (m->kind == METER_NONE)
        return false;
    return progress_clock() - m->last >= (m->kind == METER_BAR ? BAR_PERIOD : LINE_PERIOD);
}

bool
meter_due(struct meter *m)
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

/* Bytes of the text that fit into `columns` columns, each UTF-8 character taken as one. */
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
meter_tick(struct meter *m, const char *text)
{
    pthread_mutex_lock(&m->lock);
    if (due(m)) {
        m->last = progress_clock();
        if (m->kind == METER_BAR) {
            /* The last column stays free: some terminals wrap when it is written. */
            fprintf(stderr, "\r%.*s\033[K", (int)cut(text, terminal_width() - 1), text);
            m->drawn = true;
        } else {
            char stamp[METER_STAMP];

            fprintf(stderr, "%s%s%s\n", m->is_log ? meter_stamp(stamp) : "", m->is_log ? "  " : "", text);
        }
        fflush(stderr);
    }
    pthread_mutex_unlock(&m->lock);
}

static void
erase(struct meter *m)
{
    if (m->drawn)
        fputs(ERASE, stderr);
    m->drawn = false;
    fflush(stderr);
}

void
meter_clear(struct meter *m)
{
    pthread_mutex_lock(&m->lock);
    erase(m);
    pthread_mutex_unlock(&m->lock);
}

static void print(struct meter *m, const char *color, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void
print(struct meter *m, const char *color, const char *format, va_list args)
{
    pthread_mutex_lock(&m->lock);
    erase(m);
    plain_vline_in(stderr, color, m->color.off, format, args);
    fflush(stderr);
    pthread_mutex_unlock(&m->lock);
}

void
meter_print(struct meter *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(m, "", format, args);
    va_end(args);
}

void
meter_fault(struct meter *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(m, m->color.red, format, args);
    va_end(args);
}

void
meter_warn(struct meter *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(m, m->color.yellow, format, args);
    va_end(args);
}

/* ---- logs -------------------------------------------------------------------------------------------------------- */

char *
meter_stamp(char out[METER_STAMP])
{
    time_t now = time(NULL);
    struct tm tm;
    char date[32] = "", host[64] = "";

    if (localtime_r(&now, &tm))
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S%z", &tm);
    /* POSIX does not say that a name which is cut has an end. */
    if (gethostname(host, sizeof(host)) != 0)
        host[0] = '\0';
    host[sizeof(host) - 1] = '\0';
    snprintf(out, METER_STAMP, "%s %s", date, host[0] ? host : "unknown");
    return out;
}

void
meter_begin_log(const struct cli_common *common, const char *program)
{
    char stamp[METER_STAMP];

    if (!common->quiet && !isatty(STDERR_FILENO))
        plain_line(stderr, "log      %s  %s %s", meter_stamp(stamp), program, chex_version());
}
