/*
 * boxes.c - see boxes.h
 *
 * Connected regions: a row is divided into runs of pixels that reach the cut.  Each run belongs to a region; where it
 * touches runs of the row above, their regions are united (union-find).  So the work for each pixel is one comparison.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "maps/boxes.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double box_iou_at[BOX_IOU_STEPS] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
const double box_iobb_at[BOX_IOBB_STEPS] = {0.1, 0.25, 0.5, 0.75, 0.9};

const double region_cuts[REGION_CUTS] = {60, 180};

/* ---- overlap ----------------------------------------------------------------------------------------------------- */

static double
area_of(const struct map_box *b)
{
    return (b->right - b->left) * (b->bottom - b->top);
}

static double
intersection_of(const struct map_box *a, const struct map_box *b)
{
    double width = fmin(a->right, b->right) - fmax(a->left, b->left);
    double height = fmin(a->bottom, b->bottom) - fmax(a->top, b->top);

    return width > 0 && height > 0 ? width * height : 0;
}

double
box_iou(const struct map_box *given, const struct map_box *found)
{
    double both = intersection_of(given, found);

    return both / (area_of(given) + area_of(found) - both);
}

double
box_iobb(const struct map_box *given, const struct map_box *found)
{
    return intersection_of(given, found) / area_of(found);
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

struct map_region {
    uint32_t parent; /* itself, or an older region that it was united with */
    uint32_t left, top, right, bottom;
};

/* The pixels first to end - 1 of a row. */
struct map_run {
    uint32_t first, end, region;
};

static uint32_t
find_root(struct map_regions *r, uint32_t region)
{
    while (r->region[region].parent != region) {
        r->region[region].parent = r->region[r->region[region].parent].parent;
        region = r->region[region].parent;
    }
    return region;
}

/* Unites two regions; returns the older one. */
static uint32_t
unite(struct map_regions *r, uint32_t a, uint32_t b)
{
    struct map_region *kept, *gone;

    a = find_root(r, a);
    b = find_root(r, b);
    if (a == b)
        return a;
    kept = &r->region[a < b ? a : b];
    gone = &r->region[a < b ? b : a];
    gone->parent = kept->parent;
    kept->left = gone->left < kept->left ? gone->left : kept->left;
    kept->top = gone->top < kept->top ? gone->top : kept->top;
    kept->right = gone->right > kept->right ? gone->right : kept->right;
    kept->bottom = gone->bottom > kept->bottom ? gone->bottom : kept->bottom;
    return kept->parent;
}

/* Makes a region of one run. */
static enum chex_status
new_region(struct map_regions *r, struct map_run *run, unsigned row, struct chex_error *err)
{
    struct map_region *grown = array_grow(r->region, &r->region_capacity, r->regions, sizeof(*grown));

    if (!grown)
        return error_memory(err);
    r->region = grown;
    run->region = (uint32_t)r->regions;
    grown[r->regions++] = (struct map_region){run->region, run->first, row, run->end, row + 1};
    return CHEX_OK;
}

/* Gives the runs of a row their regions; `above` has those of the row above.  Both are sorted. */
static enum chex_status
join_row(struct map_regions *r, const struct map_run *above, size_t above_count, struct map_run *run, size_t count,
         unsigned row, struct chex_error *err)
{
    size_t k = 0, i;

    for (i = 0; i < count; i++) {
        if (new_region(r, &run[i], row, err) != CHEX_OK)
            return CHEX_ERR_MEMORY;
        while (k < above_count && above[k].end <= run[i].first)
            k++;
        while (k < above_count && above[k].first < run[i].end) {
            run[i].region = unite(r, run[i].region, above[k].region);
            if (above[k].end > run[i].end)
                break; /* the next run may touch it too */
            k++;
        }
    }
    return CHEX_OK;
}

static size_t
find_runs(const float *row, unsigned width, double least, double scale, double cut, struct map_run *run)
{
    size_t count = 0;
    unsigned i;

    for (i = 0; i < width; i++) {
        if (!isfinite(row[i]) || ((double)row[i] - least) * scale < cut)
            continue;
        if (count > 0 && run[count - 1].end == i)
            run[count - 1].end++;
        else
            run[count++] = (struct map_run){i, i + 1, 0};
    }
    return count;
}

/* Appends the boxes of the regions that were not united with older ones. */
static enum chex_status
keep_boxes(struct map_regions *r, struct chex_error *err)
{
    for (uint32_t i = 0; i < r->regions; i++) {
        const struct map_region *g = &r->region[i];
        struct map_box *grown;

        if (g->parent != i)
            continue;
        grown = array_grow(r->box, &r->capacity, r->count, sizeof(*grown));
        if (!grown)
            return error_memory(err);
        r->box = grown;
        grown[r->count++] = (struct map_box){g->left, g->top, g->right, g->bottom};
    }
    return CHEX_OK;
}

static enum chex_status
find_at(struct map_regions *r, const float *map, unsigned height, unsigned width, double least, double scale,
        double cut, struct chex_error *err)
{
    struct map_run *above = r->run, *here = r->run + width, *swap;
    size_t above_count = 0, count;
    enum chex_status status = CHEX_OK;
    unsigned y;

    r->regions = 0;
    for (y = 0; status == CHEX_OK && y < height; y++) {
        count = find_runs(map + (size_t)y * width, width, least, scale, cut, here);
        status = join_row(r, above, above_count, here, count, y, err);
        swap = above;
        above = here;
        here = swap;
        above_count = count;
    }
    return status == CHEX_OK ? keep_boxes(r, err) : status;
}

bool
map_range(const float *map, size_t count, float *least, float *most)
{
    *least = HUGE_VALF;
    *most = -HUGE_VALF;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(map[i]))
            continue;
        *least = map[i] < *least ? map[i] : *least;
        *most = map[i] > *most ? map[i] : *most;
    }
    return *most > *least;
}

