/*
 * staged.c - sums floats of the devices by messages between the hosts; see reduce.h
 *
 * start() copies the gradients to pinned memory in chunks.  When a chunk has arrived, the host converts it to double
 * and passes it to the collective, in the same order on every rank.  The sum over the ranks is rounded to float once
 * and copied back to the device.  So the result is the sum in the order of the ranks, as with reduce_host.h, but of
 * gradients that each rank has rounded to float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "cuda/comm/reduce.h"
#include "cuda/run/plan.h"

#include "ranks/collective.h"

#include <stdlib.h>

#define PIECE ((size_t)1 << 19) /* floats in a chunk: 2 MiB */

/* One call of start().  Its memory is reused in the next step. */
struct staged {
    struct staged *next;
    float *device, *pinned;
    double *sum;
    cudaEvent_t *here; /* [pieces], recorded after the copy of each chunk */
    size_t count, room, pieces, started;
};

struct staged_reduce {
    struct reduce base;
    struct collective *collective;
    int device;
    struct staged *first;
    size_t used; /* entries of the list in use by sums in flight */
};

static struct staged_reduce *
staged_of(struct reduce *r)
{
    return (struct staged_reduce *)(void *)r;
}

static size_t
pieces_of(size_t count)
{
    return (count + PIECE - 1) / PIECE;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void
release(struct staged *s)
{
    size_t i;

    for (i = 0; s->here && i < pieces_of(s->room); i++)
        if (s->here[i])
            (void)cudaEventDestroy(s->here[i]);
    if (s->pinned)
        (void)cudaFreeHost(s->pinned);
    free(s->here);
    free(s->sum);
    *s = (struct staged){.next = s->next};
}

static enum chex_status
make_room(struct staged *s, size_t count, struct chex_error *err)
{
    cudaError_t e = cudaSuccess;
    void *pinned = NULL;
    size_t i;

    if (count <= s->room)
        return CHEX_OK;
    release(s);
    s->room = count;
    s->sum = malloc(count * sizeof(*s->sum));
    s->here = calloc(pieces_of(count), sizeof(cudaEvent_t));
    if (!s->sum || !s->here) {
        release(s);
        return error_memory(err);
    }
    e = cudaMallocHost(&pinned, count * sizeof(float));
    s->pinned = pinned;
    for (i = 0; i < pieces_of(count) && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&s->here[i], cudaEventDisableTiming);
    if (e != cudaSuccess)
        release(s);
    return cuda_check(e, "pinned memory for the sums of the ranks", err);
}

/* Returns the next unused entry of the list. */
static enum chex_status
take(struct staged_reduce *r, struct staged **out, struct chex_error *err)
{
    struct staged **at = &r->first;
    size_t i;

    for (i = 0; i < r->used; i++)
        at = &(*at)->next;
    if (!*at)
        *at = calloc(1, sizeof(**at));
    *out = *at;
    return *at ? CHEX_OK : error_memory(err);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static size_t
piece_count(const struct staged *s, size_t piece)
{
    return piece + 1 < s->pieces ? PIECE : s->count - piece * PIECE;
}

static enum chex_status
start(struct reduce *reduce, void *data, size_t count, void *queue, struct chex_error *err)
{
    struct staged_reduce *r = staged_of(reduce);
    struct staged *s = NULL;
    enum chex_status status = take(r, &s, err);
    cudaError_t e = cudaSuccess;
    size_t i;

    if (status == CHEX_OK)
        status = make_room(s, count, err);
    if (status != CHEX_OK)
        return status;
    s->device = data;
    s->count = count;
    s->pieces = pieces_of(count);
    s->started = 0;
    for (i = 0; i < s->pieces && e == cudaSuccess; i++) {
        e = cudaMemcpyAsync(s->pinned + i * PIECE, s->device + i * PIECE, piece_count(s, i) * sizeof(float),
                            cudaMemcpyDeviceToHost, queue);
        if (e == cudaSuccess)
            e = cudaEventRecord(s->here[i], queue);
    }
    r->used++;
    return cuda_check(e, "copying gradients to the host", err);
}

static enum chex_status
start_piece(struct staged_reduce *r, struct staged *s, struct chex_error *err)
{
    size_t first = s->started * PIECE, count = piece_count(s, s->started), i;

    for (i = first; i < first + count; i++)
        s->sum[i] = (double)s->pinned[i];
    s->started++;
    return collective_allreduce_start(r->collective, s->sum + first, count, err);
}

/* Passes every chunk that has arrived on the host to the collective.  *all is true if no chunk is left. */
static enum chex_status
start_pieces(struct staged_reduce *r, bool *all, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    struct staged *s = r->first;
    size_t i;

    *all = false;
    for (i = 0; i < r->used; i++, s = s->next) {
        while (status == CHEX_OK && s->started < s->pieces) {
            cudaError_t e = cudaEventQuery(s->here[s->started]);

            if (e == cudaErrorNotReady)
                return CHEX_OK;
            status = e == cudaSuccess ? start_piece(r, s, err) : cuda_check(e, "gradients of a step", err);
        }
        if (status != CHEX_OK)
            return status;
    }
    *all = true;
    return CHEX_OK;
}

static enum chex_status
poll_peers(struct reduce *reduce, struct chex_error *err)
{
    struct staged_reduce *r = staged_of(reduce);
    enum chex_status status;
    bool all;

    status = start_pieces(r, &all, err);
    return status == CHEX_OK ? collective_poll(r->collective, err) : status;
}

static enum chex_status
give_back(const struct staged *s, cudaStream_t queue, struct chex_error *err)
{
    size_t i;

    for (i = 0; i < s->count; i++)
        s->pinned[i] = (float)s->sum[i];
    return cuda_check(cudaMemcpyAsync(s->device, s->pinned, s->count * sizeof(float), cudaMemcpyHostToDevice, queue),
                      "copying gradients to the GPU", err);
}

static enum chex_status
join(struct reduce *reduce, void *queue, struct chex_error *err)
{
    struct staged_reduce *r = staged_of(reduce);
    const struct staged *s = r->first;
    bool all = false;
    enum chex_status status = start_pieces(r, &all, err);

    while (status == CHEX_OK && !all) {
        status = collective_poll(r->collective, err);
        backoff(20e-6);
        if (status == CHEX_OK)
            status = start_pieces(r, &all, err);
    }
    if (status == CHEX_OK)
        status = collective_allreduce_wait(r->collective, err);
    for (; status == CHEX_OK && r->used > 0; r->used--, s = s->next)
        status = give_back(s, queue, err);
    return status;
}

static bool
free_reduce(struct reduce *reduce)
{
    struct staged_reduce *r = staged_of(reduce);

    (void)cudaSetDevice(r->device);
    while (r->first) {
        struct staged *s = r->first;

        r->first = s->next;
        release(s);
        free(s);
    }
    free(r);
    return true;
}

static const struct reduce_ops ops = {.start = start, .join = join, .poll = poll_peers, .free = free_reduce};

enum chex_status
reduce_staged_new(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    struct staged_reduce *r = calloc(1, sizeof(*r));

    *out = NULL;
    if (!r)
        return error_memory(err);
    r->base = (struct reduce){.rank = collective_rank(c), .size = collective_size(c), .ops = &ops};
    r->collective = c;
    r->device = ((const struct cuda_device *)(const void *)device)->number;
    *out = &r->base;
    return CHEX_OK;
}
