/*
 * rule_forms.cc - tests of the interpreter: setp, selp, ld and st in all forms that compilers make, and functions
 *
 * Texts are made of the parts of an instruction, and results are compared with the ISA's definitions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rules.h"

#include <math.h>
#include <sstream>
#include <string.h>

/* ---- setp -------------------------------------------------------------------------------------------------------- */

static bool
is_relation(const std::string &name, double a, double b)
{
    return name == "eq"   ? a == b
           : name == "ne" ? a < b || a > b
           : name == "lt" ? a < b
           : name == "le" ? a <= b
           : name == "gt" ? a > b
                          : a >= b;
}

/* "equ" is true if a number is a NaN, "eq" false. */
static bool
is_true(const std::string &name, double a, double b)
{
    bool unordered = isnan(a) || isnan(b);

    if (name == "num" || name == "nan")
        return unordered == (name == "nan");
    return name.size() == 3 ? unordered || is_relation(name.substr(0, 2), a, b) : is_relation(name, a, b);
}

struct numbers {
    const char *type, *registers, *load; /* of a value at [%rd0] and at [%rd0+8] */
    bool is_float;
    double value[4];
    const char *text[4];
};
static const numbers kinds[] = {
    {"s16", "%h0 %h1", "u16", false, {-1, 0, 5, -32768}, {"-1", "0", "5", "-32768"}},
    {"u16", "%h0 %h1", "u16", false, {65535, 0, 5, 32768}, {"-1", "0", "5", "32768"}},
    {"s32", "%r2 %r3", "u32", false, {-1, 0, 5, -2147483648.0}, {"-1", "0", "5", "-2147483648"}},
    {"u32", "%r2 %r3", "u32", false, {4294967295.0, 0, 5, 2147483648.0}, {"-1", "0", "5", "-2147483648"}},
    {"s64", "%rd3 %rd4", "u64", false, {-1, 0, 5, -4294967296.0}, {"-1", "0", "5", "-4294967296"}},
    {"u64", "%rd3 %rd4", "u64", false, {0x1p63, 0, 5, 4294967296.0}, {"-9223372036854775808", "0", "5", "4294967296"}},
    {"f32", "%f0 %f1", "f32", true, {-1, 0, 5, NAN}, {"0fBF800000", "0f80000000", "0f40A00000", "0f7FC00000"}},
    {"f64",
     "%d0 %d1",
     "f64",
     true,
     {-1, 0, 5, NAN},
     {"0dBFF0000000000000", "0d8000000000000000", "0d4014000000000000", "0d7FF8000000000000"}},
};

/* Writes a value to two words, as a kernel reads it. */
static void
put_value(uint32_t *to, const numbers &k, double value)
{
    float f = (float)value;
    int64_t integer = k.is_float ? 0 : value >= 0x1p63 ? INT64_MIN : (int64_t)value;

    if (strcmp(k.type, "f32") == 0)
        memcpy(to, &f, sizeof(f));
    else if (k.is_float)
        memcpy(to, &value, sizeof(value));
    else
        memcpy(to, &integer, sizeof(integer));
}

/* Each lane compares two of the values; the second one is that number if there is one. */
static void
check_comparison(const numbers &k, const std::string &name, const std::string &type, int number)
{
    std::string both = k.registers, first = both.substr(0, both.find(' ')), second = both.substr(both.find(' ') + 1);
    std::string text = "setp." + name + "." + type + " %p0, " + first + ", " + (number < 0 ? second : k.text[number]);
    words in(32 * 8);

    for (unsigned lane = 0; lane < 16; lane++) {
        put_value(&in[lane * 8], k, k.value[lane % 4]);
        put_value(&in[lane * 8 + 2], k, k.value[lane / 4]);
    }
    words out = run(std::string("ld.global.") + k.load + " " + first + ", [%rd0]; ld.global." + k.load + " " + second +
                        ", [%rd0+8];\n" + text + "; selp.u32 %r9, 1, 2, %p0; st.global.u32 [%rd1], %r9;",
                    in, 16);
    for (unsigned lane = 0; lane < 16; lane++) {
        double a = k.value[lane % 4], b = k.value[number < 0 ? lane / 4 : (unsigned)number];

        expect(out[lane * 8] == (is_true(name, a, b) ? 1 : 2), text + " of " + std::to_string(a));
    }
}

