#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests of kernels find each mutant of the PTX (make check-ptx-mutants).

    check_mutants.py [PATTERN]     all mutants, or those whose name matches

Only the files that a mutant changes run from PTX, and the emulator runs the other kernels.  A program must fail by
wrong numbers or by a violation.  A form of instruction that the interpreter does not know is not such a failure.
"""
import fnmatch
import os
import re
import sys

import ptx_files
from check_ptx import program
from emulator_builds import CORES, run
from mutants import MUTANTS
from support import Cases

case = Cases()


def apply(mutant, folder):
    """Writes the changed files to this folder, and returns the architecture."""
    arch = int(mutant.files[:2])
    source = ptx_files.make(arch)
    places = 0
    for name in fnmatch.filter(os.listdir(source), mutant.files + ".ptx"):
        with open(os.path.join(source, name), encoding="utf-8") as file:
            text, count = re.subn(mutant.pattern, mutant.replacement, file.read())
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        places += count
    assert places > 0, "nothing was changed"
    return arch


for the_mutant in MUTANTS:
    @case(the_mutant.name)
    def is_found(folder, mutant=the_mutant):
        arch = apply(mutant, folder)
        for name in mutant.programs:
            result = run([program(name), "small"], PTX_FILES=folder, PTX_ARCH=str(arch))
            assert result.returncode != 0, f"{name} passes"
            assert re.search(r"(ptx|emulator): |, [1-9]\d* failed", result.stdout) and \
                "not known" not in result.stdout, \
                f"{name}: {result.stdout[-1000:]}"


if __name__ == "__main__":
    sys.exit(case.main(CORES))
