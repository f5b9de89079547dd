/*
 * conv_stem.cu - wgrad of the stem, whose pixels overlap (struct input_args)
 *
 *           rows M             columns N                    k
 *   wgrad   output channels    taps x input channels        output pixels
 *
 * gemm.h has wgrad of other kernels with input channels as rows, and with columns of all taps; each tile reads y again
 * for each of its taps.  Here y is much larger than x, so a tile has all taps: it reads y once, and x once for each
 * tap.  A line of weights, [taps][in], is contiguous in a partial sum, so the epilogue is that of a 1x1 convolution
 * with taps x in input channels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

namespace
{
/* The tap and input channel of the pieces of x that this thread copies: all its pieces have the same columns. */
template <typename STAGE> struct stem_loader {
    unsigned tap, channel;

    static_assert(STAGE::TILE::THREADS % STAGE::B::PIECES == 0, "the same columns for all pieces of a thread");
};

template <typename STAGE>
DEVICE void
begin_loader(stem_loader<STAGE> &l, const wgrad_args &a, const gemm_work &w)
{
    unsigned column = w.column0 + threadIdx.x % (unsigned)STAGE::B::PIECES * 8;

    l.tap = column / a.shape.in;
    l.channel = column - l.tap * a.shape.in;
}

template <typename STAGE, typename TO>
DEVICE void
load_step(stem_loader<STAGE> &l, const wgrad_args &a, const gemm_work &w, unsigned step, TO &to)
{
    enum { THREADS = STAGE::TILE::THREADS };
    const conv_shape &s = a.shape;

    load_operand<typename STAGE::A, THREADS>(to.a, a.dy,
                                             [&](unsigned, unsigned line, unsigned piece, const value_t **from) {
                                                 unsigned channel = w.row0 + piece * 8, pixel = step * GEMM_DEEP + line;

                                                 *from = (const value_t *)a.dy + (size_t)pixel * s.y_ld + channel;
                                                 return pixel < w.counted && channel < s.out;
                                             });
    load_operand<typename STAGE::B, THREADS>(to.b, a.dy, [&](unsigned, unsigned line, unsigned, const value_t **from) {
        unsigned pixel = step * GEMM_DEEP + line;
        gemm_pixel p = gemm_split<GEMM_FPROP>(s, pixel);
        unsigned y = p.y + l.tap - s.pad_h; /* above the image it wraps to a large number */

        *from = (const value_t *)a.x + (size_t)((p.image * s.height + y) * s.width + p.x) * s.x_ld + l.channel;
        return pixel < w.counted && y < s.height && l.tap < s.kernel_h;
    });
}

template <typename STAGE>
DEVICE void
skip_step(stem_loader<STAGE> &)
{
}

struct no_prologue {
};
template <typename LOADER>
DEVICE void
apply_prologue(no_prologue &, const LOADER &, const wgrad_args &, unsigned, value_t *)
{
}

/* The same product as of a 1x1 convolution. */
DEVICE wgrad_args
as_pointwise(const wgrad_args &a)
{
    wgrad_args flat = a;

    flat.shape.in = a.shape.kernel_h * a.shape.in;
    flat.shape.kernel_h = 1;
    flat.shape.height = a.shape.out_height;
    flat.shape.width = a.shape.out_width;
    return flat;
}

template <typename TILE>
DEVICE void
stem_tile(const wgrad_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    typedef gemm_stage<TILE, true, true> stage;
    const wgrad_args flat = as_pointwise(a);
    const gemm_work w = wgrad_work<TILE, true>(flat, at);
    const gemm_warp warp = gemm_warp_of<TILE>(w);
    no_prologue prologue;
    stem_loader<stage> loader;
    gemm_sums<TILE> sum;

    clear_sums(sum);
    begin_loader(loader, a, w);
    fill_stages<stage>(loader, a, w, shared);
    run_mainloop<stage>(loader, prologue, a, w, warp, shared, sum);
    if (is_unsplit(a, w))
        store_unsplit<TILE, true>(flat, w, warp, sum);
    else
        store_partial<TILE, true>(flat, w, warp, sum, (partial_t *)(void *)shared);
}
} // namespace

#define STEM_WGRAD(shape, ...)                                                    \
    GEMM_KERNEL(conv_wgrad_##shape##_stem, wgrad_args, GEMM_THREADS(__VA_ARGS__), \
                (stem_tile<gemm_tile<__VA_ARGS__>>(a, shared, {blockIdx.x, blockIdx.y, blockIdx.z})))
GEMM_STEM_TILES(STEM_WGRAD)
