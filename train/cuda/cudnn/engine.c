/*
 * engine.c - asks cuDNN for execution plans and runs them; see engine.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/cudnn/engine.h"

#include "base/memory.h"
#include "cuda/cudnn/descriptors.h"
#include "cuda/plan/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST       91100 /* 9.11 */
#define MOST_CONFIGS 16    /* per query of the heuristics; the first usable one is taken */
#define MOST_NOTES   16

struct answer {
    struct cudnn_shape shape;
    struct cudnn_made made;
    cudnnBackendDescriptor_t plan; /* NULL: cuDNN does not support this convolution */
    struct cudnn_choice choice;
};

struct cudnn {
    const struct cudnn_calls *calls;
    cudnnHandle_t handle;            /* NULL: the device is only described */
    cudnnBackendDescriptor_t device; /* its description, or NULL */
    cudnnDataType_t value;
    struct answer **answer;
    size_t count, capacity;
};

static enum chex_status
check(const struct cudnn_calls *calls, cudnnStatus_t status, const char *what, struct chex_error *err)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return CHEX_OK;
    if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
        return error_memory(err);
    return error_set(err, CHEX_ERR_UNSUPPORTED, "cuDNN, %s: %s; --engine own does without it", what,
                     calls->GetErrorString(status));
}

/* ---- which engine ------------------------------------------------------------------------------------------------ */

/* Returns true for the numerical notes that engine.h excludes. */
static bool
is_refused(cudnnBackendNumericalNote_t note)
{
    switch (note) {
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return true;
    default:
        return false;
    }
}

/* Reads the engine of a configuration.  Returns true if its notes allow it. */
static bool
may_take(struct cudnn_making *m, cudnnBackendDescriptor_t config, struct cudnn_choice *choice)
{
    const struct cudnn_calls *calls = m->calls;
    cudnnBackendDescriptor_t engine = cudnn_make(m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t note[MOST_NOTES];
    cudnnBackendBehaviorNote_t behavior[MOST_NOTES];
    int64_t count = 0, i;

    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = calls->BackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                               &count, &engine);
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = calls->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                               &choice->engine);
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = calls->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                               MOST_NOTES, &count, behavior);
    choice->compiled = false;
    for (i = 0; i < count && m->status == CUDNN_STATUS_SUCCESS; i++)
        choice->compiled |= behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = calls->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                               MOST_NOTES, &count, note);
    for (i = 0; i < count && m->status == CUDNN_STATUS_SUCCESS; i++)
        if (is_refused(note[i]))
            return false;
    return m->status == CUDNN_STATUS_SUCCESS;
}

