/*
 * rules.cc - tests of the interpreter: results of each instruction by the PTX ISA, and detection of violations
 *
 * A kernel here reads 32-bit words from `in` and writes `out`, one row of each for every lane of a warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "half.h"
#include "ptx.h"

#include <functional>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

typedef std::vector<uint32_t> words;
static unsigned passed, failed;

static void
expect(bool good, const std::string &what)
{
    good ? passed++ : failed++;
    if (!good)
        printf("FAIL %s\n", what.c_str());
}

/*
 * Runs this body in one block.  Registers: %r0 the thread, %rd0 the address of its row of `in`, %rd1 that of its row of
 * `out` (rows have 8 words), %r1 the address of 1,024 bytes of shared memory; %r2.., %rd2.., %f0.., %p0.. are free.
 */
static words
run(const std::string &body, const words &in, unsigned threads = 32,
    const char *begin = "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n")
{
    static unsigned number;
    std::string name = "kernel" + std::to_string(number++);
    words out(threads * 8);
    struct {
        const uint32_t *in;
        uint32_t *out;
    } argument = {in.data(), out.data()};
    std::string text = ".visible .entry " + name + "(\n.param .align 8 .b8 " + name + "_param_0[16]\n)\n{\n" +
                       ".reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .f32 %f<20>; .reg .f64 %d<9>;\n"
                       ".reg .pred %p<9>; .shared .align 16 .b8 buffer[1024];\n" +
                       begin + "mov.u32 %r0, %tid.x; mov.u32 %r1, buffer;\n" + "ld.param.u64 %rd0, [" + name +
                       "_param_0]; ld.param.u64 %rd1, [" + name +
                       "_param_0+8];\n"
                       "mul.wide.u32 %rd2, %r0, 32; add.s64 %rd0, %rd0, %rd2; add.s64 %rd1, %rd1, %rd2;\n" +
                       body + "\nret;\n}\n";

    ptx_load(text.c_str(), "rules");
    if (!ptx_has(name.c_str()))
        abort();
    ptx_run({name.c_str(), &argument, sizeof(argument), {1, 1, 1}, {threads, 1, 1}, 0});
    return out;
}

