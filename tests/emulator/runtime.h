/*
 * runtime.h - devices, streams and graphs: declarations shared by the files of the emulated runtime
 *
 * A call adds work to the queue of a stream and returns.  Only calls that wait execute work: the work that they wait
 * for and, with a seed in EMULATOR_STREAMS, a part of the work of other streams.  A query executes at most one item, so
 * a host that polls makes progress.  Every call holds one lock.
 *
 * Work that needs other processes (fakes/nccl) is executed only by queries.  A host that waits for it in a blocking
 * call would wait forever if another process had died, so this is a violation.
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
    cudaError_t sticky; /* from a failed kernel: nothing runs on this device any more */
};

/* One item of work of a device. */
struct work {
    int device;
    bool host; /* a host function: may not access device memory */
    std::function<cudaError_t()> run;
    std::function<bool()> blocked = {}; /* must it wait for other processes? */
    int priority = 0;                   /* that of its stream; does not change the order */
};

struct event_state {
    uint64_t requested, done;
    double seconds; /* time at which `done` was reached */
};

/* Nodes in the order of their recording; a node runs when those of `after` have run. */
struct graph {
    struct node {
        work what;
        std::vector<size_t> after;
    };
    std::vector<node> nodes;
};

/* A graph that is being executed in a stream. */
struct graph_run {
    std::shared_ptr<const graph> of;
    std::vector<size_t> ready;
    std::vector<unsigned> missing; /* for each node: number of unfinished predecessors */
    size_t left;
};

struct operation {
    enum kind { WORK, RECORD, WAIT, GRAPH } what;
    work todo;
    std::shared_ptr<event_state> event;
    uint64_t number;
    graph_run run;
};

/* The joint capture of several streams. */
struct capture {
    std::shared_ptr<graph> nodes;
    cudaStream_t origin;
    bool valid;
    bool alone; /* calls of other threads are allowed: cudaStreamCaptureModeThreadLocal */
    std::thread::id thread;
};
} // namespace emulated

struct CUstream_st {
    int device, priority;
    std::deque<emulated::operation> queue;
    std::shared_ptr<emulated::capture> recording;
    std::vector<size_t> last; /* predecessors of the next node */
    bool behind_kernel;       /* the last item is a kernel */
};
struct CUevent_st {
    bool timed;
    std::shared_ptr<emulated::event_state> state;
    std::shared_ptr<emulated::capture> recording; /* the capture in which it was recorded last, or empty */
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
    enum kind { ANY, DEVICE }; /* DEVICE: fails if the current device has a sticky error */
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
/* The injected error of the next launch of this kernel, or cudaSuccess. */
cudaError_t injected(const char *name);
double seconds_now();
/* The PTX version of the kernels on this device, as 10 x major + minor. */
int ptx_version(int device);
bool kernels_wait(int device);

/* -- memory.cc -- */
/* Open the memory of one device, of all (-1), or of none. */
void open_memory(int device);
void open_no_memory();
/* Returns the device that owns all of this memory; -1: host memory; -2: only a part is device memory. */
int owner_of(const void *p, size_t size);
/* Find the allocation of device memory that contains p; false: none. */
bool find_memory(const void *p, const unsigned char **begin, const unsigned char **end);
/* Call f for the memory of each allocation of this device. */
void each_allocation(int device, const std::function<void(unsigned char *begin, size_t size)> &f);
void check_margins(); /* check that nothing was written after the end of an allocation */

/* -- stream.cc -- */
cudaStream_t stream_of(cudaStream_t s);
bool finish(cudaStream_t s);    /* execute all queued work; false: the device has failed */
bool finish_device(int device); /* all streams of it */
void stream_seed(uint64_t seed);
cudaError_t enqueue(cudaStream_t s, work w);
cudaError_t enqueue_operation(cudaStream_t s, operation o);
std::vector<cudaStream_t> &all_streams();
extern bool in_host_function; /* a host function may not call the runtime */
extern unsigned host_waits;   /* number of blocking calls in progress */

/* -- graph.cc -- */
cudaError_t record_node(cudaStream_t s, work w);
bool capturing();                /* is any stream being captured that restricts this thread? */
cudaError_t refuse_in_capture(); /* for a call that waits or allocates: invalidates the capture */
} // namespace emulated

#endif
