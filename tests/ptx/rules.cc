/*
 * rules.cc - tests of the interpreter: lanes, matrices and copies by the PTX ISA, and detection of violations
 *
 *     rules          runs the tests
 *     rules text     prints the PTX of all kernels of the tests, but those of violations
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rules.h"
#include "half.h"
#include "ptx.h"

#include <functional>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned passed, failed;
static bool shows_text; /* instead of running kernels */

void
expect(bool good, const std::string &what)
{
    good ? passed++ : failed++;
    if (!good && !shows_text)
        printf("FAIL %s\n", what.c_str());
}

static std::string
text_of(const std::string &name, const std::string &body, const char *begin, const std::string &functions)
{
    std::string text = functions + ".visible .entry " + name + "(\n.param .align 8 .b8 ARGUMENT[32]\n)\n{\n" +
                       ".reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .f32 %f<20>; .reg .f64 %d<9>;\n"
                       ".reg .pred %p<9>; .shared .align 16 .b8 buffer[1024];\n" +
                       begin +
                       "mov.u32 %r0, %tid.x; mov.u32 %r1, buffer;\n"
                       "ld.param.u64 %rd0, [ARGUMENT]; ld.param.u64 %rd1, [ARGUMENT+8];\n"
                       "mul.wide.u32 %rd2, %r0, 32; add.s64 %rd0, %rd0, %rd2; add.s64 %rd1, %rd1, %rd2;\n" +
                       body + "\nret;\n}\n";
    const char word[] = "ARGUMENT";

    for (size_t at; (at = text.find(word)) != std::string::npos;)
        text.replace(at, sizeof(word) - 1, name + "_param_0");
    return text;
}

words
run(const std::string &body, const words &in, unsigned threads, const char *begin, const std::string &functions,
    const std::vector<unsigned> &grid)
{
    static unsigned number;
    std::string name = "kernel" + std::to_string(number++), text = text_of(name, body, begin, functions);
    words out(threads * 8);
    struct {
        const uint32_t *in;
        uint32_t *out;
        uint32_t constants[4];
    } argument = {in.data(), out.data(), {0x80000001, 0x80000002, 0x80000003, 0x80000004}};

    if (shows_text) {
        puts(text.c_str());
        return out;
    }
    ptx_load(text.c_str(), "rules");
    if (!ptx_has(name.c_str()))
        abort();
    ptx_run({name.c_str(), &argument, sizeof(argument), {grid[0], grid[1], grid[2]}, {threads, 1, 1}, 0});
    return out;
}

