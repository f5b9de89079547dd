#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/release/nvcc.py: what it compiles is registered with the CUDA runtime, here one of this test.

    check_nvcc.py [PATTERN]     all cases, or those whose name matches

Skipped without the parts of CUDA, which `packaging/release/make_release.sh -p` downloads to $CHEX_RELEASE_CACHE.
"""
import glob
import os
import re
import sys

from support import SOURCE, Cases, Skip, run, slurp, write

case = Cases()
NVCC = os.path.join(SOURCE, "packaging", "release", "nvcc.py")
CC = os.environ.get("CC") or "cc"
KERNELS = """\
#include "scale.h"
struct arguments { float *x; };
extern "C" __global__ void first(const __grid_constant__ arguments a) { a.x[threadIdx.x] *= SCALE; }
extern "C" __global__ void VALUE(const __grid_constant__ arguments a) { a.x[threadIdx.x] += CUDART_VERSION; }
"""
# The calls that crt/host_runtime.h declares; prints what they are told.
RUNTIME = """\
#include <stdio.h>
#include <string.h>
void first(void);
void second(void);
static void *handle[1];
void **__cudaRegisterFatBinary(const int *w)
{
    const unsigned *binary;

    memcpy(&binary, w + 2, sizeof(binary));
    printf("binary %x %d %x\\n", w[0], w[1], binary[0]);
    return handle;
}
void __cudaRegisterFunction(void **h, const char *host, char *device, const char *name, int threads, void *a, void *b,
                            void *c, void *d, int *e)
{
    void (*function)(void) = strcmp(name, "first") == 0 ? first : second;

    printf("kernel %d %d %s %s %d\\n", h == handle, (void *)host == (void *)function, device, name,
           threads == -1 && !a && !b && !c && !d && !e);
}
void __cudaRegisterFatBinaryEnd(void **h) { printf("end %d\\n", h == handle); }
void __cudaUnregisterFatBinary(void **h) { printf("gone %d\\n", h == handle); }
int main(void) { return puts("main") < 0; }
"""


def toolkit():
    cache = os.environ.get("CHEX_RELEASE_CACHE") or os.path.expanduser("~/.cache/chex-release")
    found = glob.glob(os.path.join(cache, "cuda-*", "licence"))
    if not found:
        raise Skip("there are no parts of CUDA (packaging/release/make_release.sh -p)")
    return os.path.dirname(max(found, key=os.path.getmtime))


def gencode(*codes):
    """The options for codes such as sm_90."""
    return [word for code in codes for word in ("-gencode", f"arch=compute_{code.split('_')[1]},code={code}")]


def compiled(folder, kept, *more, code=0):
    os.makedirs(folder, exist_ok=True)
    write(f"{folder}/kernels.cu", KERNELS.encode())
    if not os.path.exists(f"{folder}/scale.h"):
        write(f"{folder}/scale.h", b"#define SCALE 2\n")
    return run([sys.executable, NVCC, toolkit(), f"{CC} -O2 -fPIC", kept, "-std=c++17", "-O3", "-DVALUE=second", *more,
                "-c", "-o", f"{folder}/kernels.o", f"{folder}/kernels.cu"], code)


@case("each kernel is registered under its name, with the address of its function, before main")
def _(work):
    compiled(work, f"{work}/kept", *gencode("sm_90", "compute_90"))
    write(f"{work}/runtime.c", RUNTIME.encode())
    run([*CC.split(), "-o", f"{work}/program", f"{work}/runtime.c", f"{work}/kernels.o"])
    assert run([f"{work}/program"]).stdout.splitlines() == [
        "binary 466243b1 1 ba55ed50", "kernel 1 1 first first 1", "kernel 1 1 second second 1", "end 1",
        "main", "gone 1"]


@case("machine code and PTX of the generations that -gencode names, and of no other")
def _(work):
    def listed(*codes):
        compiled(work, f"{work}/kept", *gencode(*codes))
        said = run([f"{toolkit()}/cuobjdump", "-lelf", "-lptx", f"{work}/kernels.o"]).stdout
        return re.findall(r": kernels\.(\S+)$", said, re.M)

    assert listed("sm_70", "sm_100", "compute_100") == ["sm_70.cubin", "sm_100.cubin", "sm_100.ptx"]
    assert listed("sm_80") == ["sm_80.cubin"]


@case("the same bytes from two folders, compiled or kept; a header that has changed is compiled again")
def _(work):
    def content(folder, kept):
        compiled(f"{work}/{folder}", f"{work}/{kept}", *gencode("sm_80"))
        return slurp(f"{work}/{folder}/kernels.o")

    assert content("a", "kept") == content("a/b/c", "others") == content("d", "kept")
    assert len(os.listdir(f"{work}/kept")) == 1, os.listdir(f"{work}/kept")
    write(f"{work}/d/scale.h", b"#define SCALE 3\n")
    assert content("d", "kept") != content("a", "kept")
    assert len(os.listdir(f"{work}/kept")) == 2, os.listdir(f"{work}/kept")


@case("an option of nvcc that is not known, a generation, an error in a kernel: an error, and no object")
def _(work):
    for words, said in ((["--use_fast_math", *gencode("sm_80")], "unrecognized arguments: --use_fast_math"),
                        (["-gencode", "arch=compute_80,code=sm_86"], "arch=compute_N,code=sm_N"), ([], "no -gencode"),
                        (gencode("sm_60"), "only allowed for architecture compute_70"),
                        (["-DVALUE=2nd", *gencode("sm_80")], "kernels.cu(4): error")):
        done = compiled(work, f"{work}/kept", *words, code=None)
        assert done.returncode and said in done.stderr, (words, done.stderr)
    assert not os.path.exists(f"{work}/kernels.o") and not os.path.exists(f"{work}/kept")


if __name__ == "__main__":
    sys.exit(case.main())
