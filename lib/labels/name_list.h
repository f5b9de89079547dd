/*
 * name_list.h - lists of image names: train_val_list.txt, test_list.txt, files for --exclude
 *
 * One name a line, plain or .gz.  Only the first word of a line counts, so the lists of other groups that carry
 * labels behind the name (chexnet_val_list.txt: name and fourteen 0/1 values) are lists too.  A file whose first line
 * is a CSV header with `Image Index` (BBox_List_2017.csv, Data_Entry) counts by that column.  A line may start with
 * a folder (images/00000001_000.png): what is behind the last slash is the name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_NAMES_H
#define CHEX_LIB_NAMES_H

#include "base/memory.h"
#include "labels/notes.h"

struct names {
    const char **name; /* sorted (strcmp), unique */
    size_t count;
    size_t repeated;    /* lines dropped because the name was there */
    struct notes notes; /* lines that name no image, or two */
    struct arena strings;
};

/*
 * Zero-initialise *out; names_release() frees it, also after a failure.
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_USAGE ("PATH:LINE: ...": NUL, overlong line or name)
 */
enum chex_status names_read(const char *path, struct names *out, struct chex_error *err);
void names_release(struct names *names);
bool names_have(const struct names *names, const char *name);

#endif
