/*
 * trainer.h - a training run, from the data set to the evaluated model, as executed by each rank of a job
 *
 *     trainer_prepare()    opens data set, splits, model, backend, and plans memory.  It reports all errors in the
 *                          options, on all ranks alike, and writes nothing
 *     trainer_run()        opens and locks the folder; loads its checkpoint, a file, or random weights; trains epochs
 *                          of steps.  After each epoch it evaluates the validation split and saves the best model and
 *                          a checkpoint; at the end it evaluates the test split with the best model
 *     trainer_evaluate()   instead: evaluates one split with given weights, without training
 *     trainer_estimate()   instead: estimates the duration
 *     trainer_check_storage()  instead: reads the images of the epochs, computes nothing and writes nothing
 *
 * A short run has fewer steps than --epochs needs (options->max_steps), or a part of the images (options->limit):
 * checkpoint_state.short_run names its options,
 * and all of its results are marked with them.  Learning rates and orders are those of the whole run.
 *
 * A run that was killed at any time and resumes writes the same checkpoints and the same best model, byte for byte, as
 * an uninterrupted run (same ranks, same machine).  So no input of a step may depend on when the run was saved.
 *
 * Between two steps the state of a run is struct checkpoint_state and the arenas of the plan, equal on all ranks.  Only
 * rank 0 reads and writes RUN.  It reports events and messages through the callbacks of struct trainer_watch; this
 * library prints nothing.  A thread of rank 0 writes best.safetensors, the files of the evaluation and then the
 * checkpoint, while the next epoch is trained.
 *
 * backend.h defines a step.  The ranks do not meet for it: requests and faults of any rank arrive with the result of a
 * step, equal on all ranks.  Only after a fault they meet, and exchange its text.
 *
 * For a single thread, the one that uses comm.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TRAINER_H
#define CHEX_TRAIN_TRAINER_H

#include "backend/step_parts.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/settings.h"
#include "checkpoint/weights.h"
#include "data/fold.h"
#include "data/loader.h"
#include "dataset/certificate.h"
#include "dataset/findings.h"
#include "eval/predictions.h"
#include "log/rank_times.h"
#include "log/trace.h"
#include "math/scale_model.h"
#include "ranks/collective.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

enum select_metric { SELECT_AUROC, SELECT_LOSS };
enum positive_weight { POSITIVE_NONE, POSITIVE_AUTO, POSITIVE_GIVEN };
enum cache_kind { CACHE_AUTO, CACHE_DEVICE, CACHE_HOST, CACHE_NONE };

/* The names of these enums and of skip_bad, NULL-terminated. */
extern const char *const select_names[];
/* The weight of the positive labels of a finding, from a line of a file. */
struct given_weight {
    char name[FINDING_NAME_MAX + 1];
    double weight;
    unsigned long line;
};

/* The learning rate of the run: schedule.base, or with RATE_LINEAR schedule.base times the number of ranks. */
enum rate_scale { RATE_GIVEN, RATE_LINEAR };

extern const char *const rate_scale_names[];
extern const char *const positive_names[];
extern const char *const cache_names[];
extern const char *const bad_record_names[];

struct trainer_options {
    const char *data;   /* folder of the data set */
    const char *run;    /* RUN; NULL with evaluate_only to write no files */
    const char *model;  /* NULL: TRAINER_MODEL, or with evaluate_only the model of the checkpoint */
    const char *init;   /* a safetensors file or one of torch.save(); NULL: random weights */
    const char *resume; /* "auto", "none", or the path of a checkpoint or of a folder with one */

    uint32_t epochs;
    const char *limit;       /* limit.h: train on, and validate with, a part of the patients; NULL: all */
    const char *fold;        /* fold.h: "3/5"; NULL: the splits of the data set, or with evaluate_only of the run */
    uint64_t max_steps;      /* steps in total after which the run saves and ends, without an evaluation; 0: none */
    uint32_t evaluate_every; /* epochs between two validations; the last epoch has one; 0: only the last epoch */
    unsigned batch; /* images of a rank per accumulation; a step accumulates the gradients of `accumulate` x batch */
    unsigned accumulate;  /* at least 1 */
    unsigned micro_batch; /* images computed together, with common batch statistics; 0: trainer_micro_batch() */

