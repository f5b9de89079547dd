/*
 * trainer_private.h - the parts of a trainer, and what its files share
 *
 *     trainer_prepare.c   from options to a plan of the backend
 *     trainer_settings.c  what its options are, by name
 *     trainer_preview.c   what a dry run does besides
 *     trainer_data.c      where images are read
 *     trainer_folder.c    RUN, its lock
 *     trainer_weights.c   weights: of a file, and from rank 0 to all
 *     trainer_start.c     state and weights with which a run begins
 *     trainer_order.c     the order of an epoch
 *     trainer_step.c      one step
 *     trainer_times.c     where the time of the ranks goes
 *     trainer_ranks.c     are the ranks what they should be?
 *     trainer_snapshot.c  a copy of the arenas, taken beside an evaluation
 *     trainer_save.c      checkpoints, the best model and what was judged of it
 *     trainer_leave.c     files of an evaluation
 *     trainer_judge.c     evaluations, and the rate, best model and end that follow
 *     trainer.c           the order of all that
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TRAINER_PRIVATE_H
#define CHEX_TRAIN_TRAINER_PRIVATE_H

#include "run/trainer.h"

#include "comm/collective_clock.h"
#include "data/staging.h"
#include "io/lock.h"

#include <pthread.h>

/* ---- the parts of a trainer --------------------------------------------------------------------------------------
 *
 * A function takes the parts that it needs; only one that needs more than four takes the whole.  job, task and engine
 * are filled in by trainer_prepare(), and stay after that.
 */

/* The job: its options and callbacks, and its ranks. */
struct trainer_job {
    const struct trainer_options *o;
    const struct trainer_watch *w;
    const struct trainer *trainer; /* for the callbacks of w */
    struct collective *all;
    struct trainer_times *times; /* of this rank */
    bool is_rank_0;              /* it reads and writes RUN, and calls back */
    double began;                /* progress_clock() */
};

/* trainer_times.c: where the time of this rank went since the ranks told each other last. */
struct trainer_times {
    double since, waited;         /* progress_clock() and collective_waited() then */
    double covered, covered_wait; /* seconds of steps, evaluations and checkpoints, and of waiting between steps */
    double reduced;               /* seconds of waiting for sums, reported in the step at hand */
    struct step_times parts;
    uint64_t steps, entries;
    double whole_steps;    /* the same, where one with fewer images of this rank counts less */
    struct buffer message; /* its account, and a float for each entry */
    bool broken;           /* no memory for it */
    struct buffer spans;   /* struct trace_span, up to spans_most bytes */
    size_t spans_most;
    struct clock_map clock; /* of this rank to that of rank 0 */
    struct rank_times all;  /* rank 0: since this process began */
};

/* The task: images and network, and how many images make a step. */
struct trainer_task {
    struct chex_dataset *ds;
    int train, validation, test; /* splits; -1: none */
    struct samples samples;      /* of train */
    struct samples judged;       /* of validation, once they were needed */
    char model[32];
    struct graph *graph;
    unsigned side, micro, each; /* of the input; images of a micro-batch; micro-batches of a step of this rank */
    uint64_t global, steps;     /* images of a step of all ranks; steps of an epoch */
    double positive[CHEX_FINDINGS];
    enum select_metric select;
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
    double modelled;     /* seconds of a step of this rank, as plan_model() has them; 0: not known */
    uint64_t memory_all; /* bytes, with host copies */
};

/* trainer_data.c: where images are read. */
struct trainer_images {
    struct trainer_reading reading;
    struct chex_dataset *staged; /* a copy; NULL: none */
    struct image_keeper keeper;  /* of what stays between the epochs */
    struct reader *reader;       /* of all passes */
    struct buffer told;          /* struct sample_place of the damaged records that were named; rank 0 */
};

/* trainer_folder.c: RUN. */
struct run_folder {
    struct folder folder;
    struct lock lock;
};

/* trainer_save.c: the best model. */
struct trainer_best {
    bool pending; /* it is in arrays, but not yet in its file */
    struct checkpoint_arrays arrays;
    struct checkpoint_state state;
    char hash[DIGEST_HEX];
};

/* The order of an epoch, and its hash. */
struct pass_order {
    bool there;
    uint32_t epoch;
    uint32_t *sample; /* [task.samples.count] */
    char hash[ORDER_HASH];
};

/* trainer_step.c: the training images of the epoch at hand. */
struct trainer_pass {
    struct pass_order order, next; /* next: made while the epoch is judged */
    struct loader *loader;
};

/* A step that was given to the plan, and whose result was not seen yet. */
struct step_under_way {
    uint64_t ticket, images;
    double rate, began;
    struct step_times times; /* of the parts that the backend does not see */
    struct buffer names;     /* of the images of each micro-batch */
};

