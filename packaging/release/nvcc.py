#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles CUDA kernels for the programs of a release, with what PyPI has of CUDA 12: nvcc itself is not there.

    nvcc.py TOOLKIT CC KEPT [-std=c++17] [-O3] [-IFOLDER] [-DNAME=VALUE] -gencode arch=A,code=B... -c -o FILE.o FILE.cu
    nvcc.py TOOLKIT CC KEPT --dryrun -c FILE.cu     where headers and libraries are, as nvcc prints it
    nvcc.py TOOLKIT CC KEPT --list-gpu-arch

NVRTC compiles the kernels, nvFatbin packs the machine code and the PTX of all generations into a fat binary, and CC
compiles the constructor that registers the binary and its kernels with the CUDA runtime.  Options and output are those
of nvcc that configure and train/cuda/local.mk use, so neither knows of this program; any other option is an error.

The file has kernels with C names only: no variables of the device, no textures, and no host code.

TOOLKIT is the folder of cuda.sh.  CC is a command: the compiler of the programs and its options.
KEPT is a folder of fat binaries that were made before, by all that they were made of: make_release.sh compiles again
what has changed.  The same input makes the same bytes, whatever the folders are.
"""
import argparse
import ctypes
import hashlib
import inspect
import os
import re
import shlex
import subprocess
import sys
import tempfile

REGISTRATION = """\
/* What the compiler of CUDA puts into every object: crt/host_runtime.h. */
#include <stddef.h>
#include <stdlib.h>

void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int threads, void *thread,
                            void *block, void *block_size, void *grid_size, int *warp_size);

__asm__(".section .nv_fatbin, \\"a\\"\\n.p2align 3\\nfat_binary:\\n.incbin \\"fatbin\\"\\n.previous\\n");
extern const char fat_binary[] __attribute__((visibility("hidden")));
static const struct {
    int magic, version;
    const void *data;
    void *unused;
} wrapper __attribute__((section(".nvFatBinSegment"), aligned(8), used)) = {0x466243b1, 1, fat_binary, NULL};
static void **handle;

/* The address of this function identifies a kernel.  Nobody calls it; two with the same code could become one. */
static const char *volatile called;
#define KERNEL(name) \\
    void name(void)  \\
    {                \\
        called = #name; \\
        abort();     \\
    }
KERNELS
#undef KERNEL

static void
unregister(void)
{
    __cudaUnregisterFatBinary(handle);
}

