#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make check-gpu, make bench-gpu and their bundle, without a GPU: what they say then, their limits of time, their pages
of stored results, and their cases with a CPU in the GPU's place.

    check_scripts.py [PATTERN]     all cases, or those whose name matches
"""
import ast
import contextlib
import glob
import io
import json
import os
import re
import shutil
import sys
import time

from support import BUILD, SOURCE, Cases, Skip, program, run
import check_gpu
import gpu_results

HERE = os.path.join(SOURCE, "tests", "cuda", "device")
BENCH = os.path.join(SOURCE, "bench")
STORED = os.path.join(HERE, "stored")
CHECK, SPEED = os.path.join(HERE, "check_gpu.py"), os.path.join(BENCH, "gpu.py")
SCRIPTS = sorted(glob.glob(os.path.join(HERE, "*.py")) + glob.glob(os.path.join(BENCH, "gpu*.py")))
OLDEST = (3, 9)

case = Cases()


def script(path, *words, code=0, **options):
    env = dict(os.environ, BUILDDIR=BUILD, **options.pop("env", {}))
    return run([sys.executable, path, *words], code, env=env, **options)


def bench():
    sys.path.insert(0, BENCH)
    import gpu
    return gpu


def quiet_results(work, budget=60):
    return gpu_results.Results(work, "check", budget)


def silently(function, *words):
    """What it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*words)
    return out.getvalue()


@case("without a GPU: one line that says so, and 77")
def _(work):
    if gpu_results.no_gpu() is None:
        raise Skip("there is a GPU")
    for path, name in ((CHECK, "check-gpu"), (SPEED, "bench-gpu")):
        done = script(path, "--out", work, code=77)
        assert done.stdout.startswith(f"skip: {name}: there is no GPU: ") and done.stdout.count("\n") == 1, done.stdout
        assert done.stderr == "" and not os.listdir(work), (done.stderr, os.listdir(work))


@case("programs say that a device is not there, and 77")
def _(_work):
    for words in (["gpu-steps", "nonsense", "ref", "densenet-micro", 32, 2, 1],
                  ["gpu-steps", "ref", "nonsense:fp16", "densenet-micro", 32, 2, 1]):
        done = run([program(words[0]), *words[1:]], 77)
        assert done.stderr == "gpu-steps: 'nonsense': not in this build\n", done.stderr
    done = run([program("gpu-steps"), "ref:fp3", "ref", "densenet-micro", 32, 2, 1], 2)
    assert "no such precision" in done.stderr, done.stderr


@case("the page of stored results: what failed first, then each part")
def _(_work):
    text = script(CHECK, "--summary", os.path.join(STORED, "check.jsonl")).stdout
    lines = text.splitlines()
    assert lines[0] == "Failed" and lines[2].startswith("FAIL     kernels: norm_kernels: bf16: 64 channels (3 s)"), text
    assert lines[2].endswith(": y: relative error 0.5, allowed are 0.006"), lines[2]
    order = [text.index(f"\n{part}\n{'-' * len(part)}\n")
             for part in ("machine", "kernels", "parity", "runs", "sanitize")]
    assert order == sorted(order), order
    assert "\nok       runs: two runs, fp16: the same bytes (8 s) files=12 best=0123456789abcdef\n" in text, text
    assert lines[-1] == "2 passed, 1 failed, 1 skipped, 1 left out for want of time", lines[-1]


