/*
 * collective.h - collective operations of the ranks of a job: agreement on a status, allgather, broadcast, allreduce
 *
 * Every rank makes the same calls in the same order.  The message library (comm.h) never blocks: a waiting rank polls
 * and sends heartbeats to its peers.  A rank that died, hangs in I/O or was stopped sends none, and its peers name it:
 * "rank 3 n07 is lost: no message for 300 s".
 *
 * Ranks that work independently, such as those of a conversion, call collective_watch() a few times per second and meet
 * in collective_agree() after each step of the work.
 *
 * A training step is one allreduce.  The rank starts a sum for each bucket of gradients as soon as it is final;
 * collective_poll() makes progress; collective_allreduce_wait() returns when all sums are complete (reduce_host.h).
 * Ranks meet in collective_agree() at points that all of them know: after an epoch, before a checkpoint, after a fault
 * that was reported with the sums.  A failure during sums is not recoverable: the transfers of the failed rank never
 * end, collective_broken() becomes true, and the run can only be aborted.
 *
 * Any waiting call returns the error of another rank, with the prefix "rank 3 n07: ".  Then all ranks meet in
 * collective_agree(), each with its own status, and all get the same result.
 *
 * With a single process (size 1) all calls work; they return immediately and do not change the data.
 *
 * Only the thread that opened the comm may use a collective.  All data are in host memory; all machines have the same
 * byte order.  Any call except free may fail with CHEX_ERR_LOST, CHEX_ERR_MEMORY, CHEX_ERR_BUG (ranks make different
 * calls), or with the error of another rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_COLLECTIVE_H
#define CHEX_LIB_COLLECTIVE_H

#include "ranks/comm.h"

#include <stdatomic.h>

#define COLLECTIVE_TIMEOUT 300.0 /* seconds */
#define COLLECTIVE_GRACE   5.0

struct collective;

struct collective_options {
    /*
     * A rank is lost after this many seconds of waiting without a message from it; 0: COLLECTIVE_TIMEOUT.  Six times as
     * long during start-up.  It must exceed the longest time in which a rank computes or writes without a call of this
     * interface.
     */
    double timeout;
    /* Allow six times as long until the ranks have met for the first time, not only until they are connected. */
    bool slow_start;

    /*
     * Set when the user asks this rank to stop; may be NULL.  The heartbeats carry it: collective_stop_asked() becomes
     * true on all ranks.
     */
    const atomic_bool *stop;

    /*
     * Set by the handler of SIGTERM; may be NULL.  The sender may have lost a rank, and may kill this process soon.  So
     * afterwards a rank is lost if it is silent for `grace` seconds (0: COLLECTIVE_GRACE), or for three times the
     * longest silence so far if that is longer.  After all ranks have met once more, all are alive and the normal
     * timeout applies again, because saving may take longer.
     */
    const atomic_bool *terminating;
    double grace;

    void (*on_wait)(void *context); /* called while waiting, up to a thousand times a second; may be NULL */

    /*
     * Called once, half a second after SIGTERM, on the rank that reports errors: "waiting for rank 3 n07".  After one
     * rank was killed, mpirun gives the others about one second for this message.  May be NULL.
     */
    void (*warn_waiting)(void *context, const char *text);
    void *context;
};

/*
 * Connect all ranks and exchange their host names.  The options are copied; comm must outlive the result.  Release *out
 * with collective_free().  On failure *out is NULL; if comm->size > 1, the caller must end with comm->ops->abort().
 */
enum chex_status collective_new(struct comm *comm, const struct collective_options *options, struct collective **out,
                                struct chex_error *err);
void collective_free(struct collective *c); /* NULL is allowed */

int collective_rank(const struct collective *c);
int collective_size(const struct collective *c);
const char *collective_host(const struct collective *c, int rank); /* valid as long as c */
/* The index of this rank among the ranks on its machine, and their number. */
int collective_local_rank(const struct collective *c);
int collective_local_size(const struct collective *c);

/*
 * Returns the seconds that this rank has waited for others, in all calls except collective_watch(): its caller waits
 * for its own device and measures that itself.
 */
