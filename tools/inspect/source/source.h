/*
 * source.h - the result of `source`: checks a download of images and archives before a conversion
 *
 * A source_item describes an image, either a loose file or a member of an archive.  Its place is a folder or an
 * archive.  Threads probe loose files and read archives in parallel; one thread reads a whole archive.  source_sum()
 * then merges their results, so the result depends only on the inputs and their order.
 *
 *     source.c          reads the label file, searches the folders, starts the threads
 *     probe.c    checks the first and the last bytes of one image
 *     archive.c  reads one archive, member by member
 *     sum.c      keeps one item per name, finds missing images, sums per place
 *     report.c   prints the table;  rows.c  writes CSV and JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SOURCE_H
#define CHEX_TOOLS_INSPECT_SOURCE_H

#include "base/clock.h"
#include "base/keyed_hash.h"
#include "base/number_format.h"
#include "base/progress.h"
#include "inspect/inspect.h"
#include "plan/coverage.h"

#include <locale.h>
#include <stdatomic.h>

/* The fault of one image. */
enum source_fault {
    SOURCE_GOOD,
    SOURCE_EMPTY,      /* no bytes */
    SOURCE_SHORT,      /* begins like an image, but lacks the end */
    SOURCE_TYPE,       /* neither PNG nor JPEG */
    SOURCE_UNREADABLE, /* no permission to open it, or a read error */
    SOURCE_LARGE,      /* larger than the limit of chex-convert */
    SOURCE_LOST,       /* in the damaged part of an archive */
    /* faults of other things than one image: */
    SOURCE_CONFLICT, /* two images of one name with different content */
    SOURCE_ARCHIVE,  /* an archive that is damaged, or a file that is no archive */
    SOURCE_MISSING,  /* a row without an image */
    SOURCE_EXTRA,    /* an image without a row: no fault */
    SOURCE_ROW,      /* an unusable row */
    SOURCE_FAULTS
};

struct source_item {
    const char *name;   /* file name without folders */
    const char *detail; /* SOURCE_TYPE: the actual type; SOURCE_UNREADABLE: the reason; may be NULL */
    uint64_t size;      /* bytes */
    uint64_t hash;      /* of size and content; set for members of archives */
    uint32_t place;     /* index into source_check.place */
    uint32_t order;     /* index in input order, over all items */
    uint8_t fault;      /* enum source_fault, up to SOURCE_LOST */
    bool failed;        /* SOURCE_UNREADABLE because of a read error, convert_is_read_error() */
    bool misnamed;      /* a JPEG named .png or vice versa; the content decides */
    bool differs;       /* a member whose content differs from the loose file of that name */
    bool extra;         /* has no row in the label file */
};

/* A folder with images, or an archive. */
struct source_place {
    const char *path;
    bool archive;
    /* counts of the images kept for their names: */
    uint64_t images, brief, damaged, extra, bytes; /* brief: SOURCE_EMPTY and SOURCE_SHORT */
    uint64_t missing;                              /* rows whose image belongs here, see source_sum() */
    /* for archives: */
    uint64_t size;           /* bytes of its file */
    uint64_t others;         /* members that are not images */
    struct chex_error error; /* its first fault; status CHEX_OK: no fault */
    bool opened;
    uint64_t offset;        /* of the damage */
    uint64_t before, after; /* complete images before and after the detected damage */
    const char *last;       /* name of the last image before the damage, or NULL */
};

/* The images of one archive, in archive order. */
struct source_archive {
    struct source_item *item;
    size_t count, capacity;
    struct arena strings;
};

/* A second image with the same name as the kept image, but different content. */
struct source_conflict {
    const char *name;
    uint32_t place, other; /* place of the kept image, place of the second image */
};

#define SOURCE_DETAILS 64

struct source_check {
    struct inspect *in;
    struct labels labels;
    struct source source; /* loose files */
    struct preflight preflight;
    struct chex_error labels_err, source_err; /* status CHEX_OK if the input could be read */

    struct source_place *place; /* [place_count]: the folders of source, then the archives in the order given */
    size_t place_count, archive_count;
    struct source_archive *archive; /* [archive_count] */
    struct source_item *item;       /* [count]; first the loose files; after source_sum() one item per name */
    size_t count;
    struct source_conflict *conflict; /* [count_of[SOURCE_CONFLICT]] */
    bool *missing;                    /* [labels.count] */
    int nih[PREFLIGHT_ARCHIVES];      /* place with the most images of each NIH archive, or -1 */
    uint64_t count_of[SOURCE_FAULTS], misnamed, repeated, bytes;
    uint64_t nowhere;     /* missing rows with an unknown place */
    uint64_t read_errors; /* loose files with a read error */

    /* used while the threads run */
    locale_t utf8;
    pthread_mutex_t lock; /* protects the following members */
    const char *detail[SOURCE_DETAILS];
    size_t details;
    struct arena strings;
    struct hash_key key;                         /* of source_item.hash */
    _Atomic uint64_t images_read, archive_bytes; /* progress in archives */
    struct progress progress;                    /* in bytes of the archive files; protected by the lock */
};

/* ---- probe.c ----------------------------------------------------------------------------------------------------- */

#define SOURCE_HEAD 1024
#define SOURCE_TAIL 64

/*
 * Set fault, misnamed and detail of an item from its first SOURCE_HEAD and last SOURCE_TAIL bytes (fewer for a shorter
 * file).  The caller has set size and name.
 */
void source_probe(struct source_check *c, struct source_item *item, const uint8_t *head, const uint8_t *tail);
/* Probe a loose file.  An unreadable file is a result, not an error.  CHEX_ERR_MEMORY */
enum chex_status source_probe_file(struct source_check *c, struct source_item *item, const char *path,
                                   struct chex_error *err);
/* Returns a description of the first bytes of a file that is not an image; valid as long as c. */
const char *source_type(struct source_check *c, const uint8_t *head, size_t size);

/* ---- archive.c --------------------------------------------------------------------------------------------------- */

/* Buffers of one thread that reads archives. */
struct source_reader {
    struct buffer member, loose;
};

/*
 * Read archive number `index`.  Damage is a result, stored in the archive's place.
 * CHEX_ERR_READ, CHEX_ERR_MISSING   the archive cannot be read, so its content is unknown
 * CHEX_ERR_USAGE                    built without libarchive
 * CHEX_ERR_MEMORY
 */
enum chex_status source_read_archive(struct source_check *c, size_t index, struct source_reader *r,
                                     struct chex_error *err);

/* ---- sum.c ------------------------------------------------------------------------------------------------------- */

/*
 * Merge all items, keep one item per name, find missing images and compute the sums.  Of several images with one name
 * it keeps a loose file if there is one, otherwise the image from the archive given first.  It keeps an image lost in
 * archive damage only if there is no other.  The remaining images are copies or conflicts.
 *
 * If the label file covers the whole NIH data set, a missing image belongs to the place with the most images of its NIH
 * archive.  With any other label file its place is known only if there is just one place.
 */
enum chex_status source_sum(struct source_check *c, struct chex_error *err);

/* ---- output ------------------------------------------------------------------------------------------------------ */

const char *source_fault_name(enum source_fault fault);
bool source_check_good(const struct source_check *c);
/* Formats a struct source_check (rows.c); source_print_table() prints the text. */
extern const struct inspect_result source_result;
void source_print_table(void *result);
/* Format the fault of an archive: "damaged at byte 1,234 of 5,678: ...", or why it cannot be opened. */
#define SOURCE_TEXT (CHEX_ERROR_TEXT + 80)
const char *source_archive_text(const struct source_place *place, char out[SOURCE_TEXT]);

#endif
