/*
 * strip.c - computes the length of a strip of a convolution
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

size_t
conv_strip_pixels(const struct step *step, unsigned strip)
{
    const struct conv_plan *c = &step->conv;
    unsigned length = c->flat ? c->columns : c->rows, all = c->flat ? c->width : c->out_height;
    unsigned from = strip * length, count = all - from < length ? all - from : length;

    return c->flat ? count : (size_t)count * c->out_width;
}