@case("the tables of stored results: ours and PyTorch's by speed, kernels compared with the model")
def _(_work):
    text = script(SPEED, "--table", os.path.join(STORED, "bench.json")).stdout
    for row in ("# chex-train on a device that never was, 2000-01-01",
                "| copy by the runtime | 1,000 |  |  |  |", "| gap between nodes of a graph |  |  |  | 1.250 |",
                "| chex-train fp16 | 224 | 64 | 6,400 | 10.000 | 9.000 | 15.000 | 2.00 | 1.28 | 0.5 |",
                "| chex-train fp16, without graph | 224 | 64 | 4,000 | 16.000 | 14.400 | 24.000 | 1.25 | 1.28 | 0.5 |",
                "| PyTorch compile fp16 nhwc | 224 | 64 | 3,200 | 20.000 | 18.000 | 30.000 | 1.00 | 5.12 | 2.0 |",
                "| PyTorch eager fp16 nhwc | 224 | 64 | 2,000 | 32.000 | 28.800 | 48.000 | 0.62 | 5.12 | 2.0 |",
                "| chex-train fp16 | 224 | 64 | 16,000 | 4.000 | 3.600 | 6.000 |  | 1.28 | 0.5 |",
                "| norm_gradient (far) | 121 | 10.000 | 5.000 | 2.00 | 8.000 | 4.000 | 2.00 | 800 | 0.80 |  |",
                "| conv_fprop (far) | 120 | 5.000 | 4.000 | 1.25 | 3.000 | 2.500 | 1.20 | 600 | 0.60 | 60 |",
                "| others | 3 | 0.100 |  |  | 0.001 |  |  | 10 | 0.01 |  |",
                "- left out torch: max-fp16-nhwc 224 px batch 256 train: no time was left"):
        assert row in text.splitlines(), f"no {row!r} in\n{text}"
    rows = [text.index(words) for words in ("chex-train fp16 |", "without graph", "PyTorch compile", "PyTorch eager")]
    assert rows == sorted(rows), "not the fastest first"


@case("constants of gpu-rates --table replace a row of plan/gpu.c, or are a new one; what is no row changes nothing")
def _(work):
    place = os.path.join(work, "gpu.c")
    shutil.copy(os.path.join(SOURCE, "train", "cuda", "plan", "gpu.c"), place)

    def put(row, code=0):
        rows = os.path.join(work, "rows")
        with open(rows, "w", encoding="utf-8") as file:
            file.write(row + "\n")
        with open(rows, encoding="utf-8") as file:
            run([sys.executable, os.path.join(BENCH, "gpu_table.py"), place], code, stdin=file)
        with open(place, encoding="utf-8") as file:
            return file.read()

    before = put("no row", 1)
    names = re.findall(r'^    \{"(\w+)", \d', before, re.M)
    figures = "1.755e9, 4.210e12, 5.60e12, 612e12, 0, 50 * MIB, 1.31e-6, 228 * KIB, 64, NULL, 2},"
    assert put(f'{{"H200", 9, 132, {figures}'.replace("1.755e9", "-1"), 1) == before
    measured = f'{{"H200", 9, 132, {figures}'
    kept = re.search(r'"H200", .*, (0\.70 \* \w+), 50 \* MIB', before).group(1)
    once = put(measured)
    row = measured.replace("612e12, 0,", f"612e12, {kept},")
    assert f"    /* measured by gpu-rates */\n    {row}\n}};" in once, once
    assert put(measured) == once and re.findall(r'^    \{"(\w+)", \d', once, re.M) == names, once
    other = put(f'{{"L40S", 8, 142, {figures}')  # A100 stays the last one of its generation
    assert re.findall(r'^    \{"(\w+)", \d', other, re.M) == ["V100", "L40S", "A100", "H100", "H200"], other
    assert other.count("measured by gpu-rates */") == 2, other
    run(["cc", "-std=c11", "-fsyntax-only", "-iquote", os.path.join(SOURCE, "train"), "-I",
         os.path.join(SOURCE, "tests", "emulator"), place])