static void
comparisons_are_right()
{
    static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                        "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

    for (const numbers &k : kinds)
        for (int n = 0; n < (k.is_float ? 14 : 6); n++)
            for (int number = -1; number < 4; number++) {
                check_comparison(k, names[n], k.type, number);
                if (n < 2 && k.type[0] == 'u') /* bits are equal or not */
                    check_comparison(k, names[n], std::string("b") + (k.type + 1), number);
            }
}

/* ---- selp -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *types, *a, *b, *d, *set, *get; /* set: both values; get: %r9 is the result */
    const char *number_a, *number_b;
    uint32_t want_a, want_b;
} selections[] = {
    {"b16 u16 s16", "%h0", "%h1", "%h2", "mov.b32 {%h1, %h0}, %r2;", "cvt.u32.u16 %r9, %h2;", "-2", "7", 0xfffe, 7},
    {"b32 u32 s32", "%r5", "%r6", "%r9", "mov.u32 %r5, -2; mov.u32 %r6, 7;", "", "-2", "7", 0xfffffffe, 7},
    {"f32", "%f0", "%f1", "%f2", "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000;", "mov.b32 %r9, %f2;", "0f3F800000",
     "0f40000000", 0x3f800000, 0x40000000},
    {"b64 u64 s64", "%rd3", "%rd4", "%rd5", "mov.u64 %rd3, -2; mov.u64 %rd4, 30064771072;", "mov.b64 {%r8, %r9}, %rd5;",
     "-2", "30064771072", 0xffffffff, 7},
    {"f64", "%d0", "%d1", "%d2", "mov.f64 %d0, 0d3FF0000000000000; mov.f64 %d1, 0d4000000000000000;",
     "mov.b64 {%r8, %r9}, %d2;", "0d3FF0000000000000", "0d4000000000000000", 0x3ff00000, 0x40000000},
};

static void
selections_are_right()
{
    for (const auto &s : selections) {
        std::istringstream types(s.types);

        for (std::string type; types >> type;)
            for (int numbers = 0; numbers < 4; numbers++) {
                std::string text = "selp." + type + " " + s.d + ", " + (numbers & 1 ? s.number_a : s.a) + ", " +
                                   (numbers & 2 ? s.number_b : s.b) + ", %p0;";
                std::string all = "setp.ne.s32 %p0, %r3, 0;\n" + (s.set + text) + s.get;

                expect(compute(all, 0xfffe0007, 1) == s.want_a, text + " of True");
                expect(compute(all, 0xfffe0007, 0) == s.want_b, text + " of False");
            }
    }
}

