/*
 * emulated.h - the interface of the emulator for kernels, which are compiled as C++ for the host
 *
 * A thread of a block is a fiber with its own stack.  Blocks run one after the other.  The fibers of a block take
 * turns:  each one runs until it waits for its block or its warp, or ends.  So between two barriers the threads run one
 * after the other, in an order that EMULATOR_THREADS shuffles.  Shared memory is NaN when a block begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATED_H
#define EMULATED_H

#include "half.h"

#include <stddef.h>
#include <type_traits>

#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict

namespace emulated
{
/* Copy with one counted load and one counted store (build "counted"). */
void copy_wide(void *to, const void *from, size_t size);
} // namespace emulated

/* Copying such a value of 16 bytes counts as one access; the compiler would split it. */
#ifdef EMULATOR_COUNTED
#define COPIED_WHOLE(type, part)                                  \
    type() = default;                                             \
    type(part a, part b, part c, part d) : x(a), y(b), z(c), w(d) \
    {                                                             \
    }                                                             \
    type(const type &from)                                        \
    {                                                             \
        emulated::copy_wide(this, &from, sizeof(from));           \
    }                                                             \
    type &operator=(const type &from)                             \
    {                                                             \
        emulated::copy_wide(this, &from, sizeof(from));           \
        return *this;                                             \
    }
#else
#define COPIED_WHOLE(type, part)
#endif

struct uint3 {
    unsigned x, y, z;
};
struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
    COPIED_WHOLE(uint4, uint32_t)
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
    COPIED_WHOLE(float4, float)
};

namespace emulated
{
/* A position in the source. */
struct place {
    const char *file;
    int line;
};
#define EMULATED_HERE (emulated::place{__builtin_FILE(), __builtin_LINE()})

struct thread {
    uint3 index, block, block_size, grid;
    unsigned lane, warp;
    unsigned char *shared; /* dynamic shared memory of the block */
};
extern thread *self;

/* The wait of programmatic dependent launch.  No effect if the device or the PTX version does not support it. */
void wait_for_kernels(place at);

void sync_block(place at);
void sync_warp(uint32_t mask, place at);

/* Each lane of the mask passes `words` and receives those of lane `from`. */
void shuffle(uint32_t mask, const uint32_t *mine, unsigned words, unsigned from, uint32_t *out, place at);
uint32_t ballot(uint32_t mask, bool vote, place at);

/*
 * The fragments of PTX ISA, "Matrix multiply-accumulate": a[2 * r + h] is half h of register r of this lane.
 * mma_884: `transposed` means that k is the slowest index of the operand: A as .col, B as .row.
 */
void mma_16816(float d[4], const float a[8], const float b[4], place at);
/* Two products: b gives d, and b + 4 gives d + 4.  The lanes synchronise once for both. */
void mma_16816_twice(float d[8], const float a[8], const float b[8], place at);
/* fp16 only, as on sm_75. */
void mma_1688(float d[4], const float a[4], const float b[2], place at);
void mma_884(float d[8], const float a[4], const float b[4], bool transposed_a, bool transposed_b, place at);
/* m16n8k8 of tf32, whose lower 13 bits are ignored; twice: two products, as of mma_16816_twice, of b and b + 2. */
void mma_1688_tf32(float d[4], const float a[4], const float b[2], place at);
void mma_1688_tf32_twice(float d[8], const float a[4], const float b[4], place at);
/* `row` is the address of row lane % 8 of matrix lane / 8; p[count * i + k] is set to row first + k of matrix i. */
void exchange_rows(const void *row, unsigned matrices, unsigned first, unsigned count, const void **p, place at);

/* Copy 16 bytes: `valid` bytes come from `from`, the others are 0.  NaN until the copy was waited for. */
void copy_async(void *to, const void *from, unsigned size, unsigned valid, place at);
void copy_commit();
void copy_wait(unsigned groups_left);

/* End the process if p is not a multiple of `align`. */
void check_aligned(const void *p, size_t align, place at);
/* Load a value of 2 or 4 bytes from shared memory for ldmatrix. */
void fetch(void *to, const void *from, size_t size);

/* An access of 16 bytes (32 if the half types are float), counted as one access. */
void load_wide(void *to, const void *from, size_t size);
void store_wide(void *to, const void *from, size_t size);

template <typename T>
static inline void
load_whole(T &to, const void *from, place at)
{
    check_aligned(from, 16, at);
#ifdef EMULATOR_COUNTED
    load_wide(&to, from, sizeof(to));
#else
    to = *(const T *)from;
#endif
}

template <typename T>
static inline void
store_whole(void *to, const T &from, place at)
{
    check_aligned(to, 16, at);
#ifdef EMULATOR_COUNTED
    store_wide(to, &from, sizeof(from));
#else
    *(T *)to = from;
#endif
}

template <typename T>
static inline void
mma_16816(float d[4], const T a[8], const T b[4], place at)
{
    float fa[8], fb[4];

    for (unsigned i = 0; i < 8; i++)
        fa[i] = to_float(a[i]);
    for (unsigned i = 0; i < 4; i++)
        fb[i] = to_float(b[i]);
    mma_16816(d, (const float *)fa, (const float *)fb, at);
}

template <typename T>
static inline void
mma_16816_twice(float d[8], const T a[8], const T b[8], place at)
{
    float fa[8], fb[8];

    for (unsigned i = 0; i < 8; i++) {
        fa[i] = to_float(a[i]);
        fb[i] = to_float(b[i]);
    }
    mma_16816_twice(d, (const float *)fa, (const float *)fb, at);
}

template <typename T>
static inline void
mma_1688(float d[4], const T a[4], const T b[2], place at)
{
    float fa[4], fb[2];

    for (unsigned i = 0; i < 4; i++)
        fa[i] = to_float(a[i]);
    for (unsigned i = 0; i < 2; i++)
        fb[i] = to_float(b[i]);
    mma_1688(d, (const float *)fa, (const float *)fb, at);
}

template <typename T>
static inline void
mma_884(float d[8], const T a[4], const T b[4], bool transposed_a, bool transposed_b, place at)
{
    float fa[4], fb[4];

    for (unsigned i = 0; i < 4; i++) {
        fa[i] = to_float(a[i]);
        fb[i] = to_float(b[i]);
    }
    mma_884(d, (const float *)fa, (const float *)fb, transposed_a, transposed_b, at);
}

static inline uint32_t
bits_of_float(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, 4);
    return bits;
}