@case("a page of ncu: kinds of kernels, units, a step of two")
def _(_work):
    told = {"conv_fprop": {"launches": 2, "bytes": 7, "flops": 9, "ms": 0.5}}
    with open(os.path.join(STORED, "ncu.csv"), encoding="utf-8") as file:
        found = bench().by_kind(file.read(), told, steps=2)
    assert list(found) == ["conv_fprop", "conv_fprop_pointwise", "something_else", "norm_finalize", "norm_mask"], \
        list(found)
    conv = found["conv_fprop"]
    assert conv["launches"] == 0.5 and abs(conv["ms"] - 0.05025) < 1e-9 and abs(conv["bytes"] - 1.25e6) < 1, conv
    assert (conv["model_launches"], conv["model_bytes"], conv["flops"], conv["model_ms"]) == (2, 7, 9, 0.5), conv
    assert found["norm_finalize"]["bytes"] == 3e6 and found["norm_finalize"]["model_bytes"] is None, found


@case("every kernel has a row of its own, by the name that the model gives it")
def _(_work):
    with open(os.path.join(SOURCE, "train", "cuda", "kernels", "launch.h"), encoding="utf-8") as file:
        text = file.read()
    words = re.search(r"enum cuda_kernel_id \{(.*?)\n\};", text, re.S).group(1).replace("CUDA_KERNEL_COUNT", "")
    kinds = {word.lower() for word in re.findall(r"\bCUDA_(\w+)", words)}
    for ids in re.findall(r"#define CUDA_\w+_IDS\((.*?)\n(?!\s)", text, re.S):
        kinds |= {word.lower() for word in re.findall(r"CUDA_(\w+?)_##shape", ids)}
    kinds.add("conv_one_pass_end")  # its tile shapes are two of ONE_PASS_SHAPES
    with open(os.path.join(SOURCE, "tests", "cuda", "kernels", "kernels.txt"), encoding="utf-8") as file:
        names = {f"{name}_{value}" for name, value in re.findall(r"^(\w+) +sm_\d+ (\w+) ", file.read(), re.M)}
    assert len(kinds) > 40 and len(names) > len(kinds), (len(kinds), len(names))
    assert {bench().kind_of(name) for name in names} <= kinds, {bench().kind_of(name) for name in names} - kinds
    assert bench().kind_of("conv_wgrad_64x128_pointwise_bf16(wgrad_args, int)") == "conv_wgrad_pointwise"
    loop = emulated_loop()
    for model, side in (("densenet121", 224), ("resnet50", 224), ("densenet-micro", 32)):
        told = json.loads(run([loop, "--model", f"{gpu_results.EMULATED}:fp16", model, side, 4]).stdout)["kernels"]
        own = {kind[6:] if kind.startswith("cudnn_") else kind for kind in told}
        assert own <= kinds, own - kinds
        assert all(found["ms"] > 0 and found["bytes"] > 0 and found["launches"] > 0 for found in told.values()), told


@case("the model of gpu-loop: the products of DenseNet-121, the bytes of the optimizer")
def _(_work):
    told = json.loads(run([emulated_loop(), "--model", f"{gpu_results.EMULATED}:fp16", "densenet121", 224, 2]).stdout)
    flops = sum(found["flops"] for found in told["kernels"].values())
    # Forward, gradients of data and of weights; the stem has none of data, and 4 x 4 cells of two planes, not 147 taps.
    wanted = 2 * 2 * (3 * densenet121_products() - 147 * 64 * 112 ** 2)
    assert abs(flops / wanted - 1) < 0.02, (flops, wanted)
    # Gradient, parameter, two moments read; three of them written.
    assert abs(told["kernels"]["optimizer"]["bytes"] / (28 * 6968206) - 1) < 0.05, told["kernels"]["optimizer"]


