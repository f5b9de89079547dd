/*
 * collective.c - implements collective.h: start and end, gathering, meetings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ranks/collective_private.h"

#include "base/ascii.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Change it whenever the messages change. */
#define PROTOCOL "chex-collective 1"

/* ---- one message from each rank to each other rank ------------------------------------------------------------ */

/* A gathering or a meeting, with its received letters. */
struct exchange {
    int tag;
    struct letter **letter; /* [size]; NULL for this rank */
};

static void
exchange_release(const struct collective *c, struct exchange *x)
{
    int i;

    for (i = 0; x->letter && i < c->comm->size; i++)
        letter_free(x->letter[i]);
    free(x->letter);
    x->letter = NULL;
}

/* Take the letter for this call; discards letters from before a meeting. */
static enum chex_status
take_letter(struct collective *c, int rank, struct exchange *x, struct chex_error *err)
{
    struct peer *peer = &c->peer[rank];

    while (peer->first) {
        const struct head *head = &peer->first->head;

        if (head->meeting == c->meeting && peer->first->tag == x->tag &&
            (x->tag == TAG_MEET || head->begun == c->begun)) {
            x->letter[rank] = letter_take(peer);
            return CHEX_OK;
        }
        if (head->meeting < c->meeting || (x->tag == TAG_MEET && peer->first->tag == TAG_GATHER)) {
            letter_free(letter_take(peer));
            continue;
        }
        if (peer->first->tag == TAG_MEET) /* look_for_failed() handles it */
            return CHEX_OK;
        return error_set(err, CHEX_ERR_BUG, "rank %d %s is in call %llu, this rank in %llu", rank, peer->host,
                         (unsigned long long)head->begun, (unsigned long long)c->begun);
    }
    return CHEX_OK;
}

static enum chex_status
advance_exchange(struct collective *c, void *context, bool *done, struct chex_error *err)
{
    struct exchange *x = context;
    enum chex_status status = CHEX_OK;
    int i;

    *done = true;
    for (i = 0; status == CHEX_OK && i < c->comm->size; i++) {
        if (i == c->comm->rank)
            continue;
        if (!x->letter[i])
            status = take_letter(c, i, x, err);
        c->peer[i].missing = !x->letter[i];
        *done = *done && x->letter[i];
    }
    return status;
}

static enum chex_status
send_to_all(struct collective *c, int tag, const struct head *head, const void *data, size_t size,
            struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = buffer_append(&b, head, sizeof(*head), err);
    int i;

    if (status == CHEX_OK && size > 0)
        status = buffer_append(&b, data, size, err);
    for (i = 0; status == CHEX_OK && i < c->comm->size; i++)
        if (i != c->comm->rank)
            status = c->comm->ops->send(c->comm, i, tag, b.data, b.size, err);
    buffer_release(&b);
    if (status == CHEX_ERR_LOST) {
        c->lost = true;
        c->why = *err;
    }
    return status;
}

static enum chex_status
exchange(struct collective *c, struct exchange *x, const struct head *head, const void *data, size_t size,
         struct chex_error *err)
{
    struct task task = {.advance = advance_exchange, .context = x, .meets = x->tag == TAG_MEET, .index = c->begun};
    enum chex_status status;

    x->letter = calloc((size_t)c->comm->size, sizeof(struct letter *));
    if (!x->letter)
        return error_memory(err);
    status = send_to_all(c, x->tag, head, data, size, err);
    return status == CHEX_OK ? collective_wait(c, &task, err) : status;
}

enum chex_status
collective_no_sums(const struct collective *c, struct chex_error *err)
{
    return c->sums ? error_set(err, CHEX_ERR_BUG, "a call of another kind before collective_allreduce_wait()")
                   : CHEX_OK;
}

/* ---- gathering ------------------------------------------------------------------------------------------------ */

static enum chex_status
put_together(const struct collective *c, const struct exchange *x, const void *data, size_t size, struct buffer *all,
             size_t *sizes, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    int i;

    all->size = 0;
    for (i = 0; status == CHEX_OK && i < c->comm->size; i++) {
        const struct letter *letter = x->letter ? x->letter[i] : NULL;
        const void *from = letter ? letter->data.data + sizeof(letter->head) : data;
        size_t length = letter ? letter->data.size - sizeof(letter->head) : size;

        if (sizes)
            sizes[i] = length;
        if (length > 0)
            status = buffer_append(all, from, length, err);
    }
    return status;
}

enum chex_status
collective_allgather(struct collective *c, const void *data, size_t size, struct buffer *all, size_t *sizes,
                     struct chex_error *err)
{
    struct exchange x = {.tag = TAG_GATHER};
    struct head head = {.meeting = c->meeting, .begun = c->begun, .ended = c->ended};
    enum chex_status status = CHEX_OK;

