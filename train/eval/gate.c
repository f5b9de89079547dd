/*
 * gate.c - the fit of a gate and its check; see gate.h
 *
 * The principal components are the eigenvectors of the covariance with the largest eigenvalues.  Subspace iteration
 * (Golub and Van Loan, "Matrix Computations", 8.2.4) finds them: multiply a few more vectors than are needed by the
 * covariance, make them orthonormal, repeat.  At the end the covariance within their span is diagonalised by Jacobi's
 * method.  The sign of a component is that which makes its largest value positive.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/gate.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS   40 /* of the iteration */
#define PASSES    20
#define SWEEPS    30
#define LEAST_SUM (GATE_PIXELS * 1.0) /* of squares: a deviation of one gray level */

const char *const gate_change_names[] = {
    [GATE_AS_IS] = "as it is",
    [GATE_90] = "turned by 90 degrees",
    [GATE_180] = "turned by 180 degrees",
    [GATE_270] = "turned by 270 degrees",
    [GATE_INVERTED] = "inverted",
    [GATE_INVERTED_90] = "inverted and turned by 90 degrees",
    [GATE_INVERTED_180] = "inverted and turned by 180 degrees",
    [GATE_INVERTED_270] = "inverted and turned by 270 degrees",
    NULL,
};

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* Shift and scale to mean 0 and norm 1; returns false for an image of one gray level. */
static bool
normalise(const uint8_t *image, double *out)
{
    double sum = 0, squares = 0, scale;
    size_t i;

    for (i = 0; i < GATE_PIXELS; i++)
        sum += image[i];
    for (i = 0; i < GATE_PIXELS; i++) {
        out[i] = image[i] - sum / GATE_PIXELS;
        squares += out[i] * out[i];
    }
    if (squares < LEAST_SUM)
        return false;
    scale = 1 / sqrt(squares);
    for (i = 0; i < GATE_PIXELS; i++)
        out[i] *= scale;
    return true;
}

/* Turn by 90 degrees, clockwise. */
static void
turn(const double *in, double *out)
{
    size_t x, y;

    for (y = 0; y < GATE_SIDE; y++)
        for (x = 0; x < GATE_SIDE; x++)
            out[y * GATE_SIDE + x] = in[(GATE_SIDE - 1 - x) * GATE_SIDE + y];
}

/* ---- the fit ----------------------------------------------------------------------------------------------------- */

struct fitting {
    double mean[GATE_PIXELS];
    double covariance[GATE_PIXELS][GATE_PIXELS];
    double basis[GATE_PIXELS][VECTORS]; /* a column is a vector */
    double product[GATE_PIXELS][VECTORS];
    double small[VECTORS][VECTORS];    /* the covariance within the span */
    double rotation[VECTORS][VECTORS]; /* its eigenvectors, in columns */
};

/* Add the images to mean and covariance; returns the number of images that are not of one gray level. */
static size_t
gather(struct fitting *f, const uint8_t *images, size_t count)
{
    double z[GATE_PIXELS];
    size_t used = 0, i, a, b;

    for (i = 0; i < count; i++) {
        if (!normalise(images + i * GATE_PIXELS, z))
            continue;
        used++;
        for (a = 0; a < GATE_PIXELS; a++)
            f->mean[a] += z[a];
    }
    for (a = 0; a < GATE_PIXELS; a++)
        f->mean[a] /= (double)(used > 0 ? used : 1);
    for (i = 0; i < count; i++) {
        if (!normalise(images + i * GATE_PIXELS, z))
            continue;
        for (a = 0; a < GATE_PIXELS; a++)
            z[a] -= f->mean[a];
        for (a = 0; a < GATE_PIXELS; a++)
            for (b = 0; b <= a; b++)
                f->covariance[a][b] += z[a] * z[b];
    }
    for (a = 0; a < GATE_PIXELS; a++)
        for (b = a + 1; b < GATE_PIXELS; b++)
            f->covariance[a][b] = f->covariance[b][a];
    return used;
}

