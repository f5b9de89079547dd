#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine code of every kernel of train/cuda/ for sm_80 and sm_90, read without a GPU (make check-sass).

    check_sass.py [PATTERN]     all cases, or those whose name matches
    check_sass.py --write       tests/cuda/kernels/kernels.txt is written anew

Compiled by NVRTC 12.9 and disassembled by cuobjdump, which PyPI has (tests/requirements-cuda.txt); without them all is
skipped.  No kernel spills or has local memory; the loop of a convolution over k reads shared memory by ldmatrix and
global memory by 16 bytes, and no kernel that moves slabs reads or writes single values.  kernels.txt has registers,
shared memory, the blocks of a multiprocessor that follow, and what the inner loop of a product is made of (accesses of
global and of shared memory by 16 bytes and by less, divisions, all instructions): the table of this code has to be the
one that is committed, so that a change of a kernel shows what it costs.
"""
import concurrent.futures
import difflib
import functools
import os
import re
import subprocess
import sys
import tempfile

import nvrtc
from support import SOURCE, Cases

TARGETS = [("sm_80", "fp16"), ("sm_80", "bf16"), ("sm_90", "fp16"), ("sm_90", "bf16")]
TABLE = os.path.join(SOURCE, "tests", "cuda", "kernels", "kernels.txt")
# Bytes of shared memory of a multiprocessor (CUDA C Programming Guide, "Technical Specifications per Compute
# Capability"), of which each block takes 1 KiB more than it asks for.
SHARED = {"sm_80": 164 << 10, "sm_90": 228 << 10}
REGISTERS, WARPS, BLOCKS = 65536, 64, 32
SLABS = r"conv_|norm_|.*pool|branches|reduce_sums|finalize"  # kernels that move slabs: by eight values

case = Cases()


@functools.lru_cache(None)
def sizes():
    """{kernel without its type of value: (threads, dynamic shared memory)}."""
    here = os.path.join(SOURCE, "tests", "cuda", "kernels")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sizes")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-DCUDA_VALUE=fp16", "-DCUDA_VALUE_BYTES=2", "-iquote",
                        os.path.join(SOURCE, "train"), "-I" + os.path.join(SOURCE, "tests", "emulator"),
                        "-Wl,--unresolved-symbols=ignore-all",
                        os.path.join(SOURCE, "train", "cuda", "kernels", "table.c"),
                        os.path.join(here, "kernel_sizes.c"), "-o", path], check=True)
        lines = subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {name[:-len("_fp16")]: (int(threads), int(shared)) for name, threads, shared in rows}


def blocks_of(arch, registers, threads, shared):
    """Blocks that a multiprocessor holds at once."""
    warps = (threads + 31) // 32
    by_registers = REGISTERS // ((registers + 7) // 8 * 8 * 32) // warps
    by_shared = SHARED[arch] // ((shared + 1024 + 127) // 128 * 128)
    return min(BLOCKS, WARPS // warps, by_registers, by_shared)


def code_of(machine):
    """{kernel: [(address, instruction)]}."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(machine)
        file.flush()
        text = subprocess.run([nvrtc.tool("cuobjdump"), "-sass", file.name], check=True, stdout=subprocess.PIPE,
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
def read(arch, value):
    """[(kernel, registers, spilled, operations, operations of the inner loop)] of one target."""
    def both(path):
        said, machine = nvrtc.compile_file(path, arch, value)
        return said, code_of(machine)

    rows = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        files = list(pool.map(both, nvrtc.FILES))
    for said, code in files:
        assert set(said) == set(code), set(said) ^ set(code)
        for name, (registers, spilled) in said.items():
            rows.append((name[:-len(value) - 1], registers, spilled, [operation(w) for _, w in code[name]],
                         inner_loop(code[name])))
    return sorted(rows)


def table():
    lines = ["# What the kernels take, and the inner loop of each product: written by `make kernels-table`,",
             "# compared by `make check-sass`.  NVRTC 12.9; shared memory without what a plan asks for beside it.",
             "# SPDX-License-Identifier: Apache-2.0",
             f"{'kernel':38} {'target':10} {'regs':>4} {'spill':>5} {'threads':>7} {'shared':>6} {'blocks':>6}"
             f" {'warps':>5} {'mma':>4} {'ldsm':>4} {'async':>5} {'g128':>4} {'narrow':>6} {'s128':>4} {'s<128':>5}"
             f" {'div':>4} {'all':>5}"]
    for arch, value in TARGETS:
        for name, registers, spilled, _, loop in read(arch, value):
            threads, shared = sizes()[name]
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
            assert count(loop, "HMMA") and count(loop, "LDSM"), (name, loop)
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


@case("tests/cuda/kernels/kernels.txt is the table of these kernels")
def same_table(_):
    now = table().splitlines()
    changed = list(difflib.unified_diff(stored().splitlines(), now, "kernels.txt", "as compiled", lineterm="", n=0))
    assert not changed, "make kernels-table writes it anew:\n" + "\n".join(changed[:60])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        TEXT = table()
        with open(TABLE, "w", encoding="utf-8") as the_file:
            the_file.write(TEXT)
        sys.exit(0)
    sys.exit(case.main())