uint32_t
compute(const std::string &body, uint32_t a, uint32_t b, uint32_t c)
{
    words in = {a, b, c};

    return run("ld.global.u32 %r2, [%rd0]; ld.global.u32 %r3, [%rd0+4]; ld.global.u32 %r4, [%rd0+8];\n" + body +
                   "\nst.global.u32 [%rd1], %r9;",
               in, 1)[0];
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static void
lanes_exchange()
{
    words in(32 * 8), out;

    /* the examples of "shfl.sync": down, up and bfly with segments of a warp */
    out = run("shfl.sync.up.b32 %r2|%p0, %r0, 3, 0, -1; shfl.sync.bfly.b32 %r3, %r0, 16, 31, -1;\n"
              "shfl.sync.down.b32 %r4|%p1, %r0, 1, 6175, -1; shfl.sync.idx.b32 %r5, %r0, 9, 6175, -1;\n"
              "selp.u32 %r6, 1, 0, %p0; setp.lt.u32 %p2, %r0, 5; vote.sync.ballot.b32 %r7, %p2, -1;\n"
              "st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; st.global.v2.u32 [%rd1+16], {%r6, %r7};",
              in);
    for (uint32_t lane = 0; lane < 32; lane++) {
        const uint32_t *got = &out[lane * 8];

        expect(got[0] == (lane < 3 ? lane : lane - 3) && got[4] == (lane >= 3), "shfl.up stays in the warp");
        expect(got[1] == (lane ^ 16), "shfl.bfly");
        expect(got[2] == (lane % 8 == 7 ? lane : lane + 1), "shfl.down stays in its segment of 8 lanes");
        expect(got[3] == lane / 8 * 8 + 1, "shfl.idx counts in its segment");
        expect(got[5] == 0x1f, "vote.ballot");
    }
    /* shfl with registers; the mask has only the lower half of the warp */
    out = run("setp.lt.u32 %p3, %r0, 16; @!%p3 bra end; mov.u32 %r2, 65535; mov.u32 %r3, 31; mov.u32 %r4, 3;\n"
              "shfl.sync.bfly.b32 %r5|%p0, %r0, %r4, %r3, %r2; setp.lt.u32 %p1, %r0, 5;\n"
              "vote.sync.ballot.b32 %r6, %p1, %r2; bar.warp.sync 65535; st.global.v2.u32 [%rd1], {%r5, %r6}; end:",
              in);
    for (uint32_t lane = 0; lane < 32; lane++)
        expect(out[lane * 8] == (lane < 16 ? lane ^ 3 : 0) && out[lane * 8 + 1] == (lane < 16 ? 0x1f : 0),
               "lanes of a mask");
    out = run("mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;\n"
              "mov.u32 %r6, %nctaid.x; mov.u32 %r7, %nctaid.y; mov.u32 %r8, %ctaid.z; st.global.u32 [%rd1+24], %r8;\n"
              "st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; st.global.v2.u32 [%rd1+16], {%r6, %r7};",
              in, 32, BEGIN, "", {4, 5, 2}); /* the last block writes last */
    for (uint32_t lane = 0; lane < 32; lane++)
        expect(words(&out[lane * 8], &out[lane * 8 + 7]) == words({lane, 32, 3, 4, 4, 5, 1}), "special registers");
    /* lanes that branched apart meet in a shuffle */
    out = run("and.b32 %r2, %r0, 1; setp.eq.s32 %p0, %r2, 0; mov.u32 %r3, 7; @%p0 bra even;\n"
              "mov.u32 %r3, 9;\neven: shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; st.global.u32 [%rd1], %r4;",
              in);
    for (uint32_t lane = 0; lane < 32; lane++)
        expect(out[lane * 8] == (lane % 2 ? 7 : 9), "lanes that branched apart meet");
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

static uint32_t
pair_of(float low, float high, bool bf16 = false)
{
    if (bf16)
        return (uint32_t)ptx::bfloat_of(high).bits << 16 | ptx::bfloat_of(low).bits;
    return (uint32_t)ptx::half_of(high).bits << 16 | ptx::half_of(low).bits;
}

/* The fragments as the ISA's formulas have them: groupID = lane >> 2, threadID_in_group = lane % 4. */
static void
mma_16816_multiplies(bool bf16)
{
    float a[16][16], b[16][8], c[16][8];
    words in(32 * 8);

    for (int r = 0; r < 16; r++)
        for (int k = 0; k < 16; k++)
            a[r][k] = (float)(r * 5 % 7 - k * 3 % 5);
    for (int k = 0; k < 16; k++)
        for (int n = 0; n < 8; n++)
            b[k][n] = (float)(k * 3 % 8 - n);
    for (int r = 0; r < 16; r++)
        for (int n = 0; n < 8; n++) {
            c[r][n] = (float)(100 * r + n);
            for (int k = 0; k < 16; k++)
                c[r][n] += a[r][k] * b[k][n];
        }
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned g = lane >> 2, t = lane % 4;
        uint32_t *row = &in[lane * 8];

        for (unsigned n = 0; n < 4; n++) {
            unsigned r = n % 2 ? g + 8 : g, k = t * 2 + (n < 2 ? 0 : 8);

            row[n] = pair_of(a[r][k], a[r][k + 1], bf16);
        }
        for (unsigned n = 0; n < 2; n++)
            row[4 + n] = pair_of(b[t * 2 + 8 * n][g], b[t * 2 + 8 * n + 1][g], bf16);
    }
    words out = run(
        std::string("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0]; ld.global.v2.u32 {%r6, %r7}, [%rd0+16];\n"
                    "shr.u32 %r8, %r0, 2; mul.lo.s32 %r8, %r8, 100; and.b32 %r9, %r0, 3; shl.b32 %r9, %r9, 1;\n"
                    "add.s32 %r10, %r8, %r9; cvt.rn.f32.u32 %f0, %r10; add.f32 %f1, %f0, 0f3f800000;\n"
                    "add.f32 %f2, %f0, 0f44480000; add.f32 %f3, %f1, 0f44480000;\n"
                    "mma.sync.aligned.m16n8k16.row.col.f32.") +
            (bf16 ? "bf16.bf16" : "f16.f16") +
            ".f32 {%f4,%f5,%f6,%f7}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%f0,%f1,%f2,%f3};\n"
            "st.global.v4.f32 [%rd1], {%f4, %f5, %f6, %f7};",
        in);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned n = 0; n < 4; n++) {
            unsigned r = lane / 4 + (n < 2 ? 0 : 8), column = lane % 4 * 2 + n % 2;

            expect(ptx::float_of_bits(out[lane * 8 + n]) == c[r][column], "mma.m16n8k16 with exact sums");
        }
}

