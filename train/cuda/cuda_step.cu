/*
 * cuda_step.cu - from gradients to parameters: norm, what becomes of the step, optimizers
 *
 * Nothing here waits for the host: whether a step is applied, the loss scale and the number of Adam's steps live in a
 * struct step_state on the device.  Formulas of train/math/optimizer.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_device.h"

KERNEL(gradient_squares, gradient_squares_args, STEP_THREADS, 1)
{
    SHARED_BYTES(shared);
    double *sums = (double *)(void *)shared, sum = 0;
    unsigned end = min(a.count, (blockIdx.x + 1) * STEP_EACH);

    for (unsigned i = blockIdx.x * STEP_EACH + threadIdx.x; i < end; i += STEP_THREADS)
        sum += (double)a.gradient[i] * (double)a.gradient[i];
    sums[threadIdx.x] = sum;
    for (unsigned half = STEP_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        a.partial[blockIdx.x] = sums[0];
}

KERNEL(step_decide, step_decide_args, STEP_THREADS, 1)
{
    struct step_state *s = a.state;
    double squares = 0, scale, t;

    if (blockIdx.x > 0 || threadIdx.x > 0)
        return;
    for (unsigned b = 0; b < a.blocks; b++)
        squares += a.partial[b];
    scale = a.scaled ? (double)s->loss_scale : 1;
    s->norm = sqrt(squares) / scale;
    s->apply = squares - squares == 0; /* neither infinite nor NaN */
    if (!s->apply) {
        s->good = 0;
        if (a.scaled)
            s->loss_scale = max(s->loss_scale * 0.5f, a.least);
        return;
    }
    s->factor = (float)((a.block->clip > 0 && s->norm > a.block->clip ? a.block->clip / s->norm : 1) / scale);
    t = s->applied += 1;
    s->rate = (float)(a.block->rate / (1 - pow(a.beta1, t)));
    s->root = (float)(1 / sqrt(1 - pow(a.beta2, t)));
    s->shrink = (float)(1 - a.block->rate * a.decay);
    if (a.scaled && ++s->good >= a.grow) {
        s->good = 0;
        s->loss_scale = min(s->loss_scale * 2, a.most);
    }
}

KERNEL(optimizer, optimizer_args, STEP_THREADS, 1)
{
    unsigned i = blockIdx.x * STEP_THREADS + threadIdx.x;
    float p, g, m;

    if (i >= a.count || !a.state->apply)
        return;
    p = a.parameter[i];
    g = a.gradient[i] * a.state->factor + a.decay * p;
    if (a.sgd) {
        m = (a.state->applied == 1 ? 0.0f : a.momentum * a.moment1[i]) + g;
        p -= a.state->rate * m;
    } else {
        float v = a.beta2 * a.moment2[i] + (1 - a.beta2) * (g * g);

        m = a.beta1 * a.moment1[i] + (1 - a.beta1) * g;
        a.moment2[i] = v;
        p = p * a.state->shrink - a.state->rate * m / (sqrtf(v) * a.state->root + a.epsilon);
    }
    a.moment1[i] = m;
    a.parameter[i] = p;
    if (a.average)
        a.average[i] = a.keep * a.average[i] + (1 - a.keep) * p;
}
