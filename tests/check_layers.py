#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders are levels: the order of ARCHITECTURE.md holds, for includes and for symbols, and nothing goes in a circle.
A file name and a tag stand for one thing in all three trees.

The block behind <!-- folder-order --> in ARCHITECTURE.md is the only place where the order stands.  A file may include,
and call, what is in its own folder, in folders before it in its line, and in the lines above; inside a folder no two
files need each other.  Includes are read from the sources, calls from the object files of this build, by nm.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

from support import SOURCE, Tally

BUILD = os.environ.get("BUILDDIR", os.getcwd())
ROOTS = ("lib", "train", "tools")
MOST_FILES = 32
COLUMNS = 120
BACKENDS = ("train/ref", "train/cpu", "train/gpu")


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def folder_order():
    """[folder], the lowest first, of all three trees."""
    block = re.search(r"<!-- folder-order -->\s*```(.*?)```", read("ARCHITECTURE.md"), re.S).group(1)
    order = []
    for root, names in re.findall(r"^(\w+)/ +(.*(?:\n +<.*)*)", block, re.M):
        order += [f"{root}/{name.strip()}" for name in names.split("<") if name.strip()]
    return order


def sources(folder):
    return sorted(name for name in os.listdir(os.path.join(SOURCE, folder)) if name.endswith((".c", ".h", ".cu")))


def target_of(include):
    for root in ROOTS:
        if os.path.exists(os.path.join(SOURCE, root, include)):
            return f"{root}/{include}"
    return None


