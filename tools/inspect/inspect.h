/*
 * inspect.h - what the parts of chex-inspect share: its options, the thing that is looked at, the output
 *
 * Each action is one file, inspect_ACTION.c.  It is called for each PATH, prints its findings on stdout (or adds one
 * object to the --json document) and returns an exit code; the worst one is the program's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_H
#define CHEX_TOOLS_INSPECT_H

#include "base/json.h"
#include "base/progress.h"
#include "common/printable.h"
#include "common/progress_line.h"
#include "inspect/inspect_options.h"

struct inspect {
    const struct cli_program *program;
    const struct inspect_options *options;
    const struct cli_common *common;
    struct progress_line line;
    struct color color; /* of stdout */
    bool have_result;   /* something was written already */
    bool output_failed; /* a result is lacking */
};

/* ---- what is looked at (inspect_target.c) ---------------------------------------------------------------------- */

enum target_kind {
    TARGET_DATASET,
    TARGET_SHARD,      /* one shard, of a data set whose manifest lies beside it */
    TARGET_FILE,       /* a TFRecord file without one */
    TARGET_UNFINISHED, /* a folder with shards or a journal, but without a manifest */
    TARGET_CHECKPOINT, /* a file in safetensors format, or the folder of a run that holds one */
    TARGET_EVENTS      /* an event file of TensorBoard */
};

struct target {
    const char *path;
    enum target_kind kind;
    struct chex_dataset *dataset; /* of TARGET_DATASET and TARGET_SHARD */
    unsigned first, count;        /* shards of the data set that are meant */
    char unfinished[256];         /* what is known about TARGET_UNFINISHED, */
    char spec[512];               /* its specification, or "", */
    const char *next;             /* and what to do */
    char *file;                   /* of TARGET_CHECKPOINT: the file that is meant; owned */
    char passed_over[512];        /* why it is not the newest of the run, or "" */
};

/*
 * Tell by content what path is.  target_close() frees it, also after a failure.
 * CHEX_ERR_MISSING  no such file, not a regular file, or a file or folder that is nothing of ours
 * CHEX_ERR_INCOMPATIBLE  a manifest of a newer format, or one that is hostile or damaged
 */
enum chex_status target_open(const char *path, struct target *out, struct chex_error *err);
void target_close(struct target *t);
/*
 * Whether the file is TARGET_CHECKPOINT or TARGET_EVENTS (inspect_other.c), by its first bytes; fills in kind.
 */
bool target_is_other(int fd, uint64_t size, struct target *out);
/* Keep only the shards of the split of this name.  CHEX_ERR_USAGE where there is none: the text lists them. */
enum chex_status target_select(struct target *t, const char *split, struct chex_error *err);

/* ---- the records of a target (inspect_walk.c) ------------------------------------------------------------------ */

struct walk_record {
    unsigned shard; /* of the data set */
    uint32_t index;
    const char *split;
    const struct record_values *values;
    const uint8_t *pixels; /* NULL where nothing about them was asked for */
    const uint8_t *hash;   /* of the pixels, see walk_depth; NULL where it was not asked for */
    void *worker;          /* what worker_new made for this thread */
    uint64_t number;       /* among all records of the data set */
};

/* One record that is in its place; its strings and pixels are valid during the call.  Anything but CHEX_OK ends it. */
typedef enum chex_status walk_fn(void *context, const struct walk_record *record, struct chex_error *err);

/*
 * A whole shard (index -1), or `count` records of a shard, the first of them with this index, cannot be used.  The walk
 * prints a line about it.
 */
typedef void walk_fault_fn(void *context, const char *shard, int64_t index, uint64_t count,
                           const struct chex_error *why);

/*
 * WALK_TEXTS reads all but the pixels; all others read whole records and check both checksums.
 * WALK_XXH128  besides, XXH3 of 128 bits: tells whether images are equal, but not whether they are forged
 * WALK_SHA256  besides, SHA-256, DIGEST_SIZE bytes
 */
enum walk_depth { WALK_TEXTS, WALK_PIXELS, WALK_XXH128, WALK_SHA256 };
#define WALK_HASH_HEAD 16 /* bytes that every hash has at least */

struct walk {
    struct inspect *in;
    const struct target *target;
    const char *progress; /* NULL: no progress line; else what it names: "A", "" for the only thing */
    enum walk_depth depth;
    walk_fn *record;
    walk_fault_fn *fault; /* or NULL */
    void *context;
    unsigned threads; /* 1: in order.  More: `record` is called by several threads, in any order of shards */
    /* What a thread keeps from record to record, both NULL where there is nothing; worker_free may add it to a sum. */
    void *(*worker_new)(void *context);
    void (*worker_free)(void *context, void *worker);

    uint64_t faults;  /* out */
    bool read_failed; /* out: a shard could not be read, though it is there */
};

/* A shard or a record that cannot be used is a fault: a line on stderr, and the walk continues. */
enum chex_status walk_run(struct walk *w, struct chex_error *err);

/* The exit code for a walk that ended well; where there were faults a line on stderr says how to know more. */
int inspect_walk_code(const struct walk *w);

/* Records, padding too, and bytes of all shards. */
uint64_t dataset_records(const struct chex_dataset *ds);
uint64_t dataset_bytes(const struct chex_dataset *ds);

/* ---- one record (inspect_record.c) ----------------------------------------------------------------------------- */

