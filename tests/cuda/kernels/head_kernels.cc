/*
 * head_kernels.cc - compares linear layer and loss of train/cuda/ with train/math/loss.c and formulas in double
 *
 *     head_kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#define restrict __restrict
extern "C" {
#include "math/loss.h"
}

#include <math.h>
#include <stdio.h>

static_assert(LABEL_UNKNOWN == CHEX_LABEL_UNKNOWN, "kernels do not include chex.h");

static void
run_linear(const value_set &set)
{
    enum { IMAGES = 5, IN = 72, OUT = 14, LD = 80 };
    floats x = random_values(set, IMAGES * LD), w = random_floats(OUT * IN), bias = random_floats(OUT);
    floats dz = random_floats(IMAGES * OUT), weight(IMAGES, 1);
    doubles z(IMAGES * OUT), dx(IMAGES * IN), dw(OUT * IN, 1), dbias(OUT, 1);
    step_state state = {};

    weight[2] = 0;
    for (unsigned o = 0; o < OUT; o++)
        dz[2 * OUT + o] = 0;
    for (unsigned i = 0; i < IN; i++)
        x[2 * LD + i] = 0;
    state.unscale = 0.25f;
    linear_args a = {upload(set, x),
                     upload(w),
                     upload(bias),
                     upload(weight),
                     room(IMAGES * OUT),
                     upload(dz),
                     upload(set, floats(IMAGES * IN)),
                     upload(floats(OUT * IN, 1)),
                     upload(floats(OUT, 1)),
                     upload(std::vector<batch_block>{{1, IMAGES - 1, 1}}),
                     upload(std::vector<step_state>{state}),
                     IMAGES,
                     IN,
                     OUT,
                     LD,
                     IN};

    for (unsigned n = 0; n < IMAGES; n++)
        for (unsigned o = 0; o < OUT; o++) {
            z[n * OUT + o] += n == 2 ? 0 : (double)bias[o];
            dbias[o] += 0.25 * (double)dz[n * OUT + o];
            for (unsigned i = 0; i < IN; i++) {
                z[n * OUT + o] += (double)w[o * IN + i] * (double)x[n * LD + i];
                dx[n * IN + i] += (double)w[o * IN + i] * (double)dz[n * OUT + o];
                dw[o * IN + i] += 0.25 * (double)x[n * LD + i] * (double)dz[n * OUT + o];
            }
        }
    launch(set, CUDA_LINEAR, cuda_blocks(IMAGES * OUT, HEAD_THREADS / 32), 1, a);
    launch(set, CUDA_LINEAR_GRADIENT,
           cuda_blocks(IMAGES * IN, HEAD_THREADS) + cuda_blocks(OUT * IN + OUT, HEAD_THREADS), 1, a);
    compare("z", z, download(a.z, z.size()), 1e-6);
    compare("gradient of x", dx, download(set, a.dx, dx.size()), set.tolerance);
    compare("gradient of w", dw, download(a.dw, dw.size()), 1e-6);
    compare("gradient of bias", dbias, download(a.dbias, OUT), 1e-6);
    release();
    finish_case(set, "linear layer");
}

static void
run_class_maps(const value_set &set, bool normed)
{
    enum { IMAGES = 3, PIXELS = 7, IN = 72, OUT = 5, LD = 80 };
    floats x = random_values(set, IMAGES * PIXELS * LD), w = random_floats(OUT * IN), scale = random_floats(IN),
           shift = random_floats(IN), weight(IMAGES, 1);
    doubles map(IMAGES * OUT * PIXELS);

    weight[1] = 0;
    x[PIXELS * LD] = NAN; /* of the image of weight 0 */
    class_maps_args a = {upload(set, x),
                         normed ? upload(scale) : NULL,
                         normed ? upload(shift) : NULL,
                         upload(w),
                         upload(weight),
                         room(IMAGES * OUT * PIXELS),
                         IMAGES,
                         PIXELS,
                         IN,
                         OUT,
                         LD,
                         normed};

    for (unsigned n = 0; n < IMAGES * OUT * PIXELS; n++) {
        unsigned p = n % PIXELS, o = n / PIXELS % OUT, image = n / PIXELS / OUT;

        for (unsigned i = 0; image != 1 && i < IN; i++) {
            double y = (double)x[(image * PIXELS + p) * LD + i];

            if (normed)
                y = fmax(0, y * (double)scale[i] + (double)shift[i]);
            map[n] += (double)w[o * IN + i] * y;
        }
    }
    launch(set, CUDA_CLASS_MAPS, cuda_blocks(IMAGES * OUT * PIXELS, HEAD_THREADS / 32), 1, a);
    compare("maps", map, download(a.map, map.size()), 1e-6);
    release();
    finish_case(set, normed ? "class activation maps with a BN" : "class activation maps");
}

