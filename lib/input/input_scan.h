/*
 * input_scan.h - finds the image files, by name, and the archives of all inputs
 *
 * The scan searches folders recursively, once, before anything is decoded.  Later a name of the label file is only
 * looked up in this list and never joined to a path, so a hostile CSV cannot reach other files.  The members of an
 * archive are known only when it is read (archive.h); the scan only opens it and closes it again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SOURCE_H
#define CHEX_LIB_SOURCE_H

#include "base/memory.h"

#include <stdatomic.h>

struct chex_dataset;
struct stored_image;

struct source_file {
    const char *name; /* the last source->name_parts components of its path */
    uint32_t folder;  /* index into source->folder; for a record, into source->dataset */
    uint32_t stored;  /* of a record: index into source->stored */
};

struct source {
    struct source_file *file; /* sorted by name (strcmp), unique; names end with .png, .jpg or .jpeg in any case */
    size_t count;
    const char **folder; /* all folders that contain an image, in the order of discovery */
    size_t folder_count;
    const char **archive; /* paths of the archives, in the order of the inputs */
    size_t archive_count;
    size_t input_count;         /* folders and files that the user named */
    size_t repeated;            /* files skipped because their name and content equal those of another file */
    size_t unreadable;          /* folders skipped because permission to list them is missing */
    size_t unopened;            /* files in folders that are named like archives: skipped */
    const char *unopened_first; /* the path of one of them */
    struct arena strings;

    unsigned name_parts; /* set before the scan: components of a name; 0 or 1: without folders */

    /*
     * Data sets (stored_scan.h).  If there is one, all inputs are data sets; `file` lists their records of weight 1.
     * Inputs are recognised as data sets only if this is set before the scan:
     */
    bool with_datasets;
    const char *output; /* set before the scan, or NULL: this folder is searched for images even if it is a data set */
    /* Set before the scan, or NULL: [path_count] texts put before the names and patients of each data set; not owned */
    const char *const *prefix;
    const char *split; /* set before the scan, or NULL: only shards of this split of the data sets are read */
    /* Set before the scan, or NULL: what a message says about images of one name, in files and in data sets. */
    const char *apart, *datasets_apart;
    struct chex_dataset **dataset;
    size_t dataset_count;
    struct stored_image *stored;
    size_t stored_count;

    const atomic_bool *stop; /* set before the scan, or NULL; a true value ends the scan with CHEX_ERR_STOPPED */

    size_t file_capacity, folder_capacity, archive_capacity, dataset_capacity, stored_capacity;
    void *linked; /* only during the scan of an input: folders reached through symbolic links */
};

/*
 * Find out whether the input `path` is a folder.
 * CHEX_ERR_MISSING  it does not exist, permission is missing, or it is neither a folder nor a regular file
 * CHEX_ERR_READ
 */
enum chex_status source_is_folder(const char *path, bool *is_folder, struct chex_error *err);

/*
 * Search `paths`: folders, single image files and archives (recognised by content).  The scan follows symbolic links.
 * It ends at a loop of links, and searches a folder once even if several links point to it.  Zero *out before the call;
 * free it with source_release(), also after a failure.  The result does not depend on the order of the files.
 * CHEX_ERR_MISSING  as source_is_folder(); a file is neither an image nor an archive, or is empty
 * CHEX_ERR_USAGE    two files have the same name and different content ("'NAME' found twice: A and B")
 *                   image files and data sets are mixed; two data sets have an image of the same name, or the same
 *                   id; a prefix makes a text too long; a data set is the output
 * CHEX_ERR_READ     a file or folder is unreadable, also after the retries of file.h; the scan skips none
 * CHEX_ERR_DAMAGED, CHEX_ERR_INCOMPATIBLE  a data set, see stored_scan.h
 * CHEX_ERR_STOPPED, CHEX_ERR_MEMORY
 */
enum chex_status source_scan(const char *const *paths, size_t path_count, struct source *out, struct chex_error *err);
void source_release(struct source *source);

/* Returns the file with this name, or NULL; a binary search. */
const struct source_file *source_find(const struct source *source, const char *name);

/* Write the file's path to `path`, which has `size` bytes.  CHEX_ERR_LIMIT if it does not fit. */
enum chex_status source_path(const struct source *source, const struct source_file *file, char *path, size_t size,
                             struct chex_error *err);

#endif
