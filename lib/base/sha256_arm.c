/*
 * sha256_arm.c - SHA-256 with ARM's instructions (Arm ARM, FEAT_SHA256: SHA256H, SHA256H2, SHA256SU0, SHA256SU1)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256_private.h"

#ifdef SHA256_HAVE_ARM

#include "base/cpu.h"

#include <arm_neon.h>

bool
sha256_arm_supported(void)
{
    return cpu_has(CPU_ARM_SHA2);
}

#ifdef __clang__
#define TARGET __attribute__((target("sha2")))
#else
#define TARGET __attribute__((target("+crypto")))
#endif

/* Words a b c d and e f g h of the state. */
struct arm_state {
    uint32x4_t abcd, efgh;
};

static inline TARGET struct arm_state
four_rounds(struct arm_state h, uint32x4_t w, const uint32_t *k)
{
    uint32x4_t wk = vaddq_u32(w, vld1q_u32(k));

    return (struct arm_state){.abcd = vsha256hq_u32(h.abcd, h.efgh, wk), .efgh = vsha256h2q_u32(h.efgh, h.abcd, wk)};
}

TARGET void
sha256_blocks_arm(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    struct arm_state h = {vld1q_u32(state), vld1q_u32(state + 4)};

    for (; blocks > 0; blocks--, data += SHA256_BLOCK) {
        const struct arm_state before = h;
        uint32x4_t w[4];

        for (int i = 0; i < 4; i++) {
            w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
            h = four_rounds(h, w[i], sha256_k + 4 * i);
        }
        for (int i = 16; i < 64; i += 4) {
            uint32x4_t next = vsha256su1q_u32(vsha256su0q_u32(w[0], w[1]), w[2], w[3]);

            w[0] = w[1];
            w[1] = w[2];
            w[2] = w[3];
            w[3] = next;
            h = four_rounds(h, next, sha256_k + i);
        }
        h.abcd = vaddq_u32(h.abcd, before.abcd);
        h.efgh = vaddq_u32(h.efgh, before.efgh);
    }
    vst1q_u32(state, h.abcd);
    vst1q_u32(state + 4, h.efgh);
}

#endif
