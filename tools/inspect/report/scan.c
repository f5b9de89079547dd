/*
 * scan.c - reads every record once for the report, with several threads; see report.h
 *
 * Flags from the histogram of an image's pixels (p1, p99: first and 99th percentile):
 *   constant   one value
 *   black      p99 below 32: no content                    white   p1 above 223
 *   flat       p99 - p1 below 32: hardly any contrast
 * Flags from its likeness, the correlation of its 8x8 cell means with those of the mean of all images.  The likeness of
 * an upright frontal image is mostly above 0.4.  If its gray values are inverted (white air: MONOCHROME1 read as
 * MONOCHROME2), the likeness is mostly below -0.4.  These limits prove nothing: about 1 % of the originals of
 * ChestX-ray14 have the flag unlike.
 *   inverted   likeness below -0.2
 *   unlike     likeness from -0.2 to 0.2: rotated, cropped, another part of the body, or just unusual
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLACK    32
#define WHITE    223
#define FLAT     32
#define INVERTED (-0.2)
#define UNLIKE   0.2

#define CELLS (REPORT_TINY * REPORT_TINY)

/* The state of one thread. */
struct scan_worker {
    uint32_t *sum[REPORT_VIEWS]; /* not yet added to the sums of the report */
    uint64_t pending[REPORT_VIEWS];
    uint64_t histogram[SPLIT_MAX][256];
};

struct scan {
    struct html_report *r;
    size_t cells;      /* of the mean image */
    uint64_t most;     /* images after which a 32-bit sum must be added to the report, before it could overflow */
    unsigned last_bad; /* shard of the last fault */
    pthread_mutex_t lock;
};

/* ---- one image --------------------------------------------------------------------------------------------------- */

/* Use four histograms, so that equal adjacent pixels do not create a dependency. */
static void
count_levels(const uint8_t *pixels, size_t size, uint32_t levels[256])
{
    uint32_t table[4][256] = {{0}};
    size_t i;

    for (i = 0; i + 4 <= size; i += 4) {
        table[0][pixels[i]]++;
        table[1][pixels[i + 1]]++;
        table[2][pixels[i + 2]]++;
        table[3][pixels[i + 3]]++;
    }
    for (; i < size; i++)
        table[0][pixels[i]]++;
    for (i = 0; i < 256; i++)
        levels[i] = table[0][i] + table[1][i] + table[2][i] + table[3][i];
}

/* Returns the lowest level with more than `per_cent` % of the pixels at or below it. */
static uint8_t
level_of(const uint32_t levels[256], uint64_t size, unsigned per_cent)
{
    uint64_t below = 0;
    unsigned i;

    for (i = 0; i < 255; i++) {
        below += levels[i];
        if (below * 100 > size * per_cent)
            break;
    }
    return (uint8_t)i;
}

/* Constant block size, so that the compiler vectorises the loop. */
#define BLOCK 16

static uint64_t
sum_of(const uint8_t *pixels, size_t size)
{
    uint64_t sum = 0;
    size_t i, k;

    for (i = 0; i + BLOCK <= size; i += BLOCK) {
        uint32_t of_block = 0;

        for (k = 0; k < BLOCK; k++)
            of_block += pixels[i + k];
        sum += of_block;
    }
    for (; i < size; i++)
        sum += pixels[i];
    return sum;
}

static void
add_to(uint32_t *restrict sum, const uint8_t *restrict pixels, size_t size)
{
    size_t i, k;

    for (i = 0; i + BLOCK <= size; i += BLOCK)
        for (k = 0; k < BLOCK; k++)
            sum[i + k] += pixels[i + k];
    for (; i < size; i++)
        sum[i] += pixels[i];
}

