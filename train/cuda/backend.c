/*
 * backend.c - the table of functions of the backend (backend/backend.h); see backend.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/backend.h"

#include "cuda/comm/reduce.h"
#include "cuda/cudnn/engine.h"
#include "cuda/run/plan.h"

#include <stdio.h>

static enum chex_status
open_device(unsigned number, struct device **out, struct chex_error *err)
{
    return cuda_device_open(&backend_cuda, number, out, err);
}

static enum chex_status
imagine_device(const char *model, struct device **out, struct chex_error *err)
{
    return cuda_device_imagine(&backend_cuda, model, out, err);
}

/* The CUDA runtime is linked, the others are opened. */
static const char *
library(unsigned number, char text[BACKEND_LIBRARY])
{
    static const char *const names[] = {"nccl", "cudnn", "cuda"};

    if (number >= sizeof(names) / sizeof(names[0]))
        return NULL;
    if (number == 0)
        (void)reduce_nccl_version(text);
    else if (number == 1)
        (void)cudnn_version(text);
    else
        snprintf(text, BACKEND_LIBRARY, "%d.%d, kernels for %s", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
                 CUDA_CODE);
    return names[number];
}

const struct backend backend_cuda = {
    .name = CUDA_BACKEND,
    .device_count = cuda_device_count,
    .device_absence = cuda_device_absence,
    .device_open = open_device,
    .device_imagine = imagine_device,
    .device_close = cuda_device_close,
    .library = library,
    .reduce_new = cuda_reduce_new,
    .store_new = cuda_store_new,
    .store_put = cuda_store_put,
    .store_free = cuda_store_free,
    .plan_size = cuda_plan_size,
    .plan_model = cuda_plan_model,
    .plan_new = cuda_plan_new,
    .plan_free = cuda_plan_free,
    .measure_launches = cuda_measure_launches,
    .write = cuda_write,
    .read = cuda_read,
    .read_concurrently = cuda_read_concurrently,
    .set_state = cuda_set_state,
    .accumulate = cuda_accumulate,
    .update = cuda_update,
    .result = cuda_result,
    .resume = cuda_resume,
    .score_start = cuda_score_start,
    .score_finish = cuda_score_finish,
    .peek = cuda_peek,
};
