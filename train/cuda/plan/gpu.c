/*
 * gpu.c - see gpu.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define KIB 1024
#define MIB 1048576.0

/*
 * Bandwidth and FLOP/s that published measurements report for large copies and for large half-precision products.  The
 * data sheets give 900 GB/s and 125 TFLOP/s (V100 SXM2), 1,555 GB/s and 312 (A100 40 GB), 3,350 and 989 (H100 SXM5),
 * 4,800 and 989 (H200).  mma.sync reaches 0.80 of the measured products on V100, 0.85 on A100 and 0.62 on Hopper, whose
 * own instruction is wgmma (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
 * Microbenchmarking", 2024).  cuDNN uses wgmma; it is assumed to reach 70 % of the peak.  L2 sizes are from the data
 * sheets; the L2 of a V100 reaches 2.155 TB/s (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
 * Microbenchmarking", 2018), that of an A100 2.3 times as much (its whitepaper), that of an H100 5.5 TB/s (published).
 * Gaps between the nodes of graphs are from publications.  Clocks are the boost clocks of V100 and A100; 1.8 GHz is
 * assumed for Hopper under load.  The data sheets give half as many products in tf32: 156 TFLOP/s (A100) and 495 (H100,
 * H200); mma.sync is assumed to reach the same part of them.  Shared memory and warps are from the CUDA C Programming
 * Guide.  An unknown GPU uses the last row of its generation; an unknown generation uses the last row.
 *
 * This project measured none of these figures so far.  On a GPU, `gpu-rates --table` measures all figures of its row
 * but that of cuDNN, and prints the row.  `gpu-rates --table | bench/gpu_table.py` replaces the row here, or adds one,
 * and marks it as measured.
 */
static const struct cuda_gpu gpus[] = {
    {"V100", 7, 80, 1.53e9, 790e9, 2.155e12, 0.80 * 100e12, 0, 6 * MIB, 2.0e-6, 96 * KIB, 64, NULL, 2},
    {"A100", 8, 108, 1.41e9, 1.35e12, 4.96e12, 0.85 * 270e12, 0, 40 * MIB, 1.5e-6, 164 * KIB, 64, NULL, 2},
    {"H100", 9, 132, 1.8e9, 3.0e12, 5.5e12, 0.62 * 790e12, 0.70 * 989e12, 50 * MIB, 1.2e-6, 228 * KIB, 64, NULL, 2},
    {"H200", 9, 132, 1.8e9, 4.3e12, 5.5e12, 0.62 * 790e12, 0.70 * 989e12, 50 * MIB, 1.2e-6, 228 * KIB, 64, NULL, 2},
};
#define GPUS (sizeof(gpus) / sizeof(*gpus))

/* Matches whole words: an RTX A1000 is not an A100. */
static bool
has_word(const char *text, const char *word)
{
    const char *at = text;

    while ((at = strstr(at, word))) {
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[strlen(word)]))
            return true;
        at++;
    }
    return false;
}

struct cuda_gpu
cuda_gpu_like(const char *name, unsigned major)
{
    struct cuda_gpu like = gpus[GPUS - 1];
    size_t i;

    for (i = 0; i < GPUS; i++)
        if (gpus[i].major == major)
            like = gpus[i];
    for (i = 0; i < GPUS; i++)
        if (has_word(name, gpus[i].name)) {
            like = gpus[i];
            break;
        }
    like.counts = cuda_counts_of(like.major, CUDA_FP16);
    return like;
}

#define TF32_RATE 0.5 /* of the products in half precision */

void
cuda_gpu_set_value(struct cuda_gpu *gpu, enum cuda_value value)
{
    gpu->counts = cuda_counts_of(gpu->major, value);
    if (value != CUDA_TF32)
        return;
    gpu->mma *= TF32_RATE;
    gpu->cudnn = 0;
    gpu->value_bytes = sizeof(float);
}

const char *
cuda_gpu_name(size_t i)
{
    return i < GPUS ? gpus[i].name : NULL;
}

struct cuda_gpu
cuda_gpu_of(unsigned major, unsigned processors, enum cuda_value value)
{
    struct cuda_gpu gpu = cuda_gpu_like("", major);
    double part = (double)processors / gpu.processors; /* rates are proportional to the number of multiprocessors */

    gpu.mma *= part;
    gpu.cudnn *= part;
    gpu.l2 *= part;
    gpu.processors = processors;
    cuda_gpu_set_value(&gpu, value);
    return gpu;
}

