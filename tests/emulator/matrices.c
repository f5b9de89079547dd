/*
 * matrices.c - compares mma and ldmatrix with plain multiplication, for every position of a fragment, in fp16 and bf16
 *
 * The PTX ISA defines which lane holds which value: "Matrix Fragments for mma.m16n8k16 with floating point type",
 * "Matrix Fragments for mma.m16n8k8", "Matrix Fragments for mma.m8n8k4 with .f16 floating point type" and "ldmatrix".
 * The formulas below are copied from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emulator.h"
#include "rule_kernels.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned passed, failed;
static cudaStream_t stream;

#define MUST(call) must(call, #call)
static void
must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(e));
    exit(3);
}

static void
report(const char *name, unsigned wrong)
{
    printf("%s %s\n", wrong ? "FAIL" : "ok  ", name);
    if (wrong)
        failed++;
    else
        passed++;
}

/* Small integers are exact in both types: at most 8 bits. */
static uint16_t
half_of(int value, bool bf16)
{
    float f = (float)value;
    uint32_t bits;
    int exponent;

    if (value == 0)
        return 0;
    memcpy(&bits, &f, 4);
    if (bf16)
        return (uint16_t)(bits >> 16);
    exponent = (int)(bits >> 23 & 0xff) - 127 + 15;
    return (uint16_t)((bits >> 16 & 0x8000) | (unsigned)exponent << 10 | (bits >> 13 & 0x3ff));
}

static int
small_number(void)
{
    static uint32_t state = 1;

    state = state * 1664525u + 1013904223u;
    return (int)(state >> 24) % 15 - 7;
}

static void
run(void (*kernel)(struct product), struct product a, const void *ha, size_t size_a, const void *hb, size_t size_b,
    void *out, size_t size, size_t shared)
{
    void *arguments[] = {&a};

    MUST(cudaMalloc((void **)&a.a, size_a));
    MUST(cudaMalloc((void **)&a.b, size_b));
    MUST(cudaMalloc((void **)&a.out, size));
    MUST(cudaMemcpyAsync((void *)a.a, ha, size_a, cudaMemcpyHostToDevice, stream));
    MUST(cudaMemcpyAsync((void *)a.b, hb, size_b, cudaMemcpyHostToDevice, stream));
    MUST(cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, shared, stream));
    MUST(cudaMemcpyAsync(out, a.out, size, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree((void *)a.a));
    MUST(cudaFree((void *)a.b));
    MUST(cudaFree(a.out));
}

/* Each run sets one value of A and all of B: 256 runs instead of 2048 for single values of both. */
static void
check_16816(bool bf16)
{
    int a[16][16], b[16][8], want;
    uint16_t fa[32][8], fb[32][4];
    float out[32][4];
    unsigned lane, i, k, only, wrong = 0;

    for (only = 0; only <= 256; only++) { /* 256: all values */
        for (i = 0; i < 16; i++)
            for (k = 0; k < 16; k++)
                a[i][k] = only == 256 || only == i * 16 + k ? small_number() : 0;
        for (k = 0; k < 16; k++)
            for (i = 0; i < 8; i++)
                b[k][i] = small_number();
        for (lane = 0; lane < 32; lane++) {
            unsigned group = lane >> 2, in_group = lane % 4;

            for (i = 0; i < 8; i++) {
                unsigned row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
                unsigned column = in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);

                fa[lane][i] = half_of(a[row][column], bf16);
            }
            for (i = 0; i < 4; i++)
                fb[lane][i] = half_of(b[in_group * 2 + (i & 1) + (i < 2 ? 0 : 8)][group], bf16);
        }
        run(product_16816, (struct product){.bf16 = bf16}, fa, sizeof(fa), fb, sizeof(fb), out, sizeof(out), 0);
        for (lane = 0; lane < 32; lane++)
            for (i = 0; i < 4; i++) {
                unsigned row = i < 2 ? lane >> 2 : (lane >> 2) + 8, column = lane % 4 * 2 + (i & 1);

                for (want = 0, k = 0; k < 16; k++)
                    want += a[row][k] * b[k][column];
                wrong += out[lane][i] != (float)want;
            }
    }
    report(bf16 ? "mma.m16n8k16, bf16, every place of A" : "mma.m16n8k16, fp16, every place of A", wrong);
}

