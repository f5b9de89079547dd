/*
 * inspect.h - shared declarations of chex-inspect: options, the target of an action, output
 *
 * Each command has its own folder, inspect/COMMAND.  The program calls the command for each PATH.  The command prints
 * its result on stdout, or adds one object to the --json document, and returns an exit code.  The program exits with
 * the worst of these codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_H
#define CHEX_TOOLS_INSPECT_H

#include "base/json.h"
#include "base/number_format.h"
#include "base/progress.h"
#include "common/printable.h"
#include "common/progress_line.h"
#include "inspect/options.h"

struct inspect {
    const struct cli_program *program;
    const struct inspect_options *options;
    const struct cli_common *common;
    struct progress_line line;
    struct color color; /* of stdout */
    bool have_result;   /* a result was written already */
    bool output_failed; /* a result could not be written */
};

/* ---- targets (target.c) ------------------------------------------------------------------------------------------ */

enum target_kind {
    TARGET_DATASET,
    TARGET_SHARD,      /* one shard of a data set; its folder has the manifest */
    TARGET_FILE,       /* a TFRecord file without a manifest */
    TARGET_UNFINISHED, /* a folder with shards or a journal, but without a manifest */
    TARGET_CHECKPOINT  /* a file in safetensors format, or the folder of a run that holds one */
};

struct target {
    const char *path;
    enum target_kind kind;
    struct chex_dataset *dataset; /* for TARGET_DATASET and TARGET_SHARD */
    unsigned first, count;        /* the selected shards of the data set */
    char unfinished[256];         /* TARGET_UNFINISHED: a description, */
    char spec[512];               /* its specification, or "", */
    const char *next;             /* and the suggested next step */
    char *file;                   /* TARGET_CHECKPOINT: path of the checkpoint; owned */
    char passed_over[512];        /* why the newest checkpoint was skipped, or "" */
};

/*
 * Open path and determine its kind from its content.  The caller calls target_close(), also after a failure.
 * CHEX_ERR_MISSING  path does not exist, is not a regular file, or has none of the known kinds
 * CHEX_ERR_INCOMPATIBLE  the manifest has a newer format, or is hostile or damaged
 */
enum chex_status target_open(const char *path, struct target *out, struct chex_error *err);
void target_close(struct target *t);
/* Select only the shards of the named split.  CHEX_ERR_USAGE: no such split; the message lists the splits. */
enum chex_status target_select(struct target *t, const char *split, struct chex_error *err);

/* ---- the records of a target (walk.c) ---------------------------------------------------------------------------- */

struct walk_record {
    unsigned shard; /* of the data set */
    uint32_t index;
    const char *split;
    bool selected; /* matches --where */
    const struct record_values *values;
    const uint8_t *pixels; /* NULL for WALK_TEXTS */
    const uint8_t *hash;   /* of the pixels, see walk_depth; NULL if the depth has no hash */
    void *worker;          /* the object that worker_new() returned for this thread */
    uint64_t number;       /* index among all records of the data set */
};

/* Called for each good record; strings and pixels are valid during the call.  An error status ends the walk. */
typedef enum chex_status walk_fn(void *context, const struct walk_record *record, struct chex_error *err);

/*
 * Called for an unusable shard (index -1), or for `count` unusable records of a shard that begin at `index`.  The walk
 * itself prints a line about the fault.
 */
typedef void walk_fault_fn(void *context, const char *shard, int64_t index, uint64_t count,
                           const struct chex_error *why);

/*
 * WALK_TEXTS reads everything except the pixels.  The other depths read whole records and check both checksums.
 * WALK_XXH128  also computes the 128-bit XXH3 of the pixels: detects equal images, but does not resist forgery
 * WALK_SHA256  also computes the SHA-256 of the pixels, DIGEST_SIZE bytes
 */
enum walk_depth { WALK_TEXTS, WALK_PIXELS, WALK_XXH128, WALK_SHA256 };
#define WALK_HASH_HEAD 16 /* bytes; minimum size of a hash */

struct walk {
    struct inspect *in;
    const struct target *target;
    const char *progress; /* label of the progress line: "A", "" for a single target; NULL: no line */
    enum walk_depth depth;
    walk_fn *record;
    walk_fault_fn *fault; /* or NULL */
    void *context;
    unsigned threads; /* 1: records in order.  More: several threads call `record`, in any order of shards */
    /* Create and free the state of a thread, or both NULL.  worker_free() may add the state to a total. */
    void *(*worker_new)(void *context);
    void (*worker_free)(void *context, void *worker);

    uint64_t faults;  /* out */
    bool read_failed; /* out: a shard exists but could not be read */
};

/* Walk all records.  An unusable shard or record is a fault: the walk prints a line on stderr and continues. */
enum chex_status walk_run(struct walk *w, struct chex_error *err);
/* Look up findings and splits of --where in this data set.  CHEX_ERR_USAGE: it lacks one; the message lists them. */
enum chex_status inspect_resolve_where(const struct target *t, struct where *where, struct chex_error *err);

