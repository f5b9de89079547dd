/*
 * inspect_values.h - numbers about the values of a tensor, and about how two tensors differ
 *
 * Values are read in pieces: no tensor is ever whole in memory.  Sums are taken over the finite values, in their order,
 * so that the same files give the same numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_VALUES_H
#define CHEX_TOOLS_INSPECT_VALUES_H

#include "checkpoint/safetensors.h"

static inline bool
dtype_is_integer(enum dtype type)
{
    return type >= DTYPE_I64;
}

/* Of one tensor, or of many; zero-initialised: of none. */
struct value_sums {
    uint64_t count, nan, infinite, zeros;
    double min, max, sum, squares; /* of the others */
};

enum chex_status value_sums_read(const struct safetensors *s, const struct tensor_entry *entry, struct value_sums *out,
                                 struct chex_error *err);
void value_sums_add(struct value_sums *all, const struct value_sums *more);
uint64_t value_sums_bad(const struct value_sums *v); /* NaN and infinite ones */
/* NaN where there is no finite value. */
double value_sums_min(const struct value_sums *v);
double value_sums_max(const struct value_sums *v);
double value_sums_mean(const struct value_sums *v);
double value_sums_norm(const struct value_sums *v); /* L2; 0 for none */

/*
 * Of two tensors of one shape, or of many such pairs.  Where the types are the same, a value differs where its bytes
 * do; else where the numbers do.  max_abs and the squares are of the pairs in which both are finite.
 */
struct value_difference {
    uint64_t count, differ;
    uint64_t bytes, equal_bytes; /* of tensors that have one type on both sides */
    uint64_t bad[2];             /* values that are not finite, in A and in B */
    double max_abs;
    double squares, squares_a; /* of B - A, and of A */
    /* The value that differs most, and the two numbers; one pair of which one is not finite counts most. */
    uint64_t worst;
    double at[2];
};

enum chex_status value_difference_read(const struct safetensors *a, const struct tensor_entry *in_a,
                                       const struct safetensors *b, const struct tensor_entry *in_b,
                                       struct value_difference *out, struct chex_error *err);
/* All but worst and at, which are of one tensor. */
void value_difference_add(struct value_difference *all, const struct value_difference *more);
/*
 * |B - A| / |A| in the L2 norm: 0 where nothing differs, NaN where A is zero and B is not, or where the squares
 * overflow.
 */
double value_difference_relative(const struct value_difference *d);

#endif