#define STEPS_UNDER_WAY 2

/* trainer_step.c */
struct stepping {
    struct step_under_way step[STEPS_UNDER_WAY];
    unsigned first, count;
    uint64_t wishes;        /* what is to be done when no step is under way: until then none is started */
    double ended;           /* progress_clock() at the end of the last one */
    enum chex_status fault; /* of this rank, until all ranks know of it */
    struct chex_error why;
    uint64_t checkpoint_steps; /* of rank 0: options->checkpoint_steps */
};

/* trainer_snapshot.c: a copy of the arenas that a checkpoint has; of rank 0 in trainer.host. */
struct snapshot {
    bool taken; /* it is that of the plan, until trainer_save() */
    bool running;
    pthread_t thread;
    uint32_t sum; /* of the parameters */
    enum chex_status status;
    struct chex_error err;
};

/* What an evaluation leaves beside the checkpoint that follows it; rank 0. */
struct judged {
    bool best;                      /* the model of the checkpoint is the best so far */
    bool there;                     /* and was judged so: */
    struct evaluation evaluation;   /* evaluation_release() */
    struct trainer_verdict verdict; /* of it */
};

#define SAVE_WARNINGS 3

/* trainer_save.c: a checkpoint that is being written.  The arrays are trainer.host. */
struct saving {
    bool begun; /* any, on every rank; of this step: */
    uint64_t step;
    double started_at; /* progress_clock() */

    /* Rank 0. */
    struct judged due;     /* with the next one */
    bool pending, running; /* not met yet; by a thread */
    atomic_bool done;
    pthread_t thread;
    struct judged judged; /* is written first; trainer.best is the thread's meanwhile, too */
    struct checkpoint_state state;
    double since, seconds;
    struct chex_error warning[SAVE_WARNINGS]; /* of what did not keep it from being written */
    unsigned warnings;
    enum chex_status status; /* once it is met, until all ranks know */
    struct chex_error err;
};

struct trainer {
    struct trainer_job job;
    struct trainer_task task;
    struct trainer_engine engine;
    struct trainer_images images;
    struct run_folder run;
    struct checkpoint_state state; /* between two steps the same on all ranks */
    struct checkpoint_arrays host; /* copies of the arenas in host memory */
    struct trainer_best best;
    struct trainer_pass pass;
    struct stepping stepping;
    struct snapshot snapshot;
    struct saving saving;
    struct trainer_epoch epoch; /* what this process did of it */
    struct trainer_times times;
    struct trainer_result result;
};

/* ---- trainer_common.c -------------------------------------------------------------------------------------------- */

