/*
 * collective_wait.c - implements collective_private.h: receiving, heartbeats, waiting, and lost ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ranks/collective_private.h"

#include "base/clock.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between two heartbeats of a waiting rank; less if the timeout is short. */
#define BEAT_SECONDS 1.0

/* An iteration of waiting counts at most this long: in a longer one the process was suspended. */
#define TURN_SECONDS 1.0

/* Seconds from the signal to warn_waiting(), or half of the grace if that is less. */
#define WARN_SECONDS 0.5

/* Iterations without a pause, and the lengths of the pauses after them. */
#define BUSY_TURNS  100
#define SHORT_PAUSE 20e-6
#define LONG_PAUSE  1e-3 /* s */

/* ---- messages ------------------------------------------------------------------------------------------------- */

void
letter_free(struct letter *letter)
{
    if (letter)
        buffer_release(&letter->data);
    free(letter);
}

struct letter *
letter_take(struct peer *peer)
{
    struct letter *letter = peer->first;

    if (letter) {
        peer->first = letter->next;
        if (!peer->first)
            peer->last = &peer->first;
    }
    return letter;
}

static enum chex_status
keep(struct peer *peer, struct comm_message *m, struct chex_error *err)
{
    struct letter *letter;

    if ((m->tag != TAG_GATHER && m->tag != TAG_MEET) || m->data.size < sizeof(struct head))
        return error_set(err, CHEX_ERR_BUG, "a message of rank %d that is none of ours", m->from);
    letter = calloc(1, sizeof(*letter));
    if (!letter)
        return error_memory(err);
    letter->tag = m->tag;
    memcpy(&letter->head, m->data.data, sizeof(letter->head));
    letter->data = m->data; /* ownership moves */
    m->data = (struct buffer){0};
    *peer->last = letter;
    peer->last = &letter->next;
    return CHEX_OK;
}

enum chex_status
collective_lose(struct collective *c, struct chex_error *err)
{
    return error_set(err, c->why.status, "%s", c->why.text);
}

/* Handle an error of the comm itself: all peers are lost. */
static enum chex_status
fail_comm(struct collective *c, enum chex_status status, struct chex_error *err)
{
    if (status == CHEX_ERR_LOST && !c->lost) {
        c->lost = true;
        c->why = *err;
    }
    return status;
}

static enum chex_status
listen_to_all(struct collective *c, struct chex_error *err)
{
    struct chex_error why = {.status = CHEX_OK};
    enum chex_status status = CHEX_OK;
    bool arrived = true;

    for (;;) {
        struct peer *peer;

        status = c->comm->ops->poll(c->comm, &c->message, &arrived, &why);
        if (status != CHEX_OK) {
            fail_comm(c, status, &why);
            return error_set(err, status, "%s", why.text);
        }
        if (!arrived)
            return CHEX_OK;
        peer = &c->peer[c->message.from];
        if (c->waited - peer->last_heard > c->silence)
            c->silence = c->waited - peer->last_heard;
        peer->last_heard = c->waited;
        if (c->message.tag != TAG_BEAT)
            status = keep(peer, &c->message, err);
        else
            c->stop_asked = c->stop_asked || c->message.data.size > 0;
        if (status != CHEX_OK)
            return status;
    }
}

bool
collective_stop_asked(const struct collective *c)
{
    return c->stop_asked || (c->options.stop && atomic_load(c->options.stop));
}

/* Send a heartbeat if it is time.  It has one byte if a user asked to stop, else none. */
static enum chex_status
beat(struct collective *c, struct chex_error *err)
{
    double every = c->options.timeout / 10 < BEAT_SECONDS ? c->options.timeout / 10 : BEAT_SECONDS;
    double now = clock_now();
    enum chex_status status = CHEX_OK;
    int i;

    c->stop_asked = collective_stop_asked(c);
    if (now - c->last_sent < every && c->stop_sent == c->stop_asked)
        return CHEX_OK;
    c->last_sent = now;
    c->stop_sent = c->stop_asked;
    for (i = 0; status == CHEX_OK && i < c->comm->size; i++)
        if (i != c->comm->rank)
            status = c->comm->ops->send(c->comm, i, TAG_BEAT, "", c->stop_asked, err);
    return status == CHEX_OK ? CHEX_OK : fail_comm(c, status, err);
}

/* ---- errors of other ranks ------------------------------------------------------------------------------------ */

