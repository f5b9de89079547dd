/*
 * run.h - the data of the report of a run: read.c reads the files of the run, measure.c computes, page.c and others
 * draw the page
 *
 * All numbers come from predictions-SPLIT.csv.  metrics-SPLIT.json adds thresholds and calibration of the model, which
 * were chosen on val, and run.json the options and splits.  The data set of the run, if it can be read, adds whether it
 * is synthetic, and the training labels for the floor.
 *
 * A finding with positives of fewer than METRICS_FEWEST_PATIENTS patients has counts, but no number: "too few".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_H
#define CHEX_TOOLS_INSPECT_RUN_H

#include "draw/html.h"
#include "eval/calibration.h"
#include "eval/compare.h"
#include "eval/floor.h"
#include "eval/operating.h"
#include "eval/predictions_read.h"
#include "eval/subgroups.h"
#include "inspect/inspect.h"
#include "inspect/run/group_file.h"
#include "inspect/run/map_file.h"
#include "inspect/run/references.h"

#define RUN_TEXT_MAX 80
#define RUN_COMMAND  1200
#define RUN_DRAWS    1000
#define RUN_SEED     1
#define RUN_ANSWERS  16
#define RUN_USED     "used" /* id of the answer that the images were used to make the network */
#define RUN_SEVERAL  "runs" /* id of the answer about several runs */
#define RUN_DEFAULT  "test" /* the split */
#define RUN_SPLITS   16

#define RUN_SIGNIFICANT 0.05 /* p after Holm's correction */
#define RUN_UNFITTED    160

/* A threshold that was chosen on another split, and its counts on this one. */
struct run_point {
    double threshold; /* NaN: none */
    uint64_t true_positives, false_positives;
};

/* Net benefit at RUN_DECISIONS thresholds: of the network, and of calling every image positive. */
#define RUN_DECISIONS 40

struct run_decision {
    bool calibrated; /* p is */
    double threshold[RUN_DECISIONS], network[RUN_DECISIONS], all[RUN_DECISIONS];
};

/* Numbers of images by probability, in classes of equal width from 0 to 1; by label. */
#define RUN_CLASSES 20

struct run_finding {
    const char *name;
    bool enough;                /* METRICS_FEWEST_PATIENTS patients with a positive, and as many negatives */
    char refused[RUN_TEXT_MAX]; /* why the model has no calibration or thresholds; "": it has */
    double a, b;                /* calibration of the model; NaN: none */
    struct run_point point[OPERATING_RULES];
    struct calibration raw, calibrated; /* calibrated: NaN without a and b */
    struct run_decision decision;
    uint64_t by_class[2][RUN_CLASSES];
};

struct run_split {
    char name[RUN_TEXT_MAX], use[RUN_TEXT_MAX], sha256[RUN_TEXT_MAX]; /* sha256: of its members */
    uint64_t images, patients;
};

/* How the floor was fitted, or why not. */
struct run_floor {
    char missing[160]; /* "": it was fitted */
    char split[224];   /* "train, fold 1/4" */
    uint64_t images;
    struct comparison result; /* A: the floor, B: the network */
    bool fitted[METRICS_OUTPUTS];
    struct floor_cell (*cell)[FLOOR_CELLS]; /* [outputs] of the training images; owned; NULL if missing */
};

#define RUN_KAPPA_FEWEST 5 /* images that are positive in either label set, for a kappa */

/* The labels of the run and those of --labels, over the images that have both. */
struct run_agreement {
    uint64_t count[2][2]; /* images: [label of the run][label of the file] */
    double kappa;         /* NaN: too few images, or all alike */
    /* AUROC against the labels of the run, and against those of the file, both over these images; NaN: too few */
    struct measured own, other;
};

/* A measure over several runs. */
struct run_spread {
    double mean, deviation, least, most; /* the deviation is that of a sample; all NaN: undefined for a run */
    double ensemble;
};

