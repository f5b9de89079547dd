/*
 * cpu.h - the instruction sets that this CPU has and that the operating system supports
 *
 * Not __builtin_cpu_supports(): some compilers link it to a function that always returns 0, and the program is then
 * slow without any message.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CPU_H
#define CHEX_LIB_CPU_H

#include <stdbool.h>

/* In the order of their names in `--version -v`. */
enum cpu_set {
    CPU_SSSE3 = 1 << 0,
    CPU_SSE41 = 1 << 1,
    CPU_SSE42 = 1 << 2,
    CPU_PCLMUL = 1 << 3,
    CPU_BMI = 1 << 4,
    CPU_BMI2 = 1 << 5,
    CPU_FMA = 1 << 6,
    CPU_AVX2 = 1 << 7,
    CPU_AVX512F = 1 << 8,
    CPU_AVX512DQ = 1 << 9,
    CPU_AVX512BW = 1 << 10,
    CPU_AVX512VL = 1 << 11,
    CPU_AVX512_VNNI = 1 << 12,
    CPU_AVX512_BF16 = 1 << 13,
    CPU_SHA = 1 << 14,      /* SHA-NI of x86 */
    CPU_ARM_SHA2 = 1 << 15, /* FEAT_SHA256 of ARM */
};

/* Returns whether this CPU has all of `sets`, a sum of enum cpu_set.  Any thread may call it. */
bool cpu_has(unsigned sets);

/*
 * Returns the name of the set number i if this CPU has it, "" if it has not, NULL if there is no set of this number.
 * The names are those of GCC's options -m and -march.
 */
const char *cpu_set_name(unsigned i);

/*
 * Executes vzeroupper where the CPU has it.  Call it after functions of ISA-L: on x86 some leave the upper parts of the
 * vector registers set.  SSE instructions must keep these parts, and so they wait for each other: SHA-256 then takes
 * 2.2 times as long (measured, Zen 4).
 */
void cpu_vzeroupper(void);

#endif
