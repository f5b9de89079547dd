#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's cuDNN, asked without a GPU: does it take every plain convolution of the plans, on chips that are described?

    check_cudnn.py [PATTERN]     all cases, or those whose name matches

The library is found where the environment variable CUDNN says (a folder with libcudnn.so.9), where configure found it,
in the toolkit, in the environment of tests/setup.sh, or where the dynamic linker looks.  CUDNN=pypi: in that
environment first, where CI installs tests/requirements-cudnn.txt.  CUDNN_TABLE=1 prints the tables.
"""
import glob
import os
import re
import subprocess
import sys

from support import BUILD, PATIENCE, SOURCE, Cases, OtherBuild, Skip

ASK = os.path.join(BUILD, "tests", "cudnn-ask")
WORKSPACE = 32 << 20
CANNOT_ASK = 77
DEVICES = ("a100", "h200")
MODELS = {"densenet-micro": (64, 8), "densenet121": (224, 64), "resnet50": (224, 64)}
# Convolutions but the first one, whose input is gray levels; a ResNet-50 has 53.
NODES = {"densenet121": 119, "resnet50": 52}
LINE = re.compile(r"(forward|data|weights) .* ld +(\d+) +(\d+)  "
                  r"(?:engine +(\d+)  workspace +(\d+)(?:  compiled)?|refused)  x (\d+)$")

case = Cases()


def folders():
    """Where libcudnn.so.9 may be, and what it needs besides."""
    config = os.path.join(BUILD, "config.h")
    with open(config, encoding="utf-8") as file:
        found = re.search(r'#define CUDNN_LIBRARY "(/.*)/', file.read())
    wheels = glob.glob(f"{BUILD}/venv/lib/python3*/site-packages/nvidia/*/lib")
    first = wheels if os.environ.get("CUDNN") == "pypi" else [os.environ.get("CUDNN")]
    return [*first, found and found.group(1), "/usr/local/cuda/lib64", "/usr/local/cuda/lib", *wheels]


def ask(work, device, model, precision):
    """[(kind, ldx, ldy, engine or None, workspace, times)] of all convolutions of a plan."""
    if not os.path.exists(ASK):
        raise OtherBuild("no emulated GPU")
    places = [p for p in folders() if p and os.path.isdir(p)]
    stubs = [p for place in places for p in glob.glob(f"{place}/stubs/libcuda.so")]
    if stubs and subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout.find("libcuda.so.1") < 0:
        os.symlink(stubs[0], f"{work}/libcuda.so.1")  # newer ones want a driver's library, but nothing of it is called
        places.append(work)
    side, batch = MODELS[model]
    done = subprocess.run([ASK, f"{SOURCE}/tests/cuda/cudnn/{device}.json", model, str(side), str(batch), precision],
                          capture_output=True, text=True, timeout=PATIENCE,
                          env=dict(os.environ, LD_LIBRARY_PATH=":".join(places)))
    if done.returncode == CANNOT_ASK:
        raise Skip(done.stderr.strip().removeprefix("cudnn-ask: "))
    assert done.returncode in (0, 1), done.stderr
    if os.environ.get("CUDNN_TABLE"):
        print(done.stdout, end="")
    rows = []
    for line in done.stdout.splitlines()[1:]:
        kind, x, y, engine, workspace, times = LINE.match(line).groups()
        rows.append((kind, int(x), int(y), engine and int(engine), int(workspace or 0), int(times)))
    return rows


def add(device, model, precision):
    @case(f"cuDNN takes every plain convolution of {model} in {precision} on a described {device.upper()}")
    def _(work):
        rows = ask(work, device, model, precision)
        refused = [r for r in rows if r[3] is None]
        assert rows and not refused, refused
        assert max(r[4] for r in rows) <= WORKSPACE, rows
        for kind in ("forward", "data", "weights"):
            times = sum(r[5] for r in rows if r[0] == kind)
            assert times == NODES.get(model, times) and times > 0, (kind, times)


# A library with all names of cuDNN, of a CUDA that never was; none of them works.
STAND_IN = """
#include <stddef.h>
size_t cudnnGetCudartVersion(void) { return 99000; }
size_t cudnnGetVersion(void) { return 91900; }
const char *cudnnGetErrorString(int status) { return status == 1 ? "a stand-in" : ""; }
#define NO(name) int cudnn##name(void) { return 1; }
NO(Create) NO(Destroy) NO(SetStream) NO(BackendCreateDescriptor) NO(BackendDestroyDescriptor) NO(BackendSetAttribute)
NO(BackendGetAttribute) NO(BackendFinalize) NO(BackendExecute)
"""


def library(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.c", "w", encoding="ascii") as file:
        file.write(text)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", f"{path}.c", "-o", path], check=True)


def said(folder):
    """What is said of the cuDNN of a folder, which is none that works."""
    if not os.path.exists(ASK):
        raise OtherBuild("no emulated GPU")
    done = subprocess.run([ASK, f"{SOURCE}/tests/cuda/cudnn/h200.json", "densenet-micro", "32", "4", "fp16"],
                          capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env=dict(os.environ, LD_LIBRARY_PATH=folder))
    assert done.returncode == CANNOT_ASK, (done.returncode, done.stderr)
    return done.stderr


@case("a cuDNN whose cuBLAS is missing counts as missing, and does not abort; the two may lie as wheels lie")
def _(work):
    folder, other = f"{work}/nvidia/cudnn/lib", f"{work}/nvidia/cu99/lib"
    library(f"{folder}/libcudnn.so.9", STAND_IN)
    library(f"{other}/libcublasLt.so.99", "int nothing;")
    assert "a stand-in" in said(folder), said(folder)
    os.remove(f"{other}/libcublasLt.so.99")
    assert said(folder) == "cudnn-ask: libcublasLt.so.99, which libcudnn.so.9 needs, was not found\n", said(folder)


@case("a cuDNN without a call, older than 9.11, that cannot be loaded, or not a library: a message each")
def _(work):
    library(f"{work}/libcublasLt.so.99", "int nothing;")
    library(f"{work}/libcudnn.so.9", STAND_IN.replace("NO(BackendExecute)", ""))
    assert said(work) == "cudnn-ask: libcudnn.so.9 is too old: it has no cudnnBackendExecute()\n", said(work)
    library(f"{work}/libcudnn.so.9", STAND_IN.replace("91900", "90501"))
    assert said(work) == "cudnn-ask: cuDNN is 9.5.1, and 9.11 is needed\n", said(work)
    library(f"{work}/libcudnn.so.9", "extern int lacking;\n" + STAND_IN.replace("return 91900", "return lacking"))
    assert "lacking" in said(work) and "was not found" not in said(work), said(work)
    with open(f"{work}/libcudnn.so.9", "w", encoding="ascii") as file:
        file.write("no library")
    assert said(work).startswith("cudnn-ask: ") and "libcudnn.so.9: " in said(work), said(work)


for each in MODELS:
    for chip in DEVICES:
        for value in ("fp16", "bf16"):
            add(chip, each, value)

if __name__ == "__main__":
    sys.exit(case.main())
