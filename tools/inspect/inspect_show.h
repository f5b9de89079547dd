/*
 * inspect_show.h - a gray image on a terminal: which protocol, and its bytes
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
    bool truecolor;                   /* of SHOW_BLOCKS: 24-bit colours, else the 256 ones */
    uint32_t columns, rows;           /* characters */
    uint32_t cell_width, cell_height; /* pixels of one, a guess where the terminal does not say */
};

/*
 * The protocol and the size of the terminal on stdout.  name: of --protocol; with NULL or "auto" the environment
 * decides, and where it says nothing, and stdin and stdout are a terminal, the terminal is asked (DA1, with 0.4 s for
 * the answer).  The state of the terminal is always restored: signals wait meanwhile.
 */
void show_terminal_find(const char *name, const struct cli_common *common, struct show_terminal *out);

/* How large an image of width x height is to be, in the protocol's own dots, so that it fits the window. */
void show_fit(const struct show_terminal *t, uint32_t width, uint32_t height, uint32_t *out_width,
              uint32_t *out_height);

/*
 * Append the bytes that draw it, and a line's end.
 * gray  width * height bytes; SHOW_KITTY and SHOW_ITERM send png, which the terminal scales
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
