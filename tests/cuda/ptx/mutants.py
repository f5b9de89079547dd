# SPDX-License-Identifier: Apache-2.0
"""Mutants of the PTX of train/cuda/: edits as a wrong asm statement or a wrong compiler would make them.

check_mutants.py applies each to the files of one architecture, and the programs of the mutant must fail.
"""
import collections

Mutant = collections.namedtuple("Mutant", "name statement files pattern replacement programs")

CP = r"cp\.async\.cg\.shared\.global"
CVT = r"(?m)^\tcvt\.rn\.bf16x2\.f32 (%r\d+), (%f\d+), (%f\d+)"  # that of partial.h: those of the toolkit have braces
THREE = ["conv_kernels", "fused_kernels", "one_pass_kernels"]
COPY = "cp.async.cg.shared.global"
COMMIT = "cp.async.commit_group"
WAIT = "cp.async.wait_group"
BF16X2 = "cvt.rn.bf16x2.f32"
PRMT = "prmt.b32"
ROWS = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
COLUMNS = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
LARGE = "mma.sync.aligned.m16n8k16.row.col.f32."
HALF = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
SMALL = "mma.sync.aligned.m8n8k4."
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
ROUND = "cvt.rna.tf32.f32"


FOUR = r"\{(%\w+),(%\w+),(%\w+),(%\w+)\}"
TWO = r"\{(%\w+),(%\w+)\}"
ANY = r"\{[^}]*\}"


def of(statement):
    """A pattern for this statement."""
    return statement.replace(".", r"\.")


def products_16816(value, kind):
    """Mutants of mma.m16n8k16: operands are sums, A, B, sums."""
    mma = f"{LARGE}{kind}.{kind}.f32"
    files = f"90-{value}-conv_fprop"
    return [
        Mutant(f"mma of {kind}: registers 1 and 2 of A swapped", mma, files, rf"({of(mma)} {ANY}, ){FOUR}",
               r"\1{\2,\4,\3,\5}", ["conv_kernels"]),
        Mutant(f"mma of {kind}: registers of B swapped", mma, files, rf"({of(mma)} {ANY}, {ANY}, ){TWO}",
               r"\1{\3,\2}", ["conv_kernels"]),
        Mutant(f"mma of {kind}: sums 1 and 2 swapped", mma, files, rf"({of(mma)} ){FOUR}", r"\1{\2,\4,\3,\5}",
               ["conv_kernels"]),
    ]


def products_tf32():
    """Mutants of mma.m16n8k8 of tf32 and of the rounding of its operands."""
    files = "90-tf32-conv_fprop"
    program = ["conv_kernels"]
    return [
        Mutant("mma of tf32: registers 1 and 2 of A swapped", TF32, files, rf"({of(TF32)} {ANY}, ){FOUR}",
               r"\1{\2,\4,\3,\5}", program),
        Mutant("mma of tf32: registers of B swapped", TF32, files, rf"({of(TF32)} {ANY}, {ANY}, ){TWO}",
               r"\1{\3,\2}", program),
        Mutant("mma of tf32: sums 1 and 2 swapped", TF32, files, rf"({of(TF32)} ){FOUR}", r"\1{\2,\4,\3,\5}", program),
        Mutant("operands of tf32 are truncated", ROUND, files, of(ROUND) + r" (%r\d+), (%f\d+)", r"mov.b32 \1, \2",
               program),
        Mutant("ldmatrix of tf32: registers 1 and 2 swapped", ROWS, files, of(ROWS) + " " + FOUR,
               ROWS + r" {\1,\3,\2,\4}", program),
        Mutant("a copy of tf32 to the next 16 bytes", COPY, files, rf"({CP} \[%r\d+)\]", r"\1+16]", program),
    ]