enum run_measure { RUN_AUROC, RUN_AUPRC, RUN_BRIER, RUN_SKILL, RUN_ECE, RUN_MEASURES };

/* Several runs on the images that all of them have. */
struct run_many {
    struct runs_diff *diff;
    unsigned findings;                       /* with enough patients */
    struct run_spread measure[RUN_MEASURES]; /* means over these findings */
    struct run_spread finding[METRICS_OUTPUTS][RUN_MEASURES];
    bool enough[METRICS_OUTPUTS];
    struct metrics *ensemble; /* of the mean of the probabilities */
    bool only_seeds;          /* all runs differ only in their seed */
    unsigned twin, twin_of;   /* the first run with the predictions of an earlier one; 0: none */
    struct run_each *each;    /* details of each run, and of the ensemble; see each.h */
};

struct run_labels {
    size_t others;               /* images of the file that the predictions do not have */
    uint64_t strange;            /* names of the file that are no finding of the run */
    char stranger[64];           /* the first of them */
    bool known[METRICS_OUTPUTS]; /* the file has labels of the finding */
    struct run_report *report;   /* of the images of the file, against its labels; without groups */
    struct run_agreement agreement[METRICS_OUTPUTS];
};

/* The groups, in the order of the page: those that groups.c knows, then those of --groups. */
#define RUN_GROUPS      14
#define RUN_GROUPS_MOST (RUN_GROUPS + GROUP_FILE_MOST)

struct run_group {
    char name[GROUP_FILE_NAME], rest[GROUP_FILE_NAME];
    bool shown;                      /* it has an image, and the rest too */
    struct calibration *calibration; /* [outputs], of the group alone; calibrated where the model can; owned */
};

/* Does an output depend on the view?  NaN: too few. */
struct run_shortcut {
    struct measured pooled; /* AUROC of the AP and PA images together */
    double within;          /* mean of the AUROC within AP and within PA, weighted by their positives */
    struct measured view;   /* AUROC of the output for AP, among images without the finding */
};

struct run_groups {
    char missing[80]; /* why there are none by age, sex and view; "": they were measured */
    unsigned count;   /* 0: none at all */
    struct run_group group[RUN_GROUPS_MOST];
    struct subgroup of[RUN_GROUPS_MOST];
    unsigned shown_gaps, tested; /* gaps with a number, and those of them that have a p */
    unsigned of_file;            /* groups of --groups, the last ones */
    size_t without, others;      /* images that only the predictions have, and that only the file has */
    struct run_shortcut shortcut[METRICS_OUTPUTS];
};

enum run_answer_level { RUN_GOOD, RUN_NOTE, RUN_LOOK, RUN_ANSWER_LEVELS };

struct run_answer {
    enum run_answer_level level;
    const char *id, *title;
    char text[1600];
};

struct run_report {
    struct inspect *in;
    const char *path, *split;
    bool is_other; /* a run after the first one: it may lack run.json */
    char id[16];   /* begins the ids of its parts on the page: "" or "run2-", "ensemble-" */
    struct predictions p;
    uint32_t *patient; /* [count] */
    uint32_t patients;
    struct arena strings;

    /* of metrics-SPLIT.json */
    char rule[256]; /* how the data set was split, such as "official, fold 1/4"; "": unknown */
    double mean;    /* AUROC; NaN: the file has none */
    char members[RUN_TEXT_MAX], dataset_id[RUN_TEXT_MAX], model[RUN_TEXT_MAX], tool_version[RUN_TEXT_MAX];
    char checkpoint_sha256[RUN_TEXT_MAX], tta[RUN_TEXT_MAX], chosen_on[RUN_TEXT_MAX]; /* chosen_on: "" if none */
    bool optimistic;             /* thresholds of the model were chosen on this split */
    char unfitted[RUN_UNFITTED]; /* why an ensemble has no thresholds; "": it has, or it is none */
    uint64_t step, skipped;
    double epochs; /* NaN: unknown */

