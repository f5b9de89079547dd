/*
 * inspect_source.h - what --source found, between its computation and its words
 *
 * A loose file and a member of an archive become the same thing, a source_item, found in a place: a folder or an
 * archive.  Threads probe loose files and read archives side by side; one thread reads an archive from its beginning to
 * its end.  Their findings are put together afterwards, so the result depends on the inputs and their order alone.
 *
 *     inspect_source.c          reads the label file, searches the folders, starts the threads
 *     inspect_source_probe.c    one image: how it begins and ends
 *     inspect_source_archive.c  one archive, member by member
 *     inspect_source_sum.c      one item for each name, what is missing, sums for each place
 *     inspect_source_report.c   the table;  inspect_source_rows.c  CSV and JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SOURCE_H
#define CHEX_TOOLS_INSPECT_SOURCE_H

#include "base/keyed_hash.h"
#include "base/progress.h"
#include "inspect/inspect.h"
#include "plan/coverage.h"

#include <locale.h>
#include <stdatomic.h>

/* What is wrong with one image, or nothing. */
enum source_fault {
    SOURCE_GOOD,
    SOURCE_EMPTY,      /* no bytes */
    SOURCE_SHORT,      /* begins like an image, but its end is lacking */
    SOURCE_TYPE,       /* no PNG and no JPEG */
    SOURCE_UNREADABLE, /* may not be opened, or reading fails */
    SOURCE_LARGE,      /* more bytes than chex-convert reads */
    SOURCE_LOST,       /* in an archive that is damaged there */
    /* of other things than one image: */
    SOURCE_CONFLICT, /* two images of one name with different content */
    SOURCE_ARCHIVE,  /* an archive that is damaged, or is none */
    SOURCE_MISSING,  /* a row without an image */
    SOURCE_EXTRA,    /* an image without a row: no fault */
    SOURCE_ROW,      /* a row that cannot be used */
    SOURCE_FAULTS
};

struct source_item {
    const char *name;   /* of the file, without folders */
    const char *detail; /* of SOURCE_TYPE: what it is instead; of SOURCE_UNREADABLE: why; may be NULL */
    uint64_t size;      /* bytes */
    uint64_t hash;      /* of size and content, for what was read from an archive */
    uint32_t place;     /* index into source_check.place */
    uint32_t order;     /* of its finding, within all */
    uint8_t fault;      /* enum source_fault, up to SOURCE_LOST */
    bool failed;        /* SOURCE_UNREADABLE because of a read error, convert_is_read_error() */
    bool misnamed;      /* a JPEG named .png or the other way round: it is taken by its content */
    bool differs;       /* in an archive: from the loose file of the same name */
    bool extra;         /* has no row */
};

/* A folder with images in it, or an archive. */
struct source_place {
    const char *path;
    bool archive;
    /* of the images that stand for their name: */
    uint64_t images, brief, damaged, extra, bytes; /* brief: SOURCE_EMPTY and SOURCE_SHORT */
    uint64_t missing;                              /* rows whose image should be here, see source_sum() */
    /* of an archive: */
    uint64_t size;           /* of its file */
    uint64_t others;         /* members that are no images */
    struct chex_error error; /* what was wrong with it first; status CHEX_OK: nothing */
    bool opened;
    uint64_t offset;        /* of the damage */
    uint64_t before, after; /* images that were read whole before and after the damage was noticed */
    const char *last;       /* the name of the last one before, or NULL */
};

/* What one archive held, in its order. */
struct source_archive {
    struct source_item *item;
    size_t count, capacity;
    struct arena strings;
};

/* A second image of a name, with other content than the one that stands for it. */
struct source_conflict {
    const char *name;
    uint32_t place, other; /* of the one that stands for it, of the second */
};

#define SOURCE_DETAILS 64

struct source_check {
    struct inspect *in;
    struct labels labels;
    struct source source; /* loose files */
    struct preflight preflight;
    struct chex_error labels_err, source_err; /* status CHEX_OK where they could be read */

    struct source_place *place; /* [place_count]: the folders of source, then the archives in the order given */
    size_t place_count, archive_count;
    struct source_archive *archive; /* [archive_count] */
    struct source_item *item;       /* [count]; by and by the loose files alone; after source_sum() one for each name */
    size_t count;
    struct source_conflict *conflict; /* [count_of[SOURCE_CONFLICT]] */
    bool *missing;                    /* [labels.count] */
    int nih[PREFLIGHT_ARCHIVES];      /* the place that holds most images of that archive of NIH, or -1 */
    uint64_t count_of[SOURCE_FAULTS], misnamed, repeated, bytes;
    uint64_t nowhere;     /* missing rows whose place is not known */
    uint64_t read_errors; /* loose files with a read error */

    /* while threads are at work */
    locale_t utf8;
    pthread_mutex_t lock; /* for the following */
    const char *detail[SOURCE_DETAILS];
    size_t details;
    struct arena strings;
    struct hash_key key;                         /* of source_item.hash */
    _Atomic uint64_t images_read, archive_bytes; /* of archives, so far */
    struct progress progress;                    /* in bytes of the archives' files; under the lock */
};

/* ---- inspect_source_probe.c ------------------------------------------------------------------------------------ */

#define SOURCE_HEAD 1024
#define SOURCE_TAIL 64

/*
 * Set fault, misnamed and detail of an item (size and name are set) from its first and last bytes: at most SOURCE_HEAD
 * and SOURCE_TAIL, of a shorter file all.
 */
void source_probe(struct source_check *c, struct source_item *item, const uint8_t *head, const uint8_t *tail);
/* The same for a loose file.  CHEX_ERR_MEMORY; a file that cannot be read is a result. */
enum chex_status source_probe_file(struct source_check *c, struct source_item *item, const char *path,
                                   struct chex_error *err);
/* In words what the first bytes look like, if not like an image; valid as long as c. */
const char *source_type(struct source_check *c, const uint8_t *head, size_t size);

/* ---- inspect_source_archive.c ---------------------------------------------------------------------------------- */

/* What a thread that reads archives keeps. */
struct source_reader {
    struct buffer member, loose;
};

/*
 * Read archive number `index`.  Damage is a result, in its place.
 * CHEX_ERR_READ, CHEX_ERR_MISSING   it cannot be read: what it holds is unknown
 * CHEX_ERR_USAGE                    built without libarchive
 * CHEX_ERR_MEMORY
 */
enum chex_status source_read_archive(struct source_check *c, size_t index, struct source_reader *r,
                                     struct chex_error *err);

/* ---- inspect_source_sum.c -------------------------------------------------------------------------------------- */

/*
 * Of several images of one name the first stands for it: a loose file, else that of the archive given first; one that
 * was lost in the damage of its archive only where there is no other.  The others are copies, or conflicts.
 *
 * The image of a missing row should be where most images of the same archive of NIH are, if the label file is that of
 * the whole data set; else it is known only where there is one place.
 */
enum chex_status source_sum(struct source_check *c, struct chex_error *err);

/* ---- words ------------------------------------------------------------------------------------------------------ */

const char *source_fault_name(enum source_fault fault);
bool source_check_good(const struct source_check *c);
/* Its result is a struct source_check (inspect_source_rows.c); source_print_table() is its text. */
extern const struct inspect_result source_result;
void source_print_table(void *result);
/* "damaged at byte 1,234 of 5,678: ...", or why it cannot be opened. */
#define SOURCE_TEXT (CHEX_ERROR_TEXT + 80)
const char *source_archive_text(const struct source_place *place, char out[SOURCE_TEXT]);

#endif
