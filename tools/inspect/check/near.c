/*
 * near.c - see near.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/check/near.h"

#include "base/threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELLS  (NEAR_SIDE * NEAR_SIDE)
#define LANES  16    /* images of the later split that one loop compares; the compiler makes vectors of them */
#define ROWS   256   /* images of the earlier split in one item of work */
#define MARGIN 1e-4f /* above the rounding errors of sums of 256 products of floats */

/* ---- one image --------------------------------------------------------------------------------------------------- */

/* Compute the means of the cells, minus their mean, divided by their norm.  Returns false if they are all equal. */
static bool
unit_means(const uint8_t *pixels, uint32_t width, uint32_t height, double u[CELLS])
{
    double sum = 0, squares = 0;
    uint32_t i, j, x, y;

    for (i = 0; i < NEAR_SIDE; i++) {
        uint32_t top = (uint32_t)((uint64_t)height * i / NEAR_SIDE);
        uint32_t bottom = (uint32_t)((uint64_t)height * (i + 1) / NEAR_SIDE);

        bottom += bottom == top;
        for (j = 0; j < NEAR_SIDE; j++) {
            uint32_t left = (uint32_t)((uint64_t)width * j / NEAR_SIDE);
            uint32_t right = (uint32_t)((uint64_t)width * (j + 1) / NEAR_SIDE);
            uint64_t of_cell = 0;

            right += right == left;
            for (y = top; y < bottom; y++)
                for (x = left; x < right; x++)
                    of_cell += pixels[(size_t)y * width + x];
            u[i * NEAR_SIDE + j] = (double)of_cell / ((double)(bottom - top) * (right - left));
            sum += u[i * NEAR_SIDE + j];
        }
    }
    for (i = 0; i < CELLS; i++) {
        u[i] -= sum / CELLS;
        squares += u[i] * u[i];
    }
    /* Means of equal pixels differ by rounding only. */
    if (squares < 1e-6)
        return false;
    for (i = 0; i < CELLS; i++)
        u[i] /= sqrt(squares);
    return true;
}

/* Halve the side of a square: one step of the orthonormal Haar transform, without its details. */
static void
halve(const double *in, unsigned side, double *out)
{
    unsigned half = side / 2, i, j;

    for (i = 0; i < half; i++)
        for (j = 0; j < half; j++) {
            const double *p = in + 2 * i * side + 2 * j;

            out[i * half + j] = (p[0] + p[1] + p[side] + p[side + 1]) / 2;
        }
}

