/*
 * test_cuda_cudnn.c - convolutions by cuDNN (train/cuda/cudnn/engine.h), with the fake of tests/cudnn on an emulated
 * GPU
 *
 * Values are multiples of 1/8, so sums of products are exact in float, and both engines agree in every bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include "cuda/cudnn/engine.h"
#include "fakes/cudnn/fake_cudnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE     "{\"deviceName\":\"one that is described\",\"deviceVer\":900}"
#define PROCESSORS 8

static const struct convolution {
    unsigned images, height, width, in, out, kernel, stride, pad;
    unsigned x_more, y_more; /* channels of the slabs outside the slice */
} convolutions[] = {
    {2, 7, 7, 64, 128, 1, 1, 0, 0, 0},  {2, 7, 5, 40, 24, 1, 1, 0, 16, 8}, {1, 6, 7, 64, 136, 1, 2, 0, 0, 0},
    {1, 7, 7, 128, 32, 3, 1, 1, 0, 96}, {2, 9, 8, 16, 40, 3, 2, 1, 0, 16}, {1, 13, 15, 8, 64, 7, 2, 3, 0, 0},
};
#define CONVOLUTIONS (sizeof(convolutions) / sizeof(convolutions[0]))

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const struct value {
    enum precision precision;
    const struct cuda_kernel *set;
    size_t bytes;
    unsigned mantissa; /* bits */
} values[] = {
    {PRECISION_FP32, cuda_kernels_float, 4, 23},
    {PRECISION_FP16, cuda_kernels_fp16, 2, 10},
    {PRECISION_BF16, cuda_kernels_bf16, 2, 7},
};
#define VALUES (sizeof(values) / sizeof(values[0]))

/* Stores a number that is exact in the type. */
static void
put_value(const struct value *v, void *to, float f)
{
    uint32_t bits;
    uint16_t half;

    memcpy(&bits, &f, 4);
    if (v->bytes == 4)
        memcpy(to, &bits, 4);
    if (v->bytes == 4)
        return;
    half = (uint16_t)(bits >> 16);
    if (v->precision == PRECISION_FP16 && f != 0)
        half = (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
    memcpy(to, &half, 2);
}

static double
get_value(const struct value *v, const void *from)
{
    uint32_t bits;
    uint16_t half;
    float f;

    memcpy(&half, from, 2);
    bits = (uint32_t)half << 16;
    if (v->bytes == 4)
        memcpy(&bits, from, 4);
    if (v->precision == PRECISION_FP16)
        bits = (half & 0x7fffu) == 0
                   ? 0
                   : (uint32_t)(half & 0x8000) << 16 | ((half >> 10 & 0x1fu) + 112) << 23 | (half & 0x3ffu) << 13;
    memcpy(&f, &bits, 4);
    return (double)f;
}

static void
must(cudaError_t e)
{
    ck_assert_msg(e == cudaSuccess, "%s", cudaGetErrorString(e));
}

static void *
on_device(const void *from, size_t bytes)
{
    void *p;

    must(cudaMalloc(&p, bytes));
    must(from ? cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice) : cudaMemset(p, 0, bytes));
    return p;
}

static unsigned char *
to_host(const void *from, size_t bytes)
{
    unsigned char *p = malloc(bytes);

    ck_assert_ptr_nonnull(p);
    must(cudaMemcpy(p, from, bytes, cudaMemcpyDeviceToHost));
    return p;
}

static unsigned char *
draw(const struct value *v, size_t count, unsigned seed)
{
    unsigned char *p = malloc(count * v->bytes);
    size_t i;

    ck_assert_ptr_nonnull(p);
    for (i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        put_value(v, p + i * v->bytes, (float)((int)(seed >> 24) % 9 - 4) / 8);
    }
    return p;
}

/* ---- both engines ------------------------------------------------------------------------------------------------ */

struct problem {
    struct cuda_conv conv;
    size_t x, y, w; /* values */
    unsigned char *x_host, *y_host, *w_host;
};

