/*
 * block.cc - runs a kernel block by block, and a block thread by thread
 *
 * For the thread sanitizer, blocks are unordered: each one synchronises only with the start of the kernel, and the
 * stacks and the shared memory of the previous block are reset.
 *
 * In a programmatic dependent launch, the previous kernel may still be running.  So device memory is closed to a block
 * until all of its threads have reached their wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "runtime.h"

#include <algorithm>
#include <map>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emulated
{
#define SHARED_MOST ((size_t)227 << 10) /* of a block on sm_90 */
#define SHARED_MAP  ((size_t)228 << 10)

thread *self;
block_thread *running;
const executor *other_executor;

static block_thread *threads;
static unsigned thread_count, ended_count;
static block_thread *ready[THREADS_MAX]; /* a ring */
static unsigned ready_first, ready_count;
static fiber host;
static generator order;
static bool in_order = true;
static const kernel *current;
static const void *current_argument;
static int of_device;
static bool current_early;
static unsigned waited_count; /* threads of the block that called wait_for_kernels() */

/* The barrier of the block: how many threads have reached it, and where the first one waits. */
static struct {
    unsigned arrived;
    place at;
    bool odd;
    TSAN(char *sync;) /* one for each parity: a faster thread must not release at this barrier what it wrote after it */
} barrier;
TSAN(static char launch_sync, end_sync;)

/* ---- random order ------------------------------------------------------------------------------------------------ */

uint32_t
generator::next()
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

void
block_seed(uint64_t seed)
{
    in_order = seed == 0;
    order.state = seed * 0x9e3779b97f4a7c15u;
    order.next();
}

/* ---- violations -------------------------------------------------------------------------------------------------- */

const char *
where()
{
    static char text[200];

    if (!current)
        return other_executor ? other_executor->where() : "";
    if (!running)
        snprintf(text, sizeof(text), "kernel '%s'", current->name);
    else
        snprintf(text, sizeof(text), "kernel '%s', block %u,%u,%u, thread %u", current->name, running->seen.block.x,
                 running->seen.block.y, running->seen.block.z, (unsigned)(running - threads));
    return text;
}

