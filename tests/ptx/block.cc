/*
 * block.cc - runs the blocks of a launch and the warps of a block; settings and messages
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"

#include <algorithm>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

namespace ptx
{
static const warp *running;
static const ptx_launch *current;

/* ---- settings and messages --------------------------------------------------------------------------------------- */

const settings &
setting()
{
    static const settings s = [] {
        auto number = [](const char *name, unsigned long otherwise) {
            const char *value = getenv(name);

            return value && *value ? strtoul(value, nullptr, 10) : otherwise;
        };
        const char *mma = getenv("PTX_MMA");
        settings read = {};

        read.arch = (unsigned)number("PTX_ARCH", 90);
        read.seed = number("PTX_ORDER", 0);
        read.random_order = read.seed != 0;
        read.mma_as_cores = !mma || strcmp(mma, "float") != 0;
        return read;
    }();

    return s;
}

uint32_t
next_random()
{
    static uint64_t state = setting().seed * 0x9e3779b97f4a7c15u;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static std::string
place_of(const warp &w)
{
    const kernel &k = *w.in->of;
    const instruction *i = w.now;
    char text[500];

    if (!i)
        return k.name;
    snprintf(text, sizeof(text), "%s, block %u,%u,%u, warp %u, %s:%u (%s)", k.name.c_str(), w.in->id[0], w.in->id[1],
             w.in->id[2], w.number, k.file.c_str(), i->line, i->opcode);
    auto source = k.source.find(i->source_file);
    if (source == k.source.end())
        return text;
    const std::string &path = source->second;
    return std::string(text) + ", " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(i->source);
}

void
violation(const warp &w, const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fputs("ptx: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; %s\n", place_of(w).c_str());
    abort();
}

/* ---- a block ----------------------------------------------------------------------------------------------------- */

static void
fill_row(warp &w, uint32_t row, unsigned width, uint64_t value)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        if (width == 8)
            w.row<uint64_t>(row)[lane] = value;
        else
            w.row<uint32_t>(row)[lane] = (uint32_t)value;
}

/* Registers with one value for all blocks. */
static void
prepare_warp(warp &w, const ptx_launch &launch)
{
    const kernel &k = *w.in->of;

    for (const constant &c : k.constants)
        fill_row(w, c.row, c.width, c.value);
    for (unsigned n = 0; n < 3; n++) {
        fill_row(w, k.special_row[NTID + n], 4, launch.block[n]);
        fill_row(w, k.special_row[NCTAID + n], 4, launch.grid[n]);
    }
    fill_row(w, k.special_row[WARPID], 4, w.number);
    fill_row(w, k.special_row[PARAM_BASE], 8, (uint64_t)launch.argument);
    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned thread = w.number * LANES + lane;

        w.row<uint32_t>(k.special_row[LANEID])[lane] = lane;
        w.row<uint32_t>(k.special_row[TID])[lane] = thread % launch.block[0];
        w.row<uint32_t>(k.special_row[TID + 1])[lane] = thread / launch.block[0] % launch.block[1];
        w.row<uint32_t>(k.special_row[TID + 2])[lane] = thread / launch.block[0] / launch.block[1];
    }
}

static void
start_block(block &b)
{
    const unsigned *size = b.launch->block;
    unsigned threads = size[0] * size[1] * size[2];

    memset(b.shared, 0xff, b.shared_size);
    b.time++;
    for (warp &w : b.warps) {
        unsigned left = threads - w.number * LANES;

        w.alive = left >= LANES ? ALL_LANES : (1u << left) - 1;
        w.blocked = w.at_barrier = w.waited = w.launched = 0;
        w.now = nullptr;
        memset(w.pc, 0, sizeof(w.pc));
        memset(w.return_to, 0, sizeof(w.return_to));
        memset(w.group, 0, sizeof(w.group));
        for (unsigned n = 0; n < 3; n++)
            fill_row(w, b.of->special_row[CTAID + n], 4, b.id[n]);
    }
}

