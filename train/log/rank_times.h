/*
 * rank_times.h - time accounts of all ranks, and the parallel efficiency that follows from them
 *
 * A rank either works or waits for other ranks.  Its work is the wall time of everything except PART_REDUCE and
 * PART_PEERS.  Its useful time U(r) is the CPU time of this work per thread, because ranks that share a core all seem
 * to work the whole time.  With a device that has its own clock, U(r) is the work.  In a time T:
 *
 *     load balance              mean of U / max of U
 *     communication efficiency  max of U / T
 *     parallel efficiency       their product: mean of U / T
 *     serialisation             max of U / I
 *     transfer                  I / T; serialisation times transfer is the communication efficiency
 *
 * Two runs that do the same work:
 *
 *     computation scaling       sum of U x threads of the reference / the same sum of this run
 *     global efficiency         parallel efficiency x computation scaling
 *
 * I is the time on an ideal network with zero transfer time.  It needs no simulator here.  The ranks meet at the sums
 * of each step, at each evaluation and at each checkpoint; between two meetings they are independent.  So I is the sum,
 * over all intervals between meetings, of the longest work of any rank.
 *
 * Runs of earlier versions recorded no CPU times: U, and the factors that contain it, are NaN.
 *
 * Source of the factors: POP, "List of Metrics", https://co-design.pop-coe.eu/metrics/ (methodology of
 * https://pop-coe.eu); for two runs also NAG's pypop, https://github.com/numericalalgorithmsgroup/pypop.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANK_TIMES_H
#define CHEX_TRAIN_RANK_TIMES_H

#include "backend/step_parts.h"
#include "base/json.h"

#define RANK_TIMES_MAX 65536 /* limit for ranks read from a file */

struct rank_time {
    char host[64];
    double seconds;  /* wall time */
    double work;     /* the part of it without waiting for other ranks */
    double busy;     /* the part of it in which the device computed steps, by its own clock; NaN: it has no clock */
    double modelled; /* time of these steps by the cost model of the device; NaN: no model */
    double cpu;      /* CPU seconds of the process; NaN here and below: not recorded */
    double useful;   /* U: at most `work` */
    double threads;  /* of the computation */
    struct step_times parts;
};

/* Settings that a run can save time with.  The advice names only those that are not in use. */
enum time_saver { SAVER_NO_TTA, SAVER_NO_BOOTSTRAP, SAVER_STAGE, SAVER_CACHE, SAVER_CACHE_DEVICE, SAVER_COUNT };

struct rank_times {
    struct rank_time *rank; /* [ranks] */
    unsigned ranks;
    uint64_t steps;
    double seconds; /* T: of the slowest rank */
    double ideal;   /* I; NaN: unknown */
    bool in_use[SAVER_COUNT];
};

void rank_times_release(struct rank_times *t); /* zeroes *t, which may be zero already */
/* Add to a sum, which is initially zero.  Both must have the same ranks.  CHEX_ERR_MEMORY */
enum chex_status rank_times_add(struct rank_times *sum, const struct rank_times *t, struct chex_error *err);

/* Returns I: the sum over i of the largest work[r][i].  NaN if the ranks have different numbers of values, count[r]. */
double rank_times_ideal(const float *const work[], const size_t count[], unsigned ranks);

/* ---- factors ----------------------------------------------------------------------------------------------------- */

enum factor {
    FACTOR_PARALLEL,
    FACTOR_BALANCE,
    FACTOR_COMMUNICATION,
    FACTOR_SERIALISATION,
    FACTOR_TRANSFER,
    FACTOR_BUSY,  /* not from POP: share of the time in which devices computed steps */
    FACTOR_ROOF,  /* not from POP: modelled / busy, over all ranks; above 1 if the model is too slow */
    FACTOR_CORES, /* not from POP: CPU time / (wall time x threads) of computing on a CPU, over all ranks */
    FACTOR_COUNT
};

/* Names: NAME in metrics.jsonl, efficiency/NAME in TensorBoard. */
struct factor_info {
    const char *name, *title;
};
extern const struct factor_info factor_info[FACTOR_COUNT];

/* Compute the factors: from 0 to 1, except FACTOR_ROOF; NaN if unknown. */
void rank_times_factors(const struct rank_times *t, double out[FACTOR_COUNT]);

/*
 * How a rank computed on a CPU: the share of its threads' cores that it had, and the seconds that it lost without them.
 * NaN: a device computed, or the CPU times are unknown.
 */
struct rank_cores {
    double share, lost;
};
struct rank_cores rank_time_cores(const struct rank_time *r);

/* The factors of POP for two runs that do the same work; NaN if unknown. */
struct rank_scaling {
    double computation, global;
};
struct rank_scaling rank_times_scaling(const struct rank_times *reference, const struct rank_times *t);

/* ---- what to change (rank_advice.c) ------------------------------------------------------------------------------ */

/* Returns the time of a rank outside of its parts: bookkeeping. */
double rank_time_rest(const struct rank_time *r);

/* Write a line without full stop: "ranks wait 12 % for rank 3, n07: its reading; --stage".  Returns out. */
#define RANK_ADVICE 256
char *rank_times_advice(const struct rank_times *t, char out[RANK_ADVICE]);

/* ---- as JSON (rank_times_json.c) --------------------------------------------------------------------------------- */

/* Add seconds, ideal_seconds, steps, factors, ranks and advice to an object; returns false if memory runs out. */
bool rank_times_json_add(json_t *object, const struct rank_times *t);
/*
 * Parse such an object from an untrusted source.  Release *out with rank_times_release(), also after a failure.
 * CHEX_ERR_DAMAGED it has another form; CHEX_ERR_MEMORY
 */
enum chex_status rank_times_json_read(const json_t *object, struct rank_times *out, struct chex_error *err);

#endif
