/*
 * ref.c - the reference backend: plain C, one thread; keeps every buffer of the graph as [image][channel][y][x]
 *
 * In bf16 a convolution rounds its operands (input, weights, gradient of the output) to bf16 and adds the products in
 * float.  All other nodes compute as in fp32.  `cpu` rounds the same operands, but adds in another order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/host.h"
#include "comm/reduce_host.h"
#include "math/bf16.h"
#include "ref/ops.h"

#include <stdlib.h>
#include <string.h>

struct plan {
    struct host host; /* the first member */
    const struct graph *graph;
    const float *weights;      /* of this pass: the parameters or their average */
    float **value, **gradient; /* [buffer_count], each [batch][channels][height][width]; gradient only if train */
    float *mean, *variance;    /* of the batch, with the layout of the arena of statistics */
    float *logits;             /* [batch][outputs] */
    float *logit_gradient;
    float *rounded[3]; /* bf16: x, w and dy of a convolution */
    unsigned images;   /* images of the last micro-batch without padding; values and gradients exist only for these */
    unsigned *place;   /* [batch]: index of image 0 .. images - 1 in the micro-batch */
};

static size_t
image_floats(const struct graph_buffer *b)
{
    return (size_t)b->channels * b->height * b->width;
}

static struct slice
slice_of(const struct plan *plan, float *const *buffers, const struct graph_slice *s)
{
    const struct graph_buffer *b = &plan->graph->buffer[s->buffer];
    float *data = buffers && buffers[s->buffer] ? buffers[s->buffer] + (size_t)s->first * b->height * b->width : NULL;

    return (struct slice){data, image_floats(b), plan->images, s->channels, b->height, b->width};
}

/* ---- plans ----------------------------------------------------------------------------------------------------- */

static void
ref_free(struct plan *plan)
{
    size_t i;

    if (!plan)
        return;
    for (i = 0; i < plan->graph->buffer_count; i++) {
        if (plan->value)
            free(plan->value[i]);
        if (plan->gradient)
            free(plan->gradient[i]);
    }
    for (i = 0; i < ARENA_COUNT; i++)
        free(plan->host.arena[i]);
    free(plan->host.running);
    free(plan->host.sum);
    free(plan->value);
    free(plan->gradient);
    free(plan->mean);
    free(plan->variance);
    free(plan->logits);
    free(plan->logit_gradient);
    free(plan->place);
    for (i = 0; i < 3; i++)
        free(plan->rounded[i]);
    free(plan);
}

static bool
take(void *context, void *where, size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);

    (void)context;
    memcpy(where, &p, sizeof(p)); /* `where` is the address of a pointer of any type */
    return p;
}

/* Sizes of the rounded operands of a convolution: x, w, dy, for one image or for the weights. */
static void
rounded_floats(const struct graph *g, const struct graph_node *n, size_t floats[3])
{
    const struct graph_buffer *in = &g->buffer[n->in.buffer], *out = &g->buffer[n->out.buffer];

    floats[0] = (size_t)n->in.channels * in->height * in->width;
    floats[1] = g->param[n->weight].count;
    floats[2] = (size_t)n->out.channels * out->height * out->width;
}

/* Find the sizes of the buffers for rounded operands, in floats; zero in fp32. */
static bool
most_rounded(const struct plan_options *o, size_t most[3])
{
    size_t each[3], i, k;

    most[0] = most[1] = most[2] = 0;
    for (i = 0; i < o->graph->node_count && o->precision == PRECISION_BF16; i++) {
        if (o->graph->node[i].op != GRAPH_CONV)
            continue;
        rounded_floats(o->graph, &o->graph->node[i], each);
        for (k = 0; k < 3; k++)
            most[k] = each[k] > most[k] ? each[k] : most[k];
    }
    if (!o->train)
        most[2] = 0;
    return size_mul(most[0], o->batch, &most[0]) && size_mul(most[2], o->batch, &most[2]);
}