/* "Matrix Fragments for mma.m16n8k8": row = groupID or groupID + 8, column = threadID_in_group * 2 + (i & 1). */
static void
check_1688(void)
{
    int a[16][8], b[8][8], want;
    uint16_t fa[32][4], fb[32][2];
    float out[32][4];
    unsigned lane, i, k, only, wrong = 0;

    for (only = 0; only <= 128; only++) { /* 128: all values */
        for (i = 0; i < 16; i++)
            for (k = 0; k < 8; k++)
                a[i][k] = only == 128 || only == i * 8 + k ? small_number() : 0;
        for (k = 0; k < 8; k++)
            for (i = 0; i < 8; i++)
                b[k][i] = small_number();
        for (lane = 0; lane < 32; lane++) {
            unsigned group = lane >> 2, in_group = lane % 4;

            for (i = 0; i < 4; i++)
                fa[lane][i] = half_of(a[i < 2 ? group : group + 8][in_group * 2 + (i & 1)], false);
            for (i = 0; i < 2; i++)
                fb[lane][i] = half_of(b[in_group * 2 + i][group], false);
        }
        run(product_1688, (struct product){0}, fa, sizeof(fa), fb, sizeof(fb), out, sizeof(out), 0);
        for (lane = 0; lane < 32; lane++)
            for (i = 0; i < 4; i++) {
                unsigned row = i < 2 ? lane >> 2 : (lane >> 2) + 8, column = lane % 4 * 2 + (i & 1);

                for (want = 0, k = 0; k < 8; k++)
                    want += a[row][k] * b[k][column];
                wrong += out[lane][i] != (float)want;
            }
    }
    report("mma.m16n8k8, every place of A", wrong);
}

static float
with_ignored_bits(int value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, 4);
    bits |= 0x1fff;
    memcpy(&f, &bits, 4);
    return f;
}

/* The same with .tf32: a0, a1 in column threadID_in_group, a2, a3 + 4; rows groupID for a0 and a2, + 8 for others. */
static void
check_tf32(void)
{
    int a[16][8], b[8][8], want;
    float fa[32][4], fb[32][2], out[32][4];
    unsigned lane, i, k, only, wrong = 0;

    for (only = 0; only <= 128; only++) { /* 128: all values */
        for (i = 0; i < 16; i++)
            for (k = 0; k < 8; k++)
                a[i][k] = only == 128 || only == i * 8 + k ? small_number() : 0;
        for (k = 0; k < 8; k++)
            for (i = 0; i < 8; i++)
                b[k][i] = small_number();
        for (lane = 0; lane < 32; lane++) {
            unsigned group = lane >> 2, in_group = lane % 4;

            for (i = 0; i < 4; i++)
                fa[lane][i] = with_ignored_bits(
                    a[i == 0 || i == 2 ? group : group + 8][i < 2 ? in_group : in_group + 4]);
            for (i = 0; i < 2; i++)
                fb[lane][i] = with_ignored_bits(b[i == 0 ? in_group : in_group + 4][group]);
        }
        run(product_tf32, (struct product){0}, fa, sizeof(fa), fb, sizeof(fb), out, sizeof(out), 0);
        for (lane = 0; lane < 32; lane++)
            for (i = 0; i < 4; i++) {
                unsigned row = i < 2 ? lane >> 2 : (lane >> 2) + 8, column = lane % 4 * 2 + (i & 1);

                for (want = 0, k = 0; k < 8; k++)
                    want += a[row][k] * b[k][column];
                wrong += out[lane][i] != (float)want;
            }
    }
    report("mma.m16n8k8 of tf32, every place of A", wrong);
}