/* Word 0 of the first lane, after instructions that leave it in %r9; %r2, %r3, %r4 have the inputs. */
static uint32_t
compute(const std::string &body, uint32_t a, uint32_t b = 0, uint32_t c = 0)
{
    words in = {a, b, c};

    return run("ld.global.u32 %r2, [%rd0]; ld.global.u32 %r3, [%rd0+4]; ld.global.u32 %r4, [%rd0+8];\n" + body +
                   "\nst.global.u32 [%rd1], %r9;",
               in, 1)[0];
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *code;
    uint32_t a, b, c, want;
} sums[] = {
    {"add.s32 %r9, %r2, %r3;", 0xffffffff, 2, 0, 1},
    {"sub.s32 %r9, %r2, %r3;", 1, 2, 0, 0xffffffff},
    {"mul.lo.s32 %r9, %r2, %r3;", 0x10001, 0x10001, 0, 0x20001},
    {"mul.hi.u32 %r9, %r2, %r3;", 0x80000000, 6, 0, 3},
    {"mul.hi.s32 %r9, %r2, %r3;", 0x80000000, 6, 0, (uint32_t)-3},
    {"mad.lo.s32 %r9, %r2, %r3, %r4;", 7, 6, 5, 47},
    {"div.u32 %r9, %r2, %r3;", 0xfffffffe, 2, 0, 0x7fffffff},
    {"div.s32 %r9, %r2, %r3;", (uint32_t)-7, 2, 0, (uint32_t)-3},
    {"rem.s32 %r9, %r2, %r3;", (uint32_t)-7, 2, 0, (uint32_t)-1},
    {"min.u32 %r9, %r2, %r3;", 0xffffffff, 2, 0, 2},
    {"min.s32 %r9, %r2, %r3;", 0xffffffff, 2, 0, 0xffffffff},
    /* "Shift amounts greater than the register width N are clamped to N." */
    {"shl.b32 %r9, %r2, %r3;", 1, 33, 0, 0},
    {"shr.u32 %r9, %r2, %r3;", 0x80000000, 31, 0, 1},
    {"shr.s32 %r9, %r2, %r3;", 0x80000000, 40, 0, 0xffffffff},
    /* "bfi.b32 d,a,b,start,len": length 0, or a start beyond the word, leave b */
    {"bfi.b32 %r9, %r2, %r3, 8, 4;", 0xff, 0, 0, 0xf00},
    {"bfi.b32 %r9, %r2, %r3, 32, 4;", 0xff, 5, 0, 5},
    {"bfi.b32 %r9, %r2, %r3, 4, 0;", 0xff, 5, 0, 5},
    {"bfi.b32 %r9, %r2, %r3, 28, 8;", 0xff, 5, 0, 0xf0000005},
    /* bytes of b:a are numbered 7 to 0; bit 3 of a nibble replicates the sign */
    {"prmt.b32 %r9, %r2, %r3, %r4;", 0x33221100, 0x77665544, 0x7531, 0x77553311},
    {"prmt.b32 %r9, %r2, %r3, %r4;", 0x0000807f, 0, 0x0098, 0x7f7fff00},
    {"setp.lt.s32 %p0, %r2, %r3; selp.u32 %r9, 3, 4, %p0;", 0xffffffff, 0, 0, 3},
    {"setp.lt.u32 %p0, %r2, %r3; selp.u32 %r9, 3, 4, %p0;", 0xffffffff, 0, 0, 4},
    {"setp.eq.s32 %p0, %r2, %r3; not.pred %p1, %p0; @%p1 mov.u32 %r9, 8; @!%p1 mov.u32 %r9, 9;", 1, 1, 0, 9},
    /* "Predicate Constants": integers are interpreted as in C, so -1 is True */
    {"setp.ne.s32 %p0, %r2, 0; xor.pred %p0, %p0, -1; selp.u32 %r9, 1, 0, %p0;", 5, 0, 0, 0},
    {"setp.ne.s32 %p0, %r2, 0; xor.pred %p0, %p0, -1; selp.u32 %r9, 1, 0, %p0;", 0, 0, 0, 1},
    {"setp.ne.s32 %p0, %r2, 0; and.pred %p1, %p0, 2; selp.u32 %r9, 1, 0, %p1;", 5, 0, 0, 1},
    {"mov.pred %p0, -1; mov.pred %p1, 4; xor.pred %p2, %p0, %p1; selp.u32 %r9, 1, 0, %p2;", 0, 0, 0, 0},
    {"mov.u32 %r9, 6; vote.sync.ballot.b32 %r9, -1, 1;", 0, 0, 0, 1},
    {"selp.u32 %r9, 3, 4, 0;", 0, 0, 0, 4},
    /* a NaN: ordered comparisons are false, unordered ones true */
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; setp.neu.f32 %p0, %f0, %f1; selp.u32 %r9, 1, 0, %p0;", 0x7fc00000, 0, 0, 1},
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; setp.lt.f32 %p0, %f0, %f1; selp.u32 %r9, 1, 0, %p0;", 0x7fc00000, 0, 0, 0},
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; setp.leu.f32 %p0, %f0, %f1; selp.u32 %r9, 1, 0, %p0;", 0x7fc00000, 0, 0, 1},
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; setp.nan.f32 %p0, %f0, %f1; selp.u32 %r9, 1, 0, %p0;", 0x7fc00000, 0, 0, 1},
    /* "If one of the inputs is NaN, the result is the other"; "-0.0 < +0.0" */
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; max.f32 %f2, %f0, %f1; mov.b32 %r9, %f2;", 0x7fc00000, 0x3f800000, 0,
     0x3f800000},
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; min.f32 %f2, %f0, %f1; mov.b32 %r9, %f2;", 0, 0x80000000, 0, 0x80000000},
    /* (1 + 2^-23)^2 - (1 + 2^-22) is 2^-46; with two roundings it is 0 */
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; fma.rn.f32 %f2, %f0, %f0, %f1; mov.b32 %r9, %f2;", 0x3f800001, 0xbf800002, 0,
     0x28800000},
    {"mov.b32 %f0, %r2; rcp.rn.f32 %f2, %f0; mov.b32 %r9, %f2;", 0x40400000, 0, 0, 0x3eaaaaab},
    {"mov.b32 %f0, %r2; sqrt.rn.f32 %f2, %f0; mov.b32 %r9, %f2;", 0x40000000, 0, 0, 0x3fb504f3},
    {"mov.b32 {%h0, %h1}, %r2; mov.b32 %r9, {%h1, %h0};", 0x12345678, 0, 0, 0x56781234},
    {"cvt.s32.s16 %r9, %r2;", 0x8000, 0, 0, 0xffff8000},
    {"mov.b32 %f0, %r2; cvt.rzi.u32.f32 %r9, %f0;", 0xbf800000, 0, 0, 0},
    {"mov.b32 %f0, %r2; cvt.rzi.u32.f32 %r9, %f0;", 0x4f800000, 0, 0, 0xffffffff},
    {"mov.b32 %f0, %r2; cvt.rzi.u32.f32 %r9, %f0;", 0x40333333, 0, 0, 2},
    /* cvt to two halves: the second operand is in the low half; ties go to even */
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; cvt.rn.f16x2.f32 %r9, %f0, %f1;", 0x3f800000, 0x40000000, 0, 0x3c004000},
    {"mov.b32 %f0, %r2; mov.b32 %f1, %r3; cvt.rn.bf16x2.f32 %r9, %f0, %f1;", 0x3f808000, 0x3f818000, 0, 0x3f803f82},
    {"mov.b32 %f0, %r2; cvt.rn.f16.f32 %h0, %f0; cvt.u32.u16 %r9, %h0;", 0x477fe000, 0, 0, 0x7bff}, /* 65504 */
    {"mov.b32 %f0, %r2; cvt.rn.f16.f32 %h0, %f0; cvt.u32.u16 %r9, %h0;", 0x477ff000, 0, 0, 0x7c00}, /* 65520 */
    {"mov.b32 %f0, %r2; cvt.rn.f16.f32 %h0, %f0; cvt.u32.u16 %r9, %h0;", 0x33c00000, 0, 0, 0x0002}, /* 1.5 * 2^-24 */
    {"mov.b32 %f0, %r2; cvt.rn.f16.f32 %h0, %f0; cvt.u32.u16 %r9, %h0;", 0xff800001, 0, 0, 0x7fff}, /* NaN */
    {"mov.b32 {%h0, %h1}, %r2; cvt.f32.f16 %f0, %h0; mov.b32 %r9, %f0;", 0x0001, 0, 0, 0x33800000}, /* 2^-24 */
    {"mov.b32 {%h0, %h1}, %r2; cvt.f32.f16 %f0, %h0; mov.b32 %r9, %f0;", 0xfc00, 0, 0, 0xff800000},
    {"mul.wide.u32 %rd3, %r2, %r3; shr.u64 %rd4, %rd3, 32; cvt.u32.u64 %r9, %rd4;", 0xffffffff, 0xffffffff, 0,
     0xfffffffe},
    {"cvt.rn.f64.u32 %d0, %r2; div.rn.f64 %d1, %d0, 0d4008000000000000; cvt.rn.f32.f64 %f0, %d1; mov.b32 %r9, %f0;", 1,
     0, 0, 0x3eaaaaab},
};