/* A fixed sequence of values from -0.5 to 0.5 (the linear congruential generator of Knuth's MMIX). */
static void
begin(struct fitting *f)
{
    uint64_t state = 1;
    size_t a, k;

    for (a = 0; a < GATE_PIXELS; a++)
        for (k = 0; k < VECTORS; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            f->basis[a][k] = (double)(state >> 11) * 0x1p-53 - 0.5;
        }
}

static void
multiply(struct fitting *f)
{
    size_t a, b, k;

    memset(f->product, 0, sizeof(f->product));
    for (a = 0; a < GATE_PIXELS; a++)
        for (b = 0; b < GATE_PIXELS; b++)
            for (k = 0; k < VECTORS; k++)
                f->product[a][k] += f->covariance[a][b] * f->basis[b][k];
}

/* Gram and Schmidt, twice, so that rounding does not matter; a vector that vanishes becomes 0. */
static void
orthonormalise(double (*v)[VECTORS])
{
    size_t k, j, a;
    int pass;

    for (k = 0; k < VECTORS; k++) {
        double norm = 0;

        for (pass = 0; pass < 2; pass++)
            for (j = 0; j < k; j++) {
                double dot = 0;

                for (a = 0; a < GATE_PIXELS; a++)
                    dot += v[a][j] * v[a][k];
                for (a = 0; a < GATE_PIXELS; a++)
                    v[a][k] -= dot * v[a][j];
            }
        for (a = 0; a < GATE_PIXELS; a++)
            norm += v[a][k] * v[a][k];
        norm = sqrt(norm);
        for (a = 0; a < GATE_PIXELS; a++)
            v[a][k] = norm > 1e-150 ? v[a][k] / norm : 0;
    }
}

/* Rotate rows and columns p and q of `small` so that its element there becomes 0. */
static void
rotate(struct fitting *f, size_t p, size_t q)
{
    double theta, t, c, s;
    size_t k;

    if (f->small[p][q] == 0)
        return;
    theta = (f->small[q][q] - f->small[p][p]) / (2 * f->small[p][q]);
    t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    c = 1 / sqrt(t * t + 1);
    s = t * c;
    for (k = 0; k < VECTORS; k++) {
        double x = f->small[k][p], y = f->small[k][q];

        f->small[k][p] = c * x - s * y;
        f->small[k][q] = s * x + c * y;
    }
    for (k = 0; k < VECTORS; k++) {
        double x = f->small[p][k], y = f->small[q][k];

        f->small[p][k] = c * x - s * y;
        f->small[q][k] = s * x + c * y;
        x = f->rotation[k][p];
        y = f->rotation[k][q];
        f->rotation[k][p] = c * x - s * y;
        f->rotation[k][q] = s * x + c * y;
    }
}

/* Diagonalise the covariance within the span of the basis; product has covariance * basis. */
static void
diagonalise(struct fitting *f)
{
    size_t a, p, q;
    int sweep;

    memset(f->small, 0, sizeof(f->small));
    memset(f->rotation, 0, sizeof(f->rotation));
    for (p = 0; p < VECTORS; p++) {
        f->rotation[p][p] = 1;
        for (q = 0; q <= p; q++) {
            for (a = 0; a < GATE_PIXELS; a++)
                f->small[p][q] += f->basis[a][p] * f->product[a][q];
            f->small[q][p] = f->small[p][q];
        }
    }
    for (sweep = 0; sweep < SWEEPS; sweep++)
        for (p = 0; p < VECTORS; p++)
            for (q = p + 1; q < VECTORS; q++)
                rotate(f, p, q);
}

/* Returns the column of the largest eigenvalue that is not taken yet; the first of equal ones. */
static size_t
next_column(const struct fitting *f, bool *taken)
{
    size_t best = VECTORS, k;

    for (k = 0; k < VECTORS; k++)
        if (!taken[k] && (best == VECTORS || f->small[k][k] > f->small[best][best]))
            best = k;
    taken[best] = true;
    return best;
}

