/*
 * nccl.c - sums over the ranks by NCCL, on the GPUs; see reduce.h
 *
 * Sums run in a stream of their own, concurrently with the backward pass.  start() makes that stream wait for the work
 * in the compute stream; join() makes the compute stream wait for the sums.  In a stream that captures, this becomes a
 * fork and a join of the graph.
 *
 * No call blocks inside NCCL or the CUDA runtime, because a peer may be lost.  So the communicator is nonblocking, and
 * waits for the device poll (cuda_wait()).  A rank counts as lost if its host sends no heartbeat (collective_watch()).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "cuda/comm/nccl_library.h"
#include "cuda/comm/reduce.h"
#include "cuda/run/plan.h"
#include "ranks/collective.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST   21400 /* 2.14: the first version with nonblocking communicators */
#define NEW_KIND 10000 /* the encoding of version numbers since 2.9 */

/* Seconds that end_comm() waits for ncclCommFinalize(). */
#define PATIENCE 5.0

struct nccl_reduce {
    struct reduce base;
    struct collective *collective;
    const struct nccl_calls *nccl;
    int device;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t fork, joint;
    float *probe, *pinned; /* one float, for try_sum() */
    cudaEvent_t probed;
    double waited;           /* seconds in the current wait */
    double failed_at;        /* the value of `waited` when NCCL failed; negative: it has not failed */
    ncclResult_t failure;    /* the result at that time */
    const char *failed_in;   /* the operation at that time */
    bool given_up;           /* the communicator is aborted */
    struct chex_error ended; /* the error of end_with(), which every later call returns */
};