static void
instructions_compute()
{
    for (const auto &s : sums) {
        uint32_t got = compute(s.code, s.a, s.b, s.c);
        char text[300];

        snprintf(text, sizeof(text), "%s of %x, %x, %x is %x, not %x", s.code, s.a, s.b, s.c, got, s.want);
        expect(got == s.want, text);
    }
    for (uint32_t bits = 0; bits < 0x7c00; bits++) { /* all halves survive a conversion to float and back */
        ptx::half h = {(uint16_t)bits};

        if (ptx::half_of(ptx::to_float(h)).bits != bits)
            expect(false, "a half is not converted to itself");
    }
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
    /* lanes that branched apart meet in a shuffle */
    out = run("and.b32 %r2, %r0, 1; setp.eq.s32 %p0, %r2, 0; mov.u32 %r3, 7; @%p0 bra even;\n"
              "mov.u32 %r3, 9;\neven: shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; st.global.u32 [%rd1], %r4;",
              in);
    for (uint32_t lane = 0; lane < 32; lane++)
        expect(out[lane * 8] == (lane % 2 ? 7 : 9), "lanes that branched apart meet");
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

static uint32_t
pair_of(float low, float high)
{
    return (uint32_t)ptx::half_of(high).bits << 16 | ptx::half_of(low).bits;
}

/* The fragments as the ISA's formulas have them: groupID = lane >> 2, threadID_in_group = lane % 4. */
static void
mma_16816_multiplies()
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

            row[n] = pair_of(a[r][k], a[r][k + 1]);
        }
        for (unsigned n = 0; n < 2; n++)
            row[4 + n] = pair_of(b[t * 2 + 8 * n][g], b[t * 2 + 8 * n + 1][g]);
    }
    words out = run("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0]; ld.global.v2.u32 {%r6, %r7}, [%rd0+16];\n"
                    "shr.u32 %r8, %r0, 2; mul.lo.s32 %r8, %r8, 100; and.b32 %r9, %r0, 3; shl.b32 %r9, %r9, 1;\n"
                    "add.s32 %r10, %r8, %r9; cvt.rn.f32.u32 %f0, %r10; add.f32 %f1, %f0, 0f3f800000;\n"
                    "add.f32 %f2, %f0, 0f44480000; add.f32 %f3, %f1, 0f44480000;\n"
                    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4,%f5,%f6,%f7}, {%r2,%r3,%r4,%r5}, "
                    "{%r6,%r7}, {%f0,%f1,%f2,%f3};\n"
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

