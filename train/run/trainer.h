/*
 * trainer.h - a training run from data set to judged model: what each rank of a job does
 *
 *     trainer_prepare()    data set, splits, model, backend and memory: all that can be wrong with the options is found
 *                          here, on all ranks alike, and nothing was written
 *     trainer_run()        the folder and its lock; from the checkpoint there, from a file or from random weights;
 *                          epochs of steps; after each the validation split, the best model, a checkpoint; at the end
 *                          the test split with the best model
 *     trainer_evaluate()   in its place: one split with given weights, no step
 *     trainer_estimate()   in its place: how long will it take?
 *
 * Exact: a run that was killed at any instant and resumes writes the same checkpoints and the same best model, byte for
 * byte, as one that was not (same ranks, same machine); so nothing that a step uses may depend on when it was saved.
 *
 * State of a run between two steps is struct checkpoint_state and the arenas of the plan, the same on every rank; rank
 * 0 alone reads and writes RUN.  Events and messages come by the callbacks of struct trainer_watch, on rank 0 alone:
 * this library prints nothing.  A thread of rank 0 writes the checkpoint, and before it best.safetensors and the files
 * of the evaluation, while the next epoch is trained.
 *
 * The step is that of backend.h.  Ranks do not meet for it: what anyone wants, and that a rank has a fault, comes with
 * the result of a step, to all ranks alike.  Only after a fault they meet, and then all have the text of it.
 *
 * One thread uses it, that of comm.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TRAINER_H
#define CHEX_TRAIN_TRAINER_H

#include "backend/step_parts.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/settings.h"
#include "checkpoint/weights.h"
#include "comm/collective.h"
#include "data/loader.h"
#include "eval/predictions.h"
#include "log/rank_times.h"
#include "log/trace.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

enum select_metric { SELECT_AUROC, SELECT_LOSS };
enum positive_weight { POSITIVE_NONE, POSITIVE_AUTO, POSITIVE_GIVEN };
enum cache_kind { CACHE_AUTO, CACHE_DEVICE, CACHE_HOST, CACHE_NONE };

/* The names of these, and of skip_bad, each up to NULL. */
extern const char *const select_names[];
extern const char *const positive_names[];
extern const char *const cache_names[];
extern const char *const bad_record_names[];

struct trainer_options {
    const char *data;   /* folder of the data set */
    const char *run;    /* RUN; NULL with evaluate_only where nothing is to be left */
    const char *model;  /* NULL: TRAINER_MODEL, or with evaluate_only that of the checkpoint */
    const char *init;   /* a safetensors file, or NULL: random weights */
    const char *resume; /* "auto", "none", or the path of a checkpoint or of a folder with one */

    uint32_t epochs;
    unsigned batch;       /* images that a rank takes between two steps, and which are accumulated `accumulate` times */
    unsigned accumulate;  /* at least 1 */
    unsigned micro_batch; /* images computed at once, whose batch statistics are taken; 0: trainer_micro_batch() */

    struct schedule_options schedule; /* .steps is set here */
    struct optimizer_options optimizer;
    double clip;  /* of the gradient's norm; 0: none */
    bool average; /* keep a moving average of the parameters (optimizer.average), and judge that */
    enum loss_kind loss;
    double gamma; /* of the focal loss */
    enum positive_weight positive;
    double positive_weight[CHEX_FINDINGS]; /* POSITIVE_GIVEN */
    unsigned augment;                      /* bits of enum augment */
    unsigned side; /* of the crop, the network's input; 0: 224, or less where the images have less */
    uint64_t seed;

    const char *device; /* "auto" or the name of a backend */
    enum precision precision;
    enum engine engine; /* plan_options.engine */
    bool deterministic; /* plan_options.deterministic */
    bool no_graph;      /* plan_options.no_graph */
    bool pdl;           /* plan_options.pdl */
    enum wire wire;     /* plan_options.wire */
    unsigned threads;   /* at least 1 */

    enum select_metric select;
    uint32_t patience;         /* epochs without improvement after which the run ends; 0: never */
    unsigned keep;             /* checkpoints; 0: all */
    double checkpoint_seconds; /* between two; 0: only after epochs */
    uint64_t checkpoint_steps; /* likewise, in steps; 0: not by steps */
    double time_limit;         /* seconds after which the run saves and stops; 0: none */
    double timeout;            /* of collective.h */

    const char *stage;       /* a folder for a copy of the data set (staging.h), or NULL */
    enum cache_kind cache;   /* where the images of train and val are kept between epochs */
    enum reader_check check; /* of the checksums of records */
    /* Choose the window of a new run by its size and the memory there is; a resumed run has its own. */
    bool choose_window;
    unsigned window; /* else: of order.h; a resumed run must have it */

    bool skip_bad;           /* replace a damaged record by the next good one; else the run ends */
    bool allow_new_data;     /* resume with another data set */
    bool allow_batch_change; /* resume with another global batch or micro-batch */
    bool allow_precision_change;
    bool break_lock;

