#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trainer on a device that is late, forgetful and out of reach (late_*.c) leaves the bytes of the reference.

    check_late.py [PATTERN]      only the cases whose name matches the regular expression

Python 3, stdlib only.  Where there is no mpirun the cases of ranks are skipped.
"""
import functools
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import mpi
from support import Cases, program, run, says, slurp
from training import last_step, poison, scratch, three_splits

case = Cases()
SEEDS = (1, 7)
ARENAS = re.compile(r"step-\d+(\.opt)?\.safetensors|best\.safetensors")


@functools.lru_cache(None)
def data():
    """A small data set of three splits, of some twenty images to train on; read only."""
    return three_splits("late", 40, 16, "patient:50,25,25")


def words(out, *more, source=None):
    return ["-d", source or data(), "-o", out, "--model", "densenet-micro", "--crop", "32", "--batch", "8",
            "--micro-batch", "4", "--epochs", "4", "--bootstrap", "20", "--keep", "0", "--ema", "0.9", "-j", "1", "-q",
            "--checkpoint-every", "1steps", *map(str, more)]


def command(name, out, *more, ranks=1, **options):
    line = [program(name), *words(out, *more, **options)]
    return line if ranks == 1 else mpi.ranks(name, ranks, *line)


def environment(**setting):
    return {**mpi.ENVIRONMENT, **{"LATE_" + name.upper(): str(value) for name, value in setting.items()}}


def late(out, *more, code=0, ranks=1, source=None, **setting):
    return run(command("late-train", out, *more, ranks=ranks, source=source), code, env=environment(**setting))


def reference(out, *more, code=0, ranks=1, source=None):
    return run(command("chex-train", out, "--device", "ref", *more, ranks=ranks, source=source), code,
               env=mpi.ENVIRONMENT)


def parts(path):
    """Tensors and state of a safetensors file; the state without what names the backend."""
    blob = slurp(path)
    size, = struct.unpack_from("<Q", blob)
    head = json.loads(blob[8:8 + size])
    state = json.loads(head.pop("__metadata__", {}).get("state", "{}"))
    state = {k: v for k, v in state.items() if k not in ("settings", "loss_scale")}
    return {name: (t["shape"], blob[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in head.items()}, state


def same(a, b, names=None):
    """All checkpoints, the best model and the predictions of two runs."""
    names = names or sorted(n for n in os.listdir(a) if ARENAS.fullmatch(n))
    assert len(names) > 2, names
    for name in names:
        assert os.path.exists(os.path.join(b, name)), f"{name} is missing"
        assert parts(os.path.join(a, name)) == parts(os.path.join(b, name)), f"other values in {name}"
    assert slurp(os.path.join(a, "predictions-test.csv")) == slurp(os.path.join(b, "predictions-test.csv"))


def ends_same(a, b):
    assert last_step(a) == last_step(b), f"{last_step(b)} instead of {last_step(a)}"
    same(a, b, [f"{last_step(a)}.safetensors", f"{last_step(a)}.opt.safetensors", "best.safetensors"])


@case("ten epochs, with an average, ragged last steps, and every step saved")
def _(work):
    options = ["--epochs", 10, "--batch", 4, "--micro-batch", 2, "--checkpoint-every", "5steps", "--tta", "flip"]
    reference(f"{work}/ref", *options)
    for seed in SEEDS:
        late(f"{work}/late{seed}", *options, seed=seed)
        same(f"{work}/ref", f"{work}/late{seed}")


@case("each checkpoint of a run leads to the same end")
def _(work):
    options = ["--epochs", 3]
    late(f"{work}/whole", *options)
    reference(f"{work}/ref", *options)
    same(f"{work}/ref", f"{work}/whole")
    steps = sorted(n for n in os.listdir(f"{work}/whole") if re.fullmatch(r"step-\d+\.safetensors", n))
    assert len(steps) > 6, steps
    for seed, name in enumerate(steps, 1):
        late(f"{work}/again", *options, "--resume", f"{work}/whole/{name}", seed=seed)
        ends_same(f"{work}/whole", f"{work}/again")
        shutil.rmtree(f"{work}/again")


@case("skipped steps: the same late and at once, on one rank and two, and after each checkpoint")
def _(work):
    for ranks in (1, 2):
        late(f"{work}/now{ranks}", ranks=ranks, skip=1, ahead=0, seed=0)
        late(f"{work}/late{ranks}", ranks=ranks, skip=1, seed=3)
        same(f"{work}/now{ranks}", f"{work}/late{ranks}")
    state = parts(f"{work}/late1/{last_step(work + '/late1')}.safetensors")[1]
    assert int(state["applied"]) < int(state["step"]) - 3, state
    with open(f"{work}/late1/metrics.jsonl", encoding="utf-8") as f:
        lines = [line for line in map(json.loads, f) if line["kind"] in ("step", "epoch")]
    assert lines[-1]["steps_skipped"] == int(state["step"]) - int(state["applied"]), (lines[-1], state)
    assert any(line["loss_scale"] < 65536 for line in lines), lines
    assert all(line["loss"] is None or line["loss"] > 0 for line in lines), lines
    for step in (2, 3, 5, 7):
        late(f"{work}/again", "--resume", f"{work}/late1/step-{step:06}.safetensors", skip=1, seed=step)
        ends_same(f"{work}/late1", f"{work}/again")
        shutil.rmtree(f"{work}/again")


@case("2 to 4 ranks on four devices, of which two are the same")
def _(work):
    for ranks in (2, 3, 4):
        reference(f"{work}/ref{ranks}", ranks=ranks)
        late(f"{work}/late{ranks}", ranks=ranks, seed=ranks)
        same(f"{work}/ref{ranks}", f"{work}/late{ranks}")


@case("an evaluation of ten views")
def _(work):
    reference(f"{work}/run", "--epochs", 1)
    for name, go in (("ref", reference), ("late", late)):
        go(f"{work}/{name}", "--eval-only", "--init", f"{work}/run/best.safetensors", "--tta", "tencrop")
    assert slurp(f"{work}/ref/predictions-test.csv") == slurp(f"{work}/late/predictions-test.csv")


@case("images that stay with the device, with the host, or nowhere")
def _(work):
    for name, more in (("plain", []), ("mixed", ["--mixup", 0.4])):
        reference(f"{work}/{name}", *more)
        for where in ("device", "host", "none"):
            late(f"{work}/{name}-{where}", "--cache", where, *more)
            same(f"{work}/{name}", f"{work}/{name}-{where}")


@case("a damaged record at any step: the progress is saved, and with a good record the run resumes to the same end")
def _(work):
    draw = random.Random(3)
    late(f"{work}/whole1")
    late(f"{work}/whole2", ranks=2)
    for ranks in (1, 2):
        for number in range(3):
            folder = shutil.copytree(data(), f"{work}/copy")
            poison(folder, draw.randrange(16))
            out = f"{work}/out"
            done = late(out, ranks=ranks, source=folder, code=1, seed=number + 1)
            says(done, r"checksum|damaged")
            assert os.path.exists(f"{out}/{last_step(out)}.safetensors")
            late(out, ranks=ranks)
            ends_same(f"{work}/whole{ranks}", out)
            shutil.rmtree(out)
            shutil.rmtree(folder)


@case("a signal at any time saves and ends with 75, and the same command resumes to the same end")
def _(work):
    late(f"{work}/whole", "--checkpoint-every", "never")
    draw, seen = random.Random(5), set()
    for attempt in range(6):
        out = f"{work}/out{attempt}"
        process = subprocess.Popen(command("late-train", out, "--checkpoint-every", "never"),
                                   env=environment(seed=attempt), stderr=subprocess.DEVNULL)
        mpi.wait_for(lambda out=out: os.path.exists(f"{out}/latest"))
        time.sleep(draw.random() / 2)
        process.send_signal(signal.SIGTERM)
        seen.add(process.wait(60))
        late(out, "--checkpoint-every", "never")
        ends_same(f"{work}/whole", out)
    assert 75 in seen and seen <= {0, 75}, seen


@case("a run that diverges says what the reference says, at the same step")
def _(work):
    said = []
    for name, go in (("ref", reference), ("late", late)):
        done = go(f"{work}/{name}", "--lr", "1e30", "--warmup", 3, "--ema", 0, code=7)
        said.append(re.search(r"diverged at step.*", done.stderr).group())
    assert said[0] == said[1], said


@case("a run resumes with its precision alone, and says so where the algorithms are others")
def _(work):
    late(f"{work}/run", "--epochs", 1, "--precision", "fp16")
    done = late(f"{work}/run", code=6)
    says(done, "precision fp16 -> fp32")
    assert "fp16" in json.dumps(json.load(open(f"{work}/run/run.json", encoding="utf-8")))
    done = run([w for w in command("late-train", f"{work}/run") if w != "-q"], 0,
               env=environment(precision="fp16", algorithms=9))
    says(done, "algorithms 0000000000000000 -> 0000000000000009")


@case("a read of device memory, a batch that is kept and a result that is not there are found")
def _(work):
    late(f"{work}/good")
    late(f"{work}/pointer", code=-signal.SIGSEGV, plant="pointer")
    for plant in ("batch", "result"):
        late(f"{work}/{plant}", code=None, plant=plant)
        try:
            same(f"{work}/good", f"{work}/{plant}")
        except (AssertionError, OSError):
            continue
        raise AssertionError(f"nobody saw the mistake '{plant}'")


if __name__ == "__main__":
    try:
        code = case.main()
    finally:
        shutil.rmtree(scratch(), ignore_errors=True)
    sys.exit(code)
