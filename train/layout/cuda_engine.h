/*
 * cuda_engine.h - which convolutions are those of cuDNN
 *
 * A convolution of cuDNN is plain: what it reads was normalised and written before, what it writes is summed behind it,
 * and its gradient of data is masked by a launch of its own.  So cuDNN has to be that much faster as these cost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_ENGINE_H
#define CHEX_CUDA_ENGINE_H

#include "layout/cuda_fold.h"
#include "layout/cuda_layout.h"

/*
 * is[node] for each node of the graph: cuDNN is to do it.  fold: as it is where own kernels do all of them.  Depends on
 * shapes, options and the generation of the chip, so that all ranks, and plan_size() anywhere, choose the same.
 */
void cuda_engine_choose(const struct cuda_layout *l, const struct cuda_fold *fold, bool *is);

/* Seconds of a convolution and of what is launched for it, by a model: forward, and of a training backward too. */
struct cuda_engine_times {
    double own, cudnn;
};
struct cuda_engine_times cuda_engine_model(const struct conv_args *a, bool norm, bool train);

#endif