def products_1688(kernels, program):
    """Mutants of mma.m16n8k8, two of which make a product of sm_75."""
    files = f"75-fp16-conv_{kernels}"
    return [
        Mutant(f"mma of sm_75, {kernels}: registers of A swapped", HALF, files, rf"({of(HALF)} {ANY}, ){TWO}",
               r"\1{\3,\2}", [program]),
        Mutant(f"mma of sm_75, {kernels}: sums 1 and 2 swapped", HALF, files, rf"({of(HALF)} ){FOUR}",
               r"\1{\2,\4,\3,\5}", [program]),
        Mutant(f"mma of sm_75, {kernels}: B is a register of A", HALF, files,
               rf"({of(HALF)} {ANY}, \{{(%\w+),%\w+\}}, )\{{%\w+\}}", r"\1{\2}", [program]),
        Mutant(f"mma of sm_75, {kernels}: it is not done", HALF, files, of(HALF) + r"[^;]*;", "", [program]),
    ]


def products_884(layout, other, kernels):
    """Mutants of mma.m8n8k4 in a file that has this layout."""
    mma = f"{SMALL}{layout}.f32.f16.f16.f32"
    files = f"70-fp16-conv_{kernels}"
    return [
        Mutant(f"mma of sm_70, {layout}: it is {other}", mma, files, of(mma), f"{SMALL}{other}.f32.f16.f16.f32",
               ["conv_kernels"]),
        Mutant(f"mma of sm_70, {layout}: registers of A swapped", mma, files, rf"({of(mma)} {ANY}, ){TWO}",
               r"\1{\3,\2}", ["conv_kernels"]),
        Mutant(f"mma of sm_70, {layout}: registers of B swapped", mma, files, rf"({of(mma)} {ANY}, {ANY}, ){TWO}",
               r"\1{\3,\2}", ["conv_kernels"]),
    ]


