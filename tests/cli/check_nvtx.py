#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranges of NVTX: a tool that is injected, as Nsight is, hears of every step of every rank, and of its parts.

    check_nvtx.py [PATTERN]
"""
import collections
import glob
import os
import re
import sys

import check_times
import mpi
from support import BUILD, SOURCE, Cases, Skip, run, slurp
from training import command, run_folder

case = Cases()
PARTS = ["data_wait", "copy", "forward", "backward", "reduce", "optimizer", "meet", "evaluation", "save"]


def tool():
    path = os.path.join(BUILD, "tests", "nvtx_injection.so")
    if not os.path.exists(path):
        raise Skip("this build has no NVTX")
    return path


class Ranges:
    """What a process told: its domain, and for each thread its ranges (name, number, those around it)."""

    def __init__(self, path):
        self.domains, self.ranges, open_ranges = [], [], collections.defaultdict(list)
        for line in slurp(path).decode().splitlines():
            word, rest = line.split(" ", 1)
            if word == "domain":
                self.domains.append(rest)
            elif word == "push":
                thread, name, *number = rest.split()
                around = open_ranges[thread]
                self.ranges.append((name, int(number[0]) if number else None, tuple(around)))
                around.append(name)
            else:
                assert open_ranges[rest], f"a pop without a push in {path}"
                open_ranges[rest].pop()
        assert not any(open_ranges.values()), f"left open in {path}: {open_ranges}"

    def count(self, name, inside=None):
        return sum(n == name and (inside is None or inside in around) for n, _, around in self.ranges)


def ranges_of(work, words):
    """{domain: ranges} of all processes of a command."""
    name = os.path.join(work, "ranges")
    run(words, env=dict(mpi.ENVIRONMENT, NVTX_INJECTION64_PATH=tool(), NVTX_RANGES=name))
    found = {}
    for path in glob.glob(name + ".*"):
        one = Ranges(path)
        os.unlink(path)
        if one.domains:
            assert len(one.domains) == 1 and one.domains[0] not in found, one.domains
            found[one.domains[0]] = one
    return found


def steps_are_whole(seen, steps):
    """Each step once, in its order, with its parts inside of it."""
    assert [number for name, number, _ in seen.ranges if name == "step"] == list(range(1, steps + 1)), seen.ranges
    assert {name for name, _, _ in seen.ranges} <= {"step", *PARTS}
    for part in ("forward", "backward", "optimizer"):
        assert seen.count(part) == seen.count(part, inside="step") == steps, (part, seen.count(part))
    assert seen.count("data_wait", inside="step") == steps and seen.count("meet") == steps


@case("a run of one process: every step with its parts, evaluations, checkpoints; each range has an end")
def _(work):
    for device in ("cpu", "ref"):
        found = ranges_of(work, command(run_folder(work, device), "--device", device))
        assert list(found) == ["chex-train rank 0"], found.keys()
        seen = found["chex-train rank 0"]
        steps_are_whole(seen, 18)
        assert seen.count("evaluation") == 4, seen.count("evaluation")  # three epochs, the test split
        assert seen.count("save") >= 3 * 3, seen.count("save")          # copy, meeting, files of each epoch
        assert not any(around for name, _, around in seen.ranges if name in ("step", "evaluation"))


@case("ranks: each has a domain of its own, and its own steps")
def _(work):
    words = command(run_folder(work), "--batch", 8, "--micro-batch", 4, "--device", "ref")
    found = ranges_of(work, [mpi.mpirun("chex-train"), "-np", "2", *words])
    assert sorted(found) == ["chex-train rank 0", "chex-train rank 1"], found.keys()
    for seen in found.values():
        assert [number for name, number, _ in seen.ranges if name == "step"] == list(range(1, 19))
        assert seen.count("reduce") == 18 and seen.count("evaluation") == 4


@case("the emulated GPU: the parts of each step if a step is not a graph; otherwise once, when it is recorded")
def _(work):
    line = check_times.words(f"{work}/run", "--device", "cuda-emulated", "--epochs", 1, "--resume", "none",
                             name=check_times.emulated(), batch=16)
    for more, least, most in ((["--no-graph"], 6, 1000), ([], 1, 5)):
        seen, = ranges_of(work, [*line, *more]).values()
        assert [number for name, number, _ in seen.ranges if name == "step"] == list(range(1, 7))
        for part in ("backward", "optimizer"):
            assert least <= seen.count(part, inside="step") <= most, (more, part, seen.count(part))
        assert seen.count("forward", inside="evaluation") >= 1 and seen.count("copy", inside="step") >= 6


@case("without a profiler nothing is marked, and a missing profiler library does not stop a training")
def _(work):
    tool()
    run(["env", f"NVTX_INJECTION64_PATH={work}/nowhere.so", *command(run_folder(work), "--epochs", 1)])


@case("the man page lists the names of the ranges")
def _(_work):
    page = slurp(os.path.join(SOURCE, "man", "chex-train.1")).decode()
    section = re.search(r"\.Ss Ranges for Nsight\n(.*?)\n\.S[sh] ", page, re.S)
    named = re.findall(r"^\.(?:It )?Cm (\w+)", section[1], re.M)
    assert sorted(set(named)) == sorted(["step", *PARTS]), named


if __name__ == "__main__":
    sys.exit(case.main())
