#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests of kernels find each mutant of the PTX (make check-ptx-mutants).

    check_mutants.py [PATTERN]     all mutants, or those whose name matches

Only the files that a mutant changes run from PTX, and the emulator runs the other kernels.  A program must fail by
wrong numbers or by a violation, and pass with these files before the change.  A text that the interpreter refuses does
not run, so this is not such a failure.
"""
import collections
import fnmatch
import functools
import os
import re
import sys
import tempfile
import threading

import ptx_files
from check_ptx import program
from emulator_builds import CORES, run
from mutants import MUTANTS
from support import Cases

case = Cases()
asking = collections.defaultdict(threading.Lock)


def lines_of(text, match):
    """The lines that a match touches."""
    end = text.find("\n", match.end())
    return text[text.rfind("\n", 0, match.start()) + 1:end if end >= 0 else len(text)]


def apply(mutant, folder):
    """Writes the changed files to this folder.  A mutant of a statement changes only such statements."""
    arch = int(mutant.files[:2])
    source = ptx_files.make(arch)
    places = 0
    for name in fnmatch.filter(os.listdir(source), mutant.files + ".ptx"):
        with open(os.path.join(source, name), encoding="utf-8") as file:
            before = file.read()
        for match in re.finditer(mutant.pattern, before):
            assert (mutant.statement or "") in lines_of(before, match), f"it changes {match[0]}"
            places += match.expand(mutant.replacement) != match[0]
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(re.sub(mutant.pattern, mutant.replacement, before))
    assert places > 0, "nothing was changed"


def run_small(name, arch, folder):
    return run([program(name), "small"], PTX_FILES=folder, PTX_ARCH=str(arch))


@functools.lru_cache(None)
def failure_before(name, files):
    """What a program prints if it fails with these files as they are, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        source = ptx_files.make(int(files[:2]))
        for file in fnmatch.filter(os.listdir(source), files + ".ptx"):
            os.symlink(os.path.join(source, file), os.path.join(folder, file))
        result = run_small(name, int(files[:2]), folder)
    return result.stdout[-1000:] if result.returncode != 0 else ""


for the_mutant in MUTANTS:
    @case(the_mutant.name)
    def is_found(folder, mutant=the_mutant):
        apply(mutant, folder)
        for name in mutant.programs:
            with asking[name, mutant.files]:  # the first case that asks runs the program
                failure = failure_before(name, mutant.files)
            assert not failure, f"{name} fails before the change: {failure}"
            result = run_small(name, int(mutant.files[:2]), folder)
            assert result.returncode != 0, f"{name} passes"
            assert re.search(r"(ptx|emulator): |, [1-9]\d* failed", result.stdout) and \
                "ptx: refused" not in result.stdout, f"{name}: {result.stdout[-1000:]}"


if __name__ == "__main__":
    sys.exit(case.main(CORES))