# name; statement of the source, or None if the compiler makes it; files; pattern, replacement; programs that must fail
MUTANTS = [
    Mutant("no griddepcontrol.wait", "griddepcontrol.wait", "90-fp16-pool", r"griddepcontrol\.wait;", "",
           ["pool_kernels"]),
    Mutant("no griddepcontrol.launch_dependents", "griddepcontrol.launch_dependents", "90-fp16-pool",
           r"griddepcontrol\.launch_dependents;", "", ["pool_kernels"]),
    Mutant("a copy of 16 bytes that are not valid", COPY, "90-fp16-conv_fprop",
           rf"({CP} \[%r\d+\], \[%rd\d+\], 16), %r\d+", r"\1", ["conv_kernels"]),
    Mutant("a copy of zeros only", COPY, "90-fp16-conv_fprop", rf"({CP} \[%r\d+\], \[%rd\d+\], 16), %r\d+", r"\1, 0",
           ["conv_kernels"]),
    Mutant("a copy to the next 16 bytes", COPY, "90-fp16-conv_fprop", rf"({CP} \[%r\d+)\]", r"\1+16]",
           ["conv_kernels"]),
    Mutant("a copy from the next 16 bytes", COPY, "90-fp16-conv_fprop", rf"({CP} \[%r\d+\], \[%rd\d+)\]", r"\1+16]",
           ["conv_kernels"]),
    Mutant("no cp.async.commit_group", COMMIT, "90-fp16-conv_fprop", of(COMMIT) + ";", "", ["conv_kernels"]),
    Mutant("no cp.async.wait_group 1", WAIT, "90-fp16-conv_wgrad", of(WAIT) + " 1;", "", ["conv_kernels"]),
    Mutant("cp.async.wait_group 1 leaves one group more", WAIT, "90-fp16-conv_wgrad", of(WAIT) + " 1", WAIT + " 2",
           ["conv_kernels"]),
    Mutant("cp.async.wait_group 0 leaves one group", WAIT, "90-fp16-conv_one_pass", of(WAIT) + " 0", WAIT + " 1",
           ["one_pass_kernels"]),
    Mutant("cp.async.wait_group 1 leaves one group more, only one pass", WAIT, "90-fp16-conv_one_pass",
           of(WAIT) + " 1", WAIT + " 2", ["one_pass_kernels"]),
    Mutant("prmt: the bytes instead of their signs", PRMT, "90-fp16-conv_one_pass", "0xbb99", "0x3311",
           ["one_pass_kernels"]),
    Mutant("prmt: the sign of the other half", PRMT, "70-fp16-conv_one_pass", "0xbb99", "0x99bb",
           ["one_pass_kernels"]),
    Mutant("cvt.rn.bf16x2: halves swapped", BF16X2, "90-fp16-conv_*", CVT, rf"\t{BF16X2} \1, \3, \2", THREE),
    Mutant("cvt.rn.bf16x2: both halves are the upper one", BF16X2, "90-fp16-conv_*", CVT, rf"\t{BF16X2} \1, \2, \2",
           THREE),
    Mutant("cvt.rn.bf16x2: the result is 0", BF16X2, "90-fp16-conv_*", CVT, r"\tmov.b32 \1, 0", THREE),
    Mutant("cvt.rn.bf16x2: the result is 0, only one pass", BF16X2, "90-fp16-conv_one_pass", CVT, r"\tmov.b32 \1, 0",
           ["one_pass_kernels", "layout_steps"]),
    Mutant("cvt.rn.bf16x2: halves swapped, bf16", BF16X2, "90-bf16-conv_*", CVT, rf"\t{BF16X2} \1, \3, \2", THREE),
    Mutant("ldmatrix: transposed", ROWS, "90-fp16-conv_fprop", of(ROWS), COLUMNS, ["conv_kernels"]),
    Mutant("ldmatrix: registers 1 and 2 swapped", ROWS, "90-fp16-conv_fprop", of(ROWS) + " " + FOUR,
           ROWS + r" {\1,\3,\2,\4}", ["conv_kernels"]),
    Mutant("ldmatrix: the next 16 bytes", ROWS, "90-fp16-conv_fprop", f"({of(ROWS)} {FOUR}, " + r"\[%r\d+)\]",
           r"\1+16]", ["conv_kernels"]),
    Mutant("ldmatrix.trans: not transposed", COLUMNS, "90-fp16-conv_wgrad", of(COLUMNS), ROWS, ["conv_kernels"]),
    Mutant("ldmatrix.trans: registers 1 and 2 swapped", COLUMNS, "90-fp16-conv_wgrad", of(COLUMNS) + " " + FOUR,
           COLUMNS + r" {\1,\3,\2,\4}", ["conv_kernels"]),
    *products_16816("fp16", "f16"),
    *products_16816("bf16", "bf16"),
    Mutant("mma of bf16: it takes f16", LARGE, "90-bf16-conv_fprop", r"f32\.bf16\.bf16\.f32", "f32.f16.f16.f32",
           ["conv_kernels"]),
    *products_tf32(),
    *products_1688("fprop", "conv_kernels"),
    *products_1688("one_pass", "one_pass_kernels"),
    Mutant("ldmatrix of sm_75: transposed", ROWS, "75-fp16-conv_fprop", of(ROWS), COLUMNS, ["conv_kernels"]),
    Mutant("ldmatrix.trans of sm_75: not transposed", COLUMNS, "75-fp16-conv_wgrad", of(COLUMNS), ROWS,
           ["conv_kernels"]),
    *products_884("row.col", "row.row", "fprop"),
    *products_884("row.row", "row.col", "dgrad"),
    *products_884("col.row", "col.col", "wgrad"),
    Mutant("bar.sync of fprop is missing", None, "90-fp16-conv_fprop", r"bar\.sync \t0;", "", ["conv_kernels"]),
    Mutant("cvt.rn.f16x2: halves swapped", None, "90-fp16-conv_fprop",
           r"(cvt\.rn\.f16x2\.f32 %r\d+), (%f\d+), (%f\d+)", r"\1, \3, \2", ["conv_kernels"]),
    Mutant("shfl.bfly: each lane gets its own value", None, "90-fp16-norm*",
           r"(shfl\.sync\.bfly\.b32 \t%r\d+\|%p\d+, %r\d+), %r\d+", r"\1, 0", ["norm_kernels"]),
]
