/*
 * cuda_backend.c - the backend of NVIDIA GPUs: its table of functions (backend.h), and what the host reads and writes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/cuda_plan.h"
#include "gpu/cuda_reduce.h"
#include "layout/cuda_eights.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

static enum chex_status
find_arena(struct plan *plan, enum arena_id arena, void **out, struct chex_error *err)
{
    *out = (void *)plan->layout.arena[arena];
    if (!*out)
        return error_set(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
    return cuda_enter(plan, err);
}

/* Between host and device, behind all that was given to the device. */
static enum chex_status
copy(struct plan *plan, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, struct chex_error *err)
{
    const char *what = kind == cudaMemcpyHostToDevice ? "writing to the GPU" : "reading from the GPU";
    enum chex_status status = cuda_flush(plan, err);

    if (status == CHEX_OK)
        status = cuda_check(cudaMemcpyAsync(to, from, bytes, kind, plan->compute), what, err);
    if (status != CHEX_OK)
        return status;
    status = cuda_drain(plan, what, err);
    if (status != CHEX_OK) /* memory of the caller is not on its way any more */
        (void)cuda_settle(plan);
    return status;
}

/* Room for an arena as it lies on the device, with channels between that the graph does not have. */
static enum chex_status
new_spread(const struct plan *plan, enum arena_id arena, size_t *bytes, float **out, struct chex_error *err)
{
    *bytes = arena_floats(plan->layout.graph, arena) * sizeof(float);
    *out = malloc(*bytes > 0 ? *bytes : 1);
    return *out ? CHEX_OK : error_memory(err);
}

static enum chex_status
cuda_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err)
{
    float *spread = NULL;
    size_t bytes = 0;
    void *to;
    enum chex_status status = find_arena(plan, arena, &to, err);

    if (status == CHEX_OK)
        status = new_spread(plan, arena, &bytes, &spread, err);
    if (status == CHEX_OK) {
        cuda_eights_spread(plan->layout.eights, arena, from, spread);
        plan->folded = ARENA_COUNT;
        status = copy(plan, to, spread, bytes, cudaMemcpyHostToDevice, err);
    }
    free(spread);
    return status;
}

static enum chex_status
cuda_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    float *spread = NULL;
    size_t bytes = 0;
    void *from;
    enum chex_status status = find_arena(plan, arena, &from, err);

    if (status == CHEX_OK)
        status = new_spread(plan, arena, &bytes, &spread, err);
    if (status == CHEX_OK)
        status = copy(plan, spread, from, bytes, cudaMemcpyDeviceToHost, err);
    if (status == CHEX_OK)
        cuda_eights_gather(plan->layout.eights, arena, spread, to);
    free(spread);
    return status;
}

/*
 * By a second thread, through a stream of its own: the kernels of an evaluation run meanwhile.  Nothing waits in the
 * CUDA runtime, which may hold a lock that the thread of the plan needs.
 */
static enum chex_status
cuda_read_beside(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 50000};
    size_t bytes = arena_floats(plan->layout.graph, arena) * sizeof(float);
    void *from;
    enum chex_status status = find_arena(plan, arena, &from, err);
    cudaError_t e;

    if (status != CHEX_OK)
        return status;
    e = cudaMemcpyAsync(plan->landing, from, bytes, cudaMemcpyDeviceToHost, plan->beside);
    if (e == cudaSuccess)
        e = cudaEventRecord(plan->landed, plan->beside);
    if (e == cudaSuccess)
        while ((e = cudaEventQuery(plan->landed)) == cudaErrorNotReady)
            nanosleep(&pause, NULL);
    if (e != cudaSuccess)
        return cuda_check(e, "reading from the GPU", err);
    cuda_eights_gather(plan->layout.eights, arena, plan->landing, to);
    return CHEX_OK;
}

