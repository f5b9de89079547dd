#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders are levels: the arrows of ARCHITECTURE.md hold for includes, calls and declarations, without a cycle.

The block that follows <!-- folder-order --> in ARCHITECTURE.md is the only place with the order.  In a line of `<` a
folder may use all folders to its left.  In a line of `->` it may use the folders to the right of the arrow, and all
that those may use.  A tree may use the trees above it.  The folders inside train/cuda have a line of `<` in
train/cuda/backend.h, and train/cuda itself is above them.

Includes are read from the sources, .cu files too, and calls from all object files of this build, by nm.  A function or
a variable is declared in the folder of the object file that defines it.

The emulator of the tests depends on nothing outside its folder.  Tests have no time limits of their own.  Each folder
of tests has a fragment that names its files.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

from support import SOURCE, Tally

BUILD = os.environ.get("BUILDDIR", os.getcwd())
ROOTS = ("lib", "train", "tools")
COLUMNS = 120
BACKENDS = ("train/ref", "train/cpu", "train/cuda")
SOURCES = (".c", ".h", ".cu")


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def chain(line, prefix):
    """{folder: folders that it may use} of a line "a < b < c"."""
    names = [f"{prefix}/{name.strip()}" for name in line.split("<")]
    return {name: set(names[:i]) for i, name in enumerate(names)}


def folder_arrows():
    """{folder: folders that its arrows lead to}, the lowest first: of all trees."""
    block = re.search(r"<!-- folder-order -->\s*```(.*?)```", read("ARCHITECTURE.md"), re.S).group(1)
    arrows = {}
    for root, text in re.findall(r"^(\w+)/ +(.*(?:\n .*)*)", block, re.M):
        if "<" in text:
            arrows.update(chain(text, root))
            continue
        for line in text.splitlines():
            names, _, used = line.partition("->")
            for name in names.split(","):
                arrows[f"{root}/{name.strip()}"] = {f"{root}/{other.strip()}" for other in used.split(",") if used}
    return arrows


def inner_arrows():
    """The same of the folders inside train/cuda."""
    line = re.search(r"^ \*\s+(\w+(?: < \w+)+)$", read("train/cuda/backend.h"), re.M).group(1)
    return chain(line, "train/cuda")


def reach(arrows):
    """{folder: all folders that it may use}."""
    found = {}
    for folder, direct in arrows.items():  # the lowest first
        found[folder] = direct.union(*(found.get(other, set()) for other in direct))
    return found


def allowed():
    """{folder: all folders that a file in it may use, its own included}."""
    drawn, inner = folder_arrows(), inner_arrows()
    uses = reach(drawn)
    for folder, direct in inner.items():
        uses[folder] = direct | uses["train/cuda"]
    uses["train/cuda"] = uses["train/cuda"] | set(inner)
    for folder, others in uses.items():
        above = ROOTS[:ROOTS.index(folder.split("/")[0])]
        others |= {folder, "lib"} | {other for other in uses if other.split("/")[0] in above}
    uses["tools"] = set(uses) | {"lib"}
    uses["lib"] = {"lib"}
    return uses


def sources(folder):
    return sorted(name for name in os.listdir(os.path.join(SOURCE, folder)) if name.endswith(SOURCES))


def source_folders():
    """Every folder with sources, below the three trees."""
    found = [os.path.relpath(folder, SOURCE) for root in ROOTS for folder, _, _ in os.walk(os.path.join(SOURCE, root))]
    return sorted(folder for folder in found if folder not in ROOTS and sources(folder))


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


def forbidden(graph, uses):
    return [f"{a} needs {b}" for a in sorted(graph) for b in sorted(graph[a])
            if os.path.dirname(b) not in uses.get(os.path.dirname(a), set())]


def check_folders(tally, uses):
    tally.check("ARCHITECTURE.md and train/cuda/backend.h name every folder, and no other",
                [f"{name}: in one of both only" for name in sorted(set(source_folders()) ^ (set(uses) - set(ROOTS)))])
    arrows = folder_arrows()
    tally.check("the arrows of ARCHITECTURE.md make no cycle", [" ".join(part) for part in circles(arrows)])
    lower = list(arrows)
    tally.check("ARCHITECTURE.md lists the lower folders first",
                [f"{a} is above {b}" for a in arrows for b in arrows[a] if b not in lower[:lower.index(a)]])
    trees = collections.defaultdict(list)
    for root in ROOTS:
        for folder, _, names in os.walk(os.path.join(SOURCE, root)):
            for name in names:
                if name.endswith(SOURCES):
                    trees[os.path.relpath(os.path.join(folder, name), os.path.join(SOURCE, root))].append(root)
    tally.check("an include names one file of one tree",
                [f"{name}: {', '.join(where)}" for name, where in sorted(trees.items()) if len(where) > 1])
    mains = {"lib": ["chex.h"], "train": [],
             "tools": ["chex-convert.c", "chex-inspect.c", "chex-predict.c", "chex-synth.c", "chex-train.c"]}
    tally.check("the top folder of a tree has only the public header and the mains",
                [f"{root}: {sources(root)}" for root in ROOTS if sources(root) != mains[root]])


