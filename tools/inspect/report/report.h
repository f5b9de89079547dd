/*
 * report.h - the data of the report: scan.c reads the records, checks.c evaluates them, page.c and
 * others draw the page
 *
 * All figures are integers or computed from integers in a fixed order, so the page does not depend on the number of
 * threads.  "Image" means a record of weight 1; the report only counts padding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_REPORT_H
#define CHEX_TOOLS_REPORT_H

#include "draw/html.h"
#include "inspect/check/near.h"

#define REPORT_TINY  8   /* side of the coarse image that serves to compare images */
#define REPORT_YEARS 121 /* ages 0 .. 120 */
#define REPORT_MEAN  512 /* the largest side of a mean image */

enum report_view { VIEW_PA, VIEW_AP, VIEW_OTHER, VIEW_UNKNOWN, REPORT_VIEWS };
enum report_sex { SEX_F, SEX_M, SEX_U, REPORT_SEXES };

/* Flags of an image, computed from its pixels; scan.c defines the limits. */
enum report_flag {
    FLAG_CONSTANT = 1, /* all pixels have one value */
    FLAG_BLACK = 2,
    FLAG_WHITE = 4,
    FLAG_FLAT = 8,
    FLAG_INVERTED = 16,
    FLAG_UNLIKE = 32
};
#define REPORT_FLAGS 6

struct report_image {
    bool there; /* a good record of weight 1 */
    uint8_t sex, view, flags;
    uint8_t low, high; /* first and 99th percentile of the pixels */
    float age;         /* NaN: unknown */
    float mean;
    float likeness; /* correlation of tiny with the mean of all images */
    uint8_t tiny[REPORT_TINY * REPORT_TINY];
};

struct report_shard {
    uint32_t images, padding, bad;
    uint64_t sum; /* sum of the pixels of its images */
    char why[160];
};

/* Shares and means over images, clustered by patient: the findings, then these variables. */
enum report_variable {
    VARIABLE_NONE = FINDINGS_MAX,
    VARIABLE_FEMALE, /* among images of known sex */
    VARIABLE_AP,     /* among AP and PA images */
    VARIABLE_AGE,    /* among images of known age */
    REPORT_VARIABLES
};

#define REPORT_VISITS 8 /* 1, 2, 3, 4-5, 6-10, 11-20, 21-50, more images of a patient */

struct report_split {
    uint64_t images, patients, padding, labels;
    struct ratio variable[REPORT_VARIABLES];
    uint64_t sex[REPORT_SEXES], view[REPORT_VIEWS];
    uint64_t years[REPORT_YEARS], unknown_age;
    uint64_t visits[REPORT_VISITS]; /* patients */
    uint64_t histogram[256];        /* of pixels */
};

struct report_mean {
    uint64_t images;
    uint64_t *sum; /* [height * width] of mean_height, mean_width: sums over cells of mean_cell^2 pixels */
};

/* A note is neither good nor bad: it describes how the data set was made. */
enum report_level { LEVEL_GOOD, LEVEL_NOTE, LEVEL_LOOK, LEVEL_FAULT, REPORT_LEVELS };

struct report_check {
    enum report_level level;
    const char *id, *title;
    uint64_t count; /* number of affected items */
    char text[1600];
};
#define REPORT_CHECKS 32

struct report_reject {
    const char *kind, *name, *reason, *detail;
};

struct html_report {
    struct inspect *in;
    const char *title; /* or NULL */
    const struct target *target;
    const struct chex_dataset *dataset;
    struct split_check check; /* its member seen lists the images */
    struct near_search near;
    struct report_image *image;
    size_t records;
    struct report_shard *shard;
    struct report_split split[SPLIT_MAX], all;
    uint64_t together[FINDINGS_MAX][FINDINGS_MAX];
    uint32_t mean_width, mean_height, mean_cell;
    struct report_mean mean[REPORT_VIEWS], mean_all;
    uint64_t flagged[REPORT_FLAGS];
    bool all_inverted;           /* the mean image is brighter in its upper corners than in its centre */
    uint64_t two_sexes;          /* patients with both F and M in their rows */
    uint64_t repeated;           /* copies within a split; does not count one image per group */
    uint64_t repeated_group;     /* groups of equal images within a split */
    uint64_t equal_unlike;       /* groups of equal images, in any splits, with different findings or patients */
    float least_like, most_like; /* range of likeness; both 0 without images */