/*
 * "Matrix Fragments for mma.m16n8k8": a0, a1 at row groupID, a2, a3 at groupID + 8, columns threadID_in_group * 2 +
 * (i & 1); b0, b1 at rows threadID_in_group * 2 + i, column groupID.
 */
static void
mma_1688_multiplies()
{
    auto a = [](unsigned r, unsigned k) { return (float)(r * 5 % 7) - (float)(k * 3 % 5); };
    auto b = [](unsigned k, unsigned n) { return (float)(k * 3 % 8) - (float)n; };
    words in(32 * 8);

    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned g = lane >> 2, t = lane % 4;

        in[lane * 8] = pair_of(a(g, t * 2), a(g, t * 2 + 1));
        in[lane * 8 + 1] = pair_of(a(g + 8, t * 2), a(g + 8, t * 2 + 1));
        in[lane * 8 + 2] = pair_of(b(t * 2, g), b(t * 2 + 1, g));
    }
    words out = run("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0]; cvt.rn.f32.u32 %f0, %r0;\n"
                    "add.f32 %f1, %f0, 0f3f800000; add.f32 %f2, %f0, 0f40000000; add.f32 %f3, %f1, 0f40000000;\n"
                    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f4,%f5,%f6,%f7}, {%r2,%r3}, {%r4}, "
                    "{%f0,%f1,%f2,%f3};\n"
                    "st.global.v4.f32 [%rd1], {%f4, %f5, %f6, %f7};",
                    in);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned n = 0; n < 4; n++) {
            float want = (float)(lane + n);

            for (unsigned k = 0; k < 8; k++)
                want += a(lane / 4 + (n < 2 ? 0 : 8), k) * b(k, lane % 4 * 2 + n % 2);
            expect(ptx::float_of_bits(out[lane * 8 + n]) == want, "mma.m16n8k8 with exact sums");
        }
}

/*
 * mma.m16n8k8 of .tf32: a0, a2 at row groupID, a1, a3 at groupID + 8, columns threadID_in_group for a0, a1, + 4 for a2,
 * a3; b0 at row threadID_in_group, b1 + 4, column groupID.  The lower 13 bits are ignored.
 */
