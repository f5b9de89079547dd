#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes in packaging/ agree with configure.ac, the lists of programs and man pages, and each other.

Each recipe is read as text or parsed, never run.  packaging/README.md says which tools have checked them besides.
"""
import ast
import glob
import os
import re
import shutil
import sys

from support import SOURCE, Cases, Skip, run

case = Cases()
SPACK = "packaging/spack/chex_tools/package.py"
CONDA = "packaging/conda/recipe.yaml"
APPTAINER = "packaging/apptainer/chex-tools.def"
RULES = "packaging/debian/rules"
UNKNOWN_HASH = "0" * 64  # a release cannot contain its own checksum


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def found(pattern, name):
    """The first group of the pattern, which the file must have."""
    match = re.search(pattern, read(name), re.M | re.S)
    assert match, f"{name} has no {pattern}"
    return match.group(1)


def version():
    return found(r"^AC_INIT\(\[chex-tools\], \[([^\]]+)\]", "configure.ac")


def easyconfig():
    names = glob.glob(os.path.join(SOURCE, "packaging/easybuild/chex-tools-*.eb"))
    assert len(names) == 1, names
    return os.path.relpath(names[0], SOURCE)


def modules():
    return [os.path.relpath(path, SOURCE)
            for path in sorted(glob.glob(os.path.join(SOURCE, "packaging/module/chex-tools/*")))]


def programs():
    return set(found(r"^bin_PROGRAMS \+= (.*?)$", "tools/local.mk").split())


def pages():
    return set(re.findall(r"man/([a-z-]+\.\d)", found(r"^dist_man_MANS \+= ((?:.*\\\n)*.*)$", "man/local.mk")))


def same(what, got, wanted):
    assert set(got) == set(wanted), f"{what}: only there {set(got) - set(wanted)}, missing {set(wanted) - set(got)}"


@case("every recipe, README.md and doc/install.md have the version of configure.ac; checksums are to be filled in")
def _(_work):
    for name, pattern in (("packaging/debian/changelog", r"\Achex-tools \(([^)]+)-\d+\) "),
                          (SPACK, r'^    version\("([^"]+)"'),
                          (easyconfig(), r"^version = '([^']+)'"),
                          (CONDA, r'^  version: "([^"]+)"'),
                          (APPTAINER, r"image\.version (\S+)")):
        assert found(pattern, name) == version(), f"{name}: {found(pattern, name)}, not {version()}"
    assert os.path.basename(easyconfig()).startswith(f"chex-tools-{version()}-"), easyconfig()
    assert [os.path.basename(name) for name in modules()] == [version(), f"{version()}.lua"], modules()
    tarballs = [(name, tarball) for name in (SPACK, APPTAINER)
                for tarball in re.findall(r"chex-tools-(\d[\d.]*\d)", read(name))]
    assert len(tarballs) >= 4 and {tarball for _, tarball in tarballs} == {version()}, tarballs
    named = [number for name in ("README.md", "doc/install.md")
             for number in re.findall(r"\bchex[-_]tools-(\d[\d.]*\d)", read(name))]
    assert len(named) >= 5 and set(named) == {version()}, named
    for name in (SPACK, easyconfig(), CONDA):
        assert re.findall(r"\b[0-9a-f]{64}\b", read(name)) == [UNKNOWN_HASH], name


@case("every recipe has the home page of configure.ac, or none that exists")
def _(_work):
    init = found(r"^AC_INIT\((.*?)\)$", "configure.ac").split(",")
    home = init[4].strip(" []\n") if len(init) > 4 else "https://example.invalid/chex-tools"
    for name in (SPACK, easyconfig(), CONDA):
        pages_named = set(re.findall(r"""https://[^\s"']+?(?=/releases|["'\s])""", read(name)))
        assert pages_named == {home}, f"{name}: {pages_named}, not {home}"


