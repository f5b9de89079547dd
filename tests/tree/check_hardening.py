# SPDX-License-Identifier: Apache-2.0
"""What configure promises of a hardened build, seen in the programs and the library themselves (readelf)."""
import glob
import os
import re
import shutil
import sys

import support

check = support.Cases()
PROGRAMS = ["chex-convert", "chex-inspect", "chex-predict", "chex-synth", "chex-train"]


def configured():
    return support.run([os.path.join(support.BUILD, "config.status"), "--config"]).stdout


def readelf(*options):
    if not shutil.which("readelf"):
        raise support.Skip("no readelf (Debian: binutils)")
    if re.search(r"--(disable-hardening|enable-hardening=no|enable-sanitizers)", configured()):
        raise support.Skip("this build is not hardened")
    return support.run(["readelf", "--wide", *options]).stdout


def binaries():
    """All that is installed and runs."""
    library = [os.path.realpath(p) for p in glob.glob(os.path.join(support.BUILD, ".libs", "libchex.so"))]
    return [support.program(name) for name in PROGRAMS] + library


def each(options, pattern, paths=None):
    for path in paths or binaries():
        text = readelf(*options, path)
        assert re.search(pattern, text, re.M), (f"{os.path.basename(path)}: no /{pattern}/ in "
                                                f"readelf {' '.join(options)}")


@check("programs are position-independent")
def _(work):
    each(["-h"], r"Type: +DYN .*Position-Independent Executable", [support.program(name) for name in PROGRAMS])


@check("the table of addresses is read-only once the program runs, and complete before")
def _(work):
    each(["-l"], r"^ +GNU_RELRO ")
    each(["-d"], r"\(FLAGS(_1)?\).*\bNOW\b|\(BIND_NOW\)")


@check("the stack is not executable, and no segment is writable and executable")
def _(work):
    each(["-l"], r"^ +GNU_STACK .* RW +0x")
    for path in binaries():
        assert not re.search(r"^ +\w+ .* RWE? *E +0x", readelf("-l", path), re.M), path


@check("no path of the build machine is searched for libraries, no text is relocated")
def _(work):
    for path in binaries():
        assert not re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", readelf("-d", path)), path


@check("stack protector and checked string functions are in use")
def _(work):
    each(["--dyn-syms"], r"__stack_chk_fail")
    if "-O0" in configured():
        raise support.Skip("_FORTIFY_SOURCE needs an optimizing build")
    each(["--dyn-syms"], r"__\w+_chk@")


@check("indirect jumps are checked where the processor can (every object of libchex)")
def _(work):
    if os.uname().machine != "x86_64":
        raise support.Skip("of x86-64")
    objects = glob.glob(os.path.join(support.BUILD, "lib", "*", ".libs", "libchexcore_la-*.o"))
    assert len(objects) > 30, objects
    each(["-n"], r"x86 feature: IBT, SHSTK", objects)


if __name__ == "__main__":
    sys.exit(check.main())
