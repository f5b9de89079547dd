/*
 * onnx_graph.c - walks the graph of a network and adds the operations of ONNX; see onnx.h
 *
 * A buffer of the graph holds several values: each node writes one, a slice of channels.  A node that reads channels of
 * several values gets them through a Concat.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "export/onnx_private.h"

#include "backend/batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value of ONNX, and the channels that it has in its buffer. */
struct value {
    struct graph_slice at;
    const char *name;
};

struct graph_walk {
    struct onnx_builder *b;
    const struct onnx_model *m;
    struct value *value; /* [node_count + 1]: of the input, and of each node */
    size_t count;
    unsigned pools;
    struct graph_head head;
    const char *before_mean; /* the value that its mean reads: the input of the maps */
};

/* Returns the name of a tensor without its last part: "features.norm0". */
static const char *
name_of_node(struct graph_walk *w, const struct graph_node *node)
{
    const struct graph *g = w->m->graph;
    const char *name, *slash;

    switch (node->op) {
    case GRAPH_CONV:
    case GRAPH_NORM:
    case GRAPH_LINEAR:
        name = g->param[node->weight].name;
        slash = strrchr(name, '.');
        return onnx_text(w->b, "%.*s", slash ? (int)(slash - name) : (int)strlen(name), name);
    case GRAPH_ADD:
        return onnx_text(w->b, "add%zu", w->count);
    case GRAPH_MAX_POOL:
    case GRAPH_AVG_POOL:
    case GRAPH_MEAN_POOL:
        break;
    }
    return onnx_text(w->b, "pool%u", w->pools++);
}

static int
by_channel(const void *a, const void *b)
{
    const struct value *x = a, *y = b;

    return (x->at.first > y->at.first) - (x->at.first < y->at.first);
}

/* Set *name to the value of a slice; `reader` names the Concat, if it needs one. */
static enum chex_status
find_value(struct graph_walk *w, const struct graph_slice *slice, const char *reader, const char **name,
           struct chex_error *err)
{
    struct value *piece = calloc(w->count, sizeof(*piece));
    const char **names = calloc(w->count, sizeof(*names));
    size_t pieces = 0, i;
    unsigned next = slice->first;
    enum chex_status status = piece && names ? CHEX_OK : error_memory(err);