    struct schedule_options schedule; /* the trainer sets .steps */
    uint32_t warmup_epochs;           /* 0: schedule.warmup has the steps; otherwise the trainer sets it */
    enum rate_scale rate_scale;
    struct optimizer_options optimizer;
    double clip;  /* of the gradient's norm; 0: none */
    bool average; /* keep and evaluate a moving average of the parameters (optimizer.average) */
    enum loss_kind loss;
    double gamma;     /* of the focal loss */
    double smoothing; /* of the labels in training; evaluations have none */
    enum positive_weight positive;
    const struct given_weight *given; /* [given_count] POSITIVE_GIVEN: one for each finding of the data set */
    size_t given_count;
    const char *given_path; /* their file, for errors */
    unsigned augment;       /* bits of enum augment */
    double rotate;          /* loader_options.rotate, in degrees */
    double brightness;      /* loader_options.brightness */
    double mixup;           /* loader_options.mixup; evaluations have none */
    unsigned side;          /* of the crop, the network's input; 0: 224, or the side of smaller images */
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
    uint32_t patience;         /* epochs without improvement until the run ends; 0: no limit */
    unsigned keep;             /* checkpoints; 0: all */
    double checkpoint_seconds; /* between two checkpoints; 0: only after epochs */
    uint64_t checkpoint_steps; /* steps between two checkpoints; 0: not by steps */
    double time_limit;         /* seconds after which the run saves and stops; 0: none */
    double timeout;            /* of collective.h */

    const char *stage;       /* a folder for a copy of the data set (staging.h), or NULL */
    enum cache_kind cache;   /* memory that keeps the images of train and val between epochs */
    enum reader_check check; /* of the checksums of records */
    /* Choose the window of a new run by data size and available memory; a resumed run keeps its own. */
    bool choose_window;
    unsigned window; /* otherwise the window of order.h; a resumed run must have the same */

    bool skip_bad;           /* replace a damaged record by the next good one; otherwise the run ends */
    bool allow_new_data;     /* resume with another data set */
    bool allow_batch_change; /* resume with another global batch or micro-batch */
    bool allow_precision_change;
    bool break_lock;

    enum tta tta;        /* of every evaluation */
    unsigned replicates; /* of the bootstrap */
    bool evaluate_only;  /* the caller will use trainer_evaluate() */
    bool plan_only;      /* the caller will use neither run nor evaluate */
    bool storage_check;  /* the caller will use trainer_check_storage(); `device` is not used */
    double rate;       /* of the storage check: images per second that the simulated GPU of a rank uses; 0: no limit */
    const char *split; /* of trainer_evaluate(); NULL: test */
    const char *audit; /* RUN of trainer_audit() (audit.h), or NULL */
    uint64_t audit_steps; /* steps that it trains again at most; 0: all */
    const char *predict;  /* a CSV for the predictions of the last evaluation, or NULL */
};

/* All options, with their names on the command line; offsets are relative to struct trainer_options. */
extern const struct setting trainer_settings[];

/*
 * Returns the default size of a micro-batch: the largest divisor of `batch` up to `largest` (device_info.micro_batch:
 * 16 on a CPU).  If that is below half of `largest`, the smallest divisor above.  largest 0: `batch`.  The result does
 * not depend on the available memory, because it determines the batch statistics.
 */
unsigned trainer_micro_batch(unsigned batch, unsigned largest);

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

struct trainer;

/* The origin of the weights. */
struct trainer_start {
    const char *from;              /* "step-004800", a file, or "random" */
    bool resumed;                  /* the state of a run; otherwise only weights, or random ones */
    bool complete;                 /* a run with all its epochs */
    struct weights_report weights; /* if read from a file */
};

/* A completed step. */
struct trainer_step {
    double loss; /* mean over the images of the global batch */
    double norm, rate;
    uint64_t images;
    double seconds;
    struct step_times times;
};