static void
mma_1688_tf32_multiplies()
{
    auto a = [](unsigned r, unsigned k) { return (float)(r * 5 % 7) - (float)(k * 3 % 5); };
    auto b = [](unsigned k, unsigned n) { return (float)(k * 3 % 8) - (float)n; };
    auto bits = [](float f) { return ptx::bits_of(f) | 0x1fff; };
    words in(32 * 8);

    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned g = lane >> 2, t = lane % 4;

        for (unsigned n = 0; n < 4; n++)
            in[lane * 8 + n] = bits(a(n == 0 || n == 2 ? g : g + 8, n < 2 ? t : t + 4));
        for (unsigned n = 0; n < 2; n++)
            in[lane * 8 + 4 + n] = bits(b(t + 4 * n, g));
    }
    words out = run("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0]; ld.global.v2.u32 {%r6, %r7}, [%rd0+16];\n"
                    "cvt.rn.f32.u32 %f0, %r0; add.f32 %f1, %f0, 0f3f800000;\n"
                    "add.f32 %f2, %f0, 0f40000000; add.f32 %f3, %f1, 0f40000000;\n"
                    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f4,%f5,%f6,%f7}, {%r2,%r3,%r4,%r5}, "
                    "{%r6,%r7}, {%f0,%f1,%f2,%f3};\n"
                    "st.global.v4.f32 [%rd1], {%f4, %f5, %f6, %f7};",
                    in);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned n = 0; n < 4; n++) {
            float want = (float)(lane + n);

            for (unsigned k = 0; k < 8; k++)
                want += a(lane / 4 + (n < 2 ? 0 : 8), k) * b(k, lane % 4 * 2 + n % 2);
            expect(ptx::float_of_bits(out[lane * 8 + n]) == want, "mma.m16n8k8 of tf32 with exact sums");
        }
}

/*
 * Lane l % 4 of a group of 8 has row l % 4 (+ 4 in the upper lanes) of a, or column l % 4 if a is "col": its values
 * then are those of rows 0 to 3 (+ 4).  The same holds for columns of b, and its rows if b is "row".
 */
static void
mma_884_multiplies(bool column_a, bool row_b)
{
    words in(32 * 8);
    auto a = [](unsigned q, unsigned r, unsigned k) { return (float)(q + r * 2) - (float)k; };
    auto b = [](unsigned q, unsigned k, unsigned n) { return (float)(n + k * 3) - (float)q; };

    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned q = lane % 16 / 4, mine = lane % 4, upper = lane < 16 ? 0 : 4;
        auto of_a = [&](unsigned i) { return column_a ? a(q, i + upper, mine) : a(q, mine + upper, i); };
        auto of_b = [&](unsigned i) { return row_b ? b(q, mine, i + upper) : b(q, i, mine + upper); };

        for (unsigned n = 0; n < 2; n++) {
            in[lane * 8 + n] = pair_of(of_a(2 * n), of_a(2 * n + 1));
            in[lane * 8 + 2 + n] = pair_of(of_b(2 * n), of_b(2 * n + 1));
        }
    }
    std::string layout = std::string(column_a ? "col" : "row") + (row_b ? ".row" : ".col");
    words out = run("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0]; mov.f32 %f0, 0f00000000;\n"
                    "mma.sync.aligned.m8n8k4." +
                        layout +
                        ".f32.f16.f16.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, {%r2,%r3}, "
                        "{%r4,%r5}, {%f0,%f0,%f0,%f0,%f0,%f0,%f0,%f0};\n"
                        "st.global.v4.f32 [%rd1], {%f1,%f2,%f3,%f4}; st.global.v4.f32 [%rd1+16], {%f5,%f6,%f7,%f8};",
                    in);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned n = 0; n < 8; n++) {
            unsigned q = lane % 16 / 4, r = (lane & 1) + (n & 2) + (lane < 16 ? 0 : 4);
            unsigned column = (n & 4) + (lane & 2) + (n & 1);
            float want = 0;

            for (unsigned k = 0; k < 4; k++)
                want += a(q, r, k) * b(q, k, column);
            expect(ptx::float_of_bits(out[lane * 8 + n]) == want, "mma.m8n8k4 with exact sums, " + layout);
        }
}

