/*
 * step.cu - from gradients to parameters: the norm, the decision on the step, the optimizers
 *
 *   norm = rescale * sqrt(sum of g * g);  g = g * rescale * min(1, clip / norm)
 *   formulas of rescale and of the optimizers: train/math/loss.h, optimizer.c
 *
 * The device does not wait for the host.  Whether a step is applied, the loss scale and Adam's step count are in struct
 * step_state on the device.  step_end fills the tail before the sums over the ranks.  gradient_squares computes partial
 * sums of the norm, and step_decide decides whether the step is applied.  optimizer then reads that decision and
 * changes the parameters, or does nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/device.h"

namespace
{
/* Returns the sum over the threads of a CTA to all of them, always in the same order. */
DEVICE double
sum_of_threads(double mine, unsigned char *shared)
{
    double *sums = (double *)(void *)shared;

    sums[threadIdx.x] = mine;
    for (unsigned half = STEP_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    return sums[0];
}

DEVICE bool
is_finite(double x)
{
    return x - x == 0;
}
} // namespace

namespace
{
DEVICE void
fill_tail(const step_end_args &a, const end_block &block)
{
    double loss = a.state->loss;
    float large = (float)loss;

    a.tail[TAIL_LOSS] = large;
    a.tail[TAIL_LOSS_REST] = is_finite((double)large) ? (float)(loss - (double)large) : 0.0f;
    a.tail[TAIL_LABELS] = (float)a.state->labels;
    a.tail[TAIL_UNKNOWN] = (float)(a.state->labels - a.state->known);
    a.tail[TAIL_FAULTS] = (float)block.faults;
    for (unsigned i = 0; i < TAIL_REQUESTS; i++)
        a.tail[TAIL_REQUEST + i] = (float)(block.requests >> i & 1);
}
} // namespace

/* The block is in host memory, so one thread of a CTA reads it for all. */
KERNEL(step_end, step_end_args, STEP_THREADS, 1)
{
    SHARED_BYTES(shared);
    end_block &block = *(end_block *)(void *)shared;
    unsigned i = blockIdx.x * STEP_THREADS + threadIdx.x;

    if (threadIdx.x == 0)
        block = *a.block;
    __syncthreads();
    if (i < a.count) {
        float r = a.running[i];

        if (block.following > 0 && (double)a.batch * (double)a.pixels[i] >= NORM_LEAST)
            r *= (float)block.fade;
        if ((double)block.rest * (double)a.pixels[i] >= NORM_LEAST)
            r *= 1 - a.momentum;
        a.running[i] = r;
    }
    if (i == 0)
        fill_tail(a, block);
}

KERNEL(gradient_squares, gradient_squares_args, STEP_THREADS, 1)
{
    SHARED_BYTES(shared);
    double sum = 0;
    unsigned end = min(a.count, (blockIdx.x + 1) * STEP_EACH);

    for (unsigned i = blockIdx.x * STEP_EACH + threadIdx.x; i < end; i += STEP_THREADS)
        sum += (double)a.gradient[i] * (double)a.gradient[i];
    sum = sum_of_threads(sum, shared);
    if (threadIdx.x == 0)
        a.partial[blockIdx.x] = sum;
}

namespace
{
/* Reads the loss, labels, faults and requests of all ranks from the tail. */
DEVICE void
read_tail(step_state *s, const float *tail, bool alone)
{
    if (!alone) {
        s->loss = (double)tail[TAIL_LOSS] + (double)tail[TAIL_LOSS_REST];
        s->labels = (double)tail[TAIL_LABELS];
        s->known = s->labels - (double)tail[TAIL_UNKNOWN];
    }
    s->rescale = s->known > 0 ? s->labels / s->known : 1;
    s->loss *= s->rescale;
    s->faults = (unsigned)tail[TAIL_FAULTS];
    s->requests = 0;
    for (unsigned i = 0; i < TAIL_REQUESTS; i++)
        s->requests |= tail[TAIL_REQUEST + i] > 0 ? 1u << i : 0u;
}

/* For a loss or norm that is not finite. */
DEVICE void
skip_step(step_state *s, const step_decide_args &a)
{
    s->good = 0;
    if (a.scaled && s->loss_scale > a.least)
        s->loss_scale = max(s->loss_scale * 0.5f, a.least);
    else
        s->halted = 1;
}

DEVICE void
apply_step(step_state *s, const step_decide_args &a)
{
    step_block block = *a.block;
    double t;

    s->apply = 1;
    s->factor = (float)(s->rescale * (block.clip > 0 && s->norm > block.clip ? block.clip / s->norm : 1));
    t = s->applied += 1;
    s->rate = (float)(block.rate / (1 - pow(a.beta1, t)));
    s->root = (float)(1 / sqrt(1 - pow(a.beta2, t)));
    s->shrink = (float)(1 - block.rate * a.decay);
    s->good++;
    if (a.scaled && s->good >= a.grow) {
        s->good = 0;
        s->loss_scale = min(s->loss_scale * 2, a.most);
    }
}

DEVICE void
decide(step_state *s, const step_decide_args &a)
{
    s->apply = 0;
    if (s->halted)
        return;
    if (s->faults > 0)
        s->halted = 1;
    else if (!is_finite(s->loss) || !is_finite(s->norm))
        skip_step(s, a);
    else
        apply_step(s, a);
}
} // namespace

