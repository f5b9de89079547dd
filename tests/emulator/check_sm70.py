#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kernel of train/cuda/ compiled by NVRTC 12.9 for sm_70, sm_80 and sm_90, with its registers and spills
(make check-sm70).

    check_sm70.py [PATTERN]     all cases, or those whose name matches

NVRTC is looked for in $NVRTC, in the build folder's nvrtc/ and venv/ and among Python's modules; PyPI has it:
    pip install --target nvrtc -r tests/requirements-cuda.txt
Without it all is skipped.  No GPU is needed.  Spills are a failure: each is a trip to memory in an inner loop.
"""
import ctypes
import glob
import os
import re
import site
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from support import BUILD, SOURCE, Cases, Skip  # noqa: E402

TARGETS = [("sm_70", "fp16"), ("sm_80", "fp16"), ("sm_80", "bf16"), ("sm_90", "fp16"), ("sm_90", "bf16")]
FILES = sorted(glob.glob(os.path.join(SOURCE, "train", "cuda", "*.cu")))

case = Cases()


def places():
    installed = glob.glob(os.path.join(BUILD, "venv", "lib", "python3*", "site-packages"))
    return [p for p in (os.environ.get("NVRTC"), os.path.join(BUILD, "nvrtc"), *installed, *site.getsitepackages(),
                        site.getusersitepackages()) if p]


def nvrtc():
    """(the library, include folders)."""
    for place in places():
        found = glob.glob(os.path.join(place, "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.12"))
        headers = os.path.join(place, "nvidia", "cuda_runtime", "include")
        if found and os.path.exists(os.path.join(headers, "cuda_fp16.h")):
            return ctypes.CDLL(found[0]), [headers]
    raise Skip("there is no NVRTC 12.9 (PyPI: tests/requirements-cuda.txt)")


def compile_file(path, arch, value):
    """What ptxas says of each kernel of a file: {name: (registers, bytes spilled)}."""
    library, includes = nvrtc()
    with open(path, "rb") as file:
        text = file.read()
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"-DCUDA_VALUE={value}",
               "-I" + os.path.join(SOURCE, "train"), "--ptxas-options=-v", *("-I" + i for i in includes)]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text, path.encode(), 0, None, None) == 0
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    code = library.nvrtcCompileProgram(program, len(options), array)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    words = log.value.decode(errors="replace")
    assert code == 0, words[-3000:]
    found = {}
    for name, rest in re.findall(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry|\Z)", words, re.S):
        registers = re.search(r"Used (\d+) registers", rest)
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", rest)
        assert registers and spills, words[-3000:]
        found[name] = int(registers.group(1)), int(spills.group(1)) + int(spills.group(2))
    assert found, f"no word of ptxas: {words[-3000:]}"
    return found


for the_arch, the_value in TARGETS:
    for the_path in FILES:
        @case(f"{os.path.basename(the_path)} for {the_arch}, {the_value}")
        def compiles(_, path=the_path, arch=the_arch, value=the_value):
            found = compile_file(path, arch, value)
            for name, (registers, spilled) in sorted(found.items()):
                print(f"     {name}: {registers} registers, {spilled} bytes spilled")
            with open(path, encoding="utf-8") as file:
                assert "KERNEL" in file.read()
            spilling = [name for name, (_, spilled) in found.items() if spilled]
            assert not spilling, f"spills: {' '.join(spilling)}"


if __name__ == "__main__":
    sys.exit(case.main())