/* A completed epoch, or the part of it that this process trained. */
struct trainer_epoch {
    uint32_t epoch; /* completed epochs, including this one */
    double loss, rate;
    uint64_t images; /* trained on by this process */
    double seconds;
    struct step_times times;
    uint64_t skipped;
    char order[ORDER_HASH];
};

struct trainer_evaluation_result {
    const struct evaluation *evaluation;
    const struct evaluation_source *source; /* for predictions.h and similar; only for draw() */
    const char *split, *sha256;             /* its name, and the hash of its member list */
    bool final;                             /* of the best model at the end, or from trainer_evaluate() */
    bool best;                              /* the best so far */
    const char *weights;                    /* "best.safetensors" or another file */
    uint64_t step;
    double epochs;
};

/* Requests by the user, the clock or the checkpoint interval; bits. */
enum trainer_request { TRAINER_STOP = 1, TRAINER_SAVE = 2 };

struct trainer_watch {
    void *context;
    /* All of these may be NULL.  The first two are set by signal handlers. */
    const atomic_bool *stop; /* save and stop */
    atomic_bool *save;       /* save and continue; cleared afterwards */
    void (*started)(void *context, const struct trainer *t, const struct trainer_start *start);
    void (*stepped)(void *context, const struct trainer *t, const struct trainer_step *step);
    /* Time accounts of all ranks, of an epoch and the work after it; with `all` since trainer_run() began. */
    void (*times)(void *context, const struct trainer *t, const struct rank_times *times, bool all);
    /* Spans of a rank since the last such call, for a trace, by clock_now() of rank 0.  All ranks must set it. */
    void (*spans)(void *context, const struct trainer *t, int rank, const struct trace_span *span, size_t count);
    void (*epoch)(void *context, const struct trainer *t, const struct trainer_epoch *epoch);
    void (*staging)(void *context, const struct trainer *t, uint64_t done, uint64_t of); /* bytes */
    void (*reading)(void *context, const struct trainer *t, uint64_t done,
                    uint64_t of); /* images, of a storage check */
    void (*evaluating)(void *context, const struct trainer *t, uint64_t done, uint64_t of); /* micro-batches */
    void (*evaluated)(void *context, const struct trainer *t, const struct trainer_evaluation_result *result);
    /* Draw the best model so far, or a final evaluation, into RUN.  Called by another thread, one call at a time. */
    enum chex_status (*draw)(const struct folder *run, const struct trainer_evaluation_result *result,
                             struct chex_error *err);
    void (*saved)(void *context, const struct trainer *t, const char *name, double seconds);
    /* One line of information for the user. */
    void (*note)(void *context, const struct trainer *t, const char *text);
    /* A warning, one line. */
    void (*warn)(void *context, const struct trainer *t, const char *text);
    /* A model or checkpoint of RUN is unusable; one line. */
    void (*lost)(void *context, const struct trainer *t, const char *text);
    void (*on_wait)(void *context);                        /* while waiting for other ranks */
    void (*warn_waiting)(void *context, const char *text); /* collective.h */
};

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/*
 * Prepare a run.  options, watch and comm must outlive the trainer.  Release *out with trainer_free(), also after a
 * failure; *out is NULL only if memory ran out.  status and *err are an earlier error of this rank, which all ranks
 * exchange first.  All ranks get the same status:
 * CHEX_ERR_USAGE      invalid options, a missing device, ranks with different settings
 * CHEX_ERR_MISSING    no data set, or a missing shard; CHEX_ERR_TRUNCATED a shard of another size
 * CHEX_ERR_MEMORY     the text has the required and the available bytes
 */
enum chex_status trainer_prepare(const struct trainer_options *options, const struct trainer_watch *watch,
                                 struct comm *comm, enum chex_status status, struct trainer **out,
                                 struct chex_error *err);

