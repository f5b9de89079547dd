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
 * Add a piece, which stays on one line, behind a separator (", "), whose blanks are left out where a line ends.  Texts
 * from outside go through printable_text() before.
 */
void wrap_put(struct wrap *w, const char *separator, const char *format, ...) __attribute__((format(printf, 3, 4)));
void wrap_end(struct wrap *w);

#endif
