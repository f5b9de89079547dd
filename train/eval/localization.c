/*
 * localization.c - see localization.h
 *
 * First the measures of each box are computed, in parallel.  A replicate then only adds them up, times how often the
 * patient is drawn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/localization.h"

#include "base/threads.h"
#include "math/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUES (BOX_METHODS * BOX_MEASURES)

const char *const box_method_names[] = {"map", "constant", "gauss", "chance", NULL};

struct localization_job {
    const struct localization_input *in;
    struct map_box *constant; /* [count] the constant box of each box, in its pixels */
    double *value;            /* [count][VALUES] */
    size_t largest;           /* pixels of a map */
    double *draw;             /* [replicates][findings + 1][VALUES]; the last one is the mean */
    bool *enough;             /* [findings] */
};

/* ---- the constant box -------------------------------------------------------------------------------------------- */

enum { LEFT, TOP, WIDTH, HEIGHT, SIDES };

/* A side of a box as a fraction of the image, and the box's number. */
struct side {
    double value;
    size_t box;
};

static int
compare_sides(const void *a, const void *b)
{
    const struct side *x = a, *y = b;

    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? -1 : 1;
    return x->box < y->box ? -1 : x->box > y->box;
}

static double
side_of(const struct located_box *b, int side)
{
    switch (side) {
    case LEFT:
        return b->box.left / b->width;
    case TOP:
        return b->box.top / b->height;
    case WIDTH:
        return (b->box.right - b->box.left) / b->width;
    default:
        return (b->box.bottom - b->box.top) / b->height;
    }
}

/* Returns the median of a sorted list without its element number `out`; the list has at least two. */
static double
median_without(const struct side *sorted, size_t count, size_t out)
{
    size_t high = (count - 1) / 2, low = (count - 2) / 2;

    return 0.5 * (sorted[low + (low >= out)].value + sorted[high + (high >= out)].value);
}

/* Sets one side of the constant boxes of a finding: median [count][SIDES]. */
static void
set_medians(const struct localization_input *in, unsigned finding, int side, struct side *list, double *median)
{
    size_t count = 0, i;

    for (i = 0; i < in->count; i++)
        if (in->box[i].finding == finding)
            list[count++] = (struct side){side_of(&in->box[i], side), i};
    if (count < 2)
        return;
    qsort(list, count, sizeof(*list), compare_sides);
    for (i = 0; i < count; i++)
        median[list[i].box * SIDES + (size_t)side] = median_without(list, count, i);
}

static enum chex_status
make_constant(struct localization_job *job, struct chex_error *err)
{
    const struct localization_input *in = job->in;
    struct side *list = malloc(in->count * sizeof(*list));
    double *median = calloc(in->count * SIDES, sizeof(*median));
    unsigned k;
    size_t i;
    int side;

    if (list && median) {
        for (k = 0; k < in->findings; k++)
            for (side = 0; side < SIDES; side++)
                set_medians(in, k, side, list, median);
        for (i = 0; i < in->count; i++) {
            const struct located_box *b = &in->box[i];
            const double *m = median + i * SIDES;

            job->constant[i] = (struct map_box){m[LEFT] * b->width, m[TOP] * b->height, (m[LEFT] + m[WIDTH]) * b->width,
                                                (m[TOP] + m[HEIGHT]) * b->height};
        }
    }
    free(list);
    free(median);
    return list && median ? CHEX_OK : error_memory(err);
}

/* ---- the measures of a box --------------------------------------------------------------------------------------- */

struct localization_worker {
    struct map_regions regions;
    float *map, *cells;
    uint32_t *times; /* [patients] */
};

static void
worker_free(void *worker)
{
    struct localization_worker *w = worker;

    if (!w)
        return;
    map_regions_release(&w->regions);
    free(w->map);
    free(w->cells);
    free(w->times);
    free(w);
}

static void *
worker_new(void *context)
{
    const struct localization_job *job = context;
    const struct localization_input *in = job->in;
    struct localization_worker *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->map = malloc(job->largest * sizeof(*w->map));
    w->cells = malloc((size_t)in->cells_high * in->cells_wide * sizeof(*w->cells));
    w->times = malloc(in->patients * sizeof(*w->times));
    if (w->map && w->cells && w->times)
        return w;
    worker_free(w);
    return NULL;
}

/* The constant box is one found box; its positive values are spread evenly over it. */
static void
measure_constant(const struct map_box *given, const struct map_box *constant, double *value)
{
    double x = 0.5 * (constant->left + constant->right), y = 0.5 * (constant->top + constant->bottom);

    if (!(constant->right > constant->left && constant->bottom > constant->top))
        return; /* the only box of its finding has no others */
    box_measure_regions(given, constant, 1, value);
    value[BOX_POINT] = x >= given->left && x <= given->right && y >= given->top && y <= given->bottom;
    value[BOX_MASS] = box_iobb(given, constant);
}