KERNEL(step_decide, step_decide_args, STEP_THREADS, 1)
{
    SHARED_BYTES(shared);
    step_state *s = a.state;
    double squares = 0;

    for (unsigned b = threadIdx.x; b < a.blocks; b += STEP_THREADS)
        squares += a.partial[b];
    squares = sum_of_threads(squares, shared);
    if (threadIdx.x > 0)
        return;
    read_tail(s, a.tail, a.alone);
    s->norm = s->rescale * sqrt(squares);
    decide(s, a);
    if (a.result)
        *a.result = *s;
}

namespace
{
struct moments {
    float m, v;
};

/* Returns the new value of parameter p, with gradient g; changes its moments. */
DEVICE float
apply_rule(const optimizer_args &a, float p, float g, moments *now)
{
    float change;

    switch (a.rule) {
    case RULE_ADAM:
        now->m = a.keep1 * now->m + a.take1 * g;
        now->v = a.keep2 * now->v + a.take2 * (g * g);
        return p * a.state->shrink - a.state->rate * now->m / (sqrtf(now->v) * a.state->root + a.epsilon);
    case RULE_SGD:
        now->m = (a.state->applied == 1 ? 0.0f : a.momentum * now->m) + g;
        return p - a.state->rate * now->m;
    case RULE_ADADELTA:
        now->m = a.keep2 * now->m + a.take2 * (g * g);
        change = sqrtf(now->v + a.epsilon) / sqrtf(now->m + a.epsilon) * g;
        now->v = a.keep2 * now->v + a.take2 * (change * change);
        return p - a.state->rate * change;
    default: /* RULE_SQUARES */
        now->m = a.keep2 * now->m + a.take2 * (g * g);
        return p - a.state->rate * g / (sqrtf(now->m) + a.epsilon);
    }
}
} // namespace

KERNEL(optimizer, optimizer_args, STEP_THREADS, 1)
{
    unsigned of_parameters = (a.count + STEP_THREADS - 1) / STEP_THREADS, i = blockIdx.x * STEP_THREADS + threadIdx.x;
    moments now;
    float p;

    if (!a.state->apply)
        return;
    if (blockIdx.x >= of_parameters) {
        i -= of_parameters * STEP_THREADS;
        if (i < a.statistics_count)
            a.statistics[i] = a.running[i];
    }
    if (blockIdx.x >= of_parameters || i >= a.count)
        return;
    p = a.parameter[i];
    now = {a.moment1[i], a.moment2 ? a.moment2[i] : 0.0f};
    p = apply_rule(a, p, a.gradient[i] * a.state->factor + a.decay * p, &now);
    a.moment1[i] = now.m;
    if (a.moment2)
        a.moment2[i] = now.v;
    a.parameter[i] = p;
    if (a.average)
        a.average[i] = a.keep_average * a.average[i] + a.take_average * p;
}

KERNEL(to_wire, wire_args, STEP_THREADS, 1)
{
    unsigned i = blockIdx.x * STEP_THREADS + threadIdx.x;

    if (i < a.count)
        a.wire[i] = bf16_of(a.gradient[i]);
}

KERNEL(from_wire, wire_args, STEP_THREADS, 1)
{
    unsigned i = blockIdx.x * STEP_THREADS + threadIdx.x;

    if (i < a.count)
        a.gradient[i] = __uint_as_float((unsigned)a.wire[i] << 16);
}