    for (i = 0; status == CHEX_OK && i < w->count; i++)
        if (graph_slice_overlaps(&w->value[i].at, slice))
            piece[pieces++] = w->value[i];
    if (pieces > 0)
        qsort(piece, pieces, sizeof(*piece), by_channel);
    for (i = 0; i < pieces && piece[i].at.first == next; i++) {
        names[i] = piece[i].name;
        next += piece[i].at.channels;
    }
    if (status == CHEX_OK && (i < pieces || next != slice->first + slice->channels))
        status = error_set(err, CHEX_ERR_UNSUPPORTED, "'%s' reads a part of the channels of a node", reader);
    if (status == CHEX_OK && pieces > 1) {
        *name = onnx_text(w->b, "%s.concat", reader);
        onnx_attribute_int(w->b, onnx_add_node(w->b, "Concat", *name, names, pieces), "axis", 1);
    } else if (status == CHEX_OK) {
        *name = names[0];
    }
    free(piece);
    free(names);
    return status;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const char *
parameter(const struct graph_walk *w, unsigned index)
{
    return w->m->graph->param[index].name;
}

static void
set_window(struct graph_walk *w, Chex__NodeProto *op, const struct graph_node *node)
{
    onnx_attribute_ints(w->b, op, "kernel_shape", 2, node->kernel);
    onnx_attribute_ints(w->b, op, "pads", 4, node->pad);
    onnx_attribute_ints(w->b, op, "strides", 2, node->stride);
}

static void
add_norm(struct graph_walk *w, const struct graph_node *node, const char *name, const char *in)
{
    const struct graph *g = w->m->graph;
    const char *const input[] = {in, parameter(w, node->weight), parameter(w, node->bias), g->stat[node->mean].name,
                                 g->stat[node->variance].name};

    onnx_attribute_float(w->b, onnx_add_node(w->b, "BatchNormalization", name, input, 5), "epsilon",
                         GRAPH_NORM_EPSILON);
}

/* The last layer: [N][channels][1][1] to [N][outputs]. */
static void
add_linear(struct graph_walk *w, const struct graph_node *node, const char *name, const char *in)
{
    const char *flat = onnx_text(w->b, "%s.flatten", name);
    const char *const input[] = {flat, parameter(w, node->weight), parameter(w, node->bias)};

    onnx_attribute_int(w->b, onnx_add_node(w->b, "Flatten", flat, &in, 1), "axis", 1);
    onnx_attribute_int(w->b, onnx_add_node(w->b, "Gemm", name, input, 3), "transB", 1);
}

static void
add_operation(struct graph_walk *w, const struct graph_node *node, const char *name, const char *in, const char *in2)
{
    const char *const both[] = {in, in2};
    const char *const weighted[] = {in, node->op == GRAPH_CONV ? parameter(w, node->weight) : ""};

    switch (node->op) {
    case GRAPH_CONV:
        set_window(w, onnx_add_node(w->b, "Conv", name, weighted, 2), node);
        break;
    case GRAPH_NORM:
        add_norm(w, node, name, in);
        break;
    case GRAPH_ADD:
        onnx_add_node(w->b, "Add", name, both, 2);
        break;
    case GRAPH_MAX_POOL:
        set_window(w, onnx_add_node(w->b, "MaxPool", name, &in, 1), node);
        break;
    case GRAPH_AVG_POOL:
        set_window(w, onnx_add_node(w->b, "AveragePool", name, &in, 1), node);
        break;
    case GRAPH_MEAN_POOL:
        onnx_add_node(w->b, "GlobalAveragePool", name, &in, 1);
        if (node == w->head.mean)
            w->before_mean = in;
        break;
    case GRAPH_LINEAR:
        add_linear(w, node, name, in);
        break;
    }
}

static enum chex_status
add_node(struct graph_walk *w, const struct graph_node *node, struct chex_error *err)
{
    const char *name = name_of_node(w, node), *in = NULL, *in2 = NULL;
    enum chex_status status = find_value(w, &node->in, name, &in, err);

    if (status == CHEX_OK && node->op == GRAPH_ADD)
        status = find_value(w, &node->in2, name, &in2, err);
    if (status != CHEX_OK)
        return status;
    if (node->out.buffer == w->m->graph->output)
        name = "logit";
    add_operation(w, node, name, in, in2);
    if (node->relu) {
        const char *before = name;

        name = onnx_text(w->b, "%s.relu", before);
        onnx_add_node(w->b, "Relu", name, &before, 1);
    }
    w->value[w->count++] = (struct value){node->out, name};
    return CHEX_OK;
}

/* ---- before and after the graph ---------------------------------------------------------------------------------- */

/* Add a constant of rank 1 or, for values of channels, [1][channels][1][1]. */
static const char *
add_constant(struct graph_walk *w, const char *name, unsigned count, const float *value, bool of_channels)
{
    const unsigned shape[] = {1, count, 1, 1};

    onnx_add_tensor(w->b, name, of_channels ? 4 : 1, of_channels ? shape : shape + 1, value);
    return name;
}

/* Gray levels become (level / 255 - mean[c]) / deviation[c], in this order of operations. */
static void
add_input(struct graph_walk *w)
{
    static const float levels[] = {255};
    const struct graph *g = w->m->graph;
    const struct graph_buffer *in = &g->buffer[g->input];
    const unsigned shape[] = {1, in->height, in->width};
    const char *gray = "image.gray", *level = "image.level", *image = "image", *rgb = "image.rgb";
    const char *const divided[] = {level, add_constant(w, "image.levels", 1, levels, false)};
    const char *const channels[INPUT_CHANNELS] = {gray, gray, gray};
    const char *const centred[] = {rgb, add_constant(w, "image.mean", INPUT_CHANNELS, input_mean, true)};
    const char *const scaled[] = {"image.centred",
                                  add_constant(w, "image.deviation", INPUT_CHANNELS, input_deviation, true)};

    onnx_set_input(w->b, image, 3, shape);
    onnx_attribute_int(w->b, onnx_add_node(w->b, "Cast", level, &image, 1), "to", CHEX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    onnx_add_node(w->b, "Div", gray, divided, 2);
    onnx_attribute_int(w->b, onnx_add_node(w->b, "Concat", rgb, channels, INPUT_CHANNELS), "axis", 1);
    onnx_add_node(w->b, "Sub", scaled[0], centred, 2);
    onnx_add_node(w->b, "Div", "image.normalised", scaled, 2);
    w->value[w->count++] = (struct value){{g->input, 0, in->channels}, "image.normalised"};
}

static void
add_tensors(struct onnx_builder *b, const struct graph_tensor *tensor, size_t count, const float *arena)
{
    size_t i;

    for (i = 0; i < count; i++)
        onnx_add_tensor(b, tensor[i].name, tensor[i].rank, tensor[i].shape, arena + tensor[i].offset);
}

/*
 * Add sigmoid(slope * logit + intercept).  Outputs without a calibration are computed with slope 1, and multiplied by
 * NaN in the end: the sigmoid of a runtime may turn NaN into a number.
 */
static void
add_calibrated(struct graph_walk *w, unsigned outputs)
{
    float *slope = onnx_take(w->b, outputs * sizeof(*slope)), *intercept = onnx_take(w->b, outputs * sizeof(*slope)),
          *mask = onnx_take(w->b, outputs * sizeof(*slope));
    const char *const product[] = {"logit", "calibration.slope"};
    const char *const sum[] = {"calibration.product", "calibration.intercept"};
    const char *const masked[] = {"calibration.sigmoid", "calibration.mask"}, *line = "calibration.line";
    unsigned fitted = 0, i;

    for (i = 0; !w->b->failed && w->m->slope && i < outputs; i++) {
        bool is = !isnan(w->m->slope[i]);

        fitted += is;
        slope[i] = is ? (float)w->m->slope[i] : 1;
        intercept[i] = is ? (float)w->m->intercept[i] : 0;
        mask[i] = is ? 1 : NAN;
    }
    if (fitted == 0)
        return;
    add_constant(w, product[1], outputs, slope, false);
    add_constant(w, sum[1], outputs, intercept, false);
    add_constant(w, masked[1], outputs, mask, false);
    onnx_add_node(w->b, "Mul", sum[0], product, 2);
    onnx_add_node(w->b, "Add", line, sum, 2);
    onnx_add_node(w->b, "Sigmoid", masked[0], &line, 1);
    onnx_add_node(w->b, "Mul", "calibrated", masked, 2);
    onnx_add_output(w->b, "calibrated", 1, &outputs);
}

/* Add the maps: the last layer as a convolution of single pixels. */
static void
add_maps(struct graph_walk *w, const struct graph_node *head, unsigned outputs)
{
    const struct graph *g = w->m->graph;
    const struct graph_buffer *seen = &g->buffer[w->head.mean->in.buffer];
    const unsigned weight[] = {outputs, head->in.channels, 1, 1}, map[] = {outputs, seen->height, seen->width};
    const char *const input[] = {w->before_mean, "cam.weight"};

    onnx_add_tensor(w->b, input[1], 4, weight, w->m->params + g->param[head->weight].offset);
    onnx_add_node(w->b, "Conv", "cam", input, 2);
    onnx_add_output(w->b, "cam", 3, map);
}

static void
add_outputs(struct graph_walk *w)
{
    unsigned outputs = w->head.outputs;
    const char *logit = "logit";

    onnx_add_node(w->b, "Sigmoid", "probability", &logit, 1);
    onnx_add_output(w->b, "probability", 1, &outputs);
    onnx_add_output(w->b, "logit", 1, &outputs);
    add_calibrated(w, outputs);
    add_maps(w, w->head.linear, outputs);
}

enum chex_status
onnx_build(struct onnx_builder *b, const struct onnx_model *m, struct chex_error *err)
{
    const struct graph *g = m->graph;
    struct graph_walk w = {.b = b, .m = m, .value = calloc(g->node_count + 1, sizeof(*w.value))};
    enum chex_status status = w.value ? CHEX_OK : error_memory(err);
    size_t i;

    if (status == CHEX_OK && !graph_find_head(g, &w.head))
        status = error_set(err, CHEX_ERR_UNSUPPORTED, "%s: " GRAPH_NO_HEAD, g->model);
    if (status != CHEX_OK) {
        free(w.value);
        return status;
    }
    add_tensors(b, g->param, g->param_count, m->params);
    add_tensors(b, g->stat, g->stat_count, m->stats);
    add_input(&w);
    for (i = 0; status == CHEX_OK && i < g->node_count; i++)
        status = add_node(&w, &g->node[i], err);
    if (status == CHEX_OK)
        add_outputs(&w);
    free(w.value);
    return status;
}
