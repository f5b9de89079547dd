/*
 * step_kernels.cc - norm, what becomes of a step, and optimizers of train/cuda/, beside train/math/
 *
 *     step_kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#define restrict __restrict
extern "C" {
#include "math/optimizer.h"
}

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef std::vector<double> doubles;

static void
case_name(const value_set &set, const char *what)
{
    char name[100];

    snprintf(name, sizeof(name), "%s: %s", set.name, what);
    finish_case(name);
}

/* A step of all parameters on the device; the state stays there. */
struct stepper {
    const value_set &set;
    gradient_squares_args squares;
    step_decide_args decide;
    optimizer_args apply;

    void step(const floats &gradient, double rate, double clip)
    {
        overwrite(decide.block, {rate, clip});
        MUST(cudaMemcpy((void *)squares.gradient, gradient.data(), gradient.size() * 4, cudaMemcpyHostToDevice));
        launch(set, CUDA_GRADIENT_SQUARES, cuda_blocks(squares.count, STEP_EACH), 1, squares);
        launch(set, CUDA_STEP_DECIDE, 1, 1, decide);
        launch(set, CUDA_OPTIMIZER, cuda_blocks(apply.count, STEP_THREADS), 1, apply);
    }
    step_state state() const
    {
        return download_one(decide.state);
    }
};

static stepper
make_stepper(const value_set &set, const optimizer_options &o, const floats &parameter, float loss_scale)
{
    unsigned count = (unsigned)parameter.size(), blocks = cuda_blocks(count, STEP_EACH);
    step_state state = {};
    bool sgd = o.kind == OPTIMIZER_SGD;
    float *gradient = room(count);
    stepper s = {set, {gradient, (double *)(void *)room(2 * blocks), count}, {}, {}};

    state.loss_scale = loss_scale;
    s.decide = {s.squares.partial,
                upload(std::vector<step_block>(1)),
                upload(floats(TAIL_FLOATS)),
                upload(std::vector<step_state>{state}),
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
    floats p = random_floats(100), good(100, 1), bad = good;
    stepper s = make_stepper(set, o, p, 1024);
    static const struct {
        bool finite;
        float scale; /* behind the step */
        double applied;
    } steps[] = {{true, 1024, 1},  {true, 2048, 2}, {false, 1024, 2}, {true, 1024, 3}, {true, 2048, 4},
                 {true, 2048, 5},  {true, 4096, 6}, {true, 4096, 7},  {true, 4096, 8}, {false, 2048, 8},
                 {false, 1024, 8}, {false, 512, 8}, {false, 256, 8}};
    floats before = p;

    bad[37] = INFINITY;
    for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        s.step(steps[i].finite ? good : bad, 0.01, 0);
        step_state state = s.state();
        floats now = download(s.apply.parameter, 100);

        expect(state.loss_scale == steps[i].scale, "the loss scale");
        expect(state.applied == steps[i].applied && state.apply == steps[i].finite, "steps that were applied");
        expect((now != before) == steps[i].finite, "a step that is not finite changes nothing");
        if (i == 0)
            expect(fabs(state.norm - 10) < 1e-9, "the norm");
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
        run_optimizer(set, OPTIMIZER_ADAM, "Adam");
        run_optimizer(set, OPTIMIZER_ADAMW, "AdamW");
        run_optimizer(set, OPTIMIZER_SGD, "SGD");
        run_loss_scale(set);
    }
    return summary();
}
