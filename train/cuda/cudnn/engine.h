/*
 * engine.h - cuDNN as an engine for plain convolutions: those without a normalisation, without sums
 *
 * The model to keep in mind: cuDNN is asked about the shape of a convolution, once, and answers with an execution plan
 * or not at all.  It is asked by its heuristics and never by timing, and only engines are taken that are deterministic,
 * accumulate in fp32, compute the sum of products as it is written (no Winograd, no FFT) and need at most
 * CUDNN_WORKSPACE bytes: so the same library gives the same bits in every run, and the memory of a plan is known before
 * there is a device.
 *
 * A device may be described instead of being there: then cuDNN is asked, and nothing is run.
 *
 * In a build without cuDNN's header none.c stands in the place of engine.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_CUDNN_ENGINE_H
#define CHEX_CUDA_CUDNN_ENGINE_H

#include "backend/backend.h"
#include "cuda/plan/conv.h"

/* 92801 for 9.28.1, and "9.28.1"; 0 and why there is none: also where it is older than 9.11. */
unsigned cudnn_version(char text[BACKEND_LIBRARY]);

/*
 * cuDNN for the device that is current, or for one that is described in JSON, as cuDNN writes it; of values of one
 * precision.  cudnn_free() frees it; convolutions that were asked about live until then.
 * CHEX_ERR_UNSUPPORTED  there is no cuDNN, or it does not work here
 */
struct cudnn;
enum chex_status cudnn_new(enum precision precision, const char *described, struct cudnn **out, struct chex_error *err);
void cudnn_free(struct cudnn *c);

/*
 * Does cuDNN do this convolution?  pointers do not count, but those of `conv` are aligned by 16 bytes when it is run.
 * Gradients of weights are one sum (splits 1), and values instead of floats: cuDNN writes no others.
 * CHEX_ERR_UNSUPPORTED  cuDNN has failed otherwise
 */
enum chex_status cudnn_takes(struct cudnn *c, const struct cuda_conv *conv, bool *takes, struct chex_error *err);

/* Of one that it takes: "engine 57, 8.0 MiB of workspace". */
struct cudnn_choice {
    int64_t engine, workspace;
    bool compiled; /* at run time */
};
struct cudnn_choice cudnn_choice(const struct cudnn *c, const struct cuda_conv *conv);

/* The convolution of a launch. */
struct cuda_conv cudnn_conv_of(const struct cuda_op *op);

/* Put one that it takes into a stream, which may be one that is recorded; its workspace has CUDNN_WORKSPACE bytes. */
enum chex_status cudnn_run(struct cudnn *c, const struct cuda_op *op, cudaStream_t stream, struct chex_error *err);

#endif
