/*
 * trainer_private.h - shared by the files of the trainer
 *
 *     trainer_dataset.c   the data set and its splits
 *     trainer_prepare.c   converts options to a plan of the backend; device_choice.c opens the device
 *     trainer_settings.c  the table of settings, by name
 *     trainer_preview.c   estimates of a dry run
 *     trainer_storage.c   the storage check
 *     trainer_data.c      copy, cache and reader of the images
 *     trainer_folder.c    RUN and its lock
 *     trainer_weights.c   reads weights from files and broadcasts them from rank 0
 *     trainer_start.c     initial state and weights
 *     trainer_order.c     order of an epoch
 *     trainer_step.c      a step
 *     trainer_times.c     time accounts of the ranks
 *     trainer_ranks.c     compares the devices of the ranks
 *     trainer_snapshot.c  copies the arenas during an evaluation
 *     trainer_gate.c      mean image and components of val
 *     trainer_save.c      checkpoints, the best model and its evaluation
 *     trainer_artifacts.c files of an evaluation
 *     trainer_evaluate.c  evaluations, and their effect on rate, best model and end
 *     trainer.c           the sequence of a run
 *     audit*.c            an audit (audit.h) instead of a run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TRAINER_PRIVATE_H
#define CHEX_TRAIN_TRAINER_PRIVATE_H

#include "run/trainer.h"

#include "comm/clock.h"
#include "data/staging.h"
#include "dataset/manifest.h"
#include "eval/operating.h"
#include "io/lock.h"

#include <pthread.h>

/*
 * ---- the parts of a trainer --------------------------------------------------------------------------------------
 *
 * A function takes only the parts that it needs; one that needs more than four takes the whole trainer.
 * trainer_prepare() fills in job, task and engine, which do not change afterwards.
 */

/* The job: its options and callbacks, and its ranks. */
struct trainer_job {
    const struct trainer_options *o;
    const struct trainer_watch *w;
    const struct trainer *trainer; /* for the callbacks of w */
    struct collective *all;
    struct trainer_times *times; /* of this rank */
    bool is_rank_0;              /* reads and writes RUN, and calls the callbacks */
    double began;                /* clock_now() */

    /* Bootstrap and views of an evaluation: those of o, but an audit sets those of the file that it compares. */
    unsigned replicates;
    uint64_t seed;
    enum tta tta;
};

/* trainer_times.c: the time account of this rank since the last exchange between the ranks. */
struct trainer_times {
    double since, waited;         /* clock_now() and collective_waited() at that time */
    double cpu, waited_cpu;       /* clock_process() and collective_waited_cpu() at that time */
    double covered, covered_wait; /* seconds of steps, evaluations and checkpoints, and of waiting between steps */
    double reduced;               /* seconds of waiting for sums that the current step has reported */
    struct step_times parts;
    uint64_t steps, entries;
    double whole_steps;    /* as steps, but a step with fewer images of this rank counts less */
    struct buffer message; /* its account, and a float per entry */
    bool broken;           /* memory ran out */
    struct buffer spans;   /* struct trace_span, up to spans_most bytes */
    size_t spans_most;
    struct clock_map clock; /* converts times of this rank to the clock of rank 0 */
    struct rank_times all;  /* rank 0: since the start of this process */
};

/* The run that trained given weights, from the state in their file. */
struct weights_origin {
    char data_set[CHEX_ID_LENGTH + 1], fold[FOLD_TEXT]; /* data set "": not known */
};

/* The task: images and network, and the number of images per step. */
struct trainer_task {
    struct chex_dataset *ds;
    int train, validation, test;  /* splits; -1: none */
    char fold_text[FOLD_TEXT];    /* "3/5"; "": none.  With evaluate_only that of the checkpoint, without --fold */
    struct fold *fold;            /* NULL: the splits are those of the data set */
    struct weights_origin origin; /* of --init */
    struct samples samples;       /* of train */
    struct samples evaluated;     /* of validation, if already used */
    char model[32];
    struct graph *graph;
    unsigned side, micro, each;         /* of the input; images per micro-batch; micro-batches per step of this rank */
    uint64_t global, steps;             /* images per step of all ranks; steps per epoch */
    double positive[CHEX_FINDINGS_MAX]; /* weights of the data set's findings */
    enum select_metric select;
    struct certificate certificate; /* of the split; rank 0 */
    bool leaky;                     /* a patient or an image of the data set is in two splits */
    struct settings settings;
};

