/*
 * stored_scan.h - finds the images of a data set that is an input, and makes rows of a label file from its records
 *
 * A source (input_scan.h) that reads data sets lists records of weight 1 as its files: file->folder is the number of
 * the data set, and file->stored the position in source->stored.  Only the bytes around the pixels are read here, so
 * checksums are compared later, when image_reader.h reads whole records.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STORED_SCAN_H
#define CHEX_LIB_STORED_SCAN_H

#include "dataset/dataset.h"
#include "input/input_scan.h"

struct labels;

/* A record of weight 1.  The source owns the texts and labels. */
struct stored_image {
    const char *name;
    const char *patient;
    const uint8_t *label; /* [findings.count of its data set] */
    float age;
    char sex;
    char view[8];
    uint32_t shard, index; /* in its data set */
    uint8_t split;         /* of its data set */
};

/*
 * Find out whether the folder is a data set, which then has a readable manifest: *is_stored.  If not, *why has the
 * reason.  The only error is CHEX_ERR_MEMORY.
 */
enum chex_status stored_probe(const char *path, bool *is_stored, struct chex_error *why);

/*
 * Report a folder without images that looks like a data set; `why` is from stored_probe().  CHEX_OK: it has no shards.
 * CHEX_ERR_DAMAGED       the folder has shards, and a manifest that is damaged
 * CHEX_ERR_INCOMPATIBLE  a newer format
 * CHEX_ERR_MISSING       the folder has shards but no manifest: the conversion is unfinished
 * CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status stored_explain(const char *path, const struct chex_error *why, struct chex_error *err);

/*
 * Add the images of the data set at `path` to the source.
 * CHEX_ERR_DAMAGED  a shard is missing or has another size, or a record is unreadable; also CHEX_ERR_TRUNCATED
 * CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status stored_scan(struct source *source, const char *path, struct chex_error *err);

/*
 * Check that no two records have the same name.  source->file is sorted.
 * CHEX_ERR_USAGE    images of two data sets have the same name: the first 10, and the count
 * CHEX_ERR_DAMAGED  two records of one data set
 */
enum chex_status stored_check_names(const struct source *source, struct chex_error *err);

/*
 * Check that each patient is in one data set only, over the rows of stored_rows() that are not skipped.
 * CHEX_ERR_USAGE  names the first 10 patients that are in two;  CHEX_ERR_MEMORY
 */
enum chex_status stored_check_patients(const struct source *source, const struct labels *labels, const bool *skip,
                                       struct chex_error *err);

/*
 * Make the rows of a label file from the records.  *out shares the source's texts, so the source must outlive it.  Zero
 * *out before the call; free it with labels_release(), also after a failure.  The SHA-256 is that of the label file; if
 * the data sets have different ones, it is that of the sorted list of them.
 * CHEX_ERR_INCOMPATIBLE  the data sets have different findings;  CHEX_ERR_MEMORY
 */
enum chex_status stored_rows(const struct source *source, struct labels *out, struct chex_error *err);

#endif
