/*
 * size.c - see size.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/size.h"

#include "base/sha256.h"
#include "cuda/plan/model.h"

#include <stdio.h>
#include <string.h>

/*
 * The version of the algorithms: change it when the same input gives other bits.  All GPUs share one version, although
 * their bits differ, so that a run can continue on another GPU.
 */
#define ALGORITHMS "cuda 5"

#define MODEL_BASE CUDA_ALIGN /* base address of a layout without memory: no array of it is at the null pointer */

#define PDL_MAJOR 9 /* lowest compute capability with programmatic dependent launch */

bool
cuda_size_has_cudnn(const struct cuda_layout *l)
{
    size_t i;

    for (i = 0; i < l->graph->node_count; i++)
        if (l->cudnn[i])
            return true;
    return false;
}

/* Hashes the precision and the list of convolutions that cuDNN runs. */
static enum chex_status
hash_algorithms(const struct cuda_layout *l, enum precision precision, char hex[PLAN_ALGORITHMS],
                struct chex_error *err)
{
    struct digest *digest = digest_new();
    uint8_t hash[DIGEST_SIZE];
    char text[32];

    if (!digest)
        return error_memory(err);
    snprintf(text, sizeof(text), ALGORITHMS " %s", precision_names[precision]);
    digest_start(digest);
    digest_add(digest, text, strlen(text));
    if (cuda_size_has_cudnn(l))
        digest_add(digest, l->cudnn, l->graph->node_count * sizeof(*l->cudnn));
    digest_finish(digest, hash);
    digest_free(digest);
    digest_hex(hash, (PLAN_ALGORITHMS - 1) / 2, hex);
    return CHEX_OK;
}

enum precision
cuda_size_precision(const struct device *device, enum precision wanted)
{
    return wanted == PRECISION_AUTO ? device->info.precision : wanted;
}

static void
describe_engine(const struct cuda_layout *l, const char *version, char text[PLAN_ENGINE])
{
    size_t convolutions = 0, theirs = 0, i;

    for (i = 0; i < l->graph->node_count; i++) {
        convolutions += l->graph->node[i].op == GRAPH_CONV;
        theirs += l->cudnn[i] != 0;
    }
    if (theirs > 0)
        snprintf(text, PLAN_ENGINE, "%zu of %zu convolutions by cuDNN %s", theirs, convolutions, version);
    else
        snprintf(text, PLAN_ENGINE, "own kernels");
}

enum chex_status
cuda_size_layout(const struct cuda_device *device, const struct plan_options *o, const unsigned char *refused,
                 const char *version, bool measure, struct cuda_layout *layout, struct plan_facts *facts,
                 struct chex_error *err)
{
    struct cuda_chip chip;
    enum chex_status status = cuda_chip_of(device, o->precision, &chip, err);

    *layout = (struct cuda_layout){.options = NULL};
    chip.refused = refused;
    if (status == CHEX_OK && o->engine == ENGINE_CUDNN && o->precision == PRECISION_TF32)
        status = error_set(err, CHEX_ERR_UNSUPPORTED, "--engine cudnn does not compute in tf32, but in fp16 and bf16");
    if (status == CHEX_OK)
        status = measure ? cuda_layout_measure(layout, o, &chip, err)
                         : cuda_layout_make(layout, o, &chip, MODEL_BASE, err);
    if (status == CHEX_OK)
        status = hash_algorithms(layout, o->precision, facts->algorithms, err);
    if (status == CHEX_OK)
        describe_engine(layout, version, facts->engine);
    facts->precision = o->precision;
    facts->pdl = o->pdl && device->major >= PDL_MAJOR;
    facts->memory = layout->memory;
    return status;
}

enum chex_status
cuda_size(const struct device *device, const struct plan_options *o, const char *version, struct plan_facts *facts,
          struct chex_error *err)
{
    const struct cuda_device *d = (const struct cuda_device *)(const void *)device;
    struct plan_options chosen = *o;
    struct cuda_layout layout;
    enum chex_status status;

    chosen.precision = cuda_size_precision(device, o->precision);
    status = cuda_size_layout(d, &chosen, NULL, version, true, &layout, facts, err);
    cuda_layout_free(&layout);
    return status;
}

enum chex_status
cuda_size_model(const struct device *device, const struct plan_options *o, const struct cuda_layout *layout,
                const char *version, struct plan_model *out, struct chex_error *err)
{
    const struct cuda_device *d = (const struct cuda_device *)(const void *)device;
    struct cuda_gpu gpu = cuda_gpu_like(device->info.text, d->major);
    struct plan_options chosen = *o;
    struct cuda_layout made;
    struct plan_facts facts;
    enum chex_status status;

    *out = (struct plan_model){.launch = NULL};
    snprintf(out->device, sizeof(out->device), "%s of %u multiprocessors", gpu.name, gpu.processors);
    chosen.precision = cuda_size_precision(device, o->precision);
    cuda_gpu_set_value(&gpu, chosen.precision == PRECISION_BF16   ? CUDA_BF16
                             : chosen.precision == PRECISION_TF32 ? CUDA_TF32
                                                                  : CUDA_FP16);
    if (layout)
        return cuda_model_make(layout, &gpu, out, err);
    status = cuda_size_layout(d, &chosen, NULL, version, false, &made, &facts, err);
    if (status == CHEX_OK)
        status = cuda_model_make(&made, &gpu, out, err);
    cuda_layout_free(&made);
    return status;
}
