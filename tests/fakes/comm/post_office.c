/*
 * post_office.c - see post_office.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "post_office.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

enum post_kind { MESSAGE, TRANSFER_SEND, TRANSFER_RECEIVE };

struct post_item {
    struct post_item *next;
    enum post_kind kind;
    int from, to, tag;
    uint8_t *copy;       /* for a message */
    const uint8_t *data; /* for a send */
    uint8_t *place;      /* for a receive */
    size_t size;
    bool done; /* a transfer */
    bool wrong_size;
};

/* A transfer is its item. */
struct comm_transfer {
    struct post_item item;
};

static bool
is_late(struct post_office *office)
{
    if (office->delay == 0)
        return false;
    office->delay = office->delay * 1664525u + 1013904223u; /* Numerical Recipes, 7.1 */
    return office->delay >> 31;
}

static void
hand_in(struct post_office *office, struct post_item *item)
{
    struct post_item **at = &office->items;

    while (*at)
        at = &(*at)->next;
    *at = item;
}

static void
take_out(struct post_office *office, struct post_item *item)
{
    struct post_item **at = &office->items;

    while (*at && *at != item)
        at = &(*at)->next;
    if (*at)
        *at = item->next;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

static enum chex_status
box_send(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err)
{
    struct post_office *office = comm->state;
    struct post_item *item = calloc(1, sizeof(*item));

    (void)err;
    *item = (struct post_item){.kind = MESSAGE, .from = comm->rank, .to = to, .tag = tag, .size = size};
    item->copy = malloc(size + 1);
    if (size > 0)
        memcpy(item->copy, data, size);
    pthread_mutex_lock(&office->lock);
    hand_in(office, item);
    pthread_mutex_unlock(&office->lock);
    return CHEX_OK;
}

static enum chex_status
box_poll(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err)
{
    struct post_office *office = comm->state;
    struct post_item *item = NULL;

    *arrived = false;
    pthread_mutex_lock(&office->lock);
    if (!is_late(office)) {
        for (item = office->items; item && (item->kind != MESSAGE || item->to != comm->rank); item = item->next)
            ;
        if (item)
            take_out(office, item);
    }
    pthread_mutex_unlock(&office->lock);
    if (!item)
        return CHEX_OK;
    out->data.size = 0;
    ck_assert_int_eq(buffer_append(&out->data, item->copy, item->size, err), CHEX_OK);
    out->from = item->from;
    out->tag = item->tag;
    *arrived = true;
    free(item->copy);
    free(item);
    return CHEX_OK;
}

/* ---- transfers ------------------------------------------------------------------------------------------------ */

/* Returns the first incomplete item of the other side, if this item is the first one of its own side. */
static struct post_item *
find_peer(const struct post_office *office, const struct post_item *item)
{
    struct post_item *other, *found = NULL;

    for (other = office->items; other; other = other->next) {
        if (other->from != item->from || other->to != item->to || other->tag != item->tag || other->done ||
            other->kind == MESSAGE)
            continue;
        if (other->kind == item->kind && other != item)
            return NULL;
        if (other == item)
            break;
    }
    for (other = office->items; other && !found; other = other->next)
        if (other->kind != MESSAGE && other->kind != item->kind && other->from == item->from && other->to == item->to &&
            other->tag == item->tag && !other->done)
            found = other;
    return found;
}

static void
match(struct post_office *office, struct post_item *item)
{
    struct post_item *other = find_peer(office, item), *send, *receive;

    if (!other)
        return;
    send = item->kind == TRANSFER_SEND ? item : other;
    receive = item->kind == TRANSFER_SEND ? other : item;
    receive->wrong_size = send->size != receive->size;
    if (!receive->wrong_size)
        memcpy(receive->place, send->data, send->size);
    send->done = receive->done = true;
}

static void
start(struct comm *comm, struct comm_transfer *transfer, struct comm_transfer **out)
{
    struct post_office *office = comm->state;

    pthread_mutex_lock(&office->lock);
    hand_in(office, &transfer->item);
    pthread_mutex_unlock(&office->lock);
    *out = transfer;
}

static enum chex_status
box_start_send(struct comm *comm, int to, int tag, const void *data, size_t size, struct comm_transfer **out,
               struct chex_error *err)
{
    struct comm_transfer *t = calloc(1, sizeof(*t));

    (void)err;
    t->item = (struct post_item){
        .kind = TRANSFER_SEND, .from = comm->rank, .to = to, .tag = tag, .data = data, .size = size};
    start(comm, t, out);
    return CHEX_OK;
}

static enum chex_status
box_start_receive(struct comm *comm, int from, int tag, void *data, size_t size, struct comm_transfer **out,
                  struct chex_error *err)
{
    struct comm_transfer *t = calloc(1, sizeof(*t));

    (void)err;
    t->item = (struct post_item){
        .kind = TRANSFER_RECEIVE, .from = from, .to = comm->rank, .tag = tag, .place = data, .size = size};
    start(comm, t, out);
    return CHEX_OK;
}

static enum chex_status
box_finish(struct comm *comm, struct comm_transfer **transfer, struct chex_error *err)
{
    struct post_office *office = comm->state;
    struct comm_transfer *t = *transfer;
    bool done;

    pthread_mutex_lock(&office->lock);
    if (!t->item.done && !is_late(office))
        match(office, &t->item);
    done = t->item.done;
    if (done)
        take_out(office, &t->item);
    pthread_mutex_unlock(&office->lock);
    if (!done)
        return CHEX_OK;
    *transfer = NULL;
    if (t->item.wrong_size)
        error_set(err, CHEX_ERR_BUG, "a transfer of another size");
    done = t->item.wrong_size;
    free(t);
    return done ? CHEX_ERR_BUG : CHEX_OK;
}

static void
box_forget(struct comm *comm, struct comm_transfer **transfer)
{
    struct post_office *office = comm->state;

    pthread_mutex_lock(&office->lock);
    take_out(office, &(*transfer)->item);
    pthread_mutex_unlock(&office->lock);
    free(*transfer);
    *transfer = NULL;
}

/* ---- the office ----------------------------------------------------------------------------------------------- */

static void
box_abort(struct comm *comm, int exit_code)
{
    struct post_office *office = comm->state;

    pthread_mutex_lock(&office->lock);
    office->aborted = comm->rank;
    office->exit_code = exit_code;
    pthread_mutex_unlock(&office->lock);
}

void
post_office_init(struct post_office *office, int size, uint32_t delay)
{
    static const struct comm_ops box = {.send = box_send,
                                        .poll = box_poll,
                                        .abort = box_abort,
                                        .start_send = box_start_send,
                                        .start_receive = box_start_receive,
                                        .finish = box_finish,
                                        .forget = box_forget};

    ck_assert_int_le(size, POST_RANKS);
    *office = (struct post_office){.size = size, .delay = delay, .aborted = -1};
    pthread_mutex_init(&office->lock, NULL);
    for (int i = 0; i < size; i++)
        office->comm[i] = (struct comm){.rank = i, .size = size, .ops = &box, .state = office};
}

void
post_office_release(struct post_office *office)
{
    while (office->items) {
        struct post_item *item = office->items;

        office->items = item->next;
        free(item->copy);
        free(item);
    }
    pthread_mutex_destroy(&office->lock);
}

void
post_office_run(int size, void *(*live)(void *), void *arguments, size_t each)
{
    pthread_t thread[POST_RANKS];

    for (int i = 0; i < size; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, live, (char *)arguments + each * (size_t)i), 0);
    for (int i = 0; i < size; i++)
        pthread_join(thread[i], NULL);
}