static struct nccl_reduce *
nccl_of(struct reduce *r)
{
    return (struct nccl_reduce *)(void *)r;
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static enum chex_status
nccl_check(const struct nccl_reduce *r, ncclResult_t result, const char *what, struct chex_error *err)
{
    bool ours = result == ncclInvalidArgument || result == ncclInvalidUsage;
    const char *more = r->comm ? r->nccl->GetLastError(r->comm) : "";

    if (result == ncclSuccess || result == ncclInProgress)
        return CHEX_OK;
    return error_set(err, ours ? CHEX_ERR_BUG : CHEX_ERR_LOST, "NCCL: %s: %s%s%.200s; NCCL_DEBUG=INFO says more", what,
                     r->nccl->GetErrorString(result), more && *more ? ": " : "", more ? more : "");
}

/* ---- the end of a communicator ----------------------------------------------------------------------------------- */

struct abortion {
    ncclResult_t (*abort)(ncclComm_t);
    ncclComm_t comm;
    int device;
};

static void *
abort_there(void *context)
{
    struct abortion a = *(struct abortion *)context;

    free(context);
    (void)cudaSetDevice(a.device);
    (void)a.abort(a.comm);
    return NULL;
}

/*
 * ncclCommAbort() first stops the kernels, then waits until the graphs with its sums are destroyed.  A separate thread
 * calls it, so this one can go on and destroy them.
 */
static void
give_up(struct reduce *reduce)
{
    struct nccl_reduce *r = nccl_of(reduce);
    struct abortion *a = r->comm && !r->given_up ? malloc(sizeof(*a)) : NULL;
    pthread_t thread;

    r->given_up = true;
    if (!a)
        return;
    *a = (struct abortion){r->nccl->CommAbort, r->comm, r->device};
    if (pthread_create(&thread, NULL, abort_there, a) == 0)
        pthread_detach(thread);
    else
        free(a);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static enum chex_status
end_with(struct nccl_reduce *r, enum chex_status status, const struct chex_error *why, struct chex_error *err)
{
    r->ended = *why;
    r->ended.status = status;
    give_up(&r->base);
    return error_set(err, status, "%s", why->text);
}

/*
 * NCCL has failed.  If the cause is a lost rank, the user needs the name of that rank.  So wait until all ranks have
 * sent a heartbeat since the failure, or until the timeout, when collective_watch() reports the lost rank.
 */
static enum chex_status
look_at_failure(struct nccl_reduce *r, struct chex_error *why)
{
    double since = r->waited - r->failed_at;

    if (!collective_heard_all(r->collective, since) && since < collective_timeout(r->collective))
        return CHEX_OK;
    return nccl_check(r, r->failure, r->failed_in, why);
}

static enum chex_status
look_at_comm(struct nccl_reduce *r, struct chex_error *why)
{
    ncclResult_t state = ncclSuccess, result;

    if (r->failed_at >= 0)
        return look_at_failure(r, why);
    if (!r->comm)
        return CHEX_OK;
    result = r->nccl->CommGetAsyncError(r->comm, &state);
    if (result == ncclSuccess)
        result = state;
    if (result == ncclSuccess || result == ncclInProgress)
        return CHEX_OK;
    if (collective_size(r->collective) == 1)
        return nccl_check(r, result, "a sum of the ranks", why);
    r->failed_at = r->waited;
    r->failure = result;
    r->failed_in = "a sum of the ranks";
    return CHEX_OK;
}

/*
 * Detect sums without progress although all hosts are alive.  If a host has been silent for a while, it may be lost;
 * collective_watch() reports that after the timeout.
 */
static enum chex_status
look_at_clock(const struct nccl_reduce *r, struct chex_error *why)
{
    double patience = collective_timeout(r->collective);

    if (collective_size(r->collective) == 1 || r->failed_at >= 0 || r->waited < 1.5 * patience + 1 ||
        !collective_heard_all(r->collective, patience / 4))
        return CHEX_OK;
    return error_set(why, CHEX_ERR_LOST,
                     "no progress of the GPUs for %.3g s, although every rank is alive: NCCL_DEBUG=INFO may say why",
                     r->waited);
}

static enum chex_status
wait_turn(struct reduce *reduce, bool begins, struct chex_error *err)
{
    struct nccl_reduce *r = nccl_of(reduce);
    struct chex_error why = {.status = CHEX_OK};
    enum chex_status status;

    if (r->ended.status != CHEX_OK)
        return error_set(err, r->ended.status, "%s", r->ended.text);
    if (begins && r->failed_at < 0)
        r->waited = 0;
    status = collective_watch(r->collective, &r->waited, &why);
    if (status == CHEX_OK)
        status = look_at_comm(r, &why);
    if (status == CHEX_OK)
        status = look_at_clock(r, &why);
    return status == CHEX_OK ? CHEX_OK : end_with(r, status, &why, err);
}

/* Send heartbeats while this rank computes.  NCCL needs no help from the host to make progress. */
static enum chex_status
poll_peers(struct reduce *reduce, struct chex_error *err)
{
    return collective_poll(nccl_of(reduce)->collective, err);
}

/*
 * Handle a failed call like a failure of sums in flight: wait until the cause is known.  The sums that this rank
 * started are aborted (end_with()), so nothing waits for them.
 */
static enum chex_status
fail_call(struct nccl_reduce *r, ncclResult_t result, const char *what, struct chex_error *err)
{
    struct chex_error why;
    enum chex_status status = nccl_check(r, result, what, &why);

    if (status == CHEX_ERR_BUG || collective_size(r->collective) == 1)
        return end_with(r, status, &why, err);
    if (r->failed_at < 0) {
        r->waited = r->failed_at = 0;
        r->failure = result;
        r->failed_in = what;
    }
    while ((status = wait_turn(&r->base, false, err)) == CHEX_OK)
        backoff(50e-6);
    return status;
}

/* Wait for a call of NCCL that may still be in progress.  No work may enter the stream before the call is complete. */
static enum chex_status
finish_call(struct nccl_reduce *r, ncclResult_t result, const char *what, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    bool begins = true;

    while (status == CHEX_OK && result == ncclInProgress) {
        ncclResult_t asked = r->nccl->CommGetAsyncError(r->comm, &result);

        if (asked != ncclSuccess)
            result = asked;
        if (result != ncclInProgress)
            break;
        status = wait_turn(&r->base, begins, err);
        begins = false;
        backoff(50e-6);
    }
    return status == CHEX_OK && result != ncclSuccess ? fail_call(r, result, what, err) : status;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static enum chex_status
start_kind(struct nccl_reduce *r, void *data, size_t count, ncclDataType_t kind, cudaStream_t queue,
           struct chex_error *err)
{
    cudaError_t e = cudaSuccess;

    if (r->ended.status != CHEX_OK)
        return error_set(err, r->ended.status, "%s", r->ended.text);
    e = cudaEventRecord(r->fork, queue);
    if (e == cudaSuccess)
        e = cudaStreamWaitEvent(r->stream, r->fork, 0);
    if (e != cudaSuccess)
        return cuda_check(e, "starting a sum", err);
    return finish_call(r, r->nccl->AllReduce(data, data, count, kind, ncclSum, r->comm, r->stream),
                       "starting a sum of the ranks", err);
}

static enum chex_status
start(struct reduce *reduce, void *data, size_t count, void *queue, struct chex_error *err)
{
    return start_kind(nccl_of(reduce), data, count, ncclFloat32, queue, err);
}

static enum chex_status
start_bf16(struct reduce *reduce, void *data, size_t count, void *queue, struct chex_error *err)
{
    return start_kind(nccl_of(reduce), data, count, NCCL_BFLOAT16, queue, err);
}

static enum chex_status
join(struct reduce *reduce, void *queue, struct chex_error *err)
{
    struct nccl_reduce *r = nccl_of(reduce);
    cudaError_t e = cudaEventRecord(r->joint, r->stream);

    if (e == cudaSuccess)
        e = cudaStreamWaitEvent(queue, r->joint, 0);
    return cuda_check(e, "joining the sums of the ranks", err);
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static enum chex_status
new_stream(struct nccl_reduce *r, struct chex_error *err)
{
    void *probe = NULL, *pinned = NULL;
    int least = 0, greatest = 0;
    cudaError_t e = cudaSetDevice(r->device);

    if (e == cudaSuccess)
        e = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    /* Otherwise a sum waits until all CTAs of a kernel of the backward pass have started. */
    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&r->stream, cudaStreamNonBlocking, greatest);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&r->fork, cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&r->joint, cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&r->probed, cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cudaMalloc(&probe, sizeof(float));
    if (e == cudaSuccess)
        e = cudaMallocHost(&pinned, sizeof(float));
    r->probe = probe;
    r->pinned = pinned;
    return cuda_check(e, "a stream for the sums of the ranks", err);
}

/* Give all ranks the id from rank 0, or its error. */
static enum chex_status
share_id(struct nccl_reduce *r, enum chex_status status, ncclUniqueId *id, struct chex_error *err)
{
    memset(id, 0, sizeof(*id));
    if (status == CHEX_OK && r->base.rank == 0)
        status = nccl_check(r, r->nccl->GetUniqueId(id), "ncclGetUniqueId", err);
    status = collective_agree(r->collective, status, NULL, err);
    return status == CHEX_OK ? collective_broadcast(r->collective, id, sizeof(*id), err) : status;
}

static enum chex_status
connect(struct nccl_reduce *r, const ncclUniqueId *id, struct chex_error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t result;

    config.blocking = 0;
    /*
     * Registering the buffers of a graph would make the ranks of a node wait for each other during a capture, and gain
     * nothing: a multicast object (NVLS) cannot be bound to memory from cudaMalloc().
     */
    (void)setenv("NCCL_GRAPH_REGISTER", "0", 0);
    result = r->nccl->CommInitRankConfig(&r->comm, r->base.size, *id, r->base.rank, &config);
    return finish_call(r, result, "ncclCommInitRankConfig", err);
}

/*
 * Run a first sum, of one float.  It detects a network that sums incorrectly.  It does not connect the ranks for larger
 * sums, which may use other algorithms: a plan does that (connect_ranks()).
 */
static enum chex_status
try_sum(struct nccl_reduce *r, struct chex_error *err)
{
    cudaError_t e;
    bool begins = true;
    enum chex_status status;

    *r->pinned = 1;
    e = cudaMemcpyAsync(r->probe, r->pinned, sizeof(float), cudaMemcpyHostToDevice, r->stream);
    status = cuda_check(e, "a first sum of the ranks", err);
    if (status == CHEX_OK)
        status = start(&r->base, r->probe, 1, r->stream, err);
    if (status != CHEX_OK)
        return status;
    e = cudaMemcpyAsync(r->pinned, r->probe, sizeof(float), cudaMemcpyDeviceToHost, r->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(r->probed, r->stream);
    while (e == cudaSuccess && status == CHEX_OK && (e = cudaEventQuery(r->probed)) == cudaErrorNotReady) {
        status = wait_turn(&r->base, begins, err);
        begins = false;
        e = cudaSuccess;
        backoff(50e-6);
    }
    if (status == CHEX_OK && e == cudaSuccess && *r->pinned != (float)r->base.size)
        return error_set(err, CHEX_ERR_LOST, "NCCL: %d ranks with 1 each have the sum %g", r->base.size,
                         (double)*r->pinned);
    return status == CHEX_OK ? cuda_check(e, "a first sum of the ranks", err) : status;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/*
 * All graphs with sums are destroyed.  If the ranks finish together, ncclCommFinalize() returns at once; otherwise
 * abort the communicator.
 */
static void
end_comm(struct nccl_reduce *r)
{
    ncclResult_t state = ncclInProgress, result;
    double waited = 0;
    struct chex_error ignored;

    if (!r->comm || r->given_up)
        return;
    if (r->ended.status == CHEX_OK && r->failed_at < 0) {
        result = r->nccl->CommFinalize(r->comm);
        while ((result == ncclSuccess || result == ncclInProgress) && state == ncclInProgress && waited < PATIENCE) {
            result = r->nccl->CommGetAsyncError(r->comm, &state);
            if (collective_watch(r->collective, &waited, &ignored) != CHEX_OK)
                break;
            backoff(50e-6);
        }
    }
    if (state == ncclSuccess)
        (void)r->nccl->CommDestroy(r->comm);
    else
        give_up(&r->base);
}

static bool
free_reduce(struct reduce *reduce)
{
    struct nccl_reduce *r = nccl_of(reduce);
    bool ended;

    (void)cudaSetDevice(r->device);
    end_comm(r);
    ended = !r->given_up;
    /* After an abort the device may still be busy: the end of the process frees its resources. */
    if (!r->given_up) {
        if (r->stream)
            (void)cudaStreamDestroy(r->stream);
        if (r->fork)
            (void)cudaEventDestroy(r->fork);
        if (r->joint)
            (void)cudaEventDestroy(r->joint);
        if (r->probed)
            (void)cudaEventDestroy(r->probed);
        if (r->probe)
            (void)cudaFree(r->probe);
        if (r->pinned)
            (void)cudaFreeHost(r->pinned);
    }
    free(r);
    return ended;
}

static const struct reduce_ops ops = {.start = start,
                                      .start_bf16 = start_bf16,
                                      .join = join,
                                      .poll = poll_peers,
                                      .wait = wait_turn,
                                      .give_up = give_up,
                                      .free = free_reduce};

int
reduce_nccl_version(char text[BACKEND_LIBRARY])
{
    const struct nccl_calls *nccl = nccl_open(text, BACKEND_LIBRARY);
    int version = 0;

    if (!nccl)
        return 0;
    if (nccl->GetVersion(&version) != ncclSuccess || version < OLDEST) {
        snprintf(text, BACKEND_LIBRARY, "NCCL is older than 2.14");
        return 0;
    }
    snprintf(text, BACKEND_LIBRARY, "%d.%d.%d", version / NEW_KIND, version % NEW_KIND / 100, version % 100);
    return version;
}

enum chex_status
reduce_nccl_new(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    struct nccl_reduce *r = calloc(1, sizeof(*r));
    char text[BACKEND_LIBRARY];
    ncclUniqueId id;
    enum chex_status status;

    *out = NULL;
    if (!r)
        return error_memory(err);
    r->base = (struct reduce){.rank = collective_rank(c), .size = collective_size(c), .on_device = true, .ops = &ops};
    r->collective = c;
    r->device = ((const struct cuda_device *)(const void *)device)->number;
    r->failed_at = -1;
    r->nccl = nccl_open(text, sizeof(text));
    status = r->nccl ? new_stream(r, err) : error_set(err, CHEX_ERR_UNSUPPORTED, "%s", text);
    (void)reduce_nccl_version(text);
    snprintf(r->base.text, sizeof(r->base.text), "by NCCL %.90s on the GPUs", text);
    status = share_id(r, status, &id, err);
    if (status == CHEX_OK)
        status = collective_agree(c, connect(r, &id, err), NULL, err);
    if (status == CHEX_OK)
        status = collective_agree(c, try_sum(r, err), NULL, err);
    if (status != CHEX_OK && !r->comm) {
        (void)free_reduce(&r->base);
        return status;
    }
    if (status != CHEX_OK)
        give_up(&r->base); /* its free() says how the process must end */
    *out = &r->base;
    return status;
}
