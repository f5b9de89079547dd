/*
 * show.h - draws a gray image on a terminal: detects the graphics protocol and encodes the image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SHOW_H
#define CHEX_TOOLS_INSPECT_SHOW_H

#include "base/memory.h"
#include "common/progress_line.h"

enum show_protocol { SHOW_KITTY, SHOW_ITERM, SHOW_SIXEL, SHOW_BLOCKS, SHOW_ASCII };

struct show_terminal {
    enum show_protocol protocol;
    bool truecolor;                   /* SHOW_BLOCKS: 24-bit colours instead of 256 colours */
    uint32_t columns, rows;           /* characters */
    uint32_t cell_width, cell_height; /* pixels of a character; a guess if the terminal does not report it */
};

/*
 * Find the protocol and the size of the terminal on stdout.  name is the argument of --protocol.  For NULL or "auto"
 * the environment decides.  If the environment is not conclusive and stdin and stdout are a terminal, the function
 * queries the terminal (DA1, timeout 0.4 s).  It blocks signals during the query and always restores the terminal's
 * state.
 */
void show_terminal_find(const char *name, const struct cli_common *common, struct show_terminal *out);

/* Compute the size at which an image of width x height fits the window, in dots of the protocol. */
void show_fit(const struct show_terminal *t, uint32_t width, uint32_t height, uint32_t *out_width,
              uint32_t *out_height);

/*
 * Append the bytes that draw the image, and a newline.
 * gray  width * height bytes
 * png   for SHOW_KITTY and SHOW_ITERM; the terminal scales the image
 */
enum chex_status show_kitty(const struct buffer *png, uint32_t columns, uint32_t rows, struct buffer *out,
                            struct chex_error *err);
enum chex_status show_iterm(const struct buffer *png, uint32_t columns, uint32_t rows, struct buffer *out,
                            struct chex_error *err);
enum chex_status show_sixel(const uint8_t *gray, uint32_t width, uint32_t height, struct buffer *out,
                            struct chex_error *err);
enum chex_status show_blocks(const uint8_t *gray, uint32_t width, uint32_t height, bool truecolor, struct buffer *out,
                             struct chex_error *err);
enum chex_status show_ascii(const uint8_t *gray, uint32_t width, uint32_t height, struct buffer *out,
                            struct chex_error *err);

#endif