/* A plan without a loss scale has 1, whatever the state says; for another one 1 is the lowest, and kept. */
static enum chex_status
cuda_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err)
{
    void *there = (void *)plan->layout.state;
    enum chex_status status = cuda_enter(plan, err);
    struct step_state s;

    if (status == CHEX_OK && !there)
        return CHEX_OK; /* of a plan that only scores */
    if (status == CHEX_OK)
        status = copy(plan, &s, there, sizeof(s), cudaMemcpyDeviceToHost, err);
    if (status != CHEX_OK)
        return status;
    s.applied = (double)state->applied;
    s.good = state->good;
    s.loss_scale = (float)state->loss_scale;
    if (plan->layout.loss_scale == 1 || state->loss_scale == 0)
        s.loss_scale = plan->layout.loss_scale;
    return copy(plan, there, &s, sizeof(s), cudaMemcpyHostToDevice, err);
}

/* ---- for tests --------------------------------------------------------------------------------------------------- */

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

/* From [batch][pixels][ld] to [batch][channels][pixels]. */
static void
to_planes(const struct plan *plan, const unsigned char *from, unsigned ld, unsigned buffer, float scale, float *to)
{
    const struct graph_buffer *b = &plan->options.graph->buffer[buffer];
    const unsigned *channel = plan->layout.eights->channel[buffer];
    size_t pixels = (size_t)b->height * b->width, n, c, p;

    for (n = 0; n < plan->options.batch; n++)
        for (c = 0; c < b->channels; c++)
            for (p = 0; p < pixels; p++)
                *to++ = scale * value_at(plan, from, (n * pixels + p) * ld + channel[c]);
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
        status = copy(plan, raw, (const void *)at, bytes, cudaMemcpyDeviceToHost, err);
    if (status == CHEX_OK)
        to_planes(plan, raw, ld, buffer, scale, out);
    free(raw);
    return status;
}

/* Logits and their gradient are floats, [batch][outputs]. */
static enum chex_status
peek_output(struct plan *plan, uintptr_t at, float scale, float *out, struct chex_error *err)
{
    const struct graph *g = plan->options.graph;
    size_t values = (size_t)plan->options.batch * g->buffer[g->output].channels, i;
    enum chex_status status = copy(plan, out, (const void *)at, values * sizeof(*out), cudaMemcpyDeviceToHost, err);

    for (i = 0; status == CHEX_OK && i < values; i++)
        out[i] *= scale;
    return status;
}

/* A gradient that was finished where it lies. */
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

static enum chex_status
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
        status = copy(plan, &s, (const void *)plan->layout.state, sizeof(s), cudaMemcpyDeviceToHost, err);
    if (status != CHEX_OK)
        return status;
    if (buffer == g->output)
        return peek_output(plan, logits ? plan->layout.logits : at, gradient ? s.unscale : 1, out, err);
    return peek_buffer(plan, buffer, at, gradient ? s.unscale : 1, out, err);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static enum chex_status
open_device(unsigned number, struct device **out, struct chex_error *err)
{
    return cuda_device_open(&backend_cuda, number, out, err);
}

static const char *
library(unsigned number, char text[BACKEND_LIBRARY])
{
    if (number > 1)
        return NULL;
    if (number == 1) {
        (void)cudnn_version(text);
        return "cudnn";
    }
    (void)reduce_nccl_version(text);
    return "nccl";
}

const struct backend backend_cuda = {
    .name = CUDA_BACKEND,
    .device_count = cuda_device_count,
    .device_open = open_device,
    .device_close = cuda_device_close,
    .library = library,
    .reduce_new = cuda_reduce_new,
    .store_new = cuda_store_new,
    .store_put = cuda_store_put,
    .store_free = cuda_store_free,
    .plan_size = cuda_plan_size,
    .plan_model = cuda_plan_model,
    .plan_new = cuda_plan_new,
    .plan_free = cuda_plan_free,
    .write = cuda_write,
    .read = cuda_read,
    .read_beside = cuda_read_beside,
    .set_state = cuda_set_state,
    .accumulate = cuda_accumulate,
    .update = cuda_update,
    .result = cuda_result,
    .resume = cuda_resume,
    .score = cuda_score,
    .peek = cuda_peek,
};