    enum tta tta;        /* of every evaluation */
    unsigned replicates; /* of the bootstrap */
    bool evaluate_only;  /* trainer_evaluate() will be called */
    bool plan_only;      /* neither will be */
    const char *split;   /* of trainer_evaluate(); NULL: test */
    const char *predict; /* a CSV for the predictions of the last evaluation, or NULL */
};

/* Of all options, by the names that they have on the command line; an offset is that in struct trainer_options. */
extern const struct setting trainer_settings[];

/*
 * Images of a micro-batch where the user does not say: of the divisors of `batch` the largest up to `largest`
 * (device_info.micro_batch: 16 on a CPU), or, where that is below the half of it, the smallest above; 0: `batch`.
 * Never a function of the memory that is there: batch statistics are those of a micro-batch.
 */
unsigned trainer_micro_batch(unsigned batch, unsigned largest);

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

struct trainer;

/* Where the weights came from. */
struct trainer_start {
    const char *from;              /* "step-004800", a file, or "random" */
    bool resumed;                  /* of a run; else weights alone, or random ones */
    bool complete;                 /* of a run that has all its epochs */
    struct weights_report weights; /* of a file */
};

/* Of one step. */
struct trainer_step {
    double loss; /* mean over the images of the global batch */
    double norm, rate;
    uint64_t images;
    double seconds;
    struct step_times times;
};

/* Of an epoch, or of what this process did of it. */
struct trainer_epoch {
    uint32_t epoch; /* complete ones, with this */
    double loss, rate;
    uint64_t images; /* trained on by this process */
    double seconds;
    struct step_times times;
    uint64_t skipped;
    char order[ORDER_HASH];
};

struct trainer_verdict {
    const struct evaluation *evaluation;
    const struct evaluation_source *source; /* for predictions.h and its like; of draw() alone */
    const char *split, *sha256;             /* its name, and the hash of its members */
    bool final;                             /* of the best model, at the end; or that of trainer_evaluate() */
    bool best;                              /* the best so far */
    const char *weights;                    /* "best.safetensors" or another file */
    uint64_t step;
    double epochs;
};

/* What the user, the clock or the interval of saving wants, bits. */
enum trainer_wish { TRAINER_STOP = 1, TRAINER_SAVE = 2 };

struct trainer_watch {
    void *context;
    /* All of these may be NULL.  The first two are set by signal handlers. */
    const atomic_bool *stop; /* save and stop */
    atomic_bool *save;       /* save and go on; taken away when it is done */
    void (*started)(void *context, const struct trainer *t, const struct trainer_start *start);
    void (*stepped)(void *context, const struct trainer *t, const struct trainer_step *step);
    /* Where the time of all ranks went: of an epoch and what follows it; with `all` since trainer_run() began. */
    void (*times)(void *context, const struct trainer *t, const struct rank_times *times, bool all);
    /* For a trace: when a rank did what, since the last such call, by progress_clock() of rank 0.  All ranks set it. */
    void (*spans)(void *context, const struct trainer *t, int rank, const struct trace_span *span, size_t count);
    void (*epoch)(void *context, const struct trainer *t, const struct trainer_epoch *epoch);
    void (*staging)(void *context, const struct trainer *t, uint64_t done, uint64_t of);    /* bytes */
    void (*evaluating)(void *context, const struct trainer *t, uint64_t done, uint64_t of); /* micro-batches */
    void (*evaluated)(void *context, const struct trainer *t, const struct trainer_verdict *verdict);
    /* A picture of the best model so far, or of a final evaluation, into RUN.  By another thread, one at a time. */
    enum chex_status (*draw)(const struct folder *run, const struct trainer_verdict *verdict, struct chex_error *err);
    void (*saved)(void *context, const struct trainer *t, const char *name, double seconds);
    /* One line: what the user should know. */
    void (*note)(void *context, const struct trainer *t, const char *text);
    /* The same, of something that is wrong. */
    void (*warn)(void *context, const struct trainer *t, const char *text);
    /* The same, of a model or checkpoint of RUN that cannot be used any more. */
    void (*lost)(void *context, const struct trainer *t, const char *text);
    void (*on_wait)(void *context);                        /* while waiting for other ranks */
    void (*warn_waiting)(void *context, const char *text); /* collective.h */
};

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/*
 * options and watch outlive the trainer, comm too.  trainer_free() frees *out, also after a failure, where *out is NULL
 * only if memory ran out.  status and *err are an earlier error of this rank: all ranks meet first.  On all ranks
 * alike:
 * CHEX_ERR_USAGE      options that cannot be, a device that is not there, ranks that differ
 * CHEX_ERR_MISSING    no data set, a shard that is not there; CHEX_ERR_TRUNCATED one of another size
 * CHEX_ERR_MEMORY     names the bytes that are needed and those that are there
 */
enum chex_status trainer_prepare(const struct trainer_options *options, const struct trainer_watch *watch,
                                 struct comm *comm, enum chex_status status, struct trainer **out,
                                 struct chex_error *err);

