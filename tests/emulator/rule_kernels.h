/*
 * rule_kernels.h - kernels that obey a rule of the execution model, or violate it if `broken` is set
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_RULE_KERNELS_H
#define EMULATOR_RULE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RULE_THREADS 64

struct rule {
    float *out;      /* [RULE_THREADS], or as the kernel says */
    const float *in; /* [RULE_THREADS] */
    unsigned broken;
};
void block_barrier(const struct rule a);    /* out[t] = in[63 - t] through shared memory */
void warp_barrier(const struct rule a);     /* the same within warps: out[t] = in[t ^ 31] */
void places_of_blocks(const struct rule a); /* out[block] = block */
void blocks_in_a_row(const struct rule a);  /* out[block + 1] = 1; broken: out[block] + 1 */
void async_wait(const struct rule a);       /* out[t] = in[t ^ 1] through asynchronous copies; dynamic shared memory */
void async_group(const struct rule a);      /* the same in two groups, the later one needed */
void async_forgotten(const struct rule a);  /* the same, and another copy that nobody waits for */
void async_early(const struct rule a);      /* a copy into memory that others still read */
void tensor_end(const struct rule a);       /* out[t] = in[t]; broken: in[t + 64] */
void shared_end(const struct rule a);       /* block_barrier with 256 bytes; broken: one more value after the end */
void vector_access(const struct rule a);    /* out[4 t ..] = in[4 t ..] by 16 bytes, t < 15; broken: from in[4 t + 1] */
void same_barrier(const struct rule a);     /* block_barrier; broken: two barriers in two branches */
void all_at_barrier(const struct rule a);   /* block_barrier; broken: some threads have ended */
void all_in_shuffle(const struct rule a);   /* out[t] = in[t ^ 1]; broken: only half of the lanes take part */
void lane_of_mask(const struct rule a);     /* out[t] = in[t ^ 1], for t % 32 < 16 only; broken: in[t ^ 16] */
void initialised_shared(const struct rule a); /* out[t] = 0 from cleared shared memory; broken: not cleared */
void matrix_row(const struct rule a);         /* ldmatrix of rows of 16 bytes; broken: at odd addresses */
void waits_first(const struct rule a);        /* out[t] = in[t]; broken: before the wait for earlier kernels */
void all_wait(const struct rule a);           /* the same; broken: one thread ends before the wait */
void votes(const struct rule a);   /* out[t]: ballot of t % 3 == 0, any, all, shuffles up and down: 5 a thread */
void atomics(const struct rule a); /* out[0] counts threads, out[1] their sum, out[2] the largest, as integers */
void shape(const struct rule a);   /* out[linear thread of the grid] = its own number, from x, y and z */

/*
 * One product of fragments prepared by the host: [32][8] or [32][4] of A, [32][4] or [32][2] of B, out [32][4] or
 * [32][8].
 */
struct product {
    const uint16_t *a, *b;
    float *out;
    unsigned bf16, transposed_a, transposed_b;
};
void product_16816(const struct product a);
void product_1688(const struct product a);
void product_tf32(const struct product a); /* mma.m16n8k8 of tf32, values as pairs of halves of the bits of floats */
void product_884(const struct product a);
/* The same with ldmatrix: a [16][16] or transposed, b [8][16] (n by k) or transposed, out [16][8]. */
void product_loaded(const struct product a);
/* The result of ldmatrix: `count` matrices of 8 x 8; out [32][2 * count]. */
struct load {
    const uint16_t *in;
    uint16_t *out;
    unsigned count, transposed;
};
void load_matrices(const struct load a);

#ifdef __cplusplus
}
#endif

#endif