static void
run_loss(const value_set &set, bool focal, double smoothing, bool mixed)
{
    enum { IMAGES = 7, OUT = 14 };
    floats z = random_floats(IMAGES * OUT), weight(IMAGES, 1), mix(IMAGES), positive = random_floats(OUT),
           dz(IMAGES * OUT);
    std::vector<uint8_t> label(IMAGES * OUT);
    doubles positive_weight, want;
    struct loss_options options = {focal ? LOSS_FOCAL : LOSS_BCE, 2, NULL, smoothing};
    step_state state = {};
    char title[48];
    double loss;

    for (unsigned i = 0; i < IMAGES * OUT; i++) {
        label[i] = i % 5 == 4 ? CHEX_LABEL_UNKNOWN : i % 3 == 0;
        z[i] *= 12;
        if (mixed && i % 2 && label[i] != CHEX_LABEL_UNKNOWN)
            label[i] |= LABEL_OPPOSED;
        mix[i / OUT] = (float)(i / OUT) / (IMAGES - 1); /* 0 to 1 */
    }
    weight[2] = 0;
    z[2 * OUT] = z[4] = NAN; /* an image of weight 0, an unknown label */
    for (float &p : positive)
        positive_weight.push_back((double)(p = 1 + fabsf(p)));
    options.positive_weight = positive_weight.data();
    const label_count labels = loss_count(IMAGES, OUT, label.data(), weight.data());
    loss = loss_sum(&options, IMAGES, OUT, z.data(), label.data(), weight.data(), mixed ? mix.data() : NULL, 0.01,
                    dz.data());
    for (float d : dz)
        want.push_back((double)d * 1024);
    state.loss_scale = 1024;
    state.loss = 1;
    state.bad = STEP_BAD_NONE;
    state.labels = 100;
    state.known = 50;
    loss_args a = {upload(z),
                   upload(label),
                   upload(weight),
                   mixed ? upload(mix) : NULL,
                   upload(positive),
                   upload(std::vector<batch_block>{{0.01, IMAGES - 1, 3}}),
                   upload(std::vector<step_state>{state}),
                   room(IMAGES * OUT),
                   IMAGES,
                   OUT,
                   focal,
                   2,
                   smoothing,
                   {}};
    launch(set, CUDA_LOSS, 1, 1, a);
    compare("gradient", want, download(a.dz, want.size()), 1e-6);
    state = download_one(a.state);
    expect(fabs(state.loss - 1 - loss) < 1e-9 * loss && state.bad == STEP_BAD_NONE, "the loss");
    expect(state.labels == 100 + (double)labels.all && state.known == 50 + (double)labels.known, "numbers of labels");
    z[5] = NAN;
    copy_in(a.z, z.data(), z.size() * sizeof(float));
    launch(set, CUDA_LOSS, 1, 1, a);
    launch(set, CUDA_LOSS, 1, 1, a);
    state = download_one(a.state);
    expect(!isfinite(state.loss) && state.bad == 3, "a loss that is not finite, in micro-batch 3");
    release();
    snprintf(title, sizeof(title), "%s of %s%slabels", focal ? "focal loss" : "binary cross entropy",
             smoothing > 0 ? "smoothed " : "", mixed ? "mixed " : "");
    finish_case(set, title);
}

static void
run_all(const value_set &set)
{
    run_linear(set);
    run_class_maps(set, false);
    run_class_maps(set, true);

    for (double smoothing : {0.0, 0.2}) {
        for (bool mixed : {false, true}) {
            run_loss(set, false, smoothing, mixed);
            run_loss(set, true, smoothing, mixed);
        }
    }
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