    struct report_reject *reject;
    size_t reject_count, reject_capacity;
    struct arena strings;

    struct report_check checks[REPORT_CHECKS];
    unsigned check_count;
    struct walk walk;
};

/* Read every record.  The caller calls report_close(), also after a failure. */
enum chex_status report_scan(struct html_report *r, struct chex_error *err);
void report_close(struct html_report *r);
/* Compute the figures of each split from the images. */
void report_count(struct html_report *r);
/* Find the end of the images equal to check.by_hash[i].  Returns flags of their faults, 0 for a unique image. */
enum report_equal { EQUAL_SHARED = 1 /* in several splits */, EQUAL_REPEATED = 2 /* in one */, EQUAL_UNLIKE = 4 };
unsigned report_equal_to(const struct html_report *r, size_t i, size_t *next);
enum chex_status report_read_rejects(struct html_report *r, struct chex_error *err);
/* Evaluate all checks and write their sentences. */
void report_run_checks(struct html_report *r);
bool report_has_fault(const struct html_report *r);

const struct report_image *report_image_of(const struct html_report *r, const struct seen *seen);
/* Returns the name of the NIH label file with this hash, or NULL. */
const char *report_label_file(const char *sha256);
/* Write the page to h. */
enum chex_status report_page(struct html_report *r, struct html *h, struct chex_error *err);

/*
 * Parts of the page.  The page contains each full-width plot twice, broad and slim, and the style sheet shows the one
 * that fits.  On a phone the broad plot would have letters of 5 pixels.
 */
#define REPORT_BROAD 900
#define REPORT_SLIM  360 /* usable pixels on a phone that is 390 wide */
void report_draw_prevalence(struct html *h, const struct html_report *r, bool slim);
void report_draw_ages(struct html *h, const struct html_report *r);
void report_draw_visits(struct html *h, const struct html_report *r);
void report_draw_sex_view(struct html *h, const struct html_report *r, bool slim);
void report_draw_levels(struct html *h, const struct html_report *r, bool slim);
void report_draw_together(struct html *h, const struct html_report *r, bool slim);
void report_draw_shards(struct html *h, const struct html_report *r, bool slim);
/* Returns the CSS class of such a drawing. */
const char *report_paper(bool slim);
void report_table_splits(struct html *h, const struct html_report *r);
void report_table_prevalence(struct html *h, const struct html_report *r);
void report_table_shards(struct html *h, const struct html_report *r);
void report_table_rejects(struct html *h, const struct html_report *r);
void report_table_equal(struct html *h, const struct html_report *r);
enum chex_status report_mean_images(struct html *h, const struct html_report *r, struct chex_error *err);
enum chex_status report_contact_sheet(struct html *h, const struct html_report *r, struct chex_error *err);
enum chex_status report_flagged_images(struct html *h, const struct html_report *r, struct chex_error *err);

/* Get the splits that plots show: the first SVG_SERIES splits with an image. */
unsigned report_shown_splits(const struct html_report *r, unsigned shown[SPLIT_MAX]);
const char *report_view_name(enum report_view view);
/* Returns the variable after finding f: the next finding of the list, VARIABLE_NONE after the last one, then more. */
unsigned report_next(const struct html_report *r, unsigned f);
/* Sort the findings, most frequent first; a stable sort. */
void report_sort_findings(const struct html_report *r, unsigned order[FINDINGS_MAX]);
/* Returns the name of a finding or of VARIABLE_NONE. */
const char *report_finding_name(const struct html_report *r, unsigned finding);

#endif