@case("gpu-loop kernels: every launch of a step once, with the figures of its model")
def _(_work):
    words = [f"{gpu_results.EMULATED}:fp16", "densenet-micro", 32, 2]
    told = json.loads(run([emulated_loop(), "--model", *words]).stdout)
    for more in ([], ["graph"]):
        found = json.loads(run([emulated_loop(), "kernels", *words, 1, *more]).stdout)
        assert found["graph"] == bool(more) and found["runs"] == 1 and found["modelled_on"] == told["modelled_on"]
        sums = {}
        for line in found["launches"]:
            kind = sums.setdefault(line["kind"], {"launches": 0, "bytes": 0, "flops": 0, "ms": 0, "measured": 0})
            assert bench().kind_of(line["kernel"]) == line["kind"], line
            assert line["us"] > 0 and line["limit"] in LIMITS, line
            assert abs(line["ratio"] / (line["us"] / line["model_us"]) - 1) < 0.01, line
            for name, value in (("launches", line["times"]), ("bytes", line["bytes"]), ("flops", line["flops"]),
                                ("ms", line["model_us"] / 1e3), ("measured", line["us"] / 1e3)):
                kind[name] += value
        assert set(sums) == set(told["kernels"]) == set(found["kernels"]), (sums, told)
        for name, kind in sums.items():
            of_kind, wanted = found["kernels"][name], told["kernels"][name]
            for what in ("launches", "bytes", "flops"):
                assert kind[what] == wanted[what] == of_kind[what], (name, what, kind, wanted, of_kind)
            # the figures of launches are rounded to 1 ns
            assert abs(kind["ms"] - wanted["ms"]) < 1e-4 and abs(of_kind["model_ms"] - wanted["ms"]) < 1e-5, name
            assert abs(kind["measured"] - of_kind["ms"]) < 1e-4, name
        assert found["launches"][0]["kind"] == "input" and found["launches"][-1]["kind"] == "optimizer"
    assert "has no launches" in run([emulated_loop(), "kernels", "cpu", *words[1:]], 77).stderr
    assert "usage" in run([emulated_loop(), "kernels", *words, "0"], 2).stderr
    text = run([emulated_loop(), "kernels", *words, 1, "table"]).stdout
    count = sum(kind["launches"] for kind in told["kernels"].values())
    assert re.search(rf"^ .* {count}  a step; modelled on {told['modelled_on']}$", text, re.M), text
    assert len(re.findall(r"^ +[\d.]+ .* \(\d+ x \d+.*\)$", text, re.M)) == count, text


LIMITS = ("DRAM", "L2", "products", "issue", "shared memory")


def densenet121_products():
    """Multiply-adds of the convolutions of an image of 224 pixels (Huang 2017, table 1); transitions pool first."""
    total, channels, side = 147 * 64 * 112 ** 2, 64, 56
    for layers in (6, 12, 24, 16):
        for _ in range(layers):
            total += (channels * 128 + 9 * 128 * 32) * side ** 2
            channels += 32
        if layers != 16:
            side //= 2
            total += channels * channels // 2 * side ** 2
            channels //= 2
    return total


def emulated_loop():
    path = os.path.join(BUILD, "tests", "gpu-loop-emulated")
    if not os.access(os.path.join(BUILD, "tests", "gpu-steps-emulated"), os.X_OK):
        raise Skip("this build has no emulated GPU")
    run(["make", "-s", "-C", BUILD, "tests/gpu-loop-emulated"])
    return path


def gpu_loop():
    """It is built with make bench-gpu alone."""
    run(["make", "-s", "-C", BUILD, "gpu-loop"])
    return program("gpu-loop")


@case("a part that hangs costs its limit, its children end, and the next part has its turn")
def _(work):
    r = quiet_results(work)
    mark = os.path.join(work, "mark")

    def hangs(r):
        r.record("before", "ok")
        r.run(["sh", "-c", f"(sleep 3; touch {mark}) & wait"])

    begun = time.monotonic()
    said = silently(r.part, "hangs", 1, hangs) + silently(r.part, "next", 5, lambda r: r.record("it", "ok", value=1))
    assert time.monotonic() - begun < 3, "it took the time that it wanted"
    stored = gpu_results.read_results(os.path.join(work, "check.jsonl"))
    assert [(line["part"], line["outcome"]) for line in stored] == \
        [("hangs", "ok"), ("hangs", "left out"), ("next", "ok")], stored
    assert "left out hangs: sh, 1 s" in said, said
    time.sleep(3)
    assert not os.path.exists(mark), "a child lived on"


