# SPDX-License-Identifier: Apache-2.0
"""NVRTC 12.9 and what disassembles, as PyPI has them (tests/requirements-cuda.txt).

They are looked for in $NVRTC, in the build folder's nvrtc/ and venv/ and among Python's modules; PyPI has them:
    pip install --target nvrtc -r tests/requirements-cuda.txt

What was compiled is kept in the build folder's nvrtc-kept/, by all that it was made of: check_sm70.py and check_sass.py
want the same.
"""
import ctypes
import functools
import glob
import hashlib
import os
import pickle
import re
import shutil
import site
import tempfile

from support import BUILD, SOURCE, Skip

KERNELS = os.path.join(SOURCE, "train", "cuda", "kernels")
FILES = sorted(glob.glob(os.path.join(KERNELS, "*.cu")))


def places():
    installed = glob.glob(os.path.join(BUILD, "venv", "lib", "python3*", "site-packages"))
    return [p for p in (os.environ.get("NVRTC"), os.path.join(BUILD, "nvrtc"), *installed, *site.getsitepackages(),
                        site.getusersitepackages()) if p]


def library():
    """(the library, include folders)."""
    for place in places():
        found = glob.glob(os.path.join(place, "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.12"))
        headers = os.path.join(place, "nvidia", "cuda_runtime", "include")
        if found and os.path.exists(os.path.join(headers, "cuda_fp16.h")):
            return ctypes.CDLL(found[0]), [headers]
    raise Skip("there is no NVRTC 12.9 (PyPI: tests/requirements-cuda.txt)")


def tool(name):
    """The path of a program of the toolkit that PyPI has, else of an installed one."""
    for place in places():
        for path in glob.glob(os.path.join(place, "nvidia", "*", "bin", name)):
            return path
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if not path:
        raise Skip(f"there is no {name} (PyPI: tests/requirements-cuda.txt)")
    return path


@functools.lru_cache(None)
def headers():
    """A digest of all that a file of kernels may include."""
    digest = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(SOURCE, "train", "cuda", "kernels", "*.h")) +
                       [os.path.join(SOURCE, "train", "backend", "input.h")]):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def compile_file(path, arch, value):
    """(what ptxas says of each kernel of a file: {name: (registers, bytes spilled)}, the machine code)."""
    nvrtc, includes = library()
    with open(path, "rb") as file:
        text = file.read()
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"-DCUDA_VALUE={value}",
               "-I" + os.path.join(SOURCE, "train"), "--ptxas-options=-v", *("-I" + i for i in includes)]
    made_of = repr((text, headers(), options, os.stat(nvrtc._name).st_mtime_ns))
    kept = os.path.join(BUILD, "nvrtc-kept", hashlib.sha256(made_of.encode()).hexdigest())
    if os.path.exists(kept):
        with open(kept, "rb") as file:
            return pickle.load(file)
    found = compiled(nvrtc, path, text, options)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(kept), delete=False) as file:
        pickle.dump(found, file)
    os.replace(file.name, kept)
    return found


def compiled(nvrtc, path, text, options):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, path.encode(), 0, None, None) == 0
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    code = nvrtc.nvrtcCompileProgram(program, len(options), array)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    words = log.value.decode(errors="replace")
    assert code == 0, words[-3000:]
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    machine = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, machine)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    found = {}
    for name, rest in re.findall(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry|\Z)", words, re.S):
        registers = re.search(r"Used (\d+) registers", rest)
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", rest)
        assert registers and spills, words[-3000:]
        found[name] = int(registers.group(1)), int(spills.group(1)) + int(spills.group(2))
    assert found, f"no word of ptxas: {words[-3000:]}"
    return found, machine.raw
