/*
 * wrap.h - lines of a report that fit a terminal of 80 columns
 *
 *     struct wrap w = {.out = stderr};
 *
 *     wrap_put(&w, "", "split    %s", rule);
 *     wrap_put(&w, ", ", "train %s", images);
 *     wrap_end(&w);
 *
 * A piece that does not fit any more begins the next line, below the text; the first nine columns are for the heading.
 * In a command, which a user can copy, such a line ends with a backslash:
 *
 *     wrap_command(&w, "next     chex-inspect");
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
    unsigned column; /* that the next text begins at */
    bool command;    /* until wrap_end() */
};

/*
 * Add a piece, which stays on one line, behind a separator (", "), whose blanks are left out where a line ends.  Texts
 * from outside go through printable_text() before.
 */
void wrap_put(struct wrap *w, const char *separator, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Begin a command, or the rest of a line: the first words, which stay on this line. */
void wrap_command(struct wrap *w, const char *words);
/* Several pieces with a blank before each: the words of a text between `end`, a blank or a newline. */
void wrap_words(struct wrap *w, const char *text, char end);
void wrap_end(struct wrap *w);

/*
 * A heading ("next", or "" for the rest of a paragraph) and a text that may break at every blank; hidden characters are
 * escaped.
 */
void wrap_line(FILE *out, const char *heading, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