/* Returns the exit code of a completed walk.  After faults, prints a line on stderr that says how to see details. */
int inspect_walk_code(const struct walk *w);

/* Return the number of records (with padding) and of bytes in all shards. */
uint64_t dataset_records(const struct chex_dataset *ds);
uint64_t dataset_bytes(const struct chex_dataset *ds);

/* ---- one record (record.c) --------------------------------------------------------------------------------------- */

/* Find the record WHICH, a NAME or SHARD:INDEX.  CHEX_ERR_MISSING: there is no such record. */
enum chex_status inspect_find_record(struct inspect *in, const struct target *t, const char *which, unsigned *shard,
                                     uint32_t *index, struct chex_error *err);
/*
 * Read a record into b and parse it; with check, also check both checksums.  CHEX_ERR_DAMAGED: the record has a fault.
 */
enum chex_status inspect_read_record(const struct chex_dataset *ds, unsigned shard, uint32_t index, struct buffer *b,
                                     bool check, struct chex_record *out, struct chex_error *err);

/* ---- output (output.c) ------------------------------------------------------------------------------------------- */

/* Returns the worse of two exit codes. */
int inspect_worse(int a, int b);

/*
 * Print "chex-inspect: TEXT" on stderr, with cli_suggest_path(path), and add the error to the --json document.
 * Returns the exit code.
 */
int inspect_fail(struct inspect *in, const char *path, struct chex_error *err);
/* Set the error for a selection (--where, --split) without images; returns CHEX_ERR_MISSING. */
enum chex_status inspect_no_image(const struct target *t, struct chex_error *err);

/* Escape a text of a record for a terminal or a table: bytes outside printable ASCII become \xNN. */
#define INSPECT_TEXT (4 * RECORD_MAX_TEXT + 1)
char *inspect_text(struct chex_bytes text, char out[INSPECT_TEXT]);
/*
 * Format the labels of a record: "Atelectasis|Effusion", or inspect_none_name().  "Edema?" is an unknown label.
 * label is [findings->count], or NULL if it is unreadable.
 */
#define INSPECT_LABELS_TEXT (FINDINGS_MAX * (FINDING_NAME_MAX + 2) + 1)
char *inspect_labels_text(const struct findings *findings, const uint8_t *label, char out[INSPECT_LABELS_TEXT]);
/* Returns the same names as a JSON list, which is empty if no label is 1 or unknown. */
json_t *inspect_json_labels(const struct findings *findings, const uint8_t *label);
/* Returns the text for an image without a finding of the list: "No Finding" for nih14, otherwise "none". */
const char *inspect_none_name(const struct findings *findings);

/* Write a file atomically.  CHEX_ERR_WRITE: also if the folder does not exist. */
enum chex_status inspect_put_file(const char *path, const struct buffer *data, struct chex_error *err);

/*
 * Format the decimal text of a count for people: "65984" becomes "65,984".  Returns any other text unchanged.
 */
const char *inspect_count(const char *text, char out[FORMAT_TEXT]);

struct chex_bytes inspect_bytes(const char *text);
/* Print the first lines about a file: its description and its fault (or NULL).  Returns the exit code. */
int inspect_print_head(const struct inspect *in, const struct target *t, const char *what, const char *fault);
/* Add the description and the fault of a file to the JSON document.  Takes details; its key is kind. */
void inspect_json_file(struct inspect *in, const struct target *t, const char *kind, const char *what,
                       const char *fault, json_t *details);
/* Append or set a value, and take it.  When memory runs out, the container becomes NULL and stays NULL. */
void inspect_json_push(json_t **list, json_t *value);
void inspect_json_set(json_t **object, const char *key, json_t *value);

/* Begin the --json document.  It has a head, one object for each path, and a foot. */
void inspect_json_begin(struct inspect *in);
/* Add a result, and take it.  NULL means out of memory: the program then exits with EXIT_OUTPUT. */
void inspect_json_add(struct inspect *in, json_t *result);
void inspect_json_next(struct inspect *in); /* writes a comma if the next object needs one */
/* End the document.  Returns code, or EXIT_OUTPUT if a result could not be written. */
int inspect_json_end(struct inspect *in, int code);

/* ---- results as text, rows or JSON ------------------------------------------------------------------------------- */

typedef void rows_fn(struct table_writer *t, void *result);

struct inspect_result {
    const struct table_column *column;
    rows_fn *rows;
    json_t *(*document)(void *result); /* for --json */
    void (*print)(void *result);       /* text */
};

/* Returns a name from a file: unchanged for a JSON list, otherwise with control characters escaped (in out). */
struct cell inspect_name(const struct table_writer *t, const char *name, char *out, size_t size);

enum table_format inspect_format(const struct inspect *in);
void inspect_print_result(struct inspect *in, const struct inspect_result *how, void *result);
/* Returns the rows as a JSON list. */
json_t *inspect_rows_json(const struct table_column *column, rows_fn *rows, void *result);

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

int inspect_checkpoint(struct inspect *in, const struct target *t);

#endif
