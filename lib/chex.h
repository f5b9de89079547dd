/*
 * chex.h - read pre-decoded chest X-ray data sets (libchex)
 *
 * A data set is a folder.  Its manifest.json describes the content.  The other files are shards: plain TFRecord files.
 * All records of a data set have the same length in bytes, the stride.  So record i of a shard begins at byte
 * i * stride, and its pixels begin at the same offset in every record.  A program opens the data set, asks which shards
 * a split has, and reads any range of records with one positioned read.  A view gives access to the values of a record
 * without copying.  Alternatively, a reader copies the pixels and labels of a split into arrays, batch by batch.
 * chex-shard(5) describes the format.
 *
 *     struct chex_error err;
 *     struct chex_dataset *ds = NULL;
 *     struct chex_reader *reader = NULL;
 *     uint8_t labels[32 * CHEX_FINDINGS_MAX];
 *     struct chex_batch batch = {.capacity = 32, .labels = labels};
 *     enum chex_status status = chex_dataset_open("shards", &ds, &err);
 *
 *     if (status == CHEX_OK)
 *         status = chex_reader_open(ds, "train", &reader, &err);
 *     if (status == CHEX_OK)
 *         batch.pixels = malloc(32 * chex_dataset_info(ds)->pixel_size);
 *     while (batch.pixels &&
 *            (status = chex_reader_next(reader, &batch, &err)) == CHEX_OK &&
 *            batch.count > 0)
 *         use(batch.pixels, batch.labels, batch.count);
 *     if (status != CHEX_OK)
 *         fprintf(stderr, "%s\n", err.text);
 *     free(batch.pixels);
 *     chex_reader_close(reader);
 *     chex_dataset_close(ds);
 *
 * Errors: a function that can fail returns an enum chex_status.  If `err` is not NULL, the function also writes one
 * line of English to err->text (lower case, no full stop, no newline).  It does not change *err if it returns CHEX_OK.
 * The library never prints, never exits and has no global state.  Threads may use different objects at the same time.
 * They may share one object if its comment says so.
 *
 * Compatibility: a program compiled with this header runs with every later library of the same SONAME.  Later libraries
 * may add functions, statuses and members.  They add members at the end of the structs that the library returns by
 * pointer, so never index these pointers as an array.  They also add members in place of `reserved`.
 *
 * Research use only, not for diagnosis.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_H
#define CHEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/* chex_dataset_info names a struct and a function, as stat does in <sys/stat.h>. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

/* The shared library exports these functions and no others. */
#ifdef __GNUC__
#define CHEX_API __attribute__((visibility("default")))
#else
#define CHEX_API
#endif

/* ---- version -------------------------------------------------------------------------------------------------- */

/* The version of this header.  The library at run time may have a later version: chex_version(). */
#define CHEX_VERSION_MAJOR  0
#define CHEX_VERSION_MINOR  1
#define CHEX_VERSION_PATCH  0
#define CHEX_VERSION_STRING "0.1.0"
#define CHEX_VERSION_NUMBER (CHEX_VERSION_MAJOR * 1000000 + CHEX_VERSION_MINOR * 1000 + CHEX_VERSION_PATCH)

/* Return the version of the library at run time: as text such as "0.1.0", and as a number like CHEX_VERSION_NUMBER. */
CHEX_API const char *chex_version(void);
CHEX_API unsigned chex_version_number(void);

/* ---- status and errors ---------------------------------------------------------------------------------------- */

