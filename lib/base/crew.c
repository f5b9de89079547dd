/*
 * crew.c - see crew.h
 *
 * A report and a verdict are one message each: "STATUS\nHOST\nTEXT\n" and the data behind it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/crew.h"

#include "base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG_REPORT = 1, TAG_VERDICT, TAG_PROGRESS, TAG_STOP, TAG_BEAT };

/* A waiting process looks this often whether something came. */
#define PAUSE_NANOSECONDS 5000000

/* Seconds between two words of progress. */
#define PROGRESS_SECONDS 0.4

enum chex_status
crew_init(struct crew *crew, struct comm *comm, struct chex_error *err)
{
    int i;

    *crew = (struct crew){.comm = comm, .silence = CREW_SILENCE, .spoke = progress_clock()};
    if (gethostname(crew->host, sizeof(crew->host)) != 0 || !crew->host[0])
        snprintf(crew->host, sizeof(crew->host), "unknown");
    crew->host[sizeof(crew->host) - 1] = '\0';
    crew->peer = calloc((size_t)comm->size, sizeof(*crew->peer));
    if (!crew->peer)
        return chex_fail_memory(err);
    for (i = 0; i < comm->size; i++)
        crew->peer[i].heard = crew->spoke;
    return CHEX_OK;
}

void
crew_release(struct crew *crew)
{
    int i;

    for (i = 0; crew->peer && i < crew->comm->size; i++)
        buffer_release(&crew->peer[i].data);
    free(crew->peer);
    buffer_release(&crew->message.data);
    crew->peer = NULL;
}

/* ---- sending -------------------------------------------------------------------------------------------------- */

/* Nobody is waited for any more. */
static void
give_up(struct crew *crew, enum chex_status status, const struct chex_error *why)
{
    if (crew->broken != CHEX_OK)
        return;
    crew->broken = status;
    crew->why = *why;
    atomic_store(&crew->stop, true);
}

static void
send_to(struct crew *crew, int to, int tag, const void *data, size_t size)
{
    struct chex_error err = {.status = CHEX_OK};
    enum chex_status status;

    if (crew->broken != CHEX_OK)
        return;
    status = crew->comm->ops->send(crew->comm, to, tag, data, size, &err);
    if (status != CHEX_OK)
        give_up(crew, status, &err);
}

/* The lead to all others, the others to the lead. */
static void
send_around(struct crew *crew, int tag, const void *data, size_t size)
{
    int to;

    crew->spoke = progress_clock();
    if (!crew_leads(crew)) {
        send_to(crew, 0, tag, data, size);
        return;
    }
    for (to = 1; to < crew->comm->size; to++)
        send_to(crew, to, tag, data, size);
}

