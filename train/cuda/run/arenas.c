/*
 * arenas.c - the host reads and writes the arenas and the state of a plan, and tests read its buffers; see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static enum chex_status
find_arena(struct plan *plan, enum arena_id arena, void **out, struct chex_error *err)
{
    *out = (void *)plan->layout.arena[arena];
    if (!*out)
        return error_set(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
    return cuda_enter(plan, err);
}

/* Copies between host and device, after all work that the device was given. */
enum chex_status
cuda_copy_now(struct plan *plan, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
              struct chex_error *err)
{
    const char *what = kind == cudaMemcpyHostToDevice ? "writing to the GPU" : "reading from the GPU";
    enum chex_status status = cuda_flush(plan, err);

    if (status == CHEX_OK)
        status = cuda_check(cudaMemcpyAsync(to, from, bytes, kind, plan->compute), what, err);
    if (status != CHEX_OK)
        return status;
    status = cuda_drain(plan, what, err);
    if (status != CHEX_OK) /* the caller's memory must not be part of a copy in flight */
        (void)cuda_quiesce(plan);
    return status;
}

static size_t
arena_bytes(const struct plan *plan, enum arena_id arena)
{
    return arena_floats(plan->options.graph, arena) * sizeof(float);
}

enum chex_status
cuda_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err)
{
    void *to;
    enum chex_status status = find_arena(plan, arena, &to, err);

    if (status != CHEX_OK)
        return status;
    plan->folded = ARENA_COUNT;
    return cuda_copy_now(plan, to, from, arena_bytes(plan, arena), cudaMemcpyHostToDevice, err);
}

/* The device rescales gradients only while it applies them (optimizer_args). */
static enum chex_status
rescale_gradients(struct plan *plan, float *gradient, struct chex_error *err)
{
    struct step_state s;
    enum chex_status status = cuda_copy_now(plan, &s, (const void *)plan->layout.state, sizeof(s),
                                            cudaMemcpyDeviceToHost, err);
    size_t i;

    for (i = 0; status == CHEX_OK && s.rescale != 1 && i < plan->options.graph->param_floats; i++)
        gradient[i] = (float)(s.rescale * (double)gradient[i]);
    return status;
}

enum chex_status
cuda_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    void *from;
    enum chex_status status = find_arena(plan, arena, &from, err);

    if (status == CHEX_OK)
        status = cuda_copy_now(plan, to, from, arena_bytes(plan, arena), cudaMemcpyDeviceToHost, err);
    return status == CHEX_OK && arena == ARENA_GRADIENTS ? rescale_gradients(plan, to, err) : status;
}

/*
 * A second thread calls this, and it uses a stream of its own, so the kernels of an evaluation run meanwhile.  It polls
 * and does not block in the CUDA runtime, which could hold a lock that the plan's thread needs.
 */
enum chex_status
cuda_read_concurrently(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    size_t bytes = arena_bytes(plan, arena);
    void *from;
    enum chex_status status = find_arena(plan, arena, &from, err);
    cudaError_t e;

    if (status != CHEX_OK)
        return status;
    e = cudaMemcpyAsync(plan->landing, from, bytes, cudaMemcpyDeviceToHost, plan->read_stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(plan->landed, plan->read_stream);
    if (e == cudaSuccess)
        while ((e = cudaEventQuery(plan->landed)) == cudaErrorNotReady)
            backoff(50e-6);
    if (e != cudaSuccess)
        return cuda_check(e, "reading from the GPU", err);
    memcpy(to, plan->landing, bytes);
    return CHEX_OK;
}

/*
 * A plan without loss scaling has the scale 1, whatever the state says.  With loss scaling, a saved scale of 1 is the
 * lowest one and stays 1.
 */
enum chex_status
cuda_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err)
{
    void *there = (void *)plan->layout.state;
    enum chex_status status = cuda_enter(plan, err);
    struct step_state s;

    if (status == CHEX_OK && !there)
        return CHEX_OK; /* this plan only scores */
    if (status == CHEX_OK)
        status = cuda_copy_now(plan, &s, there, sizeof(s), cudaMemcpyDeviceToHost, err);
    if (status != CHEX_OK)
        return status;
    s.applied = (double)state->applied;
    s.good = state->good;
    s.loss_scale = (float)state->loss_scale;
    if (plan->layout.loss_scale == 1 || state->loss_scale == 0)
        s.loss_scale = plan->layout.loss_scale;
    return cuda_copy_now(plan, there, &s, sizeof(s), cudaMemcpyHostToDevice, err);
}