static bool
allocate(struct plan *plan)
{
    const struct graph *g = plan->graph;
    const struct plan_options *o = &plan->host.options;
    size_t i, bytes, most[3];

    if (!most_rounded(o, most))
        return false;
    for (i = 0; i < 3; i++) {
        plan->rounded[i] = calloc(most[i] ? most[i] : 1, sizeof(float));
        if (!plan->rounded[i])
            return false;
    }
    plan->value = calloc(g->buffer_count, sizeof(*plan->value));
    plan->gradient = calloc(g->buffer_count, sizeof(*plan->gradient));
    plan->mean = calloc(g->stat_floats, sizeof(float));
    plan->variance = calloc(g->stat_floats, sizeof(float));
    plan->logits = calloc((size_t)o->batch * g->buffer[g->output].channels, sizeof(float));
    plan->logit_gradient = calloc((size_t)o->batch * g->buffer[g->output].channels, sizeof(float));
    plan->place = calloc(o->batch, sizeof(*plan->place));
    if (!plan->value || !plan->gradient || !plan->mean || !plan->variance || !plan->logits || !plan->logit_gradient ||
        !plan->place)
        return false;
    for (i = 0; i < g->buffer_count; i++) {
        if (!size_mul(image_floats(&g->buffer[i]) * sizeof(float), o->batch, &bytes))
            return false;
        plan->value[i] = malloc(bytes);
        if (o->train && i != g->input)
            plan->gradient[i] = malloc(bytes);
        if (!plan->value[i] || (o->train && i != g->input && !plan->gradient[i]))
            return false;
    }
    return host_arrays(&plan->host, take, NULL);
}

/* No buffers share memory, so the size is exact. */
static enum chex_status
ref_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts, struct chex_error *err)
{
    const struct graph *g = o->graph;
    size_t input = image_floats(&g->buffer[g->input]), activations = graph_activations(g), most[3];
    enum chex_status status = host_facts(device, o, o->precision == PRECISION_BF16 ? "ref 1 bf16" : "ref 1", facts,
                                         err);
    struct plan_memory *m = &facts->memory;

    if (status != CHEX_OK)
        return status;
    if (!most_rounded(o, most))
        return error_memory(err);
    host_memory_parts(o, m);
    m->activations = (uint64_t)(activations + (o->train ? activations - input : 0)) * sizeof(float) * o->batch;
    m->workspace = host_sum_bytes(o) + (2 * g->stat_floats + most[0] + most[1] + most[2]) * sizeof(float);
    return CHEX_OK;
}

static const struct host_ops ref_ops;

static enum chex_status
ref_new(struct device *device, const struct plan_options *o, struct plan **out, struct plan_facts *facts,
        struct chex_error *err)
{
    enum chex_status status = ref_size(device, o, facts, err);
    struct plan *plan;