enum chex_status
letter_error(const struct collective *c, int rank, const struct letter *letter, struct chex_error *err)
{
    int size = (int)(letter->data.size - sizeof(letter->head));
    const char *text = (const char *)letter->data.data + sizeof(letter->head);

    return error_set(err, (enum chex_status)letter->head.status, "rank %d %s: %.*s", rank, c->peer[rank].host, size,
                     text);
}

/* Evaluate a letter: fails if its sender will not take part in the current call of this rank. */
static enum chex_status
look_at_letter(struct collective *c, const struct task *task, int rank, const struct letter *letter,
               struct chex_error *err)
{
    const struct head *head = &letter->head;
    bool elsewhere = letter->tag == TAG_MEET ? head->ended <= task->index
                                             : task->transfers && head->begun >= task->index && head->begun < c->begun;

    if (head->meeting != c->meeting || !elsewhere)
        return CHEX_OK;
    if (letter->tag != TAG_MEET || head->status == CHEX_OK)
        return error_set(err, CHEX_ERR_BUG, "rank %d %s is in another call than this rank", rank, c->peer[rank].host);
    c->secondhand = true;
    return letter_error(c, rank, letter, err);
}

static enum chex_status
look_for_failed(struct collective *c, const struct task *task, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    const struct letter *letter;
    int i;

    for (i = 0; i < c->comm->size; i++)
        for (letter = c->peer[i].first; status == CHEX_OK && letter; letter = letter->next)
            status = look_at_letter(c, task, i, letter, err);
    return status;
}

/* ---- lost ranks ----------------------------------------------------------------------------------------------- */

/* List the missing ranks that were silent for `patience` seconds: "rank 3 n07, rank 5 n09". */
static int
name_silent(const struct collective *c, double patience, char *text, size_t size)
{
    int count = 0, i;
    size_t at = 0;

    text[0] = '\0';
    for (i = 0; i < c->comm->size; i++) {
        const struct peer *peer = &c->peer[i];

        if (!peer->missing || i == c->comm->rank || c->waited - peer->last_heard < patience)
            continue;
        if (at < size - 1)
            at += (size_t)snprintf(text + at, size - at, "%srank %d%s%s", count > 0 ? ", " : "", i,
                                   peer->host[0] ? " " : "", peer->host);
        count++;
    }
    return count;
}

static enum chex_status
call_lost(struct collective *c, double patience, struct chex_error *err)
{
    char who[600];
    int count = name_silent(c, patience, who, sizeof(who)), i;

    if (count == 0)
        return CHEX_OK;
    for (i = 0; i < c->comm->size; i++)
        c->peer[i].lost = c->peer[i].missing && i != c->comm->rank && c->waited - c->peer[i].last_heard >= patience;
    c->lost = true;
    error_set(&c->why, CHEX_ERR_LOST, "%s %s lost: no message for %.3g s", who, count == 1 ? "is" : "are", patience);
    return collective_lose(c, err);
}

/* Warn on the rank that would report errors if the silent ranks were lost. */
static void
warn_of_silent(struct collective *c, double silent)
{
    char who[600], text[640];
    int i;

    if (c->warned || c->waited - c->terminating_at < silent || name_silent(c, silent, who, sizeof(who)) == 0)
        return;
    c->warned = true;
    for (i = 0; i < c->comm->rank; i++)
        if (!c->peer[i].missing || c->waited - c->peer[i].last_heard < silent)
            return;
    snprintf(text, sizeof(text), "waiting for %s", who);
    if (c->options.warn_waiting)
        c->options.warn_waiting(c->options.context, text);
}

/* After SIGTERM, apply the shorter grace instead of the timeout. */
static enum chex_status
look_while_terminating(struct collective *c, double patience, struct chex_error *err)
{
    double grace = 3 * c->silence > c->options.grace ? 3 * c->silence : c->options.grace;

    if (c->terminating_at < 0)
        c->terminating_at = c->waited;
    warn_of_silent(c, grace / 2 < WARN_SECONDS ? grace / 2 : WARN_SECONDS);
    /* The silence before the signal counts too, but the grace starts at the signal. */
    return grace < patience && c->waited - c->terminating_at >= grace ? call_lost(c, grace, err) : CHEX_OK;
}

static enum chex_status
look_for_lost(struct collective *c, struct chex_error *err)
{
    double patience = c->options.timeout * (c->meeting < (c->options.slow_start ? 2 : 1) ? 6 : 1);
    enum chex_status status = call_lost(c, patience, err);

    if (status == CHEX_OK && !c->all_met && c->options.terminating && atomic_load(c->options.terminating))
        status = look_while_terminating(c, patience, err);
    return status;
}

