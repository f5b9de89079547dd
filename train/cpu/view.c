/*
 * view.c - loads the inputs of a node and accumulates their gradients; see cpu_plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <string.h>

static struct norm_block
norm_of(const struct view *in, unsigned block)
{
    const struct step *norm = in->norm;
    size_t at = (size_t)(in->norm_block + block) * BLOCK;

    return (struct norm_block){norm->mean + at, norm->scale + at, norm->beta + at, norm->node->relu};
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* Find the columns of a box that are inside the image: *from .. *end - 1, as columns of the box. */
static void
inside_columns(const struct box *box, unsigned *from, unsigned *end)
{
    long last = (long)box->width - box->left;

    *from = box->left < 0 ? (unsigned)-box->left : 0;
    *end = last < (long)box->columns ? (unsigned)(last > 0 ? last : 0) : box->columns;
    if (*from > *end)
        *from = *end;
}

void
view_fetch(const struct plan *plan, const struct products *as, const struct view *in, size_t image, size_t slot,
           unsigned first, unsigned blocks, const struct box *box, void *start)
{
    size_t pixel = BLOCK * as->size, line = box->columns * pixel;
    char *to = start;
    unsigned from, end, b, row;

    if (in->patches) {
        patches_fetch(plan, as, in->patches, image, first, blocks, (size_t)box->left, box->columns, to);
        return;
    }
    inside_columns(box, &from, &end);
    for (b = first; b < first + blocks; b++) {
        const float *block = value_of(in->from, slot, in->block + b);

        for (row = 0; row < box->rows; row++, to += line) {
            long y = box->top + (long)row;
            const float *x;

            if (y < 0 || y >= (long)box->height || from == end) {
                memset(to, 0, line);
                continue;
            }
            x = block + ((size_t)y * box->width + (size_t)(box->left + (long)from)) * BLOCK;
            memset(to, 0, from * pixel);
            if (in->norm) {
                struct norm_block norm = norm_of(in, b);

                as->normalise(&norm, x, end - from, to + from * pixel);
            } else {
                as->copy(x, end - from, to + from * pixel);
            }
            memset(to + end * pixel, 0, (box->columns - end) * pixel);
        }
    }
}

/* ---- gradients ------------------------------------------------------------------------------------------------- */

void
view_claim(struct view *in)
{
    unsigned b;

    for (b = 0; b < in->blocks; b++) {
        in->first[b] = !in->from->accumulated[in->block + b];
        in->from->accumulated[in->block + b] = true;
    }
}

void
view_give(const struct plan *plan, const struct view *in, size_t image, unsigned block, size_t from, size_t count,
          const float *g)
{
    float *to = gradient_of(in->from, image, in->block + block) + from * BLOCK;
    struct norm_block norm;
    double *sums;
    size_t at, channels;

    if (!in->norm) {
        plan->kernels->accumulate(g, count * BLOCK, in->first[block], to);
        return;
    }
    norm = norm_of(in, block);
    at = (size_t)(in->norm_block + block) * BLOCK;
    channels = (size_t)in->norm->in.blocks * BLOCK;
    sums = in->norm->sums + image * 2 * channels + at;
    plan->kernels->norm_gradient(&norm, in->norm->gamma + at, g,
                                 value_of(in->from, image, in->block + block) + from * BLOCK, count, in->first[block],
                                 to, sums, sums + channels);
}

void
gradient_close(const struct plan *plan, const struct step *step)
{
    const struct tensor *s = step->out;
    double count = (double)plan->images * (double)s->pixels;
    size_t c;

    if (!s->normed)
        return;
    for (c = (size_t)step->out_block * BLOCK; c < (size_t)(step->out_block + step->out_blocks) * BLOCK; c++) {
        float *k = s->finish + c / BLOCK * 3 * BLOCK + c % BLOCK;
        double inverse = count < GRAPH_NORM_LEAST ? 0 : (double)s->inverse[c]; /* a single value: no gradient */

        k[0] = (float)inverse;
        k[BLOCK] = (float)(-inverse * inverse * s->c[c] / count);
        k[2 * BLOCK] = (float)(-inverse * s->b[c] / count);
    }
}

/* Finalize `pixels` contiguous pixels of one block. */
static void
fetch_run(const struct products *as, const struct tensor *s, size_t image, unsigned block, size_t from, size_t pixels,
          void *to)
{
    const float *a = gradient_of(s, image, block) + from * BLOCK;

    if (s->normed)
        as->finish(s->finish + (size_t)block * 3 * BLOCK, s->mean + (size_t)block * BLOCK, a,
                   value_of(s, image, block) + from * BLOCK, pixels, to);
    else
        as->copy(a, pixels, to);
}

void
gradient_fetch(const struct products *as, const struct step *step, size_t image, unsigned first, unsigned blocks,
               const struct box *box, void *start)
{
    size_t pixel = BLOCK * as->size, line = box->columns * pixel;
    char *to = start;
    unsigned from, end, b, row;

    inside_columns(box, &from, &end);
    for (b = first; b < first + blocks; b++) {
        for (row = 0; row < box->rows; row++, to += line) {
            long y = box->top + (long)row;

            if (y < 0 || y >= (long)box->height || from == end) {
                memset(to, 0, line);
                continue;
            }
            memset(to, 0, from * pixel);
            fetch_run(as, step->out, image, step->out_block + b,
                      (size_t)y * box->width + (size_t)(box->left + (long)from), end - from, to + from * pixel);
            memset(to + end * pixel, 0, (box->columns - end) * pixel);
        }
    }
}
