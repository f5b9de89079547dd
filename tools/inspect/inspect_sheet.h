/*
 * inspect_sheet.h - a contact sheet between the choice of its images and its pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SHEET_H
#define CHEX_TOOLS_INSPECT_SHEET_H

#include "draw/canvas.h"
#include "inspect/inspect.h"

#define SHEET_MAX_IMAGES  1000
#define SHEET_MAX_COLUMNS 64
#define SHEET_TILE        256 /* pixels a side that an image gets; larger ones are shrunk */

/* An image on the sheet. */
struct sheet_item {
    unsigned shard;
    uint32_t index;
    const char *split;
    char name[INSPECT_TEXT], patient[INSPECT_TEXT], view[INSPECT_TEXT];
    float age;
    char sex;
    uint16_t findings;
    bool damaged;  /* its pixels are not shown */
    uint8_t *gray; /* [height][width] of the sheet; NULL where nothing could be read */
};

struct sheet {
    const char *id;    /* of the data set */
    const char *title; /* or NULL */
    bool synthetic;
    char selection[512], choice[128], splits[256], size[64];
    uint64_t selected;                 /* images that were chosen from */
    uint64_t positives[CHEX_FINDINGS]; /* among them */
    uint64_t no_finding;
    struct sheet_item *item; /* in the order of the sheet */
    uint32_t count, columns;
    uint32_t width, height; /* of an image on the sheet */
    bool one_split;         /* no need to name it under each image */

    /* Of the drawing, set by sheet_layout(). */
    uint32_t sheet_width, sheet_height, tile_width, header_height;
    uint32_t rows, *row_height; /* of each row of tiles; owned */
    struct canvas band;         /* the header or a row of tiles; owned */
    uint32_t band_first, band_end;
};

/* Measure: all that is drawn gets its place.  Frees nothing; sheet_release() does. */
enum chex_status sheet_layout(struct sheet *s, struct chex_error *err);
/* Row y of the sheet, for struct picture_spec; the context is the sheet. */
const uint8_t *sheet_row(void *sheet, uint32_t y, struct chex_error *err);
void sheet_release(struct sheet *s);

#endif