/* Row r of matrix m has the values 256 m + 16 r + column. */
static void
ldmatrix_loads()
{
    const std::string store =
        "shr.u32 %r2, %r0, 3; and.b32 %r3, %r0, 7; shl.b32 %r4, %r2, 8; shl.b32 %r5, %r3, 4;\n"
        "add.s32 %r4, %r4, %r5; shl.b32 %r6, %r4, 16; or.b32 %r6, %r6, %r4; add.s32 %r6, %r6, 65536;\n"
        "add.s32 %r7, %r6, 131074; add.s32 %r8, %r7, 131074; add.s32 %r9, %r8, 131074;\n"
        "shl.b32 %r10, %r0, 4; add.s32 %r11, %r1, %r10; st.shared.v4.u32 [%r11], {%r6,%r7,%r8,%r9};\n"
        "bar.sync 0;\n";
    words in(32 * 8);

    for (int transposed = 0; transposed < 2; transposed++) {
        words out = run(store + "ldmatrix.sync.aligned.m8n8.x4." + (transposed ? "trans." : "") +
                            "shared.b16 {%r12,%r13,%r14,%r15}, [%r11];\n"
                            "st.global.v4.u32 [%rd1], {%r12,%r13,%r14,%r15};",
                        in);

        for (uint32_t lane = 0; lane < 32; lane++)
            for (uint32_t m = 0; m < 4; m++) {
                uint32_t x = lane / 4, y = lane % 4 * 2;
                uint32_t low = 256 * m + (transposed ? 16 * y + x : 16 * x + y), high = low + (transposed ? 16 : 1);

                expect(out[lane * 8 + m] == (high << 16 | low), "ldmatrix");
            }
    }
}

/* ---- asynchronous copies ----------------------------------------------------------------------------------------- */

/* The number of bytes to copy is 8: a number, or in a register. */
static void
copies_arrive(const std::string &valid)
{
    words in(32 * 8, 5);
    words out = run("shl.b32 %r2, %r0, 4; add.s32 %r3, %r1, %r2; mov.u32 %r8, 8;\n"
                    "cp.async.cg.shared.global [%r3], [%rd0], 16, " +
                        valid +
                        "; cp.async.commit_group;\n"
                        "cp.async.wait_group 0; ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r3];\n"
                        "st.global.v4.u32 [%rd1], {%r4,%r5,%r6,%r7};",
                    in);

    for (unsigned lane = 0; lane < 32; lane++)
        expect(out[lane * 8] == 5 && out[lane * 8 + 1] == 5 && out[lane * 8 + 2] == 0 && out[lane * 8 + 3] == 0,
               "a copy of 8 bytes fills 16");
}