    if (size > COMM_MAX_MESSAGE - sizeof(head))
        return error_set(err, CHEX_ERR_LIMIT, "a message of %zu bytes", size);
    if (c->lost)
        return collective_lose(c, err);
    status = collective_no_sums(c, err);
    if (status == CHEX_OK && c->comm->size > 1)
        status = exchange(c, &x, &head, data, size, err);
    if (status == CHEX_OK)
        status = put_together(c, &x, data, size, all, sizes, err);
    if (status == CHEX_OK && c->comm->size > 1) {
        c->begun++;
        c->ended++;
    }
    exchange_release(c, &x);
    return status;
}

enum chex_status
collective_add(struct collective *c, uint64_t *number, size_t count, struct chex_error *err)
{
    struct buffer all = {0};
    enum chex_status status = collective_allgather(c, number, count * sizeof(*number), &all, NULL, err);
    size_t i;

    if (status == CHEX_OK && all.size != (size_t)c->comm->size * count * sizeof(*number))
        status = error_set(err, CHEX_ERR_BUG, "the ranks add up different counts of numbers");
    if (status == CHEX_OK)
        memset(number, 0, count * sizeof(*number));
    for (i = 0; status == CHEX_OK && i < (size_t)c->comm->size * count; i++) {
        uint64_t one;

        memcpy(&one, all.data + i * sizeof(one), sizeof(one));
        number[i % count] += one;
    }
    buffer_release(&all);
    return status;
}

/* ---- meetings ------------------------------------------------------------------------------------------------- */

/* Rank errors by how much they explain: none, received from another rank, stopped, its own error. */
static int
weight_of(const struct head *head)
{
    return head->status == CHEX_OK ? 0 : head->secondhand ? 1 : head->status == CHEX_ERR_STOPPED ? 2 : 3;
}

static enum chex_status
find_worst(const struct collective *c, const struct exchange *x, const struct head *own, uint64_t *flags,
           struct chex_error *err)
{
    int worst = -1, weight = 0, i;

    for (i = 0; i < c->comm->size; i++) {
        const struct head *head = x->letter[i] ? &x->letter[i]->head : own;

        if (flags)
            *flags |= head->flags;
        if (weight_of(head) > weight) {
            weight = weight_of(head);
            worst = i;
        }
        if (head->status == CHEX_OK && own->status == CHEX_OK && head->ended != own->ended)
            return error_set(err, CHEX_ERR_BUG, "rank %d %s made %llu calls before a meeting, this rank %llu", i,
                             c->peer[i].host, (unsigned long long)head->ended, (unsigned long long)own->ended);
    }
    if (worst < 0)
        return CHEX_OK;
    return worst == c->comm->rank ? (enum chex_status)own->status : letter_error(c, worst, x->letter[worst], err);
}

/* Update the state after a meeting of all ranks. */
static void
close_meeting(struct collective *c, bool terminating, enum chex_status status)
{
    c->meeting++;
    c->begun = c->ended = 0;
    c->secondhand = false;
    c->all_met = c->all_met || terminating;
    if (status != CHEX_OK)
        collective_abandon_sums(c);
}

enum chex_status
collective_agree(struct collective *c, enum chex_status status, uint64_t *flags, struct chex_error *err)
{
    struct exchange x = {.tag = TAG_MEET};
    struct head head = {.meeting = c->meeting, .begun = c->begun, .ended = c->ended, .flags = flags ? *flags : 0};
    bool terminating = c->options.terminating && atomic_load(c->options.terminating);
    struct chex_error why;
    const char *text;
    enum chex_status met;

    if (c->comm->size == 1)
        return status;
    if (c->lost) /* an own error explains more than the loss that followed it */
        return status != CHEX_OK && status != CHEX_ERR_STOPPED ? status : collective_lose(c, err);
    if (status == CHEX_OK)
        status = collective_no_sums(c, err);
    head.status = (int32_t)status;
    head.secondhand = c->secondhand && status != CHEX_OK;
    text = status != CHEX_OK && err ? err->text : "";
    met = exchange(c, &x, &head, text, strlen(text), &why);
    if (met == CHEX_OK) {
        status = find_worst(c, &x, &head, flags, err);
        close_meeting(c, terminating, status);
    } else {
        c->abandoned = true; /* the other ranks receive nothing more from this one */
        if (status == CHEX_OK || status == CHEX_ERR_STOPPED || head.secondhand)
            status = error_set(err, met, "%s", why.text);
    }
    exchange_release(c, &x);
    return status;
}

/* ---- comparison of settings ----------------------------------------------------------------------------------- */

