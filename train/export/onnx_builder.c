/*
 * onnx_builder.c - the messages of an ONNX file; see onnx_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "export/onnx_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Make the builder the owner of this memory, which may be NULL. */
static void *
own(struct onnx_builder *b, void *memory)
{
    void **grown = memory ? array_grow(b->owned, &b->owned_capacity, b->owned_count, sizeof(*b->owned)) : NULL;

    if (!grown) {
        free(memory);
        b->failed = true;
        return NULL;
    }
    b->owned = grown;
    b->owned[b->owned_count++] = memory;
    return memory;
}

void *
onnx_take(struct onnx_builder *b, size_t size)
{
    return b->failed ? NULL : own(b, calloc(1, size > 0 ? size : 1));
}

const char *
onnx_text(struct onnx_builder *b, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (b->failed || vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    text = own(b, text);
    return text ? text : "";
}

void
onnx_builder_release(struct onnx_builder *b)
{
    while (b->owned_count > 0)
        free(b->owned[--b->owned_count]);
    free(b->owned);
    free(b->graph.node);
    free(b->graph.initializer);
    free(b->graph.output);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

Chex__NodeProto *
onnx_add_node(struct onnx_builder *b, const char *op, const char *name, const char *const *input, size_t inputs)
{
    Chex__NodeProto *node = onnx_take(b, sizeof(*node)), **grown;
    char **read = onnx_take(b, inputs * sizeof(*read)), **written = onnx_take(b, sizeof(*written));
    size_t i;

    if (b->failed)
        return NULL;
    grown = array_grow(b->graph.node, &b->node_capacity, b->graph.n_node, sizeof(*b->graph.node));
    if (!grown) {
        b->failed = true;
        return NULL;
    }
    b->graph.node = grown;
    chex__node_proto__init(node);
    for (i = 0; i < inputs; i++)
        read[i] = onnx_name(input[i]);
    written[0] = onnx_name(name);
    node->op_type = onnx_name(op);
    node->name = onnx_name(name);
    node->input = read;
    node->n_input = inputs;
    node->output = written;
    node->n_output = 1;
    return b->graph.node[b->graph.n_node++] = node;
}

#define ATTRIBUTES 4 /* the most of an operation */

static Chex__AttributeProto *
add_attribute(struct onnx_builder *b, Chex__NodeProto *node, const char *name, Chex__AttributeProto__AttributeType type)
{
    Chex__AttributeProto *attribute = onnx_take(b, sizeof(*attribute));

    if (node && !node->attribute)
        node->attribute = onnx_take(b, ATTRIBUTES * sizeof(*node->attribute));
    if (b->failed)
        return NULL;
    chex__attribute_proto__init(attribute);
    attribute->name = onnx_name(name);
    attribute->has_type = true;
    attribute->type = type;
    return node->attribute[node->n_attribute++] = attribute;
}

void
onnx_attribute_int(struct onnx_builder *b, Chex__NodeProto *node, const char *name, int64_t value)
{
    Chex__AttributeProto *attribute = add_attribute(b, node, name, CHEX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    if (!attribute)
        return;
    attribute->has_i = true;
    attribute->i = value;
}

void
onnx_attribute_ints(struct onnx_builder *b, Chex__NodeProto *node, const char *name, size_t count, int64_t value)
{
    Chex__AttributeProto *attribute = add_attribute(b, node, name, CHEX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *values = onnx_take(b, count * sizeof(*values));
    size_t i;

    if (!attribute || !values)
        return;
    for (i = 0; i < count; i++)
        values[i] = value;
    attribute->ints = values;
    attribute->n_ints = count;
}

void
onnx_attribute_float(struct onnx_builder *b, Chex__NodeProto *node, const char *name, float value)
{
    Chex__AttributeProto *attribute = add_attribute(b, node, name, CHEX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    if (!attribute)
        return;
    attribute->has_f = true;
    attribute->f = value;
}

/* ---- constants, input and outputs -------------------------------------------------------------------------------- */

void
onnx_add_tensor(struct onnx_builder *b, const char *name, size_t rank, const unsigned *shape, const float *value)
{
    Chex__TensorProto *t = onnx_take(b, sizeof(*t)), **grown;
    int64_t *dims = onnx_take(b, rank * sizeof(*dims));
    size_t count = 1, i;

    if (b->failed)
        return;
    grown = array_grow(b->graph.initializer, &b->initializer_capacity, b->graph.n_initializer, sizeof(*grown));
    if (!grown) {
        b->failed = true;
        return;
    }
    b->graph.initializer = grown;
    chex__tensor_proto__init(t);
    for (i = 0; i < rank; i++) {
        dims[i] = shape[i];
        count *= shape[i];
    }
    t->name = onnx_name(name);
    t->dims = dims;
    t->n_dims = rank;
    t->has_data_type = true;
    t->data_type = CHEX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){count * sizeof(*value), (uint8_t *)(uintptr_t)value};
    b->graph.initializer[b->graph.n_initializer++] = t;
}

/* Describe a value: [N] and then the shape of one image. */
static Chex__ValueInfoProto *
make_value(struct onnx_builder *b, const char *name, Chex__TensorProto__DataType type, size_t rank,
           const unsigned *shape)
{
    struct {
        Chex__ValueInfoProto value;
        Chex__TypeProto type;
        Chex__TypeProto__Tensor tensor;
        Chex__TensorShapeProto shape;
        Chex__TensorShapeProto__Dimension dimension[4], *list[4];
    } *v = onnx_take(b, sizeof(*v));
    size_t i;

    if (!v)
        return NULL;
    chex__value_info_proto__init(&v->value);
    chex__type_proto__init(&v->type);
    chex__type_proto__tensor__init(&v->tensor);
    chex__tensor_shape_proto__init(&v->shape);
    for (i = 0; i <= rank; i++) {
        chex__tensor_shape_proto__dimension__init(&v->dimension[i]);
        v->dimension[i].value_case = i == 0 ? CHEX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                            : CHEX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (i == 0)
            v->dimension[i].dim_param = onnx_name("N");
        else
            v->dimension[i].dim_value = shape[i - 1];
        v->list[i] = &v->dimension[i];
    }
    v->shape.dim = v->list;
    v->shape.n_dim = rank + 1;
    v->tensor.has_elem_type = true;
    v->tensor.elem_type = (int32_t)type;
    v->tensor.shape = &v->shape;
    v->type.value_case = CHEX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type.tensor_type = &v->tensor;
    v->value.name = onnx_name(name);
    v->value.type = &v->type;
    return &v->value;
}

void
onnx_set_input(struct onnx_builder *b, const char *name, size_t rank, const unsigned *shape)
{
    Chex__ValueInfoProto **list = onnx_take(b, sizeof(*list));
    Chex__ValueInfoProto *value = make_value(b, name, CHEX__TENSOR_PROTO__DATA_TYPE__UINT8, rank, shape);

    if (b->failed)
        return;
    list[0] = value;
    b->graph.input = list;
    b->graph.n_input = 1;
}

void
onnx_add_output(struct onnx_builder *b, const char *name, size_t rank, const unsigned *shape)
{
    Chex__ValueInfoProto *value = make_value(b, name, CHEX__TENSOR_PROTO__DATA_TYPE__FLOAT, rank, shape), **grown;

    if (b->failed)
        return;
    grown = array_grow(b->graph.output, &b->output_capacity, b->graph.n_output, sizeof(*grown));
    if (!grown) {
        b->failed = true;
        return;
    }
    b->graph.output = grown;
    b->graph.output[b->graph.n_output++] = value;
}
