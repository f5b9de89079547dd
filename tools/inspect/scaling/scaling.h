/*
 * scaling.h - compares runs of chex-train that differ in the number of ranks: `chex-inspect scaling`
 *
 * One run is the reference: of those with the fewest ranks, the first on the command line.  All figures are those of
 * the last start of a run, from its last line about times in metrics.jsonl, and of its run.json.  A run that is still
 * training, or was killed, has only the times of its last complete epoch; the output says so.
 *
 *     images              of an epoch: of the training split, or of the part that --limit chose
 *     steps of an epoch   images / global batch, rounded up
 *     epochs              steps / steps of an epoch
 *     time of an epoch    T / epochs; T: wall time of the slowest rank, with evaluations and checkpoints
 *     img/s               images / time of an epoch
 *     speed-up            ranks of the reference x time of an epoch of the reference / that of the run
 *     efficiency          speed-up / ranks
 *
 * The factors of POP are those of log/rank_times.h.  Computation scaling compares the useful CPU time of an epoch, so
 * runs of different numbers of epochs can be compared.  An epoch has the same images in strong and in weak scaling.
 *
 *     strong scaling      all runs have the same global batch
 *     weak scaling        all runs have the same batch per rank
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SCALING_H
#define CHEX_TOOLS_INSPECT_SCALING_H

#include "draw/html.h"
#include "inspect/inspect.h"
#include "log/rank_times.h"
#include "math/scale_model.h"

#define SCALING_TEXT     80
#define SCALING_PATH     16384
#define SCALING_SOURCE   48  /* bytes of the name of a source */
#define SCALING_POINTS   256 /* most points of --reference */
#define SCALING_MODELLED 20  /* most points of a prediction */

/* What runs must have in common.  Each is a text. */
enum scaling_fact {
    FACT_MODEL,
    FACT_DATA,
    FACT_SPLIT,
    FACT_CROP,
    FACT_PRECISION,
    FACT_DEVICE,
    FACT_TTA,
    FACT_BOOTSTRAP,
    FACT_LIMIT,
    FACT_EVALUATIONS,
    FACT_SHORT, /* ended by --max-steps */
    FACT_COUNT
};
extern const char *const scaling_fact_name[FACT_COUNT]; /* "model", "data set", ... */

enum scaling_kind { SCALING_ONE, SCALING_STRONG, SCALING_WEAK, SCALING_MIXED };
extern const char *const scaling_kind_name[]; /* "one", "strong", "weak", "mixed" */

struct scaling_run {
    const char *path;
    struct rank_times times; /* of the last start */
    char fact[FACT_COUNT][SCALING_TEXT];
    char short_run[SCALING_TEXT];  /* the options of a short run; "": a whole run */
    char unfinished[SCALING_TEXT]; /* what the times are of, if the run did not end: "epoch 3"; "": it ended */
    char differs[160];             /* names of the facts that differ from the reference; "": none */
    bool cuda;
    unsigned ranks, nodes, node_ranks; /* node_ranks: the most ranks of one host */
    uint64_t images, global_batch, steps;
    unsigned outputs;
    double wire; /* bytes of a gradient in messages */
    double epochs, epoch_seconds, rate;

    /* compared with the reference; NaN if unknown */
    double speedup, efficiency, factor[FACTOR_COUNT], computation, global;
    double modelled; /* time of an epoch, predicted from the base; NaN: none */
};

/* A published point.  NaN: not published. */
struct published {
    const char *study, *source;
    unsigned gpus;
    double rate, parallel_efficiency;
};
extern const struct published published[]; /* made from published.csv; a point without a study ends it */

struct reference_point {
    char source[SCALING_SOURCE];
    unsigned gpus;
    double rate, speedup, efficiency, parallel_efficiency;
};

/* A modelled epoch.  Times are in seconds. */
struct scaling_epoch {
    unsigned ranks, nodes;
    uint64_t global_batch, step_images; /* step_images: of a rank, in a whole step */
    struct scale_step step;             /* of a whole step, without data */
    double data;                        /* of a whole step: loader wait and copy */
    double steps, evaluation, save, rest, meetings, seconds;
};

struct scaling_prediction {
    const struct scaling_run *base; /* NULL: none */
    struct scale_machine machine;
    unsigned ranks;
    struct scaling_epoch point[SCALING_MODELLED]; /* by rising ranks; the last one is the prediction */
    size_t points;
    double factor; /* of the error bar; NaN: no other run */
};

struct scaling {
    struct inspect *in;
    struct scaling_run *run; /* [count], by rising ranks */
    size_t count;
    const struct scaling_run *reference; /* one of them */
    enum scaling_kind kind;
    struct reference_point point[SCALING_POINTS];
    size_t points;
    struct scaling_prediction prediction;
};

/* ---- reading (read.c) -------------------------------------------------------------------------------------------- */

/*
 * Read a run from its folder.  Call scaling_run_release() afterwards, also after a failure.
 * CHEX_ERR_MISSING  no run.json, or no times: the run did not complete an epoch
 * CHEX_ERR_DAMAGED  run.json is invalid;  CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status scaling_run_read(const char *path, struct scaling_run *out, struct chex_error *err);
void scaling_run_release(struct scaling_run *r);

/* ---- published points (reference.c) ------------------------------------------------------------------------------ */

/*
 * Add the points of a study of published.csv, or of a CSV file with its columns; `study` is optional in a file.
 * CHEX_ERR_USAGE: a line of the file, or too many points;  CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status scaling_add_reference(struct scaling *s, const char *which, struct chex_error *err);

/* ---- comparison (compare.c) -------------------------------------------------------------------------------------- */

/* Sort the runs, choose the reference, and compute what the struct above calls compared. */
void scaling_compare(struct scaling *s);
bool scaling_comparable(const struct scaling *s); /* no run differs from the reference */
/* Write what differs between two runs, "model (a, b), precision (fp32, bf16)".  Returns out. */
char *scaling_difference(const struct scaling_run *a, const struct scaling_run *b, char *out, size_t size);

/* ---- prediction (predict.c) -------------------------------------------------------------------------------------- */

/*
 * Predict the epoch of options.predict ranks from the run `base`, one of the paths of the runs.  Call it after
 * scaling_compare().  CHEX_ERR_DAMAGED, CHEX_ERR_USAGE: the model or crop of run.json is none;  CHEX_ERR_MEMORY
 */
enum chex_status scaling_predict(struct scaling *s, const char *base, struct chex_error *err);

/* The prediction itself, its speed-up in ranks of the reference, and its efficiency. */
const struct scaling_epoch *scaling_predicted(const struct scaling *s);
double scaling_speedup(const struct scaling *s, const struct scaling_epoch *e);

/* ---- output (tables.c, plot.c) ----------------------------------------------------------------------------------- */

extern const struct table_column scaling_columns[];
void scaling_rows(struct table_writer *t, void *scaling); /* a row for each run and each published point */
json_t *scaling_document(void *scaling);
void scaling_print(void *scaling);
enum chex_status scaling_plot(const struct scaling *s, struct buffer *out, struct chex_error *err);

#endif
