#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The emulator of CUDA's execution model: what it promises, and that it finds each kind of mistake (make
check-emulator).

    check_emulator.py [PATTERN]     all cases, or those whose name matches

Each rule of rules.c is kept and broken in every build that there are compilers for.  Where a rule is broken, somebody
must find it: the numbers are wrong (exit code 1), the emulator ends the process with these words, or a sanitizer does.
"""
import os
import re
import sys

from emulator_builds import CORES, build, run
from support import SOURCE, Cases

HERE = os.path.join(SOURCE, "tests", "emulator")
MAKEFILE = "emulator/build.mk"
# The kinds of builds, by compiler: all by the first, sanitizers by the second too.
BUILDS = [("g++", "plain"), ("g++", "ucontext"), ("g++", "asan"), ("g++", "tsan"),
          ("clang++", "plain"), ("clang++", "asan"), ("clang++", "tsan")]
PROGRAMS = ["halves", "api", "matrices", "rules"]
SEEDS = [0, 1, 2, 3]

WRONG = "not"      # rules.c: "value 3 is nan, not 4"
RACE = "ThreadSanitizer: data race"
ADDRESS = "AddressSanitizer"
TOUCHES = "a thread touches"
# {rule: {kind of build: words of whoever finds it}}; "all" for those that are not named; None: nobody
RULES = {
    "block_barrier": {"all": WRONG, "tsan": RACE},
    "warp_barrier": {"all": WRONG, "tsan": RACE},
    "async_wait": {"all": WRONG, "tsan": RACE},
    "async_group": {"all": WRONG, "tsan": RACE},
    "async_forgotten": {"all": "it never waited for"},
    "async_early": {"all": WRONG, "tsan": RACE},
    "tensor_end": {"all": "byte 256 of device memory of 256 bytes"},
    "shared_end": {"all": "shared memory of its block"},
    "vector_access": {"all": None, "g++ asan": "misaligned address"},
    "same_barrier": {"all": "meet at different barriers"},
    "all_at_barrier": {"all": "3 of 64 have ended"},
    "all_in_shuffle": {"all": "32 of 64 have ended"},
    "lane_of_mask": {"all": WRONG},
    "initialised_shared": {"all": WRONG},
    "matrix_row": {"all": "which is no multiple of 16"},
    "places_of_blocks": {"all": WRONG, "tsan": RACE},
    "blocks_in_a_row": {"all": WRONG, "tsan": RACE},
    "host_stays_out": {"all": "the host touches"},
    "buffer_is_kept": {"all": WRONG},
    "result_is_awaited": {"all": WRONG},
    "mapped_block_is_kept": {"all": WRONG},
    "mapped_result_is_awaited": {"all": WRONG},
    "mapped_memory_has_two_addresses": {"all": "the host touches"},
    "memory_is_written": {"all": WRONG},
    "tensor_is_large_enough": {"all": "byte 252 of device memory of 252 bytes was written", "asan": ADDRESS},
    "memory_is_live": {"all": "of freed device memory"},
    "streams_are_ordered": {"all": WRONG},
    "graph_keeps_memory": {"all": "of freed device memory"},
    "own_device": {"all": TOUCHES},
    "waits_first": {"all": "before it has waited"},
    "all_wait": {"all": "without having waited"},
    "early_behind_a_kernel": {"all": "and that is no kernel"},
}

case = Cases()


def words_for(rule, compiler, kind):
    found = RULES[rule]
    return found.get(f"{compiler} {kind}", found.get(kind, found["all"]))


def keeps_promises(folder):
    for program in PROGRAMS:
        for seed in SEEDS if program == "rules" else SEEDS[:1]:
            result = run([os.path.join(folder, program)], EMULATOR_THREADS=str(seed), EMULATOR_STREAMS=str(seed))
            assert result.returncode == 0, f"{program}, seed {seed}: {result.stdout[-3000:]}"


def finds(folder, compiler, kind):
    missed = []
    for rule in RULES:
        words = words_for(rule, compiler, kind)
        if words is None:
            continue
        result = run([os.path.join(folder, "rules"), rule, "broken"])
        if result.returncode == 0 or words not in result.stdout:
            missed.append(f"{rule}: exit code {result.returncode}, {result.stdout[-300:]!r}")
    assert not missed, "\n".join(missed)


for the_compiler, the_kind in BUILDS:
    def promises(_, compiler=the_compiler, kind=the_kind):
        keeps_promises(build(MAKEFILE, compiler, kind, PROGRAMS))

    def mistakes(_, compiler=the_compiler, kind=the_kind):
        finds(build(MAKEFILE, compiler, kind, PROGRAMS), compiler, kind)

    case(f"{the_compiler}, {the_kind}: the emulator keeps its promises")(promises)
    case(f"{the_compiler}, {the_kind}: each broken rule is found")(mistakes)


@case("every rule of rules.c is in the table of this test")
def same_rules(_):
    with open(os.path.join(HERE, "rules.c"), encoding="utf-8") as file:
        there = set(re.findall(r'^    \{"(\w+)"', file.read(), re.M))
    assert there == set(RULES), there ^ set(RULES)


@case("g++, counted: bytes, sectors and bank conflicts of strides whose counts are known")
def counts(_):
    result = run([os.path.join(build(MAKEFILE, "g++", "counted", ["traffic_rules"]), "traffic_rules")])
    assert result.returncode == 0, result.stdout[-3000:]


@case("devices, memory and failures are set by the environment")
def environment(_):
    program = os.path.join(build(MAKEFILE, "g++", "plain", PROGRAMS), "rules")
    result = run([program, "device"], EMULATOR_DEVICES="")
    assert result.stdout == "0 devices: cudaErrorNoDevice\n", result.stdout
    result = run([program, "device"], EMULATOR_DEVICES="80 70", EMULATOR_MEMORY="4096")
    assert result.stdout == "2 devices: cudaSuccess\nEmulated sm_80, 4096 bytes: cudaSuccess\n", result.stdout
    result = run([program, "device"], EMULATOR_FAIL="cudaGetDeviceCount 1 35")
    assert result.stdout == "0 devices: cudaErrorInsufficientDriver\n", result.stdout
    result = run([program, "device"], EMULATOR_FAIL="cudaMemGetInfo 1 46, tensor_end 1 700")
    assert "cudaErrorDevicesUnavailable" in result.stdout, result.stdout
    result = run([program, "device"], EMULATOR_FAIL="nonsense")
    assert result.returncode < 0 and "EMULATOR_FAIL" in result.stdout, result.stdout


if __name__ == "__main__":
    sys.exit(case.main(CORES))
