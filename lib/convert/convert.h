/*
 * convert.h - converts a label file and images to a data set; implements chex-convert(1) without output to the terminal
 *
 * The images are files, or records of another data set (stored_scan.h), which then also has the rows of the label file.
 *
 *     convert_prepare()   reads the labels and lists, searches the images and makes the plan; writes nothing
 *     convert_run()       takes the lock, decodes images into their slots and publishes the data set
 *
 * Between the two calls the caller shows the plan, or stops (--dry-run).
 *
 * The content of an archive is known only after reading it.  So if the inputs contain archives, the plan includes every
 * image that is not in a folder.  Missing images show at the end of the run, and then nothing is published.  With
 * allow_missing the plan depends on the missing images, so convert_prepare() reads all archives once, without decoding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_H
#define CHEX_LIB_CONVERT_H

#include "dataset/where.h"
#include "input/archive.h"
#include "input/image_reader.h"
#include "input/input_scan.h"
#include "input/unlabeled.h"
#include "labels/label_file.h"
#include "labels/name_list.h"
#include "plan/coverage.h"
#include "plan/plan.h"
#include "store/store.h"

#include <stdatomic.h>

struct collective;

/* All image files of ChestX-ray14 are smaller than 1 MiB.  A radiograph of 64 megapixels with 16 bits also fits. */
#define CONVERT_MAX_FILE (256u << 20)

struct convert_options {
    const char *const *inputs;
    size_t input_count;
    const char *const *id_prefix; /* [id_prefix_count] of each data set, before names and patients */
    size_t id_prefix_count;
    bool same_patients;                  /* a patient may be in several of the data sets that are inputs */
    const char *labels;                  /* path of the label file; NULL: the rows of the data sets that are inputs */
    const struct label_kind *label_kind; /* NULL: the header decides; not owned */
    const char *lists;                   /* folder of the official lists; NULL: the folder of the label file */
    const char *exclude;                 /* path of a list of names to exclude, or NULL */
    const char *views;                   /* "PA", "AP", "PA,AP"; NULL: all */
    struct where where;                  /* only rows that match; no text: all */
    const char *out;
    struct findings findings; /* the list; count 0: that of the label file */
    enum unknown_policy unknown;
    struct spec spec;
    bool size_given, resize_given; /* if false: for data sets, their size and method; for image files, those of spec */
    /* If false: official if both lists are found, otherwise that of data sets, otherwise patient:70,10,20. */
    bool split_given;
    bool empty_is_no_finding;
    bool allow_missing;
    bool allow_leak;               /* a patient may be in two splits, see split.h */
    bool plan_only;                /* missing images are not an error of convert_prepare(), and it reads no archive */
    uint64_t allow_rejects;        /* up to this number of rejects is not a data error (exit code 0) ... */
    unsigned allow_reject_percent; /* ... and neither is this percentage of the images */
    bool strict;                   /* the first reject ends the run */
    double cross_check;            /* per cent of the images, see cross_check.h; 0: none */
    bool force, repair, break_lock, verify;
    bool index_dali; /* write a DALI index next to each shard */
    unsigned threads;
    uint64_t max_memory;     /* bytes for an archive's decoder, see archive.h; 0: the default */
    const atomic_bool *stop; /* or NULL; ends convert_prepare() with CHEX_ERR_STOPPED */
    struct part part;        /* --part: the shards of this process; only a whole data set is published */
};

struct convert_counts {
    uint64_t images;                      /* images of the plan */
    uint64_t converted;                   /* images now in a slot with weight 1 */
    uint64_t resumed;                     /* images that an earlier run had put into a slot or a finished shard */
    uint64_t rejects;                     /* rejected images */
    uint64_t reject_of[CHEX_ERR_BUG + 1]; /* rejects by status */
    /*
     * Properties of the images decoded in this run.  The ranks add up all members from here to the end: uint64_t only.
     */
    uint64_t rgba, colour, composited, jpeg, deep, palette, interlaced, animated, warned, mismatched;
    uint64_t cross_checked;    /* images that libpng decoded again, to the same pixels */
    uint64_t shards_rewritten; /* because of a write error */
    uint64_t shards_other;     /* shards written again with different content: the images have changed */
};

