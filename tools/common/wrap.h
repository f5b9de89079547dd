/*
 * wrap.h - wraps the lines of a report for a terminal of 80 columns
 *
 *     struct wrap w = {.out = stderr};
 *
 *     wrap_put(&w, "", "split    %s", rule);
 *     wrap_put(&w, ", ", "train %s", images);
 *     wrap_end(&w);
 *
 * A piece that does not fit begins the next line, indented to the text; the heading has the first nine columns.  In a
 * command, which a user can copy, a wrapped line ends with a backslash:
 *
 *     wrap_command(&w, "next     chex-inspect check");
 *     wrap_put(&w, " ", "--full %s", shell_word(path, word));
 *     wrap_end(&w);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_WRAP_H
#define CHEX_TOOLS_WRAP_H

#include <stdbool.h>
#include <stdio.h>

struct wrap {
    FILE *out;
    unsigned column; /* column of the next text */
    bool command;    /* the lines until wrap_end() are a command */
};

/*
 * Add a separator (", ") and a piece that stays on one line.  The end of a line drops the blanks of the separator.  The
 * caller escapes texts from outside with printable_text().
 */
void wrap_put(struct wrap *w, const char *separator, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Begin a command, or the rest of a line, with words that stay on this line. */
void wrap_command(struct wrap *w, const char *words);
/* Add the words of a text as pieces, each after a blank.  `end` separates the words: a blank or a newline. */
void wrap_words(struct wrap *w, const char *text, char end);
void wrap_end(struct wrap *w);

/*
 * Print a heading ("next", or "" to continue a paragraph) and a text that may break at every blank.  Escapes hidden
 * characters.
 */
void wrap_line(FILE *out, const char *heading, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
