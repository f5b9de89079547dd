/*
 * meter.c - see meter.h
 *
 * A drawn line is: return, text, erase to the end of the line (ECMA-48 EL); so nothing flickers, and a shorter text
 * leaves nothing of a longer one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "meter.h"

#include "plain.h"
#include "progress.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_PERIOD  0.1
#define LINE_PERIOD 60.0
#define ERASE       "\r\033[K"

static bool
dumb_terminal(void)
{
    const char *term = getenv("TERM");

    return !term || !term[0] || strcmp(term, "dumb") == 0;
}

void
meter_init(struct meter *m, const struct cli_common *common)
{
    *m = (struct meter){.last = progress_clock()};
    pthread_mutex_init(&m->lock, NULL);
    if (common->quiet || common->progress == PROGRESS_NONE)
        m->kind = METER_NONE;
    else if (common->progress == PROGRESS_BAR)
        m->kind = METER_BAR;
    else if (common->progress == PROGRESS_AUTO && isatty(STDERR_FILENO) && !dumb_terminal())
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

/* Bytes of the text that fit into so many columns, each UTF-8 character taken as one. */
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
            fprintf(stderr, "%s\n", text);
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

void
meter_print(struct meter *m, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&m->lock);
    erase(m);
    va_start(args, format);
    plain_vline(stderr, format, args);
    va_end(args);
    fflush(stderr);
    pthread_mutex_unlock(&m->lock);
}

struct color
color_for(const struct cli_common *common, FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    bool on = common->color == CLI_ALWAYS;

    /* https://no-color.org: set and not empty. */
    if (common->color == CLI_AUTO)
        on = isatty(fileno(stream)) && !dumb_terminal() && !(no_color && no_color[0]);
    if (on)
        return (struct color){"\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m", "\033[0m"};
    return (struct color){"", "", "", "", "", ""};
}