struct convert {
    const struct convert_options *options; /* not owned */
    struct labels labels;
    struct names exclude;
    struct source source;
    struct preflight preflight;
    struct slot_plan plan;
    struct manifest_source *stored; /* [source.dataset_count] the data sets that are inputs, for the manifest */
    struct split_given given;       /* the splits of the data sets */
    bool *skip;                     /* [labels.count] */
    bool *missing;              /* [labels.count] the image is in no input; false if it may still be in an archive */
    bool inputs_read;           /* all inputs were read, with the archives: `missing` is final for planned images */
    size_t excluded, filtered;  /* entries excluded by --exclude, by --view */
    size_t unselected;          /* entries that do not match --where */
    size_t unmatched;           /* names of --exclude without a row */
    struct unlabeled unlabeled; /* images without a row, sorted; complete after the run, which adds those in archives */
    /*
     * With allow_missing and missing images: the id of the data set that contains all images.  An earlier run without
     * allow_missing may have begun that data set, because it expected the images in archives.  Otherwise "".
     */
    char whole_id[CHEX_ID_LENGTH + 1];
    bool synthetic;      /* SYNTHETIC_NOTE is next to the label file or an input, or in an input */
    bool official_found; /* the official split was chosen because both lists exist */

    /* The processes that share the work, with watch->stop as their `stop`; NULL: only this process.  Not owned */
    struct collective *ranks;
    struct archive_content *archive; /* [source.archive_count] content of the archives, set by the run */
    locale_t utf8;                   /* for names in archives; 0: the system has no such locale */
    size_t archives_damaged;
    uint64_t repeated; /* duplicates with the same content, skipped in folders and archives */

    struct convert_counts counts;
    struct store_state resumed;
    bool running;     /* convert_run() was called */
    bool replaced;    /* the run removed the unfinished data set whole_id */
    uint64_t retried; /* rejects that are readable now, so the run opened the complete data set again */
    unsigned threads_used;
    double seconds;
};

/*
 * Do everything before the first decode.  Zero *c before the call; free it with convert_release(), also after a
 * failure.  Statuses: those of labels_read(), names_read(), source_scan(), split_assign() and plan_make(), and
 * CHEX_ERR_MISSING  images are missing without options->allow_missing (c->preflight has the table)
 * CHEX_ERR_DAMAGED  with allow_missing: an archive is damaged, so its content is unknown
 * CHEX_ERR_STOPPED  options->stop was set; nothing was written
 */
enum chex_status convert_prepare(const struct convert_options *options, struct convert *c, struct chex_error *err);

/*
 * Check that convert_run() can write its output; writes nothing.
 * CHEX_ERR_WRITE         not enough free space, or not a folder
 * CHEX_ERR_INCOMPATIBLE  the folder contains another data set
 */
enum chex_status convert_check_output(const struct convert *c, struct chex_error *err);

/*
 * List the files in the output folder that chex-convert did not write.  *images: the folder also contains input images.
 */
void convert_list_foreign(const struct convert *c, struct folder_names *out, bool *images);

/* Returns the free space, in bytes, of the file system of the folder, which need not exist yet; 0: unknown. */
uint64_t convert_free_space(const char *path);

/*
 * Returns whether a loose image could not be read although the file itself may be good: a system call failed, or
 * permission was denied.  Such an image is not a reject.
 */
bool convert_is_read_error(const struct chex_error *why);

/*
 * Callbacks of a run.  done: images in their slots, with those of earlier runs.  Every rank calls reject and unread for
 * its own images.  Only rank 0 calls the others, and tick only for its own part.
 */