    /* of run.json */
    char command[RUN_COMMAND]; /* "": unknown */
    struct run_split of[RUN_SPLITS];
    unsigned splits;
    unsigned used, used_of; /* of an ensemble: runs that used these images in their training, of how many; else 0 */
    char train[RUN_TEXT_MAX], validation[RUN_TEXT_MAX], data_path[4096]; /* "": unknown */
    char fold[RUN_TEXT_MAX], limit[RUN_TEXT_MAX];                        /* --fold and --limit; "": none */
    uint64_t epoch_images, seed;

    bool dataset_read, synthetic;

    unsigned enough; /* findings */
    struct metrics *metrics;
    struct run_finding finding[METRICS_OUTPUTS];
    struct run_floor *floor;
    struct run_groups *groups;
    struct run_labels *labels;     /* NULL without --labels */
    struct run_many *many;         /* NULL for one run */
    struct references *references; /* NULL without --reference */
    struct map_file *maps;         /* NULL without --maps */
    struct run_suspects *suspects; /* NULL for one run; see suspects.h */
    struct run_answer answer[RUN_ANSWERS];
    unsigned answers;
};

/* Read the files of the run.  CHEX_ERR_MISSING, CHEX_ERR_INCOMPATIBLE: a file that is not what chex-train writes */
enum chex_status run_report_read(struct run_report *r, struct chex_error *err);
/* Number the patients of predictions, in the order of their first images; patient [p->count].  CHEX_ERR_MEMORY */
enum chex_status run_number_patients(const struct predictions *p, struct arena *strings, uint32_t *patient,
                                     uint32_t *patients, struct chex_error *err);
/* Compute all numbers. */
enum chex_status run_report_measure(struct run_report *r, struct chex_error *err);
/*
 * Take images of a run, by their rows, with its model; nothing is measured.  Texts stay those of r.  Free *out with
 * run_report_free(), also after a failure.  CHEX_ERR_MEMORY
 */
enum chex_status run_report_subset(const struct run_report *r, const size_t *row, size_t count, struct run_report **out,
                                   struct chex_error *err);
/* Read the data set of the run, and fit the floor.  A failure to read is no error: floor->missing says why. */
enum chex_status run_report_floor(struct run_report *r, struct chex_error *err);
/* Compare with the floor that was fitted for other images of the same run. */
enum chex_status run_report_same_floor(struct run_report *r, const struct run_floor *floor, struct chex_error *err);
/* Have no floor, for this reason. */
enum chex_status run_report_no_floor(struct run_report *r, const char *why, struct chex_error *err);
/* Measure the images of --labels against its labels. */
enum chex_status run_report_labels(struct run_report *r, struct chex_error *err);
/*
 * Compare several runs; the first one is r.  *failed becomes the run that an error is about.
 * CHEX_ERR_INCOMPATIBLE different splits, findings or labels
 */
enum chex_status run_report_many(struct run_report *r, const char *const *path, unsigned count, unsigned *failed,
                                 struct chex_error *err);
