/*
 * sha256_x86.c - SHA-256 with the instructions SHA-NI (Intel SDM volume 2B, SHA256RNDS2, SHA256MSG1, SHA256MSG2)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256_private.h"

#ifdef SHA256_HAVE_X86

#include "base/cpu.h"

#include <immintrin.h>

bool
sha256_x86_supported(void)
{
    return cpu_has(CPU_SHA | CPU_SSE41 | CPU_SSSE3);
}

#define TARGET __attribute__((target("sha,sse4.1,ssse3")))

/* The state in the order of the instructions, most significant word first: a b e f and c d g h. */
struct x86_state {
    __m128i abef, cdgh;
};

static inline TARGET struct x86_state
load_state(const uint32_t state[8])
{
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);

    return (struct x86_state){.abef = _mm_alignr_epi8(cdab, efgh, 8), .cdgh = _mm_blend_epi16(efgh, cdab, 0xf0)};
}

static inline TARGET void
store_state(struct x86_state h, uint32_t state[8])
{
    __m128i feba = _mm_shuffle_epi32(h.abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(h.cdgh, 0xb1);

    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Four rounds with the words w and the constants k. */
static inline TARGET struct x86_state
four_rounds(struct x86_state h, __m128i w, const uint32_t *k)
{
    __m128i wk = _mm_add_epi32(w, _mm_loadu_si128((const __m128i *)(const void *)k));

    h.cdgh = _mm_sha256rnds2_epu32(h.cdgh, h.abef, wk);
    h.abef = _mm_sha256rnds2_epu32(h.abef, h.cdgh, _mm_shuffle_epi32(wk, 0x0e));
    return h;
}

/* The next four words of the schedule, from the sixteen before them. */
static inline TARGET __m128i
next_words(const __m128i w[4])
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));

    return _mm_sha256msg2_epu32(sum, w[3]);
}

TARGET void
sha256_blocks_x86(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    const __m128i big_endian = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    struct x86_state h = load_state(state);

    for (; blocks > 0; blocks--, data += SHA256_BLOCK) {
        const struct x86_state before = h;
        __m128i w[4];

        for (int i = 0; i < 4; i++) {
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(data + 16 * i)), big_endian);
            h = four_rounds(h, w[i], sha256_k + 4 * i);
        }
        for (int i = 16; i < 64; i += 4) {
            __m128i next = next_words(w);

            w[0] = w[1];
            w[1] = w[2];
            w[2] = w[3];
            w[3] = next;
            h = four_rounds(h, next, sha256_k + i);
        }
        h.abef = _mm_add_epi32(h.abef, before.abef);
        h.cdgh = _mm_add_epi32(h.cdgh, before.cdgh);
    }
    store_state(h, state);
}

#endif