/*
 * Train.
 * CHEX_OK                also if records were skipped, by this process or an earlier one: trainer_result()->skipped
 * CHEX_ERR_STOPPED       by request or time limit; everything is saved
 * CHEX_ERR_DIVERGED      a loss or a gradient is not finite: the text has step, images, rate, and advice
 * CHEX_ERR_LOCKED, CHEX_ERR_INCOMPATIBLE (the checkpoint in RUN belongs to another run, or is damaged),
 * CHEX_ERR_MISSING
 * CHEX_ERR_WRITE         the last checkpoint could not be written
 * CHEX_ERR_LOST          another rank
 * Statuses of records, without skip_bad
 */
enum chex_status trainer_run(struct trainer *t, struct chex_error *err);

/*
 * Evaluate options->init, or the best model of RUN, on one split.  Writes predictions-SPLIT.csv and metrics-SPLIT.json
 * to RUN, if there is one.
 */
enum chex_status trainer_evaluate(struct trainer *t, struct chex_error *err);

/*
 * For plan_only, called in this order instead of the functions above; they write nothing, not even to RUN.
 * trainer_probe_start() finds and reads the initial weights: a checkpoint, options->init or RUN's best model; with
 * the statuses of that run.  trainer_estimate() times a micro-batch of noise, repeatedly if it is short.  If the
 * device is imagined, the times come from its cost model; all are 0 if it has none.  CHEX_ERR_STOPPED
 */
struct trainer_estimate {
    double micro_batch; /* seconds, forward and backward, of the slowest rank; with evaluate_only just forward */
    double epoch;       /* with validation, without the sums over the ranks; 0 with evaluate_only */
    double run;         /* the remaining epochs and the test split; without the bootstrap */
    bool modelled;      /* not measured: the device is imagined */
};
enum chex_status trainer_probe_start(struct trainer *t, struct trainer_start *out, struct chex_error *err);
enum chex_status trainer_estimate(struct trainer *t, struct trainer_estimate *out, struct chex_error *err);

/* Model the kernels of a step; count is 0 if the device has no model, and with evaluate_only.  plan_model_free() */
enum chex_status trainer_model(const struct trainer *t, struct plan_model *out, struct chex_error *err);

#define TRAINER_MAX_BATCH 65536 /* of --micro-batch, --batch and --accumulate */

/* Whether the plan fits in a memory of this size, and the largest micro-batch that does; 0: none. */
struct trainer_fit {
    unsigned sold; /* GB of 1e9 bytes */
    bool fits;
    unsigned micro_batch;
};
/* Computes this for each size of memory of an imagined device.  Returns their number; of other devices 0. */
size_t trainer_find_fits(const struct trainer *t, struct trainer_fit out[DEVICE_SIZES]);

/* Steps and epochs on several ranks, modelled from the model of one rank.  Times are in seconds. */
struct trainer_scale {
    unsigned ranks, nodes;
    uint64_t global_batch;
    struct scale_step step;
    double step_efficiency; /* step of one rank / step */
    double epoch;           /* with validation; without reading, checkpoints and the bootstrap */
    double speedup;         /* epoch of one rank / epoch */
};
enum chex_status trainer_scale(const struct trainer *t, const struct plan_model *m, const struct scale_machine *machine,
                               unsigned ranks, struct trainer_scale *out, struct chex_error *err);

/*
 * For storage_check: copy the data set (--stage), and read the images of the epochs in the order and micro-batches of a
 * run, with its threads.  A simulated GPU (pace.h) on each rank uses them at options->rate.  Like the ranks of a run,
 * they wait for each other, but only every few steps.  Writes nothing but that copy.  *out has the sums of all ranks on
 * all ranks; after CHEX_ERR_STOPPED, those until then.  Damaged records: as in trainer_run().
 * CHEX_ERR_STOPPED, CHEX_ERR_LOST, statuses of records and of the copy
 */
