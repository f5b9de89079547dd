/*
 * draw.c - lays out and draws a contact sheet; see sheet.h
 *
 * Text flows like words on a page.  An item that does not fit on the current line goes to the next line.  If it is
 * wider than a line, it gets smaller letters; if it is still too wide, it is broken.  No text is cut.  The same code
 * measures (without a canvas) and draws.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/sheet/sheet.h"

#include "base/number_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAPER    0x15181cu
#define BORDER   0x3a4047u
#define INK      0xf2f4f6u
#define DIM      0xa9b2bcu
#define AMBER    0xffc857u
#define RED      0xff6b6bu
#define TAG_INK  0x101214u
#define MARGIN   16u
#define GAP      14u /* between tiles */
#define BLANK    12u /* between items of a line */
#define LINE     17u
#define TAG_PAD  5u
#define MIN_TEXT 168u /* pixels for the writing under an image */
#define MIN_HEAD 224u

/* The words identify the tags; the colours help to spot one finding on the whole sheet. */
#define TAG_COLORS 14
static const picture_color tag_colors[TAG_COLORS] = {
    0x8ecae6, 0xff7b72, 0x4ea8de, 0xb8de6f, 0xffb703, 0xf4a261, 0x52b788,
    0xe07be0, 0xd9c75b, 0x5fdede, 0xc3a6ff, 0xc49a7a, 0xf7a8c4, 0xa3b18a,
};

struct flow {
    struct canvas *canvas; /* NULL: measure only */
    uint32_t left, top, width;
    uint32_t x, y; /* of the next item, from left and top */
};

struct style {
    picture_color color;
    bool bold, small;
    bool tag;     /* on a field of its colour, */
    bool outline; /* or in a frame */
};

/* ---- flow -------------------------------------------------------------------------------------------------------- */

static void
flow_line(struct flow *f)
{
    if (f->x > 0) {
        f->x = 0;
        f->y += LINE;
    }
}

static uint32_t
flow_end(struct flow *f)
{
    flow_line(f);
    return f->y;
}

static uint32_t
item_width(const struct style *s, const struct font *font, const char *text, size_t length)
{
    return font_width(font, text, length) + (s->bold ? 1 : 0) + (s->tag || s->outline ? 2 * TAG_PAD : 0);
}

static void
item_draw(const struct flow *f, const struct style *s, const struct font *font, const char *text, size_t length)
{
    int64_t x = (int64_t)f->left + f->x, y = (int64_t)f->top + f->y;
    uint32_t width = item_width(s, font, text, length);
    bool boxed = s->tag || s->outline;

    if (s->tag || s->outline)
        canvas_fill(f->canvas, x, y, width, LINE - 2, s->color);
    if (s->outline)
        canvas_fill(f->canvas, x + 1, y + 1, width - 2, LINE - 4, PAPER);
    /* All font sizes share one baseline. */
    canvas_text(f->canvas, x + (boxed ? TAG_PAD : 0), y + 12 - font_baseline(font), font, s->bold,
                s->tag ? TAG_INK : s->color, text, length);
}

static void
flow_place(struct flow *f, const struct style *s, const struct font *font, const char *text, size_t length)
{
    uint32_t width = item_width(s, font, text, length);

    if (f->x + width > f->width)
        flow_line(f);
    if (f->canvas)
        item_draw(f, s, font, text, length);
    f->x += width + (s->tag || s->outline ? BLANK / 2 : BLANK);
}

/* Returns how many bytes of a long text fit on one line; prefers to end at a separator in the second half. */
static size_t
break_at(const struct flow *f, const struct style *s, const char *text, size_t length)
{
    size_t fits = 1, i;

    while (fits < length && item_width(s, &font_small, text, fits + 1) <= f->width)
        fits++;
    for (i = fits; i < length && i > fits / 2; i--)
        if (strchr(" _-,./|", text[i - 1]))
            return i;
    return fits;
}

static void
flow_text(struct flow *f, struct style s, const char *text)
{
    size_t length = strlen(text), piece;
    const struct font *font = s.small ? &font_small : &font_large;

    if (item_width(&s, font, text, length) > f->width)
        font = &font_small;
    while (item_width(&s, font, text, length) > f->width && length > 1) {
        flow_line(f);
        piece = break_at(f, &s, text, length);
        flow_place(f, &s, font, text, piece);
        flow_line(f);
        text += piece;
        length -= piece;
    }
    if (length > 0)
        flow_place(f, &s, font, text, length);
}

