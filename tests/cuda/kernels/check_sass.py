#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine code of every kernel of train/cuda/ for sm_75, sm_80 and sm_90, read without a GPU (make check-sass).

    check_sass.py [PATTERN]     all cases, or those whose name matches
    check_sass.py --write       writes tests/cuda/kernels/kernels.txt and train/cuda/kernels/counts.c again

Compiled by NVRTC 12.9 and disassembled by cuobjdump, which PyPI has (tests/requirements-cuda.txt); without them all is
skipped.  No kernel spills or has local memory; the loop of a convolution over k reads shared memory by ldmatrix and
global memory by 16 bytes, and no kernel that moves slabs reads or writes single values.  sm_75 has to multiply by
mma.m16n8k8, not by the mma.m8n8k4 of sm_70, which is slow there.  sm_70 and sm_75 have no asynchronous copies: their
loads come before the products, and the stores to shared memory after them.

kernels.txt has registers, shared memory, the blocks of a multiprocessor that follow, and what the inner loop of a
product is made of (accesses of global and of shared memory by 16 bytes and by less, divisions, all instructions), for
sm_80 and sm_90: the table of this code has to be the one that is committed, so that a change of a kernel shows what it
costs.

HOT has limits of five hot loops: instructions, and accesses of shared memory by 16 bytes (LDS and STS, not ldmatrix),
for each mma.  The figures are printed.  A change that needs fewer lowers the limit in the same commit.

