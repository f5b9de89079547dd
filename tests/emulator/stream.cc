/*
 * stream.cc - streams: queues of work that is executed as late as allowed; events
 *
 * Only events order two streams.  This includes the default stream, because all streams are cudaStreamNonBlocking.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "runtime.h"

#include <algorithm>

namespace emulated
{
static generator order;
static bool lazy = true;
bool in_host_function;
unsigned host_waits;

/* While the host waits. */
struct waiting {
    waiting()
    {
        host_waits++;
    }
    ~waiting()
    {
        host_waits--;
    }
};

void
stream_seed(uint64_t seed)
{
    lazy = seed == 0;
    order.state = seed * 0x9e3779b97f4a7c15u;
    order.next();
}

/* The list, with the default streams, exists until the process ends. */
std::vector<cudaStream_t> &
all_streams()
{
    static std::vector<cudaStream_t> &all = *new std::vector<cudaStream_t>;
    return all;
}

static cudaStream_t
new_stream(int device)
{
    cudaStream_t s = new CUstream_st();

    s->device = device;
    all_streams().push_back(s);
    return s;
}

/* NULL is the default stream of the current device. */
cudaStream_t
stream_of(cudaStream_t s)
{
    static std::vector<cudaStream_t> standard;
    size_t device = (size_t)current_device();

    if (s)
        return s;
    if (standard.size() <= device)
        standard.resize(device + 1);
    if (!standard[device])
        standard[device] = new_stream((int)device);
    return standard[device];
}

/* ---- execution of queued work ------------------------------------------------------------------------------------ */

static bool
is_blocked(const work &w)
{
    return w.blocked && w.blocked();
}

/* Nodes of a graph that may run now, as positions in its list of ready nodes. */
static std::vector<size_t>
runnable(const graph_run &r)
{
    std::vector<size_t> places;

    for (size_t i = 0; i < r.ready.size() && !(lazy && !places.empty()); i++)
        if (!is_blocked(r.of->nodes[r.ready[i]].what))
            places.push_back(i);
    return places;
}

static bool
can_run(const CUstream_st *s)
{
    if (s->queue.empty() || devices()[(size_t)s->device].sticky != cudaSuccess)
        return false;
    const operation &o = s->queue.front();
    if (o.what == operation::WORK)
        return !is_blocked(o.todo);
    if (o.what == operation::GRAPH)
        return o.run.left == 0 || !runnable(o.run).empty();
    return o.what != operation::WAIT || o.event->done >= o.number;
}

/* Is the next work of any stream one that waits for other processes? */
static bool
peers_hold_up()
{
    for (cudaStream_t s : all_streams()) {
        const operation *o = s->queue.empty() ? NULL : &s->queue.front();

        if (o && o->what == operation::WORK && o->todo.blocked)
            return true;
        for (size_t i = 0; o && o->what == operation::GRAPH && i < o->run.ready.size(); i++)
            if (o->run.of->nodes[o->run.ready[i]].what.blocked)
                return true;
    }
    return false;
}

/* Drop all work of a device that has failed. */
static void
fail_device(int device, cudaError_t error)
{
    devices()[(size_t)device].sticky = error;
    for (cudaStream_t s : all_streams())
        if (s->device == device)
            s->queue.clear();
}

/* False: the device, and so all of its queues, has failed. */
static bool
do_work(const work &w)
{
    cudaError_t error;

    if (w.host) {
        open_no_memory();
        in_host_function = true;
        error = w.run();
        in_host_function = false;
    } else {
        error = w.run();
    }
    if (error != cudaSuccess)
        fail_device(w.device, error);
    counts.urgent += w.priority < 0;
    return error == cudaSuccess;
}

/* Run one node of the graph at the head of the queue; true if it was the last node. */
static bool
run_node(CUstream_st *s)
{
    graph_run &r = s->queue.front().run;
    std::shared_ptr<const graph> g = r.of;
    std::vector<size_t> places = runnable(r);
    size_t at = places[lazy ? 0 : order.next() % places.size()], node = r.ready[at];

    r.ready.erase(r.ready.begin() + (long)at);
    if (!do_work(g->nodes[node].what))
        return false;
    for (size_t i = node + 1; i < g->nodes.size(); i++)
        for (size_t before : g->nodes[i].after)
            if (before == node && --r.missing[i] == 0)
                r.ready.push_back(i);
    return --r.left == 0;
}