static void
flow_tag(struct flow *f, int finding, const char *text)
{
    struct style s = {
        .color = finding < 0 ? DIM : tag_colors[finding % TAG_COLORS], .tag = finding >= 0, .outline = finding < 0};

    flow_text(f, s, text);
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static uint32_t
header(const struct sheet *s, struct canvas *canvas, uint32_t width)
{
    static const struct style strong = {.color = INK, .bold = true}, plain = {.color = DIM};
    static const struct style warning = {.color = AMBER}, strong_warning = {.color = AMBER, .bold = true};
    struct flow f = {.canvas = canvas, .left = MARGIN, .top = MARGIN, .width = width - 2 * MARGIN};
    char text[600], number[FORMAT_TEXT], other[FORMAT_TEXT];
    unsigned i;

    if (s->title) {
        flow_text(&f, strong, s->title);
        flow_line(&f);
    }
    if (s->synthetic) {
        flow_text(&f, strong_warning, PICTURE_SYNTHETIC);
        flow_line(&f);
    }
    snprintf(text, sizeof(text), "Data set %s", s->id);
    flow_text(&f, s->title ? plain : strong, text);
    flow_text(&f, plain, s->splits);
    flow_text(&f, plain, s->size);
    flow_text(&f, warning, PICTURE_RESEARCH);
    flow_line(&f);
    snprintf(text, sizeof(text), "%s of %s images", format_count(s->count, number), format_count(s->selected, other));
    flow_text(&f, (struct style){.color = INK}, text);
    flow_text(&f, plain, s->choice);
    flow_text(&f, plain, s->selection);
    flow_line(&f);
    f.y += 3;
    if (s->count < s->selected) {
        snprintf(text, sizeof(text), "among these %s", other);
        flow_text(&f, plain, text);
    }
    for (i = 0; i < s->findings->count; i++) {
        if (s->positives[i] == 0)
            continue;
        snprintf(text, sizeof(text), "%s %s", s->findings->name[i], format_count(s->positives[i], number));
        flow_tag(&f, (int)i, text);
    }
    if (s->no_finding > 0) {
        snprintf(text, sizeof(text), "%s %s", inspect_none_name(s->findings), format_count(s->no_finding, number));
        flow_tag(&f, -1, text);
    }
    return MARGIN + flow_end(&f) + 8;
}

/* ---- a tile ------------------------------------------------------------------------------------------------------ */

static void
age_text(const struct sheet_item *item, char out[48])
{
    if (isnan(item->age))
        snprintf(out, 48, "age unknown");
    else if (item->age >= 1 && item->age == floorf(item->age))
        snprintf(out, 48, "%.0f y", (double)item->age);
    else
        snprintf(out, 48, "%.3g y", (double)item->age);
}

/* Draw the text under an image; returns its height. */
static uint32_t
caption(const struct sheet *s, const struct sheet_item *item, struct canvas *canvas, uint32_t left, uint32_t top)
{
    static const struct style ink = {.color = INK}, dim = {.color = DIM}, place = {.color = DIM, .small = true};
    struct flow f = {.canvas = canvas, .left = left, .top = top, .width = s->tile_width};
    char text[INSPECT_TEXT + 64];
    bool any = false;
    unsigned i;

    flow_text(&f, ink, item->name);
    snprintf(text, sizeof(text), "%s%s%u:%u", s->one_split ? "" : item->split, s->one_split ? "" : " ", item->shard,
             item->index);
    flow_text(&f, place, text);
    flow_line(&f);
    if (item->note[0]) {
        flow_text(&f, ink, item->note);
        flow_line(&f);
    }
    snprintf(text, sizeof(text), "patient %s", item->patient);
    flow_text(&f, dim, text);
    age_text(item, text);
    flow_text(&f, dim, text);
    snprintf(text, sizeof(text), item->sex == 'U' ? "sex unknown" : "%c", item->sex);
    flow_text(&f, dim, text);
    snprintf(text, sizeof(text), "%s%s", item->view, strcmp(item->view, "U") == 0 ? ": view unknown" : "");
    flow_text(&f, dim, text[0] == 'U' && text[1] == ':' ? "view unknown" : text);
    flow_line(&f);
    for (i = 0; i < s->findings->count; i++) {
        if (item->label[i] == 0)
            continue;
        snprintf(text, sizeof(text), "%s%s", s->findings->name[i], item->label[i] == 1 ? "" : "?");
        flow_tag(&f, item->label[i] == 1 ? (int)i : -1, text);
        any = true;
    }
    if (!any)
        flow_tag(&f, -1, inspect_none_name(s->findings));
    return flow_end(&f);
}

static void
draw_tile(const struct sheet *s, const struct sheet_item *item, struct canvas *canvas, uint32_t left)
{
    static const char text[] = "damaged: not shown";
    uint32_t x = left + (s->tile_width - s->width) / 2;

    canvas_fill(canvas, (int64_t)x - 1, 0, s->width + 2, s->height + 2, BORDER);
    if (item->gray && !item->damaged) {
        canvas_gray(canvas, x, 1, s->width, s->height, item->gray);
    } else {
        canvas_fill(canvas, x, 1, s->width, s->height, PAPER);
        canvas_text(canvas, left + (s->tile_width - font_width(&font_large, text, strlen(text))) / 2,
                    1 + s->height / 2 - 6, &font_large, false, RED, text, strlen(text));
    }
    caption(s, item, canvas, left, s->height + 8);
}

/* ---- the sheet --------------------------------------------------------------------------------------------------- */

enum chex_status
sheet_layout(struct sheet *s, struct chex_error *err)
{
    uint32_t i, height;

    s->tile_width = s->width + 2 > MIN_TEXT ? s->width + 2 : MIN_TEXT;
    s->sheet_width = 2 * MARGIN + s->columns * s->tile_width + (s->columns - 1) * GAP;
    if (s->sheet_width < MIN_HEAD + 2 * MARGIN)
        s->sheet_width = MIN_HEAD + 2 * MARGIN;
    s->header_height = header(s, NULL, s->sheet_width);
    s->rows = (s->count + s->columns - 1) / s->columns;
    s->row_height = calloc(s->rows ? s->rows : 1, sizeof(*s->row_height));
    if (!s->row_height)
        return error_memory(err);
    s->sheet_height = s->header_height;
    for (i = 0; i < s->count; i++) {
        height = s->height + 8 + caption(s, &s->item[i], NULL, 0, 0) + GAP;
        if (height > s->row_height[i / s->columns])
            s->row_height[i / s->columns] = height;
    }
    for (i = 0; i < s->rows; i++)
        s->sheet_height += s->row_height[i];
    return CHEX_OK;
}

/* Draw the band of the sheet that contains row y. */
static enum chex_status
draw_band(struct sheet *s, uint32_t y, struct chex_error *err)
{
    uint32_t first = 0, end = s->header_height, row = 0, i;
    enum chex_status status;

    while (y >= end && row < s->rows) {
        first = end;
        end += s->row_height[row++];
    }
    status = canvas_start(&s->band, s->sheet_width, end - first, PAPER, err);
    if (status != CHEX_OK)
        return status;
    s->band_first = first;
    s->band_end = end;
    if (row == 0)
        header(s, &s->band, s->sheet_width);
    for (i = 0; row > 0 && i < s->columns && (row - 1) * s->columns + i < s->count; i++)
        draw_tile(s, &s->item[(row - 1) * s->columns + i], &s->band, MARGIN + i * (s->tile_width + GAP));
    return CHEX_OK;
}

const uint8_t *
sheet_row(void *sheet, uint32_t y, struct chex_error *err)
{
    struct sheet *s = sheet;

    if ((y < s->band_first || y >= s->band_end) && draw_band(s, y, err) != CHEX_OK)
        return NULL;
    return s->band.rgb + (size_t)(y - s->band_first) * s->sheet_width * 3;
}

void
sheet_release(struct sheet *s)
{
    uint32_t i;

    for (i = 0; s->item && i < s->count; i++)
        free(s->item[i].gray);
    free(s->item);
    free(s->row_height);
    canvas_release(&s->band);
}