static struct problem
make_problem(const struct value *v, const struct convolution *s, enum conv_kind kind, unsigned add)
{
    const struct conv_shape shape = {.images = s->images,
                                     .height = s->height,
                                     .width = s->width,
                                     .out_height = (s->height + 2 * s->pad - s->kernel) / s->stride + 1,
                                     .out_width = (s->width + 2 * s->pad - s->kernel) / s->stride + 1,
                                     .in = s->in,
                                     .out = s->out,
                                     .x_ld = s->in + s->x_more,
                                     .y_ld = s->out + s->y_more,
                                     .kernel_h = s->kernel,
                                     .kernel_w = s->kernel,
                                     .stride = s->stride,
                                     .pad_h = s->pad,
                                     .pad_w = s->pad};
    struct problem p = {.conv = cuda_conv_start(kind, &shape, 0)};
    const struct conv_shape *a = &p.conv.shape;

    if (kind == CONV_DGRAD)
        p.conv.dgrad.add = add;
    p.x = (size_t)a->images * a->height * a->width * a->x_ld;
    p.y = (size_t)a->images * a->out_height * a->out_width * a->y_ld;
    p.w = (size_t)a->out * a->kernel_h * a->kernel_w * a->in;
    p.x_host = draw(v, p.x, 1);
    p.y_host = draw(v, p.y, 2);
    p.w_host = draw(v, p.w, 3);
    return p;
}

/* A convolution in device memory. */
struct placed {
    struct cuda_conv conv;
    void *x, *y, *w, *partial; /* x and y: dx and dy where the kind has these */
};

static struct placed
place(const struct value *v, const struct problem *p)
{
    struct placed d = {.conv = p->conv,
                       .x = on_device(p->x_host, p->x * v->bytes),
                       .y = on_device(p->y_host, p->y * v->bytes),
                       .w = on_device(p->w_host, p->w * v->bytes),
                       .partial = on_device(NULL, p->w * sizeof(float))};
    struct cuda_conv *c = &d.conv;

    switch (c->kind) {
    case CONV_FPROP:
        c->fprop.x = d.x;
        c->fprop.w = d.w;
        c->fprop.y = d.y;
        break;
    case CONV_DGRAD:
        c->dgrad.dx = d.x;
        c->dgrad.w = d.w;
        c->dgrad.dy = d.y;
        break;
    case CONV_WGRAD:
        c->wgrad.x = d.x;
        c->wgrad.dy = d.y;
        c->wgrad.partial = d.partial;
        break;
    }
    return d;
}

static void
drop(struct placed *d)
{
    must(cudaFree(d->x));
    must(cudaFree(d->y));
    must(cudaFree(d->w));
    must(cudaFree(d->partial));
}

static void
free_problem(struct problem *p)
{
    free(p->x_host);
    free(p->y_host);
    free(p->w_host);
}

static void
compare_weights(const struct value *v, const struct problem *p, const void *got, const void *wanted)
{
    unsigned char *a = to_host(got, p->w * v->bytes);
    unsigned char *b = to_host(wanted, p->w * sizeof(float));
    double half_step = ldexp(1, -(int)v->mantissa - 1);
    size_t i;

    for (i = 0; i < p->w; i++) {
        float sum;

        memcpy(&sum, b + i * sizeof(sum), sizeof(sum));
        ck_assert_double_le(fabs(get_value(v, a + i * v->bytes) - (double)sum), half_step * fabs((double)sum));
    }
    free(a);
    free(b);
}

/* Own kernels round a product before they accumulate it, so the last bit may differ. */
static void
compare_slabs(const struct value *v, const void *got, const void *wanted, size_t count, bool added)
{
    unsigned char *a = to_host(got, count * v->bytes), *b = to_host(wanted, count * v->bytes);
    size_t i;

    if (!added)
        ck_assert_mem_eq(a, b, count * v->bytes);
    for (i = 0; i < count; i++)
        ck_assert_double_le(fabs(get_value(v, a + i * v->bytes) - get_value(v, b + i * v->bytes)),
                            ldexp(8, -(int)v->mantissa));
    free(a);
    free(b);
}

static void
compare_engines(struct cudnn *c, const struct value *v, const struct convolution *s, enum conv_kind kind, unsigned add,
                cudaStream_t stream)
{
    struct problem p = make_problem(v, s, kind, add);
    struct placed own = place(v, &p), theirs = place(v, &p);
    struct cuda_op op, their_op;
    struct chex_error err;
    bool takes = false;

    cuda_conv_take(&own.conv, 0, 1); /* one split */
    ck_assert_uint_eq(own.conv.splits, 1);
    cuda_conv_take(&theirs.conv, 0, 1);
    op = cuda_conv_op(&own.conv);
    their_op = cuda_conv_op(&theirs.conv);
    their_op.workspace = on_device(NULL, CUDNN_WORKSPACE);
    must(cuda_launch(v->set, &op, stream));
    step_check_ok(cudnn_takes(c, &theirs.conv, &takes, &err), &err);
    ck_assert(takes);
    ck_assert_int_eq(cudnn_choice(c, &theirs.conv).engine, 4);
    ck_assert_int_eq(cudnn_choice(c, &theirs.conv).workspace, FAKE_CUDNN_WORKSPACE);
    step_check_ok(cudnn_run(c, &their_op, stream, &err), &err);
    must(cudaStreamSynchronize(stream));
    if (kind == CONV_WGRAD)
        compare_weights(v, &p, theirs.partial, own.partial);
    compare_slabs(v, theirs.x, own.x, p.x, add);
    compare_slabs(v, theirs.y, own.y, p.y, false);
    must(cudaFree(their_op.workspace));
    drop(&own);
    drop(&theirs);
    free_problem(&p);
}

