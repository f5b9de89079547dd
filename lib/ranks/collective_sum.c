/*
 * collective_sum.c - implements the sums of collective.h, and shared functions for transfers
 *
 * In a sum of `count` numbers over N ranks, rank r owns the slice from count * r / N to count * (r + 1) / N.  Each rank
 * sends every slice to its owner.  The owner adds the slices in rank order and sends the result to every rank
 * (reduce-scatter and allgather).  So a rank sends and receives twice (N - 1) / N of the data, which is the minimum;
 * each sum is computed once, in a fixed order.  The result overwrites the slice after the slice has been sent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ranks/collective_private.h"

#include <stdlib.h>
#include <string.h>

struct sum {
    struct sum *next;
    double *data;
    size_t count;
    int tag; /* of the slices; the results use the next tag */

    int gone, added, given, got; /* number of ranks that each phase has finished */
    struct comm_transfer **slice_out, **slice_in, **result_out, **result_in; /* [size] each; one allocation */

    double *scratch; /* [size][slice]: the received slices for this rank; reused by later sums */
    size_t scratch_numbers;
};

/* Returns where the slice of a rank starts; for rank `size`: where the last one ends. */
static size_t
slice_start(const struct collective *c, const struct sum *s, int rank)
{
    size_t n = (size_t)c->comm->size, each = s->count / n, rest = s->count % n, r = (size_t)rank;

    return each * r + (r < rest ? r : rest);
}

static size_t
slice_count(const struct collective *c, const struct sum *s, int rank)
{
    return slice_start(c, s, rank + 1) - slice_start(c, s, rank);
}

/*
 * Returns the k-th peer, k: 1 .. size - 1.  The order differs between ranks, so that not all send to the same rank
 * first.
 */
static int
other(const struct collective *c, int k)
{
    return (c->comm->rank + k) % c->comm->size;
}

/* ---- transfers ------------------------------------------------------------------------------------------------ */

static enum chex_status
send_numbers(struct collective *c, int to, int tag, const double *data, size_t count, struct comm_transfer **out,
             struct chex_error *err)
{
    if (count == 0)
        return CHEX_OK;
    return c->comm->ops->start_send(c->comm, to, tag, data, count * sizeof(*data), out, err);
}

static enum chex_status
receive_numbers(struct collective *c, int from, int tag, double *data, size_t count, struct comm_transfer **out,
                struct chex_error *err)
{
    if (count == 0)
        return CHEX_OK;
    return c->comm->ops->start_receive(c->comm, from, tag, data, count * sizeof(*data), out, err);
}

enum chex_status
collective_transfer_done(struct collective *c, int rank, struct comm_transfer **transfer, bool *done,
                         struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    *done = true;
    if (!*transfer)
        return CHEX_OK;
    status = c->comm->ops->finish(c->comm, transfer, err);
    *done = !*transfer;
    if (*done)
        c->peer[rank].last_heard = c->waited;
    return status;
}

/* ---- a sum ---------------------------------------------------------------------------------------------------- */

/* Returns the data of a rank; the sum accumulates in the data of rank 0. */
static double *
place_of(const struct collective *c, const struct sum *s, int rank)
{
    if (rank == c->comm->rank)
        return s->data + slice_start(c, s, rank);
    return s->scratch + (size_t)rank * slice_count(c, s, c->comm->rank);
}

static enum chex_status
send_result(struct collective *c, struct sum *s, struct chex_error *err)
{
    int me = c->comm->rank, k;
    double *own = place_of(c, s, me);
    size_t count = slice_count(c, s, me);
    enum chex_status status = CHEX_OK;

    if (me != 0 && count > 0)
        memcpy(own, place_of(c, s, 0), count * sizeof(*own));
    for (k = 1; status == CHEX_OK && k < c->comm->size; k++)
        status = send_numbers(c, other(c, k), s->tag + 1, own, count, &s->result_out[other(c, k)], err);
    return status;
}