@case("a result is in the file before the next case begins; a part that breaks has failed and no other")
def _(work):
    r = quiet_results(work)

    def first(r):
        r.case("one", lambda: {"value": 1.5})
        assert gpu_results.read_results(os.path.join(work, "check.jsonl"))[0]["value"] == 1.5
        raise KeyError("planted")

    def second(_):
        raise gpu_results.Missing("ncu was not found")

    silently(r.part, "first", 9, first)
    silently(r.part, "second", 9, second)
    silently(r.part, "third", 9, lambda r: r.case("wrong", lambda: check_gpu.judge_steps({"same_bits": False}, "fp16")))
    outcomes = [(line["part"], line["outcome"]) for line in r.lines]
    assert outcomes == [("first", "ok"), ("first", "FAIL"), ("second", "skip"), ("third", "FAIL")], outcomes
    assert r.lines[2]["why"] == "ncu was not found" and r.code() == 1
    r = quiet_results(work, budget=0)
    silently(r.part, "late", 9, first)
    assert r.lines[0]["outcome"] == "left out" and r.code() == 77, r.lines


@case("lines of the kernel tests become cases")
def _(work):
    class Done:
        returncode = 1
        stdout = ("     y: relative error 0.5, allowed are 0.006\n"
                  "FAIL fp16: 64 channels (9 comparisons, largest relative error 0.5)\n"
                  "ok   fp16: 1x1 64 to 128, two tiles of pixels (36 comparisons, largest relative error 0.00026)\n"
                  "1 passed, 1 failed, 0 skipped\n")
        stderr = ""

    r = quiet_results(work)
    silently(check_gpu.kernel_cases, r, "norm_kernels", Done)
    assert [(line["case"], line["outcome"], line["error"]) for line in r.lines] == \
        [("norm_kernels: fp16: 64 channels", "FAIL", 0.5),
         ("norm_kernels: fp16: 1x1 64 to 128, two tiles of pixels", "ok", 0.00026)], r.lines
    assert r.lines[0]["why"] == "y: relative error 0.5, allowed are 0.006" and "why" not in r.lines[1]
    Done.returncode, Done.stdout, Done.stderr = 3, "", "line 9: cudaMalloc: cudaErrorMemoryAllocation"
    silently(check_gpu.kernel_cases, r, "norm_kernels", Done)
    assert r.lines[-1]["outcome"] == "FAIL" and "cudaErrorMemoryAllocation" in r.lines[-1]["why"]


GOOD = {"same_bits": True, "same_without_graph": True, "precision": "fp16", "logits": 0.01, "gradients": 0.1,
        "statistics": 1e-3, "evaluated": 0.01, "median": 0.1, "worst": "w", "worst_error": 0.3, "skipped": 0,
        "bytes": 1, "loss": [1], "against_loss": [1]}


@case("errors of steps are found: other bits, NaN, another network, another precision")
def _(_work):
    check_gpu.judge_steps(GOOD, "fp16")
    for wrong in ({"same_bits": False}, {"same_without_graph": False}, {"same_with_nccl": False},
                  {"same_with_pdl": False}, {"gradients": None}, {"gradients": 1.0}, {"logits": 1.4},
                  {"statistics": 0.1}, {"precision": "bf16"}):
        try:
            check_gpu.judge_steps(dict(GOOD, **wrong), "fp16")
        except AssertionError:
            continue
        raise AssertionError(f"{wrong} passed")