/* Creates the execution plan of a configuration.  Returns NULL if cuDNN cannot, or if it needs too much workspace. */
static cudnnBackendDescriptor_t
make_plan(struct cudnn_making *m, const struct cudnn *c, cudnnBackendDescriptor_t config, struct cudnn_choice *choice)
{
    cudnnBackendDescriptor_t d = cudnn_make(m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    struct cudnn_making one = *m;
    int64_t count = 0;

    cudnn_set_descriptor(&one, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (c->handle)
        cudnn_set(&one, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->handle);
    else
        cudnn_set_descriptor(&one, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, c->device);
    cudnn_finalize(&one, d);
    if (one.status == CUDNN_STATUS_SUCCESS)
        one.status = m->calls->BackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                                   &count, &choice->workspace);
    return one.status == CUDNN_STATUS_SUCCESS && choice->workspace <= (int64_t)CUDNN_WORKSPACE ? d : NULL;
}

/* Asks the heuristics, in one mode, for configurations; the best comes first.  Returns their number. */
static int64_t
ask_heuristics(struct cudnn_making *m, const struct cudnn *c, cudnnBackendDescriptor_t graph,
               cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t config[MOST_CONFIGS])
{
    cudnnBackendDescriptor_t d = cudnn_make(m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    struct cudnn_making one;
    int64_t count = 0;
    int i;

    for (i = 0; i < MOST_CONFIGS; i++)
        config[i] = cudnn_make(m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    one = *m;
    cudnn_set_descriptor(&one, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    cudnn_set(&one, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (c->device)
        cudnn_set_descriptor(&one, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, c->device);
    cudnn_finalize(&one, d);
    if (one.status == CUDNN_STATUS_SUCCESS)
        one.status = m->calls->BackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                   MOST_CONFIGS, &count, config);
    return one.status == CUDNN_STATUS_SUCCESS ? count : 0;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void
choose(struct cudnn_making *m, const struct cudnn *c, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
       struct answer *a)
{
    cudnnBackendDescriptor_t config[MOST_CONFIGS];
    int64_t count = ask_heuristics(m, c, graph, mode, config), i;

    for (i = 0; i < count && !a->plan && m->status == CUDNN_STATUS_SUCCESS; i++)
        if (may_take(m, config[i], &a->choice))
            a->plan = make_plan(m, c, config[i], &a->choice);
}

/* A refused graph means that cuDNN does not support the convolution; other failures are errors. */
static bool
is_no(cudnnStatus_t status)
{
    return status >= CUDNN_STATUS_BAD_PARAM && status < CUDNN_STATUS_INTERNAL_ERROR;
}

static enum chex_status
ask(struct cudnn *c, struct answer *a, struct chex_error *err)
{
    struct cudnn_making m = {c->calls, &a->made, CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t graph = cudnn_make_graph(&m, c->value, c->handle, &a->shape);

    if (is_no(m.status))
        return CHEX_OK;
    choose(&m, c, graph, CUDNN_HEUR_MODE_A, a);
    if (!a->plan)
        choose(&m, c, graph, CUDNN_HEUR_MODE_FALLBACK, a);
    return check(c->calls, m.status, "asking about a convolution", err);
}

static struct cudnn_shape
shape_of(const struct cuda_conv *conv)
{
    const struct conv_shape *s = &conv->shape;

    return (struct cudnn_shape){.kind = conv->kind,
                                .images = s->images,
                                .height = s->height,
                                .width = s->width,
                                .out_height = s->out_height,
                                .out_width = s->out_width,
                                .in = s->in,
                                .out = s->out,
                                .x_ld = s->x_ld,
                                .y_ld = s->y_ld,
                                .kernel_h = s->kernel_h,
                                .kernel_w = s->kernel_w,
                                .stride = s->stride,
                                .pad_h = s->pad_h,
                                .pad_w = s->pad_w,
                                .add = conv->kind == CONV_DGRAD && conv->dgrad.add};
}

static struct answer *
find_answer(const struct cudnn *c, const struct cudnn_shape *shape)
{
    size_t i;

    for (i = 0; i < c->count; i++)
        if (memcmp(&c->answer[i]->shape, shape, sizeof(*shape)) == 0)
            return c->answer[i];
    return NULL;
}

static void
free_answer(const struct cudnn_calls *calls, struct answer *a)
{
    cudnn_destroy(calls, &a->made);
    free(a);
}

static enum chex_status
add_answer(struct cudnn *c, const struct cudnn_shape *shape, struct answer **out, struct chex_error *err)
{
    struct answer **grown = array_grow(c->answer, &c->capacity, c->count, sizeof(*grown));
    struct answer *a = calloc(1, sizeof(*a));
    enum chex_status status;

    if (grown)
        c->answer = grown;
    if (!grown || !a) {
        free(a);
        return error_memory(err);
    }
    a->shape = *shape;
    status = ask(c, a, err);
    if (status != CHEX_OK) {
        free_answer(c->calls, a);
        return status;
    }
    c->answer[c->count++] = *out = a;
    return CHEX_OK;
}

/* A convolution with a fused BN, with channel sums or with split-K is not plain. */
static bool
is_plain(const struct cuda_conv *conv)
{
    const struct channel_sums *sums = cuda_conv_sums(conv);

    return !cuda_conv_norm(conv)->gamma && !(sums && sums->partial) && conv->shape.in <= conv->shape.x_ld &&
           conv->splits <= 1;
}

enum chex_status
cudnn_takes(struct cudnn *c, const struct cuda_conv *conv, bool *takes, struct chex_error *err)
{
    struct cudnn_shape shape = shape_of(conv);
    struct answer *a = is_plain(conv) ? find_answer(c, &shape) : NULL;
    enum chex_status status = CHEX_OK;

    if (!a && is_plain(conv))
        status = add_answer(c, &shape, &a, err);
    *takes = status == CHEX_OK && a && a->plan;
    return status;
}

struct cudnn_choice
cudnn_choice(const struct cudnn *c, const struct cuda_conv *conv)
{
    struct cudnn_shape shape = shape_of(conv);

    return find_answer(c, &shape)->choice;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

#define TENSORS 3

/* Sets the tensors of a convolution: x or dx, w or its gradient, y or dy. */
static void
set_tensors(const struct cuda_conv *c, const void *at[TENSORS])
{
    switch (c->kind) {
    case CONV_FPROP:
        at[0] = c->fprop.x, at[1] = c->fprop.w, at[2] = c->fprop.y;
        break;
    case CONV_DGRAD:
        at[0] = c->dgrad.dx, at[1] = c->dgrad.w, at[2] = c->dgrad.dy;
        break;
    case CONV_WGRAD:
        at[0] = c->wgrad.x, at[1] = c->wgrad.partial, at[2] = c->wgrad.dy;
        break;
    }
}

enum chex_status
cudnn_run(struct cudnn *c, const struct cuda_op *op, cudaStream_t stream, struct chex_error *err)
{
    const struct cuda_conv conv = cuda_conv_of(op);
    const struct cudnn_shape shape = shape_of(&conv);
    const struct answer *answer = find_answer(c, &shape);
    struct cudnn_made made = {.count = 0};
    struct cudnn_making m = {c->calls, &made, CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t pack = cudnn_make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const int64_t uid[TENSORS] = {UID_X, UID_W, UID_Y};
    const void *pointer[TENSORS];

    set_tensors(&conv, pointer);
    cudnn_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, TENSORS, uid);
    cudnn_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, TENSORS, pointer);
    cudnn_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &op->workspace);
    cudnn_finalize(&m, pack);
    if (m.status == CUDNN_STATUS_SUCCESS)
        m.status = c->calls->SetStream(c->handle, stream);
    if (m.status == CUDNN_STATUS_SUCCESS)
        m.status = c->calls->BackendExecute(c->handle, answer->plan, pack);
    cudnn_destroy(c->calls, &made);
    return check(c->calls, m.status, "a convolution", err);
}

/* ---- the library and a device ------------------------------------------------------------------------------------ */

/* Returns NULL and the reason if the library is missing or too old. */
static const struct cudnn_calls *
open_library(char why[BACKEND_LIBRARY])
{
    const struct cudnn_calls *calls = cudnn_open(why, BACKEND_LIBRARY);
    unsigned version = calls ? (unsigned)calls->GetVersion() : 0;

    if (!calls || version >= OLDEST)
        return calls;
    snprintf(why, BACKEND_LIBRARY, "cuDNN is %u.%u.%u, and 9.11 is needed", version / 10000, version / 100 % 100,
             version % 100);
    return NULL;
}

unsigned
cudnn_version(char text[BACKEND_LIBRARY])
{
    const struct cudnn_calls *calls = open_library(text);
    unsigned version = calls ? (unsigned)calls->GetVersion() : 0;

    if (calls)
        snprintf(text, BACKEND_LIBRARY, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return version;
}

static cudnnStatus_t
describe(struct cudnn *c, const char *described)
{
    const struct cudnn_calls *calls = c->calls;
    cudnnStatus_t status = calls->BackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &c->device);

    if (status == CUDNN_STATUS_SUCCESS)
        status = calls->BackendSetAttribute(c->device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                            (int64_t)strlen(described) + 1, described);
    return status == CUDNN_STATUS_SUCCESS ? calls->BackendFinalize(c->device) : status;
}

enum chex_status
cudnn_new(enum precision precision, const char *described, struct cudnn **out, struct chex_error *err)
{
    char why[BACKEND_LIBRARY];
    const struct cudnn_calls *calls = open_library(why);
    struct cudnn *c;
    enum chex_status status;

    *out = NULL;
    if (!calls)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "%s", why);
    c = calloc(1, sizeof(*c));
    if (!c)
        return error_memory(err);
    c->calls = calls;
    c->value = precision == PRECISION_FP32   ? CUDNN_DATA_FLOAT
               : precision == PRECISION_BF16 ? CUDNN_DATA_BFLOAT16
                                             : CUDNN_DATA_HALF;
    status = described ? check(calls, describe(c, described), "a device that is described", err)
                       : check(calls, calls->Create(&c->handle), "the GPU", err);
    if (status == CHEX_OK)
        *out = c;
    else
        cudnn_free(c);
    return status;
}

void
cudnn_free(struct cudnn *c)
{
    if (!c)
        return;
    while (c->count > 0)
        free_answer(c->calls, c->answer[--c->count]);
    free(c->answer);
    if (c->device)
        (void)c->calls->BackendDestroyDescriptor(c->device);
    if (c->handle)
        (void)c->calls->Destroy(c->handle);
    free(c);
}