/* Callbacks, where this rank is the one that calls back and they are there.  One line of text. */
void trainer_note(const struct trainer_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trainer_warn(const struct trainer_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trainer_lost(const struct trainer_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trainer_free_arrays(struct checkpoint_arrays *a);
/* Is the run at its end? */
bool trainer_is_complete(const struct trainer_job *job, const struct checkpoint_state *state);

/* ---- trainer_settings.c ------------------------------------------------------------------------------------------ */

/* The settings that are in effect, once data, backend, model and batches are known.  CHEX_ERR_MEMORY */
enum chex_status trainer_make_settings(const struct trainer_job *job, struct trainer_task *task,
                                       const struct trainer_engine *engine, struct chex_error *err);

/* ---- trainer_folder.c -------------------------------------------------------------------------------------------- */

/* A note where RUN, if it is open, holds files that no run makes. */
void trainer_note_foreign(const struct trainer_job *job, const struct run_folder *run);
/* Rank 0: open RUN, take its lock, and remove what a killed process left. */
enum chex_status trainer_take_folder(const struct trainer_job *job, struct run_folder *run, bool create,
                                     struct chex_error *err);

/* ---- trainer_weights.c ------------------------------------------------------------------------------------------- */

/* Host arrays of what the plan has, and the order of an epoch.  CHEX_ERR_MEMORY */
enum chex_status trainer_make_arrays(const struct trainer_task *task, const struct trainer_engine *engine,
                                     struct checkpoint_arrays *host, struct trainer_pass *pass, struct chex_error *err);
/* State and host arrays of rank 0 into the plan of every rank.  The others need no host arrays after that. */
enum chex_status trainer_broadcast(struct trainer *t, struct chex_error *err);
/*
 * A damaged file that was given by name is no fault of the data set: CHEX_ERR_INCOMPATIBLE.  A path that holds no
 * safetensors file at all counts as missing: CHEX_ERR_MISSING.
 */
enum chex_status trainer_not_usable(enum chex_status status, struct chex_error *err);
/*
 * Weights of any file; other_head: of weights.h.  CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_INCOMPATIBLE,
 * CHEX_ERR_MEMORY
 */
enum chex_status trainer_read_model(const struct trainer_task *task, int folder_fd, const char *path, bool other_head,
                                    const struct checkpoint_arrays *to, struct weights_report *report,
                                    struct chex_error *err);
/* Weights of a file of RUN, from rank 0 into the plan of every rank. */
enum chex_status trainer_load_model(struct trainer *t, const char *name, struct chex_error *err);

/* ---- trainer_start.c --------------------------------------------------------------------------------------------- */

/* Take RUN, and bring weights and state into the plan of every rank. */
enum chex_status trainer_begin(struct trainer *t, struct chex_error *err);
/* The same for trainer_evaluate(): weights alone, and RUN where there is one. */
enum chex_status trainer_begin_evaluation(struct trainer *t, struct chex_error *err);
/* Of a dry run: what either would begin with, to state and arrays of rank 0; nothing is written.  The same statuses. */
enum chex_status trainer_look(struct trainer *t, struct trainer_start *start, struct chex_error *err);

/* ---- trainer_data.c ---------------------------------------------------------------------------------------------- */

/* The window of the order, and which splits stay in memory; once the plan has its memory.  All ranks. */
enum chex_status trainer_choose_data(const struct trainer_job *job, const struct trainer_task *task,
                                     const struct trainer_engine *engine, struct trainer_images *images,
                                     struct chex_error *err);
/*
 * A run keeps its order, whatever the memory of this machine; an option that asks for another one is refused.  The
 * state is that of the checkpoint `name`.  CHEX_ERR_INCOMPATIBLE
 */
enum chex_status trainer_compare_window(const struct trainer_job *job, const struct trainer_images *images,
                                        const struct checkpoint_state *state, const struct folder *from,
                                        const char *name, struct chex_error *err);
/* The copy of --stage, and the reader; once the state is known.  All ranks. */
enum chex_status trainer_open_data(struct trainer *t, struct chex_error *err);
void trainer_close_data(const struct trainer_engine *engine, struct trainer_images *images);
/*
 * Rank 0 names damaged records, each once in a run of this process: file, place, image, what is wrong, and what was
 * done.  The places are sorted.  CHEX_ERR_MEMORY
 */
enum chex_status trainer_tell_bad(const struct trainer_job *job, const struct trainer_task *task,
                                  struct trainer_images *images, struct trainer_result *result,
                                  struct sample_place *place, size_t count, const char *what, struct chex_error *err);
/*
 * Add up over the ranks which damaged records the steps of this epoch had replaced since the last such call, and name
 * them; a warning if records had to be read twice.  All ranks, while an epoch is open.
 */
enum chex_status trainer_count_bad(struct trainer *t, struct chex_error *err);

/* ---- trainer_ranks.c --------------------------------------------------------------------------------------------- */

/* A note where the ranks do not run on the same. */
enum chex_status trainer_compare_devices(const struct trainer_job *job, const struct trainer_engine *engine,
                                         struct chex_error *err);

/* ---- trainer_order.c --------------------------------------------------------------------------------------------- */

/* pass.next becomes that of the epoch behind the one at hand; by any thread, while no epoch is open. */
void trainer_order_next(struct trainer *t);
/* pass.order becomes that of the epoch at hand. */
enum chex_status trainer_take_order(struct trainer *t, struct chex_error *err);

/* ---- trainer_step.c ---------------------------------------------------------------------------------------------- */

/* Order and loader of the rest of the epoch at hand; and their end. */
enum chex_status trainer_open_epoch(struct trainer *t, struct chex_error *err);
void trainer_close_epoch(struct trainer_pass *pass, struct stepping *stepping);

/*
 * One step further: t->state is that behind it.  Other steps may be under way; where none is, *wishes (enum
 * trainer_wish) is what any rank wants.  After a fault, too, none is under way, and the plan is that of the last good
 * step; only after CHEX_ERR_LOST, CHEX_ERR_MEMORY and CHEX_ERR_BUG its state is unknown.
 */
enum chex_status trainer_make_step(struct trainer *t, uint64_t *wishes, struct chex_error *err);

/* ---- trainer_times.c --------------------------------------------------------------------------------------------- */

/* From now on. */
void trainer_times_begin(const struct trainer_job *job);
/* For a trace, all ranks: measure the clock of each rank against that of rank 0. */
enum chex_status trainer_times_clock(const struct trainer_job *job, struct chex_error *err);
/* plan_options.part; context: struct trainer_times. */
void trainer_times_part(void *context, enum step_part part, double begin, double end);
/* A step that ended; filled: the share of its micro-batches for which this rank had an image. */
void trainer_times_step(const struct trainer_job *job, uint64_t step, double end, const struct trainer_step *seen,
                        double filled);

/* An evaluation or a checkpoint: its time becomes that of the part, and PART_PEERS; in *also too, if it is not NULL. */
struct trainer_section {
    double since, waited;
};
struct trainer_section trainer_section_begin(const struct trainer_job *job);
void trainer_section_end(const struct trainer_job *job, const struct trainer_section *section, enum step_part part,
                         struct step_times *also);

/*
 * The ranks tell each other: the callbacks `times` and `spans` of rank 0.  last: of all since trainer_run() began.  All
 * ranks.
 */
enum chex_status trainer_gather_times(struct trainer *t, bool last, struct chex_error *err);
/* Rank 0 alone: its spans, where the ranks do not meet any more. */
void trainer_leave_times(struct trainer *t);
void trainer_times_release(struct trainer_times *times);

/* ---- trainer_snapshot.c ------------------------------------------------------------------------------------------ */

/* Rank 0: the arenas of a checkpoint into trainer.host; beside: by a thread, backend.read_beside. */
enum chex_status trainer_read_arrays(const struct trainer *t, bool beside, struct chex_error *err);
/* Begin to copy the arenas, which nothing but an evaluation uses before trainer_end_snapshot(). */
void trainer_begin_snapshot(struct trainer *t);
/*
 * The copy is there, and trainer_save() takes it.  All ranks: do they have the same weights, bit by bit?  CHEX_ERR_BUG,
 * CHEX_ERR_MEMORY, of the backend.  Where the ranks do not meet any more it only waits for the copy.
 */
enum chex_status trainer_end_snapshot(struct trainer *t, struct chex_error *err);

/* ---- trainer_leave.c --------------------------------------------------------------------------------------------- */

/* Rank 0: can the file of --predict be written?  Without this, that would show only when everything is computed. */
enum chex_status trainer_check_predict(const struct trainer_job *job, struct chex_error *err);
/*
 * Predictions, numbers and picture of an evaluation into RUN, and where --predict says; by any thread, rank 0.  A
 * picture that could not be drawn is no failure: *picture has its error, else CHEX_OK.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status trainer_leave(const struct trainer_job *job, const struct trainer_task *task,
                               const struct run_folder *run, const struct trainer_best *best, struct trainer_verdict *v,
                               struct chex_error *picture, struct chex_error *err);

/* ---- trainer_save.c ---------------------------------------------------------------------------------------------- */

/*
 * Begin to save the state as a checkpoint, and saving.due with it, when the one before is written; rank 0 alone does
 * anything, all call it.  A disk that does not take it is told, and tried again later: t->result.unsaved.  The errors
 * are those of the one before: CHEX_ERR_MEMORY, of the backend, CHEX_ERR_DIVERGED
 */
enum chex_status trainer_save(struct trainer *t, struct chex_error *err);
/* Wait for it: all ranks know the result.  The same errors. */
enum chex_status trainer_finish_save(const struct trainer_job *job, struct saving *saving, struct trainer_epoch *epoch,
                                     struct trainer_result *result, struct chex_error *err);
/* Both. */
enum chex_status trainer_save_now(struct trainer *t, struct chex_error *err);
/* Between two steps: show a checkpoint that was written meanwhile. */
void trainer_look_at_save(const struct trainer_job *job, struct saving *saving, struct trainer_result *result);
/* Wait for it, where ranks do not meet any more. */
void trainer_end_save(const struct trainer_job *job, struct saving *saving, struct trainer_result *result);
/* Is it time?  Checkpoints by steps are not asked for here. */
bool trainer_save_is_due(const struct trainer_job *job, const struct saving *saving);
void trainer_release_judged(struct judged *j);

/* ---- trainer_judge.c --------------------------------------------------------------------------------------------- */

/* The training part of the epoch at hand is over: the callback. */
void trainer_tell_epoch(struct trainer *t);
/* The end of an epoch: judge it, and make the state that of the beginning of the next. */
enum chex_status trainer_end_epoch(struct trainer *t, struct chex_error *err);
/*
 * The weights in the plan on one split, or with average their moving average.  evaluation_release() frees *out, also
 * after a failure.
 */
enum chex_status trainer_judge(struct trainer *t, int split, bool average, struct evaluation *out,
                               struct chex_error *err);
/* trainer_leave() of a final evaluation, and the callback; all ranks. */
enum chex_status trainer_tell(const struct trainer_job *job, const struct trainer_task *task,
                              const struct run_folder *run, const struct trainer_best *best, struct trainer_verdict *v,
                              struct chex_error *err);

#endif
