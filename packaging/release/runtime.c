/*
 * runtime.c - the one function of the compiler's own library that the programs need
 *
 * zig's library is one object, which also has a stack guard with a constant value and checked string functions; linked
 * in, they would replace those of glibc.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>

double __floatuntidf(unsigned __int128 value);

/* To the nearest double, a tie to the even one: what is cut off leaves a bit that keeps a tie from being one. */
double
__floatuntidf(unsigned __int128 value)
{
    unsigned cut = 0;
    double scale = 1;

    while (value >> 64) {
        value = value >> 1 | (value & 1);
        cut++;
    }
    for (; cut > 0; cut--)
        scale *= 2;
    return (double)(uint64_t)value * scale;
}
