/*
 * runtime.h - launches kernels through the CUDA runtime
 *
 * A launch is put into a stream and returns; a later call reports an error on the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_RUNTIME_H
#define CHEX_CUDA_KERNELS_RUNTIME_H

#include "cuda/kernels/launch.h"

#include <cuda_runtime_api.h>

/* Call it once per device, before the first launch. */
cudaError_t cuda_prepare(const struct cuda_kernel *set);

cudaError_t cuda_launch(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream);

/*
 * As cuda_launch(), with programmatic dependent launch: its CTAs may start while the preceding kernel is still running,
 * and then wait for it (device.h).  The preceding entry of the stream must be a kernel of a table, and
 * cuda_launches_early() must be true.
 */
cudaError_t cuda_launch_early(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream);
/*
 * Sets *early if the current device supports such launches and its kernels contain the wait.  Code that a driver
 * compiled from PTX of an older generation does not.
 */
cudaError_t cuda_launches_early(const struct cuda_kernel *set, bool *early);

#endif
