/*
 * graph.cc - launches, captures, graphs
 *
 * A graph contains the recorded addresses and kernel arguments; each replay uses the contents that memory has then.
 * Nodes without an ordering between them run in any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "runtime.h"

#include <algorithm>
#include <set>

#undef gridDim /* built-in variables of kernels; here members of cudaLaunchConfig_t */
#undef blockDim

namespace emulated
{
cudaError_t
record_node(cudaStream_t s, work w)
{
    capture &c = *s->recording;

    if (!c.valid)
        return cudaErrorStreamCaptureInvalidated;
    s->behind_kernel = false;
    w.priority = s->priority;
    c.nodes->nodes.push_back({std::move(w), s->last});
    s->last.assign(1, c.nodes->nodes.size() - 1);
    return cudaSuccess;
}

static bool
is_minded(const capture *c)
{
    return c && (!c->alone || c->thread == std::this_thread::get_id());
}

bool
capturing()
{
    for (cudaStream_t s : all_streams())
        if (is_minded(s->recording.get()))
            return true;
    return false;
}

cudaError_t
refuse_in_capture()
{
    for (cudaStream_t s : all_streams())
        if (is_minded(s->recording.get()))
            s->recording->valid = false;
    return cudaErrorStreamCaptureUnsupported;
}

static bool
fits_device(const kernel *k, dim3 grid, dim3 block, size_t shared, const device &d)
{
    size_t threads = (size_t)block.x * block.y * block.z;

    return threads > 0 && threads <= k->threads && grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffff &&
           grid.y <= 65535 && grid.z <= 65535 && shared <= k->shared && shared <= d.properties.sharedMemPerBlockOptin;
}

static graph_run
start(std::shared_ptr<const graph> g)
{
    graph_run r = {g, {}, std::vector<unsigned>(g->nodes.size()), g->nodes.size()};

    for (size_t i = 0; i < g->nodes.size(); i++) {
        r.missing[i] = (unsigned)g->nodes[i].after.size();
        if (r.missing[i] == 0)
            r.ready.push_back(i);
    }
    return r;
}

/* These nodes and all nodes that must run before them. */
static std::set<size_t>
all_before(const graph &g, const std::vector<size_t> &last)
{
    std::set<size_t> seen(last.begin(), last.end());
    std::vector<size_t> todo = last;

    while (!todo.empty()) {
        size_t node = todo.back();

        todo.pop_back();
        for (size_t before : g.nodes[node].after)
            if (seen.insert(before).second)
                todo.push_back(before);
    }
    return seen;
}
} // namespace emulated

using namespace emulated;

/* ---- launches ---------------------------------------------------------------------------------------------------- */

cudaError_t
cudaFuncSetAttribute(const void *address, enum cudaFuncAttribute attribute, int value)
{
    call c("cudaFuncSetAttribute");
    kernel *k = find_kernel(address);

    if (c.failed() || !k)
        return c.end(c.failed() ? c.end() : cudaErrorInvalidDeviceFunction);
    size_t most = devices()[(size_t)current_device()].properties.sharedMemPerBlockOptin;

    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 0 && (size_t)value <= most)
        k->shared = (size_t)value;
    else if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout && value >= cudaSharedmemCarveoutDefault &&
             value <= cudaSharedmemCarveoutMaxShared)
        k->carveout = value;
    else
        return c.end(cudaErrorInvalidValue);
    return c.end();
}

cudaError_t
cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *address)
{
    call c("cudaFuncGetAttributes");
    const kernel *k = find_kernel(address);

    if (c.failed() || !k)
        return c.end(c.failed() ? c.end() : cudaErrorInvalidDeviceFunction);
    *attributes = {};
    attributes->maxThreadsPerBlock = (int)k->threads;
    attributes->ptxVersion = ptx_version(current_device());
    attributes->maxDynamicSharedSizeBytes = (int)k->shared;
    attributes->preferredShmemCarveout = k->carveout;
    return c.end();
}

/* early: programmatic dependent launch. */
static cudaError_t
put_kernel(const kernel *k, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s, bool early)
{
    if (!fits_device(k, grid, block, shared, devices()[(size_t)s->device]))
        return cudaErrorInvalidConfiguration;
    if (early && !s->behind_kernel)
        violation({}, "kernel '%s' is to begin before what is in front has ended, and that is no kernel", k->name);
    std::vector<unsigned char> argument((unsigned char *)arguments[0], (unsigned char *)arguments[0] + k->argument);
    int device = s->device;
    cudaError_t put = enqueue(s, {device, false, [=] {
                                      cudaError_t error = injected(k->name);

                                      if (error != cudaSuccess)
                                          return error;
                                      open_memory(device);
                                      run_kernel(k, argument.data(), grid, block, shared, device, early);
                                      counts.kernels++;
                                      counts.early += early;
                                      return cudaSuccess;
                                  }});

    s->behind_kernel = put == cudaSuccess;
    return put;
}

