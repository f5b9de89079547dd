/*
 * name_list.h - reads lists of image names: train_val_list.txt, test_list.txt, files for --exclude
 *
 * A list has one name per line, plain or .gz.  Only the first word of a line is used, so lists with labels after the
 * name also work (chexnet_val_list.txt: a name and fourteen 0/1 values).  If the first line is a CSV header with `Image
 * Index` (BBox_List_2017.csv, Data_Entry), this column has the names.  A name may begin with a folder
 * (images/00000001_000.png): only the last `parts` components of the path are used.
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
    size_t repeated;    /* lines skipped because they repeat a name */
    struct notes notes; /* lines that contain no image name, or two */
    struct arena strings;
};

/*
 * Read a list.  Zero *out before the call; free it with names_release(), also after a failure.
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_USAGE ("PATH:LINE: ...": NUL, overlong line or name)
 */
enum chex_status names_read(const char *path, unsigned parts, struct names *out, struct chex_error *err);
void names_release(struct names *names);
bool names_have(const struct names *names, const char *name);

#endif