static void
shrink(const uint8_t *pixels, uint32_t width, uint32_t height, uint8_t tiny[CELLS])
{
    uint32_t i, j, y;

    for (i = 0; i < REPORT_TINY; i++) {
        uint32_t top = (uint32_t)((uint64_t)height * i / REPORT_TINY);
        uint32_t bottom = (uint32_t)((uint64_t)height * (i + 1) / REPORT_TINY);

        bottom += bottom == top;
        for (j = 0; j < REPORT_TINY; j++) {
            uint32_t left = (uint32_t)((uint64_t)width * j / REPORT_TINY);
            uint32_t right = (uint32_t)((uint64_t)width * (j + 1) / REPORT_TINY);
            uint64_t sum = 0;

            right += right == left;
            for (y = top; y < bottom; y++)
                sum += sum_of(pixels + (size_t)y * width + left, right - left);
            tiny[i * REPORT_TINY + j] = (uint8_t)(sum / ((uint64_t)(bottom - top) * (right - left)));
        }
    }
}

static void
add_to_mean(const struct html_report *r, const uint8_t *pixels, uint32_t *sum)
{
    uint32_t width = r->dataset->info.width, height = r->dataset->info.height, cell = r->mean_cell, x, y;

    if (cell == 1) {
        add_to(sum, pixels, (size_t)width * height);
        return;
    }
    /* Ignore partial cells at the right and the bottom, unless the side is shorter than a cell. */
    for (y = 0; y < r->mean_height * cell && y < height; y++)
        for (x = 0; x < r->mean_width * cell && x < width; x++)
            sum[(size_t)(y / cell) * r->mean_width + x / cell] += pixels[(size_t)y * width + x];
}