def check_fragments(tally):
    faults = []
    for folder in source_folders():
        text = read(f"{folder}/local.mk")
        named = re.findall(rf"{folder}/[\w-]+\.(?:[ch]\b|cu)", text)
        faults += [f"{folder}/local.mk does not name {name}" for name in sources(folder)
                   if f"{folder}/{name}" not in named]
        for lines in re.findall(r"_(?:SOURCES|sources) \+?= \\\n((?:\t.*\n)+)", text):
            listed = [line.strip(" \t\\") for line in lines.splitlines()]
            if listed != sorted(listed):
                faults.append(f"{folder}/local.mk is not sorted")
    tally.check("the build fragment of each folder names all its files, in order", faults)


def check_includes(tally, uses):
    graph, faults = collections.defaultdict(set), []
    for folder in source_folders():
        for name in sources(folder):
            path = f"{folder}/{name}"
            for include in re.findall(r'^#\s*include "([^"]+)"', read(path), re.M):
                target = target_of(include)
                if target:
                    graph[path].add(target)
                if "/" not in include and include != "chex.h":
                    faults.append(f'{path} includes "{include}" without its folder')
    tally.check("includes carry the folder", faults)
    tally.check("no file includes from a folder that its own may not use", forbidden(graph, uses))
    tally.check("includes make no cycle", [" ".join(part) for part in circles(graph)])
    used = {(tree_folder(a), tree_folder(b)) for a in graph for b in graph[a]}
    tally.check("every arrow of ARCHITECTURE.md is an include",
                [f"{a} -> {b}" for a, others in folder_arrows().items() if a.startswith("train/")
                 for b in sorted(others) if (a, b) not in used])


def tree_folder(path):
    """train/cuda of train/cuda/run/plan.h."""
    return "/".join(path.split("/")[:2])


def unit_of(folder, name):
    """The source without its ending that an object file was made from, or None.  Kernels are compiled once for each
    type of value: norm.fp16.o by nvcc, libemulated_fp16_la-norm.o for the emulator."""
    place = os.path.relpath(folder, BUILD).replace("/.libs", "")
    stem = re.sub(r"^\w+?(_la)?-", "", re.sub(r"(\.fp16|\.bf16|\.tf32)?\.o$", "", name).replace("chex-", "chex_"))
    found = any(os.path.exists(os.path.join(SOURCE, place, stem + ending)) for ending in (".c", ".cu"))
    return f"{place}/{stem}" if found else None


def objects():
    """{unit: (defined symbols, wanted symbols)}; a unit is lib/base/error."""
    units = {}
    for root in ROOTS:
        for folder, _, names in os.walk(os.path.join(BUILD, root)):
            for name in names:
                unit = unit_of(folder, name) if name.endswith(".o") else None
                if not unit:
                    continue
                defined, wanted = units.setdefault(unit, (set(), set()))
                text = subprocess.run(["nm", os.path.join(folder, name)], capture_output=True, text=True, check=False)
                for line in text.stdout.splitlines():
                    words = line.split()
                    if len(words) == 3 and words[1] in "TDBRC":
                        defined.add(words[2])
                    elif len(words) == 2 and words[0] == "U":
                        wanted.add(words[1])
    return units


def check_symbols(tally, uses):
    if not shutil.which("nm"):
        tally.skip("who calls whom: no nm")
        return
    units = objects()
    owner = {symbol: unit for unit, (defined, _) in units.items() for symbol in defined}
    graph = {unit: {owner[symbol] for symbol in wanted if symbol in owner} - {unit}
             for unit, (_, wanted) in units.items()}
    seen = {os.path.dirname(unit) for unit in units}
    tally.check("object files of every folder were found", [f for f in source_folders() if f not in seen])
    tally.check("no file calls into a folder that its own may not use", forbidden(graph, uses))
    tally.check("calls make no cycle", [" ".join(part) for part in circles(graph)])
    tally.check("a declaration is in the folder of its code", misplaced(owner))


def declared(path):
    """Names that a header declares at its top level: functions, and variables with `extern`."""
    text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M).replace('extern "C" {', "")
    for nested, left in ((r"\{[^{}]*\}", ""), (r"\([^()]*\)", "@")):
        while re.search(nested, text):
            text = re.sub(nested, left, text)
    names = set(re.findall(r"\b(\w+)\s*@", text))
    return names | set(re.findall(r"\bextern\b[^;@]*?(\w+)(?:\[[^\]]*\])*;", text))


def misplaced(owner):
    faults = []
    for folder in source_folders():
        if folder.startswith("tools/"):
            continue
        for name in sources(folder):
            if name.endswith(".h"):
                faults += [f"{folder}/{name} declares {symbol} of {owner[symbol]}"
                           for symbol in sorted(declared(f"{folder}/{name}"))
                           if symbol in owner and os.path.dirname(owner[symbol]) != folder]
    return faults


