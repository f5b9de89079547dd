/*
 * transpose_block.h - transposes blocks of 16 x 16 bytes in registers
 *
 * Included after these are defined; it undefines the first two:
 *     BLOCK_TARGET   the function attribute      BLOCK_NAME(x)   x with the kind of CPU in its name
 *     vec            a register of 16 bytes, or of several parts of 16 bytes: then each part is a block
 *     V(op)          unpacklo_epi8 and unpackhi_epi8: interleave the first, or the second, 8 bytes of each part
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Byte k of out[j] = byte j of in[k], in each part: interleaving row i with row i + 8 four times moves every byte to
 * its place.  All loops are unrolled, because gcc at -O2 otherwise keeps the rows in memory.
 */
static inline BLOCK_TARGET void
BLOCK_NAME(transpose)(vec *block)
{
    vec other[16];
    int round, i;

#pragma GCC unroll 2
    for (round = 0; round < 2; round++) {
#pragma GCC unroll 8
        for (i = 0; i < 8; i++) {
            other[2 * i] = V(unpacklo_epi8)(block[i], block[i + 8]);
            other[2 * i + 1] = V(unpackhi_epi8)(block[i], block[i + 8]);
        }
#pragma GCC unroll 8
        for (i = 0; i < 8; i++) {
            block[2 * i] = V(unpacklo_epi8)(other[i], other[i + 8]);
            block[2 * i + 1] = V(unpackhi_epi8)(other[i], other[i + 8]);
        }
    }
}

#undef BLOCK_TARGET
#undef BLOCK_NAME