static inline float
float_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, 4);
    return x;
}

template <typename T>
static inline T
shuffle_value(uint32_t mask, T value, unsigned from, place at)
{
    static_assert(sizeof(T) % 4 == 0, "words travel");
    uint32_t in[sizeof(T) / 4], out[sizeof(T) / 4];

    memcpy(in, &value, sizeof(T));
    shuffle(mask, in, sizeof(T) / 4, from & 31, out, at);
    memcpy(&value, out, sizeof(T));
    return value;
}

/*
 * ldmatrix.  T has 2 bytes, or is float if the half types are float; a row of a matrix has 8 values.  out[2 * i + h] is
 * the value of matrix i in row lane / 4 and column lane % 4 * 2 + h; with `transposed`, rows and columns are exchanged.
 */
template <typename T>
static inline void
ldmatrix(T *out, unsigned matrices, bool transposed, const void *row, place at)
{
    unsigned count = transposed ? 2 : 1;
    const void *p[8];

    exchange_rows(row, matrices, transposed ? self->lane % 4 * 2 : self->lane / 4, count, p, at);
    for (unsigned i = 0; i < matrices; i++)
        for (unsigned h = 0; h < 2; h++) {
            const T *from = transposed ? (const T *)p[2 * i + h] + self->lane / 4
                                       : (const T *)p[i] + self->lane % 4 * 2 + h;

            fetch(&out[2 * i + h], from, sizeof(T));
        }
}