@case("the recipes that list programs and man pages list all of them")
def _(_work):
    for name in (SPACK, easyconfig(), CONDA, APPTAINER, *modules()):
        same(name, set(re.findall(r"\bchex-(?:[a-z]+)\b(?!\.)", read(name))) - {"chex-tools", "chex-shard"}, programs())
    for name in (SPACK, easyconfig(), CONDA, APPTAINER):
        used = {program for program in programs() if re.search(rf'{program}(?: -| check |"\)\()', read(name))}
        same(f"{name}, programs that its test runs", used, programs())
    same(f"{CONDA}, pages", re.findall(r"share/man/man\d/(\S+)", read(CONDA)), pages())
    listed = set(re.findall(r"share/man/man\d/([a-z-]+\.\d)", read(easyconfig())))
    if "share/man/man1/%s.1' % program for program in _programs" in read(easyconfig()):
        listed |= {f"{program}.1" for program in programs()}
    same(f"{easyconfig()}, pages", listed, pages())


@case("the Debian packages hold the man pages of all sections, the library, and its symbols")
def _(_work):
    installs = {os.path.basename(path)[:-8]: read(os.path.relpath(path, SOURCE)).split()
                for path in glob.glob(os.path.join(SOURCE, "packaging/debian/*.install"))}
    same("debian/*.install, sections", re.findall(r"usr/share/man/man(\d)", " ".join(sum(installs.values(), []))),
         {page[-1] for page in pages()})
    current, _, age = found(r"-version-info (\d+:\d+:\d+)", "lib/local.mk").split(":")
    package = f"libchex{int(current) - int(age)}"
    same("debian/control", re.findall(r"^Package: (\S+)", read("packaging/debian/control"), re.M),
         {"chex-tools", "libchex-dev", "python3-chex-tools", package})
    same("debian/*.install", installs, {"chex-tools", "libchex-dev", package})  # pybuild installs the fourth
    symbols = read(f"packaging/debian/{package}.symbols").splitlines()
    assert symbols[0] == f"libchex.so.{package[7:]} {package} #MINVER#", symbols[0]
    listed = [line for line in read("lib/libchex.symbols").splitlines() if not line.startswith("#")]
    same(f"{package}.symbols", [line.split("@")[0][1:] for line in symbols if line.startswith(" ")], listed)


def configure_options():
    """What configure takes: {"with-mpi": {"auto", "yes", ...}}; a folder is "DIR", and None stands for any value."""
    text = "".join(read(name) for name in ("configure.ac", *(f"m4/{os.path.basename(path)}" for path in glob.glob(
        os.path.join(SOURCE, "m4", "chex_*.m4")))))
    options = {f"with-{name}": {"auto", "yes", "no"} for name in re.findall(r"^ +CHEX_WITH\(\[(\w+)\]", text, re.M)}
    for kind, name, values in re.findall(r"--(with|enable)-([a-z0-9-]+)=([A-Za-z|]+)", text):
        options.setdefault(f"{kind}-{name}", set()).update(values.split("|"))
    if "=opened: the library" in text:
        options["with-mpi"].add("opened")
    return options, set(re.findall(r"AC_ARG_VAR\(\[(\w+)\]", text))


@case("recipes give configure only options, values and variables that it has")
def _(_work):
    options, variables = configure_options()
    assert {"system", "included"} <= options["with-libcsv"] and "DIR" in options["with-cuda"], options
    count = 0
    for name in (SPACK, easyconfig(), CONDA, APPTAINER, RULES):
        for kind, option, value in re.findall(r"--(with|enable|disable)-([a-z0-9-]+)(?:=([^\s\"']+))?", read(name)):
            if name == CONDA and value == "$WITH_MPI":
                for value in re.findall(r"WITH_MPI=(\w+)", read(name)):
                    assert value in options["with-mpi"], f"{name}: --with-mpi={value}"
                count += 1
                continue
            if option == "python" and name == RULES:  # of dh
                continue
            taken = options.get(f"{'with' if kind == 'with' else 'enable'}-{option}")
            assert taken is not None, f"{name}: configure has no --{kind}-{option}"
            values = {"{yes_or_no(": {"yes", "no"}, "{prefix_or_no(": {"DIR", "no"}}.get(value, {value})
            assert values <= taken, f"{name}: --{kind}-{option}={value}, not one of {sorted(taken)}"
            count += 1
        for variable in re.findall(r"(?<=[\"' ])([A-Z_]{4,})=(?![\"'])", read(name)):
            assert variable in variables | {"MPICC", "WITH_MPI", "TESTS", "VERBOSE", "PATH"}, f"{name}: {variable}"
    assert count >= 20, count


