# SPDX-License-Identifier: Apache-2.0
"""Builds of the emulator and of kernels on it, by compiler and kind (tests/emulator/build.mk)."""
import functools
import os
import platform
import re
import shutil
import subprocess
import threading

from support import BUILD, PATIENCE, SOURCE, Skip

COMPILERS = {"g++": "gcc", "clang++": "clang"}
CORES = os.cpu_count() or 1
building = threading.Lock()


def run(command, **environment):
    # AddressSanitizer keeps what fibers of a block that is over had on their stacks; a leak check at the end costs
    # seconds
    fixed = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "TSAN_OPTIONS": "halt_on_error=1",
             "UBSAN_OPTIONS": "print_stacktrace=1"}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=PATIENCE, check=False, env=dict(os.environ, **fixed, **environment))


def build(makefile, compiler, kind, programs):
    """The folder of this build; Skip where it cannot be made or run.  Cases that need it wait for each other."""
    with building:
        return made(makefile, compiler, kind, tuple(programs))


@functools.lru_cache(None)
def made(makefile, compiler, kind, programs):
    if not shutil.which(compiler) or not shutil.which(COMPILERS[compiler]):
        raise Skip(f"there is no {compiler}")
    folder = os.path.join(BUILD, "emulator", os.path.dirname(makefile), f"{COMPILERS[compiler]}-{kind}")
    result = run(["make", "-s", f"-j{CORES}", "-f", os.path.join(SOURCE, "tests", makefile), f"SOURCE={SOURCE}",
                  f"OUT={folder}", f"BUILD={BUILD}", f"CXX={compiler}", f"CC={COMPILERS[compiler]}", f"KIND={kind}",
                  f"HALVES={half_flags()}", "PROGRAMS=" + " ".join(programs)])
    if result.returncode != 0 and re.search("cannot find (-l|.*lib)|no such file.*libclang_rt", result.stdout):
        raise Skip(f"{compiler} has no library for {kind}")
    assert result.returncode == 0, result.stdout[-3000:]
    return folder


def half_flags():
    return "-mf16c" if platform.machine() in ("x86_64", "AMD64") and "f16c" in cpu_flags() else ""


def cpu_flags():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
