#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of kernels and of plans on the emulator, with several compilers and sanitizers (make check-kernels).

    check_emulated.py [PATTERN]     all cases, or those whose name matches
"""
import os
import sys

from emulator_builds import CORES, build, run
from support import Cases

MAKEFILE = "cuda/emulated.mk"
# Kernels of train/cuda/: (compiler, kind, words of the command line), the words for builds in which all is slow.  One
# build for each of what they find: of the two address sanitizers that of g++ alone finds an address that is not
# aligned (RULES, vector_access).  Small shapes have fewer values beside each other, and are what check-gpu sanitizes.
KERNEL_BUILDS = [("g++", "plain", []), ("g++", "plain", ["small"]), ("g++", "volta", []), ("g++", "turing", ["small"]),
                 ("g++", "asan", ["small"]), ("clang++", "tsan", ["small"])]
KERNEL_PROGRAMS = ["conv_choices", "conv_kernels", "finalize_kernels", "fused_kernels", "head_kernels",
                   "input_kernels", "norm_kernels", "one_pass_kernels", "pool_kernels", "step_kernels", "sum_kernels",
                   "layout_steps"]
# sm_75 differs from sm_80 only in products and copies.
PRODUCT_PROGRAMS = ["conv_kernels", "fused_kernels", "one_pass_kernels"]
# Nothing is launched there, so one build is enough.
LISTS_PROGRAM = "layout_lives"
# Of the build that counts what kernels touch.
COUNTING_PROGRAMS = ["bank_conflicts", "traffic_steps"]

case = Cases()


def seeds_of(kind, words):
    """The orders of threads and streams: 0 is the order of their numbers.

    The small shapes run in both orders.  The large ones take half a minute in each, so they run in one: at random in
    the plain build, by number in the build for a V100.
    """
    if kind != "plain":
        return ("0",)
    return ("0", "7") if words else ("7",)


def programs_of(kind):
    return PRODUCT_PROGRAMS if kind == "turing" else KERNEL_PROGRAMS


for the_compiler, the_kind, the_words in KERNEL_BUILDS:
    for the_program in programs_of(the_kind):
        @case(f"{the_compiler}, {the_kind}: {' '.join([the_program, *the_words])}")
        def kernels(_, compiler=the_compiler, kind=the_kind, words=tuple(the_words), program=the_program):
            path = os.path.join(build(MAKEFILE, compiler, kind, programs_of(kind)), program)
            for seed in seeds_of(kind, words):
                result = run([path, *words], EMULATOR_THREADS=seed, EMULATOR_STREAMS=seed)
                assert result.returncode == 0, f"seed {seed}: {result.stdout[-3000:]}"


@case(f"g++, plain: {LISTS_PROGRAM}")
def lists(_):
    result = run([os.path.join(build(MAKEFILE, "g++", "plain", [LISTS_PROGRAM]), LISTS_PROGRAM)])
    assert result.returncode == 0, result.stdout[-3000:]


@case("g++, counted_volta: bank_conflicts")
def conflicts(_):
    result = run([os.path.join(build(MAKEFILE, "g++", "counted_volta", ["bank_conflicts"]), "bank_conflicts")])
    assert result.returncode == 0, result.stdout[-3000:]


for the_program in COUNTING_PROGRAMS:
    @case(f"g++, counted: {the_program}")
    def counts(_, program=the_program):
        result = run([os.path.join(build(MAKEFILE, "g++", "counted", COUNTING_PROGRAMS), program)])
        assert result.returncode == 0, result.stdout[-3000:]


if __name__ == "__main__":
    sys.exit(case.main(CORES))
