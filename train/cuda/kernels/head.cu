/*
 * head.cu - the linear layer, the class activation maps, the loss, and the running statistics, which are updated by the
 * launch of the loss
 *
 * These are few numbers, so the kernels use float and double, and master weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/norm.h"

/* One warp per output. */
KERNEL(linear, linear_args, HEAD_THREADS, 1)
{
    unsigned n = blockIdx.x * (HEAD_THREADS / 32) + threadIdx.x / 32, image = n / a.out, out = n % a.out;
    float sum = 0;

    if (image < a.images) /* the same for all lanes of a warp */
        for (unsigned i = lane_id(); i < a.in; i += 32)
            sum += a.w[(size_t)out * a.in + i] * to_float(((const value_t *)a.x)[(size_t)image * a.x_ld + i]);
    for (unsigned by = 16; by > 0; by /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, by);
    if (image < a.images && lane_id() == 0)
        a.z[n] = a.weight[image] != 0.0f ? sum + a.bias[out] : 0.0f;
}

/* One warp per value of a map. */
KERNEL(class_maps, class_maps_args, HEAD_THREADS, 1)
{
    unsigned n = blockIdx.x * (HEAD_THREADS / 32) + threadIdx.x / 32, map = n / a.pixels, pixel = n % a.pixels;
    unsigned image = map / a.out, out = map % a.out;
    float sum = 0;

    if (image < a.images && a.weight[image] != 0.0f) { /* the same for all lanes of a warp */
        const value_t *x = (const value_t *)a.x + ((size_t)image * a.pixels + pixel) * a.x_ld;

        for (unsigned i = lane_id(); i < a.in; i += 32) {
            float y = to_float(x[i]);

            if (a.scale)
                y = norm_seen(y, a.scale[i], a.shift[i], a.relu);
            sum += a.w[(size_t)out * a.in + i] * y;
        }
    }
    for (unsigned by = 16; by > 0; by /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, by);
    if (image < a.images && lane_id() == 0)
        a.map[n] = sum;
}

namespace
{
DEVICE void
linear_data(const linear_args &a, unsigned n)
{
    unsigned image = n / a.in, in = n % a.in;
    float sum = 0;

    if (image >= a.images)
        return;
    for (unsigned out = 0; out < a.out; out++)
        sum += a.dz[(size_t)image * a.out + out] * a.w[(size_t)out * a.in + in];
    ((value_t *)a.dx)[(size_t)image * a.dx_ld + in] = to_value(sum);
}

/* One thread per weight; further threads have the biases. */
DEVICE void
linear_weights(const linear_args &a, unsigned n)
{
    unsigned out = n / a.in, in = n % a.in;
    float sum = 0, unscale = a.state->unscale;
    bool keep = a.block->number > 0;

    if (out < a.out) {
        for (unsigned image = 0; image < a.images; image++)
            sum += a.dz[(size_t)image * a.out + out] * to_float(((const value_t *)a.x)[(size_t)image * a.x_ld + in]);
        a.dw[n] = sum * unscale + (keep ? a.dw[n] : 0);
    } else if (n - a.out * a.in < a.out) {
        out = n - a.out * a.in;
        for (unsigned image = 0; image < a.images; image++)
            sum += a.dz[(size_t)image * a.out + out];
        a.dbias[out] = sum * unscale + (keep ? a.dbias[out] : 0);
    }
}
} // namespace

/* First the CTAs of the data, then those of the weights. */
KERNEL(linear_gradient, linear_args, HEAD_THREADS, 1)
{
    unsigned data = (a.images * a.in + HEAD_THREADS - 1) / HEAD_THREADS;

    if (blockIdx.x < data)
        linear_data(a, blockIdx.x * HEAD_THREADS + threadIdx.x);
    else
        linear_weights(a, (blockIdx.x - data) * HEAD_THREADS + threadIdx.x);
}

