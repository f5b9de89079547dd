/*
 * map_picture.c - see map_picture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/map_picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAPER     0x15181cu
#define INK       0xf2f4f6u
#define DIM       0xa9b2bcu
#define MARGIN    12u
#define LINE      17u
#define LEAST     512u      /* pixels: smaller images are enlarged by a whole number */
#define BAR       12u       /* height of the legend */
#define GIVEN     0x3ddc5bu /* a box of the list */
#define STRONGEST 0.75      /* opacity of the strongest colour, so that the image stays visible */

/* Blue and orange differ for people with any kind of colour blindness. */
static const uint8_t negative[3] = {0x2b, 0x83, 0xff}, positive[3] = {0xff, 0x8c, 0x1a};

/* Write the colour of a gray level under a value of the map. */
static void
tint(double gray, double value, double scale, uint8_t rgb[3])
{
    double share = fmin(fabs(value) / scale, 1) * STRONGEST;
    const uint8_t *color = value < 0 ? negative : positive;
    unsigned c;

    for (c = 0; c < 3; c++)
        rgb[c] = (uint8_t)(gray * (1 - share) + color[c] * share + 0.5);
}

static unsigned
enlargement(unsigned size)
{
    return size < LEAST ? LEAST / size : 1;
}

/* The spread map has one value for each pixel of the enlarged image. */
static void
draw_image(const struct map_picture *p, const float *spread, struct canvas *canvas, unsigned left, unsigned top,
           unsigned times)
{
    unsigned side = p->size * times, y, x;

    for (y = 0; y < side; y++)
        for (x = 0; x < side; x++) {
            unsigned from_y = y / times, from_x = x / times;
            bool seen = from_y - p->crop.y < p->side && from_x - p->crop.x < p->side; /* false before the crop, too */

            tint(p->pixels[(size_t)from_y * p->size + from_x], seen ? (double)spread[(size_t)y * side + x] : 0,
                 p->scale, canvas->rgb + ((size_t)(top + y) * canvas->width + left + x) * 3);
        }
}

static void
set_pixel(struct canvas *canvas, unsigned x, unsigned y, picture_color color)
{
    uint8_t *rgb = canvas->rgb + ((size_t)y * canvas->width + x) * 3;

    rgb[0] = (uint8_t)(color >> 16);
    rgb[1] = (uint8_t)(color >> 8);
    rgb[2] = (uint8_t)color;
}

/* Draw the pixels of the regions of a cut that have a neighbour outside of them. */
static void
draw_regions(const float *spread, unsigned side, double level, struct canvas *canvas, unsigned left, unsigned top)
{
    unsigned y, x;

    for (y = 1; y + 1 < side; y++)
        for (x = 1; x + 1 < side; x++) {
            const float *at = spread + (size_t)y * side + x;

            if ((double)at[0] >= level && ((double)at[-1] < level || (double)at[1] < level ||
                                           (double)at[-(ptrdiff_t)side] < level || (double)at[side] < level))
                set_pixel(canvas, left + x, top + y, INK);
        }
}

/* Draw the outline of the given box, two pixels wide; it is inside of the image. */
static void
draw_box(const struct map_box *box, unsigned times, unsigned side, struct canvas *canvas, unsigned left, unsigned top)
{
    unsigned x0 = (unsigned)(box->left * times), x1 = (unsigned)fmin(box->right * times, side - 1.0);
    unsigned y0 = (unsigned)(box->top * times), y1 = (unsigned)fmin(box->bottom * times, side - 1.0);
    unsigned y, x;

    for (y = y0; y <= y1; y++)
        for (x = x0; x <= x1; x++)
            if (x < x0 + 2 || x + 2 > x1 || y < y0 + 2 || y + 2 > y1)
                set_pixel(canvas, left + x, top + y, GIVEN);
}

/* Draw the given box, and the regions that are compared with it. */
static void
draw_boxes(const struct map_picture *p, const float *spread, struct canvas *canvas, unsigned left, unsigned top,
           unsigned times)
{
    unsigned side = p->size * times, k;
    float least, most;

    if (map_range(spread, (size_t)side * side, &least, &most))
        for (k = 0; k < REGION_CUTS; k++)
            draw_regions(spread, side, (double)least + region_cuts[k] / 255 * ((double)most - (double)least), canvas,
                         left, top);
    draw_box(p->box, times, side, canvas, left, top);
}

enum chex_status
map_picture_place(const struct map_picture *p, struct canvas *canvas, unsigned left, unsigned top, unsigned times,
                  struct chex_error *err)
{
    unsigned side = p->size * times;
    struct map_place place = map_place_of(side, side, p->size, p->crop.y, p->crop.x);
    float *spread = malloc((size_t)side * side * sizeof(*spread));