/* The numbers never change.  50 to 89 are errors in the data of one input: chex_status_is_data(). */
enum chex_status {
    CHEX_OK = 0,
    CHEX_ERR_MEMORY = 1,       /* an allocation failed */
    CHEX_ERR_USAGE = 2,        /* an argument or the configuration is wrong; nothing was changed */
    CHEX_ERR_MISSING = 3,      /* an input does not exist, or permission to read it is missing */
    CHEX_ERR_READ = 4,         /* reading failed (EIO, ESTALE) */
    CHEX_ERR_WRITE = 5,        /* writing failed (ENOSPC, EDQUOT, EIO, EROFS, EACCES) */
    CHEX_ERR_LOCKED = 6,       /* another process uses the folder */
    CHEX_ERR_INCOMPATIBLE = 7, /* valid, but of another version, specification or data set */
    CHEX_ERR_STOPPED = 8,      /* stopped on request; the work so far is saved */
    CHEX_ERR_LOST = 9,         /* another process of the same job is lost; the work so far is saved */
    CHEX_ERR_DIVERGED = 10,    /* the loss or gradient of a training run is not finite */
    CHEX_ERR_EMPTY = 50,       /* data: the file has no bytes */
    CHEX_ERR_TRUNCATED = 51,   /* data: ends too early */
    CHEX_ERR_CHECKSUM = 52,    /* data: a stored checksum does not match */
    CHEX_ERR_DAMAGED = 53,     /* data: violates its format in another way */
    CHEX_ERR_UNSUPPORTED = 54, /* data: valid, but of an unsupported kind */
    CHEX_ERR_LIMIT = 55,       /* data: exceeds or falls below a limit */
    CHEX_ERR_NOT_IMAGE = 56,   /* data: not the expected kind of file */
    CHEX_ERR_BUG = 99          /* a broken invariant inside libchex */
};

#define CHEX_ERR_DATA_FIRST 50
#define CHEX_ERR_DATA_LAST  89

/* Returns true if the status describes an error in the data of one input.  A program may skip that input. */
CHEX_API bool chex_status_is_data(enum chex_status status);

#define CHEX_ERROR_TEXT 1024

struct chex_error {
    enum chex_status status;
    int cause;                  /* errno of the failed system call, ENOMEM of a failed allocation; 0: neither */
    char text[CHEX_ERROR_TEXT]; /* always terminated; long texts are truncated */
    uint64_t reserved[4];       /* 0 */
};

/* Returns a short constant name such as "truncated"; "unknown" for a value outside the enum. */
CHEX_API const char *chex_status_name(enum chex_status status);

/* ---- labels --------------------------------------------------------------------------------------------------- */

/*
 * The findings of a data set: chex_dataset_findings().  A record has one label for each, in the same order: 1 if the
 * image has the finding, 0 if not, or CHEX_LABEL_UNKNOWN.  Leave an unknown label out of sums, losses and metrics.
 */
#define CHEX_FINDINGS_MAX  254 /* a data set has 1 to this number of findings */
#define CHEX_LABEL_UNKNOWN 255

/* ---- CRC-32C -------------------------------------------------------------------------------------------------- */

/*
 * Returns the CRC-32C (Castagnoli) of size bytes, continued from crc; start with 0.  chex_crc32c(0, "123456789", 9) is
 * 0xe3069283 (RFC 3720, B.4).  It uses CPU instructions for CRC-32C if available.  Thread-safe.
 */
CHEX_API uint32_t chex_crc32c(uint32_t crc, const void *data, size_t size);

/* Returns the masked form that TFRecord stores: rotr32(crc, 15) + 0xa282ead8. */
CHEX_API uint32_t chex_crc32c_mask(uint32_t crc);

/* ---- data set ------------------------------------------------------------------------------------------------- */

#define CHEX_ID_LENGTH 16 /* characters of a data set id, lower-case hexadecimal */

struct chex_dataset; /* opaque, constant after opening: any number of threads may use it */