static enum report_view
view_of(struct chex_bytes view)
{
    if (view.size == 2 && memcmp(view.data, "PA", 2) == 0)
        return VIEW_PA;
    if (view.size == 2 && memcmp(view.data, "AP", 2) == 0)
        return VIEW_AP;
    return view.size == 1 && view.data[0] == 'U' ? VIEW_UNKNOWN : VIEW_OTHER;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static void
empty(struct scan *s, struct scan_worker *w, unsigned view)
{
    size_t i;

    pthread_mutex_lock(&s->lock);
    for (i = 0; i < s->cells; i++)
        s->r->mean[view].sum[i] += w->sum[view][i];
    pthread_mutex_unlock(&s->lock);
    memset(w->sum[view], 0, s->cells * sizeof(*w->sum[view]));
    w->pending[view] = 0;
}

static void
look_at_pixels(struct scan *s, struct scan_worker *w, const struct walk_record *record, struct report_image *image)
{
    const struct chex_dataset_info *info = &s->r->dataset->info;
    size_t size = (size_t)info->width * info->height;
    uint64_t *histogram = w->histogram[s->r->dataset->shard[record->shard].split], sum = 0;
    uint32_t levels[256];
    unsigned i;

    count_levels(record->pixels, size, levels);
    for (i = 0; i < 256; i++) {
        sum += (uint64_t)i * levels[i];
        histogram[i] += levels[i];
    }
    image->mean = (float)((double)sum / (double)size);
    image->low = level_of(levels, size, 1);
    image->high = level_of(levels, size, 99);
    if (levels[image->low] == size)
        image->flags = FLAG_CONSTANT;
    else if (image->high < BLACK)
        image->flags = FLAG_BLACK;
    else if (image->low > WHITE)
        image->flags = FLAG_WHITE;
    else if (image->high - image->low < FLAT)
        image->flags = FLAG_FLAT;
    shrink(record->pixels, info->width, info->height, image->tiny);
    s->r->shard[record->shard].sum += sum;
    add_to_mean(s->r, record->pixels, w->sum[image->view]);
    if (++w->pending[image->view] == s->most)
        empty(s, w, image->view);
}

/* Several threads call this, but only one per shard; each image writes its own element. */
static enum chex_status
on_record(void *context, const struct walk_record *record, struct chex_error *err)
{
    struct scan *s = context;
    struct html_report *r = s->r;
    const struct record_values *v = record->values;
    size_t place = record->number;
    struct report_image *image = &r->image[place];
    struct seen *seen = &r->check.seen[place];

    if (v->weight != 1) {
        r->shard[record->shard].padding++;
        return CHEX_OK;
    }
    r->shard[record->shard].images++;
    image->there = true;
    image->age = v->age;
    image->sex = v->sex == 'F' ? SEX_F : v->sex == 'M' ? SEX_M : SEX_U;
    image->view = (uint8_t)view_of(v->view);
    look_at_pixels(s, record->worker, record, image);
    near_describe(record->pixels, r->dataset->info.width, r->dataset->info.height, &r->near.image[place]);
    memcpy(seen->hash, record->hash, sizeof(seen->hash));
    seen->shard = record->shard;
    seen->index = record->index;
    seen->number = (uint32_t)record->number;
    seen->split = r->dataset->shard[record->shard].split;
    pthread_mutex_lock(&s->lock);
    seen->name = arena_copy(&r->strings, v->name.data, v->name.size);
    seen->patient = arena_copy(&r->strings, v->patient.data, v->patient.size);
    seen->label = (const uint8_t *)arena_copy(&r->strings, (const char *)v->label, r->dataset->info.finding_count);
    pthread_mutex_unlock(&s->lock);
    return seen->name && seen->patient && seen->label ? CHEX_OK : error_memory(err);
}

static void
on_fault(void *context, const char *shard, int64_t index, uint64_t count, const struct chex_error *why)
{
    struct scan *s = context;
    struct html_report *r = s->r;
    unsigned shards = r->dataset->info.shard_count, tried, i;

    /* Search from the shard of the last fault: if many shards are missing, the next one matches at once. */
    for (tried = 0; tried < shards; tried++) {
        i = (s->last_bad + tried) % shards;
        if (strcmp(r->dataset->shard[i].name, shard) != 0)
            continue;
        s->last_bad = i;
        r->shard[i].bad += (uint32_t)count;
        /* Omit the path of the folder: it is not part of the data set. */
        if (index >= 0)
            snprintf(r->shard[i].why, sizeof(r->shard[i].why), "record %lld: %.120s", (long long)index, why->text);
        else
            snprintf(r->shard[i].why, sizeof(r->shard[i].why), "not readable to its end: %s",
                     chex_status_name(why->status));
        break;
    }
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void
worker_free(void *context, void *worker)
{
    struct scan *s = context;
    struct scan_worker *w = worker;
    unsigned i, k;

    for (i = 0; i < REPORT_VIEWS; i++) {
        if (w->pending[i] > 0)
            empty(s, w, i);
        free(w->sum[i]);
    }
    pthread_mutex_lock(&s->lock);
    for (i = 0; i < SPLIT_MAX; i++)
        for (k = 0; k < 256; k++)
            s->r->split[i].histogram[k] += w->histogram[i][k];
    pthread_mutex_unlock(&s->lock);
    free(w);
}

static void *
worker_new(void *context)
{
    struct scan *s = context;
    struct scan_worker *w = calloc(1, sizeof(*w));
    bool good = w != NULL;
    unsigned i;

    for (i = 0; good && i < REPORT_VIEWS; i++) {
        w->sum[i] = calloc(s->cells, sizeof(*w->sum[i]));
        good = w->sum[i] != NULL;
    }
    if (!good && w) {
        worker_free(context, w);
        w = NULL;
    }
    return w;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static bool
make_room(struct html_report *r, size_t cells)
{
    const struct chex_dataset *ds = r->dataset;
    unsigned i;

    r->shard = calloc(ds->info.shard_count, sizeof(*r->shard));
    if (!r->shard)
        return false;
    r->records = dataset_records(ds);
    r->image = calloc(r->records ? r->records : 1, sizeof(*r->image));
    r->check.seen = calloc(r->records ? r->records : 1, sizeof(*r->check.seen));
    r->mean_all.sum = calloc(cells, sizeof(*r->mean_all.sum));
    for (i = 0; i < REPORT_VIEWS; i++) {
        r->mean[i].sum = calloc(cells, sizeof(*r->mean[i].sum));
        if (!r->mean[i].sum)
            return false;
    }
    return r->image && r->check.seen && r->mean_all.sum;
}

/* Compute the likeness of each image and set the flags that depend on it. */
static void
compare(struct html_report *r)
{
    double all[CELLS] = {0}, mean = 0, square = 0;
    uint64_t images = 0;
    size_t i;
    unsigned k;

    for (i = 0; i < r->records; i++) {
        images += r->image[i].there;
        for (k = 0; r->image[i].there && k < CELLS; k++)
            all[k] += r->image[i].tiny[k];
    }
    if (images == 0)
        return;
    r->all_inverted = all[0] + all[1] + all[6] + all[7] > all[27] + all[28] + all[35] + all[36];
    for (k = 0; k < CELLS; k++)
        mean += all[k] / CELLS;
    for (k = 0; k < CELLS; k++) {
        all[k] -= mean;
        square += all[k] * all[k];
    }
    r->least_like = 1;
    r->most_like = -1;
    for (i = 0; i < r->records; i++) {
        struct report_image *image = &r->image[i];
        double sum = 0, squares = 0, product = 0;

        for (k = 0; image->there && k < CELLS; k++) {
            sum += image->tiny[k];
            squares += (double)image->tiny[k] * image->tiny[k];
            product += image->tiny[k] * all[k];
        }
        squares -= sum * sum / CELLS;
        image->likeness = squares > 0 && square > 0 ? (float)(product / sqrt(squares * square)) : 0;
        if (image->there) {
            r->least_like = fminf(r->least_like, image->likeness);
            r->most_like = fmaxf(r->most_like, image->likeness);
        }
        if (image->there && image->flags == 0)
            image->flags = image->likeness < INVERTED ? FLAG_INVERTED : image->likeness < UNLIKE ? FLAG_UNLIKE : 0;
        for (k = 0; k < REPORT_FLAGS; k++)
            r->flagged[k] += image->flags >> k & 1;
    }
}

/* Remove the elements without an image: padding and unreadable records. */
static void
close_gaps(struct html_report *r)
{
    size_t i;

    for (i = 0; i < r->records; i++)
        if (r->image[i].there)
            r->check.seen[r->check.count++] = r->check.seen[i];
}

enum chex_status
report_scan(struct html_report *r, struct chex_error *err)
{
    const struct chex_dataset_info *info = &r->dataset->info;
    uint32_t longest = info->width > info->height ? info->width : info->height;
    struct scan s = {.r = r, .lock = PTHREAD_MUTEX_INITIALIZER};
    enum chex_status status;

    r->mean_cell = (longest + REPORT_MEAN - 1) / REPORT_MEAN;
    r->mean_width = info->width / r->mean_cell;
    r->mean_height = info->height / r->mean_cell;
    r->mean_width += r->mean_width == 0;
    r->mean_height += r->mean_height == 0;
    s.cells = (size_t)r->mean_width * r->mean_height;
    s.most = UINT32_MAX / (255 * (uint64_t)r->mean_cell * r->mean_cell);
    if (!make_room(r, s.cells))
        return error_memory(err);
    r->walk = (struct walk){.in = r->in,
                            .target = r->target,
                            .progress = "",
                            .depth = WALK_XXH128,
                            .record = on_record,
                            .fault = on_fault,
                            .worker_new = worker_new,
                            .worker_free = worker_free,
                            .context = &s,
                            .threads = r->in->common->threads};
    r->check.dataset = r->dataset;
    status = near_init(&r->near, r->in, r->dataset, err);
    if (status != CHEX_OK)
        return status;
    status = walk_run(&r->walk, err);
    pthread_mutex_destroy(&s.lock);
    if (status != CHEX_OK)
        return status;
    close_gaps(r);
    compare(r);
    status = split_check_run(&r->check, err);
    return status == CHEX_OK ? near_find(&r->near, &r->check, err) : status;
}

void
report_close(struct html_report *r)
{
    unsigned i;

    for (i = 0; i < REPORT_VIEWS; i++)
        free(r->mean[i].sum);
    free(r->mean_all.sum);
    near_release(&r->near);
    free(r->check.by_hash);
    free(r->check.seen);
    free(r->image);
    free(r->shard);
    free(r->reject);
    arena_release(&r->strings);
}

const struct report_image *
report_image_of(const struct html_report *r, const struct seen *seen)
{
    return &r->image[seen->number];
}
