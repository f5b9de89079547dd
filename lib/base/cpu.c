/*
 * cpu.c - see cpu.h
 *
 * x86: CPUID (Intel SDM volume 2A) names what the CPU has; XGETBV names the registers that the operating system saves.
 * ARM: Linux passes the list to each process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/cpu.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define KNOWN (1u << 31) /* the sets were read */

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

enum cpuid_word { LEAF1_ECX, LEAF7_EBX, LEAF7_ECX, LEAF7_1_EAX, WHERE_COUNT };

/* The bits of XCR0 for the registers that a set uses. */
#define SAVES_NONE 0x00
#define SAVES_YMM  0x06
#define SAVES_ZMM  0xe6

#define OSXSAVE (1u << 27) /* in LEAF1_ECX: XGETBV exists */

static const struct known {
    const char *name;
    enum cpu_set set;
    enum cpuid_word word;
    unsigned bit, saves;
} known[] = {
    {"ssse3", CPU_SSSE3, LEAF1_ECX, 9, SAVES_NONE},
    {"sse4.1", CPU_SSE41, LEAF1_ECX, 19, SAVES_NONE},
    {"sse4.2", CPU_SSE42, LEAF1_ECX, 20, SAVES_NONE},
    {"pclmul", CPU_PCLMUL, LEAF1_ECX, 1, SAVES_NONE},
    {"bmi", CPU_BMI, LEAF7_EBX, 3, SAVES_NONE},
    {"bmi2", CPU_BMI2, LEAF7_EBX, 8, SAVES_NONE},
    {"fma", CPU_FMA, LEAF1_ECX, 12, SAVES_YMM},
    {"avx2", CPU_AVX2, LEAF7_EBX, 5, SAVES_YMM},
    {"avx512f", CPU_AVX512F, LEAF7_EBX, 16, SAVES_ZMM},
    {"avx512dq", CPU_AVX512DQ, LEAF7_EBX, 17, SAVES_ZMM},
    {"avx512bw", CPU_AVX512BW, LEAF7_EBX, 30, SAVES_ZMM},
    {"avx512vl", CPU_AVX512VL, LEAF7_EBX, 31, SAVES_ZMM},
    {"avx512vnni", CPU_AVX512_VNNI, LEAF7_ECX, 11, SAVES_ZMM},
    {"avx512bf16", CPU_AVX512_BF16, LEAF7_1_EAX, 5, SAVES_ZMM},
    {"sha", CPU_SHA, LEAF7_EBX, 29, SAVES_NONE},
};

static uint64_t
saved_registers(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static unsigned
read_sets(void)
{
    uint32_t word[WHERE_COUNT] = {0}, leaves = 0, unused[4];
    uint64_t saved = 0;
    unsigned sets = 0;

    if (!__get_cpuid(1, &unused[0], &unused[1], &word[LEAF1_ECX], &unused[3]))
        return 0;
    if (__get_cpuid_count(7, 0, &leaves, &word[LEAF7_EBX], &word[LEAF7_ECX], &unused[3]) && leaves >= 1)
        __get_cpuid_count(7, 1, &word[LEAF7_1_EAX], &unused[1], &unused[2], &unused[3]);
    if (word[LEAF1_ECX] & OSXSAVE)
        saved = saved_registers();
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (word[known[i].word] >> known[i].bit & 1 && (saved & known[i].saves) == known[i].saves)
            sets |= known[i].set;
    return sets;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

/* Linux, Documentation/arch/arm64/elf_hwcaps.rst */
static const struct known {
    const char *name;
    enum cpu_set set;
    unsigned bit; /* of AT_HWCAP */
} known[] = {
    {"sha2", CPU_ARM_SHA2, 6},
};

static unsigned
read_sets(void)
{
    unsigned long have = getauxval(AT_HWCAP);
    unsigned sets = 0;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (have >> known[i].bit & 1)
            sets |= known[i].set;
    return sets;
}

#else

static const struct known {
    const char *name;
    enum cpu_set set;
} known[] = {{NULL, 0}};

static unsigned
read_sets(void)
{
    return 0;
}

#endif

bool
cpu_has(unsigned sets)
{
    static atomic_uint cache;
    unsigned have = atomic_load_explicit(&cache, memory_order_relaxed);

    if (!(have & KNOWN)) { /* two threads may both read them: the answer is the same */
        have = read_sets() | KNOWN;
        atomic_store_explicit(&cache, have, memory_order_relaxed);
    }
    return (have & sets) == sets;
}

const char *
cpu_set_name(unsigned i)
{
    if (i >= sizeof(known) / sizeof(known[0]) || !known[i].name)
        return NULL;
    return cpu_has(known[i].set) ? known[i].name : "";
}

#if defined(__x86_64__)

static __attribute__((target("avx"))) void
zero_upper(void)
{
    _mm256_zeroupper();
}

void
cpu_vzeroupper(void)
{
    if (cpu_has(CPU_AVX2))
        zero_upper();
}

#else

void
cpu_vzeroupper(void)
{
}

#endif
