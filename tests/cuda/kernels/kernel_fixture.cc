/*
 * kernel_fixture.cc - see kernel_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace emulated;

/*
 * Relative errors of sums of products.  A tensor core truncates where the emulator rounds, and adds four to sixteen
 * products at a time.  The longest sum here, of 784 products, may lose 2^-23 of it 98 times in groups of eight; groups
 * of four lost 3.6e-6 at most.  The interpreter of PTX truncates like a tensor core.
 *
 * tf32 is stored as float, and the reference rounds operands as the kernels do.  But an operand that a kernel computes
 * in float (BN) may be nearer to another neighbour than the one computed in double: one in about 10,000, by 2^-10.
 */
static const double rounded_sums = 1e-6, truncated_sums = 1.2e-5;

static double
error_of_sums(void)
{
#ifdef ON_DEVICE
    const bool tensor_cores = true;
#else
    const bool tensor_cores = getenv("PTX_FILES") != NULL;
#endif

    return tensor_cores ? truncated_sums : rounded_sums;
}

const std::vector<value_set> value_sets = {
    {"fp16", cuda_kernels_fp16, VALUE_FP16, 5e-4, error_of_sums()},
#ifndef ONLY_FP16
    {"bf16", cuda_kernels_bf16, VALUE_BF16, 4e-3, error_of_sums()},
    {"tf32", cuda_kernels_tf32, VALUE_TF32, 1e-4, error_of_sums()},
#endif
#if !defined ONLY_FP16 && !defined ON_DEVICE
    {"float", cuda_kernels_float, VALUE_FLOAT, 1e-6, rounded_sums},
#endif
};
cudaStream_t stream;
bool small_shapes;

static std::vector<void *> allocations;
static unsigned passed, failed, compared;
static double worst;
static bool fine = true;

void
must(cudaError_t e, const char *what, int line)
{
    if (e == cudaSuccess)
        return;
    if (e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver) {
        printf("skip: there is no GPU: %s\n0 passed, 0 failed, 1 skipped\n", cudaGetErrorString(e));
        exit(77);
    }
    fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorName(e));
    exit(3);
}

template <typename T>
static T
value_of(float f)
{
    T v;

    from_float(v, f);
    return v;
}

float
rounded(const value_set &set, float f)
{
    switch (set.kind) {
    case VALUE_FP16:
        return to_float(value_of<fp16>(f));
    case VALUE_BF16:
        return to_float(value_of<bf16>(f));
    default:
        return f;
    }
}

float
operand(const value_set &set, float f)
{
    return set.kind == VALUE_TF32 ? to_tf32(f) : f;
}

unsigned
value_bytes(const value_set &set)
{
    return set.kind == VALUE_FLOAT || set.kind == VALUE_TF32 ? 4 : 2;
}

static float
random_float()
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 8388608.0f - 1.0f;
}

unsigned
random_below(unsigned limit)
{
    return (unsigned)((random_float() + 1) / 2 * (float)limit) % limit;
}

floats
random_floats(size_t count)
{
    floats v(count);

    for (float &f : v)
        f = random_float();
    return v;
}

floats
random_variances(size_t count)
{
    floats v = random_floats(count);

    for (float &f : v)
        f = 0.2f + f * f;
    return v;
}

/* Two bits of a fraction: 1, 1.25, 1.5 or 1.75 times a power of two. */
floats
random_pivots(size_t count)
{
    floats v = random_floats(count);

    for (float &f : v) {
        int exponent;
        float fraction = frexpf(f, &exponent);

        f = ldexpf(truncf(fraction * 8) / 8, exponent);
    }
    return v;
}

float *
upload_pivots(const floats &pivots)
{
    floats means = pivots;

    for (float &f : means)
        f *= 1.1f; /* with the same first two bits of the fraction */
    return upload(means);
}

floats
random_values(const value_set &set, size_t count)
{
    floats v(count);

    for (float &f : v)
        f = rounded(set, random_float());
    return v;
}