static void
record(const operation &o)
{
    if (o.number <= o.event->done)
        return;
    o.event->done = o.number;
    o.event->seconds = seconds_now();
}

static void
advance(CUstream_st *s)
{
    if (s->queue.front().what == operation::GRAPH) {
        if (s->queue.front().run.left == 0 || run_node(s))
            s->queue.pop_front();
        return;
    }
    operation o = std::move(s->queue.front());
    s->queue.pop_front();
    if (o.what == operation::WORK)
        do_work(o.todo);
    else if (o.what == operation::RECORD)
        record(o);
}

/* Run one item of this stream, or of another one if this stream waits for it or the seed chooses it. */
static void
step(cudaStream_t wanted)
{
    std::vector<cudaStream_t> able;

    if (can_run(wanted) && (lazy || order.next() % 2 == 0)) {
        advance(wanted);
        return;
    }
    for (cudaStream_t s : all_streams())
        if (can_run(s))
            able.push_back(s);
    if (able.empty() && peers_hold_up() && host_waits == 0)
        return;
    if (able.empty() && peers_hold_up())
        violation({}, "the host waits for other ranks, and one of them may be gone: poll");
    if (able.empty())
        violation({}, "streams wait for each other");
    advance(able[lazy ? 0 : order.next() % able.size()]);
}

bool
finish(cudaStream_t s)
{
    waiting in_here;

    while (!s->queue.empty() && devices()[(size_t)s->device].sticky == cudaSuccess)
        step(s);
    return devices()[(size_t)s->device].sticky == cudaSuccess;
}

bool
finish_device(int device)
{
    std::vector<cudaStream_t> &all = all_streams();

    for (size_t i = all.size(); i-- > 0;)
        if (all[i]->device == device)
            finish(all[i]);
    if (devices()[(size_t)device].sticky != cudaSuccess)
        return false;
    open_memory(device);
    check_margins();
    return true;
}

cudaError_t
enqueue_operation(cudaStream_t s, operation o)
{
    if (devices()[(size_t)s->device].sticky != cudaSuccess)
        return devices()[(size_t)s->device].sticky;
    s->behind_kernel = false;
    s->queue.push_back(std::move(o));
    return cudaSuccess;
}

cudaError_t
enqueue(cudaStream_t stream, work w)
{
    cudaStream_t s = stream_of(stream);
    operation o = {};

    if (s->recording)
        return record_node(s, std::move(w));
    w.priority = s->priority;
    o.what = operation::WORK;
    o.todo = std::move(w);
    return enqueue_operation(s, std::move(o));
}

static cudaError_t
error_of(cudaStream_t s)
{
    return devices()[(size_t)s->device].sticky;
}
} // namespace emulated

using namespace emulated;

/* ---- streams ----------------------------------------------------------------------------------------------------- */

cudaError_t
cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    call c("cudaStreamCreateWithPriority");

    *out = NULL;
    if (c.failed())
        return c.end();
    if (flags != cudaStreamNonBlocking)
        return c.end(cudaErrorInvalidValue);
    *out = new_stream(current_device());
    (*out)->priority = priority;
    return c.end();
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    call c("cudaStreamCreateWithFlags");

    *out = NULL;
    return c.end(c.failed() ? c.end() : cudaStreamCreateWithPriority(out, flags, 0));
}

cudaError_t
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    call c("cudaDeviceGetStreamPriorityRange");

    *least = 0;
    *greatest = -5;
    return c.end();
}

cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
    call c("cudaStreamDestroy", call::ANY);
    std::vector<cudaStream_t> &all = all_streams();

    if (c.failed())
        return c.end();
    finish(s);
    all.erase(std::find(all.begin(), all.end(), s));
    delete s;
    return c.end();
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
    call c("cudaStreamSynchronize");
    cudaStream_t s = stream_of(stream);

    if (c.failed())
        return c.end();
    if (s->recording)
        return c.end(refuse_in_capture());
    counts.waits++;
    finish(s);
    return c.end(error_of(s));
}