enum chex_status
map_regions_find(struct map_regions *r, const float *map, unsigned height, unsigned width, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    float least, most;

    r->count = 0;
    if (r->width < width) {
        free(r->run);
        r->run = calloc(2 * (size_t)width, sizeof(*r->run));
        r->width = r->run ? width : 0;
        if (!r->run)
            return error_memory(err);
    }
    if (!map_range(map, (size_t)height * width, &least, &most))
        return CHEX_OK;
    for (size_t k = 0; status == CHEX_OK && k < REGION_CUTS; k++)
        status = find_at(r, map, height, width, (double)least, 255 / ((double)most - (double)least), region_cuts[k],
                         err);
    return status;
}

void
map_regions_release(struct map_regions *r)
{
    free(r->box);
    free(r->region);
    free(r->run);
    *r = (struct map_regions){.count = 0};
}

/* ---- measures ---------------------------------------------------------------------------------------------------- */

bool
map_hottest(const float *map, unsigned height, unsigned width, double *x, double *y)
{
    float least, most;
    double nearest = HUGE_VAL;

    if (!map_range(map, (size_t)height * width, &least, &most))
        return false;
    for (unsigned j = 0; j < height; j++)
        for (unsigned i = 0; i < width; i++) {
            double dx = i + 0.5 - 0.5 * width, dy = j + 0.5 - 0.5 * height;
            float value = map[(size_t)j * width + i];

            if (!isfinite(value) || value < most || dx * dx + dy * dy >= nearest)
                continue;
            nearest = dx * dx + dy * dy;
            *x = i + 0.5;
            *y = j + 0.5;
        }
    return true;
}

static bool
is_inside(const struct map_box *box, double x, double y)
{
    return x >= box->left && x <= box->right && y >= box->top && y <= box->bottom;
}

/* Returns the share of the positive values in pixels whose middle is inside of the box; 0 if there are none. */
static double
mass_inside(const struct map_box *box, const float *map, unsigned height, unsigned width)
{
    double all = 0, inside = 0;

    for (unsigned j = 0; j < height; j++)
        for (unsigned i = 0; i < width; i++) {
            float value = map[(size_t)j * width + i];

            if (!isfinite(value) || value <= 0)
                continue;
            all += (double)value;
            if (is_inside(box, i + 0.5, j + 0.5))
                inside += (double)value;
        }
    return all > 0 ? inside / all : 0;
}

void
box_measure_regions(const struct map_box *given, const struct map_box *found, size_t count, double value[BOX_MEASURES])
{
    memset(value + BOX_IOU, 0, (BOX_MEASURES - BOX_IOU) * sizeof(*value));
    for (size_t i = 0; i < count; i++) {
        double iou = box_iou(given, &found[i]), iobb = box_iobb(given, &found[i]);
        unsigned k;

        for (k = 0; k < BOX_IOU_STEPS; k++)
            if (iou > box_iou_at[k])
                value[BOX_IOU + k] = 1;
        for (k = 0; k < BOX_IOBB_STEPS; k++) {
            if (iobb > box_iobb_at[k])
                value[BOX_IOBB + k] = 1;
            else
                value[BOX_FALSE + k]++;
        }
    }
}

enum chex_status
box_measure_map(const struct map_box *given, const float *map, unsigned height, unsigned width, struct map_regions *r,
                double value[BOX_MEASURES], struct chex_error *err)
{
    double x, y;

    if (map_regions_find(r, map, height, width, err) != CHEX_OK)
        return CHEX_ERR_MEMORY;
    box_measure_regions(given, r->box, r->count, value);
    value[BOX_POINT] = map_hottest(map, height, width, &x, &y) && is_inside(given, x, y);
    value[BOX_MASS] = mass_inside(given, map, height, width);
    return CHEX_OK;
}
