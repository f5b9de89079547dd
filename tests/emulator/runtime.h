/*
 * runtime.h - devices, streams and graphs of the emulated runtime, as its files share them
 *
 * The model to keep in mind: a call puts work into the queue of a stream and returns.  Work is done inside of calls
 * that wait, and then only what is waited for, or, with a seed of EMULATOR_STREAMS, a part of what other streams have
 * to do as well.  A query does at most one thing, so a host that polls gets on.  One lock is held in every call.
 *
 * Work that needs other processes (tests/nccl/) is done by a host that polls alone: a host that waits for it in a call
 * would wait for ever where a peer is gone, and breaks a rule.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_RUNTIME_H
#define EMULATOR_RUNTIME_H

#include "block.h"
#include "emulator.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace emulated
{
struct device {
    struct cudaDeviceProp properties;
    size_t used;
    cudaError_t sticky; /* of a kernel that failed: nothing runs here any more */
};

/* One thing that a device does. */
struct work {
    int device;
    bool host; /* a function of the host: no device memory */
    std::function<cudaError_t()> run;
    std::function<bool()> blocked = {}; /* may it not run yet, since other processes have to do something? */
};

struct event_state {
    uint64_t requested, done;
    double seconds; /* when `done` was reached */
};

/* Nodes in the order of their recording; a node runs when those of `after` have run. */
struct graph {
    struct node {
        work what;
        std::vector<size_t> after;
    };
    std::vector<node> nodes;
};

/* A graph that runs in a stream. */
struct graph_run {
    std::shared_ptr<const graph> of;
    std::vector<size_t> ready;
    std::vector<unsigned> missing; /* of each node, how many of those before it */
    size_t left;
};

struct operation {
    enum kind { WORK, RECORD, WAIT, GRAPH } what;
    work todo;
    std::shared_ptr<event_state> event;
    uint64_t number;
    graph_run run;
};

/* What streams record together, until the capture ends. */
struct capture {
    std::shared_ptr<graph> nodes;
    cudaStream_t origin;
    bool valid;
    bool alone; /* what other threads call is no matter: cudaStreamCaptureModeThreadLocal */
    std::thread::id thread;
};
} // namespace emulated

struct CUstream_st {
    int device;
    std::deque<emulated::operation> queue;
    std::shared_ptr<emulated::capture> recording;
    std::vector<size_t> last; /* nodes that the next one comes after */
    bool behind_kernel;       /* what was put in last is a kernel */
};
struct CUevent_st {
    bool timed;
    std::shared_ptr<emulated::event_state> state;
    std::shared_ptr<emulated::capture> recording; /* where it was recorded last, if in a capture */
    std::vector<size_t> last;
};
struct CUgraph_st {
    std::shared_ptr<emulated::graph> nodes;
};
struct CUgraphExec_st {
    std::shared_ptr<const emulated::graph> nodes;
};

namespace emulated
{
/* Begins and ends each call of the runtime: the lock, injected failures, sticky errors, the last error. */
class call
{
  public:
    enum kind { ANY, DEVICE }; /* DEVICE: fails where the current device has a sticky error */
    call(const char *name, kind k = DEVICE);
    ~call();
    bool failed() const
    {
        return error != cudaSuccess;
    }
    cudaError_t end(cudaError_t e); /* keeps e as the last error of this thread, and returns it */
    cudaError_t end()
    {
        return end(error);
    }

  private:
    std::unique_lock<std::recursive_mutex> lock;
    cudaError_t error;
};

/* -- device.cc -- */
std::vector<device> &devices();
int &current_device();
extern emulator_counts counts;
/* The error that a launch of this kernel is to have: cudaSuccess. */
cudaError_t injected(const char *name);
double seconds_now();
/* Do kernels of this device wait for those in front (programmatic dependent launch)? */
int ptx_version(int device);
bool kernels_wait(int device);

/* -- memory.cc -- */
/* One device's memory may be touched from now on, or all (-1), or none. */
void open_memory(int device);
void open_no_memory();
/* Is it device memory (of which device), and all of it?  -1: memory of the host; -2: not all of it */
int owner_of(const void *p, size_t size);
/* Where the device memory that p lies in begins and ends; false: it lies in none. */
bool find_memory(const void *p, const unsigned char **begin, const unsigned char **end);
void check_margins(); /* nothing was written behind an allocation */

/* -- stream.cc -- */
cudaStream_t stream_of(cudaStream_t s);
bool finish(cudaStream_t s);    /* all that is queued there; false: the device has failed */
bool finish_device(int device); /* all streams of it */
void stream_seed(uint64_t seed);
cudaError_t enqueue(cudaStream_t s, work w);
cudaError_t enqueue_operation(cudaStream_t s, operation o);
std::vector<cudaStream_t> &all_streams();
extern bool in_host_function; /* which may not call the runtime */
extern unsigned host_waits;   /* calls under way in which the host waits */

/* -- graph.cc -- */
cudaError_t record_node(cudaStream_t s, work w);
bool capturing();                /* does any stream that this thread has to mind? */
cudaError_t refuse_in_capture(); /* a call that waits or allocates: the capture is lost */
} // namespace emulated

#endif
