/*
 * values.h - statistics of one tensor's values and of the difference of two tensors
 *
 * The functions read values in pieces, so memory never holds a whole tensor.  They add up the finite values in file
 * order, so the same files always give the same numbers.
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

/* Statistics of one or more tensors; zero-initialise for none. */
struct value_sums {
    uint64_t count, nan, infinite, zeros;
    double min, max, sum, squares; /* of the finite values */
};

enum chex_status value_sums_read(const struct safetensors *s, const struct tensor_entry *entry, struct value_sums *out,
                                 struct chex_error *err);
void value_sums_add(struct value_sums *all, const struct value_sums *more);
uint64_t value_sums_bad(const struct value_sums *v); /* returns the count of NaN and infinite values */
/* Return NaN if there is no finite value. */
double value_sums_min(const struct value_sums *v);
double value_sums_max(const struct value_sums *v);
double value_sums_mean(const struct value_sums *v);
double value_sums_norm(const struct value_sums *v); /* L2; 0 for none */

/*
 * The difference of two tensors of equal shape, or the sum over several such pairs.  If the types are equal, the
 * comparison is by bytes, otherwise by numbers.  max_abs and the squares include only pairs of finite values.
 */
struct value_difference {
    uint64_t count, differ;
    uint64_t bytes, equal_bytes; /* of tensors with the same type in A and B */
    uint64_t bad[2];             /* non-finite values of A and of B */
    double max_abs;
    double squares, squares_a; /* of B - A, and of A */
    /* Index of the largest difference, and both values.  A pair with a non-finite value ranks first. */
    uint64_t worst;
    double at[2];
};

enum chex_status value_difference_read(const struct safetensors *a, const struct tensor_entry *in_a,
                                       const struct safetensors *b, const struct tensor_entry *in_b,
                                       struct value_difference *out, struct chex_error *err);
/* Add all members except worst and at, which belong to one tensor. */
void value_difference_add(struct value_difference *all, const struct value_difference *more);
/*
 * Returns |B - A| / |A| in the L2 norm: 0 if nothing differs, NaN if A is zero and B is not, or if the squares
 * overflow.
 */
double value_difference_relative(const struct value_difference *d);

#endif
