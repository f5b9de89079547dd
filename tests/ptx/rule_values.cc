/*
 * rule_values.cc - tests of the interpreter: results of instructions that compute, by the PTX ISA
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "half.h"
#include "rules.h"

#include <stdio.h>

/* %f0 to %f2 are the inputs; %rd3 has inputs b and a, %rd4 has c; %h1 and %h0 are the halves of a. */
#define FLOATS "mov.b32 %f0, %r2; mov.b32 %f1, %r3; mov.b32 %f2, %r4;\n"
#define LONGS  "mov.b64 %rd3, {%r2, %r3}; cvt.u64.u32 %rd4, %r4;\n"
#define HALVES "mov.b32 {%h0, %h1}, %r2;\n"
/* The upper words of %d0 and %d1 are a and c, both lower words b.  The result is the upper word of %d2. */
#define DOUBLES "mov.b64 %d0, {%r3, %r2}; mov.b64 %d1, {%r3, %r4};\n"
#define HIGH    " mov.b64 {%r8, %r9}, %d2;"
/* %p0 and %p1 are whether a and b are not 0.  The result is 1 or 0 by %p2. */
#define IF(code) "setp.ne.s32 %p0, %r2, 0; setp.ne.s32 %p1, %r3, 0;\n" code " selp.u32 %r9, 1, 0, %p2;"
#define POINTER  "mov.b64 %rd3, ARGUMENT;\n"

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
    /* tf32 has ten bits of mantissa; ties go away from zero */
    {"mov.b32 %f0, %r2; cvt.rna.tf32.f32 %r9, %f0;", 0x3f801000, 0, 0, 0x3f802000},
    {"mov.b32 %f0, %r2; cvt.rna.tf32.f32 %r9, %f0;", 0xbf801000, 0, 0, 0xbf802000},
    {"mov.b32 %f0, %r2; cvt.rna.tf32.f32 %r9, %f0;", 0x3f800fff, 0, 0, 0x3f800000},
    {"mov.b32 %f0, %r2; cvt.rna.tf32.f32 %r9, %f0;", 0x7f7fffff, 0, 0, 0x7f800000},
    {"mov.b32 %f0, %r2; cvt.rna.tf32.f32 %r9, %f0;", 0xff800000, 0, 0, 0xff800000},
    {"mov.b32 %f0, %r2; cvt.rna.tf32.f32 %r9, %f0;", 0x7f800001, 0, 0, 0x7fffffff},
    {"cvt.rn.f64.u32 %d0, %r2; div.rn.f64 %d1, %d0, 0d4008000000000000; cvt.rn.f32.f64 %f0, %d1; mov.b32 %r9, %f0;", 1,
     0, 0, 0x3eaaaaab},
    {"cvt.rn.f64.u32 %d0, %r2; fma.rn.f64 %d1, %d0, 0d4008000000000000, 0d3FF0000000000000;\n"
     "cvt.rn.f32.f64 %f0, %d1; mov.b32 %r9, %f0;",
     2, 0, 0, 0x40e00000}, /* 7 */
    /* ---- the forms in the PTX of kernels: registers or numbers as operands ---- */
    {"add.s32 %r9, %r2, -3;", 1, 0, 0, 0xfffffffe},
    {LONGS "add.s64 %rd5, %rd3, %rd4; mov.b64 {%r8, %r9}, %rd5;", 0xffffffff, 7, 1, 8},
    {LONGS "add.s64 %rd5, %rd3, -1; mov.b64 {%r8, %r9}, %rd5;", 0, 5, 0, 4},
    {LONGS "sub.s64 %rd5, %rd3, %rd4; mov.b64 {%r8, %r9}, %rd5;", 0, 5, 1, 4},
    {HALVES "sub.s16 %h2, %h0, %h1; cvt.u32.u16 %r9, %h2;", 0x00030001, 0, 0, 0xfffe},
    {HALVES "mul.lo.s16 %h2, %h0, -3; cvt.u32.u16 %r9, %h2;", 5, 0, 0, 0xfff1},
    {"mul.lo.s32 %r9, %r2, -3;", 5, 0, 0, (uint32_t)-15},
    {LONGS "mul.lo.s64 %rd5, %rd3, %rd4; mov.b64 {%r8, %r9}, %rd5;", 0x80000000, 1, 6, 9},
    {LONGS "mul.lo.s64 %rd5, %rd3, -2; mov.b64 {%r8, %r9}, %rd5;", 0x80000000, 1, 0, (uint32_t)-3},
    {HALVES "mul.wide.u16 %r9, %h0, 43691;", 0xffff, 0, 0, 0xaaaa5555},
    {"mul.wide.u32 %rd3, %r2, 16; mov.b64 {%r8, %r9}, %rd3;", 0xf0000000, 0, 0, 0xf},
    {"mul.wide.s32 %rd3, %r2, %r3; mov.b64 {%r8, %r9}, %rd3;", 0x80000000, 3, 0, 0xfffffffe},
    {"mad.lo.s32 %r9, %r2, %r3, -5;", 7, 6, 0, 37},
    {"mad.lo.s32 %r9, %r2, -6, %r3;", 7, 50, 0, 8},
    {"mad.lo.s32 %r9, %r2, 3, 5;", 7, 0, 0, 26},
    {"rem.u32 %r9, %r2, %r3;", 0xffffffff, 10, 0, 5},
    {"max.u32 %r9, %r2, %r3;", 2, 0xffffffff, 0, 0xffffffff},
    {"max.u32 %r9, %r2, 5;", 3, 0, 0, 5},
    {"min.u32 %r9, %r2, 5;", 0xffffffff, 0, 0, 5},
    {"neg.s32 %r9, %r2;", 5, 0, 0, 0xfffffffb},
    {"not.b32 %r9, %r2;", 0x0f0f0f0f, 0, 0, 0xf0f0f0f0},
    {HALVES "and.b16 %h2, %h0, 255; cvt.u32.u16 %r9, %h2;", 0x1234, 0, 0, 0x34},
    {"and.b32 %r9, %r2, %r3;", 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00},
    {"and.b32 %r9, %r2, -16;", 0x1234567f, 0, 0, 0x12345670},
    {LONGS "and.b64 %rd5, %rd3, -4294967295; mov.b64 {%r8, %r9}, %rd5; or.b32 %r9, %r8, %r9;", 0xffffffff, 8, 0, 9},
    {"or.b32 %r9, %r2, %r3;", 0xf0, 0x0c, 0, 0xfc},
    {"or.b32 %r9, %r2, -16;", 0x05, 0, 0, 0xfffffff5},
    {LONGS "or.b64 %rd5, %rd3, %rd4; mov.b64 {%r9, %r8}, %rd5;", 0xf0, 0, 0x0c, 0xfc},
    {LONGS "or.b64 %rd5, %rd3, -4294967295; mov.b64 {%r9, %r8}, %rd5;", 0xf0, 0, 0, 0xf1},
    {"xor.b32 %r9, %r2, %r3;", 0xff, 0x0f, 0, 0xf0},
    {"xor.b32 %r9, %r2, -1;", 0xff, 0, 0, 0xffffff00},
    {LONGS "xor.b64 %rd5, %rd3, -9223372036854775808; mov.b64 {%r8, %r9}, %rd5;", 1, 1, 0, 0x80000001},
    {"shl.b32 %r9, %r2, 4;", 0xf0000001, 0, 0, 0x10},
    {LONGS "shl.b64 %rd5, %rd3, %r4; mov.b64 {%r8, %r9}, %rd5;", 0x80000000, 1, 1, 3},
    {LONGS "shl.b64 %rd5, %rd3, 2; mov.b64 {%r8, %r9}, %rd5;", 0x80000000, 1, 0, 6},
    {HALVES "shr.u16 %h2, %h0, 4; cvt.u32.u16 %r9, %h2;", 0xff8000, 0, 0, 0x800},
    {"shr.s32 %r9, %r2, 4;", 0x80000000, 0, 0, 0xf8000000},
    {"shr.u32 %r9, %r2, 4;", 0x80000000, 0, 0, 0x08000000},
    {"shr.u32 %r9, %r2, %r3;", 0x80000000, 32, 0, 0},
    {"prmt.b32 %r9, %r2, %r3, 0x5410;", 0x33221100, 0x77665544, 0, 0x55441100},
    {IF("and.pred %p2, %p0, %p1;"), 5, 5, 0, 1},
    {IF("and.pred %p2, %p0, %p1;"), 5, 0, 0, 0},
    {IF("or.pred %p2, %p0, %p1;"), 0, 5, 0, 1},
    {IF("or.pred %p2, %p0, %p1;"), 0, 0, 0, 0},
    {IF("xor.pred %p2, %p0, %p1;"), 1, 2, 0, 0},
    {IF("xor.pred %p2, %p0, %p1;"), 0, 2, 0, 1},
    {IF("not.pred %p2, %p0;"), 0, 0, 0, 1},
    {IF("mov.pred %p2, %p0;"), 5, 0, 0, 1},
    {IF("mov.pred %p2, 0;"), 5, 5, 0, 0},
    /* a bool that changes in each turn of a loop */
    {"mov.pred %p0, -1; mov.u32 %r9, 0;\nturn: selp.u32 %r5, 1, 2, %p0; shl.b32 %r9, %r9, 4; add.s32 %r9, %r9, %r5;\n"
     "xor.pred %p1, %p0, -1; mov.pred %p0, %p1; setp.lt.u32 %p2, %r9, 4096; @%p2 bra turn;",
     0, 0, 0, 0x1212},
    {"mov.u32 %r9, 0; more: add.s32 %r9, %r9, %r2; setp.lt.u32 %p0, %r9, 20; @%p0 bra more; bra.uni end;\n"
     "mov.u32 %r9, 7; end:",
     6, 0, 0, 24},
    {"setp.eq.s32 %p0, %r2, 0; mov.u32 %r9, 7; @!%p0 bra end; mov.u32 %r9, 9; end:", 0, 0, 0, 9},
    {FLOATS "abs.f32 %f3, %f0; mov.b32 %r9, %f3;", 0xc0400000, 0, 0, 0x40400000},
    {FLOATS "add.f32 %f3, %f0, %f1; mov.b32 %r9, %f3;", 0x3fc00000, 0x40100000, 0, 0x40700000}, /* 1.5 + 2.25 */
    {FLOATS "add.f32 %f3, %f0, 0fBF800000; mov.b32 %r9, %f3;", 0x40000000, 0, 0, 0x3f800000},
    {FLOATS "sub.f32 %f3, %f0, %f1; mov.b32 %r9, %f3;", 0x40700000, 0x40100000, 0, 0x3fc00000},
    {FLOATS "mul.f32 %f3, %f0, %f1; mov.b32 %r9, %f3;", 0x3fc00000, 0x40400000, 0, 0x40900000}, /* 1.5 * 3 */
    {FLOATS "mul.f32 %f3, %f0, 0f40400000; mov.b32 %r9, %f3;", 0x3fc00000, 0, 0, 0x40900000},
    {FLOATS "div.rn.f32 %f3, %f0, %f1; mov.b32 %r9, %f3;", 0x3f800000, 0x40400000, 0, 0x3eaaaaab},
    {FLOATS "neg.f32 %f3, %f0; mov.b32 %r9, %f3;", 0, 0, 0, 0x80000000},
    {DOUBLES "abs.f64 %d2, %d0;" HIGH, 0xc0080000, 0, 0, 0x40080000},
    {DOUBLES "add.f64 %d2, %d0, %d1;" HIGH, 0x40080000, 0, 0x3fe00000, 0x400c0000}, /* 3 + 0.5 */
    {DOUBLES "add.f64 %d2, %d0, 0dBFF0000000000000;" HIGH, 0x40080000, 0, 0, 0x40000000},
    {DOUBLES "add.rn.f64 %d2, %d0, %d1;" HIGH, 0x40080000, 0, 0x3fe00000, 0x400c0000},
    {DOUBLES "sub.f64 %d2, %d0, %d1;" HIGH, 0x40080000, 0, 0x3fe00000, 0x40040000},
    {DOUBLES "mul.f64 %d2, %d0, %d1;" HIGH, 0x40080000, 0, 0x3fe00000, 0x3ff80000},
    {DOUBLES "mul.f64 %d2, %d0, 0d4000000000000000;" HIGH, 0x40080000, 0, 0, 0x40180000},
    {DOUBLES "mul.rn.f64 %d2, %d0, %d1;" HIGH, 0x40080000, 0, 0x3fe00000, 0x3ff80000},
    {DOUBLES "div.rn.f64 %d2, %d0, %d1;" HIGH, 0x3ff00000, 0, 0x40080000, 0x3fd55555},
    {DOUBLES "fma.rn.f64 %d2, %d0, %d1, %d0;" HIGH, 0x40080000, 0, 0x3fe00000, 0x40120000}, /* 3 * 0.5 + 3 */
    /* (1 + 2^-30)^2 - (1 + 2^-29) is 2^-60; with two roundings it is 0 */
    {DOUBLES "fma.rn.f64 %d2, %d0, %d0, 0dBFF0000000800000;" HIGH, 0x3ff00000, 0x400000, 0, 0x3c300000},
    {DOUBLES "neg.f64 %d2, %d0;" HIGH, 0x40080000, 0, 0, 0xc0080000},
    {DOUBLES "sqrt.rn.f64 %d2, %d0;" HIGH, 0x40100000, 0, 0, 0x40000000},
    {DOUBLES "rcp.rn.f64 %d2, %d0;" HIGH, 0x40080000, 0, 0, 0x3fd55555},
    {DOUBLES "rcp.approx.ftz.f64 %d2, %d0;" HIGH, 0x40000000, 0xffffffff, 0, 0x3fe00000},
    {FLOATS "cvt.f64.f32 %d2, %f0;" HIGH, 0x3fc00000, 0, 0, 0x3ff80000},
    {DOUBLES "cvt.rzi.f64.f64 %d2, %d0;" HIGH, 0xc0060000, 0, 0, 0xc0000000}, /* -2.75 */
    {HALVES "cvt.rn.f32.u16 %f0, %h0; mov.b32 %r9, %f0;", 0xffff, 0, 0, 0x477fff00},
    /* a NaN: 0 from a float to 32 bits; otherwise only the upper bit is 1 */
    {FLOATS "cvt.rzi.s32.f32 %r9, %f0;", 0x7fc00000, 0, 0, 0},
    {FLOATS "cvt.rzi.s64.f32 %rd5, %f0; mov.b64 {%r8, %r9}, %rd5;", 0x7fc00000, 0, 0, 0x80000000},
    {DOUBLES "cvt.rzi.s32.f64 %r9, %d0;", 0x7ff80000, 0, 0, 0x80000000},
    {DOUBLES "cvt.rzi.u32.f64 %r9, %d0;", 0x7ff80000, 0, 0, 0x80000000},
    {"cvt.rn.f32.u32 %f0, %r2; mov.b32 %r9, %f0;", 0xffffffff, 0, 0, 0x4f800000},
    {"cvt.s64.s32 %rd3, %r2; mov.b64 {%r8, %r9}, %rd3;", 0x80000000, 0, 0, 0xffffffff},
    {"cvt.u64.u32 %rd3, %r2; mov.b64 {%r8, %r9}, %rd3;", 0x80000000, 0, 0, 0},
    {HALVES "cvt.u64.u16 %rd3, %h0; mov.b64 {%r8, %r9}, %rd3; add.s32 %r9, %r8, %r9;", 0xffff8001, 0, 0, 0x8001},
    {"cvt.u16.u32 %h0, %r2; mov.b32 %r9, {%h0, %h0};", 0x12345678, 0, 0, 0x56785678},
    {"cvt.u16.u32 %h0, %r2; mov.b32 %r9, {0, %h0};", 0x12345678, 0, 0, 0x56780000},
    {"cvta.to.global.u64 %rd3, %rd0; ld.global.u32 %r9, [%rd3];", 0x12345678, 0, 0, 0x12345678},
    {HALVES "cvt.f32.bf16 %f0, %h0; mov.b32 %r9, %f0;", 0x00003fc0, 0, 0, 0x3fc00000},
    {FLOATS "cvt.rn.bf16.f32 %h0, %f0; cvt.u32.u16 %r9, %h0;", 0x3f818000, 0, 0, 0x3f82},
    /* moves */
    {HALVES "mov.u16 %h2, %h1; cvt.u32.u16 %r9, %h2;", 0x12345678, 0, 0, 0x1234},
    {"mov.u16 %h0, -2; cvt.u32.u16 %r9, %h0;", 0, 0, 0, 0xfffe},
    {"mov.u32 %r9, %r2;", 5, 0, 0, 5},
    {"mov.u32 %r9, -2;", 0, 0, 0, 0xfffffffe},
    {"mov.u32 %r5, buffer; sub.s32 %r9, %r1, %r5; add.s32 %r9, %r9, 3;", 0, 0, 0, 3},
    {LONGS "mov.u64 %rd5, %rd3; mov.b64 {%r8, %r9}, %rd5;", 5, 6, 0, 6},
    {"mov.u64 %rd5, -2; mov.b64 {%r8, %r9}, %rd5;", 0, 0, 0, 0xffffffff},
    {FLOATS "mov.f32 %f3, %f1; mov.b32 %r9, %f3;", 0, 0x3f800000, 0, 0x3f800000},
    {"mov.f32 %f3, 0f40490FDB; mov.b32 %r9, %f3;", 0, 0, 0, 0x40490fdb},
    {DOUBLES "mov.f64 %d2, %d1;" HIGH, 0, 0, 0x40080000, 0x40080000},
    {"mov.f64 %d2, 0dBFF8000000000000;" HIGH, 0, 0, 0, 0xbff80000},
    {LONGS "mov.b64 %d2, %rd3;" HIGH, 5, 6, 0, 6},
    /* the argument of a kernel, by its name and by an address */
    {"ld.param.u32 %r9, [ARGUMENT+16];", 0, 0, 0, 0x80000001},
    {"ld.param.u32 %rd3, [ARGUMENT+16]; mov.b64 {%r8, %r9}, %rd3; add.s32 %r9, %r8, %r9;", 0, 0, 0, 0x80000001},
    {"ld.param.u64 %rd3, [ARGUMENT+16]; mov.b64 {%r8, %r9}, %rd3;", 0, 0, 0, 0x80000002},
    {"ld.param.f64 %d2, [ARGUMENT+16];" HIGH, 0, 0, 0, 0x80000002},
    {"ld.param.v2.u32 {%r8, %r9}, [ARGUMENT+24];", 0, 0, 0, 0x80000004},
    {POINTER "ld.param.u32 %r9, [%rd3+24];", 0, 0, 0, 0x80000003},
    {POINTER "ld.param.u32 %rd4, [%rd3+24]; mov.b64 {%r8, %r9}, %rd4; add.s32 %r9, %r8, %r9;", 0, 0, 0, 0x80000003},
    {POINTER "ld.param.u64 %rd4, [%rd3+24]; mov.b64 {%r8, %r9}, %rd4;", 0, 0, 0, 0x80000004},
    {POINTER "ld.param.f32 %f0, [%rd3+24]; mov.b32 %r9, %f0;", 0, 0, 0, 0x80000003},
    {POINTER "ld.param.f64 %d2, [%rd3+24];" HIGH, 0, 0, 0, 0x80000004},
    {POINTER "ld.param.v2.u32 {%r8, %r9}, [%rd3+24];", 0, 0, 0, 0x80000004},
    {POINTER "ld.param.v2.f32 {%f0, %f1}, [%rd3+24]; mov.b32 %r9, %f1;", 0, 0, 0, 0x80000004},
};

void
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