cudaError_t
cudaDeviceSynchronize(void)
{
    call c("cudaDeviceSynchronize");

    if (c.failed())
        return c.end();
    if (capturing())
        return c.end(refuse_in_capture());
    counts.waits++;
    finish_device(current_device());
    return c.end(devices()[(size_t)current_device()].sticky);
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
    call c("cudaStreamQuery");
    cudaStream_t s = stream_of(stream);

    if (c.failed())
        return c.end();
    if (s->recording)
        return c.end(refuse_in_capture());
    counts.queries++;
    if (s->queue.empty())
        return c.end(error_of(s));
    step(s);
    return c.end(error_of(s) == cudaSuccess ? cudaErrorNotReady : error_of(s));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    call c("cudaEventCreateWithFlags");

    *out = NULL;
    if (c.failed())
        return c.end();
    *out = new CUevent_st();
    (*out)->timed = !(flags & cudaEventDisableTiming);
    (*out)->state = std::make_shared<event_state>();
    return c.end();
}

cudaError_t
cudaEventDestroy(cudaEvent_t e)
{
    call c("cudaEventDestroy", call::ANY);

    delete e;
    return c.end();
}

cudaError_t
cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t stream, unsigned flags)
{
    call c("cudaEventRecord");
    cudaStream_t s = stream_of(stream);
    operation o = {};

    if (c.failed())
        return c.end();
    o.what = operation::RECORD;
    o.event = e->state;
    if (s->recording && (flags & cudaEventRecordExternal)) { /* a node: completes at each replay */
        std::shared_ptr<event_state> state = e->state;

        return c.end(record_node(s, {s->device, false, [=] {
                                         state->requested++;
                                         state->done = state->requested;
                                         state->seconds = seconds_now();
                                         return cudaSuccess;
                                     }}));
    }
    s->behind_kernel = false;
    e->recording = s->recording;
    e->last = s->last;
    if (s->recording)
        return c.end();
    o.number = ++e->state->requested;
    return c.end(enqueue_operation(s, std::move(o)));
}

cudaError_t
cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(e, stream, cudaEventRecordDefault);
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned)
{
    call c("cudaStreamWaitEvent");
    cudaStream_t s = stream_of(stream);
    operation o = {};

    if (c.failed())
        return c.end();
    if (e->recording && !e->recording->nodes)
        return c.end(cudaErrorStreamCaptureIsolation);
    if (e->recording) { /* the stream joins the capture */
        if (s->recording ? s->recording != e->recording : !s->queue.empty())
            return c.end(refuse_in_capture());
        s->recording = e->recording;
        s->behind_kernel = false;
        for (size_t node : e->last)
            if (std::find(s->last.begin(), s->last.end(), node) == s->last.end())
                s->last.push_back(node);
        return c.end();
    }
    if (s->recording)
        return c.end(cudaErrorStreamCaptureIsolation);
    o.what = operation::WAIT;
    o.event = e->state;
    o.number = e->state->requested;
    return c.end(enqueue_operation(s, std::move(o)));
}

/* Run one item of the stream that recorded the event. */
static cudaError_t
step_to(cudaEvent_t e)
{
    for (cudaStream_t s : all_streams())
        for (const operation &o : s->queue)
            if (o.what == operation::RECORD && o.event == e->state) {
                step(s);
                return error_of(s);
            }
    violation({}, "an event is waited for that no stream brings");
}

static bool
is_done(cudaEvent_t e)
{
    return e->state->done >= e->state->requested;
}

cudaError_t
cudaEventQuery(cudaEvent_t e)
{
    call c("cudaEventQuery");

    if (c.failed())
        return c.end();
    if (e->recording)
        return c.end(cudaErrorCapturedEvent);
    counts.queries++;
    if (is_done(e))
        return c.end();
    cudaError_t error = step_to(e);
    return c.end(error == cudaSuccess ? cudaErrorNotReady : error);
}

cudaError_t
cudaEventSynchronize(cudaEvent_t e)
{
    call c("cudaEventSynchronize");
    cudaError_t error = cudaSuccess;

    if (c.failed())
        return c.end();
    if (e->recording)
        return c.end(cudaErrorCapturedEvent);
    counts.waits++;
    waiting in_here;
    while (error == cudaSuccess && !is_done(e))
        error = step_to(e);
    return c.end(error);
}

cudaError_t
cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    call c("cudaEventElapsedTime");

    if (c.failed())
        return c.end();
    if (!from->timed || !to->timed || from->state->requested == 0 || to->state->requested == 0)
        return c.end(cudaErrorInvalidResourceHandle);
    if (!is_done(from) || !is_done(to))
        return c.end(cudaErrorNotReady);
    *milliseconds = (float)((to->state->seconds - from->state->seconds) * 1e3);
    return c.end();
}
