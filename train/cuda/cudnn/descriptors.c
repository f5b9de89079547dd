/*
 * descriptors.c - see descriptors.h
 *
 * A tensor has the dimensions [n][c][h][w] and the strides of NHWC.  So a slice of a slab is a tensor whose pixel
 * stride is the ld of the slab.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/cudnn/descriptors.h"

#include "base/memory.h"

#include <stdlib.h>

#define DIMENSIONS 4

cudnnBackendDescriptor_t
cudnn_make(struct cudnn_making *m, cudnnBackendDescriptorType_t type)
{
    struct cudnn_made *made = m->made;
    cudnnBackendDescriptor_t d = NULL, *grown;

    if (m->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    grown = array_grow(made->descriptor, &made->capacity, made->count, sizeof(d));
    if (grown)
        made->descriptor = grown;
    m->status = grown ? m->calls->BackendCreateDescriptor(type, &d)
                      : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    if (m->status == CUDNN_STATUS_SUCCESS)
        made->descriptor[made->count++] = d;
    return d;
}

void
cudnn_set(struct cudnn_making *m, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
          cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = m->calls->BackendSetAttribute(d, name, type, count, values);
}

void
cudnn_set_descriptor(struct cudnn_making *m, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value)
{
    cudnn_set(m, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void
cudnn_finalize(struct cudnn_making *m, cudnnBackendDescriptor_t d)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = m->calls->BackendFinalize(d);
}

void
cudnn_destroy(const struct cudnn_calls *calls, struct cudnn_made *made)
{
    while (made->count > 0)
        (void)calls->BackendDestroyDescriptor(made->descriptor[--made->count]);
    free(made->descriptor);
    made->descriptor = NULL;
    made->capacity = 0;
}

/* ---- a convolution as a graph of one operation ------------------------------------------------------------------- */

static cudnnBackendDescriptor_t
make_tensor(struct cudnn_making *m, int64_t uid, cudnnDataType_t type, const int64_t size[DIMENSIONS],
            const int64_t stride[DIMENSIONS])
{
    cudnnBackendDescriptor_t d = cudnn_make(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t alignment = 16;

    cudnn_set(m, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    cudnn_set(m, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnn_set(m, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    cudnn_set(m, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DIMENSIONS, size);
    cudnn_set(m, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DIMENSIONS, stride);
    cudnn_finalize(m, d);
    return d;
}

/* A slice of a slab: the first `channels` values of each pixel; consecutive pixels are ld values apart. */
static cudnnBackendDescriptor_t
make_slab(struct cudnn_making *m, cudnnDataType_t value, int64_t uid, unsigned images, unsigned channels,
          unsigned height, unsigned width, unsigned ld)
{
    int64_t row = (int64_t)width * ld;

    return make_tensor(m, uid, value, (int64_t[]){images, channels, height, width},
                       (int64_t[]){row * height, 1, row, ld});
}

static cudnnBackendDescriptor_t
make_weights(struct cudnn_making *m, cudnnDataType_t value, const struct cudnn_shape *s)
{
    int64_t row = (int64_t)s->kernel_w * s->in;

    return make_tensor(m, UID_W, value, (int64_t[]){s->out, s->in, s->kernel_h, s->kernel_w},
                       (int64_t[]){row * s->kernel_h, 1, row, s->in});
}

static cudnnBackendDescriptor_t
make_convolution(struct cudnn_making *m, const struct cudnn_shape *s)
{
    cudnnBackendDescriptor_t d = cudnn_make(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int64_t dimensions = 2, one[] = {1, 1}, stride[] = {s->stride, s->stride}, pad[] = {s->pad_h, s->pad_w};

    cudnn_set(m, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    cudnn_set(m, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnn_set(m, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cudnn_set(m, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    cudnn_set(m, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    cudnn_set(m, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one);
    cudnn_set(m, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    cudnn_finalize(m, d);
    return d;
}

/* The attributes of the operation for each kind of convolution. */
static const struct operation {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
} operations[] = {
    [CONV_FPROP] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CONV_DGRAD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CONV_WGRAD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnnBackendDescriptor_t
make_operation(struct cudnn_making *m, cudnnDataType_t value, const struct cudnn_shape *s)
{
    const struct operation *o = &operations[s->kind];
    cudnnBackendDescriptor_t x = make_slab(m, value, UID_X, s->images, s->in, s->height, s->width, s->x_ld);
    cudnnBackendDescriptor_t y = make_slab(m, value, UID_Y, s->images, s->out, s->out_height, s->out_width, s->y_ld);
    cudnnBackendDescriptor_t w = make_weights(m, value, s), conv = make_convolution(m, s), d = cudnn_make(m, o->type);
    float alpha = 1, beta = s->add ? 1 : 0;

    cudnn_set_descriptor(m, d, o->conv, conv);
    cudnn_set_descriptor(m, d, o->x, x);
    cudnn_set_descriptor(m, d, o->w, w);
    cudnn_set_descriptor(m, d, o->y, y);
    cudnn_set(m, d, o->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    cudnn_set(m, d, o->beta, CUDNN_TYPE_FLOAT, 1, &beta);
    cudnn_finalize(m, d);
    return d;
}

cudnnBackendDescriptor_t
cudnn_make_graph(struct cudnn_making *m, cudnnDataType_t value, cudnnHandle_t handle, const struct cudnn_shape *s)
{
    cudnnBackendDescriptor_t operation = make_operation(m, value, s);
    cudnnBackendDescriptor_t d = cudnn_make(m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

    cudnn_set_descriptor(m, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    if (handle)
        cudnn_set(m, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    cudnn_finalize(m, d);
    return d;
}
