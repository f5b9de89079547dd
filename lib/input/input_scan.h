/*
 * input_scan.h - which image files there are, by name, and which archives hold more
 *
 * Folders are searched recursively once, before anything is decoded; after that a name from the label file is only
 * ever looked up here and never joined to a path: a hostile CSV reaches no other file.  What is in an archive is known
 * only when it is read (archive.h); here it is opened and closed again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SOURCE_H
#define CHEX_LIB_SOURCE_H

#include "base/memory.h"

#include <stdatomic.h>

struct source_file {
    const char *name; /* within its folder */
    uint32_t folder;  /* index into source->folder */
};

struct source {
    struct source_file *file; /* sorted by name (strcmp), unique; files named .png, .jpg or .jpeg in any case */
    size_t count;
    const char **folder; /* every folder with an image, in order of discovery */
    size_t folder_count;
    const char **archive; /* paths of the archives, in the order given */
    size_t archive_count;
    size_t input_count;         /* folders or files that the user named */
    size_t repeated;            /* copies of a file that is there already, with the same content: left out */
    size_t unreadable;          /* folders that may not be listed: left out */
    size_t unopened;            /* files in folders that are named like archives: not opened */
    const char *unopened_first; /* the path of one of them */
    struct arena strings;

    const atomic_bool *stop; /* set before: it ends the search with CHEX_ERR_STOPPED; may be NULL */

    size_t file_capacity, folder_capacity, archive_capacity;
    void *linked; /* while a path is searched: the folders behind links */
};

/*
 * Is the input `path` a folder?  CHEX_ERR_MISSING: it does not exist, may not be read, or is neither a folder nor a
 * regular file;  CHEX_ERR_READ
 */
enum chex_status source_is_folder(const char *path, bool *is_folder, struct chex_error *err);

/*
 * Search `paths`: folders, single image files, archives (recognised by content).  Symbolic links are followed; a loop
 * of them ends, and a folder behind links is searched through one of them.  Zero-initialise *out; source_release()
 * frees it, also after a failure.  The result depends on the files, not on their order.
 * CHEX_ERR_MISSING  as source_is_folder(); a file that is neither image nor archive, or is empty
 * CHEX_ERR_USAGE    the same name twice with different content ("'NAME' found twice: A and B")
 * CHEX_ERR_READ     something cannot be read, though it was tried again (file.h): nothing is left out for that
 * CHEX_ERR_STOPPED, CHEX_ERR_MEMORY
 */
enum chex_status source_scan(const char *const *paths, size_t path_count, struct source *out, struct chex_error *err);
void source_release(struct source *source);

/* The file of this name, or NULL.  Binary search. */
const struct source_file *source_find(const struct source *source, const char *name);

/* Its path, to be opened; CHEX_ERR_LIMIT where it is longer than size. */
enum chex_status source_path(const struct source *source, const struct source_file *file, char *path, size_t size,
                             struct chex_error *err);

#endif