cudaError_t
cudaLaunchKernel(const void *address, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    call c("cudaLaunchKernel");
    const kernel *k = find_kernel(address);

    if (c.failed() || !k)
        return c.end(c.failed() ? c.end() : cudaErrorInvalidDeviceFunction);
    return c.end(put_kernel(k, grid, block, arguments, shared, stream_of(stream), false));
}

cudaError_t
cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *address, void **arguments)
{
    call c("cudaLaunchKernelExC");
    const kernel *k = find_kernel(address);
    bool early = false;

    if (c.failed() || !k)
        return c.end(c.failed() ? c.end() : cudaErrorInvalidDeviceFunction);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id != cudaLaunchAttributeProgrammaticStreamSerialization)
            return c.end(cudaErrorInvalidValue);
        early = config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
    }
    return c.end(put_kernel(k, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                            stream_of(config->stream), early));
}

cudaError_t
cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *context)
{
    call c("cudaLaunchHostFunc");

    if (c.failed())
        return c.end();
    return c.end(enqueue(stream, {stream_of(stream)->device, true, [=] {
                                      function(context);
                                      return cudaSuccess;
                                  }}));
}

/* ---- captures ---------------------------------------------------------------------------------------------------- */

cudaError_t
cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    call c("cudaStreamBeginCapture");

    if (c.failed())
        return c.end();
    if (!s || s->recording)
        return c.end(cudaErrorStreamCaptureUnsupported);
    s->recording = std::make_shared<capture>(
        capture{std::make_shared<graph>(), s, true, mode != cudaStreamCaptureModeGlobal, std::this_thread::get_id()});
    s->last.clear();
    s->behind_kernel = false;
    return c.end();
}

cudaError_t
cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
    call c("cudaStreamEndCapture");

    *out = NULL;
    if (c.failed())
        return c.end();
    if (!s->recording || s->recording->origin != s)
        return c.end(cudaErrorStreamCaptureUnmatched);
    std::shared_ptr<capture> ended = s->recording;
    std::set<size_t> joined = all_before(*ended->nodes, s->last);
    cudaError_t error = ended->valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;

    for (cudaStream_t other : all_streams()) {
        if (other->recording != ended)
            continue;
        for (size_t node : other->last)
            if (error == cudaSuccess && !joined.count(node))
                error = cudaErrorStreamCaptureUnjoined;
        other->recording.reset();
        other->last.clear();
        other->behind_kernel = false;
    }
    if (error == cudaSuccess)
        *out = new CUgraph_st{ended->nodes};
    ended->nodes.reset(); /* events recorded in the capture still refer to it */
    return c.end(error);
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status)
{
    call c("cudaStreamIsCapturing");

    if (c.failed())
        return c.end();
    *status = !s || !s->recording   ? cudaStreamCaptureStatusNone
              : s->recording->valid ? cudaStreamCaptureStatusActive
                                    : cudaStreamCaptureStatusInvalidated;
    return c.end();
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

cudaError_t
cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags)
{
    call c("cudaGraphInstantiateWithFlags");

    *out = NULL;
    if (c.failed())
        return c.end();
    std::shared_ptr<graph> copy = std::make_shared<graph>(*g->nodes);
    for (graph::node &node : copy->nodes)
        if (!(flags & cudaGraphInstantiateFlagUseNodePriority))
            node.what.priority = 0; /* that of the stream of its launch */
    *out = new CUgraphExec_st{copy};
    return c.end();
}

cudaError_t
cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    call c("cudaGraphUpload");

    return c.end();
}

cudaError_t
cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t stream)
{
    call c("cudaGraphLaunch");
    cudaStream_t s = stream_of(stream);
    operation o = {};

    if (c.failed())
        return c.end();
    if (s->recording)
        return c.end(refuse_in_capture());
    o.what = operation::GRAPH;
    o.run = start(g->nodes);
    counts.graphs++;
    return c.end(enqueue_operation(s, std::move(o)));
}

cudaError_t
cudaGraphDestroy(cudaGraph_t g)
{
    call c("cudaGraphDestroy", call::ANY);

    delete g;
    return c.end();
}

cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t g)
{
    call c("cudaGraphExecDestroy", call::ANY);

    delete g;
    return c.end();
}
