#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train by MPI ranks: the same training whatever their number; ranks that differ, die, hang or are stopped.

    check_train_ranks.py [PATTERN]      only the cases whose name matches the regular expression

Python 3, stdlib only.  Skipped where there is no mpirun, or the programs were built without MPI.
"""
import array
import functools
import json
import os
import re
import shutil
import signal
import struct
import sys
import time

import mpi
from fixtures import fixture
from mpi import ENVIRONMENT, children, finish, gone, start, wait_for
from support import Cases, cache_folder, manifest, program, run, says, slurp, synth, tree, write

case = Cases()
CACHE = cache_folder("train-ranks", "/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
EXACT = re.compile(r"step-.*|latest|best\.safetensors|predictions-.*|metrics-.*\.json|auroc.*\.svg")
BATCH = {1: 16, 2: 8, 3: 4, 4: 4}  # images of a step of each rank: 16 of all, or 12 of three ranks


def data():
    """A small data set of three splits, 90 images to train on; read only."""
    return fixture("trainable")


def words(out, *more, source=None):
    return [program("chex-train"), "-d", source or data(), "-o", out, "--model", "densenet-micro", "--crop", "32",
            "--micro-batch", "4", "--epochs", "2", "--bootstrap", "20", "-j", "1", *map(str, more)]


def ranks(count, out, *more, source=None):
    """The command that starts `count` ranks; one: without mpirun."""
    line = words(out, "--batch", BATCH[count], *more, source=source)
    return line if count == 1 else mpi.ranks("chex-train", count, *line)


def train(count, out, *more, code=0):
    return run(ranks(count, out, *more), code, env=ENVIRONMENT)


def begin(count, out, *more):
    """A run that saves every other step, once it has; its processes in the order of their ranks."""
    process = start(ranks(count, out, *more))
    wait_for(lambda: last_step(out) > 0 or process.poll() is not None)
    assert process.poll() is None, f"ended too soon: {process.communicate()[1]}"
    found = {}
    for pid in children(process.pid, "chex-train"):
        rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", slurp(f"/proc/{pid}/environ"))
        found[int(rank[1])] = pid
    return process, [found[r] for r in sorted(found)]


def last_step(out):
    try:
        with open(f"{out}/latest", encoding="ascii") as f:
            return int(f.readline().split()[0].removeprefix("step-"))
    except (OSError, IndexError):
        return -1


def kept(folder):
    return {name: digest for name, digest in tree(folder).items() if EXACT.fullmatch(name)}


LONG = ("--epochs", "4", "--checkpoint-every", "2steps", "--timeout", "10s")


@functools.lru_cache(None)
def whole(count):
    """The folder of a run of LONG without a disturbance."""
    out = os.path.join(CACHE, f"whole-{count}")
    train(count, out, *LONG)
    return out


def same_end(out, count):
    """The newest checkpoint, the best model and what came of it are those of a run without a disturbance."""
    wanted, got = kept(whole(count)), kept(out)
    last = f"step-{last_step(whole(count)):06d}"
    names = {n for n in wanted if not n.startswith("step-") or n.startswith(last)} - {"latest"}
    assert last_step(out) == last_step(whole(count))
    differ = [n for n in sorted(names) if wanted[n] != got.get(n)]
    assert not differ, f"other bytes in {differ}"


def tensors(path, dtype="F32", code="f"):
    """{name: numbers} of a safetensors file."""
    blob = slurp(path)
    size, = struct.unpack_from("<Q", blob)
    found = {}
    for name, about in json.loads(blob[8:8 + size]).items():
        if name != "__metadata__" and about["dtype"] == dtype:
            a, b = about["data_offsets"]
            found[name] = array.array(code, blob[8 + size + a:8 + size + b])
    return found


def distance(a, b):
    """Of two lists of numbers, relative to the first."""
    square = sum(x * x for x in a)
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / square) ** 0.5 if square else max(map(abs, b), default=0)


# ---- collectives -----------------------------------------------------------------------------------------------------


@case("sums have the bits of adding in the order of ranks, in every run", slow=True)
def _(_work):
    found = {}
    for count in (1, 2, 3, 4, 3):
        line = mpi.ranks("collective-ranks", count, program("collective-ranks"), "sums")
        text = run(line, env=ENVIRONMENT).stdout
        assert found.setdefault(count, text) == text and re.fullmatch(r"[0-9a-f]{16}\n", text), text
    assert len(set(found.values())) == 4


@case("an error of one rank becomes the error of the job, with the name of the rank", slow=True)
def _(_work):
    line = mpi.ranks("collective-ranks", 3, program("collective-ranks"), "fail", "2")
    done = run(line, 3, env=ENVIRONMENT)
    says(done, r"collective-ranks: rank 2 \S+: 'x' cannot be read")
    assert done.stderr.count("cannot be read") == 1


@case("a wrong command line is reported once, and one of a single rank with the name of the rank", slow=True)
def _(work):
    out = os.path.join(work, "run")
    for more, text in ((["--epochs", "0"], "--epochs: takes a number"), (["--nosuch"], "unknown option '--nosuch'"),
                       (["stray"], "'stray' is not an option"), (["--select"], "option '--select' needs a value")):
        done = train(3, out, *more, code=2)
        assert done.stderr.count(text) == 1 and done.stderr.count("chex-train: ") == 1, done.stderr
        assert not os.path.exists(out)
    line = ranks(1, out)
    done = run([*mpi.ranks("chex-train", 2, *line), ":", "-np", "1", *line, "--nosuch"], 2, env=ENVIRONMENT)
    says(done, r"chex-train: rank 2 \S+: unknown option '--nosuch'")


@case("a job that was suspended for longer than the timeout continues", slow=True)
def _(_work):
    process = start(mpi.ranks("collective-ranks", 3, program("collective-ranks"), "wait", "6"))
    pids = wait_for(lambda: len(p := children(process.pid, "collective-ranks")) == 3 and p)
    time.sleep(1)
    for number, pause in ((signal.SIGSTOP, 4), (signal.SIGCONT, 0)):
        for pid in pids:
            os.kill(pid, number)
        time.sleep(pause)
    text, code = finish(process)
    assert code == 0, text


# ---- the same training ---------------------------------------------------------------------------------------------


def furthest(a, b, running):
    """How far two checkpoints are apart in the tensor where it is most: running statistics, or all else."""
    x, y = tensors(a), tensors(b)
    return max(distance(x[name], y[name]) for name in x if ("running_" in name) == running)


def counters(path):
    """What num_batches_tracked says, of all normalisations."""
    return {counter for counts in tensors(path, "I64", "q").values() for counter in counts}


def validation(out):
    """Loss and AUROC of the first epoch."""
    with open(f"{out}/metrics.jsonl", encoding="utf-8") as f:
        line = next(found for found in map(json.loads, f) if "auroc" in found)
    return line["loss"], line["auroc"]


EVERY = ("-v", "--optimizer", "sgd", "--lr", "0.05", "--epochs", "1", "--checkpoint-every", "1steps", "--keep", "0")


@case("1, 2 and 4 ranks train on the same samples, and a step from the same weights is the same within rounding")
def _(work):
    one = f"{work}/1"
    orders = [re.findall(r"order +([0-9a-f]+)", train(1, one, *EVERY).stderr)]
    for running in (False, True):
        assert furthest(f"{one}/step-000000.safetensors", f"{one}/step-000006.safetensors", running) > 0.01
    for count in (2, 4):
        out = f"{work}/{count}"
        orders.append(re.findall(r"order +([0-9a-f]+)", train(count, out, *EVERY).stderr))
        # The last step by itself, in which some ranks have few images or none.
        train(count, out + "-last", *EVERY, "--resume", f"{one}/step-000005.safetensors")
        for running in (False, True):
            assert furthest(f"{one}/step-000000.safetensors", f"{out}/step-000000.safetensors", running) == 0
            for step, folder in ((1, out), (6, out + "-last")):
                name = f"step-{step:06d}.safetensors"
                moved = furthest(f"{one}/{name}", f"{folder}/{name}", running)
                assert moved < 1e-6, f"{moved:.2g} in step {step} of {count} ranks"
    assert orders[0] == orders[1] == orders[2], orders


def same_steps(work, counts, *more):
    """With these options all numbers of ranks make the same step, another one than without, and resume exactly."""
    step, every = "step-000001.safetensors", ("--checkpoint-every", "1steps", "--keep", "0")
    for count in counts:
        train(count, f"{work}/{count}", *every, *more, "--max-steps", "4")
        train(count, f"{work}/{count}-stopped", *every, *more, "--max-steps", "2")
        train(count, f"{work}/{count}-stopped", *every, *more, "--max-steps", "4")
        assert slurp(f"{work}/{count}/step-000004.safetensors") == \
            slurp(f"{work}/{count}-stopped/step-000004.safetensors")
        for running in (False, True):
            moved = furthest(f"{work}/1/{step}", f"{work}/{count}/{step}", running)
            assert moved < 1e-4, f"{moved:.2g} between 1 and {count} ranks"
    train(1, f"{work}/plain", *every, "--max-steps", "1")
    assert furthest(f"{work}/1/{step}", f"{work}/plain/{step}", False) > 1e-3, f"{more} change nothing"


@case("1 and 2 ranks make the same step of smoothed labels, and a resumed run the same bytes")
def _(work):
    same_steps(work, (1, 2), "--label-smoothing", "0.3")


@case("1, 2 and 4 ranks make the same step of rotated and brightened images, and a resumed run the same bytes")
def _(work):
    same_steps(work, (1, 2, 4), "--rotate", "15", "--brightness", "0.3")


@case("1, 2 and 4 ranks make the same step of mixed images, and a resumed run the same bytes")
def _(work):
    same_steps(work, (1, 2, 4), "--mixup", "0.4", "--label-smoothing", "0.1")


@case("in bf16, 1, 2 and 4 ranks have the same weights, and a resumed run has the same bytes")
def _(work):
    half, step = ("--precision", "bf16", "--checkpoint-every", "1steps", "--keep", "0"), "step-000003.safetensors"
    for count in (1, 2, 4):
        train(count, f"{work}/{count}", *half, "--max-steps", "3")
        assert furthest(f"{work}/1/{step}", f"{work}/{count}/{step}", False) == 0, f"{count} ranks"
    train(1, f"{work}/stopped", *half, "--max-steps", "2")
    train(1, f"{work}/stopped", *half, "--max-steps", "3")
    assert slurp(f"{work}/1/{step}") == slurp(f"{work}/stopped/{step}")
    train(1, f"{work}/single", "--checkpoint-every", "1steps", "--keep", "0", "--max-steps", "3")
    assert furthest(f"{work}/1/{step}", f"{work}/single/{step}", False) > 1e-6, "bf16 changes nothing"


@case("running statistics and their counters are those of one process, ragged last steps too, and so is the first "
      "judgement", slow=True)
def _(work):
    for optimizer in ("sgd", "adam"):
        for counts in ((1, 2, 4), (1, 3)):  # 90 images: five steps of 16 and 4 + 4 + 2; seven of 12 and 4 + 2
            last = 6 if 4 in counts else 8
            for count in counts:
                out = f"{work}/{optimizer}-{max(counts)}-{count}"
                one = f"{work}/{optimizer}-{max(counts)}-1"
                batch = ("--batch", "12") if counts == (1, 3) and count == 1 else ()
                rate = () if optimizer == "sgd" else ("--optimizer", "adam", "--lr", "0.001")
                train(count, out, *EVERY, *batch, *rate)
                first, end = f"{out}/step-000001.safetensors", f"{out}/step-{last:06d}.safetensors"
                assert counters(first) == {4 if 4 in counts else 3} and counters(end) == {23}, counters(end)
                moved = furthest(f"{one}/step-000001.safetensors", first, True)
                assert moved < 1e-4, f"{moved:.2g} after a step of {count} ranks"
                for running, much in ((True, 1e-5), (False, 1e-6)):  # sums of floats drift apart
                    moved = furthest(f"{one}/step-{last:06d}.safetensors", end, running)
                    assert moved < much, f"{moved:.2g} after an epoch of {count} ranks"
                for a, b in zip(validation(one), validation(out)):
                    assert abs(a - b) < 1e-3, f"{a} with one rank, {b} with {count}"


@case("the same ranks twice leave the same bytes", slow=True)
def _(work):
    train(2, f"{work}/a")
    train(2, f"{work}/b")
    assert kept(f"{work}/a") == kept(f"{work}/b") and f"{last_step(work + '/a')}" != "0"


@case("one to four ranks evaluate the same weights with equal digits, and share the bootstrap")
def _(work):
    best = f"{whole(2)}/best.safetensors"
    for count in (1, 2, 3, 4):
        line = words(f"{work}/{count}", "--init", best, "--eval-only", "--tta", "flip", "--batch", "4",
                     "--bootstrap", "203", "-j", count % 3 + 1)
        os.mkdir(f"{work}/{count}")
        run(line if count == 1 else mpi.ranks("chex-train", count, *line), env=ENVIRONMENT)
    for name in ("predictions-test.csv", "metrics-test.json"):
        first = slurp(f"{work}/1/{name}")
        assert len(first) > 500
        for count in (2, 3, 4):
            assert slurp(f"{work}/{count}/{name}") == first, f"{name} of {count} ranks"


@case("another number of ranks resumes where the last one stopped", slow=True)
def _(work):
    out = f"{work}/run"
    process, pids = begin(4, out, *LONG)
    os.kill(pids[0], signal.SIGTERM)
    text, code = finish(process)
    assert code == 75, text
    at = last_step(out)
    done = train(2, out, *LONG)
    says(done, f"step-{at:06d}")
    assert last_step(out) == last_step(whole(4))
    for name, want in tensors(f"{whole(4)}/step-{last_step(out):06d}.safetensors").items():
        if "weight" in name and "norm" not in name:
            assert distance(want, tensors(f"{out}/step-{last_step(out):06d}.safetensors")[name]) < 0.1, name


@case("a run moves between numbers of ranks: the images of each epoch, weights and moments stay the same bits")
def _(work):
    straight, out = f"{work}/straight", f"{work}/run"
    more = ("-v", "--checkpoint-every", "2steps")
    wanted = re.findall(r"order +([0-9a-f]+)", train(1, straight, *more, "--epochs", "4").stderr)
    assert len(set(wanted)) == 4, wanted
    found = []
    for epochs, count in enumerate((4, 1, 2, 4), 1):  # --batch with each: 16 images a step
        done = train(count, out, *more, "--epochs", epochs)
        found += re.findall(r"order +([0-9a-f]+)", done.stderr)
    assert found == wanted, (found, wanted)
    last = f"step-{last_step(straight):06d}"
    assert last_step(out) == last_step(straight)
    for name in (f"{last}.safetensors", f"{last}.opt.safetensors"):
        theirs = tensors(f"{straight}/{name}")
        for tensor, ours in tensors(f"{out}/{name}").items():
            if "running_" in tensor:
                assert distance(theirs[tensor], ours) < 1e-5, tensor
            else:
                assert ours == theirs[tensor], f"{name}: {tensor} has other bits"


@case("--lr-scale linear multiplies the rate by the ranks; with other ranks it needs --allow-batch-change")
def _(work):
    out, more = f"{work}/run", ("--lr", "0.002", "--schedule", "constant", "--lr-scale", "linear", "--warmup", "1epoch")
    says(train(2, out, *more, "--max-steps", "7"), r"lr +0\.004 = 0\.002 x 2 ranks, warm-up 6 steps \(1 epoch\)")
    given = json.loads(slurp(f"{out}/run.json"))["options"]
    assert [given[name] for name in ("lr", "lr-scale", "lr-factor", "warmup")] == [0.002, "linear", 2, "1epoch"], given
    says(train(1, out, *more, code=6), r"lr-factor 2 -> 1 \(--allow-batch-change resumes with it\)")
    says(train(1, out, *more, "--allow-batch-change", "--max-steps", "9"), "changed since .*lr-factor 2 -> 1",
         r"lr +0\.002 = 0\.002 x 1 rank, ")
    train(2, out, *more, "--allow-batch-change")
    with open(f"{out}/metrics.jsonl", encoding="utf-8") as f:
        rate = [line["learning_rate"] for line in map(json.loads, f) if line["kind"] == "step"]
    wanted = [0.004 * (i + 1) / 6 for i in range(6)] + [0.004] + 2 * [0.002] + 3 * [0.004]
    assert len(rate) == 12 and all(abs(a - b) < 1e-9 for a, b in zip(rate, wanted)), rate
    twice = f"{work}/twice"
    train(2, twice, "--lr", "0.004", "--schedule", "constant", "--max-steps", "2")
    train(2, twice + "-scaled", *more[:6], "--max-steps", "2")
    name = f"step-{last_step(twice):06d}.safetensors"
    assert all(distance(a, tensors(f"{twice}-scaled/{name}")[tensor]) == 0
               for tensor, a in tensors(f"{twice}/{name}").items()), "other weights than with the same rate"
    says(train(2, f"{work}/high", "--lr", "9e29", "--lr-scale", "linear", code=2), r"1\.8e\+30")


@case("another global batch is refused, unless the user wants it", slow=True)
def _(work):
    shutil.copytree(whole(2), f"{work}/run")
    more = ("--batch", "12", "--epochs", "5")
    says(run(mpi.ranks("chex-train", 2, *words(f"{work}/run", *more)), 6, env=ENVIRONMENT), "batch", "16", "24",
         "--allow-batch-change")
    run(mpi.ranks("chex-train", 2, *words(f"{work}/run", *more, "--allow-batch-change")), env=ENVIRONMENT)


# ---- ranks that differ ---------------------------------------------------------------------------------------------


def two_commands(first, second):
    return mpi.ranks("chex-train", 1, *first) + [":", "-np", "1", *map(str, second)]


@case("ranks with different options: the option is named, and nothing is written")
def _(work):
    for change, what in ((["--seed", "7"], "seed 7"), (["--lr", "0.5"], "lr 0.5"), (["--epochs", "9"], "epochs 9")):
        done = run(two_commands(words(f"{work}/out"), words(f"{work}/out", *change)), 2, env=ENVIRONMENT)
        says(done, r"rank 1 \S+ does not do the same as rank 0: it has '" + re.escape(what))
        assert done.stderr.count("does not do the same") == 1
        assert not os.path.exists(f"{work}/out")


@case("ranks with another data set end with a message", slow=True)
def _(work):
    labels = synth(f"{work}/images", 60, "--size", "64", "--seed", "9")
    run([program("chex-convert"), "-q", "-i", f"{work}/images/images", "-l", labels, "-o", f"{work}/other", "--size",
         "36", "--shard-size", "16", "--split", "patient:50,25,25"])
    done = run(two_commands(words(f"{work}/out"), words(f"{work}/out", source=f"{work}/other")), 2, env=ENVIRONMENT)
    says(done, r"rank 1 \S+ does not do the same as rank 0: it has 'data-set [0-9a-f]{16}', "
         r"rank 0 'data-set [0-9a-f]{16}'")


@case("an option that only one rank cannot take ends all of them, with its name", slow=True)
def _(work):
    done = run(two_commands(words(f"{work}/out"), words(f"{work}/out", "--batch", "6")), 2, env=ENVIRONMENT)
    says(done, r"chex-train: rank 1 \S+: --batch 6 is not a multiple of --micro-batch 4")
    assert done.stderr.count("is not a multiple") == 1


@case("ranks that mpirun binds to one core each are warned", slow=True)
def _(work):
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        raise mpi.Skip("one core")
    line = mpi.ranks("chex-train", 1, *words(f"{work}/out", "-n"))
    bound = dict(ENVIRONMENT, OMPI_MCA_hwloc_base_binding_policy="core")
    says(run(line, env=bound), f"warning: mpirun lets each of 1 ranks use [1-{cores // 2}] of {cores} cores; --map-by")
    assert "mpirun lets" not in run(line, env=ENVIRONMENT).stderr


def poisoned(work):
    """A copy of the data set with a damaged record in each shard to train on but the first."""
    folder = shutil.copytree(data(), f"{work}/bad")
    m = manifest(folder)
    for shard in [s["name"] for s in m["shards"] if "-train." in s["name"]][1:]:
        blob = bytearray(slurp(f"{folder}/{shard}"))
        blob[m["record"]["stride"] * 3 + m["record"]["pixel_offset"] + 5] ^= 1
        write(f"{folder}/{shard}", bytes(blob))
    return folder


@case("a shard that one rank cannot see is named with that rank, before the first step", slow=True)
def _(work):
    folder = shutil.copytree(data(), f"{work}/copy")
    name = next(s["name"] for s in manifest(folder)["shards"] if "-train." in s["name"])
    os.unlink(f"{folder}/{name}")
    done = run(two_commands(words(f"{work}/out"), words(f"{work}/out", source=folder)), 3, env=ENVIRONMENT)
    says(done, r"chex-train: rank 1 \S+: .*" + re.escape(name))
    assert not os.path.exists(f"{work}/out")


@case("a record that is damaged for one rank ends all of them, and the progress is saved")
def _(work):
    out = f"{work}/out"
    first = words(out, "--batch", "8", "--checkpoint-every", "never")
    second = words(out, "--batch", "8", "--checkpoint-every", "never", source=poisoned(work))
    done = run(two_commands(first, second), 1, env=ENVIRONMENT)
    says(done, r"chex-train: rank 1 \S+: .*record 3")
    assert done.stderr.count("record 3") == 1
    at = last_step(out)
    assert at >= 0
    # With the whole data set it resumes, to the same end as without the damage.
    run(mpi.ranks("chex-train", 2, *first), env=ENVIRONMENT)
    train(2, f"{work}/straight", "--checkpoint-every", "never")
    assert slurp(f"{out}/best.safetensors") == slurp(f"{work}/straight/best.safetensors")


@case("records that are damaged for one rank alone and replaced count for the job: exit code 1", slow=True)
def _(work):
    folder = shutil.copytree(data(), f"{work}/copy")
    m = manifest(folder)
    path = f"{folder}/{next(s['name'] for s in m['shards'] if '-train.' in s['name'])}"
    blob = bytearray(slurp(path))
    for record in range(len(blob) // m["record"]["stride"]):
        blob[m["record"]["stride"] * record + m["record"]["pixel_offset"] + 5] ^= 1
    write(path, bytes(blob))
    skip = ["--batch", "8", "--on-bad-record", "skip"]
    done = run(two_commands(words(f"{work}/out", *skip), words(f"{work}/out", *skip, source=folder)), 1,
               env=ENVIRONMENT)
    says(done, r"\d+ damaged records? skipped so far")


@case("--stage: one rank of a machine copies, and all read the copy", slow=True)
def _(work):
    folder = shutil.copytree(data(), f"{work}/copy")
    stage = ["--stage", f"{work}/stage", "--cache", "none"]
    done = run(ranks(2, f"{work}/out", *stage, source=folder), env=ENVIRONMENT)
    assert len(re.findall(r"note     \d+ shards in", done.stderr)) == 1, done.stderr
    copy, = os.listdir(f"{work}/stage")
    assert set(os.listdir(f"{work}/stage/{copy}")) == set(os.listdir(folder))
    train(2, f"{work}/straight")
    assert slurp(f"{work}/out/best.safetensors") == slurp(f"{work}/straight/best.safetensors")
    write(f"{work}/file", "")
    done = run(ranks(2, f"{work}/two", "--stage", f"{work}/file", source=folder), 4, env=ENVIRONMENT)
    assert done.stderr.count("cannot") == 1, done.stderr


@case("--shuffle: ranks with different values are named", slow=True)
def _(work):
    done = run(two_commands(words(f"{work}/out"), words(f"{work}/out", "--shuffle", "2")), 2, env=ENVIRONMENT)
    says(done, "rank 1 .*shuffle 2.*shuffle auto")


# ---- ranks that are gone -------------------------------------------------------------------------------------------


@case("of a killed rank the others do not wait for the timeout, and the same command resumes to the same end")
def _(work):
    for victim in (0, 2):
        out = f"{work}/{victim}"
        process, pids = begin(3, out, *LONG, "--timeout", "10h")
        os.kill(pids[victim], signal.SIGKILL)
        text, code = finish(process)
        wait_for(lambda pids=pids: gone(pids))
        assert code in (8, 137), f"{code}: {text}"
        # A rank that is left names the one it waits for, in the second that mpirun gives it.
        assert re.search(rf"chex-train: .*rank {victim} ", text), text
        train(3, out, *LONG)
        same_end(out, 3)


@case("a rank that hangs is named by the others, exit code 8")
def _(work):
    for victim in (0, 2):
        out = f"{work}/{victim}"
        process, pids = begin(3, out, *LONG)
        os.kill(pids[victim], signal.SIGSTOP)
        text, code = finish(process)
        assert code == 8, f"{code}: {text}"
        assert re.search(rf"chex-train: rank {victim} \S+ is lost: no message for 10 s\n", text), text
        assert len(re.findall("is lost: no message for", text)) == 1, text
        assert re.search(r"next     the same command again resumes from step-\d+", text), text
        wait_for(lambda pids=pids: gone(pids))


@case("a stop signal at one rank, or by mpirun at all, saves and ends with 75")
def _(work):
    for number, everyone in ((signal.SIGTERM, False), (signal.SIGUSR1, True)):
        out = f"{work}/{number}"
        process, pids = begin(3, out, *LONG)
        os.kill(process.pid if everyone else pids[1], number)
        text, code = finish(process)
        assert code == 75, f"{code}: {text}"
        assert len(re.findall("stopped at step", text)) == 1, text
        train(3, out, *LONG)
        same_end(out, 3)


@case("--time-limit of a job of several ranks saves and ends with 75; the others are gone before rank 0 says so")
def _(work):
    # srun takes the largest code of all, and -K kills what is left when one is not 0.
    wrapper = write(f"{work}/rank.sh", '"$@"\ncode=$?\ndate +%s%N > "$ENDS.$OMPI_COMM_WORLD_RANK"\nexit $code\n')
    for limit, code in (("1.5s", 75), ("1h", 2)):
        out = f"{work}/{limit}"
        more = ("--epochs", "100000", "--time-limit", limit) if code == 75 else ("--epochs", "none")
        line = mpi.ranks("chex-train", 3, "sh", wrapper, *words(out, "--batch", "4", *more))
        done = run(line, code, env=dict(ENVIRONMENT, ENDS=f"{work}/{limit}.end"))
        ends = [int(slurp(f"{work}/{limit}.end.{rank}")) for rank in range(3)]
        assert ends[0] > max(ends[1:]), ends
        if code == 75:
            says(done, r"stopped at step \d+", "next     the same command again")
            assert last_step(out) > 0


@case("the stop signals are caught before MPI starts: mpirun may hang where one kills a rank that says hello to it")
def _(work):
    caught = 1 << (signal.SIGUSR1 - 1)
    process, seen = start(ranks(3, f"{work}/out", "--epochs", "1")), 0
    while process.poll() is None:
        for pid in children(process.pid, "chex-train"):
            try:
                talks = any(os.readlink(f"/proc/{pid}/fd/{n}").startswith("socket:")
                            for n in os.listdir(f"/proc/{pid}/fd"))
                catches = re.search(rb"SigCgt:\s*(\w+)", slurp(f"/proc/{pid}/status"))
            except OSError:
                continue  # a file that it has closed meanwhile, or it has ended
            if talks and catches and int(catches[1], 16):
                seen += 1
                assert int(catches[1], 16) & caught, "a rank talks to mpirun and does not catch SIGUSR1"
        time.sleep(0.002)
    assert finish(process)[1] == 0 and seen > 0, seen


@case("SIGUSR2 by mpirun saves, and the run continues", slow=True)
def _(work):
    more = ("--epochs", "4", "--checkpoint-every", "never", "--keep", "0")
    for attempt in range(12):  # a signal at the end of an epoch, or of the run, saves nothing that can be told apart
        out = f"{work}/out{attempt}"
        process = start(ranks(3, out, *more))
        wait_for(lambda out=out, process=process: last_step(out) >= 8 or process.poll() is not None)
        try:
            os.kill(process.pid, signal.SIGUSR2)
        except ProcessLookupError:
            pass
        text, code = finish(process)
        assert code == 0, text
        same_end(out, 3)
        if [n for n in kept(out) if re.fullmatch(r"step-\d+\.safetensors", n) and int(n[5:11]) % 8]:
            return
    raise AssertionError(sorted(kept(out)))


@case("SIGTERM to mpirun leaves a consistent folder, however far the run had got", slow=True)
def _(work):
    out = f"{work}/out"
    process, pids = begin(3, out, *LONG)
    os.kill(process.pid, signal.SIGTERM)
    finish(process)
    wait_for(lambda: gone(pids))
    train(3, out, *LONG)
    same_end(out, 3)


@case("a disk that is full keeps no rank from training, and the end is exit code 4", slow=True)
def _(work):
    disk = f"{work}/disk"
    os.mkdir(disk)
    if run(["mount", "-t", "tmpfs", "-o", "size=4m", "chex-test", disk], None).returncode != 0:
        raise mpi.Skip("mount is not allowed here")
    try:
        process, pids = begin(2, f"{disk}/out", *LONG)
        try:
            write(f"{disk}/other", bytes(4 << 20))
        except OSError:
            pass
        text, code = finish(process)
        assert code == 4 and "NOT saved" in text, f"{code}: {text}"
        assert gone(pids)
        os.unlink(f"{disk}/other")
        run(["mount", "-o", "remount,size=30m", disk])
        train(2, f"{disk}/out", *LONG)
        same_end(f"{disk}/out", 2)
    finally:
        run(["umount", disk], None)


if __name__ == "__main__":
    try:
        mpi.mpirun("chex-train")
        code = case.main()
    except mpi.Skip as e:
        print(f"skip chex-train by ranks: {e}\n0 passed, 0 failed, 1 skipped")
        code = 77
    sys.exit(code)