/* The engine: a device, and its plan of the network. */
struct trainer_engine {
    const struct backend *backend;
    struct device *device;
    struct reduce *reduce;
    struct plan_options options;
    struct plan_facts facts;
    struct plan *plan;   /* NULL in a dry run */
    double modelled;     /* seconds per step of this rank by plan_model(); 0: unknown */
    uint64_t memory_all; /* bytes, with host copies */
};

/* trainer_data.c: the sources of images. */
struct trainer_images {
    struct trainer_reading reading;
    struct chex_dataset *staged; /* a copy; NULL: none */
    struct image_keeper keeper;  /* store of the images kept between epochs */
    struct reader *reader;       /* for all passes */
    struct buffer told;          /* struct sample_place of the reported damaged records; rank 0 */
};

/* trainer_folder.c: RUN. */
struct run_folder {
    struct folder folder;
    struct lock lock;
};

/* trainer_save.c: the best model.  --eval-only: the evaluated model. */
struct trainer_best {
    bool pending; /* in arrays, but not yet in its file */
    struct checkpoint_arrays arrays;
    struct checkpoint_state state;
    struct operating operating; /* rank 0 */
    struct gate gate;           /* rank 0: of the images of val, for every best model of this process */
    bool gate_fitted;           /* gate is set; it may say that there is none */
    char hash[DIGEST_HEX];
};

/* The order of an epoch, and its hash. */
struct pass_order {
    bool there;
    uint32_t epoch;
    uint32_t *sample; /* [task.samples.count] */
    char hash[ORDER_HASH];
};

/* trainer_step.c: the training images of the current epoch. */
struct trainer_pass {
    struct pass_order order, next; /* next: computed during the evaluation */
    struct loader *loader;
};

/* A step that was given to the plan, without a result yet. */
struct step_under_way {
    uint64_t ticket, images;
    double rate, began;
    struct step_times times; /* of the parts that the backend does not measure */
    struct buffer names;     /* of the images, per micro-batch */
};

#define STEPS_UNDER_WAY 2

/* trainer_step.c */
struct stepping {
    struct step_under_way step[STEPS_UNDER_WAY];
    unsigned first, count;
    uint64_t requests;      /* requests to handle when no step is in flight; no step is started before */
    double ended;           /* clock_now() at the end of the last one */
    enum chex_status fault; /* of this rank, until all ranks know it */
    struct chex_error why;
    uint64_t checkpoint_steps; /* of rank 0: options->checkpoint_steps */
    uint64_t last_step;        /* no later step is started; 0: no limit */
};

/* trainer_snapshot.c: a copy of the arenas for a checkpoint; rank 0 keeps it in trainer.host. */
struct snapshot {
    bool taken; /* the copy equals the plan, until trainer_save() */
    bool running;
    pthread_t thread;
    uint32_t sum; /* checksum of the parameters */
    enum chex_status status;
    struct chex_error err;
};

/* The result of an evaluation, written together with the next checkpoint; rank 0. */
struct pending_result {
    bool best;                               /* the model of the checkpoint is the best so far */
    bool there;                              /* the following members are set */
    struct evaluation evaluation;            /* evaluation_release() */
    struct trainer_evaluation_result result; /* of it */
};

#define SAVE_WARNINGS 3

/* trainer_save.c: a checkpoint in progress.  Its arrays are trainer.host. */
struct saving {
    bool begun; /* a save was started, on every rank; for this step: */
    uint64_t step;
    double started_at; /* clock_now() */

    /* Rank 0. */
    struct pending_result due; /* to be written with the next checkpoint */
    bool pending, running;     /* not finished yet; the thread runs */
    atomic_bool done;
    pthread_t thread;
    struct pending_result writing; /* is written first; the thread owns trainer.best meanwhile, too */
    struct checkpoint_state state;
    double since, seconds;
    struct chex_error warning[SAVE_WARNINGS]; /* errors that did not prevent the checkpoint */
    unsigned warnings;
    enum chex_status status; /* after the end, until all ranks know it */
    struct chex_error err;
};

struct trainer {
    struct trainer_job job;
    struct trainer_task task;
    struct trainer_engine engine;
    struct trainer_images images;
    struct run_folder run;
    struct checkpoint_state state; /* between two steps equal on all ranks */
    struct checkpoint_arrays host; /* copies of the arenas in host memory */
    struct trainer_best best;
    struct trainer_pass pass;
    struct stepping stepping;
    struct snapshot snapshot;
    struct saving saving;
    struct trainer_epoch epoch; /* the part of it that this process trained */
    struct trainer_times times;
    struct trainer_result result;
};