counts.c has the counts that the cost model of plans reads (train/cuda/kernels/counts.h).  The machine code of sm_70
needs a disassembler before CUDA 13, from $CUOBJDUMP or PATH.  Without it, its rows are kept and not compared.
"""
import collections
import concurrent.futures
import difflib
import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import nvrtc
from support import SOURCE, Cases, Skip

TARGETS = [(arch, value) for arch in ("sm_80", "sm_90") for value in ("fp16", "bf16", "tf32")]
HALVES = [target for target in TARGETS if target[1] != "tf32"]
TABLE = os.path.join(SOURCE, "tests", "cuda", "kernels", "kernels.txt")
# Bytes of shared memory of a multiprocessor (CUDA C Programming Guide, "Technical Specifications per Compute
# Capability"), of which each block takes 1 KiB more than it asks for.
SHARED = {"sm_80": 164 << 10, "sm_90": 228 << 10}
REGISTERS, WARPS, BLOCKS = 65536, 64, 32
COUNTS = os.path.join(SOURCE, "train", "cuda", "kernels", "counts.c")
COUNTED = [("sm_70", "fp16"), *TARGETS]
SLABS = r"conv_|norm_|.*pool|branches|reduce_sums|finalize"  # kernels that move slabs: by eight values

case = Cases()


@functools.lru_cache(None)
def sizes(value):
    """{kernel without its type of value: (threads, dynamic shared memory)}."""
    here = os.path.join(SOURCE, "tests", "cuda", "kernels")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sizes")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", f"-DCUDA_VALUE={value}",
                        f"-DCUDA_VALUE_BYTES={4 if value == 'tf32' else 2}", f"-DSIZES_OF=cuda_kernels_{value}",
                        "-iquote", os.path.join(SOURCE, "train"), "-I" + os.path.join(SOURCE, "tests", "emulator"),
                        "-Wl,--unresolved-symbols=ignore-all",
                        os.path.join(SOURCE, "train", "cuda", "kernels", "table.c"),
                        os.path.join(here, "kernel_sizes.c"), "-o", path], check=True)
        lines = subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {name[:-len(value) - 1]: (int(threads), int(shared)) for name, threads, shared in rows}


def blocks_of(arch, registers, threads, shared):
    """Blocks that a multiprocessor holds at once."""
    warps = (threads + 31) // 32
    by_registers = REGISTERS // 4 // ((registers + 7) // 8 * 8 * 32) * 4 // warps  # each scheduler has a quarter
    by_shared = SHARED[arch] // ((shared + 1024 + 127) // 128 * 128)
    return min(BLOCKS, WARPS // warps, by_registers, by_shared)


@functools.lru_cache(None)
def cuobjdump(arch):
    """The path of a cuobjdump that knows this architecture."""
    if arch != "sm_70":
        return nvrtc.tool("cuobjdump")
    path = os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump")
    said = subprocess.run([path, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout if path else ""
    release = re.search(r"release (\d+)", said)
    if not release or int(release.group(1)) >= 13:
        raise Skip("no cuobjdump before CUDA 13 in $CUOBJDUMP or PATH")
    return path


def code_of(machine, arch):
    """{kernel: [(address, instruction)]}."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(machine)
        file.flush()
        text = subprocess.run([cuobjdump(arch), "-sass", file.name], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
    found = {}
    for part in re.split(r"^\s*Function : ", text, flags=re.M)[1:]:
        name, rest = part.split("\n", 1)
        found[name.strip()] = [(int(at, 16), words.strip()) for at, words in
                               re.findall(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);", rest, re.M)]
    assert found, text[:1000]
    return found


def operation(words):
    """LDG.E.128 of '@P0 LDG.E.128 R4, ...'; "" of what is never done."""
    if words.startswith("@!PT "):
        return ""
    return re.sub(r"^@!?U?P\w+\s+", "", words).split()[0]


def inner_loop(code):
    """The shortest loop with a product: the operations between a jump backwards and where it goes; [] without one."""
    loops = []
    for at, words in code:
        jump = re.search(r"\bBRA(?:\.\w+)* (?:\w+, )*0x([0-9a-f]+)", words)
        if jump and int(jump.group(1), 16) < at:
            inside = [operation(w) for a, w in code if int(jump.group(1), 16) <= a <= at]
            if any(o.startswith("HMMA") for o in inside):
                loops.append(inside)
    return min(loops, key=len, default=[])


def count(operations, pattern):
    return sum(bool(re.match(pattern, o)) for o in operations)


GLOBAL = r"(LDG|STG|LDGSTS|LD|ST|RED|ATOM)\."
NARROW = r"(LDG|STG|LDGSTS|LD|ST)\.(?!.*128)"


@functools.lru_cache(None)
def compiled_file(path, arch, value):
    """[(kernel, registers, spilled, [(address, instruction)])] of one file for one target."""
    cuobjdump(arch)
    said, machine = nvrtc.compile_file(path, arch, value)
    code = code_of(machine, arch)
    assert set(said) == set(code), set(said) ^ set(code)
    return [(name[:-len(value) - 1], registers, spilled, code[name]) for name, (registers, spilled) in said.items()]


@functools.lru_cache(None)
def compiled(arch, value):
    """The same of all files."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        files = list(pool.map(lambda path: compiled_file(path, arch, value), nvrtc.FILES))
    return sorted(itertools.chain(*files))


@functools.lru_cache(None)
def read(arch, value):
    """[(kernel, registers, spilled, operations, operations of the inner loop)] of one target."""
    return [(name, registers, spilled, [operation(w) for _, w in code], inner_loop(code))
            for name, registers, spilled, code in compiled(arch, value)]


# ---- counts for the cost model ------------------------------------------------------------------------------------

FIELDS = ("all", "shared", "mma", "loads", "stores")
MORE = ("prologue", "wide")  # not in counts.c; wide: accesses of shared memory by 16 bytes
HALO_LINES, HALO_WEIGHTS, HALO_TAPS, HALO_THREADS = 244, 288, 9, 128
HALO_AROUND = 116  # lines of a halo in addition to the rows of the tile
# How often the inner loops of these kernels run, for each iteration of the loop around them.
TRIPS = {"fold_weights": 7}  # steps of a binary search


def weight_of(words):
    """Counts of one instruction; shared: cycles of shared memory, 128 bytes each, without bank conflicts."""
    name = operation(words)
    found = collections.Counter(all=bool(name), mma=name.startswith("HMMA"), wide=is_prologue(words))
    if re.match("LDSM|LDGSTS|LDS|STS|ATOMS", name):
        found["shared"] = 4 if re.search(r"128|MT?88\.4|\.x4", name) else 2 if re.search(r"\.64|MT?88\.2", name) else 1
    if re.match("(LDG|LDGSTS|LD)[.].*128", name):
        found["loads"] = 1
    if re.match("(STG|ST)[.].*128", name):
        found["stores"] = 1
    return found


def add(*parts):
    """The sum of (times, counts)."""
    total = collections.Counter()
    for times, counts in parts:
        for field in (*FIELDS, *MORE):
            total[field] += times * counts[field]
    return total


def jump_of(words):
    found = re.search(r"\bBRA(?:\.\w+)* (?:!?U?\w+, )*`?\(?0x([0-9a-f]+)", words)
    return int(found.group(1), 16) if found else None


def loops_of(code):
    """[(first, last address)] of all loops, outer ones first.

    A jump back from behind an EXIT is no loop: there is code for lanes that are not together, which is rarely taken.
    """
    found = {}
    end = 0
    for at, words in code:
        target = jump_of(words)
        end = at if operation(words) == "EXIT" and not words.startswith("@") else end
        if target is not None and target < at and target > end:
            found[target] = max(found.get(target, 0), at)
    return sorted(found.items(), key=lambda loop: (loop[0], -loop[1]))


def is_prologue(words):
    return re.match(r"(LDS|STS)\..*128", operation(words)) is not None


def path_of(code, loop, loops, bare=False):
    """Counts of the longest path through a loop, once, without the loops inside it; bare: around its prologue."""
    inside = [at for at in loops if at != loop and loop[0] <= at[0] and at[1] <= loop[1]]
    best = {}
    follows = None

    def rank(way):
        return -way["prologue"], way["all"]

    for at, words in reversed([(a, w) for a, w in code if loop[0] <= a <= loop[1]]):
        counts = collections.Counter() if any(a <= at <= b for a, b in inside) else weight_of(words)
        target = jump_of(words)
        ways = [best[target]] if target in best and target > at else []
        if follows is not None and not re.match(r"(BRA(?!\.DIV)|EXIT|RET)\b", words):
            ways.append(follows)
        best[at] = follows = add((1, counts), (1, max(ways, key=rank, default=collections.Counter())))
        follows["prologue"] += bare and is_prologue(words)
    return follows


def stores_of(code, loops, scope, main, pieces):
    """Counts of the loop that stores a tile, whose threads have this number of pieces of 16 bytes."""
    found = [path_of(code, at, loops) for at in loops if scope[0] <= at[0] and at[1] <= scope[1] and at[0] > main[1]]
    found = [(c["all"] / c["stores"], c) for c in found if c["stores"]]
    if not found:
        return collections.Counter()
    _, counts = max(found, key=lambda each: each[0])
    return add((pieces / counts["stores"], counts))


def halo_step(code, loops, chunk, main, wide):
    """32 channels: the taps, the copies of lines and weights, and the prologue.  No launch is without it."""
    parts = [(1, path_of(code, chunk, loops)), (HALO_TAPS, path_of(code, main, loops))]
    lines, weights = (count * 4 * wide / HALO_THREADS for count in (HALO_LINES, HALO_WEIGHTS))
    for loop in loops:
        if loop in (chunk, main) or not (chunk[0] <= loop[0] and loop[1] <= chunk[1]):
            continue
        counts = path_of(code, loop, loops)
        copied = counts["loads"]
        parts.append(((weights if copied > wide else lines) / max(copied, 1), counts))
    return add(*parts)


def dgrad_halo_step(code, loops, scope, main, shape, threads, wide):
    """All nine taps, three in an iteration, and the copies of lines; the weights as if each tile copied them."""
    lines = (shape[0] + HALO_AROUND) * 4 * wide / threads
    weights = HALO_WEIGHTS * shape[1] / 8 * wide / threads
    parts = [(HALO_TAPS / 3, path_of(code, main, loops))]
    copies = "LDGSTS" if any(operation(w).startswith("LDGSTS") for _, w in code) else r"STS\.128"
    for loop in loops:
        counts = path_of(code, loop, loops)
        if loop[1] < main[0] and counts["loads"] and counts["shared"] and not counts["stores"]:
            inside = scope[0] <= loop[0]
            if inside or any(re.match(copies, operation(w)) for a, w in code if loop[0] <= a <= loop[1]):
                parts.append(((lines if inside else weights) / counts["loads"], counts))
    assert len(parts) == 3, parts
    return add(*parts)


def product_counts(name, code, loops, main, threads, wide):
    """[counts of a step, counts of a tile without its steps]; wide: accesses of 16 bytes for eight values."""
    around = [at for at in loops if at != main and at[0] <= main[0] and main[1] <= at[1]]
    around.sort(key=lambda at: at[1] - at[0])
    step = path_of(code, main, loops)
    step["bare"] = path_of(code, main, loops, bare=True)["all"]
    shape = re.findall(r"(\d+)x(\d+)", name)[0 if around else -1]
    if around and name.endswith("_halo"):
        if "dgrad" in name:
            step = dgrad_halo_step(code, loops, around[0], main, [int(side) for side in shape], threads, wide)
        else:
            step = halo_step(code, loops, around.pop(0), main, wide)
        step["bare"] = step["all"]
    scope = around[0] if around else (code[0][0], code[-1][0])
    rows = 128 if "one_pass" in name else int(shape[0])  # wgrad stores all output channels
    pieces = rows * int(shape[1]) / 8 * wide / threads
    return [step, add((1, path_of(code, scope, loops)), (1, stores_of(code, loops, scope, main, pieces)))]


def adds_rows(operations, loads):
    """Does a loop only add rows of partial sums?  Each float of a load costs four additions (two_floats_add)."""
    return count(operations, "FADD") == 16 * loads and not count(operations, "FFMA|FMUL|HADD2|HFMA2")


def other_counts(name, code, loops):
    """Counts of an iteration of the loop over a slab; without one, of the whole kernel, without loads and stores."""
    def is_slab(loop):
        counts = path_of(code, loop, loops)
        inside = [w for a, w in code if loop[0] <= a <= loop[1]]
        return counts["loads"] and not adds_rows([operation(w) for w in inside], counts["loads"]) and counts

    slabs = [(bool(c["stores"]), c["all"], at) for at in loops for c in [is_slab(at)] if c]
    main = max(slabs)[2] if slabs else (code[0][0], code[-1][0])
    inner = [(TRIPS.get(name, 1), path_of(code, at, loops)) for at in loops
             if at != main and main[0] <= at[0] and at[1] <= main[1]]
    counts = add((1, path_of(code, main, loops)), *inner)
    if not slabs:
        counts["loads"] = counts["stores"] = 0
    return counts


def counts_of(name, code, threads, value):
    loops = loops_of(code)
    products = [at for at in loops if any(operation(w).startswith("HMMA") for a, w in code if at[0] <= a <= at[1])]
    inner = [at for at in products if not any(at != m and at[0] <= m[0] and m[1] <= at[1] for m in products)]
    if not inner:
        parts = [collections.Counter(), other_counts(name, code, loops)]
    else:  # dgrad, whose tiles are in a loop, comes before wgrad
        inner.sort(key=lambda at: not any(m != at and m[0] <= at[0] and at[1] <= m[1] for m in products))
        assert len(inner) == 1 + ("dgrad_wgrad" in name), (name, inner)
        parts = [part for main in inner for part in
                 product_counts(name, code, loops, main, threads, 2 if value == "tf32" else 1)]
    return parts + [collections.Counter()] * (4 - len(parts))


def counts_rows(arch, value):
    order = list(sizes(value))
    lines = []
    for name, registers, _, code in sorted(compiled(arch, value), key=lambda row: order.index(row[0])):
        threads, shared = sizes(value)[name]
        parts = ["{" + ", ".join(str(round(part[f])) for f in (*FIELDS, "bare")) + "}" if part["all"] else "NONE"
                 for part in counts_of(name, code, threads, value)]
        lines += [f'    {{"{name}", {registers}, {threads}, {shared}, {parts[0]}, {parts[1]},',
                  f"     {parts[2]}, {parts[3]}}},"]
    return lines


def part_of(arch, value):
    """The lines of a target in the committed table."""
    with open(COUNTS, encoding="utf-8") as file:
        found = re.search(rf"\n/\* {arch} {value} \*/\n(.*?)}};\n", file.read(), re.S)
    return found.group(1).splitlines()[1:] if found else []


def kept_rows(arch, value):
    """The same for the kernels of now; one that was not counted has no counts, so a plan must not choose it."""
    old = part_of(arch, value)
    kept = {re.match(r' *{"(\w+)"', first).group(1): [first, second] for first, second in zip(old[::2], old[1::2])}
    lines = []
    for name, (threads, shared) in sizes(value).items():
        lines += kept.get(name, [f'    {{"{name}", 255, {threads}, {shared}, NONE, NONE,', "     NONE, NONE},"])
    return lines


def counts_table():
    lines = ["/*",
             " * counts.c - see counts.h; written by `make kernels-table`, compared by `make check-sass`",
             " *",
             " * NVRTC 12.9.  {kernel, registers, threads, shared memory, step, unit, step of wgrad, unit of wgrad},",
             " * in the order of enum cuda_kernel_id.  A step or unit has, for a warp: {instructions, cycles of shared",
             " * memory, mma, loads of 16 bytes, stores of 16 bytes, instructions without prologue}.",
             " *",
             " * SPDX-License-Identifier: Apache-2.0",
             " */",
             '#include "cuda/kernels/counts.h"',
             "",
             "/* clang-format off */",
             "#define NONE {0, 0, 0, 0, 0, 0}"]
    for arch, value in COUNTED:
        try:
            rows = counts_rows(arch, value)
        except Skip:
            rows = kept_rows(arch, value)
        lines += ["", f"/* {arch} {value} */",
                  f"static const struct cuda_counts {arch}_{value}[CUDA_KERNEL_COUNT] = {{", *rows, "};"]
    lines += ["/* clang-format on */", "",
              "const struct cuda_counts *",
              "cuda_counts_of(unsigned major, enum cuda_value value)",
              "{",
              "    static const struct cuda_counts *const sm_80[] = {sm_80_fp16, sm_80_bf16, sm_80_tf32};",
              "    static const struct cuda_counts *const sm_90[] = {sm_90_fp16, sm_90_bf16, sm_90_tf32};",
              "",
              "    return major == 7 ? sm_70_fp16 : major == 8 ? sm_80[value] : sm_90[value];",
              "}"]
    return "".join(line + "\n" for line in lines)


def table():
    lines = ["# What the kernels take, and the inner loop of each product: written by `make kernels-table`,",
             "# compared by `make check-sass`.  NVRTC 12.9; shared memory without what a plan asks for beside it.",
             "# SPDX-License-Identifier: Apache-2.0",
             f"{'kernel':38} {'target':10} {'regs':>4} {'spill':>5} {'threads':>7} {'shared':>6} {'blocks':>6}"
             f" {'warps':>5} {'mma':>4} {'ldsm':>4} {'async':>5} {'g128':>4} {'narrow':>6} {'s128':>4} {'s<128':>5}"
             f" {'div':>4} {'all':>5}"]
    for arch, value in TARGETS:
        for name, registers, spilled, _, loop in read(arch, value):
            threads, shared = sizes(value)[name]
            blocks = blocks_of(arch, registers, threads, shared)
            row = (f"{name:38} {arch} {value} {registers:4} {spilled:5} {threads:7} {shared:6} {blocks:6}"
                   f" {100 * blocks * threads // 32 // WARPS:4}%")
            if loop:
                row += (f" {count(loop, 'HMMA'):4} {count(loop, 'LDSM'):4} {count(loop, 'LDGSTS.*128'):5}"
                        f" {count(loop, r'(LDG|STG)[.].*128'):4} {count(loop, NARROW):6}"
                        f" {count(loop, r'(LDS|STS)[.].*128'):4} {count(loop, r'(LDS|STS)(?!M)(?!.*128)'):5}"
                        f" {count(loop, 'MUFU.RCP'):4} {sum(map(bool, loop)):5}")
            lines.append(row)
    return "".join(line + "\n" for line in lines)


def stored():
    with open(TABLE, encoding="utf-8") as file:
        return file.read()


for the_arch, the_value in TARGETS:
    @case(f"{the_arch}, {the_value}: no kernel spills or has local memory")
    def no_spills(_, arch=the_arch, value=the_value):
        bad = [name for name, _, spilled, code, _ in read(arch, value) if spilled or count(code, "(LDL|STL)")]
        assert not bad, bad

    @case(f"{the_arch}, {the_value}: products by ldmatrix and 16 bytes of global memory")
    def products(_, arch=the_arch, value=the_value):
        seen = 0
        for name, _, _, code, loop in read(arch, value):
            if not name.startswith("conv_"):
                continue
            seen += 1
            assert count(loop, "HMMA") and count(loop, "LDSM|LDS" if value == "tf32" else "LDSM"), (name, loop)
            # The loop over taps of a halo is inside the one that copies.
            assert count(code if name.endswith("_halo") else loop, GLOBAL + ".*128"), (name, loop)
            narrow = [o for o in loop if re.match(NARROW, o)]
            assert not narrow, (name, narrow)
        assert seen >= 24, seen

    @case(f"{the_arch}, {the_value}: slabs are moved by eight values")
    def slabs(_, arch=the_arch, value=the_value):
        for name, _, _, code, _ in read(arch, value):
            if re.match(SLABS, name):
                single = sorted({o for o in code if re.match(r"(LDG|STG|LD|ST)\..*U16", o)})
                assert not single, (name, single)
                assert count(code, GLOBAL + ".*128"), name


# (what, file, kernels, index of a step of counts_of(), most instructions for each mma on each of HALVES, most accesses
# of 16 bytes for each mma).  A step is a pass through the loop on its longest path; of the halo kernel it is 32
# channels: nine taps, copies and prologue.
HOT = [
    ("3x3 dgrad", "conv_dgrad_wgrad", r"conv_dgrad_wgrad_\d+x\d+_\d+x\d+", 0, (16.25, 16.25, 16.56, 16.56), 0),
    ("3x3 wgrad", "conv_dgrad_wgrad", r"conv_dgrad_wgrad_\d+x\d+_\d+x\d+", 2, (17.25, 17.25, 17.83, 18.17), 0.333),
    ("3x3 dgrad, halo", "conv_dgrad_halo", r"conv_dgrad_wgrad_\d+x\d+_\d+x\d+_halo", 0, (4.96, 4.96, 5.36, 5.36), 0),
    ("3x3 wgrad, halo", "conv_dgrad_halo", r"conv_dgrad_wgrad_\d+x\d+_\d+x\d+_halo", 2,
     (9.67, 9.67, 10.50, 10.83), 0.167),
    ("one pass, 64 columns", "conv_one_pass", r"conv_one_pass_64x64", 0, (12.72, 12.91, 13.55, 14.81), 0.531),
    ("one pass, 128 columns", "conv_one_pass", r"conv_one_pass_64x128", 0, (9.59, 9.77, 9.70, 10.77), 0.25),
    ("3x3 fprop, halo", "conv_halo", r"conv_fprop_\d+x\d+_halo", 0, (11.92, 12.02, 12.49, 12.82), 0.134),
    ("1x1 fprop", "conv_fprop", r"conv_fprop_(96|128)x128_pointwise", 0, (9.19, 9.19, 9.53, 9.78), 0.25)]


def hot_figures(file, pattern, index, target):
    """[(kernel, instructions, accesses of 16 bytes)] of a hot loop, for each mma."""
    rows = []
    for name, _, _, code in compiled_file(os.path.join(nvrtc.KERNELS, file + ".cu"), *target):
        if re.fullmatch(pattern, name):
            step = counts_of(name, code, sizes(target[1])[name][0], target[1])[index]
            rows.append((name, step["all"] / step["mma"], step["wide"] / step["mma"]))
    assert rows, f"no kernel matches {pattern}"
    return rows


for the_hot in HOT:
    @case(f"hot loop: {the_hot[0]}, instructions and accesses of 16 bytes for each mma")
    def hot(_, row=the_hot):
        what, file, pattern, index, limits, wide = row
        above = []
        for target, limit in zip(HALVES, limits):
            for name, all_each, wide_each in hot_figures(file, pattern, index, target):
                line = (f"{name} {' '.join(target)}: {all_each:.2f} (at most {limit:.2f}), "
                        f"{wide_each:.3f} (at most {wide:.3f})")
                print(f"     {what}: {line}", flush=True)
                if round(all_each, 2) > limit or round(wide_each, 3) > wide:
                    above.append(line)
        assert not above, "above the limit:\n" + "\n".join(above)


@case("sm_75, fp16: products by HMMA.1688 and ldmatrix, no kernel spills or has local memory")
def products_of_turing(_):
    for name, _, spilled, code, loop in read("sm_75", "fp16"):
        assert not spilled and not count(code, "(LDL|STL)"), name
        assert not count(code, r"HMMA\.884"), name
        if name.startswith("conv_"):
            assert count(loop, r"HMMA\.1688") and count(loop, "LDSM"), (name, loop)


for the_arch in ("sm_70", "sm_75"):
    @case(f"{the_arch}, fp16: a step loads the next one before its products, and stores it after them")
    def overlap(_, arch=the_arch):
        for name, _, _, _, loop in read(arch, "fp16"):
            if not name.startswith("conv_") or name.endswith("_halo") or "one_pass" in name:
                continue
            products = [n for n, o in enumerate(loop) if o.startswith("HMMA")]
            loads = [n for n, o in enumerate(loop) if re.match(r"LDG[.].*128", o)]
            assert loads and loads[-1] < products[len(products) // 8], (name, loop)
            assert count(loop[products[-1]:], r"STS[.].*128") == len(loads), (name, loop)


@case("tests/cuda/kernels/kernels.txt is the table of these kernels")
def same_table(_):
    now = table().splitlines()
    changed = list(difflib.unified_diff(stored().splitlines(), now, "kernels.txt", "as compiled", lineterm="", n=0))
    assert not changed, "make kernels-table writes it anew:\n" + "\n".join(changed[:60])


for the_arch, the_value in COUNTED:
    @case(f"{the_arch}, {the_value}: train/cuda/kernels/counts.c has the counts of these kernels")
    def same_counts(_, arch=the_arch, value=the_value):
        changed = list(difflib.unified_diff(part_of(arch, value), counts_rows(arch, value), "counts.c", "as compiled",
                                            lineterm="", n=0))
        assert not changed, "make kernels-table writes it again:\n" + "\n".join(changed[:60])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        TEXT = table()
        with open(TABLE, "w", encoding="utf-8") as the_file:
            the_file.write(TEXT)
        TEXT = counts_table()
        with open(COUNTS, "w", encoding="utf-8") as the_file:
            the_file.write(TEXT)
        sys.exit(0)
    sys.exit(case.main())