/* Four products of 8 x 4 by 4 x 8, each of a quad pair. */
static void
check_884(bool column_a, bool row_b)
{
    int a[4][8][4], b[4][4][8], want;
    uint16_t fa[32][8], fb[32][4];
    float out[32][8];
    unsigned lane, i, k, q, only, wrong = 0;
    char name[60];

    for (only = 0; only <= 32; only++) {
        for (q = 0; q < 4; q++)
            for (i = 0; i < 8; i++)
                for (k = 0; k < 4; k++) {
                    a[q][i][k] = only == 32 || only == i * 4 + k ? small_number() : 0;
                    b[q][k][i] = small_number();
                }
        for (lane = 0; lane < 32; lane++) {
            q = lane % 16 / 4;
            for (i = 0; i < 4; i++) {
                unsigned line = lane < 16 ? lane % 4 : lane % 4 + 4, across = lane < 16 ? i : i + 4;

                fa[lane][i] = half_of(column_a ? a[q][across][lane % 4] : a[q][line][i], false);
                fb[lane][i] = half_of(row_b ? b[q][lane % 4][across] : b[q][i][line], false);
            }
        }
        run(product_884, (struct product){.transposed_a = column_a, .transposed_b = row_b}, fa, sizeof(fa), fb,
            sizeof(fb), out, sizeof(out), 0);
        for (lane = 0; lane < 32; lane++)
            for (i = 0; i < 8; i++) {
                unsigned x = (lane & 1) + (i & 2), row = lane < 16 ? x : x + 4;
                unsigned column = (i & 4) + (lane & 2) + (i & 1);

                q = lane % 16 / 4;
                for (want = 0, k = 0; k < 4; k++)
                    want += a[q][row][k] * b[q][k][column];
                wrong += out[lane][i] != (float)want;
            }
    }
    snprintf(name, sizeof(name), "mma.m8n8k4.%s.%s, every place of A", column_a ? "col" : "row", row_b ? "row" : "col");
    report(name, wrong);
}

/* From memory by ldmatrix: row major or transposed, both operands. */
static void
check_loaded(bool bf16, bool transposed_a, bool transposed_b)
{
    int a[16][16], b[16][8], want;
    uint16_t ma[256], mb[128];
    float out[16][8];
    unsigned i, k, n, wrong = 0;
    char name[80];

    for (i = 0; i < 16; i++)
        for (k = 0; k < 16; k++) {
            a[i][k] = small_number();
            ma[transposed_a ? k * 16 + i : i * 16 + k] = half_of(a[i][k], bf16);
        }
    for (k = 0; k < 16; k++)
        for (n = 0; n < 8; n++) {
            b[k][n] = small_number();
            mb[transposed_b ? k * 8 + n : n * 16 + k] = half_of(b[k][n], bf16);
        }
    run(product_loaded, (struct product){.bf16 = bf16, .transposed_a = transposed_a, .transposed_b = transposed_b}, ma,
        sizeof(ma), mb, sizeof(mb), out, sizeof(out), 768);
    for (i = 0; i < 16; i++)
        for (n = 0; n < 8; n++) {
            for (want = 0, k = 0; k < 16; k++)
                want += a[i][k] * b[k][n];
            wrong += out[i][n] != (float)want;
        }
    snprintf(name, sizeof(name), "ldmatrix%s and ldmatrix%s make a product, %s", transposed_a ? ".trans" : "",
             transposed_b ? ".trans" : "", bf16 ? "bf16" : "fp16");
    report(name, wrong);
}

static void
check_load(unsigned count, bool transposed)
{
    uint16_t in[4 * 64], out[32 * 8];
    struct load a = {NULL, NULL, count, transposed};
    void *arguments[] = {&a};
    unsigned lane, i, h, wrong = 0;
    char name[60];

    for (i = 0; i < sizeof(in) / 2; i++)
        in[i] = (uint16_t)(i + 1);
    MUST(cudaMalloc((void **)&a.in, count * 128));
    MUST(cudaMalloc((void **)&a.out, count * 128));
    MUST(cudaMemcpyAsync((void *)a.in, in, count * 128, cudaMemcpyHostToDevice, stream));
    MUST(cudaLaunchKernel((const void *)load_matrices, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 512, stream));
    MUST(cudaMemcpyAsync(out, a.out, count * 128, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (lane = 0; lane < 32; lane++)
        for (i = 0; i < count; i++)
            for (h = 0; h < 2; h++) {
                unsigned row = lane / 4, column = lane % 4 * 2 + h;

                wrong += out[(lane * count + i) * 2 + h] !=
                         in[i * 64 + (transposed ? column * 8 + row : row * 8 + column)];
            }
    MUST(cudaFree((void *)a.in));
    MUST(cudaFree(a.out));
    snprintf(name, sizeof(name), "ldmatrix.x%u%s", count, transposed ? ".trans" : "");
    report(name, wrong);
}

int
main(void)
{
    unsigned i;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check_16816(false);
    check_16816(true);
    check_1688();
    check_tf32();
    for (i = 0; i < 4; i++)
        check_884(i & 1, i & 2);
    for (i = 0; i < 8; i++)
        check_loaded(i & 4, i & 1, i & 2);
    for (i = 1; i <= 4; i *= 2) {
        check_load(i, false);
        check_load(i, true);
    }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
