#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train on the emulated GPU (tests/chex-train-emulated), from outside: a run, its end and its going on, beside the
CPU; what a GPU can do to it.

    check_train_cuda.py [PATTERN]      only the cases whose name matches the regular expression

The emulator does some 400 million multiplications a second: images of 32 pixels, densenet-micro, some steps.  More of
them in make check-slow.  Where there is no mpirun the cases of ranks are skipped.
"""
import functools
import json
import math
import os
import re
import shutil
import signal
import struct
import sys

import mpi
from support import Cases, Skip, program, read_csv, run, says, slurp, write
from training import header, kept, last_step, poison, scratch, three_splits

case = Cases()
GPU = "cuda-emulated"
NAME = "tests/chex-train-emulated"
STEPS = 3  # of an epoch


@functools.lru_cache(None)
def data():
    """A data set of three splits with some twenty-five images to train on; read only."""
    return three_splits("cuda", 36, 8, "patient:60,20,20")


def emulated():
    try:
        return program(NAME)
    except Skip:
        return program(os.path.basename(NAME))


def words(out, *more, device=GPU, source=None):
    return [emulated(), "-d", source or data(), "-o", out, "--model", "densenet-micro", "--crop", "32", "--batch", "8",
            "--epochs", "2", "--bootstrap", "20", "--keep", "0", "-j", "1", "--device", device, *map(str, more)]


def environment(**setting):
    """EMULATOR_name=value."""
    return {**mpi.ENVIRONMENT, **{"EMULATOR_" + name.upper(): str(value) for name, value in setting.items()}}


def train(out, *more, code=0, ranks=1, device=GPU, source=None, **setting):
    line = words(out, *more, device=device, source=source)
    return run(line if ranks == 1 else mpi.ranks(NAME, ranks, *line), code, env=environment(**setting))


@functools.lru_cache(None)
def whole():
    """The folder of a run on the emulated GPU that nobody disturbed: two epochs, all checkpoints, fp16."""
    folder = os.path.join(scratch(), "cuda-whole")
    train(folder)
    return folder


@functools.lru_cache(None)
def on_cpu():
    """The same by the CPU, with the same micro-batches."""
    folder = os.path.join(scratch(), "cuda-cpu")
    train(folder, device="cpu")
    return folder


def same(a, b, names=None):
    """All that does not say when and where."""
    x, y = kept(a), kept(b)
    names = names or sorted(x)
    differ = [n for n in names if x.get(n) != y.get(n)]
    assert len(names) > 2 and not differ, f"other bytes in {differ}" if differ else names


def ends_same(a, b):
    assert last_step(a) == last_step(b), f"{last_step(b)} instead of {last_step(a)}"
    same(a, b, [f"{last_step(a)}.safetensors", f"{last_step(a)}.opt.safetensors", "best.safetensors",
                "predictions-test.csv", "metrics-test.json"])


def tensors(path):
    """{name: list of floats}"""
    blob = slurp(path)
    size, = struct.unpack_from("<Q", blob)
    top = json.loads(blob[8:8 + size])
    return {name: struct.unpack_from(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f", blob,
                                     8 + size + t["data_offsets"][0])
            for name, t in top.items() if name != "__metadata__" and t["dtype"] == "F32"}


def state(path):
    return json.loads(header(path)["__metadata__"]["state"])


def distance(a, b):
    """Of all parameters of two checkpoints, relative to the size of the first."""
    x, y = tensors(a), tensors(b)
    apart = sum((p - q) ** 2 for name in x for p, q in zip(x[name], y[name]) if "running" not in name)
    size = sum(p ** 2 for name in x for p in x[name] if "running" not in name)
    return math.sqrt(apart / size)


def lines(out, kind):
    with open(f"{out}/metrics.jsonl", encoding="utf-8") as f:
        return [line for line in map(json.loads, f) if line["kind"] == kind]


def predictions(out, split="test"):
    top, rows = read_csv(f"{out}/predictions-{split}.csv")
    first = next(i for i, name in enumerate(top) if re.search("atelectasis", name, re.I))
    return {row[0]: [float(v) for v in row[first:first + 14]] for row in rows}


def furthest(a, b):
    """Of the probabilities of two evaluations."""
    x, y = predictions(a), predictions(b)
    assert x.keys() == y.keys() and x, "other images"
    return max(abs(p - q) for name in x for p, q in zip(x[name], y[name]))


def edited(path, to, change):
    """A copy of a checkpoint in which change(name, bytearray) was done to each tensor."""
    blob = bytearray(slurp(path))
    size, = struct.unpack_from("<Q", blob)
    for name, t in json.loads(blob[8:8 + size]).items():
        if name != "__metadata__":
            first, last = (8 + size + o for o in t["data_offsets"])
            part = blob[first:last]
            change(name, part)
            blob[first:last] = part
    return write(to, bytes(blob))


# ---- a run -----------------------------------------------------------------------------------------------------------


@case("a run on the GPU says its device and precision, leaves what one of the CPU leaves, and learns as that does")
def _(work):
    done = train(f"{work}/run", "-v", "--epochs", 1)
    says(done, r"chex-train \S+   1 rank, .*, fp16,", r"memory   [\d.]+ MB",
         r"scale    loss scale \d+, no step skipped",
         r"val 1    loss \d", r"done     test")
    assert set(kept(whole())) == set(kept(on_cpu())), set(kept(whole())) ^ set(kept(on_cpu()))
    about = json.load(open(f"{whole()}/run.json", encoding="utf-8"))
    assert about["options"]["precision"] == "fp16" and about["options"]["device"] == GPU, about["options"]
    ours, theirs = ([line["loss"] for line in lines(out, "step")] for out in (whole(), on_cpu()))
    assert len(ours) == len(theirs) == 2 * STEPS, (ours, theirs)
    assert abs(ours[0] - theirs[0]) < 0.002 * theirs[0], (ours, theirs)  # one forward in fp16
    assert max(abs(a - b) / b for a, b in zip(ours, theirs)) < 0.05, (ours, theirs)


@case("two runs leave the same bytes, whatever the order of threads, blocks and streams")
def _(work):
    for threads, streams in ((0, 0), (1, 1), (7, 3)):
        train(f"{work}/{threads}", "--epochs", 1, threads=threads, streams=streams)
    same(f"{work}/0", f"{work}/1")
    same(f"{work}/0", f"{work}/7")


@case("without graphs, and with images on the device, in memory or nowhere, the bytes are the same")
def _(work):
    one = ("--epochs", 1)
    train(f"{work}/run", *one)
    for name, more in (("no-graph", ["--no-graph"]), ("device", ["--cache", "device"]), ("none", ["--cache", "none"]),
                       ("host", ["--cache", "host"])):
        done = train(f"{work}/{name}", *one, *more, streams=5)
        says(done, {"none": "images .* read in every epoch", "host": "images .* kept in memory"}.get(
            name, r"images   train and val, \S+ kB kept on the device;\s+shuffled"))
        same(f"{work}/run", f"{work}/{name}")


def same_augmentation(work, *options):
    """With these options, a run has the same bytes wherever the images are kept, and the losses of the CPU."""
    more, losses = ("--epochs", 1, "--max-steps", 2, *options), {}
    for name, device, cache in (("device", GPU, "device"), ("none", GPU, "none"), ("cpu", "cpu", "none")):
        train(f"{work}/{name}", *more, "--cache", cache, device=device)
        losses[name] = [line["loss"] for line in lines(f"{work}/{name}", "step")]
    last = last_step(f"{work}/device")
    same(f"{work}/device", f"{work}/none", [f"{last}.safetensors", f"{last}.opt.safetensors", "latest"])
    first, plain = losses["cpu"][0], lines(on_cpu(), "step")[0]["loss"]
    assert losses["device"] == losses["none"] and abs(losses["device"][0] - first) < 1e-4 * first, losses
    assert abs(first - plain) > 1e-3 * plain, "the options change nothing"


@case("rotated and brightened images: the same bytes wherever the images are kept, and the losses of the CPU")
def _(work):
    same_augmentation(work, "--rotate", 15, "--brightness", 0.3)


@case("mixed images: the same bytes wherever the images are kept, and the losses of the CPU")
def _(work):
    same_augmentation(work, "--rotate", 15, "--mixup", 0.4, "--label-smoothing", 0.1)


@case("--pdl: the bytes are the same, with and without graphs; a GPU that has no such launches says so once")
def _(work):
    one, note = ("--epochs", 1), "--pdl is for GPUs of compute capability 9.0 and newer: no effect here"
    train(f"{work}/run", *one)
    for name, more, setting in (("pdl", [], {}), ("launched", ["--no-graph"], {}), ("older", [], {"ptx": 80})):
        done = train(f"{work}/{name}", *one, "--pdl", *more, streams=4, **setting)
        assert done.stderr.count(note) == (name == "older"), done.stderr
        same(f"{work}/run", f"{work}/{name}")
    assert json.load(open(f"{work}/pdl/run.json", encoding="utf-8"))["options"]["pdl"] is True
    for device, setting in ((GPU, {"devices": 80}), ("cpu", {})):
        says(train(f"{work}/none", "--pdl", "-n", device=device, **setting), note)


@case("--micro-batch: several of them make a step; each number of them has its bytes, with and without graphs",
      slow=True)
def _(work):
    more = ("--epochs", 1, "--micro-batch", 4, "--ema", 0.9, "--clip", 1, "--optimizer", "adamw", "--tta", "flip")
    train(f"{work}/a", *more)
    train(f"{work}/b", *more, "--no-graph", streams=3)
    same(f"{work}/a", f"{work}/b")
    train(f"{work}/cpu", *more, device="cpu")
    at = f"{last_step(work + '/a')}.safetensors"
    assert distance(f"{work}/cpu/{at}", f"{work}/a/{at}") < 0.02


@case("a run in bf16 keeps its precision and resumes with no other")
def _(work):
    out = f"{work}/run"
    train(out, "--epochs", 1, "--precision", "bf16")
    assert json.load(open(f"{out}/run.json", encoding="utf-8"))["options"]["precision"] == "bf16"
    kept_state = state(f"{out}/{last_step(out)}.safetensors")
    assert float.fromhex(kept_state["loss_scale"]) == 1 if isinstance(kept_state["loss_scale"], str) \
        else kept_state["loss_scale"] == 1, kept_state
    says(train(out, code=6), "precision bf16 -> fp16")
    train(out, "--precision", "bf16")
    assert tensors(f"{out}/best.safetensors") != tensors(f"{whole()}/best.safetensors")


@case("tf32: near the CPU with 1, 2 and 4 ranks, the same bytes in every run, and resumed", slow=True)
def _(work):
    both = ("--micro-batch", 2, "--optimizer", "sgd", "--lr", 0.01)  # Adam makes a whole step of rounding
    more = (*both, "--precision", "tf32", "--epochs", 2)
    train(f"{work}/cpu", *both, "--epochs", 2, device="cpu")
    for ranks in (1, 2, 4):
        out = f"{work}/{ranks}"
        batch = ("--batch", 8 // ranks)
        train(out, *more, *batch, ranks=ranks)
        at = f"{last_step(out)}.safetensors"
        assert distance(f"{work}/cpu/{at}", f"{out}/{at}") < 0.02, ranks
        train(f"{out}-again", *more, "--epochs", 1, *batch, ranks=ranks, streams=3)
        train(f"{out}-again", *more, *batch, ranks=ranks)
        ends_same(out, f"{out}-again")


@case("a run of the CPU resumes on a GPU in half precision, and back, where the user says so")
def _(work):
    out, more = f"{work}/run", ("--allow-batch-change", "--allow-precision-change")
    train(out, "--epochs", 1, device="cpu")
    says(train(out, code=6), "precision fp32 -> fp16", "--allow-precision-change resumes with it")
    says(train(out, *more), "device cpu -> cuda-emulated", "precision fp32 -> fp16")
    on_gpu = state(f"{out}/{last_step(out)}.safetensors")
    assert float.fromhex(on_gpu["loss_scale"]) > 1 and "precision fp16" in on_gpu["settings"], on_gpu
    says(train(out, *more, "--epochs", 3, device="cpu"), "precision fp16 -> fp32")
    back = state(f"{out}/{last_step(out)}.safetensors")
    assert float.fromhex(back["loss_scale"]) == 1 and int(back["applied"]) == 3 * STEPS, back


# ---- it stops and goes on --------------------------------------------------------------------------------------------


@case("each checkpoint in the middle of an epoch leads to the same end, byte for byte", slow=True)
def _(work):
    every = ("--checkpoint-every", "1steps")
    train(f"{work}/whole", *every)
    names = sorted(n for n in os.listdir(f"{work}/whole") if re.fullmatch(r"step-\d+\.safetensors", n))
    assert len(names) == 2 * STEPS + 1, names
    for name in (names[1], names[len(names) // 2]):
        train(f"{work}/again", *every, "--resume", f"{work}/whole/{name}", streams=2, threads=3)
        ends_same(f"{work}/whole", f"{work}/again")
        shutil.rmtree(f"{work}/again")


@case("a signal saves and ends with 75, and the same command resumes to the same end")
def _(work):
    out = f"{work}/run"
    process = mpi.start(words(out))
    mpi.wait_for(lambda: os.path.exists(f"{out}/latest"))
    process.send_signal(signal.SIGTERM)
    text, code = mpi.finish(process)
    assert code == 75, f"{code}: {text}"
    says(train(out), r"resume   step-\d+")
    ends_same(whole(), out)


# ---- beside the CPU --------------------------------------------------------------------------------------------------


@case("CPU and GPU give the same evaluation of each other's weights")
def _(work):
    for name, weights in (("gpu", whole()), ("cpu", on_cpu())):
        for device in (GPU, "cpu"):
            train(f"{work}/{name}-{device}", "--eval-only", "--init", f"{weights}/best.safetensors", device=device)
        apart = furthest(f"{work}/{name}-{GPU}", f"{work}/{name}-cpu")
        assert 0 < apart < 5e-3, f"probabilities {apart:.1e} apart"
    assert furthest(f"{work}/gpu-{GPU}", f"{work}/cpu-cpu") > 0


@case("a run in float moves from the CPU to the GPU and back, both ways, to the weights of one that stayed", slow=True)
def _(work):
    float32 = ("--precision", "fp32", "--checkpoint-every", "never")
    more = ("--allow-batch-change",)
    for name, places in (("stay", ("cpu", "cpu", "cpu")), ("there", ("cpu", GPU, "cpu")), ("back", (GPU, "cpu", GPU))):
        for epochs, device in enumerate(places, 1):
            done = train(f"{work}/{name}", *float32, *more, "--epochs", epochs, device=device)
            if epochs > 1 and places[epochs - 2] != device:
                says(done, f"device {places[epochs - 2]} -> {device}")
    at = f"{last_step(work + '/stay')}.safetensors"
    for name in ("there", "back"):
        moved = distance(f"{work}/stay/{at}", f"{work}/{name}/{at}")
        assert 0 < moved < 1e-2, f"{moved:.2g}"
        assert furthest(f"{work}/stay", f"{work}/{name}") < 2e-2


@case("a run moves from two ranks on GPUs to one, to the CPU and back: each step has the images of a run that stayed")
def _(work):
    stay, out = f"{work}/stay", f"{work}/run"
    more = ("-v", "--micro-batch", 4, "--allow-precision-change", "--checkpoint-every", "never", "--optimizer", "sgd",
            "--lr", 0.01)  # Adam makes a whole step of a gradient that is only rounding
    places = ((2, GPU), (1, "cpu"), (1, GPU))
    order = re.findall(r"order +([0-9a-f]+)", train(stay, *more, "--epochs", len(places), device="cpu").stderr)
    assert len(set(order)) == len(places), order
    found = []
    for epochs, (count, device) in enumerate(places, 1):
        done = train(out, *more, "--batch", 8 // count, "--epochs", epochs, device=device, ranks=count)
        found += re.findall(r"order +([0-9a-f]+)", done.stderr)
        if epochs > 1 and places[epochs - 2][1] != device:
            says(done, f"device {places[epochs - 2][1]} -> {device}")
    assert found == order, (found, order)
    ours, theirs = ([(line["step"], line["loss"]) for line in lines(folder, "step")] for folder in (out, stay))
    assert [step for step, _ in ours] == [step for step, _ in theirs] == list(range(1, len(places) * STEPS + 1)), ours
    same_step, next_step = (max(abs(a - b) for (_, a), (_, b) in zip(ours, found)) for found in (theirs, theirs[1:]))
    assert same_step < next_step / 4, f"losses are {same_step:.2g} apart, those of other images {next_step:.2g}"
    at = f"{last_step(stay)}.safetensors"
    apart = distance(f"{stay}/{at}", f"{out}/{at}")
    moved = distance(f"{stay}/step-000000.safetensors", f"{stay}/{at}")
    assert apart < moved / 4, f"{apart:.2g} of {moved:.2g}"
    counted = state(f"{out}/{at}")
    assert int(counted["applied"]) == int(counted["step"]) == len(places) * STEPS, counted


@case("ranks on GPUs: a signal to one of them, or --time-limit, saves and ends with 75; another number resumes",
      slow=True)
def _(work):
    out, more = f"{work}/run", ("--micro-batch", 4, "--checkpoint-every", "1steps")
    process = mpi.start(mpi.ranks(NAME, 2, *words(out, *more, "--batch", 4)))
    mpi.wait_for(lambda: os.path.exists(f"{out}/latest"))
    pids = mpi.wait_for(lambda: [pid for pid in mpi.children(process.pid, os.path.basename(NAME))
                                 if not os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("mpi", "orte"))])
    os.kill(pids[-1], signal.SIGTERM)
    text, code = mpi.finish(process)
    assert code == 75 and len(re.findall("stopped at step", text)) == 1, f"{code}: {text}"
    at = last_step(out)
    done = train(out, *more, "--batch", 4, "--epochs", 1000, "--time-limit", "1s", ranks=2, code=75)
    says(done, f"resume   {at}", "stopped at step")
    assert last_step(out) > at
    at = last_step(out)
    says(train(out, *more, "--epochs", 1000, "--time-limit", "1s", code=75), f"resume   {at}", "ranks 2 -> 1")


@case("a checkpoint in half precision is complete for PyTorch: all tensors are float32")
def _(_work):
    for name in ("best", last_step(whole()), last_step(whole()) + ".opt"):
        top = header(f"{whole()}/{name}.safetensors")
        kinds = {t["dtype"] for key, t in top.items() if key != "__metadata__" and "num_batches" not in key}
        assert kinds == {"F32"}, kinds
    assert header(f"{whole()}/best.safetensors").keys() == header(f"{on_cpu()}/best.safetensors").keys()


# ---- the loss scale --------------------------------------------------------------------------------------------------


@case("a gradient that overflows: the step is skipped, the loss scale falls, and both are seen; the run goes on to the "
      "same end from a checkpoint between")
def _(work):
    def larger(name, part):
        if name == "classifier.weight":
            values = struct.unpack(f"<{len(part) // 4}f", part)
            part[:] = struct.pack(f"<{len(values)}f", *(v * 3e4 for v in values))

    weights = edited(f"{on_cpu()}/best.safetensors", f"{work}/large.safetensors", larger)
    out = f"{work}/run"
    done = train(out, "--epochs", 1, "--init", weights, "--checkpoint-every", "1steps", "--lr", 1e-6)
    says(done, r"\d+ steps? skipped so far, whose gradient overflowed; loss scale \d+")
    steps = lines(out, "step")
    assert steps[0]["loss_scale"] == 32768 and steps[0]["steps_skipped"] == 1, steps
    assert steps[0]["gradient_norm"] is None
    at_start, behind = (f"{out}/step-{n:06}.safetensors" for n in (0, 1))
    assert tensors(at_start) == tensors(behind), "a step that was skipped changed something"
    last = state(f"{out}/{last_step(out)}.safetensors")
    assert int(last["applied"]) == int(last["step"]) - lines(out, "epoch")[-1]["steps_skipped"], last
    train(f"{work}/again", "--epochs", 1, "--resume", f"{out}/step-000001.safetensors", "--checkpoint-every", "1steps",
          "--lr", 1e-6)
    ends_same(out, f"{work}/again")


# ---- ranks -----------------------------------------------------------------------------------------------------------


@case("two ranks on one GPU: sums by messages, the same bytes in every run, the weights of one rank nearly")
def _(work):
    more = ("--epochs", 1, "--micro-batch", 4)
    train(f"{work}/a", *more, "--batch", 4, ranks=2)
    train(f"{work}/b", *more, "--batch", 4, ranks=2, streams=3, threads=2)
    same(f"{work}/a", f"{work}/b")
    train(f"{work}/one", *more)
    at = f"{last_step(work + '/a')}.safetensors"
    assert distance(f"{work}/one/{at}", f"{work}/a/{at}") < 0.01


@case("two ranks that are stopped resume to the same end; so do they on two GPUs", slow=True)
def _(work):
    more = ("--batch", 4)
    train(f"{work}/whole", *more, ranks=2)
    out = f"{work}/run"
    process = mpi.start(mpi.ranks(NAME, 2, *words(out, *more)))
    mpi.wait_for(lambda: os.path.exists(f"{out}/latest"))
    pids = mpi.wait_for(lambda: mpi.children(process.pid, os.path.basename(NAME)))
    os.kill(pids[0], signal.SIGUSR1)
    text, code = mpi.finish(process)
    assert code == 75, f"{code}: {text}"
    train(out, *more, ranks=2, devices="90 90")
    ends_same(f"{work}/whole", out)


# ---- what can go wrong -----------------------------------------------------------------------------------------------


@case("a damaged record: the progress is saved, and with a good record the run resumes to the same end", slow=True)
def _(work):
    folder = shutil.copytree(data(), f"{work}/copy")
    poison(folder, 3)
    out = f"{work}/run"
    says(train(out, code=1, source=folder), "checksum|damaged")
    assert os.path.exists(f"{out}/{last_step(out)}.safetensors")
    train(out)
    ends_same(whole(), out)


@case("weights that are not finite end with 7, name the step, and are in no checkpoint", slow=True)
def _(work):
    def spoil(name, part):
        if name == "classifier.bias":
            part[:4] = struct.pack("<f", 3e38)

    weights = edited(f"{on_cpu()}/best.safetensors", f"{work}/bad.safetensors", spoil)
    # In fp16 the loss scale falls to its end first: 16 steps that change nothing.
    for precision, epochs in (("fp16", 6), ("bf16", 1), ("tf32", 1)):
        out = f"{work}/{precision}"
        done = train(out, "--init", weights, "--precision", precision, "--lr", 1e30, "--epochs", epochs, code=7)
        says(done, r"diverged at step \d+ \(epoch \d\)", r"last good checkpoint step-\d+; try --lr")
        last = tensors(f"{out}/{last_step(out)}.safetensors")
        assert all(math.isfinite(v) for values in last.values() for v in values)
    done = train(f"{work}/short", "--init", weights, "--lr", 1e30, "--epochs", 1, code=7)
    says(done, r"\d steps skipped so far", "there is no best model: .* try a lower --lr")


@case("too little memory on the GPU: exit status 4, the bytes needed and free, and nothing is begun")
def _(work):
    done = train(f"{work}/run", code=4, memory=2 << 20)
    says(done, r"[\d.]+ MB are needed and [\d.]+ (MB|kB) are there: try a smaller --micro-batch than 8")
    assert not os.path.exists(f"{work}/run")
    done = train(f"{work}/run", "--cache", "device", code=4, memory=memory_of_plan() + 1000)
    says(done, r"--cache device needs [\d.]+ [kM]B, [\d.]+ \S+ (is|are) free there in addition to the network")


def memory_of_plan():
    """Bytes, as -n --json gives them."""
    done = run(words("none", "-n", "--json", "-q"), env=environment())
    return json.loads(done.stdout)["plan"]["memory"]


@case("a few bytes too little: the message counts bytes if both numbers would be printed equal")
def _(work):
    done = train(f"{work}/run", code=4, memory=memory_of_plan() - 1000)
    found = re.search(r"([\d,]+) bytes are needed and ([\d,]+) bytes are there: try", done.stderr)
    assert found, done.stderr
    needed, there = (int(number.replace(",", "")) for number in found.groups())
    assert 0 < needed - there < 100000, (needed, there)


@case("-v names the engine; --engine cudnn without cuDNN, or with an old one, ends with 2 and says why")
def _(work):
    says(train(f"{work}/run", "-n", "-v"), r"(?m)^engine   own kernels$")
    says(train(f"{work}/run", "-n", "-v", "--engine", "cudnn"), r"(?m)^engine   \d+ of \d+ convolutions by cuDNN \d")
    for setting, why in (("none", r"libcudnn\.so\.9 was not found"),
                         ("old", r"cuDNN is 9\.10\.2, and 9\.11 is needed")):
        def without(*more, code=0, setting=setting):
            return run(words(f"{work}/run", *more), code, env={**environment(), "FAKE_CUDNN": setting})
        says(without("-n", "-v"), r"(?m)^engine   own kernels$")
        for more in ((), ("-n",)):
            says(without("--engine", "cudnn", *more, code=2), rf"chex-train: --engine cudnn: {why}")
        assert "engine " not in without("-n").stderr, "said without -v"
        assert re.search(rf"^cudnn +.*{why}", run([emulated(), "-V", "-v"], env={"FAKE_CUDNN": setting}).stdout, re.M)
    assert not os.path.exists(f"{work}/run")


@case("memory that is free when the run begins and taken when it allocates: exit status 4")
def _(work):
    done = train(f"{work}/run", code=4, fail="cudaMalloc 1 2")
    says(done, r"a micro-batch of 8 images needs [\d.]+ MB of the memory of the GPU, of which [\d.]+ \S+ are free")


@case("no GPU: --device says so with exit status 2, auto takes the CPU in one line, -n gives the memory without one")
def _(work):
    says(train(f"{work}/run", code=2, devices=""),
         r"--device cuda-emulated: the NVIDIA driver finds no GPU: see nvidia-smi -L$")
    assert not os.path.exists(f"{work}/run")
    done = train(f"{work}/auto", "--epochs", 1, device="auto", devices="")
    says(done, "1 rank, CPU", "note     cuda-emulated is not used: the NVIDIA driver finds no GPU")
    with_gpu = json.loads(run(words("none", "-n", "--json", "-q"), env=environment()).stdout)["plan"]["memory"]
    done = run(words("none", "-n", "--json"), env=environment(devices=""))
    assert with_gpu / 2 < json.loads(done.stdout)["plan"]["memory"] < 2 * with_gpu
    says(done, r"memory   [\d.]+ MB", r"a model of an NVIDIA H200\s+\(132\s+multiprocessors\),")


@case("no GPU: the message names the cause, with auto a note does, but not of a machine without a driver")
def _(work):
    no_driver = "cudaGetDeviceCount 1 35, cudaDriverGetVersion 1 35, cudaDriverGetVersion 1 35"
    hidden = {**environment(devices=""), "CUDA_VISIBLE_DEVICES": "7"}
    says(train(f"{work}/run", code=2, fail=no_driver),
         "--device cuda-emulated: there is no NVIDIA driver: libcuda.so.1 cannot be loaded$")
    says(run(words(f"{work}/run", "-n", device="auto"), 0, env=hidden),
         "note     cuda-emulated is not used: CUDA_VISIBLE_DEVICES='7' hides all GPUs")
    says(run(words(f"{work}/run"), 2, env=hidden), "--device cuda-emulated: CUDA_VISIBLE_DEVICES='7' hides all GPUs$")
    assert "not used" not in train(f"{work}/run", "-n", device="auto", fail=no_driver).stderr
    says(train(f"{work}/run", "-n", device="auto", fail="cudaGetDeviceProperties 1 35"),
         r"note     cuda-emulated is not used: the NVIDIA driver is one of CUDA \d+\.\d+, and one of")
    assert not os.path.exists(f"{work}/run")


@case("a log begins with the version: notes about the device follow the plan")
def _(work):
    done = train(f"{work}/run", "-n", device="auto", devices="")
    assert re.match(r"log      \S+ \S+  chex-train \S+\nchex-train \S+   1 rank, CPU", done.stderr), done.stderr
    assert done.stderr.index("\nmemory ") < done.stderr.index("\nnote     cuda-emulated"), done.stderr
    done = train(f"{work}/run", "--precision", "fp16", device="auto", devices="", code=2)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("log ") and lines[1].startswith("note     cuda-emulated is not used"), done.stderr
    assert lines[2] == ("chex-train: --precision fp16: device cpu computes in fp32 and bf16 only; "
                        "--device cuda-emulated says why it is not used"), done.stderr


@case("a precision that the device does not support: the message names the device and its precisions")
def _(work):
    says(train(f"{work}/run", "-n", "--precision", "tf32", code=2, devices="75"),
         "--precision tf32: device cuda-emulated computes in fp32 and fp16 only$")
    says(train(f"{work}/run", "-n", "--precision", "tf32", "--engine", "cudnn", code=2),
         "--engine cudnn does not compute in tf32, but in fp16 and bf16$")
    says(train(f"{work}/run", "--precision", "bf16", code=2, devices="70"),
         "--precision bf16: device cuda-emulated computes in fp32 and fp16 only$")


@case("a driver that is too old, a GPU that is too old: one line with the version found and the version needed")
def _(work):
    done = train(f"{work}/run", code=6, fail="cudaGetDeviceProperties 1 35")
    says(done, r"the NVIDIA driver is one of CUDA \d+\.\d+, and one of CUDA \d+ or newer is needed")
    done = train(f"{work}/run", code=6, devices="61")
    says(done, r"compute capability 6\.1, and 7\.0 is needed")
    assert not os.path.exists(f"{work}/run")


def end_by(work, name, setting, code, *patterns, more=()):
    """The run ends in its middle; its last checkpoint is whole, and the same command goes on to the same end."""
    out = f"{work}/{name}"
    done = train(out, "--checkpoint-every", "1steps", *more, code=code, fail=setting)
    says(done, *patterns)
    at = last_step(out)
    assert f"step-{STEPS:06}" <= at < last_step(whole()), at
    says(train(out), rf"resume   {at}")
    ends_same(whole(), out)


@case("a kernel that fails in the middle of an epoch: exit status 70, advice, and the last checkpoint resumes")
def _(work):
    end_by(work, "graph", f"step_decide_fp16 {STEPS + 2} 700", 70, "a kernel has failed .*--no-graph",
           "last checkpoint is complete")
    end_by(work, "single", f"step_decide_fp16 {STEPS + 2} 719", 70, r"the kernel \S*step_decide\S* has failed",
           more=("--no-graph",))


@case("a GPU that fails in the middle of an epoch, by its memory or its bus: exit status 8, what to do, and it goes on",
      slow=True)
def _(work):
    for name, error in (("memory", 214), ("bus", 999)):
        end_by(work, name, f"step_decide_fp16 {STEPS + 2} {error}", 8, "the GPU has failed", "dmesg")


LIMITS = "DRAM|L2|products|issue|shared memory"  # resources that limit a launch by the model


def model_line(done):
    """(launches, MB an image, img/s) of the line of the model."""
    found = re.search(r"^kernels  ([\d,]+) launches a step of ([\d,]+) images?, ([\d.]+) MB an image,\s+([\d.,]+) "
                      r"img/s\s+on one\s+\S+\s+of\s+\d+\s+multiprocessors:\s+modelled,\s+not\s+measured$",
                      done.stderr, re.M)
    assert found, done.stderr
    return [float(f.replace(",", "")) for f in found.groups()]


@case("a dry run says what the kernels of a step move, by a model: in all, by kind with -v, one by one with -v -v")
def _(work):
    for devices in ("", "80"):
        launches, images, megabytes, rate = model_line(train(work + "/run", "-n", devices=devices))
        assert images == 8 and rate > 0, (images, rate)
        kinds = train(work + "/run", "-n", "-v", devices=devices)
        assert model_line(kinds) == [launches, images, megabytes, rate], kinds.stderr
        score = re.search(r"^ +evaluation: ([\d,]+) launches a micro-batch of ([\d,]+) images?, ([\d.]+) MB an image,"
                          r"\s+([\d.,]+) img/s$", kinds.stderr, re.M)
        assert score and float(score[2]) <= images, kinds.stderr
        assert int(score[1]) < launches / 2 and float(score[3]) < megabytes / 3, kinds.stderr
        assert float(score[4].replace(",", "")) > rate, kinds.stderr
        rows = re.findall(rf"^ +([a-z]\w+) +(\d+) +([\d.]+) +([\d.]+) +[\d.]+ %  (?:{LIMITS})$", kinds.stderr, re.M)
        assert sum(int(row[1]) for row in rows) == launches, rows
        assert abs(sum(float(row[2]) for row in rows) - megabytes) < 0.06, (rows, megabytes)
        assert {"conv_fprop_pointwise", "optimizer", "loss"} <= {row[0] for row in rows}, rows
        assert [row[1] for row in rows if row[0] == "sum_all"] == ["1"], rows  # one rank has nothing to sum sooner
        each = train(work + "/run", "-n", "-v", "-v", devices=devices)
        lines = re.findall(r"^ +\w+_fp16.*: [\d x]+; .*; reads ([\d.]+) MB, writes ([\d.]+) MB; "
                           rf"[\d.]+ us by (?:{LIMITS})$", each.stderr, re.M)
        assert len(lines) == launches, (len(lines), launches)
        assert abs(sum(float(a) + float(b) for a, b in lines) / images - megabytes) < 0.2, megabytes
    says(train(work + "/run", "-n", devices=""), r"on one\s+H200 of")
    assert "modelled" not in train(work + "/run", "-n", "-q").stderr
    assert "modelled" not in train(work + "/run", "-n", device="cpu").stderr


@case("a dry run names what cuDNN computes, and no tile of the kernel in whose place it is")
def _(work):
    each = train(work + "/run", "-n", "-v", "-v", "--engine", "cudnn", devices="")
    table = dict(re.findall(rf"^ +([a-z]\w+) +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ %  (?:{LIMITS})$", each.stderr, re.M))
    lines = re.findall(r"^ +(cudnn_conv_\w+): [\d x]+; cuDNN; reads", each.stderr, re.M)
    assert lines and len(lines) == sum(int(table[kind]) for kind in set(lines)), (lines, table)
    assert {"cudnn_conv_wgrad_pointwise", "cudnn_conv_dgrad", "cudnn_conv_fprop"} <= set(lines), lines
    assert int(table["conv_fprop"]) == int(table["conv_wgrad_stem"]) == 1, table  # of gray cells


if __name__ == "__main__":
    try:
        code = case.main()
    finally:
        shutil.rmtree(scratch(), ignore_errors=True)
    sys.exit(code)
