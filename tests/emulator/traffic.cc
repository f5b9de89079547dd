/*
 * traffic.cc - see traffic.h
 *
 * Global memory: the bytes that threads request, and the sectors of 32 bytes that a launch accesses, each counted once.
 * The sectors are the DRAM traffic of a cache that holds all data which a launch reads repeatedly, but no data of
 * the previous launch.
 *
 * Shared memory: 32 banks of 4 bytes.  An access of a warp is served in phases: one phase for up to 4 bytes per lane,
 * half warps for 8 bytes, quarter warps for 16 bytes, one matrix at a time for ldmatrix.  A phase takes as many passes
 * as the most requested bank has different words; lanes that read the same word share it.  The lanes run one after the
 * other here, so accesses are combined between two synchronisations of the warp: the n-th execution of an instruction
 * by each lane is one access of the warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traffic.h"

#include "runtime.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

namespace emulated
{
enum { SECTOR = 32, PAGE = 1 << 16, BANKS = 32 };

/* The sectors of one page of global memory that the current launch has accessed. */
struct touched {
    uint64_t read[PAGE / SECTOR / 64], written[PAGE / SECTOR / 64];
};
static std::unordered_map<uintptr_t, touched> pages;
/* The most recently used ones; and the device memory that was used last. */
enum { RECENT = 64 };
struct known_page {
    uintptr_t page;
    touched *at;
};
static known_page recent[RECENT];
static const unsigned char *memory_begin, *memory_end;

struct shared_access {
    const void *site;
    unsigned offset, size;
    emulator_shared_kind kind;
};
static std::vector<shared_access> accesses[THREADS_MAX];

static std::map<std::string, emulator_traffic> all;
static emulator_traffic *current;
static size_t shared_size; /* of a block of it */

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

/* Bytes of the lanes that the hardware serves in one phase. */
struct phase {
    unsigned words[BANKS * 4], count;
};

static void
add_words(phase &p, unsigned offset, unsigned size)
{
    for (unsigned word = offset / 4; word <= (offset + size - 1) / 4; word++)
        if (std::find(p.words, p.words + p.count, word) == p.words + p.count)
            p.words[p.count++] = word;
}

static void
count_phase(const phase &p, emulator_shared &to)
{
    unsigned of_bank[BANKS] = {0}, most = 0;

    for (unsigned i = 0; i < p.count; i++)
        most = std::max(most, ++of_bank[p.words[i] % BANKS]);
    if (most == 0)
        return;
    to.phases++;
    to.conflicts += most - 1;
}

/* One access of a warp; offset ~0u: the lane takes no part. */
struct warp_access {
    unsigned size;
    emulator_shared_kind kind;
    unsigned offset[WARP];
};

static void
count_access(const warp_access &a)
{
    unsigned lanes = a.size > 8 ? WARP / 4 : a.size > 4 ? WARP / 2 : WARP;
    emulator_shared &to = current->shared[a.kind];

    to.accesses++;
    for (unsigned first = 0; first < WARP; first += lanes) {
        phase p = {};

        for (unsigned lane = first; lane < first + lanes; lane++)
            if (a.offset[lane] != ~0u)
                add_words(p, a.offset[lane], a.size);
        count_phase(p, to);
    }
}

void
traffic_warp(unsigned warp)
{
    std::map<std::pair<const void *, unsigned>, warp_access> together;

    for (unsigned lane = 0; lane < WARP; lane++) {
        std::unordered_map<const void *, unsigned> times;

        for (const shared_access &s : accesses[warp * WARP + lane]) {
            auto found = together.insert({{s.site, times[s.site]++}, {s.size, s.kind, {}}});

            if (found.second)
                std::fill_n(found.first->second.offset, (unsigned)WARP, ~0u);
            found.first->second.offset[lane] = s.offset;
        }
        accesses[warp * WARP + lane].clear();
    }
    for (const auto &a : together)
        count_access(a.second);
}

void
traffic_block(unsigned threads)
{
    for (unsigned warp = 0; warp * WARP < threads; warp++)
        traffic_warp(warp);
}

static bool
is_shared(const void *p)
{
    const unsigned char *at = (const unsigned char *)p;

    return at >= running->seen.shared && at < running->seen.shared + shared_size;
}

static void
note_shared(const void *p, unsigned size, emulator_shared_kind kind, const void *site)
{
    unsigned offset = (unsigned)((const unsigned char *)p - running->seen.shared);

    accesses[running->seen.warp * WARP + running->seen.lane].push_back({site, offset, size, kind});
}

void
traffic_matrices(const void *const *row, unsigned matrices)
{
    emulator_shared &to = current->shared[SHARED_MATRICES];

    to.accesses++;
    for (unsigned m = 0; m < matrices; m++) {
        phase p = {};

        for (unsigned i = 0; i < 8; i++)
            add_words(p, (unsigned)((const unsigned char *)row[m * 8 + i] - running->seen.shared), 16);
        count_phase(p, to);
    }
}

/* ---- global memory ----------------------------------------------------------------------------------------------- */

static void
touch(uintptr_t at, size_t size, bool written)
{
    for (uintptr_t sector = at / SECTOR; sector <= (at + size - 1) / SECTOR; sector++) {
        uintptr_t page = sector * SECTOR / PAGE, i = sector % (PAGE / SECTOR);
        known_page &known = recent[page % RECENT];

        if (known.page != page || !known.at)
            known = {page, &pages[page]};
        uint64_t &word = (written ? known.at->written : known.at->read)[i / 64], bit = (uint64_t)1 << i % 64;
        (written ? current->sectors_written : current->sectors_read) += !(word & bit);
        word |= bit;
    }
}

