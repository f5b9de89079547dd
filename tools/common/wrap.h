/*
 * wrap.h - lines of a report that fit a terminal of 80 columns
 *
 *     struct wrap w = {.out = stderr};
 *
 *     wrap_put(&w, "", "split    %s", rule);
 *     wrap_put(&w, ", ", "train %s", images);
 *     wrap_end(&w);
 *
 * A piece that does not fit any more stands on the next line, below the text: what a line is about takes the first nine
 * columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_WRAP_H
#define CHEX_TOOLS_WRAP_H

#include <stdio.h>

struct wrap {
    FILE *out;
    unsigned column; /* that the next text begins at */
};

/*
 * A piece of a line, which is not broken within, and what separates it from the one before (", "), whose blanks fall
 * away where the line is broken.  Texts of others go through printable_text() before.
 */
void wrap_put(struct wrap *w, const char *separator, const char *format, ...) __attribute__((format(printf, 3, 4)));
void wrap_end(struct wrap *w);

#endif
