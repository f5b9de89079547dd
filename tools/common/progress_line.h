/*
 * progress_line.h - the progress line of all tools
 *
 * The caller builds the text ("convert  62 %  69,512/112,120  5,184 img/s  0:08 left"); this file decides when and how
 * stderr shows it: redrawn in place on a terminal, one plain line a minute off it, with date and host, not at all under
 * --quiet or --progress none.  Other messages go through progress_line_print(), so that they never land inside the
 * line.  Any thread may call it and progress_line_update().
 *
 *     progress_line_init(&line, common);
 *     if (progress_line_due(&line))
 *         progress_line_update(&line, text);
 *     progress_line_print(&line, "%s: warning: ...", name);
 *     progress_line_release(&line);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PROGRESS_LINE_H
#define CHEX_TOOLS_PROGRESS_LINE_H

#include "common/cli.h"
#include "common/color.h"

#include <pthread.h>

enum progress_line_kind { PROGRESS_LINE_NONE, PROGRESS_LINE_BAR, PROGRESS_LINE_LINE };

struct progress_line {
    enum progress_line_kind kind;
    pthread_mutex_t lock;
    double last; /* progress_clock() when something was shown, at first that of progress_line_init() */
    bool drawn;  /* a line without its end stands on the terminal */
    bool is_log; /* stderr is no terminal */
    struct color color;
};

void progress_line_init(struct progress_line *m, const struct cli_common *common);
/* Takes away the line; the progress line may not be used any more. */
void progress_line_release(struct progress_line *m);

/* Would progress_line_update() show anything now?  Ten times a second on a terminal, once a minute off it. */
bool progress_line_due(struct progress_line *m);
/* Show the text, if it is time; on a terminal it is cut to the width.  No newline in it. */
void progress_line_update(struct progress_line *m, const char *text);

/* Take the line away, before something else is written to the terminal (stdout too). */
void progress_line_clear(struct progress_line *m);
/* A line on stderr, with its newline, in place of the progress line.  Not silenced by --quiet: the caller decides. */
void progress_line_print(struct progress_line *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same in red, and in yellow, where there are colours. */
void progress_line_fault(struct progress_line *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_line_warn(struct progress_line *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "2026-03-01T17:04:05+0100 n07": local time and this host.  Returns out. */
#define PROGRESS_LINE_STAMP 112
char *progress_line_stamp(char out[PROGRESS_LINE_STAMP]);

/*
 * The first line of a log, which stderr is off a terminal: "log      STAMP  chex-convert 0.1.0"; nothing on a terminal
 * or under --quiet.
 */
void progress_line_begin_log(const struct cli_common *common, const char *program);

#endif
