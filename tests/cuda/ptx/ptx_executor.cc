/*
 * ptx_executor.cc - runs the kernels of a test program from PTX, on the memory of the emulated GPU
 *
 * A program that is linked with this file runs each launch by the interpreter of tests/ptx/, if PTX_FILES is set
 * and has the kernel.  Environment variables, in addition to those of ptx.h:
 *
 *     PTX_COMPARE   a file: each launch runs twice on the same memory, by the emulator and from PTX.  At the end it
 *                   gets a line of each kernel: launches, 4-byte words that differ, the largest difference relative to
 *                   the largest value of its allocation (values are floats or halves, whichever differ less)
 *     PTX_KERNELS   only kernels whose names contain this text run from PTX
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ptx.h"
#include "runtime.h"

#include <algorithm>
#include <map>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace emulated;

struct comparison {
    uint64_t launches, words;
    double largest;
};
static std::map<std::string, comparison> &comparisons = *new std::map<std::string, comparison>;

static void
write_comparisons()
{
    const char *path = getenv("PTX_COMPARE");
    FILE *out = path ? fopen(path, "a") : NULL;

    if (!out)
        return;
    for (const auto &c : comparisons)
        fprintf(out, "%s %llu %llu %.3g\n", c.first.c_str(), (unsigned long long)c.second.launches,
                (unsigned long long)c.second.words, c.second.largest);
    fclose(out);
}

/* ---- comparison with the emulator -------------------------------------------------------------------------------- */

typedef std::vector<std::vector<unsigned char>> contents; /* of all allocations */

static contents
contents_of(int device)
{
    contents all;

    each_allocation(device, [&](unsigned char *p, size_t size) { all.emplace_back(p, p + size); });
    return all;
}

static void
restore(int device, const contents &all)
{
    size_t n = 0;

    each_allocation(device, [&](unsigned char *p, size_t) {
        memcpy(p, all[n].data(), all[n].size());
        n++;
    });
}

/* The largest difference of two arrays of T, relative to the largest finite value.  NaNs are equal. */
template <typename T, typename F>
static double
difference_of(const std::vector<unsigned char> &want, const std::vector<unsigned char> &got, F to_number)
{
    double largest = 1e-30, worst = 0;

    for (size_t i = 0; i + sizeof(T) <= want.size(); i += sizeof(T)) {
        T bits[2];

        memcpy(&bits[0], &want[i], sizeof(T));
        memcpy(&bits[1], &got[i], sizeof(T));
        double a = (double)to_number(bits[0]), b = (double)to_number(bits[1]);
        if (isfinite(a))
            largest = std::max(largest, fabs(a));
        if (bits[0] != bits[1] && !(isnan(a) && isnan(b)))
            worst = std::max(worst, isfinite(a) && isfinite(b) ? fabs(a - b) : (double)INFINITY);
    }
    return worst / largest;
}

static void
compare_allocation(const char *kernel, const std::vector<unsigned char> &want, const std::vector<unsigned char> &got)
{
    comparison &c = comparisons[kernel];
    double floats = difference_of<uint32_t>(want, got, [](uint32_t bits) { return float_of_bits(bits); }), halves;

    if (strstr(kernel, "bf16"))
        halves = difference_of<uint16_t>(want, got, [](uint16_t bits) { return to_float(bf16{bits}); });
    else
        halves = difference_of<uint16_t>(want, got, [](uint16_t bits) { return to_float(fp16{bits}); });
    c.largest = std::max(c.largest, std::min(floats, halves));
    for (size_t i = 0; i + 4 <= want.size(); i += 4)
        c.words += memcmp(&want[i], &got[i], 4) != 0;
}

/* ---- the executor ------------------------------------------------------------------------------------------------ */

static bool
is_wanted(const kernel *k)
{
    const char *text = getenv("PTX_KERNELS");

    return getenv("PTX_FILES") && (!text || strstr(k->name, text)) && ptx_has(k->name);
}

static bool
run_from_ptx(const kernel *k, const void *argument, dim3 grid, dim3 block, size_t shared, int device, bool early)
{
    static const bool compares = getenv("PTX_COMPARE") != NULL;
    contents before, want;

    if (!is_wanted(k))
        return false;
    if (compares) {
        before = contents_of(device);
        emulate_kernel(k, argument, grid, block, shared, device, early);
        open_memory(device);
        want = contents_of(device);
        restore(device, before);
    }
    ptx_run({k->name, argument, k->argument, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared});
    if (!compares)
        return true;
    comparisons[k->name].launches++;
    contents got = contents_of(device);
    for (size_t n = 0; n < want.size(); n++)
        if (want[n] != got[n])
            compare_allocation(k->name, want[n], got[n]);
    return true;
}

static const executor from_ptx = {run_from_ptx, ptx_where};

__attribute__((constructor)) static void
install()
{
    other_executor = &from_ptx;
    atexit(write_comparisons);
}
