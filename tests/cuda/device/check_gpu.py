#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train on a GPU: conformance of kernels, steps and runs (make check-gpu), within ten minutes.

    check_gpu.py [--device cuda] [--against cpu] [--out FOLDER] [--budget SECONDS] [--only PATTERN] [PART...]
    check_gpu.py --budget 3600 curve   as long as it takes, which is not among the parts that run by themselves
    check_gpu.py --summary check.jsonl       the page of stored results

Parts, in this order:
    machine   what is here
    build     kernel tests, by nvcc, where nobody brought them
    kernels   every kernel beside formulas in double, in fp16 and bf16
    steps     whole steps beside ref and cpu: the same bits twice, errors of logits, gradients and statistics
    cudnn     the same with convolutions by cuDNN (--engine cudnn)
    times     the time of each launch of a step beside the plan's model (gpu-loop kernels); all of them go into
              bench/results/DATE-DEVICE-launches.json, or into FOLDER
    parity    gradients beside PyTorch's in float64; errors at most 1.1 times those of its own autocast
    runs      chex-train: the same bytes twice, resumed, after kills and signals; from CPU to GPU and back; out of
              memory, a damaged record, a loss that is not finite
    ranks     NCCL with one rank in the graph of a step; two ranks on one GPU; where there are two GPUs NCCL with two
    sanitize  the four tools of compute-sanitizer over small shapes and one step
    curve     only where it is named: ten epochs on 8,192 synthetic images, beside the curve of the CPU; data wait, busy

