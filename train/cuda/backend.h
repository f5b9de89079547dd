/*
 * backend.h - the backend for NVIDIA GPUs
 *
 * A plan is memory and lists of launches.  plan/ makes both from the graph, before there is a GPU and without the CUDA
 * runtime; run/ allocates the memory and launches the lists, step by step, usually as a recorded graph.
 *
 * Each folder may use those to its left:
 *
 *     kernels < plan < cudnn < run < comm
 *
 * kernels/  kernels of each type of value, the struct that each takes, the table of kernels, a launch as data
 * plan/     tile shapes of convolutions, memory by live ranges, lists of launches; the cost model of `chex-train -n -v`
 * cudnn/    convolutions by cuDNN
 * run/      devices, streams and events, a step, an evaluation, images on the device, errors
 * comm/     sums over the ranks: by NCCL, or by messages between the hosts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_BACKEND_H
#define CHEX_CUDA_BACKEND_H

#include "backend/backend.h"

#ifdef CUDA_EMULATED
#define backend_cuda backend_cuda_emulated
#define CUDA_BACKEND "cuda-emulated"
#else
#define CUDA_BACKEND "cuda"
#endif
extern const struct backend backend_cuda;

#endif