/* ---- buffers of the graph as floats, for tests ------------------------------------------------------------------- */

static float
float_of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

static float
float_of_fp16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    float small = (float)fraction * 0x1p-24f;

    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0)
        return sign ? -small : small;
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static float
value_at(const struct plan *plan, const unsigned char *data, size_t i)
{
    uint16_t half;
    float f;

    if (plan->layout.chip.value_bytes == sizeof(float)) {
        memcpy(&f, data + i * sizeof(f), sizeof(f));
        return f;
    }
    memcpy(&half, data + i * sizeof(half), sizeof(half));
    return plan->facts.precision == PRECISION_BF16 ? float_of_bits((uint32_t)half << 16) : float_of_fp16(half);
}

/* Converts [batch][pixels][ld] to [batch][channels][pixels]. */
static void
to_planes(const struct plan *plan, const unsigned char *from, unsigned ld, unsigned buffer, float scale, float *to)
{
    const struct graph_buffer *b = &plan->options.graph->buffer[buffer];
    size_t pixels = (size_t)b->height * b->width, n, c, p;

    for (n = 0; n < plan->options.batch; n++)
        for (c = 0; c < b->channels; c++)
            for (p = 0; p < pixels; p++)
                *to++ = scale * value_at(plan, from, (n * pixels + p) * ld + c);
}

static enum chex_status
peek_buffer(struct plan *plan, unsigned buffer, uintptr_t at, float scale, float *out, struct chex_error *err)
{
    const struct graph_buffer *b = &plan->options.graph->buffer[buffer];
    unsigned ld = plan->layout.tensor[buffer].ld;
    size_t bytes = (size_t)plan->options.batch * b->height * b->width * ld * plan->layout.chip.value_bytes;
    unsigned char *raw = malloc(bytes);
    enum chex_status status = raw ? CHEX_OK : error_memory(err);

    if (status == CHEX_OK)
        status = cuda_copy_now(plan, raw, (const void *)at, bytes, cudaMemcpyDeviceToHost, err);
    if (status == CHEX_OK)
        to_planes(plan, raw, ld, buffer, scale, out);
    free(raw);
    return status;
}

/* Logits and their gradient are floats: [batch][outputs]. */
static enum chex_status
peek_output(struct plan *plan, uintptr_t at, float scale, float *out, struct chex_error *err)
{
    const struct graph *g = plan->options.graph;
    size_t values = (size_t)plan->options.batch * g->buffer[g->output].channels, i;
    enum chex_status status = cuda_copy_now(plan, out, (const void *)at, values * sizeof(*out), cudaMemcpyDeviceToHost,
                                            err);

    for (i = 0; status == CHEX_OK && i < values; i++)
        out[i] *= scale;
    return status;
}

/* Returns true if the gradient was finalized in memory. */
static bool
is_finished(const struct plan *plan, unsigned buffer)
{
    const struct cuda_layout *l = &plan->layout;
    size_t i;

    for (i = 0; i < l->graph->node_count; i++)
        if (l->unfinished[i] && l->graph->node[i].out.buffer == buffer)
            return false;
    return true;
}

enum chex_status
cuda_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err)
{
    const struct graph *g = plan->options.graph;
    const struct graph_buffer *b = &g->buffer[buffer];
    bool logits = buffer == g->output && !gradient;
    uintptr_t at = gradient ? plan->layout.tensor[buffer].gradient : plan->layout.tensor[buffer].value;
    struct step_state s = {.unscale = 1};
    enum chex_status status = cuda_enter(plan, err);

    if (status != CHEX_OK)
        return status;
    if (!logits && (!plan->options.keep || buffer == g->input || at == 0 || (gradient && !is_finished(plan, buffer))))
        return error_set(err, CHEX_ERR_UNSUPPORTED, "buffer %u is not kept", buffer);
    if (plan->empty) {
        memset(out, 0, (size_t)plan->options.batch * b->channels * b->height * b->width * sizeof(*out));
        return CHEX_OK;
    }
    if (gradient)
        status = cuda_copy_now(plan, &s, (const void *)plan->layout.state, sizeof(s), cudaMemcpyDeviceToHost, err);
    if (status != CHEX_OK)
        return status;
    if (buffer == g->output)
        return peek_output(plan, logits ? plan->layout.logits : at, gradient ? s.unscale : 1, out, err);
    return peek_buffer(plan, buffer, at, gradient ? s.unscale : 1, out, err);
}