@case("a CPU in the GPU's place: steps compared with ref, two runs, a micro-batch too large")
def _(work):
    done = script(CHECK, "--device", "cpu", "--against", "ref", "--quick", "--out", work, "--only",
                  "beside ref|the same bytes$|out of memory|resumed", "steps", "runs")
    stored = gpu_results.read_results(os.path.join(work, "check.jsonl"))
    assert sorted({line["part"] for line in stored}) == ["runs", "steps"], done.stdout
    assert all(line["outcome"] == "ok" for line in stored) and len(stored) >= 4, done.stdout
    assert sorted(os.listdir(work)) == ["check.jsonl", "check.log", "check.txt"], os.listdir(work)


@case("ranks: NCCL with one and with two, two on one GPU, a rank that is killed, on emulated GPUs", slow=True)
def _(work):
    for pattern, count, gpus in (("one rank|on one GPU", 2, "90"), ("two GPUs: NCCL|killed", 2, "90 90")):
        done = script(CHECK, "--device", "cuda-emulated", "--precisions", "fp16", "--out", f"{work}/{count}", "--only",
                      pattern, "ranks", env={"EMULATOR_DEVICES": gpus})
        stored = gpu_results.read_results(f"{work}/{count}/check.jsonl")
        assert [line["outcome"] for line in stored] == ["ok"] * count, done.stdout
        shutil.rmtree(f"{work}/{count}")


@case("times of launches, on the emulated GPU; a page of them")
def _(work):
    emulated_loop()
    done = script(CHECK, "--device", "cuda-emulated", "--out", work, "times")
    stored = gpu_results.read_results(os.path.join(work, "check.jsonl"))
    kinds = {line["case"]: line for line in stored if line["outcome"] == "ok"}
    assert kinds["optimizer"]["launches"] == 1 and kinds["optimizer"]["model_ms"] > 0, done.stdout
    with open(glob.glob(os.path.join(work, "*-launches.json"))[0], encoding="utf-8") as file:
        page = json.load(file)
    assert page["kernels"].keys() == kinds.keys() and "gpu" in page["machine"], page["machine"]
    assert len(page["launches"]) == sum(line["launches"] for line in kinds.values()), page["kernels"]


@case("a CPU in the GPU's place: every case of a run", slow=True)
def _(work):
    script(CHECK, "--device", "cpu", "--against", "ref", "--out", work, "runs", "parity", "--quick")


@case("the emulated GPU in its place: steps in fp16 and bf16", slow=True)
def _(work):
    if not os.access(os.path.join(BUILD, "tests", "gpu-steps-emulated"), os.X_OK):
        raise Skip("this build has no emulated GPU")
    done = script(CHECK, "--device", "cuda-emulated", "--quick", "--out", work, "--only", "beside ref", "steps")
    assert done.stdout.count("ok       steps: ") == 2, done.stdout


@case("a CPU in the GPU's place: two equal curves; a curve that is worse has failed")
def _(work):
    script(CHECK, "--device", "cpu", "--against", "cpu", "--images", "120", "--epochs", "2", "--out", work, "curve")
    stored = gpu_results.read_results(os.path.join(work, "check.jsonl"))
    assert [line["outcome"] for line in stored] == ["ok", "ok"], stored
    ours, theirs = stored[1], stored[0]
    assert (ours["loss"], ours["auroc"]) == (theirs["loss"], theirs["auroc"]), stored
    assert len(ours["loss"]) == len(ours["auroc"]) == 2 and ours["img_s"] > 0 and 0 <= ours["data_wait"] <= 1, ours
    for worse in ({"loss": [9.0, 9.0]}, {"auroc": [0.0, 0.0]}, {"loss": [0.1]}):
        try:
            check_gpu.curve.judge({**ours, **worse}, {**theirs, "auroc": [0.5, 0.5]})
        except AssertionError:
            continue
        raise AssertionError(f"{worse} passed")


