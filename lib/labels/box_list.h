/*
 * box_list.h - reads a list of boxes around findings: BBox_List_2017.csv of ChestX-ray14, plain or .gz
 *
 * A row has an image, the name of a finding, and a box in pixels of the original image: left, top, width and height.
 * The header of NIH's file has unquoted commas, `Bbox [x,y,w,h],,,`, so it has nine tokens, but the rows have six
 * fields.  This reader also takes that column's name in quotes, and empty fields after the sixth.
 *
 * NIH's file says Infiltrate for Infiltration (finding_index()).  It has at most one box for an image and a finding; so
 * a second one is an error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_BOX_LIST_H
#define CHEX_LIB_BOX_LIST_H

#include "base/memory.h"
#include "base/sha256.h"
#include "dataset/findings.h"

#define BOX_LIST_FAR 65536 /* every coordinate is at most this */

struct listed_box {
    const char *image;          /* its name, with the last `parts` components of its path */
    unsigned finding;           /* index in the list of findings */
    double x, y, width, height; /* pixels; x and y are those of the top left corner; the sizes are above 0 */
    unsigned long line;         /* in the file */
};

struct box_list {
    struct listed_box *box; /* sorted by image (strcmp) and finding; no two have both equal */
    size_t count;
    size_t ignored;          /* rows of findings that ChestX-ray14 has and the list of findings lacks */
    char sha256[DIGEST_HEX]; /* of the decompressed text */
    struct arena strings;
};

/*
 * Read the list.  Zero *out before the call; free it with box_list_release(), also after a failure.
 * findings   of the boxes; not needed after the call
 * parts      components of a path that are the name of an image
 * CHEX_ERR_USAGE  with "PATH:LINE: ...": a header without the columns; a row with another number of fields; an unusable
 *                 name; an unknown finding, with a suggestion; a number that is not a plain decimal one, is above
 *                 BOX_LIST_FAR, or is a width or height of 0; a second box for an image and a finding (both lines);
 *                 with "PATH: ...": no row
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status box_list_read(const char *path, const struct findings *findings, unsigned parts, struct box_list *out,
                               struct chex_error *err);
void box_list_release(struct box_list *list);

/* Returns the first box of an image and sets *count to the number of its boxes; they follow each other. */
const struct listed_box *box_list_find(const struct box_list *list, const char *image, size_t *count);

#endif