/* Find WHICH, a NAME or SHARD:INDEX.  CHEX_ERR_MISSING where there is none. */
enum chex_status inspect_find_record(struct inspect *in, const struct target *t, const char *which, unsigned *shard,
                                     uint32_t *index, struct chex_error *err);
/*
 * Read a record into b and look into it; check: both checksums too.  CHEX_ERR_DAMAGED where it has a fault.
 */
enum chex_status inspect_read_record(const struct chex_dataset *ds, unsigned shard, uint32_t index, struct buffer *b,
                                     bool check, struct chex_record *out, struct chex_error *err);

/* ---- output (inspect_output.c) --------------------------------------------------------------------------------- */

/* The worse one of two exit codes. */
int inspect_worse(int a, int b);

/*
 * "chex-inspect: TEXT" on stderr, with cli_suggest_path(path), and an object with the error in the --json document.
 * Returns the exit code.
 */
int inspect_fail(struct inspect *in, const char *path, struct chex_error *err);
/* CHEX_ERR_MISSING: no image is in the selection of --where and --split. */
enum chex_status inspect_no_image(const struct target *t, struct chex_error *err);

/* A text of a record for a terminal or a table: bytes outside printable ASCII as \xNN. */
#define INSPECT_TEXT (4 * RECORD_MAX_TEXT + 1)
char *inspect_text(struct chex_bytes text, char out[INSPECT_TEXT]);
/* "Atelectasis|Effusion" or "No Finding". */
#define INSPECT_LABELS_TEXT 256
char *inspect_labels_text(uint16_t findings, char out[INSPECT_LABELS_TEXT]);

/* The labels of a record as a set. */
uint16_t inspect_findings(const struct chex_record *r);
/* The same for JSON: a list of names, empty for No Finding. */
json_t *inspect_json_labels(uint16_t findings);

/* Write a file whole or not at all, under its name; a folder that is not there is CHEX_ERR_WRITE. */
enum chex_status inspect_put_file(const char *path, const struct buffer *data, struct chex_error *err);

/*
 * The text of a count, "65984", as people read it.  A text that is no count, or is too long for one, stays unchanged.
 */
const char *inspect_count(const char *text, char out[PROGRESS_TEXT]);

struct chex_bytes inspect_bytes(const char *text);
/* The first lines about a file: what it is, and its fault or NULL.  Returns the exit code. */
int inspect_print_head(const struct inspect *in, const struct target *t, const char *what, const char *fault);
/* The same as JSON; kind is the name of the details too, which are taken. */
void inspect_json_file(struct inspect *in, const struct target *t, const char *kind, const char *what,
                       const char *fault, json_t *details);
/* Append or set, and take the value; after a failure (no memory) the container is NULL and stays so. */
void inspect_json_push(json_t **list, json_t *value);
void inspect_json_set(json_t **object, const char *key, json_t *value);

/* The --json document: a head, one object for each path, a foot. */
void inspect_json_begin(struct inspect *in);
/* Takes the result; NULL means out of memory, the exit code is then EXIT_OUTPUT. */
void inspect_json_add(struct inspect *in, json_t *result);
void inspect_json_next(struct inspect *in); /* the comma, where one is due: for what is written in pieces */
/* Returns the exit code: code, or EXIT_OUTPUT where a result is lacking. */
int inspect_json_end(struct inspect *in, int code);

/* ---- a result in the format that was asked for ----------------------------------------------------------------- */

typedef void rows_fn(struct table_writer *t, void *result);

struct inspect_result {
    const struct table_column *column;
    rows_fn *rows;
    json_t *(*document)(void *result); /* of --json */
    void (*print)(void *result);       /* text */
};

/* A name out of a file: unchanged in a list of the document, elsewhere with control characters escaped into out. */
struct cell inspect_name(const struct table_writer *t, const char *name, char *out, size_t size);

enum table_format inspect_format(const struct inspect *in);
void inspect_print_result(struct inspect *in, const struct inspect_result *how, void *result);
/* The rows as a list, for the document. */
json_t *inspect_rows_json(const struct table_column *column, rows_fn *rows, void *result);

/* ---- actions --------------------------------------------------------------------------------------------------- */

int inspect_verify(struct inspect *in, struct target *t);       /* INSPECT_DESCRIBE too */
int inspect_events(struct inspect *in, const struct target *t); /* the same for what the trainer wrote */
int inspect_checkpoint(struct inspect *in, const struct target *t);
int inspect_tensors(struct inspect *in, const struct target *t); /* --list of a checkpoint */
int inspect_list(struct inspect *in, struct target *t);
int inspect_extract(struct inspect *in, struct target *t);
int inspect_labels(struct inspect *in, struct target *t);
int inspect_split(struct inspect *in, struct target *t);
int inspect_sheet(struct inspect *in, struct target *t);
int inspect_show(struct inspect *in, struct target *t);
int inspect_report(struct inspect *in, struct target *t);
/* These look at other things than one PATH. */
int inspect_diff(struct inspect *in, const char *const path[2]);
int inspect_checkpoint_diff(struct inspect *in, const struct target *a,
                            const struct target *b); /* of two checkpoints */
int inspect_source(struct inspect *in);

/* False, with the reason, where the text of --fields is not a list of fields. */
bool inspect_fields_known(const char *fields, struct chex_error *err);

#endif
