/*
 * chex.h - read pre-decoded chest X-ray data sets (libchex)
 *
 * The model to keep in mind: a data set is a folder.  Its manifest.json says what is in it; beside the manifest lie
 * shards, which are plain TFRecord files.  Every record of a data set has the same length in bytes, the stride, so
 * record i of a shard begins at byte i * stride, and its pixels begin at the same offset in each.  A program opens
 * the data set, asks which shards make up a split, reads any run of records with one positioned read, and looks into
 * a record through a view that copies nothing.  Or a reader copies pixels and labels of a split into arrays, batch by
 * batch.  chex-shard(5) describes the bytes.
 *
 *     struct chex_error err;
 *     struct chex_dataset *ds = NULL;
 *     struct chex_reader *reader = NULL;
 *     uint8_t labels[32 * CHEX_FINDINGS];
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
 * Errors: a function that can fail returns an enum chex_status and, if `err` is not NULL, leaves one line of English
 * in err->text (lower case, no full stop, no newline).  On CHEX_OK err is not touched.  The library never prints,
 * never exits, and holds no global state: calls on different objects may run in different threads; calls on one
 * object may too where the function says so.
 *
 * Growth: a program that was compiled with this header runs with every later library of the same SONAME.  Later
 * libraries add functions, statuses, and members: at the end of the structs that they hand out by pointer (so take
 * these pointers one by one, never as an array), and in place of `reserved`.
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
extern "C" {
#endif

/* What the shared library shows: these functions and nothing else. */
#ifdef __GNUC__
#define CHEX_API __attribute__((visibility("default")))
#else
#define CHEX_API
#endif

/* ---- version -------------------------------------------------------------------------------------------------- */

/* Of this header.  The version of the library that is running may be a later one: chex_version(). */
#define CHEX_VERSION_MAJOR  0
#define CHEX_VERSION_MINOR  1
#define CHEX_VERSION_PATCH  0
#define CHEX_VERSION_STRING "0.1.0"
#define CHEX_VERSION_NUMBER (CHEX_VERSION_MAJOR * 1000000 + CHEX_VERSION_MINOR * 1000 + CHEX_VERSION_PATCH)

/* Of the library that is running: text such as "0.1.0", and a number that compares like CHEX_VERSION_NUMBER. */
CHEX_API const char *chex_version(void);
CHEX_API unsigned chex_version_number(void);

/* ---- status and errors ---------------------------------------------------------------------------------------- */

/* The numbers are fixed.  50 to 89 are errors of one input's data: chex_status_is_data(). */
enum chex_status {
    CHEX_OK = 0,
    CHEX_ERR_MEMORY = 1,       /* an allocation failed */
    CHEX_ERR_USAGE = 2,        /* an argument or the configuration is wrong; nothing was touched */
    CHEX_ERR_MISSING = 3,      /* an input does not exist or may not be read */
    CHEX_ERR_READ = 4,         /* reading failed (EIO, ESTALE) */
    CHEX_ERR_WRITE = 5,        /* writing failed (ENOSPC, EDQUOT, EIO, EROFS, EACCES) */
    CHEX_ERR_LOCKED = 6,       /* another process uses the folder */
    CHEX_ERR_INCOMPATIBLE = 7, /* well formed, but of another version, specification or data set */
    CHEX_ERR_STOPPED = 8,      /* stopped on request; what was done is saved */
    CHEX_ERR_LOST = 9,         /* another process of the same job is lost; what was done is saved */
    CHEX_ERR_DIVERGED = 10,    /* a training run whose loss or gradient is not finite */
    CHEX_ERR_EMPTY = 50,       /* data: a file of no bytes */
    CHEX_ERR_TRUNCATED = 51,   /* data: ends before it should */
    CHEX_ERR_CHECKSUM = 52,    /* data: a stored checksum does not match */
    CHEX_ERR_DAMAGED = 53,     /* data: violates its format in another way */
    CHEX_ERR_UNSUPPORTED = 54, /* data: valid, but of a kind that is not handled */
    CHEX_ERR_LIMIT = 55,       /* data: larger (or smaller) than the limits allow */
    CHEX_ERR_NOT_IMAGE = 56,   /* data: not the kind of file that it should be */
    CHEX_ERR_BUG = 99          /* a broken invariant inside libchex */
};

#define CHEX_ERR_DATA_FIRST 50
#define CHEX_ERR_DATA_LAST  89

/* True for the statuses that speak about one input's data: a program may skip that input. */
CHEX_API bool chex_status_is_data(enum chex_status status);

#define CHEX_ERROR_TEXT 1024

