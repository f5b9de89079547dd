/*
 * manifest.h - manifest.json: the description of a data set (schemas/manifest.schema.json)
 *
 * The manifest is written last and by rename, so it exists only if the data set is complete.  It contains no host name,
 * and no time except those of withdrawals, so a rerun writes the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_MANIFEST_H
#define CHEX_LIB_MANIFEST_H

#include "base/memory.h"
#include "dataset/record.h"

#define MANIFEST_NAME           "manifest.json"
#define MANIFEST_MAX            (64u << 20)
#define MANIFEST_FORMAT         1
#define MANIFEST_MAX_SHARD_SIZE 100000  /* an index within a shard has five digits */
#define MANIFEST_LUMA           "bt601" /* the conversion of colours to gray, see image.h */

struct manifest_shard {
    const char *name; /* [A-Za-z0-9._-]+, not starting with a dot */
    const char *sha256;
    unsigned split;
    uint32_t number, of; /* within the split */
    uint32_t records, images;
    uint64_t size;
    const char *crc32c; /* over the stored data checksums of its records, 8 digits; NULL: unknown */
};

struct manifest_split {
    const char *name;
    const char *members_sha256;
    unsigned first_shard, shard_count;
    uint64_t images, patients;
    uint64_t positives[FINDINGS_MAX]; /* [findings.count] images with weight 1 whose label is 1 */
    uint64_t known[FINDINGS_MAX];     /* and whose label is 0 or 1; only if labels may be unknown */
};

/* Valid rows of the label file that the data set does not contain. */
struct manifest_left_out {
    const char *views; /* "PA", "PA,AP": the selected views if rows with other views were excluded, otherwise "" */
    uint64_t other_views, excluded, missing;
    const char *where; /* of where_format(): rows that do not match were left out, or NULL */
    uint64_t not_selected;
};

/* Patients with images in two splits or more (chex-convert --allow-leak), and all of their images. */
struct manifest_leaks {
    uint64_t patients, images;
};

/* A change of the data set that replaced the images of patients by padding records (chex-convert --withdraw). */
#define MANIFEST_TIME 21 /* "2026-11-23T22:30:00Z", terminated */
struct manifest_withdrawal {
    char dataset_id[CHEX_ID_LENGTH + 1]; /* of the data set before it */
    uint64_t slots;                      /* images withdrawn */
    char time[MANIFEST_TIME];
};

/* A data set from whose records this one was made. */
struct manifest_source {
    char dataset_id[CHEX_ID_LENGTH + 1];
    uint32_t size;      /* of its images, size x size */
    const char *resize; /* its method */
    const char *from;   /* its manifest_from(); "" or NULL: its images came from files */
    uint64_t withdrawn; /* images that were withdrawn from it */
    /* Only if several data sets were merged: the rows that it had left out, and the selection that made it, or NULL. */
    uint64_t left_out;
    const char *where;
    const char *id_prefix; /* put before the names and patients of its images; NULL: nothing */
};

struct manifest {
    char dataset_id[CHEX_ID_LENGTH + 1];
    const char *tool_version;
    struct record_layout layout;
    struct findings findings; /* in a manifest to be written, not owned; their number is also layout.labels.count */
    uint32_t shard_size;
    const char *tail;       /* "pad", "short", "drop" */
    const char *resize;     /* "bilinear", ... */
    const char *split_rule; /* "official", "patient:70,10,20:0", ... */
    uint64_t seed;
    uint64_t max_pixels;
    uint32_t min_side;
    bool lenient;
    const char *labels_sha256;                   /* of the label file's content */
    uint32_t view_size, patient_size, name_size; /* length of each text if equal in all records, otherwise 0 */
    double pixel_mean, pixel_deviation;
    uint64_t rejects;
    bool synthetic;        /* drawn by chex-synth; not part of the data set id */
    const char *gray_rule; /* IMAGE_GRAY_RULE if the inputs may be other than NIH's 8-bit PNGs, otherwise NULL */
    uint64_t empty_labels; /* rows with an empty label, read as No Finding on request */
    struct manifest_leaks leaks;
    struct manifest_left_out left_out; /* views may be NULL if no row was excluded */

    struct manifest_source *source; /* ordered by dataset_id; none if the images came from files */
    unsigned source_count;

    struct manifest_withdrawal *withdrawal; /* the oldest first */
    unsigned withdrawal_count;

    struct manifest_split *split;
    unsigned split_count;
    struct manifest_shard *shard;
    unsigned shard_count;

    struct arena strings; /* owns the strings of a parsed manifest */
    struct findings own;  /* owns the findings of a parsed manifest */
};

/* Append the text of the manifest to b.  The caller keeps the strings in m. */
enum chex_status manifest_format(const struct manifest *m, struct buffer *b, struct chex_error *err);

/*
 * Parse and check a manifest: size and depth, no repeated keys, known version, names without slashes, numbers within
 * their ranges, consistent sums.  Zero *out before the call; free it with manifest_release(), also after a failure.
 * CHEX_ERR_INCOMPATIBLE a newer version;  CHEX_ERR_DAMAGED;  CHEX_ERR_LIMIT;  CHEX_ERR_MEMORY
 */
enum chex_status manifest_parse(const uint8_t *text, size_t size, struct manifest *out, struct chex_error *err);
void manifest_release(struct manifest *m);

/* Returns the data set id in the records.  A withdrawal changes the id of the data set, but not that of its records. */
const char *manifest_record_id(const struct manifest *m);
/* Returns whether this data set had another id, `id`, before patients were withdrawn. */
bool manifest_had_id(const struct manifest *m, const char *id);
/* Returns the number of images withdrawn so far. */
uint64_t manifest_withdrawn(const struct manifest *m);

/*
 * Write what images of this size, made from these sources (count 0: from files), were before their last resize:
 * "256x256 bilinear", or "256x256 bilinear of 512x512 area"; "" if that resize was of image files.  If the sources
 * differ in this, the text is "mixed" and the first 8 digits of a SHA-256 over the id and the text of each source, so
 * the text determines the pixels of each image.  Returns false if the text does not fit, or when out of memory.
 */
#define MANIFEST_FROM 48
bool manifest_from(const struct manifest_source *source, unsigned count, uint32_t size, char out[MANIFEST_FROM]);

#endif