    *out = NULL;
    if (status != CHEX_OK)
        return status;
    plan = calloc(1, sizeof(*plan));
    if (!plan)
        return error_memory(err);
    plan->host.options = *o;
    plan->graph = o->graph;
    if (!allocate(plan)) {
        ref_free(plan);
        return error_memory(err);
    }
    host_start(&plan->host, &ref_ops);
    *out = plan;
    return CHEX_OK;
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

static void
load_input(struct plan *plan, const struct batch *batch)
{
    const struct graph_buffer *in = &plan->graph->buffer[plan->graph->input];
    unsigned n, c, y, x, source = plan->host.options.source;

    for (n = 0; n < plan->images; n++) {
        float *to = plan->value[plan->graph->input] + n * image_floats(in);

        for (c = 0; c < in->channels; c++)
            for (y = 0; y < in->height; y++) {
                struct host_row row;

                host_row_start(&row, batch, plan->place[n], source, in->width, y);
                for (x = 0; x < in->width; x++)
                    *to++ = ((float)host_row_level(&row, x) / 255 - input_mean[c]) / input_deviation[c];
            }
    }
}

/* Returns the slice, in bf16 a rounded copy in buffer k of the plan.  A slice without data is returned unchanged. */
static struct slice
operand(struct plan *plan, unsigned k, struct slice v)
{
    size_t floats = (size_t)v.channels * v.height * v.width, i;
    struct slice rounded = v;
    unsigned n;

    if (plan->host.options.precision != PRECISION_BF16 || !v.data)
        return v;
    rounded.data = plan->rounded[k];
    rounded.image = floats;
    for (n = 0; n < v.images; n++)
        for (i = 0; i < floats; i++)
            rounded.data[n * floats + i] = bf16_float(bf16_round(v.data[n * v.image + i]));
    return rounded;
}

static const float *
operand_weights(struct plan *plan, const struct graph_node *node)
{
    const struct graph_tensor *t = &plan->graph->param[node->weight];
    struct slice all = {.data = (float *)plan->weights + t->offset,
                        .images = 1,
                        .channels = (unsigned)t->count,
                        .height = 1,
                        .width = 1};

    return operand(plan, 1, all).data;
}

static void
run_norm(struct plan *plan, const struct graph_node *node, bool train)
{
    const struct graph *g = plan->graph;
    const float *params = plan->weights;
    float *stats = train ? plan->host.running : plan->host.arena[ARENA_STATISTICS];
    size_t m = g->stat[node->mean].offset, v = g->stat[node->variance].offset;
    struct slice x = slice_of(plan, plan->value, &node->in), y = slice_of(plan, plan->value, &node->out);

    if (train) {
        norm_statistics(x, plan->mean + m, plan->variance + v);
        norm_update(x.channels, (size_t)x.images * x.height * x.width, plan->mean + m, plan->variance + v, stats + m,
                    stats + v);
    }
    norm_forward(node, x, train ? plan->mean + m : stats + m, train ? plan->variance + v : stats + v,
                 params + g->param[node->weight].offset, params + g->param[node->bias].offset, y);
}

static void
run_forward(struct plan *plan, const struct graph_node *node, bool train)
{
    const struct graph *g = plan->graph;
    const float *params = plan->weights;
    struct slice x = slice_of(plan, plan->value, &node->in), y = slice_of(plan, plan->value, &node->out);

    switch (node->op) {
    case GRAPH_CONV:
        conv_forward(node, operand(plan, 0, x), operand_weights(plan, node), y);
        break;
    case GRAPH_NORM:
        run_norm(plan, node, train);
        break;
    case GRAPH_ADD:
        add_forward(node, x, slice_of(plan, plan->value, &node->in2), y);
        break;
    case GRAPH_MAX_POOL:
        max_pool_forward(node, x, y);
        break;
    case GRAPH_AVG_POOL:
        avg_pool_forward(node, x, y);
        break;
    case GRAPH_MEAN_POOL:
        mean_pool_forward(x, y);
        break;
    case GRAPH_LINEAR:
        linear_forward(x, params + g->param[node->weight].offset, params + g->param[node->bias].offset, y);
        break;
    }
}

/* Copy the floats of images 0, 1, ... to their indices in the micro-batch; padding becomes 0. */
static void
put_images(const struct plan *plan, const float *from, size_t floats, float *to)
{
    unsigned n;

    memset(to, 0, plan->host.options.batch * floats * sizeof(*to));
    for (n = 0; n < plan->images; n++)
        memcpy(to + plan->place[n] * floats, from + n * floats, floats * sizeof(*to));
}

/* Run the forward pass; computes the logits of the micro-batch. */
static void
pass(struct plan *plan, const struct batch *batch, enum arena_id weights, bool train)
{
    const struct graph *g = plan->graph;
    size_t i;

    plan->weights = plan->host.arena[weights];
    plan->images = batch_images(batch, plan->host.options.batch, plan->place);
    load_input(plan, batch);
    for (i = 0; i < g->node_count && plan->images > 0; i++)
        run_forward(plan, &g->node[i], train);
    put_images(plan, plan->value[g->output], g->buffer[g->output].channels, plan->logits);
}

static double
ref_forward(struct plan *plan, const struct batch *batch)
{
    pass(plan, batch, ARENA_PARAMETERS, true);
    return host_loss(plan, batch, plan->logits, plan->logit_gradient);
}

/* Compute the maps of the images of a pass: the linear layer at every pixel, without its bias. */
static void
take_maps(const struct plan *plan, float *maps)
{
    const struct graph *g = plan->graph;
    struct graph_head h;
    struct slice x;
    unsigned n, o, c;
    size_t p;

    graph_find_head(g, &h);
    x = slice_of(plan, plan->value, &h.mean->in);
    memset(maps, 0, plan->host.options.batch * h.map_floats * sizeof(*maps));
    for (n = 0; n < plan->images; n++)
        for (o = 0; o < h.outputs; o++) {
            const float *w = plan->weights + g->param[h.linear->weight].offset + (size_t)o * h.channels;
            float *map = maps + plan->place[n] * h.map_floats + o * h.pixels;

            for (p = 0; p < h.pixels; p++) {
                double sum = 0;

                for (c = 0; c < h.channels; c++)
                    sum += (double)w[c] * (double)slice_plane(x, n, c)[p];
                map[p] = (float)sum;
            }
        }
}

static void
ref_score(struct plan *plan, const struct batch *batch, enum arena_id weights, float *logits, float *maps)
{
    const struct graph *g = plan->graph;

    pass(plan, batch, weights, false);
    memcpy(logits, plan->logits, plan->host.options.batch * g->buffer[g->output].channels * sizeof(float));
    if (maps)
        take_maps(plan, maps);
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

static void
run_backward(struct plan *plan, const struct graph_node *node)
{
    const struct graph *g = plan->graph;
    const float *params = plan->weights;
    float *gradients = plan->host.arena[ARENA_GRADIENTS];
    size_t w = g->param[node->weight].offset, b = g->param[node->bias].offset;
    struct slice x = slice_of(plan, plan->value, &node->in), dx = slice_of(plan, plan->gradient, &node->in);
    struct slice y = slice_of(plan, plan->value, &node->out), dy = slice_of(plan, plan->gradient, &node->out);

    switch (node->op) {
    case GRAPH_CONV:
        conv_backward(node, operand(plan, 0, x), dx, operand_weights(plan, node), gradients + w, operand(plan, 2, dy));
        break;
    case GRAPH_NORM:
        norm_backward(node, x, dx, plan->mean + g->stat[node->mean].offset,
                      plan->variance + g->stat[node->variance].offset, params + w, gradients + w, gradients + b, y, dy);
        break;
    case GRAPH_ADD:
        add_backward(node, dx, slice_of(plan, plan->gradient, &node->in2), y, dy);
        break;
    case GRAPH_MAX_POOL:
        max_pool_backward(node, x, dx, dy);
        break;
    case GRAPH_AVG_POOL:
        avg_pool_backward(node, dx, dy);
        break;
    case GRAPH_MEAN_POOL:
        mean_pool_backward(dx, dy);
        break;
    case GRAPH_LINEAR:
        linear_backward(x, dx, params + w, gradients + w, gradients + b, dy);
        break;
    }
}

static enum chex_status
ref_backward(struct plan *plan, struct chex_error *err)
{
    const struct graph *g = plan->graph;
    size_t batch = plan->host.options.batch, outputs = image_floats(&g->buffer[g->output]), i;
    enum chex_status status = CHEX_OK;

    for (i = 0; i < g->buffer_count; i++)
        if (plan->gradient[i])
            memset(plan->gradient[i], 0, batch * image_floats(&g->buffer[i]) * sizeof(float));
    for (i = 0; i < plan->images; i++)
        memcpy(plan->gradient[g->output] + i * outputs, plan->logit_gradient + plan->place[i] * outputs,
               outputs * sizeof(float));
    for (i = g->node_count; status == CHEX_OK && i-- > 0;) {
        if (plan->images > 0)
            run_backward(plan, &g->node[i]);
        status = host_gradients(plan, &g->node[i], err);
    }
    return status;
}

/* ---- backend interface ------------------------------------------------------------------------------------------- */

static void
ref_apply(struct plan *plan, const struct optimizer_step *step, double scale)
{
    float *const *arena = plan->host.arena;

    optimizer_apply(&plan->host.options.optimizer, step, scale, plan->graph->param_floats, arena[ARENA_PARAMETERS],
                    arena[ARENA_GRADIENTS], arena[ARENA_MOMENT1], arena[ARENA_MOMENT2], arena[ARENA_AVERAGE]);
}

static enum chex_status
ref_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err)
{
    const float *from = gradient ? plan->gradient[buffer] : plan->value[buffer];

    if (!from)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "the gradient of buffer %u is not kept", buffer);
    put_images(plan, from, image_floats(&plan->graph->buffer[buffer]), out);
    return CHEX_OK;
}

static const struct host_ops ref_ops = {
    .forward = ref_forward, .backward = ref_backward, .score = ref_score, .apply = ref_apply};

extern const struct backend backend_ref;

static enum chex_status
ref_open(unsigned number, struct device **out, struct chex_error *err)
{
    (void)number;
    return host_device_open(&backend_ref, "CPU, plain C, one thread", out, err);
}

const struct backend backend_ref = {
    .name = "ref",
    .device_count = host_device_count,
    .device_open = ref_open,
    .device_close = host_device_close,
    .reduce_new = reduce_host_new,
    .store_new = host_store_new,
    .store_put = host_store_put,
    .store_free = host_store_free,
    .plan_size = ref_size,
    .plan_new = ref_new,
    .plan_free = ref_free,
    .write = host_write,
    .read = host_read,
    .read_concurrently = host_read,
    .set_state = host_set_state,
    .accumulate = host_accumulate,
    .update = host_update,
    .result = host_result,
    .resume = host_resume,
    .score_start = host_score_start,
    .score_finish = host_score_finish,
    .peek = ref_peek,
};