__attribute__((constructor)) static void
register_kernels(void)
{
    handle = __cudaRegisterFatBinary((void *)&wrapper);
#define KERNEL(name) \\
    __cudaRegisterFunction(handle, (const char *)name, (char *)#name, #name, -1, NULL, NULL, NULL, NULL, NULL);
    KERNELS
    __cudaRegisterFatBinaryEnd(handle);
    atexit(unregister);
}
"""


class Library:
    """Calls of a library of the toolkit; another result than 0 is an error."""

    def __init__(self, toolkit, name):
        self.library = ctypes.CDLL(os.path.join(toolkit, name))

    def __getattr__(self, call):
        def checked(*arguments):
            code = getattr(self.library, call)(*arguments)
            if code:
                raise ValueError(f"{call}: error {code}")
        return checked

    def bytes_of(self, handle, size, call):
        """What the two calls give, which ask for the size and the bytes."""
        length = ctypes.c_size_t()
        getattr(self, size)(handle, ctypes.byref(length))
        out = ctypes.create_string_buffer(length.value)
        getattr(self, call)(handle, out)
        return out.raw


def texts(words):
    return len(words), (ctypes.c_char_p * len(words))(*(w.encode() for w in words))


def compiled(nvrtc, name, text, options):
    """(machine code, PTX) of one generation."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None)
    try:
        nvrtc.nvrtcCompileProgram(program, *texts(options))
    except ValueError as error:
        log = nvrtc.bytes_of(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
        raise ValueError(f"{error}\n{log.rstrip(bytes(1)).decode(errors='replace')}") from error
    code = nvrtc.bytes_of(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")
    ptx = nvrtc.bytes_of(program, "nvrtcGetPTXSize", "nvrtcGetPTX")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code, ptx


def generations(gencode):
    """{generation: {what of it: sm, compute}}, in the order of the options."""
    wanted = {}
    for option in gencode:
        match = re.fullmatch(r"arch=compute_(\d+),code=(sm|compute)_\1", option)
        if not match:
            raise ValueError(f"-gencode {option}: arch=compute_N,code=sm_N or arch=compute_N,code=compute_N")
        wanted.setdefault(match.group(1), set()).add(match.group(2))
    if not wanted:
        raise ValueError("no -gencode")
    return wanted


def fat_binary(o, options, name, text):
    nvrtc = Library(o.toolkit, "cuda_nvrtc/lib/libnvrtc.so.12")
    fatbin = Library(o.toolkit, "nvfatbin/lib/libnvfatbin.so.12")
    handle = ctypes.c_void_p()
    # The other modes of compression need drivers of CUDA 12.4 or newer.
    settings = ["-64", "-cuda", "-host=linux", "-compress-all", "-compress-mode=speed"]
    fatbin.nvFatbinCreate(ctypes.byref(handle), texts(settings)[1], ctypes.c_size_t(len(settings)))
    for generation, kinds in generations(o.gencode).items():
        code, ptx = compiled(nvrtc, name, text, [f"--gpu-architecture=sm_{generation}", *options])
        arch = generation.encode()
        if "sm" in kinds:
            fatbin.nvFatbinAddCubin(handle, code, ctypes.c_size_t(len(code)), arch, name.encode())
        if "compute" in kinds:
            fatbin.nvFatbinAddPTX(handle, ptx, ctypes.c_size_t(len(ptx)), arch, name.encode(), b"")
        # The names are the same in all.
        kernels = re.findall(rb"^\.visible \.entry (\w+)\(", ptx, re.M)
    out = fatbin.bytes_of(handle, "nvFatbinSize", "nvFatbinGet")
    fatbin.nvFatbinDestroy(ctypes.byref(handle))
    if not kernels:
        raise ValueError("no kernels")
    return out, [k.decode() for k in kernels]


def included(path, folders, seen):
    """The files that a source includes by a name in quotes, with theirs."""
    with open(path, "rb") as f:
        text = f.read()
    seen[path] = text
    for name in re.findall(rb'^\s*#\s*include\s*"([^"]+)"', text, re.M):
        for folder in (os.path.dirname(path), *folders):
            there = os.path.join(folder, name.decode())
            if os.path.exists(there):
                if there not in seen:
                    included(there, folders, seen)
                break
    return seen


def key(o, options):
    """What a fat binary is made of, and by which code; KEPT belongs to one toolkit."""
    makers = [inspect.getsource(maker) for maker in (Library, compiled, generations, fat_binary)]
    digest = hashlib.sha256(repr((makers, options, o.gencode)).encode())
    for text in included(o.source, o.I, {}).values():
        digest.update(hashlib.sha256(text).digest())
    return digest.hexdigest()


def write(path, content):
    with open(path, "wb") as f:
        f.write(content)


def compile_file(o):
    folders = [os.path.dirname(o.source) or ".", *o.I]
    folders += [f"{o.toolkit}/{part}/include" for part in ("cuda_runtime", "cuda_nvcc")]
    # nvcc includes the header of the runtime, which defines this.
    options = [f"--std={o.std}", "-DCUDART_VERSION=12090", *(f"-D{d}" for d in o.D)]
    kept = os.path.join(o.kept, key(o, options))
    if not os.path.exists(kept):
        with open(o.source, "rb") as f:
            text = f.read()
        out, kernels = fat_binary(o, [*options, *(f"-I{f}" for f in folders)], os.path.basename(o.source), text)
        os.makedirs(o.kept, exist_ok=True)
        # The names of the kernels, a line, then the binary: whole or not there.
        write(f"{kept}.{os.getpid()}", " ".join(kernels).encode() + b"\n" + out)
        os.replace(f"{kept}.{os.getpid()}", kept)
    with open(kept, "rb") as f:
        kernels, binary = f.readline().decode().split(), f.read()
    with tempfile.TemporaryDirectory() as work:
        listed = " ".join(f"KERNEL({k})" for k in kernels)
        write(f"{work}/fatbin", binary)
        write(f"{work}/kernels.c", re.sub("^( *)KERNELS$", rf"\1{listed}", REGISTRATION, flags=re.M).encode())
        subprocess.run([*shlex.split(o.cc), "-c", "kernels.c", "-o", os.path.abspath(o.o)], cwd=work, check=True)


def main():
    p = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    p.add_argument("source")
    p.add_argument("--dryrun", action="store_true")
    p.add_argument("-std", default="c++17")
    p.add_argument("-I", action="append", default=[])
    p.add_argument("-D", action="append", default=[])
    p.add_argument("-gencode", action="append", default=[])
    p.add_argument("-c", action="store_true", required=True)
    p.add_argument("-o")
    for option in ("-O3", "-fPIC", "-fPIE", "-DPIC", "-fno-exceptions", "-fno-threadsafe-statics"):
        p.add_argument(option, action="store_true", dest="of_nvcc")  # no matter to NVRTC, or in CC already
    p.add_argument("-forward-unknown-to-host-compiler", action="store_true")
    if len(sys.argv) < 5:
        p.error("TOOLKIT CC KEPT")
    if sys.argv[4:] == ["--list-gpu-arch"]:
        print("\n".join(f"compute_{a}" for a in (70, 75, 80, 86, 89, 90, 100, 120)))
        return
    o = p.parse_args(sys.argv[4:])
    o.toolkit, o.cc, o.kept = sys.argv[1:4]
    if o.dryrun:
        includes = " ".join(f'"-I{o.toolkit}/{part}/include"' for part in ("cuda_runtime", "cuda_nvcc", "cuda_cccl"))
        print(f"#$ INCLUDES={includes}", file=sys.stderr)
        print(f'#$ LIBRARIES=  "-L{o.toolkit}/cuda_runtime/lib"', file=sys.stderr)
    elif o.o:
        compile_file(o)
    else:
        p.error("-o FILE.o")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, subprocess.CalledProcessError) as error_of_all:
        sys.exit(f"nvcc.py: {error_of_all}")