enum chex_status
collective_compare(struct collective *c, enum chex_status status, const char *text, struct chex_error *err)
{
    struct buffer all = {0};
    size_t *sizes = calloc((size_t)c->comm->size, sizeof(*sizes)), at;
    char here[256], there[256];
    int i;

    if (status == CHEX_OK && !sizes)
        status = error_memory(err);
    status = collective_agree(c, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_allgather(c, text, strlen(text), &all, sizes, err);
    at = status == CHEX_OK && sizes ? sizes[0] : 0;
    for (i = 1; status == CHEX_OK && sizes && i < c->comm->size; at += sizes[i++])
        if (ascii_find_difference((const char *)all.data, sizes[0], (const char *)all.data + at, sizes[i], here, there,
                                  sizeof(here)))
            status = error_set(err, CHEX_ERR_USAGE,
                               "rank %d %s does not do the same as rank 0: it has '%s', rank 0 '%s'", i,
                               c->peer[i].host, there, here);
    buffer_release(&all);
    free(sizes);
    return status;
}

/* ---- start and end -------------------------------------------------------------------------------------------- */

static void
name_host(char out[COLLECTIVE_HOST])
{
    if (gethostname(out, COLLECTIVE_HOST) != 0 || !out[0])
        snprintf(out, COLLECTIVE_HOST, "unknown");
    out[COLLECTIVE_HOST - 1] = '\0';
}

/* Exchange the first message: the protocol and the host name. */
static enum chex_status
say_hello(struct collective *c, struct chex_error *err)
{
    struct exchange x = {.tag = TAG_GATHER};
    struct head head = {0};
    char text[sizeof(PROTOCOL) + 1 + COLLECTIVE_HOST];
    int length = snprintf(text, sizeof(text), PROTOCOL " %s", c->peer[c->comm->rank].host), i;
    enum chex_status status = exchange(c, &x, &head, text, (size_t)length, err);

    for (i = 0; status == CHEX_OK && i < c->comm->size; i++) {
        const struct letter *letter = x.letter[i];
        const char *said = letter ? (const char *)letter->data.data + sizeof(letter->head) : text;
        size_t size = letter ? letter->data.size - sizeof(letter->head) : (size_t)length;

        if (size <= sizeof(PROTOCOL) || size - sizeof(PROTOCOL) >= COLLECTIVE_HOST ||
            memcmp(said, PROTOCOL " ", sizeof(PROTOCOL)) != 0)
            status = error_set(err, CHEX_ERR_USAGE, "rank %d runs another version of this program", i);
        else
            snprintf(c->peer[i].host, COLLECTIVE_HOST, "%.*s", (int)(size - sizeof(PROTOCOL)), said + sizeof(PROTOCOL));
    }
    exchange_release(c, &x);
    c->meeting++;
    c->silence = 0;
    return status;
}

enum chex_status
collective_new(struct comm *comm, const struct collective_options *options, struct collective **out,
               struct chex_error *err)
{
    struct collective *c = calloc(1, sizeof(*c));
    enum chex_status status = CHEX_OK;
    int i;

    *out = NULL;
    if (!c)
        return error_memory(err);
    c->comm = comm;
    if (options)
        c->options = *options;
    if (!(c->options.timeout > 0))
        c->options.timeout = COLLECTIVE_TIMEOUT;
    if (!(c->options.grace > 0))
        c->options.grace = COLLECTIVE_GRACE;
    c->terminating_at = -1;
    c->last_sent = clock_now();
    c->last_sum = &c->sums;
    c->peer = calloc((size_t)comm->size, sizeof(*c->peer));
    if (!c->peer) {
        free(c);
        return error_memory(err);
    }
    for (i = 0; i < comm->size; i++)
        c->peer[i].last = &c->peer[i].first;
    name_host(c->peer[comm->rank].host);
    if (comm->size > 1)
        status = say_hello(c, err);
    if (status == CHEX_OK)
        *out = c;
    else
        collective_free(c);
    return status;
}

void
collective_free(struct collective *c)
{
    int i;

    if (!c)
        return;
    for (i = 0; i < c->comm->size; i++)
        while (c->peer[i].first)
            letter_free(letter_take(&c->peer[i]));
    collective_free_sums(c);
    buffer_release(&c->message.data);
    free(c->peer);
    free(c);
}

int
collective_rank(const struct collective *c)
{
    return c->comm->rank;
}

int
collective_size(const struct collective *c)
{
    return c->comm->size;
}

const char *
collective_host(const struct collective *c, int rank)
{
    return c->peer[rank].host;
}

/* Count the ranks below `end` on this machine. */
static int
count_local(const struct collective *c, int end)
{
    int count = 0, i;

    for (i = 0; i < end; i++)
        count += strcmp(c->peer[i].host, c->peer[c->comm->rank].host) == 0;
    return count;
}

int
collective_local_rank(const struct collective *c)
{
    return count_local(c, c->comm->rank);
}

int
collective_local_size(const struct collective *c)
{
    return count_local(c, c->comm->size);
}

double
collective_waited(const struct collective *c)
{
    return c->waited - c->watching;
}

double
collective_waited_cpu(const struct collective *c)
{
    return c->waited_cpu;
}

bool
collective_broken(const struct collective *c)
{
    return c->lost || c->abandoned;
}

void
collective_abort(struct collective *c, int exit_code)
{

    if (!collective_reports_errors(c))
        backoff(2);
    c->comm->ops->abort(c->comm, exit_code);
}

bool
collective_reports_errors(const struct collective *c)
{
    int i;

    for (i = 0; i < c->comm->rank; i++)
        if (!c->peer[i].lost)
            return false;
    return true;
}