void
violation(place at, const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fputs("emulator: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (*where())
        fprintf(stderr, "; %s", where());
    if (at.file)
        fprintf(stderr, ", at %s:%d", at.file, at.line);
    fputc('\n', stderr);
    abort();
}

void
check_aligned(const void *p, size_t align, place at)
{
    if ((uintptr_t)p % align != 0)
        violation(at, "an access of %zu bytes at %p, which is no multiple of it", align, p);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static block_thread *&
ready_at(size_t i)
{
    return ready[(ready_first + i) % THREADS_MAX];
}

static block_thread *
take_ready()
{
    if (!in_order)
        std::swap(ready_at(0), ready_at(order.next() % ready_count));
    ready_count--;
    return ready[ready_first++ % THREADS_MAX];
}

static void
switch_away(bool for_good)
{
    fiber *from = &running->stack, *to = &host;

    running = NULL;
    if (ready_count > 0) {
        running = take_ready();
        self = &running->seen;
        to = &running->stack;
    }
    if (to != from)
        fiber_switch(from, to, for_good);
}

void
wait_here(place at)
{
    running->at = at;
    running->waits = true;
    switch_away(false);
}

void
release(block_thread *t)
{
    t->waits = false;
    ready_at(ready_count++) = t;
}

block_thread *
lane_of_warp(unsigned lane)
{
    return &threads[running->seen.warp * WARP + lane];
}

static void
thread_main()
{
    fiber_begin(&running->stack);
    TSAN(__tsan_acquire(&launch_sync);)
    current->run(current_argument);
    if (!running->may_touch)
        violation(running->at, "a thread ended without having waited for the kernel in front, which may still run");
    if (running->copy_count > 0)
        violation(running->at, "a thread ended with an asynchronous copy that it never waited for");
    TSAN(__tsan_release(&end_sync);)
    running->ended = true;
    ended_count++;
    switch_away(true);
    abort(); /* nobody switches back */
}

static bool
same_place(place a, place b)
{
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

void
sync_block(place at)
{
    if (barrier.arrived > 0 && !same_place(at, barrier.at))
        violation(at, "threads of a block meet at different barriers, others at %s:%d", barrier.at.file,
                  barrier.at.line);
    barrier.at = at;
    TSAN(char *sync = barrier.sync + barrier.odd; __tsan_release(sync);)
    if (++barrier.arrived < thread_count) {
        wait_here(at);
    } else {
        COUNTED(traffic_block(thread_count);)
        barrier.arrived = 0;
        barrier.odd = !barrier.odd;
        for (unsigned i = 0; i < thread_count; i++)
            if (&threads[i] != running)
                release(&threads[i]);
    }
    TSAN(__tsan_acquire(sync);)
}

/* All threads of a block wait for each other here (on a device they do not): memory opens for all at once. */
void
wait_for_kernels(place at)
{
    if (running->may_touch || !kernels_wait(of_device))
        return;
    running->may_touch = true;
    if (++waited_count < thread_count) {
        wait_here(at);
        return;
    }
    open_memory(of_device);
    for (unsigned i = 0; i < thread_count; i++)
        if (&threads[i] != running)
            release(&threads[i]);
}

[[noreturn]] static void
deadlock()
{
    std::map<std::pair<const char *, int>, unsigned> places;
    unsigned i, first = thread_count;

    for (i = 0; i < thread_count; i++)
        if (threads[i].waits) {
            places[{threads[i].at.file, threads[i].at.line}]++;
            first = first < i ? first : i;
        }
    for (const auto &p : places)
        fprintf(stderr, "emulator: %u threads wait at %s:%d\n", p.second, p.first.first, p.first.second);
    running = &threads[first];
    violation(running->at, "threads wait for others that never come, %u of %u have ended", ended_count, thread_count);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static unsigned char *stacks, *shared_map;

/* Below each stack is a guard page. */
static void
make_memory()
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), i;
    int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

    threads = new block_thread[THREADS_MAX]();
    stacks = (unsigned char *)mmap(NULL, THREADS_MAX * (FIBER_STACK + page), protection, flags, -1, 0);
    shared_map = (unsigned char *)mmap(NULL, SHARED_MAP + page, protection, flags, -1, 0);
    if (stacks == MAP_FAILED || shared_map == MAP_FAILED)
        violation({}, "no memory for the stacks of threads");
    mprotect(shared_map + SHARED_MAP, page, PROT_NONE);
    for (i = 0; i < THREADS_MAX; i++) {
        threads[i].stack.stack = stacks + i * (FIBER_STACK + page) + page;
        mprotect(threads[i].stack.stack - page, page, PROT_NONE);
    }
}

/* Shared memory, filled with NaN, that ends at a guard page. */
static unsigned char *
fresh_shared(size_t size)
{
    size_t room = (size + 127) / 128 * 128;
    unsigned char *base = shared_map + SHARED_MAP - room;

    ASAN(__asan_unpoison_memory_region(shared_map, SHARED_MAP);)
    TSAN(mmap(shared_map, SHARED_MAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);)
    for (size_t i = 0; i < room / 4; i++)
        ((volatile uint32_t *)(void *)base)[i] = 0xffffffffu;
    ASAN(__asan_poison_memory_region(base + size, room - size);
         __asan_poison_memory_region(shared_map, SHARED_MAP - room);)
    return base;
}

/* One call for all stacks and the pages between them: a call per thread would take far longer than the kernel. */
static void
forget_stacks()
{
    TSAN(mmap(stacks, thread_count * (FIBER_STACK + (size_t)sysconf(_SC_PAGESIZE)), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
         __tsan_release(&launch_sync);)
}

static void
run_block(uint3 block, uint3 size, uint3 grid, unsigned char *shared)
{
    unsigned i;

    ended_count = barrier.arrived = waited_count = 0;
    ready_count = 0;
    if (current_early)
        open_no_memory();
    for (i = 0; i < thread_count; i++) {
        block_thread *t = &threads[i];

        t->seen = {
            {i % size.x, i / size.x % size.y, i / size.x / size.y}, block, size, grid, i % WARP, i / WARP, shared};
        t->at = {};
        t->ended = false;
        t->may_touch = !current_early;
        t->group = 0;
        t->copy_count = 0;
        fiber_prepare(&t->stack, thread_main);
        release(t);
    }
    TSAN(barrier.sync = (char *)malloc(2);)
    running = take_ready();
    self = &running->seen;
    fiber_switch(&host, &running->stack, false);
    if (ended_count < thread_count)
        deadlock();
    COUNTED(traffic_block(thread_count);)
    TSAN(free(barrier.sync);)
    for (i = 0; i < thread_count; i++)
        fiber_release(&threads[i].stack);
}

void
emulate_kernel(const kernel *k, const void *argument, dim3 grid, dim3 block, size_t shared, int device, bool early)
{
    size_t blocks = (size_t)grid.x * grid.y * grid.z, i, n;
    std::vector<size_t> turn(blocks);

    if (!threads)
        make_memory();
    fiber_adopt(&host);
    current = k;
    current_argument = argument;
    of_device = device;
    current_early = early;
    COUNTED(traffic_begin(k, shared);)
    thread_count = block.x * block.y * block.z;
    for (i = 0; i < blocks; i++)
        turn[i] = i;
    for (i = blocks; !in_order && i > 1; i--)
        std::swap(turn[i - 1], turn[order.next() % i]);
    for (i = 0; i < blocks; i++) {
        unsigned char *base = fresh_shared(shared);

        n = turn[i];
        forget_stacks();
        run_block({(unsigned)(n % grid.x), (unsigned)(n / grid.x % grid.y), (unsigned)(n / grid.x / grid.y)},
                  {block.x, block.y, block.z}, {grid.x, grid.y, grid.z}, base);
    }
    TSAN(__tsan_acquire(&end_sync);)
    COUNTED(traffic_end();)
    current = NULL;
}

void
run_kernel(const kernel *k, const void *argument, dim3 grid, dim3 block, size_t shared, int device, bool early)
{
    if (!other_executor || !other_executor->run(k, argument, grid, block, shared, device, early))
        emulate_kernel(k, argument, grid, block, shared, device, early);
}

/* ---- kernels by address ------------------------------------------------------------------------------------------ */

static std::map<const void *, kernel> &
kernels()
{
    static std::map<const void *, kernel> all;
    return all;
}

kernel *
find_kernel(const void *address)
{
    auto k = kernels().find(address);

    return k == kernels().end() ? NULL : &k->second;
}

register_kernel::register_kernel(const void *address, kernel k)
{
    kernels()[address] = k;
}
} // namespace emulated