/* ldmatrix of .b16, where a row of a matrix has four words: out[i] is word lane % 4 of row lane / 4 of matrix i. */
static inline void
ldmatrix_words(float *out, unsigned matrices, const void *row, place at)
{
    const void *p[4];

    exchange_rows(row, matrices, self->lane / 4, 1, p, at);
    for (unsigned i = 0; i < matrices; i++)
        fetch(&out[i], (const float *)p[i] + self->lane % 4, sizeof(float));
}

template <typename T>
static inline T
atomic_add(T *to, T value)
{
    if constexpr (std::is_integral_v<T>) {
        return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
    } else {
        T old, sum;

        __atomic_load(to, &old, __ATOMIC_RELAXED);
        do {
            sum = old + value;
        } while (!__atomic_compare_exchange(to, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return old;
    }
}

template <typename T>
static inline T
atomic_max(T *to, T value)
{
    T old = __atomic_load_n(to, __ATOMIC_RELAXED);

    while (old < value && !__atomic_compare_exchange_n(to, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}

/* A kernel, found by the address that cudaLaunchKernel() receives. */
struct kernel {
    const char *name;
    void (*run)(const void *argument);
    size_t argument;   /* bytes of its only argument */
    unsigned threads;  /* most threads of a block */
    size_t shared;     /* limit of dynamic shared memory: 48 KiB unless raised */
    int carveout = -1; /* preferred percentage of shared memory; -1: the driver chooses */
};
struct register_kernel {
    register_kernel(const void *address, kernel k);
};
} // namespace emulated

/* Define extern "C" void name(type a) { ... } as a kernel with at most `threads` threads per block. */
#define EMULATED_KERNEL(name, type, threads)                                                                     \
    extern "C" void name(const type a);                                                                          \
    static const emulated::register_kernel name##_is_a_kernel(                                                   \
        (const void *)name,                                                                                      \
        {#name, [](const void *argument) { name(*(const type *)argument); }, sizeof(type), threads, 48u << 10}); \
    extern "C" void name(const type a)

#define threadIdx (emulated::self->index)
#define blockIdx  (emulated::self->block)
#define blockDim  (emulated::self->block_size)
#define gridDim   (emulated::self->grid)

#define EMULATED_LANE                    (emulated::self->lane)
#define __syncthreads()                  emulated::sync_block(EMULATED_HERE)
#define __float_as_uint(x)               emulated::bits_of_float(x)
#define __uint_as_float(x)               emulated::float_of_bits(x)
#define __syncwarp()                     emulated::sync_warp(0xffffffffu, EMULATED_HERE)
#define __syncwarp_of(mask)              emulated::sync_warp(mask, EMULATED_HERE)
#define __shfl_sync(mask, value, from)   emulated::shuffle_value(mask, value, from, EMULATED_HERE)
#define __shfl_xor_sync(mask, value, by) emulated::shuffle_value(mask, value, EMULATED_LANE ^ (by), EMULATED_HERE)
#define __shfl_down_sync(mask, value, by)                                                                  \
    emulated::shuffle_value(mask, value, EMULATED_LANE + (by) < 32 ? EMULATED_LANE + (by) : EMULATED_LANE, \
                            EMULATED_HERE)
#define __shfl_up_sync(mask, value, by) \
    emulated::shuffle_value(mask, value, EMULATED_LANE >= (by) ? EMULATED_LANE - (by) : EMULATED_LANE, EMULATED_HERE)
#define __ballot_sync(mask, vote) emulated::ballot(mask, vote, EMULATED_HERE)
#define __any_sync(mask, vote)    (emulated::ballot(mask, vote, EMULATED_HERE) != 0)
#define __all_sync(mask, vote)    (emulated::ballot(mask, vote, EMULATED_HERE) == (mask))
#define atomicAdd(to, value)      emulated::atomic_add(to, value)
#define atomicMax(to, value)      emulated::atomic_max(to, value)
#define __threadfence()           ((void)0)
#define __ldg(p)                  (*(p))

static inline float
rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

template <typename T>
static inline T
min(T a, T b)
{
    return a < b ? a : b;
}

template <typename T>
static inline T
max(T a, T b)
{
    return a > b ? a : b;
}

#endif