/* Add the slices of the other ranks, in rank order. */
static enum chex_status
add_slices(struct collective *c, struct sum *s, struct chex_error *err)
{
    double *restrict sum = place_of(c, s, 0);
    size_t count = slice_count(c, s, c->comm->rank), i;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && s->added < c->comm->size) {
        const double *restrict from = place_of(c, s, s->added);
        bool done = true;

        status = collective_transfer_done(c, s->added, &s->slice_in[s->added], &done, err);
        if (status != CHEX_OK || !done)
            return status;
        for (i = 0; s->added > 0 && i < count; i++)
            sum[i] += from[i];
        if (++s->added == c->comm->size)
            status = send_result(c, s, err);
    }
    return status;
}

/* Reuse a slice for its result after it has been sent. */
static enum chex_status
move_slices_out(struct collective *c, struct sum *s, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && s->gone < c->comm->size - 1) {
        int to = other(c, s->gone + 1);
        bool done;

        status = collective_transfer_done(c, to, &s->slice_out[to], &done, err);
        if (status != CHEX_OK || !done)
            return status;
        status = receive_numbers(c, to, s->tag + 1, s->data + slice_start(c, s, to), slice_count(c, s, to),
                                 &s->result_in[to], err);
        s->gone++;
    }
    return status;
}

static enum chex_status
move_results(struct collective *c, struct comm_transfer **transfer, int limit, int *count, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    bool done = true;

    while (status == CHEX_OK && done && *count < limit) {
        int rank = other(c, *count + 1);

        status = collective_transfer_done(c, rank, &transfer[rank], &done, err);
        *count += status == CHEX_OK && done;
    }
    return status;
}

static void
name_missing(struct collective *c, const struct sum *s)
{
    int i;

    for (i = 0; i < c->comm->size; i++)
        if (s->slice_out[i] || s->slice_in[i] || s->result_out[i] || s->result_in[i])
            c->peer[i].missing = true;
}

static enum chex_status
advance_sum(struct collective *c, struct sum *s, bool *done, struct chex_error *err)
{
    int others = c->comm->size - 1;
    enum chex_status status = move_slices_out(c, s, err);

    if (status == CHEX_OK)
        status = add_slices(c, s, err);
    if (status == CHEX_OK && s->added == c->comm->size)
        status = move_results(c, s->result_out, others, &s->given, err);
    if (status == CHEX_OK)
        status = move_results(c, s->result_in, s->gone, &s->got, err);
    *done = s->given == others && s->got == others;
    name_missing(c, s);
    return status;
}