void
copy_in(const void *to, const void *from, size_t size)
{
    MUST(cudaMemcpyAsync((void *)to, from, size, cudaMemcpyHostToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
}

void *
upload_bytes(const void *from, size_t size)
{
    void *p;

    MUST(cudaMalloc(&p, size));
    copy_in(p, from, size);
    allocations.push_back(p);
    return p;
}

void *
upload(const value_set &set, const floats &v)
{
    std::vector<uint16_t> halves;

    if (value_bytes(set) == 4)
        return upload_bytes(v.data(), v.size() * sizeof(float));
    for (float f : v)
        halves.push_back(set.kind == VALUE_FP16 ? value_of<fp16>(f).bits : value_of<bf16>(f).bits);
    return upload_bytes(halves.data(), halves.size() * sizeof(uint16_t));
}

static void *
room_for(size_t bytes)
{
    void *p;

    MUST(cudaMalloc(&p, bytes));
    if (getenv("KERNELS_POISON"))
        MUST(cudaMemsetAsync(p, 0xff, bytes, stream));
    allocations.push_back(p);
    return p;
}

float *
room(size_t count)
{
    return (float *)room_for(count * sizeof(float));
}

void *
room(const value_set &set, size_t count)
{
    return room_for(count * value_bytes(set));
}

value_set
partial_set(const value_set &set, unsigned splits)
{
    value_set partial = set;

    partial.kind = splits > 1 && value_bytes(set) == 2 ? VALUE_BF16 : VALUE_FLOAT;
    return partial;
}

double
partial_error(const value_set &set, unsigned splits, double larger)
{
    const double bf16 = 2e-3; /* half of the maximum error 2^-8; the root mean square is 1.7e-3 */

    return partial_set(set, splits).kind == VALUE_BF16 && larger < bf16 ? bf16 : larger;
}

void
download_bytes(void *to, const void *from, size_t size)
{
    MUST(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
}

floats
download(const float *p, size_t count)
{
    floats v(count);

    download_bytes(v.data(), p, count * sizeof(float));
    return v;
}

floats
download(const value_set &set, const void *p, size_t count)
{
    std::vector<uint16_t> halves(count);
    floats v(count);

    if (value_bytes(set) == 4)
        return download((const float *)p, count);
    download_bytes(halves.data(), p, count * sizeof(uint16_t));
    for (size_t i = 0; i < count; i++)
        v[i] = set.kind == VALUE_FP16 ? to_float(fp16{halves[i]}) : to_float(bf16{halves[i]});
    return v;
}

void
release()
{
    for (void *p : allocations)
        MUST(cudaFree(p));
    allocations.clear();
}

void
expect(bool good, const char *what)
{
    compared++;
    if (!good) {
        printf("     %s\n", what);
        fine = false;
    }
}

void
compare(const char *what, const std::vector<double> &want, const floats &got, double allowed)
{
    double difference = 0, norm = 1e-30, error;

    for (size_t i = 0; i < want.size(); i++) {
        difference += pow((double)got[i] - want[i], 2);
        norm += want[i] * want[i];
    }
    error = sqrt(difference / norm);
    compared++;
    worst = error > worst ? error : worst;
    if (error <= allowed && want.size() == got.size())
        return;
    printf("     %s: relative error %.3g, allowed are %.3g\n", what, error, allowed);
    fine = false;
}

floats
slice_of(const floats &slab, const floats &before, unsigned ld, unsigned channels, const char *what)
{
    unsigned first = (ld - channels) / 2;
    floats slice;
    bool kept = true;

    for (size_t i = 0; i < slab.size(); i++) {
        if (i % ld >= first && i % ld < first + channels)
            slice.push_back(slab[i]);
        else
            kept = kept && slab[i] == before[i];
    }
    expect(kept, what);
    return slice;
}

void
finish_case(const char *name)
{
    printf("%s %s (%u comparisons, largest relative error %.2g)\n", fine ? "ok  " : "FAIL", name, compared, worst);
    fflush(stdout);
    if (fine)
        passed++;
    else
        failed++;
    fine = true;
    compared = 0;
    worst = 0;
}

void
finish_case(const value_set &set, const char *name)
{
    char text[200];

    snprintf(text, sizeof(text), "%s: %s", set.name, name);
    finish_case(text);
}

int
summary()
{
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed > 0;
}

int
run_program(int argc, char **argv, void (*run)(const value_set &set), void (*once)())
{
    small_shapes = argc > 1 && strcmp(argv[1], "small") == 0;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (once)
        once();
    for (const value_set &set : value_sets) {
        MUST(cuda_prepare(set.kernels));
        run(set);
    }
    return summary();
}

/* ---- batch normalisation ----------------------------------------------------------------------------------------- */

norm_view
upload_view(const floats &mean, const floats &variance, const floats &gamma, const floats &beta)
{
    norm_view v = {};

    v.mean = upload(mean);
    v.variance = upload(variance);
    v.gamma = upload(gamma);
    v.beta = upload(beta);
    return v;
}

norm_results
normalise(const norm_channel &c)
{
    const size_t pixels = c.x.size();
    norm_results r = {doubles(pixels), doubles(pixels), 0, 0, 0, 0, 0};
    double n = 0;
    auto xhat = [&](size_t q) { return (c.x[q] - r.mean) * r.inverse; };

    for (size_t q = 0; q < pixels; q++)
        n += c.counts[q];
    for (size_t q = 0; q < pixels; q++)
        r.mean += c.counts[q] ? c.x[q] / n : 0;
    for (size_t q = 0; q < pixels; q++)
        r.variance += c.counts[q] ? pow(c.x[q] - r.mean, 2) / n : 0;
    r.inverse = 1 / sqrt(r.variance + c.epsilon);
    for (size_t q = 0; q < pixels; q++)
        if (c.counts[q]) {
            double y = xhat(q) * c.gamma + c.beta;

            r.y[q] = c.relu && y < 0 ? 0 : y;
            r.sum_g += c.g[q];
            r.sum_g_xhat += c.g[q] * xhat(q);
        }
    for (size_t q = 0; q < pixels; q++)
        if (c.counts[q])
            r.dx[q] = c.gamma * r.inverse * (c.g[q] - r.sum_g / n - xhat(q) * r.sum_g_xhat / n);
    return r;
}

void
move_running(const value_set &set, unsigned blocks, const norm_running_args &args)
{
    loss_args a = {};

    a.block = args.block;
    a.state = upload(std::vector<step_state>(1));
    a.running = args;
    launch(set, CUDA_LOSS, 1 + blocks, 1, a);
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

conv_shape
conv_shape_of(unsigned images, unsigned height, unsigned width, unsigned in, unsigned out, unsigned kernel,
              unsigned stride, unsigned pad)
{
    conv_shape s = {};

    s.images = images;
    s.height = height;
    s.width = width;
    s.out_height = (height + 2 * pad - kernel) / stride + 1;
    s.out_width = (width + 2 * pad - kernel) / stride + 1;
    s.in = s.x_ld = in;
    s.out = s.y_ld = out;
    s.kernel_h = s.kernel_w = kernel;
    s.stride = stride;
    s.pad_h = s.pad_w = pad;
    return s;
}

conv_shape
stem_shape_of(unsigned images, unsigned side, unsigned out)
{
    conv_shape s = conv_shape_of(images, STEM_ROWS(side), STEM_COLUMNS(side), STEM_IN, out, 4, 1, 2);

    s.out_height = s.out_width = STEM_OUT(side);
    s.x_ld = STEM_LD;
    s.kernel_w = 1;
    s.pad_w = 0;
    return s;
}

cuda_conv
conv_of(conv_kind kind, const conv_shape &s)
{
    return cuda_conv_start(kind, &s, 0);
}

unsigned
tile_shapes_of(const conv_shape &s, conv_kind kind)
{
    cuda_conv c = conv_of(kind, s);

    return cuda_conv_tile_shapes(&c);
}

void
set_operands(cuda_conv &c, void *x, const void *w, void *y)
{
    switch (c.kind) {
    case CONV_FPROP:
        c.fprop.x = x;
        c.fprop.w = w;
        c.fprop.y = y;
        break;
    case CONV_DGRAD:
        c.dgrad.dx = x;
        c.dgrad.w = w;
        c.dgrad.dy = y;
        break;
    case CONV_WGRAD:
        c.wgrad.x = x;
        c.wgrad.dy = y;
        break;
    }
}

void
split_in_two(cuda_conv &c)
{
    c.wgrad.k_steps = cuda_blocks(cuda_wgrad_steps(&c.shape), 2);
    c.splits = cuda_wgrad_splits(&c.wgrad);
    expect(c.splits == 2, "two splits");
}

void
set_partial(const value_set &set, cuda_conv &c)
{
    c.wgrad.partial = room(partial_set(set, c.splits), cuda_conv_partial(&c));
}

void
reduce_splits(const value_set &set, const splits_entry &entry, float *gradient, const batch_block &block, float unscale)
{
    step_state state = {};

    state.unscale = unscale;
    launch(set, CUDA_SUM_ALL, cuda_sum_blocks(&entry), 1,
           sum_all_args{upload(std::vector<splits_entry>{entry}), gradient, upload(std::vector<batch_block>{block}),
                        upload(std::vector<step_state>{state}), 1});
}
