/*
 * sheet.h - the data of a contact sheet: sheet.c selects the images, draw.c draws them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SHEET_H
#define CHEX_TOOLS_INSPECT_SHEET_H

#include "draw/canvas.h"
#include "inspect/inspect.h"

#define SHEET_MAX_IMAGES  1000
#define SHEET_MAX_COLUMNS 64
#define SHEET_TILE        256 /* maximum side of a drawn image, pixels; larger images are shrunk */

/* One image on the sheet. */
struct sheet_item {
    unsigned shard;
    uint32_t index;
    const char *split;
    char name[INSPECT_TEXT], patient[INSPECT_TEXT], view[INSPECT_TEXT];
    float age;
    char sex;
    char note[64];               /* a line of the caption, or "" */
    uint8_t label[FINDINGS_MAX]; /* 0 for an unreadable image */
    bool damaged;                /* the sheet does not show its pixels */
    uint8_t *gray;               /* [sheet.height][sheet.width]; NULL if the image could not be read */
};

struct sheet {
    const char *id;    /* of the data set */
    const char *title; /* or NULL */
    bool synthetic;
    char selection[512], choice[128], splits[256], size[64];
    uint64_t selected; /* number of candidate images */
    const struct findings *findings;
    uint64_t positives[FINDINGS_MAX]; /* among the candidates */
    uint64_t no_finding;
    struct sheet_item *item; /* in the order of the sheet */
    uint32_t count, columns;
    uint32_t width, height; /* of an image on the sheet */
    bool one_split;         /* do not repeat the split's name under each image */

    /* Layout, set by sheet_layout(). */
    uint32_t sheet_width, sheet_height, tile_width, header_height;
    uint32_t rows, *row_height; /* height of each row of tiles; owned */
    struct canvas band;         /* the header or a row of tiles; owned */
    uint32_t band_first, band_end;
};

/* Set the drawn size of images of this size: shrink to SHEET_TILE, or enlarge each pixel to a square. */
void sheet_fit(uint32_t width, uint32_t height, struct sheet *s);
struct resampler;
/*
 * Read the image at item->shard and item->index; b is any buffer.  A damaged image keeps its tile and its name, and
 * changes *code; only a lack of memory is an error.
 */
enum chex_status sheet_read_item(struct inspect *in, const struct chex_dataset *ds, const struct sheet *s,
                                 struct resampler *resampler, struct buffer *b, struct sheet_item *item, int *code);
/* Measure the text and compute the layout.  The caller calls sheet_release(), also after a failure. */
enum chex_status sheet_layout(struct sheet *s, struct chex_error *err);
/* Returns row y of the sheet; callback of struct picture_spec with the sheet as its context. */
const uint8_t *sheet_row(void *sheet, uint32_t y, struct chex_error *err);
void sheet_release(struct sheet *s);

#endif