/* sm_75; sm_86 and sm_89; sm_90; sm_100; sm_120. */
unsigned
cuda_shared_of(unsigned major)
{
    return major == 0 || major == 9 || major == 10 ? 227u << 10 : major < 8 ? 64u << 10 : 99u << 10;
}

/* ---- occupancy --------------------------------------------------------------------------------------------------- */

/*
 * As cuda_occupancy.h of the CUDA toolkit: registers are allocated to a warp in units of 256, from the quarter of the
 * register file that its scheduler has; shared memory in units of 128 bytes (256 before sm_80), and from sm_80 on a CTA
 * takes 1 KiB more than it asks for.
 */
#define REGISTERS  65536u
#define SCHEDULERS 4u
#define MOST_CTAS  32u

static unsigned
round_up(unsigned value, unsigned unit)
{
    return (value + unit - 1) / unit * unit;
}

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned
cuda_resident(const struct cuda_gpu *gpu, unsigned threads, unsigned registers, unsigned shared)
{
    unsigned warps = (threads + 31) / 32, of_warp = round_up(registers * 32, 256);
    unsigned of_cta = gpu->major < 8 ? round_up(shared, 256) : round_up(shared + KIB, 128);
    unsigned by_registers = REGISTERS / SCHEDULERS / of_warp * SCHEDULERS / round_up(warps, SCHEDULERS);
    unsigned by_shared = of_cta > 0 ? gpu->shared / of_cta : MOST_CTAS;

    return smaller(smaller(by_registers, by_shared), smaller(gpu->warps / warps, MOST_CTAS));
}

/* ---- the cost of a launch ---------------------------------------------------------------------------------------- */

#define OF_COPY       0.85   /* fraction of the copy bandwidth that a kernel reaches */
#define CACHED        0.6    /* data smaller than this fraction of the L2 is found there */
#define FASTER        2.0    /* speedup of data in the L2 */
#define FOR_BANDWIDTH 0.75   /* fraction of the multiprocessors that is needed to use all of the bandwidth */
#define DRAM_LATENCY  0.9e-6 /* seconds from a request to its data, under load */
#define TILE_FILL     1.5e-6 /* seconds until the first loads of a tile have arrived and its last stores have left */
#define OF_SHARED     0.8    /* fraction of the cycles of shared memory that a kernel uses */

/*
 * Instructions that a scheduler issues per clock, with this number of resident warps: 0.38, 0.56, 0.71 and 0.83 for 1,
 * 2, 4 and 8 warps.  Assumed: the experience of an expert, not a measurement.  w / (w + c): each warp waits c times as
 * long as it issues.
 */
#define WAITS 1.6
static double
issue_rate(double warps)
{
    return warps / (warps + WAITS);
}

const char *
cuda_limit_name(enum cuda_limit limit)
{
    static const char *const names[] = {"DRAM", "L2", "products", "issue", "shared memory"};

    return names[limit];
}

static double
memory_rate(const struct cuda_gpu *gpu, double bytes)
{
    return gpu->copy * OF_COPY * (bytes < CACHED * gpu->cache ? FASTER : 1);
}

double
cuda_memory_seconds(const struct cuda_gpu *gpu, double bytes)
{
    return bytes / memory_rate(gpu, bytes);
}

/* Returns the time of a multiprocessor that executes `resident` CTAs at a time. */
static double
pipes_seconds(const struct cuda_gpu *gpu, const struct cuda_need *cta, double resident, double warps,
              enum cuda_limit *limit)
{
    double slots = gpu->clock * SCHEDULERS * issue_rate(resident * warps / SCHEDULERS);
    double issue = resident * cta->instructions / slots, shared = resident * cta->shared / (gpu->clock * OF_SHARED);
    double products = resident * cta->flop / (gpu->mma / gpu->processors), most = issue;

    *limit = CUDA_LIMIT_ISSUE;
    if (shared > most) {
        most = shared;
        *limit = CUDA_LIMIT_SHARED;
    }
    if (products > most) {
        most = products;
        *limit = CUDA_LIMIT_PRODUCTS;
    }
    return most;
}

/* Seconds of `most` CTAs that one multiprocessor executes, `resident` at a time. */
static double
rounds_seconds(const struct cuda_gpu *gpu, const struct cuda_need *cta, double most, double resident, double warps,
               enum cuda_limit *limit)
{
    double rounds = floor(most / resident), rest = most - rounds * resident;
    double seconds = rest > 0 ? pipes_seconds(gpu, cta, rest, warps, limit) : 0;

    return seconds + (rounds > 0 ? rounds * pipes_seconds(gpu, cta, resident, warps, limit) : 0);
}