struct chex_error {
    enum chex_status status;
    int cause;                  /* errno of the system call that failed, ENOMEM of an allocation; 0: none did */
    char text[CHEX_ERROR_TEXT]; /* always terminated; long texts are cut */
    uint64_t reserved[4];       /* 0 */
};

/* A short constant name such as "truncated"; "unknown" for a value outside the enum. */
CHEX_API const char *chex_status_name(enum chex_status status);

/* ---- findings ------------------------------------------------------------------------------------------------- */

/* The 14 findings of ChestX-ray14, in the order of CheXNet; label[i] of a record is finding i. */
#define CHEX_FINDINGS 14

/* "Atelectasis" for 0 up to "Hernia" for 13, a constant; NULL for an index of 14 or above. */
CHEX_API const char *chex_finding_name(unsigned index);

/* ---- CRC-32C -------------------------------------------------------------------------------------------------- */

/*
 * CRC-32C (Castagnoli) of size bytes, continuing from crc; start with 0.  chex_crc32c(0, "123456789", 9) is
 * 0xe3069283 (RFC 3720, B.4).  Uses the CPU's instructions where it has them.  Thread-safe.
 */
CHEX_API uint32_t chex_crc32c(uint32_t crc, const void *data, size_t size);

/* The masked form that TFRecord stores: rotr32(crc, 15) + 0xa282ead8. */
CHEX_API uint32_t chex_crc32c_mask(uint32_t crc);

/* ---- data set ------------------------------------------------------------------------------------------------- */

#define CHEX_ID_LENGTH 16 /* characters of a data set id, lower-case hexadecimal */

struct chex_dataset; /* opaque, constant after opening: any number of threads may use one */

struct chex_dataset_info {
    char id[CHEX_ID_LENGTH + 1]; /* names the content: same id, same records in the same slots */
    unsigned format_version;
    uint32_t height, width, channels; /* of every image; uint8, row-major, 0 = black */
    size_t stride;                    /* bytes from one record to the next */
    size_t pixel_offset;              /* bytes from the start of a record to its first pixel, a multiple of 64 */
    uint32_t shard_size;              /* records in a shard (the last of a split has fewer under --tail short) */
    unsigned split_count;
    unsigned shard_count;
    uint64_t image_count;   /* records of weight 1 */
    double pixel_mean;      /* over the pixels of all records of weight 1, scale 0 to 255 */
    double pixel_deviation; /* standard deviation (population) of the same */
    size_t pixel_size;      /* bytes of an image's pixels: height * width * channels */
};

struct chex_split_info {
    const char *name; /* "train", "val", "test", "all" or a name given by the user; lives as long as the data set */
    const char *members_sha256; /* hash of the member list, see chex-shard(5) */
    unsigned first_shard;       /* shards first_shard .. first_shard + shard_count - 1 of the data set */
    unsigned shard_count;
    uint64_t image_count;
    uint64_t patient_count;
    uint64_t positives[CHEX_FINDINGS]; /* images of weight 1 with each finding */
};

struct chex_shard_info {
    const char *name; /* file name within the folder; lives as long as the data set */
    const char *sha256;
    unsigned split;        /* index of its split */
    uint32_t record_count; /* records in the file, with padding records */
    uint32_t image_count;  /* records of weight 1 */
    uint64_t size;         /* bytes: record_count * stride */
};

/*
 * Open the data set in folder `path`: reads and checks manifest.json (bounded in size and depth, file names free of
 * slashes, sums that agree), touches no shard.  *out belongs to the caller: chex_dataset_close().
 * CHEX_ERR_MISSING  no such folder, or no manifest in it (an unfinished conversion)
 * CHEX_ERR_INCOMPATIBLE  a newer format version
 * CHEX_ERR_DAMAGED, CHEX_ERR_LIMIT  not a valid manifest;  CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
CHEX_API enum chex_status chex_dataset_open(const char *path, struct chex_dataset **out, struct chex_error *err);

/* NULL is allowed. Shards must have been closed before. */
CHEX_API void chex_dataset_close(struct chex_dataset *ds);

CHEX_API const struct chex_dataset_info *chex_dataset_info(const struct chex_dataset *ds);

/* NULL for an index out of range. */
CHEX_API const struct chex_split_info *chex_dataset_split(const struct chex_dataset *ds, unsigned split);
CHEX_API const struct chex_shard_info *chex_dataset_shard(const struct chex_dataset *ds, unsigned shard);

/* The index of the split of this name, or -1. */
CHEX_API int chex_dataset_find_split(const struct chex_dataset *ds, const char *name);