/* ---- ld and st --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *stored, *set, *loaded, *get; /* get: %r9 is the result */
    uint32_t want;
} accesses[] = {
    {"u8", "%h0", "mov.u16 %h0, 4660;", "%h1", "cvt.u32.u16 %r9, %h1;", 0x34},
    {"u8", "%r2", "", "%r9", "", 1},
    {"u16", "%h0", "mov.u16 %h0, -2;", "%h1", "cvt.u32.u16 %r9, %h1;", 0xfffe},
    {"u16", "%h0", "mov.u16 %h0, -2;", "%r9", "", 0xfffe},
    {"u16", "%r2", "", "%h1", "cvt.u32.u16 %r9, %h1;", 1},
    {"u32", "%r2", "", "%r9", "", 0x80000001},
    {"u32", "%r2", "", "%rd4", "mov.b64 {%r8, %r9}, %rd4; add.s32 %r9, %r8, %r9;", 0x80000001},
    {"f32", "%f0", "mov.b32 %f0, %r2;", "%f1", "mov.b32 %r9, %f1;", 0x80000001},
    {"u64", "%rd5", "mov.b64 %rd5, {%r3, %r2};", "%rd4", "mov.b64 {%r8, %r9}, %rd4;", 0x80000001},
    {"f64", "%d0", "mov.b64 %d0, {%r3, %r2};", "%d1", "mov.b64 {%r8, %r9}, %d1;", 0x80000001},
    {"v2.u16", "{%h0, %h1}", "mov.b32 {%h0, %h1}, %r2;", "{%h2, %h3}", "mov.b32 %r9, {%h3, %h2};", 0x00018000},
    {"v2.u32", "{%r3, %r2}", "", "{%r8, %r9}", "", 0x80000001},
    {"v2.f32", "{%f1, %f0}", "mov.b32 %f0, %r2; mov.b32 %f1, %r3;", "{%f2, %f3}", "mov.b32 %r9, %f3;", 0x80000001},
    {"v4.u32", "{%r3, %r3, %r2, %r3}", "", "{%r6, %r7, %r9, %r8}", "", 0x80000001},
    {"v4.f32", "{%f1, %f1, %f0, %f1}", "mov.b32 %f0, %r2; mov.b32 %f1, %r3;", "{%f4, %f5, %f6, %f7}",
     "mov.b32 %r9, %f6;", 0x80000001},
};

/* A load returns what was stored, and the bytes before and after it do not change. */
static void
accesses_are_right()
{
    static const struct {
        const char *space, *base;
    } places[] = {{".shared", "%r1"}, {".shared", "%rd3"}, {".shared", "buffer"}, {".global", "%rd1"}, {"", "%rd1"}};

    for (const auto &p : places)
        for (const auto &a : accesses)
            for (const char *offset : {"", "+16"}) {
                std::string at = std::string(p.base) + offset, type = std::string(p.space) + "." + a.type;
                std::string text = "st" + type + " [" + at + "], " + a.stored + "; ld" + type + " " + a.loaded + ", [" +
                                   at + "];";

                expect(compute("mov.u64 %rd3, buffer;\n" + std::string(a.set) + text + a.get, 0x80000001, 5) == a.want,
                       text);
            }
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* As nvcc writes a call of pow(): lanes may branch apart in the function, and return together. */
static void
functions_return()
{
    static const char function[] =
        "\n.func  (.param .b64 func_retval0) difference(\n\t.param .b64 difference_param_0,\n"
        "\t.param .b64 difference_param_1\n)\n{\n.reg .f64 %fd<4>; .reg .pred %p<2>;\n"
        "ld.param.f64 %fd1, [difference_param_0]; ld.param.f64 %fd2, [difference_param_1];\n"
        "setp.lt.f64 %p1, %fd1, %fd2; @%p1 bra smaller;\n"
        "sub.f64 %fd3, %fd1, %fd2; st.param.f64 [func_retval0+0], %fd3; ret;\n"
        "smaller: sub.f64 %fd3, %fd2, %fd1; st.param.f64 [func_retval0+0], %fd3; ret;\n}\n";
    words out = run("cvt.rn.f64.u32 %d0, %r0; mov.f64 %d1, 0d4014000000000000;\n{\n.param .b64 param0;\n"
                    "st.param.f64 [param0+0], %d0;\n.param .b64 param1;\nst.param.f64 [param1+0], %d1;\n"
                    ".param .b64 retval0;\ncall.uni (retval0), difference, (param0, param1);\n"
                    "ld.param.f64 %d2, [retval0+0]; }\ncvt.rzi.u32.f64 %r9, %d2; st.global.u32 [%rd1], %r9;",
                    words(32 * 8), 32, BEGIN, function);

    for (int lane = 0; lane < 32; lane++)
        expect(out[(size_t)lane * 8] == (uint32_t)(lane < 5 ? 5 - lane : lane - 5), "a function of two numbers");
}

void
forms_compute()
{
    comparisons_are_right();
    selections_are_right();
    accesses_are_right();
    functions_return();
}
