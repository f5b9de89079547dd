/*
 * rank_times.h - where the time of all ranks went, and what that says of their efficiency
 *
 * The model to keep in mind: each rank works, or waits for other ranks.  Its work is all but PART_REDUCE and
 * PART_PEERS, so reading counts as work, as it does in the metrics of POP, where work is what happens outside of MPI.
 * With the work W(r) of rank r in a time T:
 *
 *     load balance              mean of W / max of W
 *     communication efficiency  max of W / T
 *     parallel efficiency       their product: mean of W / T
 *     serialisation             max of W / I
 *     transfer                  I / T; the product of both is the communication efficiency
 *
 * I is the time on an ideal network, whose messages take none.  Here it needs no simulator: ranks meet at the sums of
 * each step, at each evaluation and at each checkpoint, and between two meetings they are independent.  So I is the
 * sum, over what lies between two meetings, of the longest work of any rank.
 *
 * Source of the factors: POP, "List of Metrics", https://co-design.pop-coe.eu/metrics/ (methodology of
 * https://pop-coe.eu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANK_TIMES_H
#define CHEX_TRAIN_RANK_TIMES_H

#include "backend/step_parts.h"
#include "base/json.h"

#define RANK_TIMES_MAX 65536 /* ranks that are read from a file */

struct rank_time {
    char host[64];
    double seconds;  /* of wall time */
    double work;     /* of them, not waiting for other ranks */
    double busy;     /* of them, its device computed for the steps, by its own clock; NaN: it has none */
    double modelled; /* seconds that a model of the device gives these steps; NaN: there is none */
    struct step_times parts;
};

struct rank_times {
    struct rank_time *rank; /* [ranks] */
    unsigned ranks;
    uint64_t steps;
    double seconds; /* T: of the rank that took longest */
    double ideal;   /* I; NaN: not known */
};

void rank_times_release(struct rank_times *t); /* zeroed; may be zero */
/* Add to a sum, which begins with zeros.  Both have the same ranks.  CHEX_ERR_MEMORY */
enum chex_status rank_times_add(struct rank_times *sum, const struct rank_times *t, struct chex_error *err);

/*
 * The sum over i of the largest work[r][i], which is I.  NaN where ranks have not the same number of values: count[r].
 */
double rank_times_ideal(const float *const work[], const size_t count[], unsigned ranks);

/* ---- factors ----------------------------------------------------------------------------------------------------- */

enum factor {
    FACTOR_PARALLEL,
    FACTOR_BALANCE,
    FACTOR_COMMUNICATION,
    FACTOR_SERIALISATION,
    FACTOR_TRANSFER,
    FACTOR_BUSY, /* no factor of POP: how much of the time devices computed for the steps */
    FACTOR_ROOF, /* neither: modelled / busy, of all ranks; above 1 where the model is too slow */
    FACTOR_COUNT
};

/* In metrics.jsonl as NAME, in TensorBoard as efficiency/NAME, for Prometheus as chex_train_NAME. */
struct factor_info {
    const char *name, *title, *help;
};
extern const struct factor_info factor_info[FACTOR_COUNT];

/* From 0 to 1, but for FACTOR_ROOF; NaN where it is not known. */
void rank_times_factors(const struct rank_times *t, double out[FACTOR_COUNT]);

/* ---- what to change (rank_advice.c) ------------------------------------------------------------------------------ */

/* What is left of the time of a rank when its parts are taken away: bookkeeping. */
double rank_time_rest(const struct rank_time *r);

/* One line, no full stop: "ranks wait 12 % for rank 3, n07: its reading; --stage".  Returns out. */
#define RANK_ADVICE 256
char *rank_times_advice(const struct rank_times *t, char out[RANK_ADVICE]);

/* ---- as JSON (rank_times_json.c) --------------------------------------------------------------------------------- */

/* Add seconds, ideal_seconds, steps, factors, ranks and advice to an object.  False: out of memory. */
bool rank_times_json_add(json_t *object, const struct rank_times *t);
/*
 * The same back, from anywhere; rank_times_release() frees *out, also after a failure.
 * CHEX_ERR_DAMAGED  it is not of that form;  CHEX_ERR_MEMORY
 */
enum chex_status rank_times_json_read(const json_t *object, struct rank_times *out, struct chex_error *err);

#endif