TEST_CASE("cuda_cudnn", "cuda_cudnn", NULL, NULL);

LOOP_TEST(cudnn_and_own_kernels_have_the_same_values, 0, (int)((CONVOLUTIONS) * (VALUES)))
{
    const struct convolution *s = &convolutions[_i % (int)CONVOLUTIONS];
    const struct value *v = &values[_i / (int)CONVOLUTIONS];
    struct chex_error err;
    cudaStream_t stream;
    struct cudnn *c;

    step_check_ok(cudnn_new(v->precision, NULL, &c, &err), &err);
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cuda_prepare(v->set));
    compare_engines(c, v, s, CONV_FPROP, 0, stream);
    compare_engines(c, v, s, CONV_DGRAD, 0, stream);
    compare_engines(c, v, s, CONV_DGRAD, 1, stream);
    compare_engines(c, v, s, CONV_WGRAD, 0, stream);
    must(cudaStreamDestroy(stream));
    cudnn_free(c);
    ck_assert_uint_eq(fake_cudnn_count().descriptors, 0);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static bool
takes(struct cudnn *c, const struct convolution *s, enum conv_kind kind, unsigned add)
{
    struct problem p = make_problem(&values[0], s, kind, add);
    struct chex_error err;
    bool yes = false;

    step_check_ok(cudnn_takes(c, &p.conv, &yes, &err), &err);
    free_problem(&p);
    return yes;
}

