/*
 * meter.h - the progress line of all tools
 *
 * The caller builds the text ("convert  62 %  69,512/112,120  5,184 img/s  0:08 left"), the meter decides when and how
 * it is shown on stderr: redrawn in place on a terminal, one plain line a minute off it, with date and host, not at all
 * under --quiet or --progress none.  Other messages go through meter_print(), so that they never land inside the line;
 * it and meter_tick() may be called by any thread.
 *
 *     meter_init(&meter, common);
 *     if (meter_due(&meter))
 *         meter_tick(&meter, text);
 *     meter_print(&meter, "%s: warning: ...", name);
 *     meter_release(&meter);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_METER_H
#define CHEX_TOOLS_METER_H

#include "common/cli.h"
#include "common/color.h"

#include <pthread.h>

enum meter_kind { METER_NONE, METER_BAR, METER_LINE };

struct meter {
    enum meter_kind kind;
    pthread_mutex_t lock;
    double last; /* progress_clock() when something was shown, at first that of meter_init() */
    bool drawn;  /* a line without its end stands on the terminal */
    bool is_log; /* stderr is no terminal */
    struct color color;
};

void meter_init(struct meter *m, const struct cli_common *common);
/* Takes away the line; the meter may not be used any more. */
void meter_release(struct meter *m);

/* Whether meter_tick() would show anything now: about ten times a second on a terminal, once a minute off it. */
bool meter_due(struct meter *m);
/* Show the text, if it is time; on a terminal it is cut to the width.  No newline in it. */
void meter_tick(struct meter *m, const char *text);

/* Take the line away, before something else is written to the terminal (stdout too). */
void meter_clear(struct meter *m);
/* A line on stderr, with its newline, in place of the progress line.  Not silenced by --quiet: the caller decides. */
void meter_print(struct meter *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same in red, and in yellow, where there are colours. */
void meter_fault(struct meter *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
void meter_warn(struct meter *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "2026-03-01T17:04:05+0100 n07": now, as the clock of this place shows it, and this host.  Returns out. */
#define METER_STAMP 112
char *meter_stamp(char out[METER_STAMP]);

/*
 * The first line of a log, which stderr is off a terminal: "log      STAMP  chex-convert 0.1.0"; nothing on a terminal
 * or under --quiet.
 */
void meter_begin_log(const struct cli_common *common, const char *program);

#endif
