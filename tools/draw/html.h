/*
 * html.h - builds an HTML page in memory
 *
 * html_text() is for texts of a data set: its output is printable ASCII, and no character has a meaning in HTML.
 * html_format() is for texts of the program.  After the first failure (no memory) later calls do nothing, so a caller
 * checks once, at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_HTML_H
#define CHEX_TOOLS_HTML_H

#include "base/memory.h"

struct html {
    struct buffer b; /* the page so far, not terminated */
    bool failed;
};

void html_raw(struct html *h, const char *markup);
void html_format(struct html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_text(struct html *h, const char *text);
void html_bytes(struct html *h, struct chex_bytes text);
/*
 * As html_text(), for words separated by blanks and newlines.  No line of the page breaks inside a word of up to
 * HTML_WORD characters: a browser would break `--shard-size` at its hyphens.  The style sheet must have
 * `.w{white-space:nowrap}`.
 */
#define HTML_WORD 40
void html_words(struct html *h, const char *text);
void html_command(struct html *h, const char *command); /* as <code> */
enum html_picture { HTML_PNG, HTML_JPEG };
/* Writes an <img> with the file embedded.  alt is text of the program; width and height are CSS pixels on the page. */
void html_picture(struct html *h, enum html_picture kind, const struct buffer *file, unsigned width, unsigned height,
                  const char *alt);
/*
 * Writes a section that the reader unfolds by its title, without a script.  It is open in print; browsers print
 * <details> closed.  id is a text of the program.
 */
void html_fold_begin(struct html *h, const char *id, const char *title, bool open);
void html_fold_end(struct html *h);
/* Appends the content of another page, and its failure. */
void html_append(struct html *h, const struct html *other);
void html_release(struct html *h);

#endif
