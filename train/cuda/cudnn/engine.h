/*
 * engine.h - cuDNN as an engine for plain convolutions, without a fused BN and without channel sums
 *
 * For each convolution shape, a single query to cuDNN returns an execution plan or nothing.  The choice uses cuDNN's
 * heuristics and never timing.  An engine is accepted only if it
 *
 * - is deterministic and accumulates in fp32;
 * - computes the sum of products directly (no Winograd, no FFT);
 * - needs at most CUDNN_WORKSPACE bytes of workspace.
 *
 * So the same version of the library gives the same bits in every run, and the memory of a plan is known without a
 * device.
 *
 * cuDNN can also be asked for a device that is only described: then plans can be examined, but not run.
 *
 * A build without cuDNN's header compiles none.c instead of engine.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_CUDNN_ENGINE_H
#define CHEX_CUDA_CUDNN_ENGINE_H

#include "backend/backend.h"
#include "cuda/kernels/runtime.h"
#include "cuda/plan/conv.h"

/*
 * Returns the version and writes its text: 92801 and "9.28.1".  Returns 0 and writes the reason if there is no cuDNN,
 * or if it is older than 9.11.
 */
unsigned cudnn_version(char text[BACKEND_LIBRARY]);

/*
 * Opens cuDNN for the current device, or for a device described in cuDNN's JSON, with values of one precision.
 * cudnn_free() frees it together with its execution plans.
 * CHEX_ERR_UNSUPPORTED  there is no cuDNN, or it does not work here
 */
struct cudnn;
enum chex_status cudnn_new(enum precision precision, const char *described, struct cudnn **out, struct chex_error *err);
void cudnn_free(struct cudnn *c);

/*
 * Sets *takes if cuDNN can run this convolution.  The pointers in `conv` are ignored here, but must be aligned to 16
 * bytes in cudnn_run().  wgrad: one sum (splits is 1), written in the value type, because cuDNN writes nothing else.
 * CHEX_ERR_UNSUPPORTED  cuDNN failed for another reason
 */
enum chex_status cudnn_takes(struct cudnn *c, const struct cuda_conv *conv, bool *takes, struct chex_error *err);

/* The choice for a convolution that cudnn_takes() accepted, for example engine 57 with 8 MiB of workspace. */
struct cudnn_choice {
    int64_t engine, workspace;
    bool compiled; /* the engine is compiled at run time */
};
struct cudnn_choice cudnn_choice(const struct cudnn *c, const struct cuda_conv *conv);

/*
 * Puts an accepted convolution into a stream, which may be capturing.  Its workspace must have CUDNN_WORKSPACE bytes.
 */
enum chex_status cudnn_run(struct cudnn *c, const struct cuda_op *op, cudaStream_t stream, struct chex_error *err);

#endif
