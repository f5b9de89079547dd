# SPDX-License-Identifier: Apache-2.0
"""The PTX of the kernels of train/cuda/, as files ARCH-TYPE-SOURCE.ptx in one folder.

nvcc makes it, if the machine has an nvcc that knows the architecture; otherwise NVRTC 12.9 of PyPI
(tests/cuda/kernels/nvrtc.py).
"""
import concurrent.futures
import ctypes
import functools
import glob
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
    return ["fp16"] if arch < 80 else ["fp16", "bf16"]


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
def made(arch):
    if not nvcc(arch):
        nvrtc.library()  # Skip if there is none
    os.makedirs(FOLDER, exist_ok=True)
    jobs = [(arch, value, path, os.path.join(FOLDER, f"{arch}-{value}-{os.path.basename(path)[:-3]}.ptx"))
            for value in types_of(arch) for path in nvrtc.FILES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: (by_nvcc if nvcc(arch) else by_nvrtc)(*job), jobs))
    return FOLDER