struct chex_dataset_info {
    char id[CHEX_ID_LENGTH + 1]; /* identifies the content: same id, same records in the same slots */
    unsigned format_version;
    uint32_t height, width, channels; /* of every image; uint8, row-major, 0 = black */
    size_t stride;                    /* bytes from one record to the next */
    size_t pixel_offset;              /* bytes from the start of a record to its first pixel; a multiple of 64 */
    uint32_t shard_size;              /* records per shard; with --tail short, the last shard of a split has fewer */
    unsigned split_count;
    unsigned shard_count;
    uint64_t image_count;    /* records with weight 1 */
    double pixel_mean;       /* over the pixels of all records with weight 1, scale 0 to 255 */
    double pixel_deviation;  /* their standard deviation (population) */
    size_t pixel_size;       /* bytes of the pixels of an image: height * width * channels */
    unsigned finding_count;  /* labels of a record: 1 to CHEX_FINDINGS_MAX */
    bool unknown_labels;     /* labels may be CHEX_LABEL_UNKNOWN; false: every label is 0 or 1 */
    uint64_t leaky_patients; /* patients with images in two splits or more (chex-convert --allow-leak) */
};

struct chex_split_info {
    const char *name; /* "train", "val", "test", "all" or a name from the user; all pointers are valid until closing */
    const char *members_sha256; /* hash of the member list, see chex-shard(5) */
    unsigned first_shard;       /* its shards are first_shard .. first_shard + shard_count - 1 of the data set */
    unsigned shard_count;
    uint64_t image_count;
    uint64_t patient_count;
    const uint64_t *positives; /* [finding_count] images with weight 1 whose label is 1 */
    const uint64_t *known;     /* [finding_count] images with weight 1 whose label is 0 or 1 */
};

struct chex_shard_info {
    const char *name; /* file name within the folder; valid until the data set is closed */
    const char *sha256;
    unsigned split;        /* index of its split */
    uint32_t record_count; /* records in the file, including padding records */
    uint32_t image_count;  /* records with weight 1 */
    uint64_t size;         /* bytes: record_count * stride */
};

/*
 * Open the data set in folder `path`.  Reads manifest.json and checks it (size, depth, file names without slashes,
 * sums); does not open any shard.  Close *out with chex_dataset_close().
 * CHEX_ERR_MISSING       the folder or its manifest does not exist (an unfinished conversion has no manifest)
 * CHEX_ERR_INCOMPATIBLE  a newer format version
 * CHEX_ERR_DAMAGED, CHEX_ERR_LIMIT  not a valid manifest;  CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
CHEX_API enum chex_status chex_dataset_open(const char *path, struct chex_dataset **out, struct chex_error *err);

/* Close the data set; NULL is allowed.  Close its shards and readers first. */
CHEX_API void chex_dataset_close(struct chex_dataset *ds);

CHEX_API const struct chex_dataset_info *chex_dataset_info(const struct chex_dataset *ds);

/* Return a description of a split or shard; NULL for an index out of range. */
CHEX_API const struct chex_split_info *chex_dataset_split(const struct chex_dataset *ds, unsigned split);
CHEX_API const struct chex_shard_info *chex_dataset_shard(const struct chex_dataset *ds, unsigned shard);

/*
 * Returns the names of the findings: *count constant pointers and a NULL at the end.  Name i belongs to label i of a
 * record.  They are valid until the data set is closed.  count may be NULL.
 */
CHEX_API const char *const *chex_dataset_findings(const struct chex_dataset *ds, unsigned *count);

/* Returns the index of the split with this name, or -1. */
CHEX_API int chex_dataset_find_split(const struct chex_dataset *ds, const char *name);

/* ---- shard and record ----------------------------------------------------------------------------------------- */

struct chex_shard; /* an open shard file, constant after opening: any number of threads may read it */

/*
 * Open shard number `shard` of the data set and compare its size with the manifest.  Free it with chex_shard_close().
 * CHEX_ERR_USAGE no such number;  CHEX_ERR_MISSING no such file;  CHEX_ERR_TRUNCATED or CHEX_ERR_DAMAGED wrong size.
 */
CHEX_API enum chex_status chex_shard_open(const struct chex_dataset *ds, unsigned shard, struct chex_shard **out,
                                          struct chex_error *err);
CHEX_API void chex_shard_close(struct chex_shard *shard); /* NULL is allowed */

