/*
 * html.h - builds an HTML page in memory
 *
 * Texts of a data set go through html_text(), which leaves no byte outside printable ASCII and no character with a
 * meaning in HTML; html_format() is for texts of the program.  After the first failure (no memory) all later calls do
 * nothing: a caller checks once, at the end.
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
 * The same for words separated by blanks and newlines, so that no line of the page ends within a word of up to
 * HTML_WORD characters: a browser would break `--shard-size` at its hyphens.  The style sheet has
 * `.w{white-space:nowrap}`.
 */
#define HTML_WORD 40
void html_words(struct html *h, const char *text);
void html_command(struct html *h, const char *command); /* as <code> */
enum html_picture { HTML_PNG, HTML_JPEG };
/* An <img> with the file in it.  alt is the program's own text, width and height those on the page in CSS pixels. */
void html_picture(struct html *h, enum html_picture kind, const struct buffer *file, unsigned width, unsigned height,
                  const char *alt);
/*
 * A section that a reader unfolds by its title, without a script, and that is open on paper, where browsers print
 * <details> closed.
 * id and title are the program's own text.
 */
void html_fold_begin(struct html *h, const char *id, const char *title, bool open);
void html_fold_end(struct html *h);
/* Append what another page holds, and its failure. */
void html_append(struct html *h, const struct html *other);
void html_release(struct html *h);

#endif