@case("the Debian package is built with every library of quickstart.sh")
def _(_work):
    needed = set(found(r'^build_packages="(.*?)"', "tests/setup.sh").split())
    depends = set(re.findall(r"^ ([a-z0-9+.-]+)", found(r"^Build-Depends:\n(.*?)\n\n", "packaging/debian/control"),
                             re.M))
    # debhelper brings the first four, and the others have names that suit every release of Debian
    depends |= {"build-essential", "autoconf", "automake", "libtool"}
    renamed = {"libjpeg62-turbo-dev": "libjpeg-dev", "libopenmpi-dev": "mpi-default-dev",
               "openmpi-bin": "mpi-default-bin"}
    missing = {package for package in needed if renamed.get(package, package) not in depends}
    assert not missing, missing


@case("packaging/README.md says of each recipe what has checked it")
def _(_work):
    rows = re.findall(r"^\| \[[^\]]+\]\(([^)]+)\) \| ([^|]+) \| ([^|]+) \|$", read("packaging/README.md"), re.M)
    folders = {os.path.basename(path) for path in glob.glob(os.path.join(SOURCE, "packaging", "*"))
               if os.path.isdir(path)} - {"release", "wheel"}
    same("packaging/README.md", {target.split("/")[0] for target, *_ in rows}, folders)
    for target, *_ in rows:
        assert os.path.exists(os.path.join(SOURCE, "packaging", target)), target


@case("the recipes in Python can be parsed")
def _(_work):
    for name in (SPACK, *(os.path.relpath(path, SOURCE) for path in glob.glob(
            os.path.join(SOURCE, "packaging/easybuild/*.eb")))):
        ast.parse(read(name), name)


@case("the module in Lua can be parsed")
def _(_work):
    luac = next(filter(None, map(shutil.which, ("luac", "luac5.4", "luac5.3"))), None)
    if not luac:
        raise Skip("no luac")
    run([luac, "-p", os.path.join(SOURCE, modules()[1])])


@case("the module in Tcl sets PATH, and the library's variables where there is a library")
def _(work):
    if not shutil.which("tclsh"):
        raise Skip("no tclsh")
    root = os.path.join(work, "chex-tools")
    text = read(modules()[0])
    assert text.startswith("#%Module") and "set root /opt/chex-tools/$version\n" in text, text
    script = os.path.join(work, "module.tcl")
    words = "foreach word {module-whatis conflict prepend-path} { proc $word args \"puts \\\"$word \\$args\\\"\" }\n"
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"set ModulesCurrentModulefile x/chex-tools/{version()}\n{words}"
                   + text.replace("/opt/chex-tools/", f"{root}/"))
    said = run(["tclsh", script]).stdout
    path = f"prepend-path PATH {root}/{version()}/bin\n"
    assert path in said and "LD_LIBRARY_PATH" not in said, said
    os.makedirs(f"{root}/{version()}/lib/pkgconfig")
    assert f"prepend-path LD_LIBRARY_PATH {root}/{version()}/lib\n" in run(["tclsh", script]).stdout


@case("the tests of the Debian package are named in their list, and the shell parses them")
def _(_work):
    folder = os.path.join(SOURCE, "packaging", "debian", "tests")
    named = re.findall(r"^Tests: (\S+)$", read("packaging/debian/tests/control"), re.M)
    same("debian/tests/control", named, set(os.listdir(folder)) - {"control"})
    for name in named:
        path = os.path.join(folder, name)
        assert os.access(path, os.X_OK), path
        run(["/bin/sh", "-n", path])


if __name__ == "__main__":
    sys.exit(case.main())