/*
 * CHEX_OK                also if records were skipped, by this process or an earlier one: trainer_result()->skipped
 * CHEX_ERR_STOPPED       on request or by the time limit: all is saved
 * CHEX_ERR_DIVERGED      a loss or a gradient is not finite: the text has step, images, rate, and what to try
 * CHEX_ERR_LOCKED, CHEX_ERR_INCOMPATIBLE (the checkpoint in RUN is of another run, or damaged), CHEX_ERR_MISSING
 * CHEX_ERR_WRITE         the last checkpoint could not be written
 * CHEX_ERR_LOST          another rank
 * and those of records, without skip_bad
 */
enum chex_status trainer_run(struct trainer *t, struct chex_error *err);

/*
 * Judge options->init or, without it, the best model of RUN on one split.  Leaves predictions-SPLIT.csv and
 * metrics-SPLIT.json in RUN, where there is one.
 */
enum chex_status trainer_evaluate(struct trainer *t, struct chex_error *err);

/*
 * With plan_only, in the place of both, in this order; nothing is written, in RUN neither.  trainer_look_at_start()
 * finds what a run begins with, and reads it: a checkpoint, options->init or RUN's best model; with the statuses of
 * that run.  trainer_estimate() times a micro-batch of noise, until it has taken half a second or once; all is 0 where
 * the device is imagined.
 * CHEX_ERR_STOPPED
 */
struct trainer_estimate {
    double micro_batch; /* seconds, forward and backward, of the slowest rank; with evaluate_only forward alone */
    double epoch;       /* with its validation, without the sums of the ranks; 0 with evaluate_only */
    double run;         /* the epochs that are left, and the test split; without the bootstrap */
};
enum chex_status trainer_look_at_start(struct trainer *t, struct trainer_start *out, struct chex_error *err);
enum chex_status trainer_estimate(struct trainer *t, struct trainer_estimate *out, struct chex_error *err);

/* The kernels of a step, where the device has a model; else count is 0, as with evaluate_only.  plan_model_free() */
enum chex_status trainer_model(const struct trainer *t, struct plan_model *out, struct chex_error *err);

void trainer_free(struct trainer *t); /* NULL is allowed */

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* How images are read. */
struct trainer_reading {
    unsigned window;    /* of the order; of a resumed run its own, once that is known */
    uint64_t size;      /* bytes of the splits that are read in every epoch */
    bool kept;          /* in memory */
    bool on_device;     /* in that of the device */
    uint64_t available; /* bytes that were free for that; UINT64_MAX: not known */
    int node_ranks;     /* ranks of this machine */
    uint64_t reread;    /* records that were told to have been good when read again */
};

/* The decisions of trainer_prepare(); pointers live as long as the trainer. */
struct trainer_facts {
    const struct chex_dataset *ds;
    int train, validation, test; /* splits; -1: none */
    const struct graph *graph;
    const struct backend *backend;
    const char *device;                  /* what the backend says of it */
    enum precision precision;            /* that was chosen */
    unsigned side, source;               /* of the input, of the images */
    unsigned micro_batch, micro_batches; /* images; of a step on each rank */
    uint64_t global_batch, steps;        /* images; of an epoch */
    struct plan_memory memory;
    uint64_t memory_all, memory_there; /* bytes of this process with host copies; free on the device, 0: not known */
    enum select_metric select;
    struct trainer_reading reading;
    int ranks;
    bool own_clock;     /* of the device: device_info */
    const char *sums;   /* over the ranks: "by NCCL 2.28.9"; "" where there is one way alone */
    const char *engine; /* of convolutions: plan_facts */
    struct collective *collective;
    const struct folder *folder;   /* RUN; NULL before it is open */
    const struct run_value *value; /* all options as they are in effect */
    size_t values;
};
void trainer_facts(const struct trainer *t, struct trainer_facts *out);
const struct trainer_options *trainer_options(const struct trainer *t);
const struct checkpoint_state *trainer_state(const struct trainer *t);
uint64_t trainer_steps_skipped(const struct trainer *t); /* of the run so far, for a gradient that overflowed */

/* The result so far, of this process if nothing else is said. */
struct trainer_result {
    uint64_t steps, images; /* made, trained on */
    double seconds;         /* of training, without evaluations */
    struct step_times times;
    uint64_t skipped;           /* damaged records of the whole run, as often as they were passed over; and of a test */
    uint64_t damaged;           /* those that this process has met, each once; rank 0 */
    bool unsaved;               /* the last attempt to save failed */
    bool early;                 /* ended by options->patience */
    char last[CHECKPOINT_NAME]; /* the newest checkpoint; "" */
};
const struct trainer_result *trainer_result(const struct trainer *t);

/* "whole", or the shards of a window; as --shuffle takes it.  Returns out. */
#define TRAINER_SHUFFLE 16
char *trainer_shuffle(unsigned window, char out[TRAINER_SHUFFLE]);

#define TRAINER_BEST  "best.safetensors"
#define TRAINER_MODEL "densenet121"
#define TRAINER_RATE  1e-3 /* of learning, by default */

#endif