/* row.col: lane l % 4 of a group of 8 has row l % 4 (+ 4 in the upper lanes) of a, and that column of b. */
static void
mma_884_multiplies()
{
    words in(32 * 8);
    auto a = [](unsigned q, unsigned r, unsigned k) { return (float)(q + r * 2) - (float)k; };
    auto b = [](unsigned q, unsigned k, unsigned n) { return (float)(n + k * 3) - (float)q; };

    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned q = lane % 16 / 4, r = lane % 4 + (lane < 16 ? 0 : 4);

        for (unsigned n = 0; n < 2; n++) {
            in[lane * 8 + n] = pair_of(a(q, r, 2 * n), a(q, r, 2 * n + 1));
            in[lane * 8 + 2 + n] = pair_of(b(q, 2 * n, r), b(q, 2 * n + 1, r));
        }
    }
    words out = run("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0]; mov.f32 %f0, 0f00000000;\n"
                    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, {%r2,%r3}, "
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
            expect(ptx::float_of_bits(out[lane * 8 + n]) == want, "mma.m8n8k4 with exact sums");
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

static const char COPY[] = "shl.b32 %r2, %r0, 4; add.s32 %r3, %r1, %r2;\n"
                           "cp.async.cg.shared.global [%r3], [%rd0], 16, 8; cp.async.commit_group;\n";

static void
copies_arrive()
{
    words in(32 * 8, 5);
    words out = run(std::string(COPY) + "cp.async.wait_group 0; ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r3];\n"
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
    {"the argument beyond its end", "ld.param.u64 %rd3, [ARGUMENT+16];", "of an argument of 16 bytes", 1},
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
        std::string text = abort_message([&] {
            std::string body = v.body;
            size_t name = body.find("ARGUMENT");

            if (name != std::string::npos)
                body.replace(name, 8, "kernel0_param_0");
            run(body, words(64 * 8), v.threads);
        });

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
main()
{
    setenv("PTX_ARCH", "90", 1);
    violations_are_found(); /* first: the name kernel0 is that of a child's first kernel */
    instructions_compute();
    lanes_exchange();
    mma_16816_multiplies();
    mma_1688_multiplies();
    mma_884_multiplies();
    ldmatrix_loads();
    copies_arrive();
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
