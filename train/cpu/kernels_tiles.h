/*
 * kernels_tiles.h - cuts a row of outputs of a convolution into register tiles; for kernels.c and kernels_bf16.c
 *
 * Before the include: OPERAND is the type of an operand, and conv_tile() computes a tile of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CPU_KERNELS_TILES_H
#define CHEX_TRAIN_CPU_KERNELS_TILES_H

INLINE void
conv_tiles(const struct conv_row *row, const size_t outs, const size_t step)
{
    const OPERAND *x = row->x;
    float *y = row->y;
    size_t left = row->pixels;

#define TILES(count)                                                                      \
    for (; left >= (count); left -= (count), x += (count)*step, y += (count)*row->y_step) \
    conv_tile(row, x, y, count, outs, step)
    TILES(TILE);
#if TILE > 7
    TILES(7);
#endif
#if TILE > 4
    TILES(4);
#endif
#if TILE > 2
    TILES(2);
#endif
    TILES(1);
#undef TILES
}

static void
conv(const struct conv_row *row)
{
    if (row->outs > OUTS) {
        struct conv_row half = *row;

        half.outs = 1;
        conv(&half);
        half.w = (const OPERAND *)half.w + half.w_out;
        half.y += half.y_out;
        conv(&half);
    } else if (row->outs == OUTS) {
        if (row->step == BLOCK)
            conv_tiles(row, OUTS, BLOCK);
        else
            conv_tiles(row, OUTS, row->step);
    } else if (row->step == BLOCK) {
        conv_tiles(row, 1, BLOCK);
    } else {
        conv_tiles(row, 1, row->step);
    }
}

#endif