void run_many_free(struct run_many *m); /* NULL is allowed */
/* Returns whether the run was trained on images of this report, or made choices by them. */
bool run_report_is_used(const struct run_report *r);
/* Returns the spread of the values of `runs` runs, which are `stride` apart; after them is that of the ensemble. */
struct run_spread run_spread_of(const double *value, size_t stride, unsigned runs);
/* Measure each of several runs, and the ensemble, after the groups of the first one (each.c).  Statuses as above */
enum chex_status run_report_each(struct run_report *r, unsigned *failed, struct chex_error *err);
/* Rank the images of several folds (suspects.c).  CHEX_ERR_INCOMPATIBLE: predictions that are not of their fold */
enum chex_status run_report_suspects(struct run_report *r, struct chex_error *err);
void run_suspects_free(struct run_suspects *s); /* NULL is allowed */
/* Write the section about them, with images of the data set (suspect_sheet.c). */
enum chex_status run_put_suspects(struct html *h, const struct run_report *r, struct chex_error *err);
json_t *run_suspects_json(const struct run_report *r);
/* Read --reference. */
enum chex_status run_report_references(struct run_report *r, struct chex_error *err);
/* Read --maps (map_report.c). */
enum chex_status run_report_maps(struct run_report *r, struct chex_error *err);
void run_maps_free(struct map_file *m); /* NULL is allowed */
/* Write the options of chex-predict that chose the images, each after a blank; returns out. */
#define RUN_MAPS_OPTIONS 128
const char *run_maps_options(const struct map_file *m, char out[RUN_MAPS_OPTIONS]);
/* Measure groups of images, and how outputs depend on the view. */
enum chex_status run_report_groups(struct run_report *r, struct chex_error *err);
void run_groups_free(struct run_groups *g); /* NULL is allowed */
/* Write the answers in words. */
void run_report_answer(struct run_report *r);
/* Begin an answer, and append to it; id and title are texts of the program. */
struct run_answer *run_answer_begin(struct run_report *r, const char *id, const char *title,
                                    enum run_answer_level level);
void run_say(struct run_answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define RUN_PLURAL(n) ((n) == 1 ? "" : "s")
/* The answers about several runs and the files of options (more_answers.c). */
void run_report_answer_more(struct run_report *r);

/* Write the page to h. */
enum chex_status run_report_page(struct run_report *r, struct html *h, struct chex_error *err);
void run_table_findings(struct html *h, const struct run_report *r);
void run_table_calibration(struct html *h, const struct run_report *r);
void run_table_points(struct html *h, const struct run_report *r);
void run_table_flow(struct html *h, const struct run_report *r);
void run_table_underdiagnosis(struct html *h, const struct run_report *r);
void run_tables_groups(struct html *h, const struct run_report *r);
void run_table_shortcuts(struct html *h, const struct run_report *r);
void run_put_answers(struct html *h, const struct run_report *r);
void run_tables_many(struct html *h, const struct run_report *r);
json_t *run_spread_json(const struct run_spread *s);
json_t *run_many_json(const struct run_report *r);
void run_tables_gaps(struct html *h, const struct run_report *r);
void run_put_each(struct html *h, const struct run_report *r);
void run_each_json(const struct run_report *r, json_t **runs);
/* The members "answers", "findings", "groups" and "shortcuts" of a run (details_json.c). */
json_t *run_details_json(const struct run_report *r);
json_t *run_findings_json(const struct run_report *r);
json_t *run_measured_json(const struct measured *m);
void run_tables_references(struct html *h, const struct run_report *r);
json_t *run_references_json(const struct run_report *r);
void run_tables_maps(struct html *h, const struct run_report *r);
json_t *run_maps_json(const struct run_report *r);
void run_tables_labels(struct html *h, const struct run_report *r);
void run_plots(struct html *h, const struct run_report *r);
/* The same numbers for scripts. */
json_t *run_report_json(const struct run_report *r, const char *output, size_t bytes);

/* Returns the predictions as the functions of train/eval take them; the arrays belong to r. */
struct scores run_scores(const struct run_report *r);
/* Returns part / whole, NaN for 0 / 0. */
double run_share(uint64_t part, uint64_t whole);
/* Format a number: "0.812", or "-" if it is undefined. */
#define RUN_DIGITS 32
const char *run_number(double value, int digits, char out[RUN_DIGITS]);

void run_report_free(struct run_report *r); /* NULL is allowed */

/* The command `report` for the folders of runs; returns the exit code. */
int inspect_run_report(struct inspect *in, const char *const *path, unsigned count);
/* Returns whether the path is the folder of a run: it has a run.json or predictions, but no manifest.json. */
bool inspect_is_run(const char *path);

#endif
