/*
 * kernel_fixture.h - shared by the tests of kernels: the tables of this program, tensors, errors against a reference
 *
 * A tensor on the host is float, already rounded to the type that it has on the device.  So a reference in double
 * starts from the same numbers.  Only copies access device memory, and all of them are in `stream`.  The same sources
 * run on the emulator (build.mk) and, with ON_DEVICE, on a GPU (tests/cuda/device/build.mk).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_KERNEL_FIXTURE_H
#define EMULATOR_KERNEL_FIXTURE_H

#include "half.h"

extern "C" {
#include "cuda/kernels/runtime.h"
#include "cuda/plan/conv.h"
#include "cuda/plan/one_pass.h"
#include "cuda/plan/product.h"
}

#include <string.h>
#include <type_traits>
#include <vector>

enum value_kind { VALUE_FP16, VALUE_BF16, VALUE_TF32, VALUE_FLOAT };

struct value_set {
    const char *name;
    const struct cuda_kernel *kernels;
    value_kind kind;
    double tolerance; /* relative error of stored values; for few of them, half of a last bit */
    double sums;      /* relative error of sums of products in float */
};
extern const std::vector<value_set> value_sets;

typedef std::vector<float> floats;
typedef std::vector<double> doubles;

extern cudaStream_t stream;
extern bool small_shapes; /* for builds in which everything is slow */

/* Ends the program with its name if a call fails; with 77 if there is no device. */
#define MUST(call) must(call, #call, __LINE__)
void must(cudaError_t e, const char *what, int line);

/* Returns numbers in (-1, 1), the same in every run. */
floats random_values(const value_set &set, size_t count);
floats random_floats(size_t count);
unsigned random_below(unsigned limit);
floats random_variances(size_t count);
/* Returns pivots of channels, and uploads running means that have these pivots (struct channel_sums). */
floats random_pivots(size_t count);
float *upload_pivots(const floats &pivots);
/* Returns the bytes of a stored value. */
unsigned value_bytes(const value_set &set);
/* Rounds to the type that values of the set have in memory: float for tf32. */
float rounded(const value_set &set, float f);
/* Rounds as an operand of a product: tf32 to ten bits of mantissa, other values not. */
float operand(const value_set &set, float f);
/* Copies to the device as values of the set, or as floats; release() frees it. */
void *upload(const value_set &set, const floats &v);
/* Returns memory that is not written: NaN on the emulator, and with KERNELS_POISON in the environment. */
float *room(size_t floats);
void *upload_bytes(const void *from, size_t size);
void copy_in(const void *to, const void *from, size_t size);
void download_bytes(void *to, const void *from, size_t size);
floats download(const value_set &set, const void *p, size_t count);
floats download(const float *p, size_t count);
void release();
/*
 * Partial sums of wgrad with this number of splits: their type, for the functions above; and the relative error of
 * their rounding, or `larger` if that is more.
 */
value_set partial_set(const value_set &set, unsigned splits);
double partial_error(const value_set &set, unsigned splits, double larger);
/* Returns memory that is not written. */
void *room(const value_set &set, size_t count);
/* For data that are not activations: blocks, states, tables. */
template <typename T>
T *
upload(const std::vector<T> &v)
{
    return (T *)upload_bytes(v.data(), v.size() * sizeof(T));
}
template <typename T>
T
download_one(const T *p)
{
    T v;

    download_bytes(&v, p, sizeof(v));
    return v;
}
template <typename T>
void
overwrite(const T *p, const T &v)
{
    copy_in(p, &v, sizeof(v));
}

/* Launches a kernel of the set with these arguments. */
template <typename T>
void
launch(const value_set &set, cuda_kernel_id id, unsigned x, unsigned y, const T &args)
{
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(cuda_op::args), "a kernel's struct");
    cuda_op op = {};

    op.kernel = id;
    op.x = x;
    op.y = y;
    op.z = 1;
    memcpy((void *)&op.args, &args, sizeof(args));
    MUST(cuda_launch(set.kernels, &op, stream));
}

/* Returns the shape of a convolution of slabs without further channels. */
conv_shape conv_shape_of(unsigned images, unsigned height, unsigned width, unsigned in, unsigned out, unsigned kernel,
                         unsigned stride, unsigned pad);
/* Returns that of the stem for images of side x side. */
conv_shape stem_shape_of(unsigned images, unsigned side, unsigned out);
/* Returns a convolution, with all other members 0, for the newest GPUs. */
cuda_conv conv_of(conv_kind kind, const conv_shape &s);
/* Returns the number of its tile shapes. */
unsigned tile_shapes_of(const conv_shape &s, conv_kind kind);
/* Calls visit(output, input, tap) for each pixel of the output, and each pixel of the input that it reads. */
template <typename F>
void
each_tap(const conv_shape &s, F visit)
{
    for (size_t to = 0; to < (size_t)s.images * s.out_height * s.out_width; to++)
        for (unsigned tap = 0; tap < s.kernel_h * s.kernel_w; tap++) {
            size_t image = to / s.out_width / s.out_height;
            unsigned y = (unsigned)(to / s.out_width % s.out_height) * s.stride + tap / s.kernel_w - s.pad_h;
            unsigned x = (unsigned)(to % s.out_width) * s.stride + tap % s.kernel_w - s.pad_w;

            if (y < s.height && x < s.width) /* negative numbers wrap around to large ones */
                visit(to, (image * s.height + y) * s.width + x, tap);
        }
}
/* Sets the operands of any kind: x and y are dx and dy where the kind has these. */
void set_operands(cuda_conv &c, void *x, const void *w, void *y);
/* Gives wgrad two splits, also where its cost does not. */
void split_in_two(cuda_conv &c);
/* Allocates the partial sums of wgrad. */
void set_partial(const value_set &set, cuda_conv &c);
/* Launches sum_all for partial sums of wgrad: gradient (+)= unscale * their sum. */
void reduce_splits(const value_set &set, const splits_entry &entry, float *gradient, const batch_block &block,
                   float unscale);

/* Returns a view with these statistics and parameters, copied to the device. */
norm_view upload_view(const floats &mean, const floats &variance, const floats &gamma, const floats &beta);

/* A channel of a batch normalisation, and its results in double.  g is dy under the ReLU mask. */
struct norm_channel {
    doubles x, g;
    std::vector<bool> counts; /* has the image of this pixel weight? */
    double gamma, beta, epsilon;
    bool relu;
};
struct norm_results {
    doubles y, dx; /* 0 for pixels that do not count */
    double mean, variance, inverse, sum_g, sum_g_xhat;
};
norm_results normalise(const norm_channel &c);

/* Updates running statistics, by CTAs of a loss without images. */
void move_running(const value_set &set, unsigned blocks, const norm_running_args &args);

/* Fails if the norm of the difference, divided by the norm of `want`, exceeds `allowed` or is NaN. */
void compare(const char *what, const std::vector<double> &want, const floats &got, double allowed);
void expect(bool good, const char *what);
/* Returns the slice in the middle of a slab with rows of ld values; requires that the rest is unchanged. */
floats slice_of(const floats &slab, const floats &before, unsigned ld, unsigned channels, const char *what);
/* Prints one line for all comparisons since the last call; the second form adds the name of the set. */
void finish_case(const char *name);
void finish_case(const value_set &set, const char *name);
int summary();
/* The rest of main(): takes the word `small`, runs `once`, if any, then `run` for each set, and prints the sums. */
int run_program(int argc, char **argv, void (*run)(const value_set &set), void (*once)() = NULL);

#endif
