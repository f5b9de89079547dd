/*
 * step_kernels.cc - linear layer, loss, norm and optimizers of train/cuda/, beside train/math/ and formulas in double
 *
 *     step_kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#define restrict __restrict
extern "C" {
#include "math/loss.h"
#include "math/optimizer.h"
}

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef std::vector<double> doubles;

static void
launch(const value_set &set, cuda_kernel_id id, size_t count, unsigned each, void *a)
{
    MUST(cuda_launch(&set.kernels[id], cuda_blocks(count, each), 1, 1, a, stream));
}

static void
case_name(const value_set &set, const char *what)
{
    char name[100];

    snprintf(name, sizeof(name), "%s: %s", set.name, what);
    finish_case(name);
}

static void
run_linear(const value_set &set)
{
    enum { IMAGES = 5, IN = 72, OUT = 14, LD = 80 };
    floats x = random_values(set, IMAGES * LD), w = random_floats(OUT * IN), bias = random_floats(OUT);
    floats dz = random_floats(IMAGES * OUT);
    doubles z(IMAGES * OUT), dx(IMAGES * IN), dw(OUT * IN, 1), dbias(OUT, 1);
    linear_args a = {upload(set, x),
                     upload(w),
                     upload(bias),
                     room(IMAGES * OUT),
                     upload(dz),
                     upload(set, floats(IMAGES * IN)),
                     upload(floats(OUT * IN, 1)),
                     upload(floats(OUT, 1)),
                     IMAGES,
                     IN,
                     OUT,
                     LD,
                     IN,
                     1,
                     0.25f};

    for (unsigned n = 0; n < IMAGES; n++)
        for (unsigned o = 0; o < OUT; o++) {
            z[n * OUT + o] += (double)bias[o];
            dbias[o] += 0.25 * (double)dz[n * OUT + o];
            for (unsigned i = 0; i < IN; i++) {
                z[n * OUT + o] += (double)w[o * IN + i] * (double)x[n * LD + i];
                dx[n * IN + i] += (double)w[o * IN + i] * (double)dz[n * OUT + o];
                dw[o * IN + i] += 0.25 * (double)x[n * LD + i] * (double)dz[n * OUT + o];
            }
        }
    launch(set, CUDA_LINEAR, IMAGES * OUT, HEAD_THREADS / 32, &a);
    launch(set, CUDA_LINEAR_GRADIENT_DATA, IMAGES * IN, HEAD_THREADS, &a);
    launch(set, CUDA_LINEAR_GRADIENT_WEIGHTS, OUT * IN + OUT, HEAD_THREADS, &a);
    compare("z", z, download(a.z, z.size()), 1e-6);
    compare("gradient of x", dx, download(set, a.dx, dx.size()), set.tolerance);
    compare("gradient of w", dw, download(a.dw, dw.size()), 1e-6);
    compare("gradient of bias", dbias, download(a.dbias, OUT), 1e-6);
    release();
    case_name(set, "linear layer");
}

static void
run_loss(const value_set &set, bool focal)
{
    enum { IMAGES = 7, OUT = 14 };
    floats z = random_floats(IMAGES * OUT), weight(IMAGES, 1), scale(1, 1024), positive = random_floats(OUT),
           dz(IMAGES * OUT);
    std::vector<uint8_t> label(IMAGES * OUT);
    doubles positive_weight, want;
    struct loss_options options = {focal ? LOSS_FOCAL : LOSS_BCE, 2, NULL};
    double loss, got = 1;
    void *labels, *sum;

    for (unsigned i = 0; i < IMAGES * OUT; i++) {
        label[i] = i % 3 == 0;
        z[i] *= 12;
    }
    weight[2] = 0;
    z[2 * OUT] = NAN;
    for (float &p : positive)
        positive_weight.push_back((double)(p = 1 + fabsf(p)));
    options.positive_weight = positive_weight.data();
    loss = loss_sum(&options, IMAGES, OUT, z.data(), label.data(), weight.data(), 0.01, dz.data());
    for (float d : dz)
        want.push_back((double)d * 1024);
    MUST(cudaMalloc(&labels, label.size()));
    copy_in(labels, label.data(), label.size());
    MUST(cudaMalloc(&sum, sizeof(double)));
    copy_in(sum, &got, sizeof(double));
    loss_args a = {upload(z),
                   (const uint8_t *)labels,
                   upload(weight),
                   upload(positive),
                   room(IMAGES * OUT),
                   (double *)sum,
                   upload(scale),
                   IMAGES,
                   OUT,
                   focal,
                   1,
                   2,
                   0.01};
    launch(set, CUDA_LOSS, 1, 1, &a);
    compare("gradient", want, download(a.dz, want.size()), 1e-6);
    copy_out(&got, sum, sizeof(double));
    expect(fabs(got - 1 - loss) < 1e-9 * loss, "the loss");
    MUST(cudaFree(labels));
    MUST(cudaFree(sum));
    release();
    case_name(set, focal ? "focal loss" : "binary cross entropy");
}

/* A step of all parameters on the device; the state stays there. */
struct stepper {
    const value_set &set;
    gradient_squares_args squares;
    step_decide_args decide;
    optimizer_args apply;