/* ---- one turn ------------------------------------------------------------------------------------------------- */

enum chex_status
collective_try(struct collective *c, const struct task *task, bool *done, struct chex_error *err)
{
    enum chex_status status;
    int i;

    *done = false;
    if (c->lost)
        return collective_lose(c, err);
    status = listen_to_all(c, err);
    for (i = 0; i < c->comm->size; i++)
        c->peer[i].missing = false;
    if (status == CHEX_OK)
        status = fail_comm(c, task->advance(c, task->context, done, err), err);
    if (status == CHEX_OK && !*done && !task->meets)
        status = look_for_failed(c, task, err);
    return status == CHEX_OK ? beat(c, err) : status;
}

/* ---- watching ------------------------------------------------------------------------------------------------- */

/* Require a message from every rank, without a call to wait in. */
static enum chex_status
need_all(struct collective *c, void *context, bool *done, struct chex_error *err)
{
    int i;

    (void)context;
    (void)done;
    (void)err;
    for (i = 0; i < c->comm->size; i++)
        c->peer[i].missing = i != c->comm->rank;
    return CHEX_OK;
}

/* A rank that meets with an error has given up, and computes no sum that this rank could wait for. */
static enum chex_status
look_for_given_up(struct collective *c, struct chex_error *err)
{
    const struct letter *letter;
    int i;

    for (i = 0; i < c->comm->size; i++)
        for (letter = c->peer[i].first; letter; letter = letter->next)
            if (letter->tag == TAG_MEET && letter->head.meeting == c->meeting && letter->head.status != CHEX_OK &&
                letter->head.status != CHEX_ERR_STOPPED) {
                c->secondhand = true;
                return letter_error(c, i, letter, err);
            }
    return CHEX_OK;
}

enum chex_status
collective_watch(struct collective *c, double *waited, struct chex_error *err)
{
    const struct task task = {.advance = need_all, .meets = true};
    double now = clock_now(), turn = now - c->watched;
    enum chex_status status;
    bool done;

    c->watched = now;
    if (*waited == 0)
        turn = 1e-9; /* a new wait: earlier time does not count */
    *waited += turn < TURN_SECONDS ? turn : TURN_SECONDS;
    if (c->comm->size == 1)
        return CHEX_OK;
    turn = turn < TURN_SECONDS ? turn : TURN_SECONDS;
    c->waited += turn;
    c->watching += turn;
    status = collective_try(c, &task, &done, err);
    if (status == CHEX_OK)
        status = look_for_given_up(c, err);
    return status == CHEX_OK ? look_for_lost(c, err) : status;
}

double
collective_timeout(const struct collective *c)
{
    return c->options.timeout;
}

bool
collective_heard_all(const struct collective *c, double seconds)
{
    int i;

    for (i = 0; i < c->comm->size; i++)
        if (i != c->comm->rank && c->waited - c->peer[i].last_heard >= seconds)
            return false;
    return true;
}

/* ---- waiting -------------------------------------------------------------------------------------------------- */

static void
make_pause(unsigned turn)
{
    double pause = turn < BUSY_TURNS ? 0 : SHORT_PAUSE * (turn - BUSY_TURNS + 1);

    if (turn < BUSY_TURNS)
        sched_yield();
    else
        backoff(pause < LONG_PAUSE ? pause : LONG_PAUSE);
}

static enum chex_status
wait_until_done(struct collective *c, const struct task *task, struct chex_error *err)
{
    double then = clock_now();
    unsigned turn;

    for (turn = 0;; turn++) {
        bool done;
        enum chex_status status = collective_try(c, task, &done, err);
        double now = clock_now();

        c->waited += now - then < TURN_SECONDS ? now - then : TURN_SECONDS;
        c->warned = c->warned || now - then > TURN_SECONDS; /* this process was suspended: the others waited for it */
        then = now;
        if (status == CHEX_OK && !done)
            status = look_for_lost(c, err);
        if (status != CHEX_OK || done)
            return status;
        make_pause(turn);
        if (turn >= BUSY_TURNS && c->options.on_wait)
            c->options.on_wait(c->options.context);
    }
}

enum chex_status
collective_wait(struct collective *c, const struct task *task, struct chex_error *err)
{
    double began = clock_thread();
    enum chex_status status = wait_until_done(c, task, err);

    c->waited_cpu += clock_thread() - began;
    return status;
}