/* Store a row as 16-bit numbers. */
static void
store(struct gate *out, size_t row, const double *v, bool sign)
{
    double most = 0, largest = 0;
    size_t a;

    for (a = 0; a < GATE_PIXELS; a++)
        if (fabs(v[a]) > most) {
            most = fabs(v[a]);
            largest = v[a];
        }
    out->scale[row] = most / INT16_MAX;
    for (a = 0; a < GATE_PIXELS; a++)
        out->value[row][a] = most > 0 ? (int16_t)lrint((sign && largest < 0 ? -v[a] : v[a]) / out->scale[row]) : 0;
}

static void
store_components(const struct fitting *f, struct gate *out)
{
    bool taken[VECTORS] = {false};
    double v[GATE_PIXELS];
    size_t row, a, k;

    store(out, 0, f->mean, false);
    for (row = 1; row < GATE_ROWS; row++) {
        size_t column = next_column(f, taken);

        for (a = 0; a < GATE_PIXELS; a++) {
            v[a] = 0;
            for (k = 0; k < VECTORS; k++)
                v[a] += f->basis[a][k] * f->rotation[k][column];
        }
        store(out, row, v, true);
    }
}

enum chex_status
gate_fit(const uint8_t *images, size_t count, struct gate *out, struct chex_error *err)
{
    struct fitting *f = calloc(1, sizeof(*f));
    int pass;

    memset(out, 0, sizeof(*out));
    if (!f)
        return error_memory(err);
    out->images = gather(f, images, count);
    out->there = out->images >= GATE_FEWEST;
    if (out->there) {
        begin(f);
        orthonormalise(f->basis);
        for (pass = 0; pass < PASSES; pass++) {
            multiply(f);
            memcpy(f->basis, f->product, sizeof(f->basis));
            orthonormalise(f->basis);
        }
        multiply(f);
        diagonalise(f);
        store_components(f, out);
    }
    free(f);
    return CHEX_OK;
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

static double
fit_of(const struct gate *g, const double *z, double sign)
{
    double rest[GATE_PIXELS], squares = 0;
    size_t row, a;

    for (a = 0; a < GATE_PIXELS; a++)
        rest[a] = sign * z[a] - g->value[0][a] * g->scale[0];
    for (row = 1; row < GATE_ROWS; row++) {
        double dot = 0;

        for (a = 0; a < GATE_PIXELS; a++)
            dot += rest[a] * (g->value[row][a] * g->scale[row]);
        for (a = 0; a < GATE_PIXELS; a++)
            rest[a] -= dot * (g->value[row][a] * g->scale[row]);
    }
    for (a = 0; a < GATE_PIXELS; a++)
        squares += rest[a] * rest[a];
    return sqrt(squares);
}

enum chex_status
gate_shrink(struct resampler *r, const uint8_t *pixels, unsigned side, uint8_t *out, struct chex_error *err)
{
    const struct image image = {.width = side, .height = side, .stride = side, .data = (uint8_t *)(uintptr_t)pixels};

    return resampler_run(r, RESAMPLE_AREA, &image, GATE_SIDE, GATE_SIDE, out, err);
}

bool
gate_change_turns(enum gate_change change)
{
    return change % GATE_INVERTED != GATE_AS_IS;
}

bool
gate_change_inverts(enum gate_change change)
{
    return change >= GATE_INVERTED;
}

struct gate_result
gate_check(const struct gate *g, const uint8_t *image)
{
    double z[2][GATE_PIXELS], fit[GATE_CHANGES];
    struct gate_result r = {.change = GATE_AS_IS};
    int change;

    if (!normalise(image, z[0]))
        return r;
    fit[GATE_AS_IS] = fit_of(g, z[0], 1);
    fit[GATE_INVERTED] = fit_of(g, z[0], -1);
    for (change = GATE_90; change <= GATE_270; change++) {
        turn(z[(change - 1) % 2], z[change % 2]);
        fit[change] = fit_of(g, z[change % 2], 1);
        fit[GATE_INVERTED + change] = fit_of(g, z[change % 2], -1);
    }
    for (change = GATE_AS_IS; change < GATE_CHANGES; change++)
        if (fit[change] < fit[r.change])
            r.change = (enum gate_change)change;
    r.fit = fit[GATE_AS_IS];
    r.better = fit[r.change];
    return r;
}