double collective_waited(const struct collective *c);
/* Returns the CPU seconds of the threads that waited in these calls. */
double collective_waited_cpu(const struct collective *c);

/*
 * Sum over the ranks, in place, in rank order: ((x0 + x1) + x2) + ... The bits are the same on every rank and in every
 * run.  start() returns immediately; several sums of disjoint data may be in flight.  The caller must not read, write
 * or free the data until wait() returns.  poll() makes progress and may be called at any time, also without a sum: it
 * sends heartbeats during a long computation.  wait() returns when all sums are complete.
 *
 * The numbers are doubles, with 29 more bits than floats.  So a sum of floats is exact unless one is 2^29 times
 * another, and it does not depend on how many of them each rank has added before.
 */
enum chex_status collective_allreduce_start(struct collective *c, double *data, size_t count, struct chex_error *err);
enum chex_status collective_poll(struct collective *c, struct chex_error *err);
enum chex_status collective_allreduce_wait(struct collective *c, struct chex_error *err);

/*
 * Call it repeatedly while this rank waits for something that other ranks do elsewhere, e.g. sums on GPUs.  It sends
 * heartbeats and receives.  Fails with CHEX_ERR_LOST if a rank was silent for the timeout, and with the error of a rank
 * that gave up; a rank that has reached a meeting is fine.  `waited` is the total time of consecutive calls, 0 before
 * the first; one call counts for at most one second.
 */
enum chex_status collective_watch(struct collective *c, double *waited, struct chex_error *err);
double collective_timeout(const struct collective *c);
/* Returns whether the user asked any rank to stop, as far as this rank knows. */
bool collective_stop_asked(const struct collective *c);
/* Returns whether a message from every rank arrived within the last `seconds` of waiting in collective_watch(). */
bool collective_heard_all(const struct collective *c, double seconds);

/* Copy `size` bytes from rank 0 to all, in place; size is the same on all ranks. */
enum chex_status collective_broadcast(struct collective *c, void *data, size_t size, struct chex_error *err);

/*
 * Gather the data of all ranks on every rank.  *all (its old content is discarded) receives the data of rank 0, rank 1
 * and so on; sizes[r] is the number of bytes of rank r (an array of collective_size(), or NULL).  `size` may differ
 * between ranks.  CHEX_ERR_LIMIT: more than COMM_MAX_MESSAGE - 64
 */
enum chex_status collective_allgather(struct collective *c, const void *data, size_t size, struct buffer *all,
                                      size_t *sizes, struct chex_error *err);

/* Replace each number by its sum over the ranks; count is the same on all ranks.  Errors as in allgather. */
enum chex_status collective_add(struct collective *c, uint64_t *number, size_t count, struct chex_error *err);

/*
 * A meeting: combine the status of all ranks.  status and *err are the result of this rank; *flags (may be NULL)
 * becomes the OR over the ranks.  Returns on all ranks the status of the lowest rank with an error (preferring errors
 * other than CHEX_ERR_STOPPED), with its text in *err, and with the prefix "rank 3 n07: " on all other ranks.
 */
enum chex_status collective_agree(struct collective *c, enum chex_status status, uint64_t *flags,
                                  struct chex_error *err);

/*
 * Check that all ranks run with equal settings.  `text` has lines "NAME VALUE\n" in the same order on all ranks.  It is
 * a meeting too: status and *err as in collective_agree().  CHEX_ERR_USAGE "rank 3 n07 does not do the same as rank 0:
 * it has 'seed 7', rank 0 'seed 1'"
 */
enum chex_status collective_compare(struct collective *c, enum chex_status status, const char *text,
                                    struct chex_error *err);

/*
 * Returns true if a rank is lost, or if transfers were abandoned after a failure.  Then end with collective_abort(),
 * not with close().
 */
bool collective_broken(const struct collective *c);
/* Returns whether this rank reports errors to the user: rank 0, or the lowest rank that is not lost. */
bool collective_reports_errors(const struct collective *c);
/*
 * End all processes with this exit code (comm.h).  A rank that does not report errors first waits two seconds for the
 * rank that does.  With a single process: does nothing.  If collective_broken(), call it before collective_free().
 */
void collective_abort(struct collective *c, int exit_code);

#endif
