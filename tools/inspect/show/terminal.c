/*
 * terminal.c - detects the terminal's graphics protocol and size; see show.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/show/show.h"

#include "base/ascii.h"
#include "base/clock.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ANSWER_MS 400
#define ENLARGE   3

/* ---- by its environment ------------------------------------------------------------------------------------------ */

static bool
env_is(const char *name, const char *value)
{
    const char *text = getenv(name);

    return text && strcmp(text, value) == 0;
}

static bool
env_has(const char *name, const char *part)
{
    const char *text = getenv(name);

    return text && strstr(text, part);
}

/* The locale's own answer would need setlocale(), which changes how numbers are written. */
static bool
is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);

        if (text && *text)
            return strstr(text, "UTF-8") || strstr(text, "utf8") || strstr(text, "utf-8") || strstr(text, "UTF8");
    }
    return false;
}

/* A multiplexer inherits the terminal's environment, but does not pass images through. */
static bool
in_multiplexer(void)
{
    return getenv("TMUX") || getenv("STY") || env_has("TERM", "screen") || env_has("TERM", "tmux");
}

static bool
env_protocol(enum show_protocol *out)
{
    if (in_multiplexer())
        return false;
    if (env_is("TERM", "xterm-kitty") || getenv("KITTY_WINDOW_ID") || env_is("TERM", "xterm-ghostty") ||
        env_is("TERM_PROGRAM", "ghostty")) {
        *out = SHOW_KITTY;
        return true;
    }
    if (env_is("TERM_PROGRAM", "iTerm.app") || env_is("TERM_PROGRAM", "WezTerm") || env_is("LC_TERMINAL", "iTerm2")) {
        *out = SHOW_ITERM;
        return true;
    }
    return false;
}

/* ---- by asking --------------------------------------------------------------------------------------------------- */

/* Read the answer to DA1, "ESC [ ? 62 ; 4 ; 6 c"; true where 4 (sixel) is among the numbers. */
static bool
read_answer(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    double until = clock_now() + ANSWER_MS / 1000.0;
    char text[128];
    size_t used = 0;
    char *at;

    for (;;) {
        int left = (int)((until - clock_now()) * 1000);
        ssize_t got;

        if (left <= 0 || used == sizeof(text) - 1 || poll(&p, 1, left) <= 0)
            return false;
        got = read(STDIN_FILENO, text + used, 1);
        if (got != 1)
            return false;
        used++;
        text[used] = '\0';
        if (text[used - 1] == 'c' && strstr(text, "\033[?"))
            break;
    }
    for (at = strstr(text, "\033[?") + 3; *at; at += strcspn(at, ";c") + 1)
        if (at[0] == '4' && (at[1] == ';' || at[1] == 'c'))
            return true;
    return false;
}

static bool
ask_sixel(void)
{
    static const char question[] = "\033[c";
    struct termios before, raw;
    sigset_t stops, old;
    bool sixel;

    /* In the background, a change of the terminal's state would stop the process (SIGTTOU). */
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
        tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    sigaddset(&stops, SIGQUIT);
    sigaddset(&stops, SIGTSTP);
    if (sigprocmask(SIG_BLOCK, &stops, &old) != 0)
        return false;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    sixel = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 &&
            write(STDOUT_FILENO, question, sizeof(question) - 1) == (ssize_t)sizeof(question) - 1 && read_answer();
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return sixel;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static enum show_protocol
find_protocol(const struct cli_common *common, bool truecolor)
{
    enum show_protocol found = SHOW_ASCII;
    struct color color = color_for(common, stdout);

    if (!isatty(STDOUT_FILENO) || env_is("TERM", "dumb"))
        return SHOW_ASCII;
    if (env_protocol(&found))
        return found;
    if (ask_sixel())
        return SHOW_SIXEL;
    if (is_utf8() && *color.off && (truecolor || env_has("TERM", "256color")))
        return SHOW_BLOCKS;
    return SHOW_ASCII;
}

static void
find_window(struct show_terminal *t)
{
    struct winsize w;

    t->columns = 80;
    t->rows = 24;
    t->cell_width = 8;
    t->cell_height = 16;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0)
        return;
    t->columns = w.ws_col;
    t->rows = w.ws_row;
    if (w.ws_xpixel >= w.ws_col && w.ws_ypixel >= w.ws_row) {
        t->cell_width = (uint32_t)w.ws_xpixel / w.ws_col;
        t->cell_height = (uint32_t)w.ws_ypixel / w.ws_row;
    }
}

void
show_terminal_find(const char *name, const struct cli_common *common, struct show_terminal *out)
{
    static const char *const names[] = {"kitty", "iterm", "sixel", "blocks", "ascii"};
    size_t i;

    out->truecolor = env_is("COLORTERM", "truecolor") || env_is("COLORTERM", "24bit");
    find_window(out);
    for (i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            out->protocol = (enum show_protocol)i;
            return;
        }
    }
    out->protocol = find_protocol(common, out->truecolor);
}

void
show_fit(const struct show_terminal *t, uint32_t width, uint32_t height, uint32_t *out_width, uint32_t *out_height)
{
    /* Reserve lines for the label and the next prompt. */
    uint32_t rows = t->rows > 3 ? t->rows - 3 : 1;
    uint64_t w = t->columns, h = rows, down = 1, more = 1; /* the window in dots; the height of a dot */

    switch (t->protocol) {
    case SHOW_BLOCKS:
        h *= 2;
        break;
    case SHOW_ASCII:
        down = 2; /* a character is about twice as high as wide */
        break;
    default:
        w *= t->cell_width;
        h *= t->cell_height;
    }
    /* Take the largest size with this aspect ratio in w x h.  Only a terminal that scales images may enlarge. */
    if (t->protocol == SHOW_KITTY || t->protocol == SHOW_ITERM)
        more = ENLARGE;
    if (w > (uint64_t)width * more)
        w = (uint64_t)width * more;
    if (h * down > (uint64_t)height * more)
        h = (uint64_t)height * more / down;
    if (w * height > h * down * width)
        w = h * down * width / height;
    else
        h = w * height / ((uint64_t)width * down);
    *out_width = w > 0 ? (uint32_t)w : 1;
    *out_height = h > 0 ? (uint32_t)h : 1;
}