Each part has a limit of its own, of parts that are named an equal share of the budget where that is more, and writes
what it found at once: gpu_results.py says where.  With --device cpu all but the kernels and the sanitizer runs without
a GPU, which tests this program; with --device cuda-emulated too.
Exit status: 0 good, 1 something failed, 77 there is no GPU, or nothing could run.
"""
import argparse
import glob
import json
import os
import re
import sys

import curve
import gpu_ranks
import gpu_results
import runs
from gpu_results import BUILD, HERE, Missing, ROOT, Results, program, python_with, tool

HALVES = ["fp16", "bf16"]
ROUNDOFF = {"fp16": 2.0 ** -11, "bf16": 2.0 ** -8, "tf32": 2.0 ** -11, "fp32": 2.0 ** -24}
# (model, side, images, steps, beside): a batch that small sides need, so that a channel has more than two values
STEPS = [("densenet-micro", 32, 8, 10, "ref"), ("densenet-micro", 32, 8, 10, "cpu"), ("densenet121", 32, 16, 2, "ref"),
         ("resnet50", 64, 8, 2, "cpu"), ("densenet121", 224, 16, 2, "cpu")]
QUICK_STEPS = STEPS[:2]
CUDNN_STEPS = [("densenet-micro", 32, 8, 10, "ref"), ("resnet50", 64, 8, 2, "cpu")]
PARITY = [("densenet121", 64, 16), ("resnet50", 64, 16), ("densenet121", 224, 16)]
TOOLS = {"memcheck": ["--leak-check", "full"], "racecheck": [], "initcheck": [], "synccheck": []}
LIMITS = {"machine": 20, "build": 120, "kernels": 60, "steps": 110, "cudnn": 60, "times": 40, "parity": 110,
          "runs": 150, "ranks": 100, "sanitize": 150, "curve": 600}
BY_NAME = ("curve",)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--against", default="cpu", help="the device that runs begin and end on")
    parser.add_argument("--precisions", default=None, help="default: fp16,bf16; fp32 of other devices than cuda")
    parser.add_argument("--out", default=os.environ.get("OUT"), help="default: gpu-results of the build folder")
    parser.add_argument("--budget", type=float, default=570)
    parser.add_argument("--quick", action="store_true", help="the smallest shapes alone")
    parser.add_argument("--only", default="", help="cases whose name has this regular expression")
    parser.add_argument("--images", type=int, default=8192, help="of the part curve")
    parser.add_argument("--epochs", type=int, default=10, help="of the part curve")
    parser.add_argument("--summary", metavar="FILE", help="the page of stored results")
    parser.add_argument("part", nargs="*", help=" ".join(LIMITS))
    o = parser.parse_args()
    if any(p not in LIMITS for p in o.part):
        parser.error(f"parts are: {' '.join(LIMITS)}")
    o.pages = o.out or os.path.join(ROOT, "bench", "results")
    o.out = o.out or os.path.join(BUILD, "gpu-results")
    o.precisions = (o.precisions or ("fp16,bf16" if o.device in ("cuda", gpu_results.EMULATED) else "fp32")).split(",")
    return o


# ---- machine, build ----------------------------------------------------------------------------------------------

def check_machine(r, _):
    for what, words in gpu_results.machine_facts().items():
        r.record(what, "fact", value=words)
    for name in ("chex-train", "gpu-steps", "train-step"):
        def starts(name=name):
            done = r.run([program(name), "--version"], None)
            assert done.returncode in (0, 2), f"does not start: {done.stderr.strip()[-300:]}"
        r.case(f"{name} starts", starts)


def build_there(r, _):
    """Where a bundle brought them there is nothing to do."""
    try:
        for name in kernel_tests():
            program(name)
        r.record("kernel tests", "ok", note="are here")
        return
    except Missing:
        pass
    r.case("kernel tests by nvcc", lambda: gpu_results.build_by_nvcc(r))


def kernel_tests():
    """Names of the programs: of a bundle, else by their sources."""
    found = glob.glob(os.path.join(ROOT, "bin", "*_kernels"))
    found = found or glob.glob(os.path.join(ROOT, "tests", "cuda", "kernels", "*_kernels.cc"))
    return sorted(os.path.splitext(os.path.basename(path))[0] for path in found)


# ---- kernels -----------------------------------------------------------------------------------------------------

def check_kernels(r, _):
    for name in kernel_tests():
        try:
            path = program(name)
        except Missing as e:
            r.record(name, "skip", why=str(e))
            continue
        try:
            done = r.run([path], None, 30, env=dict(os.environ, KERNELS_POISON="1"))
        except gpu_results.TooLong as e:
            r.record(name, "left out", why=str(e))
            continue
        kernel_cases(r, name, done)


def kernel_cases(r, name, done):
    """A line "ok   fp16: 1x1 64 to 128 (36 comparisons, largest relative error 0.0003)" is a case."""
    why = []
    if done.returncode == 77:
        raise Missing(done.stdout.splitlines()[0].replace("skip: ", ""))
    for line in done.stdout.splitlines():
        found = re.match(r"(ok  |FAIL) (.*) \((\d+) comparisons, largest relative error (.*)\)$", line)
        if found:
            more = {"why": "; ".join(why)[:600]} if why else {}
            r.record(f"{name}: {found.group(2)}", found.group(1).strip(), comparisons=int(found.group(3)),
                     error=float(found.group(4)), **more)
            why = []
        elif line.startswith("     "):
            why.append(line.strip())
    if done.returncode not in (0, 1):
        r.record(name, "FAIL", why=f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")


# ---- steps -------------------------------------------------------------------------------------------------------

def compare_steps(r, o, problems, engine):
    for model, side, images, steps, beside in problems:
        if beside == o.device:
            continue
        for precision in o.precisions:
            def compare(words=(model, side, images, steps), beside=beside, precision=precision):
                done = r.run([program("gpu-steps", o.device), f"{o.device}:{precision}", beside, *words, engine], None)
                if done.returncode == 77 or re.search("has no cuDNN|--engine cudnn: ", done.stderr):
                    raise Missing(done.stderr.strip())
                assert done.stdout.startswith("{"), f"exit code {done.returncode}: {done.stderr.strip()[-400:]}"
                return judge_steps(json.loads(done.stdout), precision)
            r.case(f"{model}, {side} px, batch {images}, {precision}{', cuDNN' if engine == 'cudnn' else ''} "
                   f"beside {beside}", compare)


def check_steps(r, o):
    compare_steps(r, o, QUICK_STEPS if o.quick else STEPS, "own")


def check_cudnn(r, o):
    compare_steps(r, o, CUDNN_STEPS[:1] if o.quick else CUDNN_STEPS, "cudnn")


def judge_steps(found, precision):
    """Hard: the same bits twice, numbers, a network that is the same one.  How exact it is, parity judges."""
    assert found["same_bits"], f"the second run has other bits: {found}"
    assert found["same_without_graph"], f"other bits without a graph: {found}"
    assert found.get("same_with_pdl") is not False, f"other bits where kernels begin early: {found}"
    assert found.get("same_with_nccl") is not False, f"other bits with sums of one rank by NCCL: {found}"
    for what in ("logits", "gradients", "statistics", "evaluated", "median"):
        assert found[what] is not None, f"{what} are not finite"
    assert found["precision"] == precision, f"it computes in {found['precision']}"
    assert found["statistics"] <= 32 * ROUNDOFF[precision] + 1e-5, f"statistics are {found['statistics']:.3g} off"
    assert found["logits"] < 0.9 and found["gradients"] < 0.9, \
        f"not the same network: logits {found['logits']:.3g}, gradients {found['gradients']:.3g} off"
    return {k: found[k] for k in ("logits", "statistics", "evaluated", "gradients", "median", "worst", "worst_error",
                                  "skipped", "bytes", "loss", "against_loss")}


# ---- times of launches -------------------------------------------------------------------------------------------

def check_times(r, o):
    words = ["fp16", "densenet121", 224, 64] if o.device == "cuda" else ["fp16", "densenet-micro", 32, 2, 2]
    found = gpu_results.measured_launches(r, o.device, *words)
    gpu_results.record_kernels(r, found)
    facts = gpu_results.facts_of(r.lines)
    facts = facts if "gpu" in facts else gpu_results.machine_facts()
    with open(gpu_results.page_of(facts, o.pages, "-launches") + ".json", "w", encoding="utf-8") as file:
        json.dump({"machine": facts, **found}, file, indent=1)
        file.write("\n")


# ---- parity ------------------------------------------------------------------------------------------------------

def check_parity(r, o):
    python = python_with("torch", "torchvision", "numpy")
    shapes = [("densenet121", 32, 8)] if o.quick else PARITY
    for model, side, images in shapes:
        for precision in o.precisions:
            def compare(words=(model, side, images), precision=precision):
                done = r.run([python, os.path.join(HERE, "parity.py"), program("train-step", o.device), o.device,
                              precision, *words], None)
                if done.returncode == 77:
                    raise Missing(done.stdout.strip().splitlines()[-1])
                assert done.returncode == 0, (done.stdout + done.stderr).strip()[-500:]
                found = json.loads(done.stdout.strip().splitlines()[-1])
                for what in ("gradients", "median"):
                    assert found[what] <= 1.1 * found[f"torch_{what}"], \
                        f"{what}: {found[what]:.4g} off, PyTorch's autocast {found[f'torch_{what}']:.4g}: {found}"
                return found
            r.case(f"{model}, {side} px, batch {images}, {precision} beside float64", compare)


# ---- sanitizers --------------------------------------------------------------------------------------------------

def check_sanitize(r, o):
    sanitizer = tool("compute-sanitizer")
    commands = [[name, "small"] for name in kernel_tests()]
    commands.append(["gpu-steps", f"{o.device}:fp16", "ref", "densenet-micro", "32", "2", "1"])
    for words in commands:
        for name, more in TOOLS.items():
            def clean(words=tuple(words), name=name, more=tuple(more)):
                command = [sanitizer, "--tool", name, *more, "--error-exitcode", "9", "--print-limit", "20",
                           program(words[0]), *words[1:]]
                done = r.run(command, None, 60)
                said = done.stdout + done.stderr
                if re.search(r"(?i)device not supported|unable to (find|attach)|failed to initialize", said):
                    raise Missing("compute-sanitizer does not take this device: " + said.strip()[-200:])
                assert done.returncode != 9, said[said.find("========="):][:600]
                assert done.returncode == 0, f"exit code {done.returncode}: {said.strip()[-400:]}"
            r.case(f"{name}: {' '.join(words)}", clean)


def main():
    o = options()
    if o.summary:
        sys.stdout.write(gpu_results.summary(gpu_results.read_results(o.summary)))
        return 0
    if o.device == "cuda":
        why = gpu_results.no_gpu()
        if why:
            print(f"skip: check-gpu: there is no GPU: {why}")
            return 77
    functions = {"machine": check_machine, "build": build_there, "kernels": check_kernels, "steps": check_steps,
                 "cudnn": check_cudnn, "times": check_times, "parity": check_parity, "runs": runs.check_runs,
                 "ranks": gpu_ranks.check_ranks, "sanitize": check_sanitize, "curve": curve.check_curve}
    on_gpu = ("build", "kernels", "sanitize")
    r = Results(o.out, "check", o.budget)
    r.only = o.only
    chosen = o.part or [n for n in LIMITS if n not in BY_NAME and (o.device == "cuda" or n not in on_gpu)]
    for name in chosen:
        # an emulated GPU is there to test this program, however long it takes
        limit = LIMITS[name] * (4 if o.device == gpu_results.EMULATED else 1)
        limit = max(limit, o.budget / len(chosen)) if o.part else limit
        r.part(name, limit, lambda r, f=functions[name]: f(r, o))
    count = gpu_results.counts(r.lines)
    print(f"results: {r.out}")
    if count["left out"]:
        print(f"{count['left out']} cases were left out for want of time")
    print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip'] + count['left out']} skipped")
    return r.code()


if __name__ == "__main__":
    sys.exit(main())
