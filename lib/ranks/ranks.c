/*
 * ranks.c - see ranks.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ranks/ranks.h"

#include "base/ascii.h"

#include "base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Messages of two barriers may be in flight at once.  Barriers alternate between the tags TAG_BARRIER and TAG_BARRIER +
 * 1.
 */
enum { TAG_STOP = 1, TAG_BEAT, TAG_BARRIER };

/* Time between two polls of a waiting rank. */
#define PAUSE_NANOSECONDS 5000000

#define MAGIC 0x63785231u

/* The head of a barrier's message; a text follows it.  All ranks have the same byte order. */
struct message_head {
    uint32_t magic;
    int32_t status;
    uint64_t sum[RANKS_SUMS];
    char host[RANKS_HOST];
};

enum chex_status
ranks_init(struct ranks *r, struct comm *comm, struct chex_error *err)
{
    char *host;
    int i;

    *r = (struct ranks){.comm = comm, .silence = RANKS_SILENCE, .last_sent = progress_clock()};
    r->peer = calloc((size_t)comm->size, sizeof(*r->peer));
    if (!r->peer)
        return error_memory(err);
    for (i = 0; i < comm->size; i++)
        r->peer[i].last_heard = r->last_sent;
    host = r->peer[comm->rank].host;
    if (gethostname(host, RANKS_HOST) != 0 || !host[0])
        snprintf(host, RANKS_HOST, "unknown");
    host[RANKS_HOST - 1] = '\0';
    return CHEX_OK;
}

