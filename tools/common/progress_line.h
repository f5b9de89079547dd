/*
 * progress_line.h - shows the progress line of all tools
 *
 * The caller builds the text ("convert  62 %  69,512/112,120  5,184 img/s  0:08 left"); this file decides when and how
 * stderr shows it.  A terminal redraws the line in place.  A file or pipe gets one line per minute with date and host.
 * --quiet and --progress none suppress the line.  Print other messages with progress_line_print(), so that they do not
 * interrupt the line.  Any thread may call progress_line_print() and progress_line_update().
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
    double last; /* clock_now() of the last output, at first of progress_line_init() */
    bool drawn;  /* the terminal shows a line without a newline */
    bool is_log; /* stderr is no terminal */
    struct color color;
};

void progress_line_init(struct progress_line *m, const struct cli_common *common);
/* Erase and destroy the progress line. */
void progress_line_release(struct progress_line *m);

/* Returns whether an update is due: ten times per second on a terminal, once per minute otherwise. */
bool progress_line_due(struct progress_line *m);
/* Show the text if an update is due.  A terminal line is truncated to the width.  The text has no newline. */
void progress_line_update(struct progress_line *m, const char *text);

/* Erase the line before other output to the terminal, including stdout. */
void progress_line_clear(struct progress_line *m);
/* Erase the progress line and print a line with a newline to stderr.  Ignores --quiet; the caller checks it. */
void progress_line_print(struct progress_line *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print a line in the same way, in red (fault) or yellow (warning) if colours are on. */
void progress_line_fault(struct progress_line *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_line_warn(struct progress_line *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes "2026-03-01T17:04:05+0100 n07", the local time and this host, to out.  Returns out. */
#define PROGRESS_LINE_STAMP 112
char *progress_line_stamp(char out[PROGRESS_LINE_STAMP]);

/*
 * Print "log      STAMP  chex-convert 0.1.0" as the first line of a log, that is, if stderr is not a terminal.  Prints
 * nothing on a terminal or with --quiet.
 */
void progress_line_begin_log(const struct cli_common *common, const char *program);

#endif