static void
say_how_it_was(struct crew *crew, int tag, enum chex_status status, const struct buffer *data,
               const struct chex_error *err)
{
    char head[CREW_HOST + CHEX_ERROR_TEXT + 32];
    int length = snprintf(head, sizeof(head), "%d\n%s\n%s\n", (int)status, crew->host,
                          status != CHEX_OK && err ? err->text : "");
    struct buffer b = {0};
    enum chex_status made = buffer_append(&b, head, (size_t)length, NULL);

    if (made == CHEX_OK && data && data->size > 0)
        made = buffer_append(&b, data->data, data->size, NULL);
    if (made == CHEX_OK) {
        send_around(crew, tag, b.data, b.size);
    } else {
        struct chex_error why;

        give_up(crew, chex_fail_memory(&why), &why);
    }
    buffer_release(&b);
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

/* One line of a message's head; the rest behind it.  False where there is none. */
static bool
take_line(const char **p, size_t *left, char *out, size_t size)
{
    const char *end = memchr(*p, '\n', *left);
    size_t length = end ? (size_t)(end - *p) : 0;

    if (!end || length >= size)
        return false;
    memcpy(out, *p, length);
    out[length] = '\0';
    *p += length + 1;
    *left -= length + 1;
    return true;
}

static void
hear_how_it_was(struct crew *crew, struct crew_peer *peer, const struct buffer *b)
{
    const char *p = (const char *)b->data;
    size_t left = b->size;
    struct chex_error why;
    char number[16];

    if (left == 0 || !take_line(&p, &left, number, sizeof(number)) ||
        !take_line(&p, &left, peer->host, sizeof(peer->host)) ||
        !take_line(&p, &left, peer->text, sizeof(peer->text))) {
        give_up(crew, chex_fail(&why, CHEX_ERR_BUG, "a message that is none of ours"), &why);
        return;
    }
    peer->status = (enum chex_status)atoi(number);
    peer->data.size = 0;
    if (left > 0 && buffer_append(&peer->data, p, left, &why) != CHEX_OK)
        give_up(crew, CHEX_ERR_MEMORY, &why);
}

void
crew_stop(struct crew *crew)
{
    atomic_store(&crew->stop, true);
    if (crew->told)
        return;
    crew->told = true;
    send_around(crew, TAG_STOP, NULL, 0);
}

static void
hear(struct crew *crew, const struct comm_message *m)
{
    struct crew_peer *peer = &crew->peer[m->from];
    char text[64];
    size_t size = m->data.size < sizeof(text) - 1 ? m->data.size : sizeof(text) - 1;

    peer->heard = progress_clock();
    switch (m->tag) {
    case TAG_REPORT:
        hear_how_it_was(crew, peer, &m->data);
        peer->reported = true;
        if (peer->status != CHEX_OK)
            crew_stop(crew);
        break;
    case TAG_VERDICT:
        hear_how_it_was(crew, peer, &m->data);
        crew->verdict_known = true;
        break;
    case TAG_PROGRESS:
        if (size > 0)
            memcpy(text, m->data.data, size);
        text[size] = '\0';
        if (sscanf(text, "%" SCNu64 " %" SCNu64, &peer->done, &peer->rejects) != 2)
            peer->done = peer->rejects = 0;
        break;
    case TAG_STOP:
        /* The lead tells everyone; others were told. */
        if (crew_leads(crew))
            crew_stop(crew);
        crew->told = true;
        atomic_store(&crew->stop, true);
        break;
    default:
        break;
    }
}

/* ---- in touch ------------------------------------------------------------------------------------------------- */

static void
look_for_lost(struct crew *crew)
{
    int first = crew_leads(crew) ? 1 : 0, last = crew_leads(crew) ? crew->comm->size - 1 : 0, i;
    double now = progress_clock();

    for (i = first; i <= last; i++) {
        const struct crew_peer *peer = &crew->peer[i];
        double patience = crew->silence * (peer->host[0] ? 1 : 6);
        struct chex_error why;

        if (now - peer->heard > patience)
            give_up(crew,
                    chex_fail(&why, CHEX_ERR_LOST,
                              "rank %d%s%s is lost: not a word for %.0f s; the same command again goes on", i,
                              peer->host[0] ? " " : "", peer->host, patience),
                    &why);
    }
}

void
crew_tick(struct crew *crew)
{
    bool arrived = crew->comm->size > 1;

    while (arrived && crew->broken == CHEX_OK) {
        struct chex_error why = {.status = CHEX_OK};
        enum chex_status status = crew->comm->ops->poll(crew->comm, &crew->message, &arrived, &why);

        if (status != CHEX_OK)
            give_up(crew, status, &why);
        else if (arrived && crew->message.from >= 0 && crew->message.from < crew->comm->size)
            hear(crew, &crew->message);
    }
    if (crew->user_stop && atomic_load(crew->user_stop))
        crew_stop(crew);
    if (crew->comm->size == 1)
        return;
    if (progress_clock() - crew->spoke > crew->silence / 20)
        send_around(crew, TAG_BEAT, NULL, 0);
    look_for_lost(crew);
}

void
crew_progress(struct crew *crew, uint64_t done, uint64_t rejects)
{
    crew_tick(crew);
    if (progress_clock() - crew->spoke >= PROGRESS_SECONDS)
        crew_progress_now(crew, done, rejects);
}

void
crew_progress_now(struct crew *crew, uint64_t done, uint64_t rejects)
{
    char text[64];

    if (crew_leads(crew) || (done == crew->said_done && rejects == crew->said_rejects))
        return;
    crew->said_done = done;
    crew->said_rejects = rejects;
    snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, done, rejects);
    send_around(crew, TAG_PROGRESS, text, strlen(text));
}