struct trainer_storage {
    int ranks;
    uint64_t steps, images; /* images: used by the simulated GPUs */
    uint64_t bytes;         /* of the records read from files, also of images that were not used in the end */
    uint64_t disk_bytes;    /* of those, as the kernel counts them (disk_reads.h) */
    bool disk_known;        /* false: the kernel of a rank does not count them */
    double seconds;         /* of the slowest rank, without the copy */
    double first;           /* of them, until the slowest rank had its first images */
    double cpu;             /* CPU seconds of all ranks, without those of waiting for each other */
    double waited;          /* seconds that the GPUs waited for images, all ranks, without `first` */
    double waited_most;     /* share of its seconds after `first` that a rank waited, of the rank that waited most */
    char order[ORDER_HASH]; /* of the last epoch, equal to that of a run */
    int ranks_waited;       /* ranks that waited for more than TRAINER_STORAGE_WAIT of these seconds */
};
#define TRAINER_STORAGE_WAIT 0.01
enum chex_status trainer_check_storage(struct trainer *t, struct trainer_storage *out, struct chex_error *err);

/* NULL is allowed.  Returns false if the process must end by _exit(), see reduce_ops.free. */
bool trainer_free(struct trainer *t);

/* ---- queries ----------------------------------------------------------------------------------------------------- */

/* How images are read. */
struct trainer_reading {
    unsigned window;    /* of the order; of a resumed run its own, when known */
    unsigned shards;    /* that hold the training images; 0 with evaluate_only */
    uint64_t size;      /* bytes of the splits that every epoch reads */
    bool kept;          /* in memory */
    bool on_device;     /* in device memory */
    uint64_t available; /* bytes available for that; UINT64_MAX: unknown */
    int node_ranks;     /* ranks of this machine */
    uint64_t reread;    /* reported records that were good in the second read */
};

/* The decisions of trainer_prepare(); pointers live as long as the trainer. */
struct trainer_facts {
    const struct chex_dataset *ds;
    const struct certificate *certificate; /* of its split; without a hash if there is none */
    int train, validation, test;           /* splits; -1: none */
    const struct fold *fold;               /* or NULL; ds already describes it */
    const struct graph *graph;
    const struct backend *backend;
    const char *device;                  /* description by the backend */
    enum precision precision;            /* the chosen one */
    unsigned side, source;               /* of the input, of the images */
    unsigned micro_batch, micro_batches; /* images; of a step on each rank */
    uint64_t global_batch, steps;        /* images; of an epoch */
    uint64_t images;                     /* of an epoch */
    struct plan_memory memory;
    uint64_t memory_all, memory_there; /* bytes of this process with host copies; free on the device, 0: unknown */
    enum select_metric select;
    struct trainer_reading reading;
    int ranks;
    bool own_clock;     /* of the device: device_info */
    const char *sums;   /* method of the sums over the ranks: "by NCCL 2.28.9"; "" if there is only one */
    const char *engine; /* of convolutions: plan_facts */
    struct collective *collective;
    const struct folder *folder;   /* RUN; NULL before it is open */
    const struct run_value *value; /* all options with their effective values */
    size_t values;
};
void trainer_facts(const struct trainer *t, struct trainer_facts *out);
const struct trainer_options *trainer_options(const struct trainer *t);
const struct checkpoint_state *trainer_state(const struct trainer *t);
uint64_t trainer_steps_skipped(const struct trainer *t); /* of the run so far: steps whose gradients overflowed */

/* The result so far, of this process unless noted. */
struct trainer_result {
    uint64_t steps, images; /* made, trained on */
    double seconds;         /* of training, without evaluations */
    struct step_times times;
    uint64_t skipped;           /* skips of damaged records, in the whole run, each time; and of a test */
    uint64_t damaged;           /* damaged records found by this process, each once; rank 0 */
    bool unsaved;               /* the last attempt to save failed */
    bool early;                 /* ended by options->patience */
    bool cut;                   /* ended by options->max_steps */
    char last[CHECKPOINT_NAME]; /* the newest checkpoint; "" */
};
const struct trainer_result *trainer_result(const struct trainer *t);

/* Write "whole", or the shards of a window, as for --shuffle; returns out. */
#define TRAINER_SHUFFLE 16
char *trainer_shuffle(unsigned window, char out[TRAINER_SHUFFLE]);

#define TRAINER_BEST  "best.safetensors"
#define TRAINER_MODEL "densenet121"

#endif