def circles(graph):
    """The strongly connected components of more than one node, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def upward(graph, order):
    rank = {folder: i for i, folder in enumerate(order)}
    return [f"{a} needs {b}" for a in sorted(graph) for b in sorted(graph[a])
            if rank.get(os.path.dirname(b), -1) > rank.get(os.path.dirname(a), len(order))]


def check_folders(tally, order):
    there = [f"{root}/{name}" for root in ROOTS for name in sorted(os.listdir(os.path.join(SOURCE, root)))
             if os.path.isdir(os.path.join(SOURCE, root, name)) and sources(f"{root}/{name}")]
    tally.check("ARCHITECTURE.md names every folder, and no other",
                [f"{name}: in one of both only" for name in sorted(set(there) ^ set(order))])
    tally.check(f"no folder has more than {MOST_FILES} files",
                [f"{folder}: {len(sources(folder))}" for folder in there if len(sources(folder)) > MOST_FILES])
    places = collections.defaultdict(list)
    for folder in there:
        for name in sources(folder):
            places[name].append(folder)
    tally.check("file names are unique in the whole tree",
                [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1])
    mains = {"lib": ["chex.h"], "train": [],
             "tools": ["chex-convert.c", "chex-inspect.c", "chex-synth.c", "chex-train.c"]}
    tally.check("at the top of a tree stand the public header and the mains alone",
                [f"{root}: {sources(root)}" for root in ROOTS if sources(root) != mains[root]])


def check_fragments(tally, order):
    faults = []
    for folder in order:
        text = read(f"{folder}/local.mk")
        named = re.findall(rf"{folder}/[\w-]+\.(?:[ch]\b|cu)", text)
        faults += [f"{folder}/local.mk does not name {name}" for name in sources(folder)
                   if f"{folder}/{name}" not in named]
        for lines in re.findall(r"_(?:SOURCES|sources) \+?= \\\n((?:\t.*\n)+)", text):
            listed = [line.strip(" \t\\") for line in lines.splitlines()]
            if listed != sorted(listed):
                faults.append(f"{folder}/local.mk is not sorted")
    tally.check("the build fragment of each folder names all its files, in order", faults)


def check_includes(tally, order):
    graph, faults = collections.defaultdict(set), []
    for folder in order:
        for name in sources(folder):
            path = f"{folder}/{name}"
            for include in re.findall(r'^#\s*include "([^"]+)"', read(path), re.M):
                target = target_of(include)
                if target:
                    graph[path].add(target)
                if "/" not in include and include != "chex.h":
                    faults.append(f'{path} includes "{include}" without its folder')
    tally.check("includes carry the folder", faults)
    tally.check("no file includes from a folder above its own", upward(graph, order))
    tally.check("includes make no circle", [" ".join(part) for part in circles(graph)])


def objects():
    """{unit: (defined symbols, wanted symbols)}; a unit is lib/base/error."""
    units = {}
    for root in ROOTS:
        for folder, _, names in os.walk(os.path.join(BUILD, root)):
            for name in names:
                if not name.endswith(".o"):
                    continue
                place = os.path.relpath(folder, BUILD).replace("/.libs", "")
                stem = re.sub(r"^\w+?(_la)?-", "", name[:-2].replace("chex-", "chex_"))
                if not os.path.exists(os.path.join(SOURCE, place, stem + ".c")):
                    continue
                defined, wanted = units.setdefault(f"{place}/{stem}", (set(), set()))
                text = subprocess.run(["nm", os.path.join(folder, name)], capture_output=True, text=True, check=False)
                for line in text.stdout.splitlines():
                    words = line.split()
                    if len(words) == 3 and words[1] in "TDBRVWC":
                        defined.add(words[2])
                    elif len(words) == 2 and words[0] == "U":
                        wanted.add(words[1])
    return units


def check_symbols(tally, order):
    if not shutil.which("nm"):
        tally.skip("who calls whom: no nm")
        return
    units = objects()
    owner = {symbol: unit for unit, (defined, _) in units.items() for symbol in defined}
    graph = {unit: {owner[symbol] for symbol in wanted if symbol in owner} - {unit}
             for unit, (_, wanted) in units.items()}
    seen = {os.path.dirname(unit) for unit in units}
    tally.check("object files of every folder were found", [folder for folder in order if folder not in seen])
    tally.check("no file calls into a folder above its own", upward(graph, order))
    tally.check("calls make no circle", [" ".join(part) for part in circles(graph)])


def check_tags(tally):
    """What struct foo is does not depend on the file that is being read.  A backend, and what those of host memory
    share, defines the opaque types of the seam as the others do: these count as one."""
    seam = read("train/backend/backend.h") + read("train/backend/batch.h")
    opaque = set(re.findall(r"^struct (\w+);", seam, re.M))
    places = collections.defaultdict(set)
    for path in sorted(f"{folder}/{name}" for root in ROOTS for folder, _, names in os.walk(os.path.join(SOURCE, root))
                       for name in names if name.endswith((".c", ".h"))):
        text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
        backend = os.path.relpath(os.path.dirname(path), SOURCE) in (*BACKENDS, "train/backend")
        for tag in re.findall(r"\b(?:struct|enum|union)\s+(\w+)\s*\{", text):
            places[tag].add("a backend" if backend and tag in opaque else os.path.relpath(path, SOURCE))
    tally.check("a tag is defined once in lib, train and tools",
                [f"{tag}: {' '.join(sorted(where))}" for tag, where in sorted(places.items())
                 if len(where) > 1])


def check_columns(tally):
    names = subprocess.run(["find", *ROOTS, "tests", "bench", "man", "doc", "schemas", "(", "-name", "*.[ch]",
                            "-o", "-name", "*.py", "-o", "-name", "*.sh", "-o", "-name", "*.mk", "-o", "-name", "*.m4",
                            "-o", "-name", "*.cc", "-o", "-name", "*.cu", "-o", "-name", "*.proto", ")", "-type", "f"],
                           cwd=SOURCE, capture_output=True, text=True, check=True).stdout.split()
    names += [f"m4/{name}" for name in os.listdir(os.path.join(SOURCE, "m4")) if name.startswith("chex_")]
    names += ["configure.ac", "Makefile.am", "run-tests.sh", "quickstart.sh"]
    tally.check(f"no line is longer than {COLUMNS} columns",
                [f"{name}:{i}: {len(line)}" for name in sorted(names)
                 for i, line in enumerate(read(name).split("\n"), 1) if len(line.expandtabs(8)) > COLUMNS])


def main():
    tally = Tally()
    order = folder_order()
    check_folders(tally, order)
    check_fragments(tally, order)
    check_includes(tally, order)
    check_symbols(tally, order)
    check_tags(tally)
    check_columns(tally)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
