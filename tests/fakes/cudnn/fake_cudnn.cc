/*
 * fake_cudnn.cc - see fake_cudnn.h
 *
 * A descriptor is a map from attributes to bytes; `rules` says which it may have.  What refers to another descriptor
 * keeps a copy of it, so descriptors may be destroyed in any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_cudnn.h"

#include "cudnn_graph.h"
#include "runtime.h"

#include <map>
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

namespace
{
struct tensor {
    int64_t size[4], stride[4];
    void *data;
};
enum kind { FORWARD, DATA, WEIGHTS };
struct fake_args {
    tensor x, w, y;
    int64_t stride[2], pad[2];
    kind of;
    float beta;
    void *workspace;
    unsigned workspace_bytes;
};
const unsigned THREADS = 64, BLOCKS = 8;

template <typename T>
T *
at(const tensor &t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (T *)t.data + a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3];
}

template <typename T>
float
read(const tensor &t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    if constexpr (std::is_same_v<T, float>)
        return *at<float>(t, a, b, c, d);
    else
        return emulated::to_float(*at<T>(t, a, b, c, d));
}

template <typename T>
void
write(const tensor &t, int64_t a, int64_t b, int64_t c, int64_t d, float value, float beta)
{
    T *to = at<T>(t, a, b, c, d);

    if (beta != 0)
        value += beta * read<T>(t, a, b, c, d);
    if constexpr (std::is_same_v<T, float>)
        *to = value;
    else
        emulated::from_float(*to, value);
}

/* Sums of one place of y, x or w; [n][c][h][w], [out][in][ky][kx]. */
template <typename T>
float
sum_forward(const fake_args &a, int64_t n, int64_t o, int64_t oy, int64_t ox)
{
    float sum = 0;

    for (int64_t ky = 0; ky < a.w.size[2]; ky++)
        for (int64_t kx = 0; kx < a.w.size[3]; kx++) {
            int64_t y = oy * a.stride[0] + ky - a.pad[0], x = ox * a.stride[1] + kx - a.pad[1];

            if (y < 0 || y >= a.x.size[2] || x < 0 || x >= a.x.size[3])
                continue;
            for (int64_t i = 0; i < a.w.size[1]; i++)
                sum += read<T>(a.x, n, i, y, x) * read<T>(a.w, o, i, ky, kx);
        }
    return sum;
}

template <typename T>
float
sum_data(const fake_args &a, int64_t n, int64_t i, int64_t y, int64_t x)
{
    float sum = 0;

    for (int64_t ky = 0; ky < a.w.size[2]; ky++)
        for (int64_t kx = 0; kx < a.w.size[3]; kx++) {
            int64_t oy = y + a.pad[0] - ky, ox = x + a.pad[1] - kx;

            if (oy < 0 || oy % a.stride[0] != 0 || ox < 0 || ox % a.stride[1] != 0)
                continue;
            oy /= a.stride[0];
            ox /= a.stride[1];
            if (oy >= a.y.size[2] || ox >= a.y.size[3])
                continue;
            for (int64_t o = 0; o < a.w.size[0]; o++)
                sum += read<T>(a.y, n, o, oy, ox) * read<T>(a.w, o, i, ky, kx);
        }
    return sum;
}

template <typename T>
float
sum_weights(const fake_args &a, int64_t o, int64_t i, int64_t ky, int64_t kx)
{
    float sum = 0;

    for (int64_t n = 0; n < a.y.size[0]; n++)
        for (int64_t oy = 0; oy < a.y.size[2]; oy++)
            for (int64_t ox = 0; ox < a.y.size[3]; ox++) {
                int64_t y = oy * a.stride[0] + ky - a.pad[0], x = ox * a.stride[1] + kx - a.pad[1];

                if (y >= 0 && y < a.x.size[2] && x >= 0 && x < a.x.size[3])
                    sum += read<T>(a.y, n, o, oy, ox) * read<T>(a.x, n, i, y, x);
            }
    return sum;
}

