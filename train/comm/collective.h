/*
 * collective.h - what the ranks of one training run do together: allreduce, broadcast, allgather, consensus of status
 *
 * Every rank makes the same calls in the same order.  Nothing waits inside the library of messages (comm.h): a rank
 * that waits polls, and sends a heartbeat to its peers.  A rank that died, hangs in I/O or was stopped sends none, and
 * its peers name it: "no progress for 300 s; waiting for rank 3 n07".
 *
 * A step of training is one allreduce: each bucket of gradients that became final is started, collective_poll() moves
 * them on, and collective_allreduce_wait() ends when all are there (reduce_host.h).  Ranks meet, collective_agree(),
 * where all of them know that they do: after an epoch, before a checkpoint, after a fault that came with the sums.
 * Inside of sums nothing is expected to fail: a rank that fails there leaves transfers that never end,
 * collective_broken() is true, and the run can only be aborted.
 *
 * An error of another rank comes back from whatever this one waits in, with "rank 3 n07: " before the text; then all
 * meet in collective_agree(), with whatever status they have, and get the same.
 *
 * A process that is alone (size 1) has all of this; each call returns at once, and leaves the data as they are.
 *
 * One thread of a process uses it, the one that opened the comm.  All data are in host memory; all processes run on
 * machines of the same byte order.  Any call but free may fail with CHEX_ERR_LOST, CHEX_ERR_MEMORY, CHEX_ERR_BUG (ranks
 * that make different calls), or with the error of another rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_COLLECTIVE_H
#define CHEX_TRAIN_COLLECTIVE_H

#include "base/comm.h"

#include <stdatomic.h>

#define COLLECTIVE_TIMEOUT 300.0 /* seconds */
#define COLLECTIVE_GRACE   5.0

struct collective;

struct collective_options {
    /*
     * Seconds of waiting without a word from a rank after which it is lost; 0: COLLECTIVE_TIMEOUT.  While the processes
     * start, six times as many.  The longest time that a rank computes or writes without a call here must be shorter.
     */
    double timeout;

    /*
     * Set by the handler of SIGTERM; may be NULL.  The sender may have lost a rank, and may end this process soon:
     * from then on a rank that is silent for `grace` seconds (0: COLLECTIVE_GRACE; or three times the longest silence
     * so far) is lost.  Once all ranks have met after it, every rank is there, and the timeout counts again:
     * saving may take longer.
     */
    const atomic_bool *terminating;
    double grace;

    void (*on_wait)(void *context); /* called while waiting, up to a thousand times a second; may be NULL */

    /*
     * Called once, half a second after SIGTERM, on the rank that speaks: "waiting for rank 3 n07".  Where a rank was
     * killed mpirun leaves the others about one second to say so.  May be NULL.
     */
    void (*warn_waiting)(void *context, const char *text);
    void *context;
};

/*
 * All ranks meet and learn each other's host.  The options are copied; comm must outlive it.  *out is the caller's:
 * collective_free().  On failure *out is NULL, and where comm->size > 1 the caller ends with comm->ops->abort().
 */
enum chex_status collective_new(struct comm *comm, const struct collective_options *options, struct collective **out,
                                struct chex_error *err);
void collective_free(struct collective *c); /* NULL is allowed */

int collective_rank(const struct collective *c);
int collective_size(const struct collective *c);
const char *collective_host(const struct collective *c, int rank); /* lives as long as c */
/* Ranks of this machine, and the place of this one among them. */
int collective_local_rank(const struct collective *c);
int collective_local_size(const struct collective *c);

/*
 * Seconds that this rank has waited for others so far, in any call but collective_watch(): whoever calls that waits for
 * its own device, and knows what for.
 */
double collective_waited(const struct collective *c);

/*
 * The sum over the ranks, in place, in the order of the ranks, ((x0 + x1) + x2) + ...: the same bits on every rank and
 * in every run.  start() returns at once; several sums may be under way, of disjoint data.  Until wait() returns data
 * is neither read nor written by the caller, and it stays where it is.  poll() moves the sums on, and may be called at
 * any time, also without a sum: a rank that computes for long tells the others that it lives.  wait() ends when all are
 * done.
 *
 * Doubles: 29 bits behind those of a float.  So the sum of floats is exact, but where one is 2^29 times another, and
 * does not depend on how many of them were added up by each rank before.
 */
enum chex_status collective_allreduce_start(struct collective *c, double *data, size_t count, struct chex_error *err);
enum chex_status collective_poll(struct collective *c, struct chex_error *err);
enum chex_status collective_allreduce_wait(struct collective *c, struct chex_error *err);

/*
 * While this rank waits for what others do elsewhere, as sums that GPUs make by themselves: called again and again, it
 * sends heartbeats and listens.  Fails with CHEX_ERR_LOST where a rank has been silent for the timeout, and with the
 * error of a rank that gave up; all is well with a rank that has come to a meeting.  `waited` is the time of such calls
 * one behind the other so far, 0 with the first of them; a turn counts at most one second.
 */
enum chex_status collective_watch(struct collective *c, double *waited, struct chex_error *err);
double collective_timeout(const struct collective *c);
/* Have all ranks been heard since collective_watch() waited for so long? */
bool collective_heard_all(const struct collective *c, double seconds);

/* From rank 0 to all, size bytes in place; size is the same on all ranks. */
enum chex_status collective_broadcast(struct collective *c, void *data, size_t size, struct chex_error *err);

/*
 * What every rank has, to every rank: *all (reused; its old content is gone) holds the data of rank 0, rank 1 and so on
 * one behind the other, sizes[r] bytes of rank r (an array of collective_size(), or NULL).  size differs from rank to
 * rank as it will, up to COMM_MAX_MESSAGE - 64: CHEX_ERR_LIMIT.
 */
enum chex_status collective_allgather(struct collective *c, const void *data, size_t size, struct buffer *all,
                                      size_t *sizes, struct chex_error *err);

/*
 * A meeting.  status and *err are how it is for this rank; *flags (may be NULL) becomes the OR over the ranks.  Returns
 * on all ranks the status of the first in the order of ranks that has an error (one that is not CHEX_ERR_STOPPED, where
 * there is one), and puts its text into *err, with "rank 3 n07: " before it on all others.
 */
enum chex_status collective_agree(struct collective *c, enum chex_status status, uint64_t *flags,
                                  struct chex_error *err);

/*
 * Do all ranks do the same?  text is lines "NAME VALUE\n" of what must be equal, in the same order on all.  A meeting
 * too: status and *err as with collective_agree().
 * CHEX_ERR_USAGE  "rank 3 n07 does not do the same as rank 0: it has 'seed 7', rank 0 'seed 1'"
 */
enum chex_status collective_compare(struct collective *c, enum chex_status status, const char *text,
                                    struct chex_error *err);

/* A rank is lost, or failed while transfers were under way: the process ends by collective_abort(), not by close(). */
bool collective_broken(const struct collective *c);
/* Is it this rank that tells the user?  Rank 0, or where that is lost the first that is not. */
bool collective_speaks(const struct collective *c);
/* End all processes with this exit code (comm.h); a rank that does not speak waits two seconds for the one that does.
 * Alone: nothing.  Where collective_broken() it comes before collective_free(). */
void collective_abort(struct collective *c, int exit_code);

#endif