/* All warps have run as far as they can: lets them pass the barrier.  Returns false if all threads have ended. */
static bool
pass_barrier(block &b)
{
    bool any = false;

    for (warp &w : b.warps) {
        if (w.alive != w.at_barrier)
            violation(w, "lanes %08x wait at a barrier, lanes %08x do not", w.at_barrier, w.alive & ~w.at_barrier);
        each_lane(w.at_barrier, [&](unsigned lane) {
            if (w.pc[lane] != w.pc[__builtin_ctz(w.at_barrier)])
                violation(w, "lanes of a warp wait at different barriers");
        });
        any = any || w.alive;
        each_lane(w.at_barrier, [&](unsigned lane) { w.pc[lane]++; });
        w.at_barrier = 0;
    }
    b.time++;
    return any;
}

template <typename T>
static void
shuffle(std::vector<T> &list)
{
    for (size_t n = list.size(); setting().random_order && n > 1; n--)
        std::swap(list[n - 1], list[next_random() % n]);
}

static void
run_block(block &b)
{
    start_block(b);
    do {
        std::vector<warp *> turn;

        for (warp &w : b.warps)
            turn.push_back(&w);
        shuffle(turn);
        for (warp *w : turn) {
            running = w;
            run_warp(*w);
        }
        running = nullptr;
    } while (pass_barrier(b));
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

/* Rounds up to a multiple. */
static unsigned char *
aligned(std::vector<unsigned char> &memory, size_t to)
{
    return (unsigned char *)(((uintptr_t)memory.data() + to - 1) / to * to);
}

[[noreturn]] static void
refuse_launch(const ptx_launch &launch, const kernel &k)
{
    fflush(stdout);
    fprintf(stderr, "ptx: %s: %u,%u,%u threads and %zu bytes of argument; its PTX has at most %u and %zu\n",
            launch.kernel, launch.block[0], launch.block[1], launch.block[2], launch.argument_size, k.threads,
            k.argument_size);
    abort();
}

static void
run_launch(const kernel &k, const ptx_launch &launch)
{
    static std::vector<unsigned char> registers, shared; /* kept, because they are large */
    unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    size_t room = (k.register_bytes + 63) / 64 * 64;
    std::vector<size_t> turn((size_t)launch.grid[0] * launch.grid[1] * launch.grid[2]);
    block b = {};

    if (threads > k.threads || launch.argument_size != k.argument_size)
        refuse_launch(launch, k);
    b.of = &k;
    b.launch = &launch;
    b.shared_size = k.static_shared;
    if (launch.shared > 0) /* dynamic memory follows */
        b.shared_size = (k.static_shared + 127) / 128 * 128 + launch.shared;
    shared.resize(b.shared_size + 1024);
    b.shared = aligned(shared, 1024);
    b.history.resize(b.shared_size);
    b.copying.resize(b.shared_size);
    b.warps.resize((threads + LANES - 1) / LANES);
    registers.assign(room * b.warps.size() + 64, 0xff);
    for (size_t n = 0; n < b.warps.size(); n++) {
        b.warps[n].registers = aligned(registers, 64) + n * room;
        b.warps[n].number = (unsigned)n;
        b.warps[n].in = &b;
        prepare_warp(b.warps[n], launch);
    }
    for (size_t n = 0; n < turn.size(); n++)
        turn[n] = n;
    shuffle(turn);
    for (size_t n : turn) {
        b.id[0] = (unsigned)(n % launch.grid[0]);
        b.id[1] = (unsigned)(n / launch.grid[0] % launch.grid[1]);
        b.id[2] = (unsigned)(n / launch.grid[0] / launch.grid[1]);
        run_block(b);
    }
}
} // namespace ptx

void
ptx_run(const ptx_launch &launch)
{
    ptx::current = &launch;
    ptx::run_launch(*ptx::find_kernel(launch.kernel), launch);
    ptx::current = nullptr;
}

const char *
ptx_where()
{
    static std::string text;

    text = ptx::running ? place_of(*ptx::running) : ptx::current ? ptx::current->kernel : "";
    return text.c_str();
}