/*
 * Read records first .. first + count - 1 into buffer, which has at least count * stride bytes.  The function makes one
 * positioned read and no seek, so threads may share a shard.  It does not check the records: chex_record_view() does.
 * CHEX_ERR_USAGE a range outside the shard;  CHEX_ERR_TRUNCATED the file became shorter;  CHEX_ERR_READ.
 */
CHEX_API enum chex_status chex_shard_read(const struct chex_shard *shard, uint32_t first, uint32_t count, void *buffer,
                                          struct chex_error *err);

struct chex_bytes {
    const char *data; /* not terminated */
    size_t size;
};

/* The values of a record.  The pointers point into the record's buffer and are valid as long as the buffer. */
struct chex_record {
    const uint8_t *pixels; /* height * width * channels bytes */
    uint32_t height, width, channels;
    unsigned finding_count;
    const uint8_t *label;   /* [finding_count] 0, 1 or CHEX_LABEL_UNKNOWN */
    uint8_t weight;         /* 1 image, 0 padding: a copy of another image, to be ignored by loss and metrics */
    char sex;               /* 'M', 'F' or 'U' */
    float age;              /* years, NaN = unknown */
    struct chex_bytes view; /* "PA", "AP", "U" */
    struct chex_bytes name; /* file name of the image */
    struct chex_bytes patient;
    char dataset_id[CHEX_ID_LENGTH + 1]; /* the data set for which the record was written */
    uint32_t shard;                      /* its shard there, counted over all splits */
    uint32_t index;                      /* its index in that shard */
    uint64_t reserved[4];                /* 0 */
};

/*
 * Get the values of one record of `stride` bytes that was read from index `index` of shard `shard`.  The function
 * always compares every length with the stride, every byte outside the pixels with the only form that the writer
 * produces, and the stored data set id, shard and index with the expected ones.  With check_crc it also compares both
 * checksums (about 0.1 ns per byte).  Thread-safe.
 * CHEX_ERR_CHECKSUM a checksum differs;  CHEX_ERR_DAMAGED not the form that the manifest describes;
 * CHEX_ERR_INCOMPATIBLE a record of another data set, shard or index (a swapped, renamed or duplicated file).
 */
CHEX_API enum chex_status chex_record_view(const struct chex_dataset *ds, unsigned shard, uint32_t index,
                                           const void *record, bool check_crc, struct chex_record *out,
                                           struct chex_error *err);

/* ---- batches -------------------------------------------------------------------------------------------------- */

struct chex_reader; /* opaque; used by one thread at a time.  A data set may have any number of readers */

struct chex_batch {
    size_t capacity;      /* images that fit into the arrays, at least 1 */
    uint8_t *pixels;      /* from the caller: [capacity][height][width][channels]; NULL: not needed */
    uint8_t *labels;      /* from the caller: [capacity][finding_count], as in chex_record; NULL: not needed */
    size_t count;         /* set by chex_reader_next(): number of images in the arrays */
    uint64_t reserved[4]; /* 0 */
};

/*
 * Open a reader of the images of the split with this name, from its beginning.  The data set must stay open.  Free the
 * reader with chex_reader_close().
 * CHEX_ERR_USAGE no such split;  CHEX_ERR_MEMORY
 */
CHEX_API enum chex_status chex_reader_open(const struct chex_dataset *ds, const char *split, struct chex_reader **out,
                                           struct chex_error *err);

/*
 * Read the next images in the order of the shards, without padding records.  batch->count becomes capacity, less at the
 * end of the split, and 0 after it.  Every record is checked with its checksums, as by chex_record_view().  After an
 * error the count is 0 and the reader has not moved, so the same call may be repeated.  Errors: those of
 * chex_shard_open(), chex_shard_read() and chex_record_view(); the text names the record.
 * CHEX_ERR_USAGE a capacity of 0
 */
CHEX_API enum chex_status chex_reader_next(struct chex_reader *reader, struct chex_batch *batch,
                                           struct chex_error *err);

CHEX_API void chex_reader_close(struct chex_reader *reader); /* NULL is allowed */

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
