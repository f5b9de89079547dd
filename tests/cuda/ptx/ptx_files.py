# SPDX-License-Identifier: Apache-2.0
"""The PTX of the kernels of train/cuda/, as files ARCH-TYPE-SOURCE.ptx in one folder.

nvcc makes it, if the machine has an nvcc that knows the architecture; otherwise NVRTC 12.9 of PyPI
(tests/cuda/kernels/nvrtc.py).  A file is kept until the kernel, a header, the compiler or this script changes.
"""
import concurrent.futures
import ctypes
import functools
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import threading

from support import BUILD, SOURCE

sys.path.insert(0, os.path.join(SOURCE, "tests", "cuda", "kernels"))
import nvrtc

FOLDER = os.path.join(BUILD, "ptx-files")
making = threading.Lock()


def types_of(arch):
    return ["fp16"] if arch < 80 else ["fp16", "bf16", "tf32"]


@functools.lru_cache(None)
def nvcc(arch):
    """The path of an nvcc that compiles for this architecture, or None."""
    path = shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if not path:
        return None
    known = subprocess.run([path, "--list-gpu-arch"], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return path if f"compute_{arch}" in known else None


def by_nvcc(arch, value, path, to):
    subprocess.run([nvcc(arch), "-std=c++17", "-O3", "-lineinfo", "-I" + os.path.join(SOURCE, "train"),
                    f"-DCUDA_VALUE={value}", f"-arch=compute_{arch}", "-ptx", "-o", to, path], check=True)


def by_nvrtc(arch, value, path, to):
    library, includes = nvrtc.library()
    options = [f"--gpu-architecture=compute_{arch}", "--std=c++17", "-lineinfo", f"-DCUDA_VALUE={value}",
               "-I" + os.path.join(SOURCE, "train"), *("-I" + i for i in includes)]
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    with open(path, "rb") as file:
        assert library.nvrtcCreateProgram(ctypes.byref(program), file.read(), path.encode(), 0, None, None) == 0
    assert library.nvrtcCompileProgram(program, len(options), array) == 0, f"NVRTC cannot compile {path}"
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    with open(to, "wb") as file:
        file.write(text.value)


def paths(arch):
    """All files of this architecture."""
    return sorted(glob.glob(os.path.join(make(arch), f"{arch}-*.ptx")))


def make(arch):
    """The folder that has the PTX of all kernels for this architecture.  Cases that need it wait for each other."""
    with making:
        return made(arch)


@functools.lru_cache(None)
def compiler(arch):
    """What changes if the compiler or this script does."""
    with open(__file__, encoding="utf-8") as file:
        script = file.read()
    if nvcc(arch):
        return script + subprocess.run([nvcc(arch), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return script + str(os.stat(nvrtc.library()[0]._name).st_mtime_ns)


def make_file(arch, value, path, to):
    """Makes a file, unless the digest beside it says that it is there."""
    with open(path, encoding="utf-8") as file:
        made_of = hashlib.sha256((file.read() + nvrtc.headers() + compiler(arch)).encode()).hexdigest()
    beside = os.path.join(FOLDER, "digests", os.path.basename(to))
    if os.path.exists(to) and os.path.exists(beside):
        with open(beside, encoding="utf-8") as file:
            if file.read() == made_of:
                return
        os.remove(beside)
    (by_nvcc if nvcc(arch) else by_nvrtc)(arch, value, path, to)
    with open(beside, "w", encoding="utf-8") as file:
        file.write(made_of)


@functools.lru_cache(None)
def made(arch):
    if not nvcc(arch):
        nvrtc.library()  # Skip if there is none
    os.makedirs(os.path.join(FOLDER, "digests"), exist_ok=True)
    jobs = [(arch, value, path, os.path.join(FOLDER, f"{arch}-{value}-{os.path.basename(path)[:-3]}.ptx"))
            for value in types_of(arch) for path in nvrtc.FILES]
    for path in set(glob.glob(os.path.join(FOLDER, f"{arch}-*.ptx"))) - {to for *_, to in jobs}:
        os.remove(path)  # of a file of kernels that is gone
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: make_file(*job), jobs))
    return FOLDER