struct convert_watch {
    /*
     * Called once, before the first image.  c->resumed has the state of all parts at the start, c->counts that of this
     * process's part.
     */
    void (*begin)(void *context, const struct convert *c);
    void (*tick)(void *context, const struct convert *c, uint64_t done, uint64_t rejects);
    /* An image was rejected.  Any thread may call it, but only one at a time. */
    void (*reject)(void *context, const char *name, const struct chex_error *why);
    /* An image with convert_is_read_error(): it is not a reject, and the run will fail.  Threads as for reject. */
    void (*unread)(void *context, const char *name, const struct chex_error *why);
    /* A damaged archive was read, to its end or as far as possible.  Threads as for reject. */
    void (*damaged)(void *context, const char *path, const struct archive_fault *fault);
    /* A shard was written again with different content.  Called by the thread that called convert_run(). */
    void (*differs)(void *context, const char *shard);
    void *context;
    const atomic_bool *stop;
};

/*
 * Check that all ranks have the same options and the same plan.  Every rank calls this after convert_prepare() and
 * passes its status, also a failure.  All ranks get the same result.
 * purpose  names the run in the comparison, such as "conversion" or "dry run"
 * CHEX_ERR_USAGE  "rank 3 n07 does not do the same as rank 0: ..."; or the first failure of convert_prepare()
 */
enum chex_status convert_compare(const struct convert *c, const char *purpose, enum chex_status status,
                                 struct chex_error *err);

/* The list of missing images in the output folder, written if a run ends because of them. */
#define CONVERT_MISSING_NAME STORE_MISSING_NAME

/*
 * Convert.  Every rank of c->ranks calls this after convert_compare(), and all get the same result.  After CHEX_OK the
 * data set is complete, even if images were rejected; c->counts has the number, on rank 0 for all ranks.
 * CHEX_ERR_LOST     a rank was lost; a rerun resumes
 * CHEX_ERR_STOPPED  watch->stop was set; a rerun resumes
 * CHEX_ERR_DAMAGED  too many rejects (more than 1 %, more than 20, and more than allowed), or the first reject with
 *                   strict; or a split has no usable image; or an archive is damaged and more images are missing than
 *                   may be rejected.  A rerun resumes.
 * CHEX_ERR_MISSING  all archives were read and images are missing: c->preflight has the table, CONVERT_MISSING_NAME the
 *                   list.  A rerun with more inputs resumes.
 * CHEX_ERR_READ     an image or archive is unreadable, also after the retries of file.h.  If at most 20 loose images
 *                   are unreadable, all others are in their slots.  A rerun resumes.
 * CHEX_ERR_USAGE    two images have the same name and different content
 * CHEX_ERR_LOCKED, CHEX_ERR_INCOMPATIBLE, CHEX_ERR_WRITE (with the needed and the free space), CHEX_ERR_MEMORY
 */
enum chex_status convert_run(struct convert *c, const struct convert_watch *watch, struct chex_error *err);

/*
 * Measure the stages of a conversion with options->threads threads, after convert_prepare(): read and decode `images`
 * images, make their records, and drop them.  Nothing is written, and images that cannot be used are only counted.  The
 * threads stop when so many images are done; some more may be read.
 * CHEX_ERR_MISSING  the inputs have no image of the plan
 * CHEX_ERR_STOPPED, CHEX_ERR_MEMORY, statuses of image_reader_run()
 */
enum profile_stage {
    PROFILE_READ,     /* files and archives into memory */
    PROFILE_INFLATE,  /* decoding without the next stage; all of the decoding of JPEGs and unusual PNGs */
    PROFILE_UNFILTER, /* undoing the row filters of PNGs */
    PROFILE_RESIZE,
    PROFILE_RECORD, /* fields and checksums of the record, SHA-256 of its shard; without writing */
    PROFILE_STAGES
};
struct convert_profile {
    unsigned threads;
    uint64_t images, rejects, bytes; /* images done, also rejects; bytes of their files */
    double seconds, cpu;             /* CPU seconds of the process */
    double stage[PROFILE_STAGES];    /* CPU seconds */
    uint64_t disk_bytes;             /* read from a disk, as the kernel counts them (disk_reads.h) */
    bool disk_known;
};
enum chex_status convert_profile(struct convert *c, size_t images, const struct convert_watch *watch,
                                 struct convert_profile *out, struct chex_error *err);
void convert_release(struct convert *c);

#endif
