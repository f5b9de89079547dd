/*
 * random.c - see random.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "math/random.h"

#include <math.h>

void
random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    int round;

    for (round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53 * c0, p1 = (uint64_t)0xcd9e8d57 * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Returns the 128 bits of number i. */
static void
block(const struct random_stream *s, uint32_t i, uint32_t out[4])
{
    const uint32_t counter[4] = {i, s->a, s->b, (uint32_t)s->purpose};
    const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};

    random_philox(counter, key, out);
}

uint64_t
random_bits(const struct random_stream *s, uint32_t i)
{
    uint32_t v[4];

    block(s, i, v);
    return (uint64_t)v[1] << 32 | v[0];
}

uint64_t
random_below(const struct random_stream *s, uint32_t i, uint64_t n)
{
    return (uint64_t)((unsigned __int128)random_bits(s, i) * n >> 64);
}

double
random_uniform(const struct random_stream *s, uint32_t i)
{
    return (double)(random_bits(s, i) >> 11) * 0x1p-53;
}

double
random_normal(const struct random_stream *s, uint32_t i)
{
    uint32_t v[4];
    double radius, angle;

    block(s, i, v);
    /* In (0, 1], so the logarithm is finite. */
    radius = sqrt(-2 * log((double)(((uint64_t)v[1] << 32 | v[0]) >> 11) * 0x1p-53 + 0x1p-53));
    angle = 2 * 3.14159265358979323846 * ((double)(((uint64_t)v[3] << 32 | v[2]) >> 11) * 0x1p-53);
    return radius * cos(angle);
}

/* ---- Beta -------------------------------------------------------------------------------------------------------- */

/*
 * Logarithm, exponential and sine from operations that IEEE 754 defines to the last bit, because those of the C
 * libraries differ in their last bits.  Their relative errors are below 1e-14.
 */

/* Returns log(x), 0 < x <= 1.  x = m 2^e, and log(m) = 2 artanh((m - 1) / (m + 1)). */
static double
portable_log(double x)
{
    int exponent, k;
    double m = frexp(x, &exponent), z = (m - 1) / (m + 1), sum = 0;

    for (k = 33; k >= 1; k -= 2)
        sum = sum * z * z + 1 / (double)k;
    return 2 * z * sum + exponent * 0.69314718055994530942;
}

/* Returns exp(x), x <= 0.  x = r + k log(2), with |r| <= log(2) / 2. */
static double
portable_exp(double x)
{
    const double log2 = 0.69314718055994530942;
    double sum = 1, times, r;
    int k;

    if (x < -700) /* exp(x) < 1e-304 */
        return 0;
    times = floor(x / log2 + 0.5);
    r = x - times * log2;
    for (k = 16; k >= 1; k--)
        sum = 1 + sum * r / k;
    return ldexp(sum, (int)times);
}

/* Returns sin(x), |x| <= pi / 2. */
static double
portable_sin(double x)
{
    double sum = 1;
    int k;

    for (k = 22; k >= 2; k -= 2)
        sum = 1 - sum * x * x / (double)(k * (k + 1));
    return x * sum;
}

/*
 * Devroye, Random Variate Generation in One Line of Code, WSC 1996: with Bailey's T = sqrt(n (U^(-2 / n) - 1)) sin(V),
 * which has Student's t distribution with n = 2 alpha degrees of freedom, (1 + T / sqrt(n + T^2)) / 2 is from
 * Beta(alpha, alpha).  No draw is rejected.  Here both fractions are multiplied by w = U^(1 / alpha), which cannot
 * overflow.  V is uniform from -pi / 2 to pi / 2: the sine has the same distribution as that of a whole turn.
 */
double
random_beta(const struct random_stream *s, uint32_t i, double alpha)
{
    uint32_t v[4];
    double u, sine, w, root;

    block(s, i, v);
    u = (double)(((uint64_t)v[1] << 32 | v[0]) >> 11) * 0x1p-53 + 0x1p-53; /* in (0, 1] */
    sine = portable_sin(3.14159265358979323846 * ((double)(((uint64_t)v[3] << 32 | v[2]) >> 11) * 0x1p-53 - 0.5));
    w = portable_exp(portable_log(u) / alpha);
    root = sqrt(w + (1 - w) * sine * sine);
    return root > 0 ? (1 + sqrt(1 - w) * sine / root) / 2 : 0.5;
}
