/*
 * memory.cc - device memory, and pinned host memory
 *
 * A new allocation is filled with NaN.  It is rounded up to 256 bytes and lies between two guard pages.  Only kernels
 * and copies may access it, while they run.  Its addresses are never used again.
 *
 * Mapped host memory has two addresses: that of the host, and that of the device, which is a region like others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "runtime.h"

#include <map>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emulated
{
struct region {
    unsigned char *map; /* its pages, without the two guard pages */
    size_t mapped, size, room;
    int device;
};
typedef std::map<const unsigned char *, region> region_map; /* by the first byte */

/* Freed regions are in a map of their own, because each copy and each launch iterates over all live ones. */
static region_map regions, freed;
static std::map<void *, size_t> &pinned = *new std::map<void *, size_t>; /* never destroyed: no leak */
static std::map<void *, unsigned char *> mapped_at;                      /* by the host's address: the device's */
enum { NONE = -2, ALL = -1 };
static int opened = NONE;

static size_t
page_size()
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void
open_regions(int which)
{
    if (which == opened)
        return;
    for (const auto &r : regions)
        mprotect(r.second.map, r.second.mapped,
                 which == ALL || which == r.second.device ? PROT_READ | PROT_WRITE : PROT_NONE);
    opened = which;
}

void
open_memory(int device)
{
    open_regions(device);
}

void
open_no_memory()
{
    open_regions(NONE);
}

/* Is `at` in one of these regions, or in a guard page? */
static void
look_for(const unsigned char *at, const region_map &map, const char *word)
{
    place behind = running ? running->at : place{};

    for (const auto &r : map) {
        const region &g = r.second;

        if (at < g.map - page_size() || at >= g.map + g.mapped + page_size())
            continue;
        if (running && !running->may_touch)
            violation(behind, "a thread touches device memory before it has waited for the kernel in front");
        violation(behind, "%s touches %p, byte %td of %sdevice memory of %zu bytes", running ? "a thread" : "the host",
                  (const void *)at, at - r.first, word, g.size);
    }
}

/* SIGSEGV: a kernel or the host accessed memory that is closed to it. */
static void
on_fault(int, siginfo_t *info, void *)
{
    const unsigned char *at = (const unsigned char *)info->si_addr;
    place behind = running ? running->at : place{};

    look_for(at, regions, "");
    look_for(at, freed, "freed ");
    if (running && at >= running->seen.shared && at < running->seen.shared + (1 << 20))
        violation(behind, "a thread touches byte %td of the shared memory of its block, which has no such byte",
                  at - running->seen.shared);
    violation(behind, "%s touches %p, where nothing is", running ? "a thread" : "the host", (const void *)at);
}

static void
catch_faults()
{
    static thread_local bool done;
    static unsigned char stack[128 << 10]; /* threads may share it, because a fault ends the process */
    stack_t alternative = {}, there = {};
    struct sigaction action = {};

    if (done)
        return;
    done = true;
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof(stack);
    if (sigaltstack(NULL, &there) == 0 && there.ss_flags & SS_DISABLE) /* a sanitizer has its own, and restores it */
        sigaltstack(&alternative, NULL);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* The region that contains the address or ends just before it; end(): none. */
static region_map::iterator
region_of(const void *p, region_map &map)
{
    auto r = map.upper_bound((const unsigned char *)p);

    if (r == map.begin())
        return map.end();
    --r;
    return (const unsigned char *)p < r->second.map + r->second.mapped ? r : map.end();
}

int
owner_of(const void *p, size_t size)
{
    auto r = region_of(p, regions);

    if (r == regions.end())
        return region_of(p, freed) == freed.end() ? -1 : -2;
    return (size_t)((const unsigned char *)p - r->first) + size <= r->second.size ? r->second.device : -2;
}

bool
find_memory(const void *p, const unsigned char **begin, const unsigned char **end)
{
    auto r = region_of(p, regions);

    if (r == regions.end() || (const unsigned char *)p >= r->first + r->second.size)
        return false;
    const region &g = r->second;
    *begin = r->first;
    *end = r->first + g.size;
    return true;
}

void
each_allocation(int device, const std::function<void(unsigned char *begin, size_t size)> &f)
{
    for (const auto &r : regions)
        if (r.second.device == device)
            f((unsigned char *)r.first, r.second.size);
}

static void
check_margin(const unsigned char *start, const region &g)
{
    ASAN(__asan_unpoison_memory_region(start, g.room);)
    for (size_t i = g.size; i < g.room; i++)
        if (start[i] != 0xff)
            violation({}, "byte %zu of device memory of %zu bytes was written", i, g.size);
    ASAN(__asan_poison_memory_region(start + g.size, g.room - g.size);)
}

void
check_margins()
{
    for (const auto &r : regions)
        if (opened == ALL || opened == r.second.device)
            check_margin(r.first, r.second);
}
} // namespace emulated

