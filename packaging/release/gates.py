#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must hold of the tree of a relocatable release, whatever it was built with.

    gates.py TREE MACHINE [-c TOOL GENERATIONS] FOLDER...     FOLDERs of the build, whose paths must not be in a file

With -c, chex-train and chex-predict have kernels for these GENERATIONS of GPUs ('sm_80 sm_90 compute_90'), as the
programs say and as cuobjdump, the TOOL, lists them.  Without it, no program says that it has kernels.

Each program needs glibc 2.28 at most and no other library, is hardened and stripped; man pages, completions and
licences are there; on a machine with AVX2 the programs say so.
"""
import collections
import os
import re
import subprocess
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
OLDEST = (2, 28)
# Of glibc itself.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
             "ld-linux-aarch64.so.1"}
COMPLETIONS = ("bash-completion/completions/{}", "zsh/site-functions/_{}", "fish/vendor_completions.d/{}.fish")
FILES_OF_KERNELS = len([name for name in os.listdir(os.path.join(HERE, "../../train/cuda/kernels"))
                        if name.endswith(".cu")])
CUDA_PROGRAMS = ("chex-predict", "chex-train")
PROGRAMS = ("chex-convert", "chex-inspect", "chex-predict", "chex-synth", "chex-train")


def readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], check=True, capture_output=True, text=True).stdout


def versions(path):
    """The versions of glibc whose symbols the program needs."""
    return {tuple(map(int, v.split("."))) for v in re.findall(r"@GLIBC_([0-9.]+)", readelf("--dyn-syms", path))}


def program_faults(path, machine):
    """What is wrong with one program, a line each."""
    newest = max(versions(path), default=(0,))
    if newest > OLDEST:
        yield f"needs GLIBC_{'.'.join(map(str, newest))}"
    dynamic = readelf("-d", path)
    for name in set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - LIBRARIES:
        yield f"needs {name}"
    for tag in re.findall(r"\((RPATH|RUNPATH|TEXTREL)\)", dynamic):
        yield f"has {tag}"
    if not re.search(r"\(FLAGS(_1)?\).*\bNOW\b|\(BIND_NOW\)", dynamic):
        yield "is not linked with -z now"
    segments = readelf("-l", path)
    if " GNU_RELRO " not in segments:
        yield "has no RELRO"
    if not re.search(r"^ +GNU_STACK .* RW +\S+$", segments, re.M):
        yield "has an executable stack"
    if re.search(r"^ +\w+ .* RWE? *E +0x", segments, re.M):
        yield "has a segment that can be written and executed"
    header = readelf("-h", path)
    if not re.search(r"Type: +DYN .*Position-Independent Executable", header):
        yield "is not position-independent"
    if not re.search({"x86_64": "Machine: +.*X86-64", "aarch64": "Machine: +AArch64"}[machine], header):
        yield f"is not of {machine}"
    if re.search(r"\.(symtab|debug_info)\b", readelf("-S", path)):
        yield "is not stripped"
    symbols = readelf("--dyn-syms", path)
    if "__stack_chk_fail@GLIBC" not in symbols:
        yield "has no stack protector, or not that of glibc"
    if not re.search(r"__\w+_chk@", symbols):
        yield "has no checked string functions"


def cpu_faults(path, machine):
    """A build that lost the choice of kernels by processor is many times slower, and says nothing else about it."""
    if machine != "x86_64" or machine != os.uname().machine:
        return
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        flags = set(f.read().split())
    said = subprocess.run([path, "--version", "-v"], check=True, capture_output=True, text=True).stdout
    words = said.partition("\ncpu ")[2].partition("\n")[0].split()
    if "avx2" in flags and "avx2" not in words:
        yield f"--version -v says '{' '.join(words)}', without the avx2 of this machine"


def cuda_faults(path, machine, tool, generations):
    """A build that lost its kernels trains on CPUs, and only who has a GPU would see it."""
    name = os.path.basename(path)
    if machine != os.uname().machine or name not in CUDA_PROGRAMS:
        return
    if name == "chex-train":
        said = subprocess.run([path, "--version", "-v"], check=True, capture_output=True, text=True).stdout
        line = re.search(r"^cuda +(.*)$", said, re.M)
        if not tool and line:
            yield f"--version -v says '{line.group(0)}'"
        if tool and not (line and line.group(1).endswith(f", kernels for {generations}")):
            yield f"--version -v says '{line.group(1) if line else 'nothing'}' of CUDA, not {generations}"
    if tool:
        # It ends with an error where there are none.
        listed = subprocess.run([tool, "-lelf", "-lptx", path], check=False, capture_output=True, text=True).stdout
        found = collections.Counter(f"{'sm' if kind == 'cubin' else 'compute'}_{generation}" for generation, kind
                                    in re.findall(r"\.sm_(\d+)\.(cubin|ptx)$", listed, re.M))
        # The files of kernels, for fp16, bf16 and tf32; GPUs before sm_80 have fp16 only.
        wanted = {generation: FILES_OF_KERNELS * (1 if int(generation.partition("_")[2]) < 80 else 3)
                  for generation in generations.split()}
        for generation in sorted({*found, *wanted}):
            if found[generation] != wanted.get(generation, 0):
                yield f"has {found[generation]} files of kernels for {generation}, not {wanted.get(generation, 0)}"


def tree_faults(tree, folders, cuda):
    """What is missing in the tree, and which of its files name a folder of the build."""
    wanted = [f"bin/{p}" for p in PROGRAMS] + [f"share/man/man1/{p}.1" for p in PROGRAMS]
    wanted += [f"share/{place.format(p)}" for p in PROGRAMS for place in COMPLETIONS]
    wanted += ["share/man/man5/chex-shard.5", "share/doc/chex-tools/LICENSE", "share/doc/chex-tools/README.md",
               "share/doc/chex-tools/doc/install.md", "share/chex-tools/schemas/manifest.schema.json"]
    with open(os.path.join(HERE, "libraries.toml"), "rb") as f:
        tables = tomllib.load(f)
    for name, table in tables.items():
        if isinstance(table, dict) and table.get("linked", True):
            wanted += [f"share/doc/chex-tools/licenses/{name}/{os.path.basename(t)}" for t in table["texts"]]
    if cuda:
        wanted.append("share/doc/chex-tools/licenses/cuda-runtime/LICENSE")
    for name in wanted:
        path = os.path.join(tree, name)
        if not os.path.isfile(path) or os.path.getsize(path) == 0:
            yield f"{name} is missing or empty"
    for parent, _, names in os.walk(tree):
        for name in names:
            with open(os.path.join(parent, name), "rb") as f:
                content = f.read()
            for folder in folders:
                if folder.encode() in content:
                    yield f"{os.path.relpath(os.path.join(parent, name), tree)} names {folder}"


def main(tree, machine, *folders):
    tool = generations = None
    if folders[:1] == ("-c",):
        _, tool, generations, *folders = folders
    faults = list(tree_faults(tree, folders, tool))
    count = 0
    for name in sorted(os.listdir(os.path.join(tree, "bin"))):
        path = os.path.join(tree, "bin", name)
        faults += [f"{name} {fault}" for fault in (*program_faults(path, machine), *cpu_faults(path, machine),
                                                   *cuda_faults(path, machine, tool, generations))]
        newest = ".".join(map(str, max(versions(path), default=(0,))))
        print(f"{name}: {os.path.getsize(path) / 1e6:.1f} MB, GLIBC_{newest}")
        count += 1
    for fault in faults:
        print(f"gates.py: {fault}", file=sys.stderr)
    sys.exit(1 if faults or not count else 0)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