void
crew_sum(const struct crew *crew, uint64_t *done, uint64_t *rejects)
{
    int i;

    *done = *rejects = 0;
    for (i = 1; i < crew->comm->size; i++) {
        *done += crew->peer[i].done;
        *rejects += crew->peer[i].rejects;
    }
}

/* ---- meetings ------------------------------------------------------------------------------------------------- */

static void
pause_and_tick(struct crew *crew)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NANOSECONDS};

    nanosleep(&pause, NULL);
    crew_tick(crew);
    if (crew->idle)
        crew->idle(crew->context);
}

static bool
all_reported(const struct crew *crew)
{
    int i;

    for (i = 1; i < crew->comm->size; i++)
        if (!crew->peer[i].reported)
            return false;
    return true;
}

/* The first real error, in the order of ranks; else the first that was stopped. */
static enum chex_status
first_error(struct crew *crew, enum chex_status own, struct chex_error *err)
{
    enum chex_status status = own;
    int i;

    for (i = 1; i < crew->comm->size && (status == CHEX_OK || status == CHEX_ERR_STOPPED); i++) {
        const struct crew_peer *peer = &crew->peer[i];

        if (peer->status == CHEX_OK || (peer->status == CHEX_ERR_STOPPED && status == CHEX_ERR_STOPPED))
            continue;
        status = chex_fail(err, peer->status, "rank %d %s: %s", i, peer->host, peer->text);
    }
    return status;
}

/*
 * How it ended for one whose crew is broken: an error of its own explains more than the loss that followed it.  But who
 * only stopped, and not since the user wished it, stopped because of the loss.
 */
static enum chex_status
broken_status(const struct crew *crew, enum chex_status own, struct chex_error *err)
{
    bool wished = crew->user_stop && atomic_load(crew->user_stop);

    if (own != CHEX_OK && (own != CHEX_ERR_STOPPED || wished))
        return own;
    return chex_fail(err, crew->broken, "%s", crew->why.text);
}

enum chex_status
crew_report(struct crew *crew, enum chex_status status, const struct buffer *data, struct chex_error *err)
{
    if (!crew_leads(crew)) {
        crew->verdict_known = false;
        say_how_it_was(crew, TAG_REPORT, status, data, err);
        return status;
    }
    if (status != CHEX_OK)
        crew_stop(crew);
    while (!all_reported(crew) && crew->broken == CHEX_OK)
        pause_and_tick(crew);
    /* What the others reported, or did not, is nobody's result any more. */
    return crew->broken == CHEX_OK ? first_error(crew, status, err) : broken_status(crew, status, err);
}

enum chex_status
crew_verdict(struct crew *crew, enum chex_status status, struct buffer *data, struct chex_error *err)
{
    int i;

    if (crew->comm->size == 1)
        return status;
    if (crew_leads(crew)) {
        for (i = 1; i < crew->comm->size; i++)
            crew->peer[i].reported = false;
        say_how_it_was(crew, TAG_VERDICT, status, data, err);
    } else {
        while (!crew->verdict_known && crew->broken == CHEX_OK)
            pause_and_tick(crew);
        if (crew->broken == CHEX_OK) {
            status = crew->peer[0].status;
            if (data)
                data->size = 0;
            if (status != CHEX_OK) {
                chex_fail(err, status, "%s", crew->peer[0].text);
            } else if (data && crew->peer[0].data.size > 0) {
                status = buffer_append(data, crew->peer[0].data.data, crew->peer[0].data.size, err);
            }
        }
    }
    if (crew->broken == CHEX_OK)
        return status;
    return crew_leads(crew) ? broken_status(crew, status, err) : chex_fail(err, crew->broken, "%s", crew->why.text);
}

enum chex_status
crew_agree(struct crew *crew, enum chex_status status, struct chex_error *err)
{
    return crew_verdict(crew, crew_report(crew, status, NULL, err), NULL, err);
}