template <typename T>
void
convolve(const fake_args &a)
{
    const tensor &to = a.of == FORWARD ? a.y : a.of == DATA ? a.x : a.w;
    int64_t count = to.size[0] * to.size[1] * to.size[2] * to.size[3], step = gridDim.x * blockDim.x;
    int64_t first = blockIdx.x * blockDim.x + threadIdx.x;

    for (int64_t b = first; b < a.workspace_bytes; b += step)
        ((unsigned char *)a.workspace)[b] = 0xff;
    for (int64_t p = first; p < count; p += step) {
        int64_t d1 = p % to.size[1], d3 = p / to.size[1] % to.size[3];
        int64_t d2 = p / to.size[1] / to.size[3] % to.size[2], d0 = p / to.size[1] / to.size[3] / to.size[2];
        auto sum = a.of == FORWARD ? sum_forward<T> : a.of == DATA ? sum_data<T> : sum_weights<T>;

        write<T>(to, d0, d1, d2, d3, sum(a, d0, d1, d2, d3), a.beta);
    }
}

EMULATED_KERNEL(fake_cudnn_fp16, fake_args, THREADS)
{
    convolve<emulated::fp16>(a);
}
EMULATED_KERNEL(fake_cudnn_bf16, fake_args, THREADS)
{
    convolve<emulated::bf16>(a);
}
EMULATED_KERNEL(fake_cudnn_float, fake_args, THREADS)
{
    convolve<float>(a);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

struct attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<unsigned char> bytes;
};
struct content {
    cudnnBackendDescriptorType_t type;
    bool finalized = false;
    std::map<int, attribute> has;
    std::map<int, std::shared_ptr<content>> refers;
    int64_t engine = 0; /* of an engine, a configuration, a plan */
};
typedef std::shared_ptr<content> reference;
struct descriptor {
    reference is;
};

/* An attribute of a kind of descriptor: how many values at least and at most. */
struct rule {
    int descriptor, name, type, least, most;
};
const rule rules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1},
#define OPERATION(kind, name, x, w, y)                                                                                 \
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_ALPHA,         \
     CUDNN_TYPE_FLOAT, 1, 1},                                                                                          \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_BETA,      \
         CUDNN_TYPE_FLOAT, 1, 1},                                                                                      \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_CONV_DESC, \
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},                                                                         \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##x,       \
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},                                                                         \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##w,       \
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},                                                                         \
    {                                                                                                                  \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##y,        \
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1                                                                        \
    }
    OPERATION(FORWARD, FORWARD, X, W, Y),
    OPERATION(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    OPERATION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 0, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
     1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 0, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
     1},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, 3},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, 3},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1, 1 << 16},
};