    void step(const floats &gradient, double rate, double clip)
    {
        step_block block = {rate, clip};

        copy_in((void *)decide.block, &block, sizeof(block));
        copy_in((void *)squares.gradient, gradient.data(), gradient.size() * 4);
        launch(set, CUDA_GRADIENT_SQUARES, squares.count, STEP_EACH, &squares);
        launch(set, CUDA_STEP_DECIDE, 1, 1, &decide);
        launch(set, CUDA_OPTIMIZER, apply.count, STEP_THREADS, &apply);
    }
    step_state state() const
    {
        step_state s;

        copy_out(&s, decide.state, sizeof(s));
        return s;
    }
};

static stepper
make_stepper(const value_set &set, const optimizer_options &o, const floats &parameter, float loss_scale)
{
    unsigned count = (unsigned)parameter.size(), blocks = cuda_blocks(count, STEP_EACH);
    step_state state = {};
    bool sgd = o.kind == OPTIMIZER_SGD;
    float *gradient = room(count), *on_state = room(sizeof(state) / 4), *block = room(sizeof(step_block) / 4);
    stepper s = {set, {gradient, (double *)(void *)room(2 * blocks), count}, {}, {}};

    state.loss_scale = loss_scale;
    copy_in(on_state, &state, sizeof(state));
    s.decide = {s.squares.partial,
                (const step_block *)(void *)block,
                (step_state *)(void *)on_state,
                blocks,
                loss_scale != 1,
                2,
                256,
                4096,
                sgd ? 0 : o.beta1,
                sgd ? 0 : o.beta2,
                o.kind == OPTIMIZER_ADAMW ? o.decay : 0};
    s.apply = {s.decide.state,
               upload(parameter),
               gradient,
               upload(floats(count)),
               sgd ? NULL : upload(floats(count)),
               upload(parameter),
               count,
               sgd,
               (float)o.beta1,
               (float)o.beta2,
               (float)o.epsilon,
               (float)o.momentum,
               o.kind == OPTIMIZER_ADAMW ? 0 : (float)o.decay,
               (float)o.average};
    return s;
}

static void
run_optimizer(const value_set &set, optimizer_kind kind, const char *name)
{
    enum { COUNT = STEP_EACH + 300 };
    optimizer_options o = optimizer_default(kind);
    floats p = random_floats(COUNT), average = p, m(COUNT), v(COUNT);

    o.decay = 0.01;
    stepper s = make_stepper(set, o, p, 1);
    for (unsigned t = 1; t <= 4; t++) {
        floats g = random_floats(COUNT);
        optimizer_step step = {t, 0.01 * t, t % 2 == 0 ? 1.0 : 0};
        double norm = optimizer_norm(g.data(), COUNT);

        optimizer_apply(&o, &step, optimizer_clip(&step, norm), COUNT, p.data(), g.data(), m.data(), v.data(),
                        average.data());
        s.step(g, step.rate, step.clip);
        expect(fabs(s.state().norm - norm) < 1e-12 * norm && s.state().applied == t, "the norm");
    }
    compare("parameters", doubles(p.begin(), p.end()), download(s.apply.parameter, COUNT), 1e-6);
    compare("average", doubles(average.begin(), average.end()), download(s.apply.average, COUNT), 1e-6);
    compare("moments", doubles(m.begin(), m.end()), download(s.apply.moment1, COUNT), 1e-6);
    release();
    case_name(set, name);
}

/* Growth after two good steps, half after one that is not finite, between the floor and the ceiling. */
static void
run_loss_scale(const value_set &set)
{
    optimizer_options o = optimizer_default(OPTIMIZER_ADAM);
    floats p = random_floats(100), good(100, 1024), bad = good;
    stepper s = make_stepper(set, o, p, 1024);
    static const struct {
        bool finite;
        float scale; /* behind the step */
        double applied;
    } steps[] = {{true, 1024, 1},  {true, 2048, 2}, {false, 1024, 2}, {true, 1024, 3}, {true, 2048, 4},
                 {true, 2048, 5},  {true, 4096, 6}, {true, 4096, 7},  {true, 4096, 8}, {false, 2048, 8},
                 {false, 1024, 8}, {false, 512, 8}, {false, 256, 8},  {false, 256, 8}};
    floats before = p;

    bad[37] = INFINITY;
    for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        s.step(steps[i].finite ? good : bad, 0.01, 0);
        step_state state = s.state();
        floats now = download(s.apply.parameter, 100);

        expect(state.loss_scale == steps[i].scale, "the loss scale");
        expect(state.applied == steps[i].applied && state.apply == steps[i].finite, "steps that were applied");
        expect((now != before) == steps[i].finite, "a step that is not finite changes nothing");
        if (i == 0) /* unscaled by the scale that the loss had: 1024 */
            expect(fabs(state.norm - 10) < 1e-9, "the norm without its scale");
        before = now;
    }
    release();
    case_name(set, "loss scale");
}

int
main(void)
{
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const value_set &set : value_sets) {
        run_linear(set);
        run_loss(set, false);
        run_loss(set, true);
        run_optimizer(set, OPTIMIZER_ADAM, "Adam");
        run_optimizer(set, OPTIMIZER_ADAMW, "AdamW");
        run_optimizer(set, OPTIMIZER_SGD, "SGD");
        run_loss_scale(set);
    }
    return summary();
}