/* ---- violations -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *what, *body, *words;
    unsigned threads;
} violations[] = {
    {"a race of two warps",
     "shl.b32 %r2, %r0, 2; add.s32 %r3, %r1, %r2; st.shared.u32 [%r3], %r0; xor.b32 %r4, %r3, 128;"
     "ld.shared.u32 %r5, [%r4];",
     "race: lane", 64},
    {"a race within a warp", "st.shared.u32 [%r1], %r0;", "race: lane", 32},
    {"a write after a read",
     "ld.shared.u32 %r3, [%r1]; setp.eq.s32 %p0, %r0, 0; @!%p0 bra end; st.shared.u32 [%r1], 1; end:", "race: lane",
     32},
    {"shared memory beyond its end", "ld.shared.u32 %r2, [%r1+1024];", "from byte 1024 on", 1},
    {"an access that is not aligned", "ld.global.u32 %r2, [%rd0+2];", "not aligned", 1},
    {"the argument beyond its end", "ld.param.u64 %rd3, [ARGUMENT+32];", "of an argument of 32 bytes", 1},
    {"a read of bytes that a copy will write",
     "cp.async.cg.shared.global [%r1], [%rd0], 16, 16; cp.async.commit_group; cp.async.wait_group 1;"
     "ld.shared.u32 %r2, [%r1];",
     "a copy in progress", 1},
    {"a copy that is not waited for", "cp.async.cg.shared.global [%r1], [%rd0], 16, 16;", "ends with a copy", 1},
    {"lanes of a warp at two barriers",
     "setp.eq.s32 %p0, %r0, 0; @%p0 bra other; bar.sync 0; bra end; other: bar.sync 0; end:",
     "wait at different barriers", 32},
    {"a shuffle with lanes that have ended",
     "setp.eq.s32 %p0, %r0, 0; @%p0 ret; shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1;", "have ended", 32},
    {"a shuffle from a lane that takes no part",
     "setp.lt.u32 %p0, %r0, 2; @!%p0 ret; shfl.sync.bfly.b32 %r3, %r0, 2, 31, 3;", "takes no part", 32},
    {"a second destination that is not known", "setp.eq.s32 %p0|%p1, %r0, 1;", "second register", 1},
    {"a number for a predicate register", "selp.u32 %r2, 3, 4, %r0;", "of another kind", 1},
    {"a predicate for a number", "add.s32 %r2, %r0, %p0;", "of another kind", 1},
    {"a decimal fraction", "add.f32 %f2, %f0, 1.5;", "not a number", 1},
    {"a double for a float", "add.f32 %f2, %f0, 0d3FF0000000000000;", "another type", 1},
    {"a label that is there twice", "here: add.s32 %r2, %r0, 1; here:", "a second label", 1},
    {"a body without its end", "{\n} mov.u32 %r2, 1;", "no end", 1},
    {"a copy with a cache policy", "cp.async.cg.shared.global [%r1], [%rd0], 16, 16, %rd2;", "not known", 1},
    {"a wait for a number of groups in a register", "cp.async.wait_group %r0;", "not known", 1},
    {"an instruction with a modifier that is not known", "add.sat.s32 %r2, %r0, %r0;", "not known", 1},
    {"a form of mma that is not known",
     "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f4,%f5,%f6,%f7}, {%r2,%r3}, {%r6}, {%f0,%f1,%f2,%f3};",
     "not known", 32},
};

/* What a child process writes before it aborts; "" if it does not. */
static std::string
abort_message(const std::function<void()> &f)
{
    std::string text;
    char part[4096];
    int ends[2], status;
    ssize_t size;

    fflush(stdout);
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[1]);
        f();
        _exit(0);
    }
    close(ends[1]);
    while ((size = read(ends[0], part, sizeof(part))) > 0)
        text.append(part, (size_t)size);
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? text : "";
}

static void
violations_are_found()
{
    for (const auto &v : violations) {
        std::string text = abort_message([&] { run(v.body, words(64 * 8), v.threads); });

        expect(text.find(v.words) != std::string::npos, std::string(v.what) + ": '" + text + "'");
    }
    std::string text = abort_message([] { run("ld.global.u32 %r2, [%rd0]; griddepcontrol.wait;", words(8), 1, ""); });
    expect(text.find("before griddepcontrol.wait") != std::string::npos, "memory before griddepcontrol.wait: " + text);
    text = abort_message([] { run("", words(8), 1, ""); });
    expect(text.find("ends without griddepcontrol.wait") != std::string::npos, "no griddepcontrol.wait: " + text);
    text = abort_message([] { run("", words(8), 1, "griddepcontrol.wait;\n"); });
    expect(text.find("ends without griddepcontrol.launch_dependents") != std::string::npos,
           "no griddepcontrol.launch_dependents: " + text);
}

int
main(int argc, char **argv)
{
    setenv("PTX_ARCH", "90", 1);
    shows_text = argc > 1 && strcmp(argv[1], "text") == 0;
    if (!shows_text)
        violations_are_found();
    instructions_compute();
    forms_compute();
    lanes_exchange();
    mma_16816_multiplies(false);
    mma_16816_multiplies(true);
    mma_1688_multiplies();
    mma_1688_tf32_multiplies();
    for (int n = 0; n < 4; n++)
        mma_884_multiplies(n / 2 != 0, n % 2 != 0);
    ldmatrix_loads();
    copies_arrive("8");
    copies_arrive("%r8");
    if (!shows_text)
        printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return !shows_text && failed > 0;
}
