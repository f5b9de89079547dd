/*
 * group_file.h - reads --groups: other columns about the images, such as the machine, the hospital or chest drains
 *
 * A CSV file with a column of images (image_file.h).  Each other column divides the images by its values; an empty
 * value is unknown.  Of two values, the last in the order of strcmp() is the group and the other one the rest (1 and 0,
 * yes and no).  Of more values, each is a group, and all others are its rest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_GROUP_FILE_H
#define CHEX_TOOLS_INSPECT_RUN_GROUP_FILE_H

#include "eval/predictions_read.h"
#include "eval/subgroups.h"

#define GROUP_FILE_COLUMNS 8
#define GROUP_FILE_VALUES  8 /* of a column */
#define GROUP_FILE_MOST    32
#define GROUP_FILE_TEXT    48 /* bytes of a name or a value, which are escaped */

struct group_column {
    size_t field; /* of the file */
    char name[GROUP_FILE_TEXT], value[GROUP_FILE_VALUES][GROUP_FILE_TEXT];
    unsigned values;
    uint8_t *of; /* [images] index of the value, GROUP_FILE_VALUES: unknown; owned */
};

struct group_file {
    size_t images;          /* of the predictions */
    size_t others, without; /* images of only the file; of only the predictions */
    struct group_column column[GROUP_FILE_COLUMNS];
    unsigned columns, groups;
};

/*
 * Read a file.  Release *out with group_file_release(), also after a failure.
 * CHEX_ERR_INCOMPATIBLE "PATH:LINE: ...": no column but that of images, too many columns, values or groups, two columns
 * of a name, a text that is too long; statuses of image_file_read()
 */
enum chex_status group_file_read(const char *path, const struct predictions *p, struct group_file *out,
                                 struct chex_error *err);
void group_file_release(struct group_file *f);

/* Write the names of a group, "drain: yes", and of its rest, "drain: no" or "other values". */
#define GROUP_FILE_NAME (2 * GROUP_FILE_TEXT + 2)
void group_file_name(const struct group_file *f, unsigned group, char name[GROUP_FILE_NAME],
                     char rest[GROUP_FILE_NAME]);
enum subgroup_side group_file_side(const struct group_file *f, unsigned group, size_t image);

#endif