static void
note_global(const void *p, size_t size, bool written)
{
    (written ? current->bytes_written : current->bytes_read) += size;
    touch((uintptr_t)p, size, written);
}

static void
note(const void *p, size_t size, bool written, const void *site)
{
    if (!running || !current)
        return;
    if (is_shared(p))
        note_shared(p, (unsigned)size, size >= 16 ? SHARED_WIDE : SHARED_NARROW, site);
    else if ((p >= memory_begin && p < memory_end) || find_memory(p, &memory_begin, &memory_end))
        note_global(p, size, written);
}

void
traffic_copy(const void *to, const void *from, unsigned size, unsigned valid, const void *site)
{
    if (valid > 0)
        note_global(from, valid, false);
    note_shared(to, size, SHARED_COPIES, site);
}

void
load_wide(void *to, const void *from, size_t size)
{
    note(from, size, false, __builtin_return_address(0));
    memcpy(to, from, size);
}

void
store_wide(void *to, const void *from, size_t size)
{
    note(to, size, true, __builtin_return_address(0));
    memcpy(to, from, size);
}

void
copy_wide(void *to, const void *from, size_t size)
{
    note(from, size, false, __builtin_return_address(0));
    note(to, size, true, (const char *)__builtin_return_address(0) + 1); /* another access */
    memcpy(to, from, size);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

void
traffic_begin(const kernel *k, size_t shared)
{
    shared_size = shared;
    current = &all[k->name];
    current->launches++;
    pages.clear();
    std::fill_n(recent, (size_t)RECENT, known_page{});
    memory_begin = memory_end = NULL;
}

void
traffic_end()
{
    current = NULL;
}
} // namespace emulated

using namespace emulated;

bool
emulator_traffic_of(const char *kernel, struct emulator_traffic *out)
{
    auto found = all.find(kernel);

    *out = found == all.end() ? emulator_traffic{} : found->second;
    return found != all.end();
}

void
emulator_forget_traffic(void)
{
    all.clear();
}

/* ---- called by instrumented code --------------------------------------------------------------------------------- */

#define HERE __builtin_return_address(0)
#define ACCESS(size)                            \
    void __tsan_read##size(void *p);            \
    void __tsan_write##size(void *p);           \
    void __tsan_unaligned_read##size(void *p);  \
    void __tsan_unaligned_write##size(void *p); \
    void __tsan_volatile_read##size(void *p);   \
    void __tsan_volatile_write##size(void *p);  \
    void __tsan_read##size(void *p)             \
    {                                           \
        note(p, size, false, HERE);             \
    }                                           \
    void __tsan_write##size(void *p)            \
    {                                           \
        note(p, size, true, HERE);              \
    }                                           \
    void __tsan_unaligned_read##size(void *p)   \
    {                                           \
        note(p, size, false, HERE);             \
    }                                           \
    void __tsan_unaligned_write##size(void *p)  \
    {                                           \
        note(p, size, true, HERE);              \
    }                                           \
    void __tsan_volatile_read##size(void *p)    \
    {                                           \
        note(p, size, false, HERE);             \
    }                                           \
    void __tsan_volatile_write##size(void *p)   \
    {                                           \
        note(p, size, true, HERE);              \
    }

/* An atomic operation reads and writes. */
#define ATOMIC(bits)                                                                                                   \
    int##bits##_t __tsan_atomic##bits##_load(const volatile int##bits##_t *p, int order);                              \
    int##bits##_t __tsan_atomic##bits##_fetch_add(volatile int##bits##_t *p, int##bits##_t v, int);                    \
    bool __tsan_atomic##bits##_compare_exchange_strong(volatile int##bits##_t *p, int##bits##_t *was, int##bits##_t v, \
                                                       int, int);                                                      \
    bool __tsan_atomic##bits##_compare_exchange_weak(volatile int##bits##_t *p, int##bits##_t *was, int##bits##_t v,   \
                                                     int, int);                                                        \
    int##bits##_t __tsan_atomic##bits##_load(const volatile int##bits##_t *p, int)                                     \
    {                                                                                                                  \
        note((const void *)p, bits / 8, false, HERE);                                                                  \
        return *p;                                                                                                     \
    }                                                                                                                  \
    int##bits##_t __tsan_atomic##bits##_fetch_add(volatile int##bits##_t *p, int##bits##_t v, int)                     \
    {                                                                                                                  \
        note((const void *)p, bits / 8, true, HERE);                                                                   \
        return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);                                                             \
    }                                                                                                                  \
    bool __tsan_atomic##bits##_compare_exchange_strong(volatile int##bits##_t *p, int##bits##_t *was, int##bits##_t v, \
                                                       int, int)                                                       \
    {                                                                                                                  \
        note((const void *)p, bits / 8, true, HERE);                                                                   \
        return __atomic_compare_exchange_n(p, was, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                      \
    }                                                                                                                  \
    bool __tsan_atomic##bits##_compare_exchange_weak(volatile int##bits##_t *p, int##bits##_t *was, int##bits##_t v,   \
                                                     int, int)                                                         \
    {                                                                                                                  \
        note((const void *)p, bits / 8, true, HERE);                                                                   \
        return __atomic_compare_exchange_n(p, was, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                      \
    }

extern "C" {
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
ATOMIC(32)
ATOMIC(64)
void __tsan_init(void);
void __tsan_func_entry(void *);
void __tsan_func_exit(void);
void __tsan_read_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size);
void
__tsan_init(void)
{
}
void
__tsan_func_entry(void *)
{
}
void
__tsan_func_exit(void)
{
}
void
__tsan_read_range(void *p, size_t size)
{
    note(p, size, false, HERE);
}
void
__tsan_write_range(void *p, size_t size)
{
    note(p, size, true, HERE);
}
}
