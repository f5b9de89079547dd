/*
 * onnx_private.h - builds the messages of an ONNX file; declarations shared by onnx*.c
 *
 * The builder owns every message and string that it makes.  If memory runs out it sets `failed`, and later calls do
 * nothing, so the caller checks once, at the end.  A value is named after the operation that writes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_ONNX_PRIVATE_H
#define CHEX_TRAIN_ONNX_PRIVATE_H

#include "export/onnx.h"

#include "schemas/onnx.pb-c.h"

struct onnx_builder {
    Chex__GraphProto graph;
    size_t node_capacity, initializer_capacity, output_capacity;
    void **owned;
    size_t owned_count, owned_capacity;
    bool failed;
};

/* The generated structs have char * where nothing is written. */
static inline char *
onnx_name(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Returns zeroed memory that onnx_builder_release() frees; NULL when out of memory. */
void *onnx_take(struct onnx_builder *b, size_t size);
/* Returns the formatted text; "" when out of memory. */
const char *onnx_text(struct onnx_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Add an operation that reads these values and writes the value `name`.  The names must live as long as the builder.
 * Returns NULL when out of memory; the functions for attributes ignore it.
 */
Chex__NodeProto *onnx_add_node(struct onnx_builder *b, const char *op, const char *name, const char *const *input,
                               size_t inputs);
void onnx_attribute_int(struct onnx_builder *b, Chex__NodeProto *node, const char *name, int64_t value);
void onnx_attribute_ints(struct onnx_builder *b, Chex__NodeProto *node, const char *name, size_t count, int64_t value);
void onnx_attribute_float(struct onnx_builder *b, Chex__NodeProto *node, const char *name, float value);

/* Add a constant; its values are not copied. */
void onnx_add_tensor(struct onnx_builder *b, const char *name, size_t rank, const unsigned *shape, const float *value);
/* Set the input, or add an output, of this shape for each image. */
void onnx_set_input(struct onnx_builder *b, const char *name, size_t rank, const unsigned *shape);
void onnx_add_output(struct onnx_builder *b, const char *name, size_t rank, const unsigned *shape);

void onnx_builder_release(struct onnx_builder *b);

/* onnx_graph.c: add all operations, constants, the input and the outputs of the network. */
enum chex_status onnx_build(struct onnx_builder *b, const struct onnx_model *m, struct chex_error *err);

#endif
