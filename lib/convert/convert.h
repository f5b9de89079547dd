/*
 * convert.h - from label file and images to a data set: what chex-convert(1) does, without printing
 *
 *     convert_prepare()   read labels and lists, search the images, plan; writes nothing
 *     convert_run()       lock, decode, fill the slots, publish
 *
 * In between the caller shows the plan, or stops (--dry-run).
 *
 * The content of an archive is known only after reading it.  So with archives among the inputs the plan has every image
 * that is in no folder, and images that are missing show at the end of the run: nothing is published then.  Under
 * allow_missing the plan depends on the missing images: archives are read once before, without decoding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_H
#define CHEX_LIB_CONVERT_H

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

struct ranks;

/* No image file of the data set is above a megabyte; a radiograph of 64 megapixels in 16 bits stays below this. */
#define CONVERT_MAX_FILE (256u << 20)

struct convert_options {
    const char *const *inputs;
    size_t input_count;
    const char *labels;  /* path */
    const char *lists;   /* folder of the official lists; NULL: beside the label file */
    const char *exclude; /* list of names to leave out, or NULL */
    const char *views;   /* "PA", "AP", "PA,AP"; NULL: all */
    const char *out;
    struct spec spec;
    bool split_given; /* else: official where both lists are found, else patient:70,10,20 */
    bool empty_is_no_finding;
    bool allow_missing;
    bool plan_only;                /* missing images are no error of convert_prepare(); no archive is read for it */
    uint64_t allow_rejects;        /* rejects up to this number are no fault of the data (exit code 0) ... */
    unsigned allow_reject_percent; /* ... or up to this share of the images */
    bool strict;                   /* the first reject ends the run */
    bool force, repair, break_lock, verify;
    bool index_dali; /* write a DALI index beside each shard */
    unsigned threads;
    uint64_t max_memory;     /* of the reader of an archive, see archive.h; 0: its default */
    const atomic_bool *stop; /* or NULL; ends convert_prepare() with CHEX_ERR_STOPPED */
    struct part part;        /* --part: of the shards; nothing is published where it is not the whole */
};

struct convert_counts {
    uint64_t images;                      /* planned */
    uint64_t converted;                   /* of these, now in a slot with weight 1 */
    uint64_t resumed;                     /* of these, found in their slot or in a finished shard */
    uint64_t rejects;                     /* images that could not be used */
    uint64_t reject_of[CHEX_ERR_BUG + 1]; /* by status */
    /* what was noticed while decoding, in this run; uint64_t all of them to the end: ranks add them up */
    uint64_t rgba, colour, composited, jpeg, deep, palette, interlaced, animated, warned, mismatched;
    uint64_t shards_rewritten; /* since the disk failed */
    uint64_t shards_other;     /* made again, and not what they were: the images are others */
};

struct convert {
    const struct convert_options *options; /* not owned */
    struct labels labels;
    struct names exclude;
    struct source source;
    struct preflight preflight;
    struct slot_plan plan;
    bool *skip;                 /* [labels.count] */
    bool *missing;              /* [labels.count] whose image is in no input; false while archives may have it */
    bool inputs_read;           /* archives too: missing is final, of the images that are planned */
    size_t excluded, filtered;  /* entries left out by --exclude, by --view */
    size_t unmatched;           /* names of --exclude that are in no row */
    struct unlabeled unlabeled; /* images without a row, sorted; those in archives once the run has read them */
    /*
     * Under allow_missing, where images are missing: the id of the data set with them.  A run without allow_missing has
     * begun that one if it counted on archives that were not given.  "" else.
     */
    char whole_id[CHEX_ID_LENGTH + 1];
    bool synthetic;      /* LABELS_SYNTHETIC is next to the label file or an input, or in an input */
    bool official_found; /* the split was chosen because both lists lie there */

    struct ranks *ranks;             /* the processes that share the work; NULL: this one alone.  Not owned */
    struct archive_content *archive; /* [source.archive_count], what the run found in them */
    locale_t utf8;                   /* for names in archives; 0: there is none here */
    size_t archives_damaged;
    uint64_t repeated; /* copies with the same content that were left out, in folders and archives */

    struct convert_counts counts;
    struct store_state resumed;
    bool running;     /* convert_run() was called */
    bool replaced;    /* it removed the unfinished data set whole_id */
    uint64_t retried; /* rejects of a data set that was complete, for which it was opened again: they can be read now */
    unsigned threads_used;
    double seconds;
};