void
near_describe(const uint8_t *pixels, uint32_t width, uint32_t height, struct near_image *out)
{
    enum { FINE = 16, COARSE = 8 };
    double u[CELLS], half[CELLS / 4], fine[FINE * FINE], coarse[COARSE * COARSE];
    double in_coarse = 0, in_details = 0;
    float *detail = out->value + NEAR_COARSE;
    unsigned i, j;

    if (!unit_means(pixels, width, height, u))
        return;
    halve(u, NEAR_SIDE, half);
    halve(half, NEAR_SIDE / 2, fine);
    halve(fine, FINE, coarse);
    for (i = 0; i < COARSE; i++)
        for (j = 0; j < COARSE; j++) {
            const double *p = fine + 2 * i * FINE + 2 * j;
            const double details[3] = {(p[0] - p[1] + p[FINE] - p[FINE + 1]) / 2,
                                       (p[0] + p[1] - p[FINE] - p[FINE + 1]) / 2,
                                       (p[0] - p[1] - p[FINE] + p[FINE + 1]) / 2};
            unsigned k;

            out->value[i * COARSE + j] = (float)coarse[i * COARSE + j];
            in_coarse += coarse[i * COARSE + j] * coarse[i * COARSE + j];
            for (k = 0; k < 3; k++) {
                *detail++ = (float)details[k];
                in_details += details[k] * details[k];
            }
        }
    out->rest_coarse = (float)sqrt(fmax(0, 1 - in_coarse));
    out->rest_fine = (float)sqrt(fmax(0, 1 - in_coarse - in_details));
    out->described = true;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

enum chex_status
near_init(struct near_search *s, struct inspect *in, const struct chex_dataset *dataset, struct chex_error *err)
{
    *s = (struct near_search){.in = in, .dataset = dataset, .count = dataset_records(dataset)};
    s->image = calloc(s->count ? s->count : 1, sizeof(*s->image));
    return s->image ? CHEX_OK : error_memory(err);
}

void
near_release(struct near_search *s)
{
    free(s->image);
    free(s->pair);
    s->image = NULL;
    s->pair = NULL;
}

/* Keep the first image of each group of equal images in a split. */
static void
select_images(struct near_search *s, const struct split_check *c)
{
    size_t i, kept = 0;

    for (i = 0; i < c->count; i++) {
        const struct seen *seen = c->by_hash[i];
        bool first = i == 0 || !split_check_same(c, i - 1, i) || c->by_hash[i - 1]->split != seen->split;

        s->image[seen->number].seen = first ? seen : NULL;
    }
    for (i = 0; i < s->count; i++)
        if (s->image[i].described && s->image[i].seen)
            s->image[kept++] = s->image[i];
    s->count = kept;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* The coarse values of LANES images, by value, so that one loop multiplies them all. */
struct near_lanes {
    float value[NEAR_COARSE][LANES];
    float rest[LANES];
};

struct near_job {
    struct near_search *search;
    struct near_lanes *lanes; /* of all images, in their order */
    size_t capacity;          /* of search->pair */
    atomic_bool full;         /* see near_search.too_many */
    pthread_mutex_t lock;
};

static void
fill_lanes(const struct near_search *s, struct near_lanes *lanes)
{
    size_t i, k;

    for (i = 0; i < s->count; i++) {
        struct near_lanes *l = &lanes[i / LANES];

        for (k = 0; k < NEAR_COARSE; k++)
            l->value[k][i % LANES] = s->image[i].value[k];
        l->rest[i % LANES] = s->image[i].rest_coarse;
    }
}

/* Compute the coarse bounds of the correlations of an image with LANES others. */
static void
coarse_bounds(const struct near_image *a, const struct near_lanes *b, float bound[LANES])
{
    float sum[LANES];
    unsigned k, lane;

    for (lane = 0; lane < LANES; lane++)
        sum[lane] = a->rest_coarse * b->rest[lane];
    for (k = 0; k < NEAR_COARSE; k++)
        for (lane = 0; lane < LANES; lane++)
            sum[lane] += a->value[k] * b->value[k][lane];
    memcpy(bound, sum, sizeof(sum));
}

static float
fine_bound(const struct near_image *a, const struct near_image *b)
{
    float sum[LANES] = {0}, total = a->rest_fine * b->rest_fine;
    unsigned k, lane;

    for (k = 0; k < NEAR_VALUES; k += LANES)
        for (lane = 0; lane < LANES; lane++)
            sum[lane] += a->value[k + lane] * b->value[k + lane];
    for (lane = 0; lane < LANES; lane++)
        total += sum[lane];
    return total;
}

static enum chex_status
add_candidate(struct near_job *job, uint32_t a, uint32_t b, struct chex_error *err)
{
    struct near_search *s = job->search;
    struct near_pair *grown = s->pair;

    pthread_mutex_lock(&job->lock);
    if (s->pair_count == NEAR_MAX)
        atomic_store(&job->full, true);
    else if ((grown = array_grow(s->pair, &job->capacity, s->pair_count, sizeof(*grown))) != NULL) {
        s->pair = grown;
        s->pair[s->pair_count++] = (struct near_pair){.a = a, .b = b};
    }
    pthread_mutex_unlock(&job->lock);
    return grown ? CHEX_OK : error_memory(err);
}

/* Compare image a with all images of later splits. */
static enum chex_status
compare_image(struct near_job *job, uint32_t a, size_t later, struct chex_error *err)
{
    const struct near_search *s = job->search;
    const float least = (float)NEAR_LEAST - MARGIN;
    enum chex_status status = CHEX_OK;
    float bound[LANES];
    size_t block, b;

    for (block = later / LANES; block * LANES < s->count; block++) {
        coarse_bounds(&s->image[a], &job->lanes[block], bound);
        for (b = block * LANES; b < (block + 1) * LANES && status == CHEX_OK; b++)
            if (bound[b % LANES] >= least && b >= later && b < s->count &&
                fine_bound(&s->image[a], &s->image[b]) >= least)
                status = add_candidate(job, a, (uint32_t)b, err);
    }
    return status;
}

static enum chex_status
compare_rows(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct near_job *job = context;
    const struct near_search *s = job->search;
    enum chex_status status = CHEX_OK;
    size_t a, later = item * ROWS;

    (void)worker;
    for (a = item * ROWS; a < (item + 1) * ROWS && a < s->count && status == CHEX_OK && !atomic_load(&job->full); a++) {
        while (later < s->count && s->image[later].seen->split == s->image[a].seen->split)
            later++;
        if (later < s->count)
            status = compare_image(job, (uint32_t)a, later, err);
    }
    return status;
}

static void
tick(void *context, size_t done)
{
    struct near_job *job = context;
    struct inspect *in = job->search->in;
    size_t items = (job->search->count + ROWS - 1) / ROWS;
    char text[80];

    if (!progress_line_due(&in->line))
        return;
    snprintf(text, sizeof(text), "comparing images  %3u %%", (unsigned)(items ? 100 * done / items : 100));
    progress_line_update(&in->line, text);
}

static enum chex_status
find_candidates(struct near_search *s, struct chex_error *err)
{
    size_t blocks = s->count / LANES + 1;
    struct near_job job = {.search = s, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct parallel p = {.count = (s->count + ROWS - 1) / ROWS,
                         .threads = s->in->common->threads,
                         .work = compare_rows,
                         .context = &job,
                         .tick = tick};
    enum chex_status status;

    job.lanes = calloc(blocks, sizeof(*job.lanes));
    if (!job.lanes)
        return error_memory(err);
    fill_lanes(s, job.lanes);
    status = parallel_for(&p, err);
    progress_line_clear(&s->in->line);
    pthread_mutex_destroy(&job.lock);
    free(job.lanes);
    /* Which pairs were found before the limit depends on the threads. */
    s->too_many = atomic_load(&job.full);
    if (s->too_many)
        s->pair_count = 0;
    return status;
}

/* ---- exact correlations ------------------------------------------------------------------------------------------ */

static int
by_images(const void *x, const void *y)
{
    const struct near_pair *p = x, *q = y;

    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

static int
by_correlation(const void *x, const void *y)
{
    const struct near_pair *p = x, *q = y;

    if (p->correlation != q->correlation)
        return p->correlation > q->correlation ? -1 : 1;
    return by_images(x, y);
}

static enum chex_status
read_means(const struct near_search *s, uint32_t image, struct buffer *b, double u[CELLS], struct chex_error *err)
{
    const struct seen *seen = s->image[image].seen;
    struct chex_record record;
    enum chex_status status = inspect_read_record(s->dataset, seen->shard, seen->index, b, true, &record, err);

    if (status == CHEX_OK && !unit_means(record.pixels, record.width, record.height, u))
        status = error_set(err, CHEX_ERR_READ, "'%s' record %u changed while it was read",
                           s->dataset->shard[seen->shard].name, seen->index);
    return status;
}

static bool
is_equal(const struct near_search *s, const struct near_pair *p)
{
    return memcmp(s->image[p->a].seen->hash, s->image[p->b].seen->hash, sizeof(s->image[p->a].seen->hash)) == 0;
}

static enum chex_status
measure_candidates(struct near_search *s, double u[2][CELLS], struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    uint32_t last = UINT32_MAX;
    struct buffer b = {0};
    size_t i, kept = 0, k;

    for (i = 0; i < s->pair_count && status == CHEX_OK; i++) {
        struct near_pair pair = s->pair[i];

        if (pair.a != last)
            status = read_means(s, last = pair.a, &b, u[0], err);
        if (status == CHEX_OK)
            status = read_means(s, pair.b, &b, u[1], err);
        for (k = 0; k < CELLS && status == CHEX_OK; k++)
            pair.correlation += u[0][k] * u[1][k];
        if (status == CHEX_OK && pair.correlation >= NEAR_LEAST && !is_equal(s, &pair))
            s->pair[kept++] = pair;
    }
    s->pair_count = kept;
    buffer_release(&b);
    return status;
}

enum chex_status
near_find(struct near_search *s, const struct split_check *c, struct chex_error *err)
{
    double(*u)[CELLS] = malloc(2 * sizeof(*u));
    enum chex_status status;

    if (!u)
        return error_memory(err);
    select_images(s, c);
    status = find_candidates(s, err);
    if (status == CHEX_OK) {
        if (s->pair_count > 1)
            qsort(s->pair, s->pair_count, sizeof(*s->pair), by_images);
        status = measure_candidates(s, u, err);
    }
    if (status == CHEX_OK && s->pair_count > 1)
        qsort(s->pair, s->pair_count, sizeof(*s->pair), by_correlation);
    free(u);
    return status;
}