size_t
size_of(int type)
{
    switch (type) {
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

const rule *
find_rule(int descriptor, int name)
{
    for (const rule &r : rules)
        if (r.descriptor == descriptor && r.name == name)
            return &r;
    return nullptr;
}

template <typename T>
const T *
values(const content &c, int name)
{
    auto found = c.has.find(name);

    return found == c.has.end() ? nullptr : (const T *)(const void *)found->second.bytes.data();
}

fake_cudnn_counts counts;

/* FAKE_CUDNN_FAIL: the status that this call has to fail with, or 0. */
cudnnStatus_t
failing(const char *name)
{
    static unsigned calls;
    static std::string before;
    const char *setting = getenv("FAKE_CUDNN_FAIL");
    char which[40];
    unsigned count;
    int status;

    if (!setting || sscanf(setting, "%39s %u %d", which, &count, &status) != 3 || strcmp(which, name) != 0)
        return CUDNN_STATUS_SUCCESS;
    if (before != setting) {
        before = setting;
        calls = 0;
    }
    return ++calls == count ? (cudnnStatus_t)status : CUDNN_STATUS_SUCCESS;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

struct names {
    kind of;
    int x, w, y, conv, alpha, beta;
};

bool
names_of(int type, names &n)
{
    switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        n = {FORWARD,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
        return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        n = {DATA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
        return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        n = {WEIGHTS,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
        return true;
    default:
        return false;
    }
}

tensor
tensor_of(const content &operation, int name)
{
    const content &t = *operation.refers.at(name);
    tensor made = {};

    memcpy(made.size, values<int64_t>(t, CUDNN_ATTR_TENSOR_DIMENSIONS), sizeof(made.size));
    memcpy(made.stride, values<int64_t>(t, CUDNN_ATTR_TENSOR_STRIDES), sizeof(made.stride));
    return made;
}

int64_t
side(int64_t in, int64_t kernel, int64_t stride, int64_t pad)
{
    return (in + 2 * pad - kernel) / stride + 1;
}

/* Do the tensors belong together? */
bool
fits(const content &operation, const names &n)
{
    const content &conv = *operation.refers.at(n.conv);
    const int64_t *stride = values<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const int64_t *pad = values<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    tensor x = tensor_of(operation, n.x), w = tensor_of(operation, n.w), y = tensor_of(operation, n.y);

    if (*values<int>(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
        *values<int>(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT)
        return false;
    return x.size[0] == y.size[0] && x.size[1] == w.size[1] && y.size[1] == w.size[0] &&
           y.size[2] == side(x.size[2], w.size[2], stride[0], pad[0]) &&
           y.size[3] == side(x.size[3], w.size[3], stride[1], pad[1]);
}

const reference &
operation_of(const content &graph)
{
    return graph.refers.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

bool
is_refused(const content &operation)
{
    const char *list = getenv("FAKE_CUDNN_REFUSE");
    names n = {};

    if (!list || !names_of(operation.type, n))
        return false;
    if (n.of == DATA && *values<float>(operation, n.beta) != 0 && strstr(list, "add"))
        return true;
    return strstr(list, n.of == FORWARD ? "forward" : n.of == DATA ? "data" : "weights");
}
} // namespace

/* ---- the calls --------------------------------------------------------------------------------------------------- */

struct cudnnContext {
    cudaStream_t stream;
};

extern "C" struct fake_cudnn_counts
fake_cudnn_count(void)
{
    return counts;
}

size_t
cudnnGetVersion(void)
{
    const char *setting = getenv("FAKE_CUDNN");

    return setting && strcmp(setting, "old") == 0 ? 91002 : 91900;
}

const char *
cudnnGetErrorString(cudnnStatus_t status)
{
    static char text[40];

    snprintf(text, sizeof(text), "CUDNN_STATUS %d", (int)status);
    return text;
}

cudnnStatus_t
cudnnCreate(cudnnHandle_t *handle)
{
    const char *setting = getenv("FAKE_CUDNN");

    if (setting && strcmp(setting, "no-device") == 0)
        return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = new cudnnContext();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnDestroy(cudnnHandle_t handle)
{
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    cudnnStatus_t status = failing("cudnnBackendCreateDescriptor");
    descriptor *d;

    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    d = new descriptor();
    d->is = std::make_shared<content>();
    d->is->type = type;
    counts.descriptors++;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    counts.descriptors--;
    delete (descriptor *)d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         int64_t count, const void *from)
{
    content &c = *((descriptor *)d)->is;
    const rule *r = find_rule(c.type, name);
    const unsigned char *bytes = (const unsigned char *)from;

    if (c.finalized || !r)
        return CUDNN_STATUS_BAD_PARAM;
    if (r->type != (int)type)
        return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    if (count < 1 || count > r->most)
        return CUDNN_STATUS_BAD_PARAM;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        const reference &is = (*(descriptor *const *)from)->is;

        if (!is->finalized)
            return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
        c.refers[name] = is;
    }
    c.has[name] = {type, count, std::vector<unsigned char>(bytes, bytes + (size_t)count * size_of(type))};
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
finalize_special(content &c)
{
    names n = {};

    if (names_of(c.type, n))
        return fits(c, n) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    if (c.type == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
        return strstr(values<char>(c, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), "\"deviceVer\"")
                   ? CUDNN_STATUS_SUCCESS
                   : CUDNN_STATUS_BAD_PARAM;
    if (c.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        c.engine = c.refers[CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG]->engine;
        return c.has.count(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != c.has.count(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)
                   ? CUDNN_STATUS_SUCCESS
                   : CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    content &c = *((descriptor *)d)->is;
    cudnnStatus_t status = failing("cudnnBackendFinalize");

    for (const rule &r : rules)
        if (r.descriptor == c.type && r.least > 0 && (!c.has.count(r.name) || c.has[r.name].count < r.least))
            return CUDNN_STATUS_BAD_PARAM;
    if (status == CUDNN_STATUS_SUCCESS)
        status = finalize_special(c);
    c.finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

static const int64_t first_engine = 1, last_engine = 4;

/* Configurations of the caller become those of the engines. */
static cudnnStatus_t
get_results(const content &c, int64_t wanted, int64_t *count, void *out)
{
    const reference &graph = c.refers.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    int64_t i;

    *count = 0;
    if (*values<int>(c, CUDNN_ATTR_ENGINEHEUR_MODE) != CUDNN_HEUR_MODE_A || is_refused(*operation_of(*graph)))
        return CUDNN_STATUS_SUCCESS;
    for (i = 0; i < wanted && first_engine + i <= last_engine; i++) {
        content &config = *((descriptor **)out)[i]->is;

        config.finalized = true;
        config.engine = first_engine + i;
        config.refers[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = graph;
    }
    *count = i;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
get_engine(const content &c, cudnnBackendAttributeName_t name, int64_t *count, void *out)
{
    if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
        *count = 1;
        *(int64_t *)out = c.engine;
    } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
        *count = c.engine <= 2;
        *(cudnnBackendNumericalNote_t *)out = c.engine == 1 ? CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
                                                            : CUDNN_NUMERICAL_NOTE_WINOGRAD;
    } else {
        *count = 0;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         int64_t wanted, int64_t *count, void *out)
{
    const content &c = *((descriptor *)d)->is;

    if (!c.finalized)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (c.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        return get_results(c, wanted, count, out);
    if (c.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return get_engine(c, name, count, out);
    if (c.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE) {
        content &engine = *(*(descriptor **)out)->is;

        engine.finalized = true;
        engine.engine = c.engine;
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    if (c.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *(int64_t *)out = c.engine == 3 ? 64 << 20 : FAKE_CUDNN_WORKSPACE;
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_BAD_PARAM;
}

static void *
pointer_of(const content &pack, const content &t)
{
    const int64_t *uid = values<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void *const *pointer = values<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);

    for (int i = 0; i < 3; i++)
        if (uid[i] == *values<int64_t>(t, CUDNN_ATTR_TENSOR_UNIQUE_ID))
            return pointer[i];
    return nullptr;
}

static const void *
kernel_of(int type)
{
    return type == CUDNN_DATA_HALF       ? (const void *)fake_cudnn_fp16
           : type == CUDNN_DATA_BFLOAT16 ? (const void *)fake_cudnn_bf16
                                         : (const void *)fake_cudnn_float;
}

cudnnStatus_t
cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack)
{
    const content &p = *((descriptor *)plan)->is, &pack = *((descriptor *)variant_pack)->is;
    cudnnStatus_t status = failing("cudnnBackendExecute");
    names n = {};

    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    if (!p.finalized || !pack.finalized || !p.has.count(CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    const content &config = *p.refers.at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const content &o = *operation_of(*config.refers.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
    const int tensors[] = {(names_of(o.type, n), n.x), n.w, n.y};
    fake_args a = {};
    tensor *t[] = {&a.x, &a.w, &a.y};
    int type = *values<int>(*o.refers.at(n.x), CUDNN_ATTR_TENSOR_DATA_TYPE);

    for (int i = 0; i < 3; i++) {
        const content &of = *o.refers.at(tensors[i]);

        *t[i] = tensor_of(o, tensors[i]);
        t[i]->data = pointer_of(pack, of);
        if (*values<int>(of, CUDNN_ATTR_TENSOR_DATA_TYPE) != type || !t[i]->data ||
            (uintptr_t)t[i]->data % (size_t)*values<int64_t>(of, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 0)
            return CUDNN_STATUS_BAD_PARAM;
    }
    memcpy(a.stride, values<int64_t>(*o.refers.at(n.conv), CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), sizeof(a.stride));
    memcpy(a.pad, values<int64_t>(*o.refers.at(n.conv), CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), sizeof(a.pad));
    a.of = n.of;
    a.beta = *values<float>(o, n.beta);
    a.workspace = *values<void *>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    a.workspace_bytes = FAKE_CUDNN_WORKSPACE;
    (n.of == FORWARD ? counts.forward : n.of == DATA ? counts.data : counts.weights)++;
    void *arguments[] = {&a};
    cudaError_t e = cudaLaunchKernel(kernel_of(type), {BLOCKS, 1, 1}, {THREADS, 1, 1}, arguments, 0, handle->stream);

    emulated::stream_of(handle->stream)->behind_kernel = false; /* nobody knows what it leaves in the stream */
    return e == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
