/*
 * operating.h - the operating points of a model: thresholds and calibration, chosen on val and applied to other images
 *
 * A threshold that is chosen and reported on the same images looks better than it is.  So the thresholds of the best
 * model are computed from its evaluation on val, are stored with its weights as JSON (the key "operating" of the
 * metadata of best.safetensors), and are applied to every later evaluation of that model.
 *
 * Thresholds are probabilities: an image is called positive if its probability >= threshold.
 * Calibration (Platt 1999): p' = 1 / (1 + exp(-(a z + b))) for the logit z.  a and b maximise the likelihood of val
 * with the targets (n+ + 1) / (n+ + 2) for positives and 1 / (n- + 2) for negatives, so the fit of separable images is
 * finite.
 *
 * With fewer than OPERATING_FEWEST positives or negatives in val a finding has neither thresholds nor calibration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_OPERATING_H
#define CHEX_TRAIN_OPERATING_H

#include "eval/evaluate.h"
#include "eval/gate.h"

#define OPERATING_FEWEST 10
#define OPERATING_SPLIT  64 /* bytes of the name of a split */
#define OPERATING_HASH   65 /* SHA-256 in hex */

enum operating_rule {
    OPERATING_YOUDEN,      /* the largest sensitivity + specificity - 1 */
    OPERATING_SENSITIVITY, /* the highest threshold with a sensitivity of at least 0.90 */
    OPERATING_RULES
};
extern const char *const operating_rule_name[OPERATING_RULES]; /* keys of the JSON documents */

/* The reason why a finding lacks numbers. */
enum operating_refusal {
    OPERATING_COMPLETE,
    OPERATING_FEW_POSITIVES,
    OPERATING_FEW_NEGATIVES,
    OPERATING_CONSTANT,  /* all images of val have the same output */
    OPERATING_NO_OPTIMUM /* the fit does not converge: thresholds, but no calibration */
};
/* Returns the reason in words; NULL for OPERATING_COMPLETE. */
const char *operating_refusal_text(enum operating_refusal refusal);

struct finding_operating {
    uint64_t positives, negatives;                 /* in val, of known labels */
    enum operating_refusal refusal;                /* says which of the following are NaN */
    double a, b;                                   /* calibration */
    struct operating_point point[OPERATING_RULES]; /* with the counts in val; value: of the rule */
};

struct operating {
    bool there;                                           /* false: the model has none, and nothing else is set */
    char split[OPERATING_SPLIT], members[OPERATING_HASH]; /* "val"; the hash of its member list */
    enum precision precision;                             /* of the evaluation */
    enum tta tta;
    uint64_t images, patients; /* of the evaluation */
    unsigned outputs;
    struct finding_operating finding[METRICS_OUTPUTS];
    struct gate gate; /* of the images of val; set by the caller of operating_choose() */
};

/*
 * Fit a and b as above to `count` logits, which must be finite; label: 0 or 1 at every `stride`, others are left out.
 * Returns OPERATING_COMPLETE or the reason why there is no fit; then both are NaN.
 */
enum operating_refusal operating_calibrate(const float *logit, const uint8_t *label, size_t count, size_t stride,
                                           double *a, double *b);

/*
 * Compute all from an evaluation of val, which `split` describes.  out->there is false if an output is not finite.
 * CHEX_ERR_MEMORY
 */
enum chex_status operating_choose(const struct evaluation *e, const struct chex_split_info *split,
                                  enum precision precision, struct operating *out, struct chex_error *err);

/* Count the images of an evaluation that are called positive at this threshold; value: of the rule. */
struct operating_point operating_apply(const struct evaluation *e, unsigned finding, enum operating_rule rule,
                                       double threshold);

/* ---- several models (operating_mean.c) --------------------------------------------------------------------------- */

/* The mean of the probabilities of several models for the images of val. */
struct mean_scores {
    size_t count;
    unsigned outputs;
    const double *probability; /* [count][outputs] */
    uint8_t *label;            /* [count][outputs]; is only read */
};

/*
 * As operating_choose(), for the mean of several models: the thresholds of a single one do not hold for it.
 * out->there is false if a mean is 0 or 1.  The caller sets out->patients.
 */
enum chex_status operating_choose_mean(const struct mean_scores *mean, const struct chex_split_info *split,
                                       enum precision precision, enum tta tta, struct operating *out,
                                       struct chex_error *err);
/* Returns the logit of such a mean, as its calibration takes it. */
float operating_mean_logit(double probability);

/* ---- JSON (operating_json.c) ------------------------------------------------------------------------------------- */

/* Append the text for the metadata of a model, terminated; `findings` are the names of the outputs.  CHEX_ERR_MEMORY */
enum chex_status operating_format(const struct operating *o, const char *const *findings, struct buffer *text,
                                  struct chex_error *err);
/*
 * Parse such a text; NULL: the model has none.  CHEX_ERR_DAMAGED not such a text, a value out of bounds (named);
 * CHEX_ERR_INCOMPATIBLE a newer format, other findings;  CHEX_ERR_LIMIT, CHEX_ERR_MEMORY
 */
enum chex_status operating_parse(const char *text, const char *const *findings, unsigned outputs, struct operating *out,
                                 struct chex_error *err);

/*
 * For the document of an evaluation: the origin of the operating points, and those of a finding with the counts of this
 * evaluation.  null if o is NULL or not there; NULL if memory runs out.
 */
json_t *operating_json_origin(const struct operating *o, const char *members);
json_t *operating_json_finding(const struct operating *o, const struct evaluation *e, unsigned finding,
                               const char *members);

#endif