/* The function is a product, so row 0 first holds the factors of the columns. */
static void
draw_gauss(unsigned height, unsigned width, float *map)
{
    for (unsigned i = 0; i < width; i++) {
        double x = 4 * ((i + 0.5) / width - 0.5);

        map[i] = (float)exp(-0.5 * x * x);
    }
    for (unsigned j = height; j-- > 0;) {
        double y = 4 * ((j + 0.5) / height - 0.5);
        float factor = (float)exp(-0.5 * y * y);

        for (unsigned i = 0; i < width; i++)
            map[(size_t)j * width + i] = factor * map[i];
    }
}

static void
draw_chance(const struct localization_input *in, size_t item, float *cells)
{
    const struct random_stream stream = {in->seed, RANDOM_BOXES, (uint32_t)item, 0};

    for (uint32_t i = 0; i < in->cells_high * in->cells_wide; i++)
        cells[i] = (float)random_uniform(&stream, i);
}

static enum chex_status
measure_box(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct localization_job *job = context;
    const struct localization_input *in = job->in;
    const struct located_box *b = &in->box[item];
    struct localization_worker *w = worker;
    double *value = job->value + item * VALUES, *chance = value + BOX_CHANCE * BOX_MEASURES;
    enum chex_status status = in->map(in->context, item, w->map, err);

    if (status == CHEX_OK)
        status = box_measure_map(&b->box, w->map, b->height, b->width, &w->regions, value, err);
    measure_constant(&b->box, &job->constant[item], value + BOX_CONSTANT * BOX_MEASURES);
    draw_gauss(b->height, b->width, w->map);
    if (status == CHEX_OK)
        status = box_measure_map(&b->box, w->map, b->height, b->width, &w->regions, value + BOX_GAUSS * BOX_MEASURES,
                                 err);
    draw_chance(in, item, w->cells);
    in->spread(in->context, item, w->cells, w->map);
    if (status == CHEX_OK)
        status = box_measure_map(&b->box, w->map, b->height, b->width, &w->regions, chance, err);
    chance[BOX_POINT] = chance[BOX_MASS] = side_of(b, WIDTH) * side_of(b, HEIGHT);
    return status;
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/*
 * Compute the means of all findings and their mean: mean [findings + 1][VALUES].  times: how often each patient counts;
 * NULL: once.
 */
static void
add_up(const struct localization_job *job, const uint32_t *times, double *mean)
{
    const struct localization_input *in = job->in;
    double *all = mean + (size_t)in->findings * VALUES;
    uint64_t boxes = 0;
    unsigned defined = 0, k, v;
    size_t i;

    memset(mean, 0, (in->findings + 1) * VALUES * sizeof(*mean));
    for (i = 0; i < in->count; i++)
        boxes += times ? times[in->box[i].patient] : 1;
    for (k = 0; k < in->findings; k++) {
        double *sum = mean + (size_t)k * VALUES;
        uint64_t own = 0;

        for (i = 0; i < in->count; i++) {
            uint32_t n = times ? times[in->box[i].patient] : 1;

            if (in->box[i].finding != k)
                continue;
            own += n;
            for (v = 0; n > 0 && v < VALUES; v++)
                sum[v] += n * job->value[i * VALUES + v];
        }
        for (v = 0; v < VALUES; v++)
            sum[v] = own > 0 ? sum[v] / (double)(v % BOX_MEASURES >= BOX_FALSE ? boxes : own) : (double)NAN;
        for (v = 0; job->enough[k] && own > 0 && v < VALUES; v++)
            all[v] += sum[v];
        defined += job->enough[k] && own > 0;
    }
    for (v = 0; v < VALUES; v++)
        all[v] = defined > 0 ? all[v] / defined : (double)NAN;
}

static enum chex_status
replicate(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct localization_job *job = context;
    struct localization_worker *w = worker;

    (void)err;
    metrics_times(job->in->seed, (unsigned)item, job->in->patients, w->times);
    add_up(job, w->times, job->draw + item * (job->in->findings + 1) * VALUES);
    return CHEX_OK;
}

/* Set the intervals of one finding, or of the mean; column: [replicates] of scratch memory. */
static void
set_intervals(const struct localization_job *job, unsigned finding, double *column, struct localized *out)
{
    const size_t stride = (job->in->findings + 1) * VALUES;

    for (unsigned v = 0; v < VALUES; v++) {
        struct measured *m = &out->value[v / BOX_MEASURES][v % BOX_MEASURES];

        for (unsigned i = 0; i < job->in->replicates; i++)
            column[i] = job->draw[i * stride + (size_t)finding * VALUES + v];
        (void)metrics_interval(column, job->in->replicates, &m->low, &m->high);
        if (!(m->low < m->high))
            m->low = m->high = (double)NAN;
    }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void
set_values(struct localized *out, const double *mean, bool enough)
{
    for (unsigned v = 0; v < VALUES; v++)
        out->value[v / BOX_MEASURES][v % BOX_MEASURES] = (struct measured){enough ? mean[v] : (double)NAN, (double)NAN,
                                                                           (double)NAN};
}

static enum chex_status
run(struct localization_job *job, size_t count,
    enum chex_status (*work)(void *context, void *worker, size_t item, struct chex_error *err), struct chex_error *err)
{
    struct parallel parallel = {.count = count,
                                .threads = job->in->threads,
                                .work = work,
                                .worker_new = worker_new,
                                .worker_free = worker_free,
                                .context = job,
                                .stop = job->in->stop};

    return parallel_for(&parallel, err);
}

static enum chex_status
conclude(struct localization_job *job, struct localization *out, struct chex_error *err)
{
    const struct localization_input *in = job->in;
    double *mean = malloc((in->findings + 1) * VALUES * sizeof(*mean));
    double *column = malloc((in->replicates + 1) * sizeof(*column));
    enum chex_status status = mean && column ? CHEX_OK : error_memory(err);
    unsigned k;

    if (status == CHEX_OK) {
        add_up(job, NULL, mean);
        for (k = 0; k < in->findings; k++) {
            out->defined += job->enough[k];
            set_values(&out->finding[k], mean + (size_t)k * VALUES, job->enough[k]);
        }
        set_values(&out->mean, mean + (size_t)in->findings * VALUES, out->defined > 0);
        status = in->replicates > 0 ? run(job, in->replicates, replicate, err) : CHEX_OK;
    }
    if (status == CHEX_OK && in->replicates > 0) {
        for (k = 0; k < in->findings; k++)
            if (job->enough[k])
                set_intervals(job, k, column, &out->finding[k]);
        if (out->defined > 0)
            set_intervals(job, in->findings, column, &out->mean);
    }
    free(mean);
    free(column);
    return status;
}

/* Count boxes and patients; seen: [patients] of scratch memory. */
static void
count_boxes(const struct localization_job *job, uint8_t *seen, struct localization *out)
{
    const struct localization_input *in = job->in;
    size_t i;
    unsigned k;

    for (k = 0; k <= in->findings; k++) {
        struct localized *l = k < in->findings ? &out->finding[k] : &out->mean;

        memset(seen, 0, in->patients);
        for (i = 0; i < in->count; i++)
            if (k == in->findings || in->box[i].finding == k) {
                l->boxes++;
                l->patients += !seen[in->box[i].patient];
                seen[in->box[i].patient] = 1;
            }
        if (k < in->findings)
            job->enough[k] = l->boxes >= LOCALIZATION_FEWEST && l->patients >= METRICS_FEWEST_PATIENTS;
    }
}

static enum chex_status
job_init(struct localization_job *job, struct localization *out, struct chex_error *err)
{
    const struct localization_input *in = job->in;
    uint8_t *seen = malloc(in->patients);
    size_t i;

    *out = (struct localization){.findings = in->findings};
    out->finding = calloc(in->findings, sizeof(*out->finding));
    job->constant = calloc(in->count, sizeof(*job->constant));
    job->value = calloc(in->count, VALUES * sizeof(*job->value));
    job->draw = calloc((size_t)in->replicates + 1, (in->findings + 1) * VALUES * sizeof(*job->draw));
    job->enough = calloc(in->findings, sizeof(*job->enough));
    if (!seen || !out->finding || !job->constant || !job->value || !job->draw || !job->enough) {
        free(seen);
        return error_memory(err);
    }
    for (i = 0; i < in->count; i++)
        if ((size_t)in->box[i].height * in->box[i].width > job->largest)
            job->largest = (size_t)in->box[i].height * in->box[i].width;
    count_boxes(job, seen, out);
    free(seen);
    return make_constant(job, err);
}

enum chex_status
localization_measure(const struct localization_input *in, struct localization *out, struct chex_error *err)
{
    struct localization_job job = {.in = in};
    enum chex_status status;

    *out = (struct localization){.findings = 0};
    if (in->count == 0)
        return error_set(err, CHEX_ERR_USAGE, "no box");
    status = job_init(&job, out, err);
    if (status == CHEX_OK)
        status = run(&job, in->count, measure_box, err);
    if (status == CHEX_OK)
        status = conclude(&job, out, err);
    free(job.constant);
    free(job.value);
    free(job.draw);
    free(job.enough);
    return status;
}

void
localization_release(struct localization *l)
{
    free(l->finding);
    *l = (struct localization){.findings = 0};
}