    if (!spread)
        return error_memory(err);
    map_spread(p->grid, p->map, &place, side, side, spread);
    draw_image(p, spread, canvas, left, top, times);
    if (p->box)
        draw_boxes(p, spread, canvas, left, top, times);
    free(spread);
    return CHEX_OK;
}

static void
draw_line(struct canvas *canvas, unsigned x, unsigned y, picture_color color, const char *text)
{
    canvas_text(canvas, x, y, &font_large, false, color, text, strlen(text));
}

/* A bar over a middle gray, from -scale to +scale. */
static void
draw_legend(const struct map_picture *p, struct canvas *canvas, unsigned left, unsigned top, unsigned width)
{
    char text[32];
    unsigned x, y;

    for (y = 0; y < BAR; y++)
        for (x = 0; x < width; x++)
            tint(128, (2.0 * x / (width - 1) - 1) * p->scale, p->scale,
                 canvas->rgb + ((size_t)(top + y) * canvas->width + left + x) * 3);
    snprintf(text, sizeof(text), "-%u", p->scale);
    draw_line(canvas, left, top + BAR + 3, INK, text);
    draw_line(canvas, left + width / 2 - 3, top + BAR + 3, INK, "0");
    snprintf(text, sizeof(text), "+%u logits", p->scale);
    draw_line(canvas, left + width - font_width(&font_large, text, strlen(text)), top + BAR + 3, INK, text);
}

static void
draw_title(const struct map_picture *p, struct canvas *canvas)
{
    char text[256], threshold[96] = "no threshold";

    if (!isnan(p->threshold))
        snprintf(threshold, sizeof(threshold), "%.32s%sthreshold %.2f", p->chosen_on ? p->chosen_on : "",
                 p->chosen_on ? " " : "", p->threshold);
    draw_line(canvas, MARGIN, MARGIN, DIM, p->image);
    snprintf(text, sizeof(text), "%.64s  p %.2f (%s)", p->finding, p->probability, threshold);
    draw_line(canvas, MARGIN, MARGIN + LINE, INK, text);
    snprintf(text, sizeof(text), "logit %.2f = mean of the map %.2f + bias %.2f", p->logit, p->logit - p->bias,
             p->bias);
    draw_line(canvas, MARGIN, MARGIN + 2 * LINE, DIM, text);
}

void
map_picture_foot(const struct map_picture *p, struct canvas *canvas, unsigned left, unsigned top, unsigned width)
{
    draw_legend(p, canvas, left, top, width);
    draw_line(canvas, left, top + MAP_LEGEND_HEIGHT + 5, DIM, PICTURE_RESEARCH);
    if (p->synthetic)
        draw_line(canvas, left, top + MAP_LEGEND_HEIGHT + 5 + LINE, DIM, PICTURE_SYNTHETIC);
}

enum chex_status
map_picture_encode(const struct map_picture *p, const struct canvas *canvas, struct buffer *out, struct chex_error *err)
{
    const struct picture_note notes[] = {{"Description", PICTURE_RESEARCH}, {"Comment", PICTURE_SYNTHETIC}};
    const struct picture_spec spec = {.width = canvas->width,
                                      .height = canvas->height,
                                      .channels = 3,
                                      .notes = notes,
                                      .note_count = p->synthetic ? 2 : 1,
                                      .pixels = canvas->rgb};

    return picture_png(&spec, out, err);
}

enum chex_status
map_picture_draw(const struct map_picture *p, struct canvas *canvas, struct buffer *out, struct chex_error *err)
{
    unsigned side = p->size * enlargement(p->size), top = MARGIN + 3 * LINE + 4, legend = top + side + 8;
    unsigned foot = legend + (p->box ? LINE : 0), height = foot + MAP_LEGEND_HEIGHT + (p->synthetic ? 3 : 2) * LINE;
    enum chex_status status = canvas_start(canvas, side + 2 * MARGIN, height, PAPER, err);

    if (status != CHEX_OK)
        return status;
    draw_title(p, canvas);
    status = map_picture_place(p, canvas, MARGIN, top, enlargement(p->size), err);
    if (p->box)
        draw_line(canvas, MARGIN, legend - 4, GIVEN,
                  "green: box of the list; white: regions of the map compared with it");
    map_picture_foot(p, canvas, MARGIN, foot, side);
    return status == CHEX_OK ? map_picture_encode(p, canvas, out, err) : status;
}
