#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernels of train/cuda/ run from the PTX that compilers make of them (make check-ptx, make check-ptx-all).

    check_ptx.py [PATTERN]     all cases, or those whose name matches

The tests of kernels and of complete steps (layout_steps) run with the interpreter of tests/ptx/ in the place of the
emulator.  It reports races in shared memory.  Lanes, warps and blocks run in their order and in random order.  Each
launch of the small shapes also runs on the emulator, from the same memory, and the results must agree.  Each form of
instruction in the PTX must be in a test of the interpreter.  CHEX_SLOW=1 adds sm_75, sm_80 and all shapes.
"""
import functools
import os
import sys
import tempfile

import ptx_files
import ptx_forms
from emulator_builds import CORES, build, building, run
from support import BUILD, SOURCE, Cases

PROGRAMS = ["conv_kernels", "finalize_kernels", "fused_kernels", "head_kernels", "input_kernels", "norm_kernels",
            "one_pass_kernels", "pool_kernels", "step_kernels", "sum_kernels", "layout_steps"]
SLOW = bool(os.environ.get("CHEX_SLOW"))
ARCHS = [70, 75, 80, 90] if SLOW else [70, 90]
# nvcc and g++ contract a * b + c differently, and tensor cores truncate: results differ in their last bits.
LARGEST_DIFFERENCE = {"fp16": 0.002, "bf16": 0.016, "tf32": 0.002}

ALL = Cases()
case = functools.partial(ALL, slow=SLOW)  # CHEX_SLOW=1 runs slow cases only: here it runs all


def program(name):
    path = build("cuda/emulated.mk", "g++", "plain", [p + "-ptx" for p in PROGRAMS])
    return os.path.join(path, name + "-ptx")


def run_program(name, arch, words, **environment):
    result = run([program(name), *words], PTX_FILES=ptx_files.make(arch), PTX_ARCH=str(arch), **environment)
    assert result.returncode == 0, result.stdout[-3000:]


@functools.lru_cache(None)
def rules():
    """The program with the interpreter's own tests."""
    folder = os.path.join(BUILD, "emulator")
    path = os.path.join(folder, "ptx", "rules")
    with building:
        result = run(["make", "-s", f"-j{CORES}", "-f", os.path.join(SOURCE, "tests", "ptx", "build.mk"),
                      f"OUT={folder}", path])
    assert result.returncode == 0, result.stdout[-3000:]
    return path


@case("the interpreter computes what the ISA says, and finds each violation")
def interpreter(_):
    result = run([rules()])
    assert result.returncode == 0, result.stdout[-3000:]


for the_arch in ARCHS:
    @case(f"sm_{the_arch}: each form of instruction has a test of the interpreter")
    def is_tested(_, arch=the_arch):
        tested = ptx_forms.forms(run([rules(), "text"]).stdout)
        used = set()
        for path in ptx_files.paths(arch):
            with open(path, encoding="utf-8") as file:
                used |= ptx_forms.forms(file.read())
        assert len(used) > 200, f"{len(used)} forms"
        missing = sorted(used - tested)
        assert not missing, "\n".join(missing)

    for the_program in PROGRAMS:
        @case(f"sm_{the_arch}: {the_program} small, in random order")
        def in_random_order(_, arch=the_arch, name=the_program):
            run_program(name, arch, ["small"], PTX_ORDER="7")

        if SLOW:
            @case(f"sm_{the_arch}: {the_program}, all shapes")
            def all_shapes(_, arch=the_arch, name=the_program):
                run_program(name, arch, [])

    @case(f"sm_{the_arch}: each launch agrees with the emulator")
    def agrees(_, arch=the_arch):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "compared")
            for name in PROGRAMS:
                run_program(name, arch, ["small"], PTX_COMPARE=path)
            with open(path, encoding="utf-8") as file:
                rows = [line.split() for line in file]
        assert len({row[0] for row in rows}) > 50, f"{len(rows)} rows"
        wrong = [" ".join(row) for row in rows if not float(row[3]) <= LARGEST_DIFFERENCE[row[0].rsplit("_", 1)[1]]]
        assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    sys.exit(ALL.main(CORES))