using namespace emulated;

cudaError_t
cudaMemGetInfo(size_t *available, size_t *total)
{
    call c("cudaMemGetInfo");

    if (c.failed())
        return c.end();
    const device &d = devices()[(size_t)current_device()];
    *available = d.properties.totalGlobalMem - d.used;
    *total = d.properties.totalGlobalMem;
    return c.end();
}

#define HUGE_PAGE ((size_t)2 << 20)

static size_t
room_of(size_t size)
{
    return (size + 255) / 256 * 256;
}

static size_t
mapped_of(size_t room)
{
    return (room + page_size() - 1) / page_size() * page_size();
}

/* Makes a closed region of the current device at the end of these pages; returns its first byte. */
static unsigned char *
add_region(unsigned char *map, size_t size)
{
    size_t room = room_of(size), mapped = mapped_of(room);
    unsigned char *start = map + mapped - room;

    memset(map, 0xff, mapped);
    mprotect(map - page_size(), mapped + 2 * page_size(), PROT_NONE);
    regions[start] = {map, mapped, size, room, current_device()};
    ASAN(__asan_poison_memory_region(map, mapped - room); __asan_poison_memory_region(start + size, room - size);)
    catch_faults();
    return start;
}

cudaError_t
cudaMalloc(void **out, size_t size)
{
    call c("cudaMalloc");
    size_t page = page_size(), room = room_of(size), mapped = mapped_of(room);

    *out = NULL;
    if (c.failed() || size == 0)
        return c.end();
    if (capturing())
        return c.end(refuse_in_capture());
    device &d = devices()[(size_t)current_device()];
    if (room > d.properties.totalGlobalMem - d.used)
        return c.end(cudaErrorMemoryAllocation);
    unsigned char *map = (unsigned char *)mmap(NULL, mapped + 2 * page, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return c.end(cudaErrorMemoryAllocation);
    map += page;
    /*
     * The protection of a region changes before and after each kernel: huge pages make that fast for large regions.
     * Small regions go without, because the kernel merges a freed region with its neighbours only if both have the same
     * advice, and a process may have 65,530 regions.
     */
    if (mapped >= HUGE_PAGE)
        madvise(map, mapped, MADV_HUGEPAGE);
    *out = add_region(map, size);
    d.used += room;
    counts.allocations++;
    return c.end();
}

cudaError_t
cudaFree(void *p)
{
    call c("cudaFree");
    auto r = regions.find((unsigned char *)p);

    if (c.failed() || !p)
        return c.end();
    if (capturing())
        return c.end(refuse_in_capture());
    if (r == regions.end())
        return c.end(cudaErrorInvalidValue);
    const region &g = r->second;
    counts.waits++;
    if (!finish_device(g.device))
        return c.end(devices()[(size_t)g.device].sticky);
    open_memory(g.device);
    check_margin(r->first, g);
    devices()[(size_t)g.device].used -= g.room;
    madvise(g.map, g.mapped, MADV_DONTNEED);
    mprotect(g.map, g.mapped, PROT_NONE);
    freed.insert(regions.extract(r));
    return c.end();
}

cudaError_t
cudaMallocHost(void **out, size_t size)
{
    call c("cudaMallocHost");

    *out = NULL;
    if (c.failed())
        return c.end();
    if (posix_memalign(out, 4096, size ? size : 1) != 0)
        return c.end(cudaErrorMemoryAllocation);
    memset(*out, 0xff, size);
    pinned[*out] = size;
    return c.end();
}

/* Maps the same pages twice: at *host, and with guard pages at the address that this returns; NULL: out of memory. */
static unsigned char *
map_twice(size_t mapped, unsigned char **host)
{
    int file = memfd_create("mapped host memory", MFD_CLOEXEC);
    size_t page = page_size();
    void *both = MAP_FAILED, *device = MAP_FAILED;

    if (file >= 0 && ftruncate(file, (off_t)mapped) == 0) {
        *host = (unsigned char *)mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        both = mmap(NULL, mapped + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (both != MAP_FAILED && *host != MAP_FAILED)
        device = mmap((unsigned char *)both + page, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (file >= 0)
        close(file);
    return device == MAP_FAILED ? NULL : (unsigned char *)device;
}

cudaError_t
cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    call c("cudaHostAlloc");
    unsigned char *host = NULL, *map;

    *out = NULL;
    if (c.failed())
        return c.end();
    if (flags != cudaHostAllocMapped || size == 0)
        return c.end(cudaErrorInvalidValue);
    if (capturing())
        return c.end(refuse_in_capture());
    map = map_twice(mapped_of(room_of(size)), &host);
    if (!map)
        return c.end(cudaErrorMemoryAllocation);
    unsigned char *start = add_region(map, size);
    *out = host + (start - map);
    mapped_at[*out] = start;
    return c.end();
}

cudaError_t
cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    call c("cudaHostGetDevicePointer");
    auto found = mapped_at.find(host);

    *device = NULL;
    if (c.failed())
        return c.end();
    if (flags != 0 || found == mapped_at.end())
        return c.end(cudaErrorInvalidValue);
    *device = found->second;
    return c.end();
}

/* The addresses of both are never used again. */
static cudaError_t
free_mapped(void *host, unsigned char *device)
{
    region g = regions.find(device)->second;

    counts.waits++;
    if (!finish_device(g.device))
        return devices()[(size_t)g.device].sticky;
    open_memory(g.device);
    check_margin(device, g);
    mprotect(g.map, g.mapped, PROT_NONE);
    mprotect((unsigned char *)host - (device - g.map), g.mapped, PROT_NONE);
    freed.insert(regions.extract(device));
    mapped_at.erase(host);
    return cudaSuccess;
}

cudaError_t
cudaFreeHost(void *p)
{
    call c("cudaFreeHost");
    auto found = pinned.find(p);

    if (c.failed() || !p)
        return c.end();
    if (mapped_at.count(p))
        return c.end(free_mapped(p, mapped_at[p]));
    if (found == pinned.end())
        return c.end(cudaErrorInvalidValue);
    counts.waits++;
    finish_device(current_device()); /* only the device of this thread uses this memory */
    pinned.erase(found);
    free(p);
    return c.end();
}

/* Copy in a loop of our own: the sanitizer would attribute an instrumented memcpy() to the host, not to the device. */
static cudaError_t
copy_bytes(void *to, const void *from, size_t size)
{
    int a = owner_of(to, size), b = owner_of(from, size);

    if (a == -2 || b == -2)
        violation({}, "a copy of %zu bytes from %p to %p meets device memory that was freed", size, from, to);
    open_memory(a >= 0 && b >= 0 && a != b ? ALL : a >= 0 ? a : b);
    memmove(to, from, size);
    counts.copies++;
    return cudaSuccess;
}

/* Do the addresses match this kind of copy? */
static bool
fits_kind(int to, int from, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return to == -1 && from == -1;
    case cudaMemcpyHostToDevice:
        return to >= 0 && from == -1;
    case cudaMemcpyDeviceToHost:
        return to == -1 && from >= 0;
    case cudaMemcpyDeviceToDevice:
        return to >= 0 && from >= 0;
    case cudaMemcpyDefault:
        return to != -2 && from != -2;
    }
    return false;
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    call c("cudaMemcpyAsync");
    int a = owner_of(to, size), b = owner_of(from, size);

    if (c.failed() || size == 0)
        return c.end();
    if (!fits_kind(a, b, kind))
        return c.end(cudaErrorInvalidValue);
    return c.end(enqueue(stream, {stream_of(stream)->device, false, [=] { return copy_bytes(to, from, size); }}));
}

cudaError_t
cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    call c("cudaMemcpy");
    int a = owner_of(to, size), b = owner_of(from, size);

    if (c.failed() || size == 0)
        return c.end();
    if (capturing())
        return c.end(refuse_in_capture());
    if (!fits_kind(a, b, kind))
        return c.end(cudaErrorInvalidValue);
    counts.waits++;
    enqueue(NULL, {current_device(), false, [=] { return copy_bytes(to, from, size); }});
    finish(stream_of(NULL));
    return c.end(devices()[(size_t)current_device()].sticky);
}

static work
set_bytes(void *to, int value, size_t size, int device)
{
    return {device, false, [=] {
                if (owner_of(to, size) < 0)
                    violation({}, "a cudaMemset of %zu bytes at %p meets device memory that was freed", size, to);
                open_memory(device);
                memset(to, value, size);
                counts.copies++;
                return cudaSuccess;
            }};
}

cudaError_t
cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream)
{
    call c("cudaMemsetAsync");
    int device = owner_of(to, size);

    if (c.failed() || size == 0)
        return c.end();
    if (device < 0)
        return c.end(cudaErrorInvalidValue);
    return c.end(enqueue(stream, set_bytes(to, value, size, device)));
}

cudaError_t
cudaMemset(void *to, int value, size_t size)
{
    call c("cudaMemset");
    int device = owner_of(to, size);

    if (c.failed() || size == 0)
        return c.end();
    if (device < 0)
        return c.end(cudaErrorInvalidValue);
    counts.waits++;
    enqueue(NULL, set_bytes(to, value, size, device));
    finish(stream_of(NULL));
    return c.end(devices()[(size_t)device].sticky);
}