/*
 * Returns the time of long CTAs, one on each multiprocessor.  Other CTAs run there, too, for `shared` seconds; then a
 * long CTA runs by itself.
 */
static double
long_seconds(const struct cuda_gpu *gpu, const struct cuda_need *cta, double shared, double resident, double warps)
{
    enum cuda_limit ignored;
    double both = pipes_seconds(gpu, cta, resident, warps, &ignored);

    return shared >= both ? both : shared + (1 - shared / both) * pipes_seconds(gpu, cta, 1, warps, &ignored);
}

static struct cuda_need
mean_of(const struct cuda_load *load)
{
    double all = load->ctas + load->long_ctas, part = load->ctas / all, rest = load->long_ctas / all;
    const struct cuda_need *a = &load->cta, *b = &load->long_cta;

    return (struct cuda_need){.flop = part * a->flop + rest * b->flop,
                              .instructions = part * a->instructions + rest * b->instructions,
                              .shared = part * a->shared + rest * b->shared};
}

/* Seconds of the CTAs on the multiprocessor that has most of them, without their waits. */
static double
ctas_seconds(const struct cuda_gpu *gpu, const struct cuda_load *load, double *resident, double *most,
             enum cuda_limit *limit)
{
    double warps = ceil(load->threads / 32.0), all, shorter, longer;
    struct cuda_need mean;

    *resident = cuda_resident(gpu, load->threads, load->registers, load->shared_bytes);
    *most = ceil((load->ctas + load->long_ctas) / gpu->processors);
    *resident = *resident < 1 ? 1 : *resident < *most ? *resident : *most;
    if (load->long_ctas <= 0)
        return rounds_seconds(gpu, &load->cta, *most, *resident, warps, limit);
    /* the work of both, divided evenly; or that of a long CTA */
    mean = mean_of(load);
    all = rounds_seconds(gpu, &mean, *most, *resident, warps, limit);
    shorter = rounds_seconds(gpu, &load->cta, ceil(load->ctas / gpu->processors), *resident, warps, limit);
    longer = long_seconds(gpu, &load->long_cta, shorter, *resident, warps);
    return all > longer ? all : longer;
}

/* Seconds to move the bytes: few bytes in flight, or few multiprocessors, reach only a part of the bandwidth. */
static double
dram_seconds(const struct cuda_gpu *gpu, const struct cuda_load *load, double resident)
{
    double ctas = load->ctas + load->long_ctas, busy = ctas < gpu->processors ? ctas : gpu->processors;
    double rate = memory_rate(gpu, load->bytes), most = busy * resident * load->in_flight / DRAM_LATENCY;

    if (busy < FOR_BANDWIDTH * gpu->processors)
        rate *= busy / (FOR_BANDWIDTH * gpu->processors);
    return load->bytes / (load->in_flight > 0 && most < rate ? most : rate);
}

double
cuda_load_seconds(const struct cuda_gpu *gpu, const struct cuda_load *load, enum cuda_limit *limit)
{
    double resident, most, seconds = ctas_seconds(gpu, load, &resident, &most, limit), dram, l2 = load->l2 / gpu->l2;

    /* The first tile of a CTA waits for its loads; later ones wait while the other resident CTAs work. */
    if (load->tiles > 0)
        seconds += TILE_FILL * (1 + (most * load->tiles / resident - 1) / resident);
    dram = dram_seconds(gpu, load, resident);
    if (dram > seconds) {
        seconds = dram;
        *limit = CUDA_LIMIT_DRAM;
    }
    if (l2 > seconds) {
        seconds = l2;
        *limit = CUDA_LIMIT_L2;
    }
    return seconds + load->before + (load->tiles > 0 ? 0 : TILE_FILL);
}

/* ---- partial sums ------------------------------------------------------------------------------------------------ */

/* Latency: a CTA waits once per FLOATS_IN_FLIGHT floats: 256 threads with 8 loads of 4 floats (norm_add_blocks()). */
#define L2_LATENCY       0.5e-6
#define FLOATS_IN_FLIGHT (256 * 4 * 8)

double
cuda_rows_seconds(const struct cuda_gpu *gpu, double ctas, double resident, double rows, double channels)
{
    double floats = 2.0 * rows * channels;
    double waits = ceil(ctas / (resident * gpu->processors)) * floats / FLOATS_IN_FLIGHT * L2_LATENCY;
    double bytes = ctas * floats * sizeof(float) / gpu->l2;

    return waits > bytes ? waits : bytes;
}
