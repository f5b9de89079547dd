/*
 * backend_none.c - replaces backend.c in a build without CUDA
 *
 * The backend has no devices, but plans of imagined ones.  So chex-train -n works for a GPU that the user does not
 * have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/backend.h"

#include "cuda/plan/size.h"
#include "ranks/collective.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned
no_devices(void)
{
    return 0;
}

static bool
device_absence(char why[BACKEND_LIBRARY])
{
    snprintf(why, BACKEND_LIBRARY, "this build has no CUDA; chex-train(1), A GPU, says how to build with it");
    return false;
}

static enum chex_status
open_device(unsigned number, struct device **out, struct chex_error *err)
{
    char why[BACKEND_LIBRARY];

    (void)number;
    *out = NULL;
    (void)device_absence(why);
    return error_set(err, CHEX_ERR_UNSUPPORTED, "%s", why);
}

static enum chex_status
imagine_device(const char *model, struct device **out, struct chex_error *err)
{
    return cuda_device_imagine(&backend_cuda, model, out, err);
}

/* The ranks of a dry run have a reducer, but never sum by it. */
static bool
free_reducer(struct reduce *r)
{
    free(r);
    return true;
}

static enum chex_status
new_reducer(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    static const struct reduce_ops ops = {.free = free_reducer};

    (void)device;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return error_memory(err);
    **out = (struct reduce){.rank = collective_rank(c), .size = collective_size(c), .ops = &ops};
    return CHEX_OK;
}

static enum chex_status
refuse_cudnn(const struct plan_options *o, struct chex_error *err)
{
    if (o->engine != ENGINE_CUDNN)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_UNSUPPORTED, "--engine cudnn: this build has no cuDNN");
}

static enum chex_status
plan_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts, struct chex_error *err)
{
    enum chex_status status = refuse_cudnn(o, err);

    return status == CHEX_OK ? cuda_size(device, o, "", facts, err) : status;
}

static enum chex_status
plan_model(const struct device *device, const struct plan_options *o, const struct plan *plan, struct plan_model *out,
           struct chex_error *err)
{
    enum chex_status status = refuse_cudnn(o, err);

    (void)plan; /* there are none */
    *out = (struct plan_model){.launch = NULL};
    return status == CHEX_OK ? cuda_size_model(device, o, NULL, "", out, err) : status;
}

static void
no_plan(struct plan *plan)
{
    (void)plan;
}

const struct backend backend_cuda = {
    .name = CUDA_BACKEND,
    .device_count = no_devices,
    .device_absence = device_absence,
    .device_open = open_device,
    .device_imagine = imagine_device,
    .device_close = cuda_device_close,
    .reduce_new = new_reducer,
    .plan_size = plan_size,
    .plan_model = plan_model,
    .plan_free = no_plan,
};