/* ---- shard and record ----------------------------------------------------------------------------------------- */

struct chex_shard; /* an open shard file, constant after opening: any number of threads may read from one */

/*
 * Open shard number `shard` of the data set and compare its size with the manifest.  Free with chex_shard_close().
 * CHEX_ERR_USAGE no such number;  CHEX_ERR_MISSING no such file;  CHEX_ERR_TRUNCATED or CHEX_ERR_DAMAGED wrong size.
 */
CHEX_API enum chex_status chex_shard_open(const struct chex_dataset *ds, unsigned shard, struct chex_shard **out,
                                          struct chex_error *err);
CHEX_API void chex_shard_close(struct chex_shard *shard); /* NULL is allowed */

/*
 * Read records first .. first + count - 1 as they are into buffer, which holds at least count * stride bytes.
 * One positioned read, no seek: thread-safe on one shard.  Nothing in them is checked here: chex_record_view().
 * CHEX_ERR_USAGE a range outside the shard;  CHEX_ERR_TRUNCATED the file became shorter;  CHEX_ERR_READ.
 */
CHEX_API enum chex_status chex_shard_read(const struct chex_shard *shard, uint32_t first, uint32_t count, void *buffer,
                                          struct chex_error *err);

struct chex_bytes {
    const char *data; /* not terminated */
    size_t size;
};

/* What is in a record.  Pointers point into the record's buffer and are valid as long as it is. */
struct chex_record {
    const uint8_t *pixels; /* height * width * channels bytes */
    uint32_t height, width, channels;
    uint8_t label[CHEX_FINDINGS]; /* 0 or 1 */
    uint8_t weight;         /* 1 an image, 0 padding: a copy of another image, to be left out of loss and metric */
    float age;              /* years, NaN = unknown */
    char sex;               /* 'M', 'F' or 'U' */
    struct chex_bytes view; /* "PA", "AP", "U" */
    struct chex_bytes name; /* file name of the image */
    struct chex_bytes patient;
    char dataset_id[CHEX_ID_LENGTH + 1]; /* of the data set that the record was made for */
    uint32_t shard;                      /* its shard there, counted over all splits */
    uint32_t index;                      /* its place in that shard */
    uint64_t reserved[4];                /* 0 */
};

/*
 * Look into one record of `stride` bytes that was read from record `index` of shard `shard`.
 * Checked always: every length against the stride, every byte outside the pixels against the only form that the
 * writer produces, the place that the record says it was written for.  With check_crc also both checksums (about
 * 0.1 ns a byte).  Thread-safe.
 * CHEX_ERR_CHECKSUM a checksum differs;  CHEX_ERR_DAMAGED not the form that the manifest describes;
 * CHEX_ERR_INCOMPATIBLE of another data set or place (a swapped, renamed or duplicated file).
 */
CHEX_API enum chex_status chex_record_view(const struct chex_dataset *ds, unsigned shard, uint32_t index,
                                           const void *record, bool check_crc, struct chex_record *out,
                                           struct chex_error *err);

/* ---- batches -------------------------------------------------------------------------------------------------- */

struct chex_reader; /* opaque; of one thread at a time, and any number of them for a data set */

struct chex_batch {
    size_t capacity;      /* images that the arrays have room for, 1 at least */
    uint8_t *pixels;      /* the caller's: [capacity][height][width][channels]; NULL: not wanted */
    uint8_t *labels;      /* the caller's: [capacity][CHEX_FINDINGS], 0 or 1; NULL: not wanted */
    size_t count;         /* set by chex_reader_next(): images in the arrays */
    uint64_t reserved[4]; /* 0 */
};

/*
 * Read the images of the split of this name from its beginning.  The data set must stay open; chex_reader_close().
 * CHEX_ERR_USAGE no such split;  CHEX_ERR_MEMORY
 */
CHEX_API enum chex_status chex_reader_open(const struct chex_dataset *ds, const char *split, struct chex_reader **out,
                                           struct chex_error *err);

/*
 * The next images, in the order of the shards, padding records left out: batch->count is capacity, less at the end of
 * the split, and then 0.  Every record is checked with its checksums, as by chex_record_view().  After an error the
 * count is 0 and the reader stays where it was, so the same call may be made again.
 * The errors of chex_shard_open(), chex_shard_read() and chex_record_view(), with the record's place in the text;
 * CHEX_ERR_USAGE a capacity of 0
 */
CHEX_API enum chex_status chex_reader_next(struct chex_reader *reader, struct chex_batch *batch,
                                           struct chex_error *err);

CHEX_API void chex_reader_close(struct chex_reader *reader); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