def check_tags(tally):
    """What struct foo is does not depend on the file that is being read.  A backend, and what those of host memory
    share, defines the opaque types of the seam as the others do: these count as one."""
    seam = read("train/backend/backend.h") + read("train/backend/batch.h")
    opaque = set(re.findall(r"^struct (\w+);", seam, re.M))
    places = collections.defaultdict(set)
    for path in sorted(f"{folder}/{name}" for root in ROOTS for folder, _, names in os.walk(os.path.join(SOURCE, root))
                       for name in names if name.endswith((".c", ".h"))):
        text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
        backend = tree_folder(os.path.relpath(path, SOURCE)) in (*BACKENDS, "train/backend")
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


def check_emulator(tally):
    """The emulator needs nothing of this project: it includes its own headers and those of the system."""
    folder, faults = "tests/emulator", []
    for name in sorted(os.listdir(os.path.join(SOURCE, folder))):
        if name.endswith((".c", ".cc", ".h")):
            for header in re.findall(r'^#\s*include "([^"]+)"', read(f"{folder}/{name}"), re.M):
                if not os.path.exists(os.path.join(SOURCE, folder, header)):
                    faults.append(f"{folder}/{name} includes {header}")
    text = re.sub(r"^#.*", "", read(f"{folder}/build.mk"), flags=re.M)
    outside = re.compile(r"\$\(SOURCE\)|\btrain/|\blib/|\.la\b|-lchex")
    faults += [f"{folder}/build.mk names {word}" for word in outside.findall(text)]
    tally.check("the emulator depends on nothing outside its folder", faults)


def check_test_folders(tally):
    """Each folder of tests has a fragment that names its files; only those that all tests need are in tests/ itself."""
    found = subprocess.run(["git", "ls-files", "tests"], cwd=SOURCE, capture_output=True, text=True, check=False).stdout
    if not found:
        tally.skip("the fragments of tests/: no git checkout")
        return
    fragments = glob.glob(os.path.join(SOURCE, "tests", "**", "local.mk"), recursive=True)
    text = "".join(read(os.path.relpath(path, SOURCE)) for path in fragments)
    named = set(re.findall(r"tests/[\w./-]+", text))
    tally.check("a fragment names every file of tests/",
                [name for name in found.split() if name not in named and not name.endswith("local.mk")])


def asm_instructions(text):
    """The opcodes in asm statements, up to a word of a macro; "?" if nothing is literal.  Empty texts are left out."""
    string, found = r'"(?:[^"\\]|\\.)*"', []
    code = re.sub(r"/\*.*?\*/|//[^\n]*|\\\n", " ", text, flags=re.S)
    for inside in re.findall(rf"\b(?:__)?asm(?:__)?\b[\s\w]*\(((?:\s|\w|{string})*)", code):
        parts = re.findall(rf"{string}|\w+", inside)
        joined = "".join(re.sub(r"\\[nt]", " ", part[1:-1]) if part[0] == '"' else "?" for part in parts)
        for instruction in joined.split(";"):
            opcode = re.sub(r"^[\s{}]*(@\S+\s+)?", "", instruction).split(" ")[0].split("?")
            if opcode != [""]:
                found.append(opcode[0] or "?")
    return found


def check_mutants(tally):
    """Each instruction of an asm statement is written once, and has a mutant."""
    sys.path.insert(0, os.path.join(SOURCE, "tests", "cuda", "ptx"))
    from mutants import MUTANTS
    named = tuple(m.statement for m in MUTANTS if m.statement)
    faults, found, seen = [], set(), {}
    for path in sources("train/cuda/kernels"):
        for statement in asm_instructions(read(f"train/cuda/kernels/{path}")):
            found |= {name for name in named if name.startswith(statement)}
            if not any(name.startswith(statement) for name in named):
                faults.append(f"{path}: {statement}")
            if statement in seen:
                faults.append(f"{path} and {seen[statement]} have {statement}: one of them may have no mutant")
            seen[statement] = path
    faults += [f"no kernel has the statement {name}" for name in sorted(set(named) - found)]
    tally.check("each asm statement of the kernels has a mutant of its PTX", faults)


def check_limits(tally):
    """On a busy machine a test takes a hundred times as long: a hang is found by UNIT_TIMEOUT and PATIENCE alone."""
    names = subprocess.run(["find", "tests", "(", "-name", "test_*.c", "-o", "-name", "*.py", ")", "-type", "f",
                            "!", "-path", "tests/cuda/device/*"],
                           cwd=SOURCE, capture_output=True, text=True, check=True).stdout.split()
    own = re.compile(r"tcase_set_timeout|\btimeout=\d{1,3}\b|CK_DEFAULT_TIMEOUT=")
    tally.check("no test has a time limit of its own",
                [f"{name}:{i}: {line.strip()}" for name in sorted(names)
                 for i, line in enumerate(read(name).split("\n"), 1) if own.search(line) and "own = re" not in line])


def main():
    tally = Tally()
    uses = allowed()
    check_folders(tally, uses)
    check_fragments(tally)
    check_includes(tally, uses)
    check_symbols(tally, uses)
    check_tags(tally)
    check_columns(tally)
    check_emulator(tally)
    check_test_folders(tally)
    check_mutants(tally)
    check_limits(tally)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
