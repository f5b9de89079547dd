/*
 * crew.h - several processes that go through the same phases, with rank 0 as their lead
 *
 * At the end of a phase all meet: each says how it ended (crew_report), the lead waits for all, does what is its alone
 * to do, and says how the phase ended for the whole crew (crew_verdict).  So an error of one is the error of all, and
 * nobody waits for one that has given up.  Between the meetings crew_tick() keeps them in touch: numbers of progress go
 * to the lead, a wish to stop goes to everyone, and one of whom nothing is heard for long is called lost.
 *
 * With one process all of this is there and does nothing.  One thread uses it, that of comm.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CREW_H
#define CHEX_LIB_CREW_H

#include "base/comm.h"

#include <stdatomic.h>

/* Seconds without a word after which a process is lost; before its first word, six times as many. */
#define CREW_SILENCE 300.0

#define CREW_HOST 64

/* What the lead knows of another, and the others of the lead. */
struct crew_peer {
    char host[CREW_HOST]; /* empty before its first report */
    double heard;         /* progress_clock() of its last word */
    uint64_t done, rejects;
    bool reported; /* in this phase */
    enum chex_status status;
    char text[CHEX_ERROR_TEXT];
    struct buffer data; /* what it reported */
};

struct crew {
    struct comm *comm;
    double silence; /* CREW_SILENCE; shorter in tests */
    struct crew_peer *peer;
    char host[CREW_HOST];
    struct comm_message message;

    atomic_bool stop;             /* for the work of this process: the user's wish, the lead's, or an error elsewhere */
    const atomic_bool *user_stop; /* may be NULL */
    bool told;                    /* the others of the wish */
    bool verdict_known;           /* others: it came */
    double spoke;                 /* when this process last sent to all it must */
    uint64_t said_done, said_rejects;
    enum chex_status broken; /* CHEX_OK while all are there; else nobody is waited for any more */
    struct chex_error why;
    void (*idle)(void *context); /* called while waiting; may be NULL */
    void *context;
};

/* crew_release() frees it, also after a failure.  comm must outlive it. */
enum chex_status crew_init(struct crew *crew, struct comm *comm, struct chex_error *err);
void crew_release(struct crew *crew);

static inline bool
crew_leads(const struct crew *crew)
{
    return crew->comm->rank == 0;
}

/* Keep in touch; five times a second or so.  After it crew->stop is up to date. */
void crew_tick(struct crew *crew);
/* The same, with how far this process is, now and then. */
void crew_progress(struct crew *crew, uint64_t done, uint64_t rejects);
/* At once, without the rest: before a report where the lead needs the numbers, which are there when the report is. */
void crew_progress_now(struct crew *crew, uint64_t done, uint64_t rejects);
/* All processes are to stop after the work at hand. */
void crew_stop(struct crew *crew);
/* The lead: the sums of what the others said. */
void crew_sum(const struct crew *crew, uint64_t *done, uint64_t *rejects);

/*
 * The end of a phase: how it was for this process (status and *err), and data for the lead.  The lead waits for all
 * others: *err is then the first error, with "rank 3 n07: " before it, of whoever did not just stop because another had
 * failed; crew->peer[r].data is what rank r reported.  Others get their own status back, and go on to crew_verdict().
 * Where one is lost the lead gets CHEX_ERR_LOST and not CHEX_OK: what is there of the others must not be used.
 */
enum chex_status crew_report(struct crew *crew, enum chex_status status, const struct buffer *data,
                             struct chex_error *err);
/*
 * How the phase ended for all: the lead says it, with data for the others, which get it in *data (may be NULL).
 * Returns what the lead was given.  CHEX_ERR_LOST: "rank 3 n07 is lost: not a word for 300 s".
 */
enum chex_status crew_verdict(struct crew *crew, enum chex_status status, struct buffer *data, struct chex_error *err);

/* Both, where the lead has nothing to add. */
enum chex_status crew_agree(struct crew *crew, enum chex_status status, struct chex_error *err);

#endif
