/*
 * step_kernels.cc - compares norm, decision and optimizers of a step (train/cuda/) with train/math/; also checks what
 * cuda_prepare() sets for all kernels
 *
 *     step_kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#define restrict __restrict
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* in C, a struct and a function may have the same name */
extern "C" {
#include "backend/backend.h"
#include "math/optimizer.h"
}
#pragma GCC diagnostic pop

#include <math.h>
#include <stdio.h>
#include <string.h>

static_assert(NORM_LEAST == GRAPH_NORM_LEAST && TAIL_REQUESTS == STEP_REQUESTS && STEP_BAD_NONE == STEP_NONE,
              "kernels do not include the headers that these numbers are from");

/* Makes steps of all parameters on the device, where the state stays. */
struct stepper {
    const value_set &set;
    gradient_squares_args squares;
    step_decide_args decide;
    optimizer_args apply;

    void step(const floats &gradient, double rate, double clip)
    {
        overwrite(decide.block, {rate, clip});
        copy_in(squares.gradient, gradient.data(), gradient.size() * sizeof(float));
        launch(set, CUDA_GRADIENT_SQUARES, cuda_blocks(squares.count, STEP_EACH), 1, squares);
        launch(set, CUDA_STEP_DECIDE, 1, 1, decide);
        launch(set, CUDA_OPTIMIZER,
               cuda_blocks(apply.count, STEP_THREADS) + cuda_blocks(apply.statistics_count, STEP_THREADS), 1, apply);
        step_state now = state(), result = download_one(decide.result);
        expect(memcmp(&now, &result, sizeof(now)) == 0, "the result is not the state");
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
    static const unsigned rules[OPTIMIZER_COUNT] = {RULE_ADAM,    RULE_ADAM,     RULE_SGD,
                                                    RULE_SQUARES, RULE_ADADELTA, RULE_SQUARES};
    bool sums = o.kind == OPTIMIZER_ADAGRAD;
    bool adam = optimizer_is_adam(o.kind);
    float *gradient = room(count);
    stepper s = {set, {gradient, (double *)(void *)room(2 * blocks), count}, {}, {}};

    state.loss_scale = loss_scale;
    s.decide = {s.squares.partial,
                upload(std::vector<step_block>(1)),
                upload(floats(TAIL_FLOATS)),
                upload(std::vector<step_state>{state}),
                upload(std::vector<step_state>(1)),
                blocks,
                loss_scale != 1,
                2,
                0,
                256,
                4096,
                adam ? o.beta1 : 0,
                adam ? o.beta2 : 0,
                o.kind == OPTIMIZER_ADAMW ? o.decay : 0};
    s.apply = {s.decide.state,
               upload(parameter),
               gradient,
               upload(floats(count)),
               optimizer_has_moment2(o.kind) ? upload(floats(count)) : NULL,
               upload(parameter),
               count,
               rules[o.kind],
               (float)o.beta1,
               (float)(1 - o.beta1),
               sums ? 1 : (float)o.beta2,
               sums ? 1 : (float)(1 - o.beta2),
               (float)o.average,
               (float)(1 - o.average),
               (float)o.epsilon,
               (float)o.momentum,
               o.kind == OPTIMIZER_ADAMW ? 0 : (float)o.decay,
               NULL,
               NULL,
               0};
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
    compare("moment1", doubles(m.begin(), m.end()), download(s.apply.moment1, COUNT), 1e-6);
    if (s.apply.moment2)
        compare("moment2", doubles(v.begin(), v.end()), download(s.apply.moment2, COUNT), 1e-6);
    release();
    finish_case(set, name);
}

/* The scale grows after two good steps, and halves after one that is not finite, between the limits. */
static void
run_loss_scale(const value_set &set)
{
    optimizer_options o = optimizer_default(OPTIMIZER_ADAM);
    floats p = random_floats(100), good(100, 1), bad = good;
    stepper s = make_stepper(set, o, p, 1024);
    static const struct {
        bool finite;
        float scale; /* after the step */
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
    finish_case(set, "loss scale");
}

/* ---- the decision on a step -------------------------------------------------------------------------------------- */

static const struct decision {
    const char *what;
    /* Before: the state, the gradients and the tails of the ranks. */
    float scale; /* 1: no loss scaling */
    unsigned good, halted;
    float gradient;
    double loss;
    unsigned faults, wishes;
    /* After. */
    bool apply;
    float scale_then;
    unsigned good_then, halted_then;
} decisions[] = {
    {"a good step", 1024, 0, 0, 1, 2, 0, 0, true, 1024, 1, 0},
    {"a good step without a scale", 1, 7, 0, 1, 2, 0, 0, true, 1, 8, 0},
    {"growth", 1024, 1, 0, 1, 2, 0, 0, true, 2048, 0, 0},
    {"growth to the highest", 3000, 1, 0, 1, 2, 0, 0, true, 4096, 0, 0},
    {"a gradient that is infinite", 1024, 1, 0, INFINITY, 2, 0, 0, false, 512, 0, 0},
    {"a gradient that is no number", 1024, 1, 0, NAN, 2, 0, 0, false, 512, 0, 0},
    {"a loss that is infinite", 1024, 1, 0, 1, INFINITY, 0, 0, false, 512, 0, 0},
    {"a loss that is no number", 1024, 0, 0, 1, NAN, 0, 0, false, 512, 0, 0},
    {"the floor is near", 300, 0, 0, NAN, 2, 0, 0, false, 256, 0, 0},
    {"the floor", 256, 1, 0, NAN, 2, 0, 0, false, 256, 0, 1},
    {"no number, and no scale", 1, 5, 0, NAN, 2, 0, 0, false, 1, 0, 1},
    {"a rank with a fault", 1024, 1, 0, 1, 2, 1, 0, false, 1024, 1, 1},
    {"three ranks with a fault, and no number", 1024, 1, 0, NAN, NAN, 3, 0, false, 1024, 1, 1},
    {"a plan that is halted", 1024, 1, 1, 1, 2, 0, 0x81, false, 1024, 1, 1},
    {"a plan that is halted, and no number", 1024, 1, 1, NAN, 2, 0, 0, false, 1024, 1, 1},
    {"wishes", 1024, 0, 0, 1, 2, 0, 0x82, true, 1024, 1, 0},
};

static void
run_decision(const value_set &set, const decision &d)
{
    enum { COUNT = STEP_EACH + 7 };
    optimizer_options o = optimizer_default(OPTIMIZER_ADAM);
    floats p = random_floats(COUNT), gradient(COUNT, 0), running = random_floats(300), statistics(300, 5);
    stepper s = make_stepper(set, o, p, d.scale);
    step_state state = s.state();

    state.good = d.good;
    state.halted = d.halted;
    state.applied = 41;
    state.labels = state.known = 1; /* of this rank: the tail has those of all ranks */
    overwrite(s.decide.state, state);
    gradient[0] = 3;
    gradient[COUNT - 1] = d.gradient * 4;
    floats tail(TAIL_FLOATS);
    tail[TAIL_LOSS] = (float)d.loss;
    tail[TAIL_LOSS_REST] = 1e-9f;
    tail[TAIL_LABELS] = 70;
    tail[TAIL_UNKNOWN] = 42;
    tail[TAIL_FAULTS] = (float)d.faults;
    for (unsigned i = 0; i < TAIL_REQUESTS; i++)
        tail[TAIL_REQUEST + i] = d.wishes >> i & 1 ? 2 : 0; /* of two ranks */
    s.decide.tail = upload(tail);
    s.apply.running = upload(running);
    s.apply.statistics = upload(statistics);
    s.apply.statistics_count = 300;
    s.step(gradient, 0.01, 0);
    state = s.state();
    expect(!!state.apply == d.apply && state.halted == d.halted_then, d.what);
    expect(state.loss_scale == d.scale_then && state.good == d.good_then, d.what);
    expect(state.faults == d.faults && state.requests == d.wishes && state.applied == 41 + d.apply, d.what);
    expect(isfinite(d.loss) ? state.loss == 2.5 * (d.loss + (double)1e-9f) : !isfinite(state.loss), d.what);
    expect(isfinite(d.gradient) ? fabs(state.norm - 12.5) < 1e-12 : !isfinite(state.norm), d.what);
    expect(!d.apply || state.factor == 2.5f, "the factor of the gradients");
    expect((download(s.apply.parameter, COUNT) != p) == d.apply, "parameters");
    expect(download(s.apply.statistics, 300) == (d.apply ? running : statistics), "running statistics");
    release();
}

static void
run_decisions(const value_set &set)
{
    for (const decision &d : decisions)
        run_decision(set, d);
    finish_case(set, "what becomes of a step");
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static void
run_begin(const value_set &set)
{
    floats statistics = random_floats(300);
    step_state state = {};

    state.loss_scale = 512;
    state.applied = 3;
    state.good = 9;
    state.loss = state.labels = state.known = 17;
    state.bad = 2;
    /* After an empty CTA, which stands for those of the weights. */
    pack_weights_args pack = {NULL, upload(std::vector<pack_entry>{{0, NULL, 0, 8, 1, 0, 0}}), 1, 1, {}};
    step_begin_args &a = pack.begin;

    a = {upload(std::vector<step_state>{state}), upload(statistics), upload(floats(301, 7)), 300, 0};
    launch(set, CUDA_PACK_WEIGHTS, 1 + cuda_blocks(300, PACK_THREADS), 1, pack);
    floats got = download(a.running, 301);
    state = download_one(a.state);
    expect(got[300] == 7 && floats(got.begin(), got.end() - 1) == statistics, "running statistics");
    expect(state.unscale == 1.0f / 512 && state.loss == 0 && state.bad == STEP_BAD_NONE, "the state");
    expect(state.labels == 0 && state.known == 0, "the numbers of labels");
    expect(state.loss_scale == 512 && state.applied == 3 && state.good == 9, "what stays of the state");
    a.from_zero = 1;
    launch(set, CUDA_PACK_WEIGHTS, 1 + cuda_blocks(300, PACK_THREADS), 1, pack);
    expect(download(a.running, 300) == floats(300), "running statistics of ranks but the first");
    release();
    finish_case(set, "a step begins");
}

/* Three BNs: over many pixels, over one, over two. */
static void
run_end(const value_set &set, unsigned batch, unsigned behind, unsigned rest, double loss)
{
    enum { NORMS = 3, CHANNELS = 100, COUNT = NORMS * 2 * CHANNELS };
    static const unsigned side[NORMS] = {5, 1, 2};
    graph g = {};
    graph_buffer buffers[NORMS] = {};
    graph_node nodes[NORMS] = {};
    graph_tensor stats[2 * NORMS] = {};
    floats running = random_floats(COUNT), want = running;
    std::vector<unsigned> pixels;
    step_state state = {};
    double fade = 1;
    char name[100];

    for (unsigned i = 0; i < NORMS; i++) {
        buffers[i] = {CHANNELS, side[i], side[i]};
        nodes[i].op = GRAPH_NORM;
        nodes[i].in.buffer = i;
        nodes[i].mean = 2 * i;
        nodes[i].variance = 2 * i + 1;
        for (unsigned k = 0; k < 2; k++) {
            stats[2 * i + k].offset = (2 * i + k) * CHANNELS;
            stats[2 * i + k].count = CHANNELS;
        }
        pixels.insert(pixels.end(), 2 * CHANNELS, side[i] * side[i]);
    }
    g.buffer = buffers;
    g.node = nodes;
    g.stat = stats;
    g.node_count = NORMS;
    for (unsigned i = 0; i < behind; i++)
        fade *= (double)(1 - GRAPH_NORM_MOMENTUM);
    if (behind > 0)
        arena_fade_statistics(&g, batch, behind, want.data());
    if (rest > 0)
        arena_fade_statistics(&g, rest, 1, want.data());
    state.loss = loss;
    state.labels = 70;
    state.known = 28;
    step_end_args a = {upload(std::vector<end_block>{{fade, behind, rest, 1, 0x85}}),
                       upload(std::vector<step_state>{state}),
                       upload(pixels),
                       upload(running),
                       room(TAIL_FLOATS),
                       COUNT,
                       batch,
                       GRAPH_NORM_MOMENTUM};

    launch(set, CUDA_STEP_END, cuda_blocks(COUNT, STEP_THREADS), 1, a);
    floats tail = download(a.tail, TAIL_FLOATS);
    expect(download(a.running, COUNT) == want, "statistics do not fade as on the host");
    if (isfinite(loss))
        expect(fabs((double)tail[TAIL_LOSS] + (double)tail[TAIL_LOSS_REST] - loss) <= 1e-14 * loss, "the loss");
    else
        expect(!isfinite(tail[TAIL_LOSS] + tail[TAIL_LOSS_REST]), "a loss that is not finite");
    expect(tail[TAIL_LABELS] == 70 && tail[TAIL_UNKNOWN] == 42, "numbers of labels");
    expect(tail[TAIL_FAULTS] == 1, "faults");
    for (unsigned i = 0; i < TAIL_REQUESTS; i++)
        expect(tail[TAIL_REQUEST + i] == (0x85 >> i & 1), "wishes");
    release();
    snprintf(name, sizeof(name), "a step ends: %u of %u images behind it and %u", behind, batch, rest);
    finish_case(set, name);
}

/* All cases of rounding, and back; NaN and overflow must be visible in the sum. */
static void
run_wire(const value_set &set)
{
    const floats in =
                     {0,         -0.0f,   1,         -3.5f, 1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1.8p-8f, 1 + 0x1.7ffffep-8f,
                      0x1p-140f, 3.4e38f, -INFINITY, NAN},
                 want = {0, -0.0f, 1, -3.5f, 1, 1 + 0x1p-6f, 1 + 0x1p-7f, 1 + 0x1p-7f, 0, INFINITY, -INFINITY, NAN};
    wire_args a = {upload(in), (uint16_t *)(void *)room(in.size()), (unsigned)in.size()};

    launch(set, CUDA_TO_WIRE, 1, 1, a);
    overwrite(a.gradient, 0.0f);
    launch(set, CUDA_FROM_WIRE, 1, 1, a);
    floats got = download(a.gradient, in.size());
    for (size_t i = 0; i < in.size(); i++)
        expect(memcmp(&got[i], &want[i], 4) == 0 || (isnan(got[i]) && isnan(want[i])), "a number on the wire");
    release();
    finish_case(set, "gradients as bfloat16 and back");
}

/* A kernel with another split would wait until its multiprocessors are idle. */
static void
run_prepared(const value_set &set)
{
    for (int i = 0; i < CUDA_KERNEL_COUNT; i++) {
        const cuda_kernel &k = set.kernels[i];
        cudaFuncAttributes attributes;

        MUST(cudaFuncGetAttributes(&attributes, k.function));
        expect(k.most == 0 || attributes.preferredShmemCarveout == cudaSharedmemCarveoutMaxShared,
               "the split of shared memory and L1 of a kernel with shared memory");
    }
    finish_case(set, "all kernels with shared memory prefer the same split of shared memory and L1");
}

static void
run_all(const value_set &set)
{
    run_prepared(set);
    run_optimizer(set, OPTIMIZER_ADAM, "Adam");
    run_optimizer(set, OPTIMIZER_ADAMW, "AdamW");
    run_optimizer(set, OPTIMIZER_SGD, "SGD");
    run_optimizer(set, OPTIMIZER_ADAGRAD, "Adagrad");
    run_optimizer(set, OPTIMIZER_ADADELTA, "Adadelta");
    run_optimizer(set, OPTIMIZER_RMSPROP, "RMSprop");
    run_loss_scale(set);
    run_decisions(set);
    run_begin(set);
    run_wire(set);
    run_end(set, 8, 0, 0, 0.1);
    run_end(set, 8, 5, 0, 1 / 3.0);
    run_end(set, 1, 3, 0, INFINITY);
    run_end(set, 4, 0, 1, NAN);
    run_end(set, 2, 900, 3, 12345.678);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