void
ranks_release(struct ranks *r)
{
    int i;

    for (i = 0; r->peer && i < r->comm->size; i++) {
        buffer_release(&r->peer[i].word[0]);
        buffer_release(&r->peer[i].word[1]);
    }
    free(r->peer);
    buffer_release(&r->message.data);
    r->peer = NULL;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* Stop waiting for other ranks. */
static void
give_up(struct ranks *r, enum chex_status status, const struct chex_error *why)
{
    if (r->broken != CHEX_OK)
        return;
    r->broken = status;
    r->why = *why;
    atomic_store(&r->stop, true);
}

static void
send_to_peers(struct ranks *r, int tag, const void *data, size_t size)
{
    struct chex_error err = {.status = CHEX_OK};
    enum chex_status status = CHEX_OK;
    int to;

    r->last_sent = progress_clock();
    for (to = 0; status == CHEX_OK && r->broken == CHEX_OK && to < r->comm->size; to++)
        if (to != r->comm->rank)
            status = r->comm->ops->send(r->comm, to, tag, data, size, &err);
    if (status != CHEX_OK)
        give_up(r, status, &err);
}

/* Keep the message of a barrier until this rank reaches that barrier.  An error in it stops this rank at once. */
static void
keep(struct ranks *r, struct comm_message *m)
{
    struct ranks_peer *peer = &r->peer[m->from];
    struct buffer *word = &peer->word[m->tag - TAG_BARRIER], spare = *word;
    struct chex_error why;
    struct message_head head = {0};

    if (m->data.size >= sizeof(head))
        memcpy(&head, m->data.data, sizeof(head));
    if (m->data.size < sizeof(head) || head.magic != MAGIC) {
        give_up(r, error_set(&why, CHEX_ERR_USAGE, "rank %d runs another version of this program", m->from), &why);
        return;
    }
    snprintf(peer->host, sizeof(peer->host), "%.*s", RANKS_HOST - 1, head.host);
    *word = m->data;
    m->data = spare;
    if (head.status != CHEX_OK)
        atomic_store(&r->stop, true);
}

static void
hear(struct ranks *r, struct comm_message *m)
{
    r->peer[m->from].last_heard = progress_clock();
    if (m->tag == TAG_BARRIER || m->tag == TAG_BARRIER + 1) {
        keep(r, m);
    } else if (m->tag == TAG_STOP) {
        r->warned = true; /* that rank has told all peers */
        atomic_store(&r->stop, true);
    }
}

/* Rank 0 watches all peers, and they watch rank 0.  So only one rank reports a loss. */
static void
look_for_lost(struct ranks *r)
{
    int first = r->comm->rank == 0 ? 1 : 0, last = r->comm->rank == 0 ? r->comm->size - 1 : 0, i;
    double now = progress_clock();

    for (i = first; i <= last; i++) {
        const struct ranks_peer *peer = &r->peer[i];
        double patience = r->silence * (peer->host[0] ? 1 : 6);
        struct chex_error why;

        if (now - peer->last_heard > patience)
            give_up(r,
                    error_set(&why, CHEX_ERR_LOST,
                              "rank %d%s%s is lost: not a word for %.0f s; the same command again resumes", i,
                              peer->host[0] ? " " : "", peer->host, patience),
                    &why);
    }
}

void
ranks_poll(struct ranks *r)
{
    bool arrived = r->comm->size > 1;

    while (arrived && r->broken == CHEX_OK) {
        struct chex_error why = {.status = CHEX_OK};
        enum chex_status status = r->comm->ops->poll(r->comm, &r->message, &arrived, &why);

        if (status != CHEX_OK)
            give_up(r, status, &why);
        else if (arrived && r->message.from >= 0 && r->message.from < r->comm->size)
            hear(r, &r->message);
    }
    if (r->user_stop && atomic_load(r->user_stop)) {
        atomic_store(&r->stop, true);
        if (!r->warned)
            send_to_peers(r, TAG_STOP, NULL, 0);
        r->warned = true;
    }
    if (r->comm->size == 1)
        return;
    if (progress_clock() - r->last_sent > r->silence / 20)
        send_to_peers(r, TAG_BEAT, NULL, 0);
    look_for_lost(r);
}

/* ---- barriers ------------------------------------------------------------------------------------------------- */

/*
 * Returns the status of a rank whose peers did not all arrive.  Its own error explains more than the loss that
 * followed.  But a rank that stopped without a request of the user stopped because of the loss.
 */
static enum chex_status
broken_status(const struct ranks *r, enum chex_status own, struct chex_error *err)
{
    bool requested = r->user_stop && atomic_load(r->user_stop);

    if (own != CHEX_OK && (own != CHEX_ERR_STOPPED || requested))
        return own;
    return error_set(err, r->broken, "%s", r->why.text);
}

/* Returns the text of a rank's message, *size bytes, and copies its head. */
static const char *
word_of(const struct ranks *r, int rank, struct message_head *head, size_t *size)
{
    const struct buffer *word = &r->peer[rank].word[r->barrier % 2];

    memcpy(head, word->data, sizeof(*head));
    *size = word->size - sizeof(*head);
    return (const char *)word->data + sizeof(*head);
}

static bool
all_arrived(const struct ranks *r)
{
    int i;

    for (i = 0; i < r->comm->size; i++)
        if (r->peer[i].word[r->barrier % 2].size == 0)
            return false;
    return true;
}

/* Sum the numbers, and find the first error in the order of ranks; a stop counts only if there is no other error. */
static enum chex_status
worst_status(const struct ranks *r, uint64_t *sum, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    const char *text = NULL;
    struct message_head head;
    size_t size = 0, length, k;
    int worst = 0, i;

    if (sum)
        memset(sum, 0, sizeof(head.sum));
    for (i = 0; i < r->comm->size; i++) {
        const char *words = word_of(r, i, &head, &length);
        enum chex_status theirs = (enum chex_status)head.status;

        for (k = 0; sum && k < RANKS_SUMS; k++)
            sum[k] += head.sum[k];
        if (status == CHEX_OK || (status == CHEX_ERR_STOPPED && theirs != CHEX_OK && theirs != status)) {
            status = theirs;
            text = words;
            size = length;
            worst = i;
        }
    }
    if (status == CHEX_OK || worst == r->comm->rank)
        return status;
    if (worst == 0)
        return error_set(err, status, "%.*s", (int)size, text);
    return error_set(err, status, "rank %d %s: %.*s", worst, r->peer[worst].host, (int)size, text);
}

/*
 * Send this rank's message (its text is the error's or the given one) and wait for the messages of all peers.  All
 * messages are kept until pass().
 */
static enum chex_status
meet(struct ranks *r, enum chex_status status, uint64_t *sum, const char *text, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NANOSECONDS};
    struct ranks_peer *self = &r->peer[r->comm->rank];
    struct buffer *word = &self->word[r->barrier % 2];
    struct message_head head = {.magic = MAGIC, .status = (int32_t)status};
    struct chex_error why;

    if (r->comm->size == 1)
        return status;
    memcpy(head.host, self->host, sizeof(head.host));
    if (sum)
        memcpy(head.sum, sum, sizeof(head.sum));
    if (status != CHEX_OK)
        text = err ? err->text : "";
    if (buffer_append(word, &head, sizeof(head), &why) != CHEX_OK ||
        buffer_append(word, text, strlen(text), &why) != CHEX_OK)
        give_up(r, CHEX_ERR_MEMORY, &why);
    send_to_peers(r, TAG_BARRIER + (int)(r->barrier % 2), word->data, word->size);
    ranks_poll(r);
    while (!all_arrived(r) && r->broken == CHEX_OK) {
        nanosleep(&pause, NULL);
        ranks_poll(r);
    }
    return r->broken == CHEX_OK ? worst_status(r, sum, err) : broken_status(r, status, err);
}

/* Begin the next barrier. */
static void
pass(struct ranks *r)
{
    int i;

    for (i = 0; i < r->comm->size; i++)
        r->peer[i].word[r->barrier % 2].size = 0;
    r->barrier++;
}

enum chex_status
ranks_barrier(struct ranks *r, enum chex_status status, uint64_t *sum, struct chex_error *err)
{
    status = meet(r, status, sum, "", err);
    pass(r);
    return status;
}

enum chex_status
ranks_compare(struct ranks *r, enum chex_status status, const char *text, struct chex_error *err)
{
    char here[256], there[256];
    struct message_head head;
    int i;

    status = meet(r, status, NULL, text, err);
    for (i = 1; status == CHEX_OK && i < r->comm->size; i++) {
        size_t first_size, size;
        const char *first = word_of(r, 0, &head, &first_size), *other = word_of(r, i, &head, &size);

        if (ascii_find_difference(first, first_size, other, size, here, there, sizeof(here)))
            status = error_set(err, CHEX_ERR_USAGE,
                               "rank %d %s does not do the same as rank 0: it has '%s', rank 0 '%s'", i,
                               r->peer[i].host, there, here);
    }
    pass(r);
    return status;
}
