/*
 * descriptors.h - a convolution in cuDNN's backend API: descriptors of a graph with one operation
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_CUDNN_DESCRIPTORS_H
#define CHEX_CUDA_CUDNN_DESCRIPTORS_H

#include "cuda/cudnn/library.h"
#include "cuda/plan/conv.h"

/* Ids of the tensors in a variant pack. */
enum { UID_X = 1, UID_W, UID_Y };

/* Everything that cuDNN needs to choose an engine.  Convolutions that differ here need separate execution plans. */
struct cudnn_shape {
    enum conv_kind kind;
    unsigned images, height, width, out_height, out_width, in, out, x_ld, y_ld;
    unsigned kernel_h, kernel_w, stride, pad_h, pad_w, add;
};

/*
 * Descriptors in order of creation; later ones refer to earlier ones.  cudnn_destroy() destroys them in reverse order.
 */
struct cudnn_made {
    cudnnBackendDescriptor_t *descriptor;
    size_t count, capacity;
};
void cudnn_destroy(const struct cudnn_calls *calls, struct cudnn_made *made);

/* Collects the first error; calls after it have no effect. */
struct cudnn_making {
    const struct cudnn_calls *calls;
    struct cudnn_made *made;
    cudnnStatus_t status;
};
cudnnBackendDescriptor_t cudnn_make(struct cudnn_making *m, cudnnBackendDescriptorType_t type);
void cudnn_set(struct cudnn_making *m, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int64_t count, const void *values);
void cudnn_set_descriptor(struct cudnn_making *m, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                          cudnnBackendDescriptor_t value);
void cudnn_finalize(struct cudnn_making *m, cudnnBackendDescriptor_t d);

/* Creates the graph of a convolution on tensors of type `value`.  Without a handle, it is for a described device. */
cudnnBackendDescriptor_t cudnn_make_graph(struct cudnn_making *m, cudnnDataType_t value, cudnnHandle_t handle,
                                          const struct cudnn_shape *s);

#endif