@case("a CPU in the GPU's place: speeds, tables")
def _(work):
    gpu_loop()
    done = script(SPEED, "--device", "cpu", "--quick", "--seconds", "0.05", "--model", "densenet-micro", "--out", work)
    assert "## Training, densenet-micro" in done.stdout and "## Inference" in done.stdout, done.stdout
    names = sorted(os.listdir(work))
    assert names[-3:] == ["bench.jsonl", "bench.log", "bench.txt"] and names[0].endswith("-no-gpu.json"), names


@case("the emulated GPU in its place: speeds, and the model of its kernels if there is no profiler")
def _(work):
    emulated_loop()
    words = ["--device", "cuda-emulated", "--quick", "--seconds", "0", "--model", "densenet-micro", "--out", work]
    done = script(SPEED, *words, "kernels")
    assert "## Launches of a step of 2 images, fp16" in done.stdout, done.stdout
    assert re.search(r"^\| conv_one_pass \| \d+ \| [\d.]+ \| [\d.]+ \| ", done.stdout, re.M), done.stdout
    for parts in (["ncu"], ["steps", "ncu"]):
        done = script(SPEED, *words, *parts, code=0 if "steps" in parts else 77, env={"PATH": "/usr/bin:/bin"})
        assert len(parts) == 1 or done.stdout.count(" chex-train fp16") >= 4, done.stdout
        assert len(parts) == 1 or "| chex-train fp16, PDL |" in done.stdout, done.stdout
        for words_of_it in ("- the model: ", "skip     ncu: all of it: ncu was not found"):
            assert words_of_it in done.stdout, done.stdout
    pages = [name for name in sorted(os.listdir(work)) if name.endswith(".json")]
    assert len(pages) == 3 and pages[0].endswith("-no-gpu-2.json"), pages
    text = script(SPEED, "--table", os.path.join(work, "bench.jsonl")).stdout
    assert "## Training, densenet-micro" in text, text


@case(f"every script is Python {OLDEST[0]}.{OLDEST[1]}")
def _(_work):
    assert len(SCRIPTS) >= 7, SCRIPTS
    for path in SCRIPTS:
        with open(path, encoding="utf-8") as file:
            ast.parse(file.read(), path, feature_version=OLDEST)


@case("bundle.sh is clean for shellcheck, and reports missing tools")
def _(work):
    path = os.path.join(HERE, "bundle.sh")
    bare = dict(os.environ, NVCC=os.path.join(work, "nvcc"))
    done = run(["sh", path, SOURCE, os.path.join(work, "b")], 77, env=bare)
    assert done.stdout == "skip: gpu-bundle: there is no nvcc in PATH\n" and not os.listdir(work), done.stdout
    assert "usage" in run(["sh", path], 1).stderr
    if not shutil.which("shellcheck"):
        raise Skip("shellcheck is not installed")
    run(["shellcheck", path])


@case("a bundle of this build starts where nothing but glibc is")
def _(work):
    path, out = os.path.join(HERE, "bundle.sh"), os.path.join(work, "bundle")
    done = run(["sh", path, "--pack", SOURCE, BUILD, out], env=dict(os.environ, MOST_MIB="400"))
    there = os.listdir(os.path.join(out, "bin"))
    assert {"chex-train", "gpu-steps", "train-step"} <= set(there), (there, done.stderr)
    assert "without conv_kernels" in done.stderr or "conv_kernels" in there, done.stderr
    done = script(os.path.join(out, "tests", "cuda", "device", "check_gpu.py"), "--help")
    assert "machine build kernels" in done.stdout, done.stdout
    if run(["sh", "-c", "test \"$(id -u)\" = 0 || unshare -r true"], None).returncode != 0:
        raise Skip("neither root nor user namespaces")
    # Programs of an ordinary build do not look beside themselves.
    done = run(["sh", path, "--try", out], None, env=dict(os.environ, LIBRARIES="/bundle/lib"))
    assert done.returncode == 0 and done.stdout.count("ok   ") == len(there), done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(case.main())