namespace
{
/* Formulas of train/math/loss.c: returns the loss of a positive label with logit t, and its slope. */
DEVICE double
loss_of(const loss_args &a, double t, double *slope)
{
    double entropy = (t < 0 ? -t : 0) + log1p(exp(-fabs(t))), q = t <= 0 ? 1 / (1 + exp(t)) : exp(-t) / (1 + exp(-t));
    double factor;

    if (!a.focal) {
        *slope = -q;
        return entropy;
    }
    factor = pow(q, (double)a.gamma);
    *slope = -factor * ((double)a.gamma * (1 - q) * entropy + q);
    return factor * entropy;
}

/*
 * Returns the smoothed and mixed loss of label n times a factor, and its derivative by the logit.  First the share of
 * the label itself, loss_own_share(), then that of the opposite label, so without smoothing and mix-up no thread of a
 * warp computes the second one.
 */
DEVICE double
loss_of_label(const loss_args &a, unsigned n, double factor, double *slope)
{
    double sign = a.label[n] & 1 ? 1 : -1, sum = 0;
    double mix = a.mix && a.label[n] & LABEL_OPPOSED ? (double)a.mix[n / a.out] : 0;
    double own = 1 - a.smoothing / 2 - mix * (1 - a.smoothing), share = own;

    *slope = 0;
#pragma unroll 1
    for (unsigned part = 0; part < (own < 1 ? 2 : 1); part++) {
        double times = factor * share, derivative, one;

        if (sign > 0 && a.positive_weight)
            times *= (double)a.positive_weight[n % a.out];
        one = loss_of(a, sign * (double)a.z[n], &derivative);
        sum += times * one;
        *slope += times * sign * derivative;
        sign = -sign;
        share = 1 - own;
    }
    return sum;
}
DEVICE void
running_statistics(const norm_running_args &a, unsigned block)
{
    const running_entry &e = entry_of_block(a.entry, a.entries, block);
    unsigned c = (block - e.first_block) * HEAD_THREADS + threadIdx.x;
    double count = (double)a.block->images * (double)e.pixels, taken = (double)a.momentum;

    if (c >= e.channels || count < NORM_LEAST) /* a single value has no variance */
        return;
    float *mean = a.running + e.running_mean + c, *variance = a.running + e.running_variance + c;

    *mean = (float)((1 - taken) * (double)*mean + taken * (double)e.mean[c]);
    *variance = (float)((1 - taken) * (double)*variance + taken * (double)e.variance[c] * count / (count - 1));
}

/* Returns the sum over the threads to thread 0, always in the same order. */
DEVICE double
sum_in_thread_0(double mine, double *sums)
{
    __syncthreads(); /* the last sum was read */
    sums[threadIdx.x] = mine;
    for (unsigned half = HEAD_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    return threadIdx.x == 0 ? sums[0] : 0;
}

DEVICE void
loss_of_batch(const loss_args &a, unsigned char *shared)
{
    double *sums = (double *)(void *)shared, sum = 0, known = 0, loss_scale = (double)a.state->loss_scale;

    for (unsigned n = threadIdx.x; n < a.images * a.out; n += HEAD_THREADS) {
        double slope;

        /* No effect, even if the logit is not finite. */
        if (a.weight[n / a.out] == 0.0f || a.label[n] == LABEL_UNKNOWN) {
            a.dz[n] = 0;
            continue;
        }
        sum += loss_of_label(a, n, (double)a.weight[n / a.out] * a.block->scale, &slope);
        known += 1;
        a.dz[n] = (float)(slope * loss_scale);
    }
    sum = sum_in_thread_0(sum, sums);
    known = sum_in_thread_0(known, sums);
    if (threadIdx.x == 0) {
        a.state->loss += sum;
        a.state->labels += (double)a.block->images * a.out;
        a.state->known += known;
        if (!(sum - sum == 0) && a.state->bad == STEP_BAD_NONE)
            a.state->bad = a.block->number;
    }
}
} // namespace

/* CTA 0 computes the loss, the others the running statistics. */
KERNEL(loss, loss_args, HEAD_THREADS, 1)
{
    SHARED_BYTES(shared);

    if (blockIdx.x == 0)
        loss_of_batch(a, shared);
    else
        running_statistics(a.running, blockIdx.x - 1);
}