/*
 * Everything before the first decode.  Zero-initialise *c; convert_release() frees it, also after a failure.
 * Statuses as of labels_read(), names_read(), source_scan(), split_assign(), plan_make(); besides
 * CHEX_ERR_MISSING  images are missing and not options->allow_missing (c->preflight has the table)
 * CHEX_ERR_DAMAGED  under allow_missing: an archive is damaged, so that nobody knows what it held
 * CHEX_ERR_STOPPED  options->stop was set; nothing was written
 */
enum chex_status convert_prepare(const struct convert_options *options, struct convert *c, struct chex_error *err);

/*
 * Would convert_run() find a place for its output?  Looks, and writes nothing.
 * CHEX_ERR_WRITE too little space, not a folder;  CHEX_ERR_INCOMPATIBLE another data set is there
 */
enum chex_status convert_check_output(const struct convert *c, struct chex_error *err);

/* Files of somebody else in the output folder, by their names; *images: it is also a folder of the inputs. */
void convert_list_foreign(const struct convert *c, struct folder_names *out, bool *images);

/* Free space in the file system of the folder, or where it will be made; 0: unknown. */
uint64_t convert_free_space(const char *path);

/*
 * Why a loose image cannot be read: has a call failed, or was permission denied, so that the file itself may be good?
 * Then the image is no reject.
 */
bool convert_is_read_error(const struct chex_error *why);

/*
 * While it runs; done counts images in their slots, those of earlier runs too.  Of several ranks each calls reject and
 * unread for its own images; rank 0 alone calls the others, tick for its own part.
 */
struct convert_watch {
    /* once, before the first image: c->resumed says what was there, c->counts what of it is this process's part */
    void (*begin)(void *context, const struct convert *c);
    void (*tick)(void *context, const struct convert *c, uint64_t done, uint64_t rejects);
    /* one image that was rejected; called by any thread, one at a time */
    void (*reject)(void *context, const char *name, const struct chex_error *why);
    /* one image for which convert_is_read_error(): it is no reject, and the run will fail; as reject */
    void (*unread)(void *context, const char *name, const struct chex_error *why);
    /* an archive that is damaged, once it has been read; as reject */
    void (*damaged)(void *context, const char *path, const struct archive_fault *fault);
    /* a shard that was made again and is not what it was; by the calling thread */
    void (*differs)(void *context, const char *shard);
    void *context;
    const atomic_bool *stop;
};

/*
 * After convert_prepare(), good or not (status): check that all ranks have the same options and the same plan.  Every
 * rank calls it; the outcome is the same for all.
 * purpose  of the run, such as "conversion" or "dry run"
 * CHEX_ERR_USAGE  "rank 3 n07 does not do the same as rank 0: ..."; or what convert_prepare() said of the first of them
 */
enum chex_status convert_compare(const struct convert *c, const char *purpose, enum chex_status status,
                                 struct chex_error *err);

/* The list of missing images in the folder of the data set, where a run ended because of them. */
#define CONVERT_MISSING_NAME STORE_MISSING_NAME

/*
 * Convert.  Every rank of c->ranks calls it, after convert_compare(), and all return the same.  On CHEX_OK the data
 * set is complete, even if images were rejected: c->counts says so, that of rank 0 for all ranks.
 * CHEX_ERR_LOST     a rank; a rerun resumes
 * CHEX_ERR_STOPPED  watch->stop was set; a rerun resumes
 * CHEX_ERR_DAMAGED  too many rejects (more than 1 %, and more than 20, and more than allowed), or the first one under
 *                   strict; or no image of a split is usable; or an archive is damaged and more images are missing
 *                   than may be rejected.  A rerun resumes.
 * CHEX_ERR_MISSING  all archives were read and images are missing: c->preflight has the table, CONVERT_MISSING_NAME
 *                   the list.  A rerun with more inputs resumes.
 * CHEX_ERR_READ     an image or an archive cannot be read, though it was tried again (file.h).  The other loose images
 *                   are in their slots, if no more than 20 cannot be read.  A rerun resumes.
 * CHEX_ERR_USAGE    two images of one name with different content
 * CHEX_ERR_LOCKED, CHEX_ERR_INCOMPATIBLE, CHEX_ERR_WRITE (with the space needed and free), CHEX_ERR_MEMORY
 */
enum chex_status convert_run(struct convert *c, const struct convert_watch *watch, struct chex_error *err);
void convert_release(struct convert *c);

#endif