/* cuDNN is asked about a GPU that does not exist; nothing is run. */
TEST(a_device_may_be_described)
{
    struct chex_error err;
    struct cudnn *c;

    step_check_ok(cudnn_new(PRECISION_FP16, DEVICE, &c, &err), &err);
    ck_assert(takes(c, &convolutions[0], CONV_FPROP, 0));
    cudnn_free(c);
    ck_assert_int_eq(cudnn_new(PRECISION_FP16, "{}", &c, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_ptr_null(c);
    ck_assert_uint_eq(fake_cudnn_count().descriptors, 0);
}

LOOP_TEST(a_convolution_that_cudnn_refuses_is_not_an_error, 0, 4)
{
    static const char *refused[] = {"forward", "data", "add", "weights"};
    struct chex_error err;
    struct cudnn *c;

    setenv("FAKE_CUDNN_REFUSE", refused[_i], 1);
    step_check_ok(cudnn_new(PRECISION_FP16, NULL, &c, &err), &err);
    ck_assert_int_eq(takes(c, &convolutions[0], CONV_FPROP, 0), _i != 0);
    ck_assert_int_eq(takes(c, &convolutions[0], CONV_DGRAD, 0), _i != 1);
    ck_assert_int_eq(takes(c, &convolutions[0], CONV_DGRAD, 1), _i != 1 && _i != 2);
    ck_assert_int_eq(takes(c, &convolutions[0], CONV_WGRAD, 0), _i != 3);
    cudnn_free(c);
    ck_assert_uint_eq(fake_cudnn_count().descriptors, 0);
}

/* cuDNN must not be asked about a convolution with a fused BN, with partial sums or with splits. */
TEST(only_plain_convolutions_are_asked_about)
{
    static float some[8];
    struct problem p = make_problem(&values[0], &convolutions[0], CONV_FPROP, 0);
    struct cuda_conv normed = p.conv, summed = p.conv, split = p.conv, cells = p.conv;
    struct chex_error err;
    struct cudnn *c;
    bool yes = true;

    normed.fprop.norm.gamma = some;
    summed.fprop.sums.partial = some;
    split.splits = 2;
    cells.shape.x_ld = cells.shape.in / 2;
    step_check_ok(cudnn_new(PRECISION_FP16, NULL, &c, &err), &err);
    step_check_ok(cudnn_takes(c, &normed, &yes, &err), &err);
    ck_assert(!yes);
    step_check_ok(cudnn_takes(c, &summed, &yes, &err), &err);
    ck_assert(!yes);
    step_check_ok(cudnn_takes(c, &split, &yes, &err), &err);
    ck_assert(!yes);
    step_check_ok(cudnn_takes(c, &cells, &yes, &err), &err);
    ck_assert(!yes);
    step_check_ok(cudnn_takes(c, &p.conv, &yes, &err), &err);
    ck_assert(yes);
    cudnn_free(c);
    free_problem(&p);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

TEST(without_the_library_there_is_a_reason)
{
    char text[BACKEND_LIBRARY];
    struct chex_error err;
    struct cudnn *c;

    ck_assert_uint_eq(cudnn_version(text), 91900);
    ck_assert_str_eq(text, "9.19.0");
    setenv("FAKE_CUDNN", "none", 1);
    ck_assert_uint_eq(cudnn_version(text), 0);
    ck_assert_str_eq(text, "libcudnn.so.9 was not found");
    ck_assert_int_eq(cudnn_new(PRECISION_FP16, NULL, &c, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "libcudnn.so.9 was not found");
    setenv("FAKE_CUDNN", "old", 1);
    ck_assert_uint_eq(cudnn_version(text), 0);
    ck_assert_str_eq(text, "cuDNN is 9.10.2, and 9.11 is needed");
    ck_assert_int_eq(cudnn_new(PRECISION_FP16, NULL, &c, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "cuDNN is 9.10.2, and 9.11 is needed");
    setenv("FAKE_CUDNN", "no-device", 1);
    ck_assert_int_eq(cudnn_new(PRECISION_FP16, NULL, &c, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "cuDNN, the GPU: CUDNN_STATUS 1001; --engine own does without it");
}

/* Every descriptor that cannot be created or finalized gives an error or another engine, and no leak. */
LOOP_TEST(a_failure_of_cudnn_is_an_error_or_a_refusal, 0, 2)
{
    static const char *const calls[] = {"cudnnBackendCreateDescriptor", "cudnnBackendFinalize"};
    struct problem p = make_problem(&values[0], &convolutions[0], CONV_DGRAD, 1);
    unsigned count, failures = 0;
    char setting[80];

    for (count = 1; count < 100; count++) {
        struct chex_error err;
        struct cudnn *c;
        bool yes = false;
        enum chex_status status;

        step_check_ok(cudnn_new(PRECISION_FP16, NULL, &c, &err), &err);
        snprintf(setting, sizeof(setting), "%s %u 4000", calls[_i], count);
        setenv("FAKE_CUDNN_FAIL", setting, 1);
        status = cudnn_takes(c, &p.conv, &yes, &err);
        unsetenv("FAKE_CUDNN_FAIL");
        failures += status != CHEX_OK;
        if (status != CHEX_OK) {
            ck_assert_int_eq(status, CHEX_ERR_UNSUPPORTED);
            ck_assert_str_eq(err.text,
                             "cuDNN, asking about a convolution: CUDNN_STATUS 4000; --engine own does without it");
            step_check_ok(cudnn_takes(c, &p.conv, &yes, &err), &err); /* nothing of the failed query was kept */
            ck_assert(yes);
        }
        cudnn_free(c);
        ck_assert_uint_eq(fake_cudnn_count().descriptors, 0);
        if (status == CHEX_OK && yes)
            break;
    }
    ck_assert_uint_lt(count, 100);
    ck_assert_uint_ge(failures, 4);
    free_problem(&p);
}

TEST(a_convolution_that_fails_says_so)
{
    struct problem p = make_problem(&values[0], &convolutions[0], CONV_FPROP, 0);
    struct placed placed = place(&values[0], &p);
    struct chex_error err;
    struct cuda_op op;
    struct cudnn *c;
    bool yes;

    cuda_conv_take(&placed.conv, 0, 1);
    op = cuda_conv_op(&placed.conv);
    op.workspace = on_device(NULL, CUDNN_WORKSPACE);
    step_check_ok(cudnn_new(PRECISION_FP32, NULL, &c, &err), &err);
    step_check_ok(cudnn_takes(c, &placed.conv, &yes, &err), &err);
    setenv("FAKE_CUDNN_FAIL", "cudnnBackendExecute 1 5000", 1);
    ck_assert_int_eq(cudnn_run(c, &op, NULL, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "cuDNN, a convolution: CUDNN_STATUS 5000; --engine own does without it");
    cudnn_free(c);
    must(cudaFree(op.workspace));
    drop(&placed);
    free_problem(&p);
}