static enum chex_status
advance_sums(struct collective *c, void *context, bool *done, struct chex_error *err)
{
    struct sum **at = &c->sums;
    enum chex_status status = CHEX_OK;

    (void)context;
    while (status == CHEX_OK && *at) {
        struct sum *s = *at;
        bool ended;

        status = advance_sum(c, s, &ended, err);
        if (status == CHEX_OK && ended) {
            *at = s->next;
            s->next = c->spare;
            c->spare = s;
        } else {
            at = &s->next;
        }
    }
    c->last_sum = status == CHEX_OK ? at : c->last_sum;
    *done = !c->sums;
    return status;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void
free_sum(const struct collective *c, struct sum *s)
{
    int i;

    if (!s)
        return;
    for (i = 0; s->slice_out && i < 4 * c->comm->size; i++)
        if (s->slice_out[i])
            c->comm->ops->forget(c->comm, &s->slice_out[i]);
    free(s->slice_out);
    free(s->scratch);
    free(s);
}

static struct sum *
free_list(const struct collective *c, struct sum *s)
{
    while (s) {
        struct sum *next = s->next;

        free_sum(c, s);
        s = next;
    }
    return NULL;
}

void
collective_abandon_sums(struct collective *c)
{
    if (!c->sums)
        return;
    c->abandoned = true;
    *c->last_sum = c->given_up;
    c->given_up = c->sums;
    c->sums = NULL;
    c->last_sum = &c->sums;
}

void
collective_free_sums(struct collective *c)
{
    c->sums = free_list(c, c->sums);
    c->given_up = free_list(c, c->given_up);
    c->spare = free_list(c, c->spare);
}

/* Take a spare sum with space for this many numbers, if there is one. */
static struct sum *
take_spare(struct collective *c, size_t numbers)
{
    struct sum **at = &c->spare, *s;

    while (*at && (*at)->next && (*at)->scratch_numbers < numbers)
        at = &(*at)->next;
    s = *at;
    if (s)
        *at = s->next;
    return s;
}

/* Returns NULL if memory runs out. */
static struct sum *
new_sum(struct collective *c, double *data, size_t count)
{
    size_t n = (size_t)c->comm->size, numbers = (count / n + 1) * n;
    struct sum *s = take_spare(c, numbers);

    if (!s)
        s = calloc(1, sizeof(*s));
    if (s && !s->slice_out)
        s->slice_out = calloc(4 * n, sizeof(struct comm_transfer *));
    if (s && s->scratch_numbers < numbers) {
        free(s->scratch);
        s->scratch = malloc(numbers * sizeof(*s->scratch));
        s->scratch_numbers = s->scratch ? numbers : 0;
    }
    if (!s || !s->slice_out || !s->scratch) {
        free_sum(c, s);
        return NULL;
    }
    s->next = NULL;
    s->data = data;
    s->count = count;
    s->gone = s->added = s->given = s->got = 0;
    s->slice_in = s->slice_out + n;
    s->result_out = s->slice_out + 2 * n;
    s->result_in = s->slice_out + 3 * n;
    return s;
}

/* ---- sums ----------------------------------------------------------------------------------------------------- */

int
collective_next_tag(struct collective *c)
{
    c->tag = (c->tag + 2) % (COMM_MAX_TAG + 1);
    return c->tag;
}

enum chex_status
collective_usable(struct collective *c, struct chex_error *err)
{
    if (c->lost)
        return collective_lose(c, err);
    return c->abandoned ? error_set(err, CHEX_ERR_BUG, "a transfer after others were abandoned") : CHEX_OK;
}

static enum chex_status
start_sum(struct collective *c, struct sum *s, struct chex_error *err)
{
    int me = c->comm->rank, k;
    enum chex_status status = CHEX_OK;

    for (k = 1; status == CHEX_OK && k < c->comm->size; k++) {
        int rank = other(c, c->comm->size - k); /* the rank that sends to this one as its k-th peer */

        status = receive_numbers(c, rank, s->tag, place_of(c, s, rank), slice_count(c, s, me), &s->slice_in[rank], err);
    }
    for (k = 1; status == CHEX_OK && k < c->comm->size; k++) {
        int rank = other(c, k);

        status = send_numbers(c, rank, s->tag, s->data + slice_start(c, s, rank), slice_count(c, s, rank),
                              &s->slice_out[rank], err);
    }
    return status;
}

enum chex_status
collective_allreduce_start(struct collective *c, double *data, size_t count, struct chex_error *err)
{
    enum chex_status status;
    struct sum *s;

    if (c->comm->size == 1)
        return CHEX_OK;
    status = collective_usable(c, err);
    if (status != CHEX_OK)
        return status;
    if (count / (size_t)c->comm->size >= COMM_MAX_MESSAGE / sizeof(*data))
        return error_set(err, CHEX_ERR_LIMIT, "a sum of %zu numbers", count);
    s = new_sum(c, data, count);
    if (!s)
        return error_memory(err);
    s->tag = collective_next_tag(c);
    c->begun++;
    *c->last_sum = s;
    c->last_sum = &s->next;
    status = start_sum(c, s, err);
    return status == CHEX_OK ? collective_poll(c, err) : status;
}

enum chex_status
collective_poll(struct collective *c, struct chex_error *err)
{
    struct task task = {.advance = advance_sums, .transfers = true, .index = c->ended};
    bool done;

    if (c->comm->size == 1)
        return CHEX_OK;
    /* Without a sum, no rank can be missing in a call. */
    task.meets = c->begun == c->ended;
    return collective_try(c, &task, &done, err);
}

enum chex_status
collective_allreduce_wait(struct collective *c, struct chex_error *err)
{
    struct task task = {.advance = advance_sums, .transfers = true, .index = c->ended};
    enum chex_status status;

    if (c->comm->size == 1 || c->begun == c->ended)
        return CHEX_OK;
    status = collective_usable(c, err);
    if (status == CHEX_OK)
        status = collective_wait(c, &task, err);
    if (status == CHEX_OK)
        c->ended = c->begun;
    return status;
}