/* ---- trainer_common.c -------------------------------------------------------------------------------------------- */

/* Call a callback, if it is set, on rank 0 only; with one line of text. */
void trainer_note(const struct trainer_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trainer_warn(const struct trainer_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trainer_lost(const struct trainer_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trainer_free_arrays(struct checkpoint_arrays *a);
/* Returns whether an epoch is validated; `epochs`: complete ones, including this one. */
bool trainer_is_evaluated(const struct trainer_job *job, uint32_t epochs);
/* Returns whether the run has reached its end. */
bool trainer_is_complete(const struct trainer_job *job, const struct checkpoint_state *state);
/* Returns whether options->max_steps ends the run here.  A complete epoch is validated first, if it is to be. */
bool trainer_is_cut(const struct trainer_job *job, const struct trainer_task *task,
                    const struct checkpoint_state *state);
/*
 * Set state->short_run, from the options and the steps of the whole run.  --max-steps does not shorten a complete run.
 */
void trainer_mark_short(const struct trainer_job *job, uint64_t steps_of_run, struct checkpoint_state *state);

/* List the samples of a split, or of the fold; of train and val only those of options->limit, unless evaluate_only. */
enum chex_status trainer_list_samples(const struct trainer_job *job, const struct trainer_task *task, int split,
                                      struct samples *out, struct chex_error *err);
/* Returns the images of an evaluation; of val those of options->limit, if its samples are already listed. */
uint64_t trainer_evaluated_images(const struct trainer_task *task, int split);

/*
 * Returns the number of steps that the run will have made after its first `epochs` epochs: completed plus remaining
 * ones.  If the batch size or the data changed during the run, this differs from steps per epoch * epochs, with which
 * the cosine schedule would end too early or never.
 */
uint64_t trainer_steps_until(const struct trainer_task *task, const struct checkpoint_state *state, uint64_t epochs);
/* Returns the schedule of the run from its options, the number of ranks and the position of the run. */
struct schedule_options trainer_make_schedule(const struct trainer_job *job, const struct trainer_task *task,
                                              const struct checkpoint_state *state);

/* ---- trainer_dataset.c ------------------------------------------------------------------------------------------- */

/*
 * Open the data set of a run, find its splits or divide them for --fold, and compute what depends only on them.
 * CHEX_ERR_USAGE, CHEX_ERR_INCOMPATIBLE, CHEX_ERR_MISSING, CHEX_ERR_MEMORY; statuses of fold_new()
 */
enum chex_status trainer_open_dataset(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err);

/* ---- trainer_settings.c ------------------------------------------------------------------------------------------ */

/* Fill in the effective settings, after data, backend, model and batches are known.  CHEX_ERR_MEMORY */
enum chex_status trainer_make_settings(const struct trainer_job *job, struct trainer_task *task,
                                       const struct trainer_engine *engine, struct chex_error *err);

/* ---- trainer_folder.c -------------------------------------------------------------------------------------------- */

/* Report files in RUN that no run creates; does nothing if RUN is not open. */
void trainer_note_foreign(const struct trainer_job *job, const struct run_folder *run);
/* Rank 0, dry run: check that a run could use or create RUN.  CHEX_ERR_WRITE, CHEX_ERR_USAGE */
enum chex_status trainer_check_folder(const struct trainer_job *job, struct chex_error *err);
/* Rank 0: open RUN, lock it, and remove temporary files of a killed process. */
enum chex_status trainer_take_folder(const struct trainer_job *job, struct run_folder *run, bool create,
                                     struct chex_error *err);

/* ---- trainer_storage.c ------------------------------------------------------------------------------------------- */

/* The backend of a storage check: it has no plans. */
extern const struct backend trainer_storage_backend;

/* ---- trainer_weights.c ------------------------------------------------------------------------------------------- */

/* Allocate host arrays for the arenas of the plan, those that are NULL.  CHEX_ERR_MEMORY */
enum chex_status trainer_make_host(const struct trainer_task *task, const struct trainer_engine *engine,
                                   struct checkpoint_arrays *host, struct chex_error *err);
/* Also allocate the order of an epoch.  CHEX_ERR_MEMORY */
enum chex_status trainer_make_arrays(const struct trainer_task *task, const struct trainer_engine *engine,
                                     struct checkpoint_arrays *host, struct trainer_pass *pass, struct chex_error *err);
/* Copy state and host arrays of rank 0 into the plan of every rank.  The other ranks free their host arrays. */
enum chex_status trainer_broadcast(struct trainer *t, struct chex_error *err);
/*
 * Convert the error of a file that the user named: a damaged one is not a fault of the data set, so
 * CHEX_ERR_INCOMPATIBLE; a file of another format counts as missing, CHEX_ERR_MISSING.
 */
enum chex_status trainer_not_usable(enum chex_status status, struct chex_error *err);
/*
 * Read weights from any file, also one of torch.save(); other_head as in weights.h.
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_INCOMPATIBLE, CHEX_ERR_MEMORY
 */
enum chex_status trainer_read_model(const struct trainer_task *task, int folder_fd, const char *path, bool other_head,
                                    const struct checkpoint_arrays *to, struct weights_report *report,
                                    struct chex_error *err);
/* Read the operating points of a model from its file; one without them is not an error.  Statuses as above. */
enum chex_status trainer_read_operating(const struct trainer_task *task, int folder_fd, const char *path,
                                        struct operating *out, struct chex_error *err);
/* Read weights from a file of RUN on rank 0, and copy them into the plan of every rank. */
enum chex_status trainer_load_model(struct trainer *t, const char *name, struct chex_error *err);

/* ---- trainer_start.c --------------------------------------------------------------------------------------------- */

/* Rank 0: set state and host arrays to those of a new run: options->init, or random weights. */
enum chex_status trainer_start_fresh(struct trainer *t, struct trainer_start *start, struct chex_error *err);
/* Open RUN, and load weights and state into the plan of every rank. */
enum chex_status trainer_begin(struct trainer *t, struct chex_error *err);
/* As trainer_begin(), for trainer_evaluate(): only weights, and RUN if there is one. */
enum chex_status trainer_begin_evaluation(struct trainer *t, struct chex_error *err);
/* For a dry run: read the initial state and arrays on rank 0; writes nothing.  Statuses as above. */
enum chex_status trainer_look(struct trainer *t, struct trainer_start *start, struct chex_error *err);

/* ---- trainer_resume.c -------------------------------------------------------------------------------------------- */

/* Rank 0: resume from the checkpoint that --resume names. */
enum chex_status trainer_resume_given(struct trainer *t, struct trainer_start *start, struct chex_error *err);
/* Rank 0: resume from the newest checkpoint in RUN; *found is false if there is none. */
enum chex_status trainer_resume_here(struct trainer *t, struct trainer_start *start, bool *found,
                                     struct chex_error *err);
#define TRAINER_WHEN (2 * MANIFEST_TIME + 4) /* two times, " to " */
/*
 * Returns the number of images withdrawn since the data set had this earlier id, or 0.  *when: "2026-11-24T02:10:00Z",
 * or the first and the last time.
 */
uint64_t trainer_count_withdrawn(const struct manifest *m, const char *was, char when[TRAINER_WHEN]);

/* ---- trainer_data.c ---------------------------------------------------------------------------------------------- */

/* Choose the window of the order and the splits to keep in memory, after the plan is allocated.  All ranks. */
enum chex_status trainer_choose_data(const struct trainer_job *job, const struct trainer_task *task,
                                     const struct trainer_engine *engine, struct trainer_images *images,
                                     struct chex_error *err);
/*
 * Check the window: a run keeps its order, with any amount of memory, so an option for another window is rejected.
 * `state` is that of the checkpoint `name`.  CHEX_ERR_INCOMPATIBLE
 */
enum chex_status trainer_compare_window(const struct trainer_job *job, const struct trainer_images *images,
                                        const struct checkpoint_state *state, const struct folder *from,
                                        const char *name, struct chex_error *err);
/* Create the copy of --stage and the reader, after the state is known.  All ranks. */
enum chex_status trainer_open_data(struct trainer *t, struct chex_error *err);
void trainer_close_data(const struct trainer_engine *engine, struct trainer_images *images);
/*
 * Rank 0: report damaged records, each once per process: file, place, image, fault, and action taken.  Sorts the
 * places.  CHEX_ERR_MEMORY
 */
enum chex_status trainer_report_bad_records(const struct trainer_job *job, const struct trainer_task *task,
                                            struct trainer_images *images, struct trainer_result *result,
                                            struct sample_place *place, size_t count, const char *what,
                                            struct chex_error *err);
/*
 * Count and report the damaged records that are in no part of the fold.  All ranks, after trainer_open_data().
 * CHEX_ERR_MEMORY
 */
enum chex_status trainer_count_unreadable(struct trainer *t, struct chex_error *err);
/*
 * Sum over the ranks the damaged records that the steps of this epoch replaced since the last such call, and report
 * them; also warn if records had to be read twice.  All ranks, during an epoch.
 */
enum chex_status trainer_count_bad(struct trainer *t, struct chex_error *err);

/* ---- trainer_ranks.c --------------------------------------------------------------------------------------------- */

/* Report if the ranks use different devices. */
enum chex_status trainer_compare_devices(const struct trainer_job *job, const struct trainer_engine *engine,
                                         struct chex_error *err);

/* ---- trainer_order.c --------------------------------------------------------------------------------------------- */

/* Compute pass.next, the order of the next epoch; in any thread, while no epoch is open. */
void trainer_order_next(struct trainer *t);
/* Set pass.order to the order of the current epoch. */
enum chex_status trainer_take_order(struct trainer *t, struct chex_error *err);

/* ---- trainer_step.c ---------------------------------------------------------------------------------------------- */

/*
 * Returns the micro-batches of this rank in a step of an epoch; those without an image of weight 1 are neither read nor
 * computed.
 */
unsigned trainer_filled_batches(const struct trainer_job *job, const struct trainer_task *task, uint64_t step);
/* Open and close order and loader for the rest of the current epoch. */
enum chex_status trainer_open_epoch(struct trainer *t, struct chex_error *err);
void trainer_close_epoch(struct trainer_pass *pass, struct stepping *stepping);

/*
 * Complete one step; t->state is the state after it.  Other steps may be in flight; if none is, *requests (enum
 * trainer_request) has the requests of all ranks.  After a fault no step is in flight either, and the plan has the
 * state of the last good step; only after CHEX_ERR_LOST, CHEX_ERR_MEMORY and CHEX_ERR_BUG its state is undefined.
 */
enum chex_status trainer_make_step(struct trainer *t, uint64_t *requests, struct chex_error *err);

/* ---- trainer_times.c --------------------------------------------------------------------------------------------- */

/* Start the time account. */
void trainer_times_begin(const struct trainer_job *job);
/* For a trace: measure the clock of each rank relative to rank 0.  All ranks. */
enum chex_status trainer_times_clock(const struct trainer_job *job, struct chex_error *err);
/* plan_options.part; context: struct trainer_times. */
void trainer_times_part(void *context, enum step_part part, double begin, double end);
/* Account for a completed step; filled: the share of its micro-batches with images of this rank. */
void trainer_times_step(const struct trainer_job *job, uint64_t step, double end, const struct trainer_step *seen,
                        double filled);

/*
 * Measures an evaluation or a checkpoint: its work counts as `part`, its waiting for other ranks as PART_PEERS; both
 * are also added to *also unless NULL.
 */
struct trainer_section {
    double since, waited, cpu, waited_cpu;
};
struct trainer_section trainer_section_begin(const struct trainer_job *job);
void trainer_section_end(const struct trainer_job *job, const struct trainer_section *section, enum step_part part,
                         struct step_times *also);

/*
 * Exchange the accounts, and call the callbacks `times` and `spans` on rank 0.  last: for all times since trainer_run()
 * began.  All ranks.
 */
enum chex_status trainer_gather_times(struct trainer *t, bool last, struct chex_error *err);
/* Rank 0: report its own spans if the ranks do not meet any more. */
void trainer_write_times(struct trainer *t);
void trainer_times_release(struct trainer_times *times);

/* ---- trainer_snapshot.c ------------------------------------------------------------------------------------------ */

/*
 * Rank 0: copy the arenas of a checkpoint to trainer.host.  concurrently: the caller is a second thread, so use
 * read_concurrently().
 */
enum chex_status trainer_read_arrays(const struct trainer *t, bool concurrently, struct chex_error *err);
/* Start to copy the arenas; only an evaluation may use the plan before trainer_end_snapshot(). */
void trainer_begin_snapshot(struct trainer *t);
/*
 * Wait for the copy, which trainer_save() will use, and check that all ranks have bitwise equal weights.  All ranks.
 * If the ranks do not meet any more, it only waits.  CHEX_ERR_BUG, CHEX_ERR_MEMORY, errors of the backend
 */
enum chex_status trainer_end_snapshot(struct trainer *t, struct chex_error *err);

/* ---- trainer_artifacts.c ----------------------------------------------------------------------------------------- */

/* Rank 0: check early that the file of --predict can be written, not only after all computations. */
enum chex_status trainer_check_predict(const struct trainer_job *job, struct chex_error *err);
/*
 * Rank 0, any thread: write predictions, numbers and picture of an evaluation to RUN and to --predict.  A failure to
 * draw the picture is not an error: *picture has it, otherwise CHEX_OK.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status trainer_write_artifacts(const struct trainer_job *job, const struct trainer_task *task,
                                         const struct run_folder *run, const struct trainer_best *best,
                                         struct trainer_evaluation_result *v, struct chex_error *picture,
                                         struct chex_error *err);
/*
 * Rank 0, in a leaky run: remove the results in RUN that have no mark, because they are of a time before the leak was
 * found.  The end of the run writes those of the test and validation splits again.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status trainer_drop_unmarked(const struct trainer_job *job, const struct trainer_task *task,
                                       const struct run_folder *run, struct chex_error *err);
/* Rank 0: returns whether RUN has the numbers of the best model for this split. */
bool trainer_has_numbers(const struct trainer_task *task, const struct run_folder *run, int split);

/* ---- trainer_gate.c ---------------------------------------------------------------------------------------------- */

/*
 * Rank 0, any thread: fit the gate to the images of val, task->evaluated.  Statuses of reading, CHEX_ERR_MEMORY
 */
enum chex_status trainer_fit_gate(const struct trainer_task *task, struct gate *out, struct chex_error *err);

/* ---- trainer_save.c ---------------------------------------------------------------------------------------------- */

/*
 * Start to save the state as a checkpoint, together with saving.due, after the previous save is finished.  All ranks
 * call it; only rank 0 writes.  A write error is reported, and the next save tries again: t->result.unsaved.  Returns
 * the errors of the previous save: CHEX_ERR_MEMORY, CHEX_ERR_DIVERGED, those of the backend
 */
enum chex_status trainer_save(struct trainer *t, struct chex_error *err);
/* Wait for the save, so that all ranks know its result.  Errors as trainer_save(). */
enum chex_status trainer_finish_save(const struct trainer_job *job, struct saving *saving, struct trainer_epoch *epoch,
                                     struct trainer_result *result, struct chex_error *err);
/* Rank 0: write best.pending; if that fails, it stays pending.  Statuses of checkpoint_save_model(). */
enum chex_status trainer_write_best(const struct trainer_task *task, const struct run_folder *run,
                                    struct trainer_best *best, struct chex_error *err);
/* Call trainer_save() and trainer_finish_save(). */
enum chex_status trainer_save_now(struct trainer *t, struct chex_error *err);
/* Between two steps: report a checkpoint that was completed meanwhile. */
void trainer_look_at_save(const struct trainer_job *job, struct saving *saving, struct trainer_result *result);
/* Wait for the save, if the ranks do not meet any more. */
void trainer_end_save(const struct trainer_job *job, struct saving *saving, struct trainer_result *result);
/* Returns whether a checkpoint is due by time; checkpoints by steps are handled in trainer_step.c. */
bool trainer_save_is_due(const struct trainer_job *job, const struct saving *saving);
void trainer_release_pending(struct pending_result *j);

/* ---- trainer_evaluate.c ------------------------------------------------------------------------------------------ */

/* Call the callback for the completed training part of the current epoch. */
void trainer_report_epoch(struct trainer *t);
/* Finish an epoch: evaluate it, and advance the state to the start of the next epoch. */
enum chex_status trainer_end_epoch(struct trainer *t, struct chex_error *err);
/*
 * Evaluate the weights in the plan, or with `average` their moving average, on one split.  Release *out with
 * evaluation_release(), also after a failure.
 */
enum chex_status trainer_evaluate_split(struct trainer *t, int split, bool average, struct evaluation *out,
                                        struct chex_error *err);
/* Call trainer_write_artifacts() for a final evaluation, and the callback; all ranks. */
enum chex_status trainer_report_evaluation(const struct trainer_job *job, const struct trainer_task *task,
                                           const struct run_folder *run, const struct trainer_best *best,
                                           struct trainer_evaluation_result *v, struct chex_error *err);

#endif
