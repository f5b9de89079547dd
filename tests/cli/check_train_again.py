#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train resumes what earlier versions left, and from the places between two epochs: nothing is lost, told
twice or left.

    check_train_again.py [PATTERN]      stopped, killed and misled at any other place: check_resume.py
"""
import hashlib
import json
import os
import re
import shutil
import struct
import sys

import harness
from fixtures import fixture
from support import Cases, Skip, SOURCE, program, python_with, run, says, slurp, write
from training import (command, data, last_step, finish, header, run_folder, same_as_whole, train, whole,
                      with_header)

case = Cases()


# ---- earlier versions ------------------------------------------------------------------------------------------------


def rewrite(folder, change):
    """Apply change() to the header of each file of a checkpoint; `latest` gets the new digests."""
    digest = {}
    for name in os.listdir(folder):
        if name.endswith(".safetensors"):
            with_header(os.path.join(folder, name), change)
            digest[name] = hashlib.sha256(slurp(os.path.join(folder, name))).hexdigest()
    steps = [line.split()[0] for line in slurp(os.path.join(folder, "latest")).decode().splitlines()]
    write(os.path.join(folder, "latest"), "".join(
        f"{s} {digest[s + '.safetensors']} {digest[s + '.opt.safetensors']}\n" for s in steps))


def set_auto(top):
    """Before 0.1.0 the settings had the word "auto" in place of the precision."""
    if "__metadata__" in top:
        state = json.loads(top["__metadata__"]["state"])
        assert "\nprecision fp32\n" in state["settings"], state["settings"]
        state["settings"] = state["settings"].replace("precision fp32", "precision auto")
        top["__metadata__"]["state"] = json.dumps(state)


@case("a run from before 0.1.0 resumes to the same bytes")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--epochs", 1)
    rewrite(out, set_auto)
    done = train(out)
    says(done, "resume   step-000006")
    assert "changed since step-000006: epochs 1 -> 3\n" in done.stderr, done.stderr
    same_as_whole(out)


@case("a run from before an option existed has that option's old value: another one is refused, or shown as a change")
def _(work):
    def drop_options(top):
        if "__metadata__" in top:
            state = json.loads(top["__metadata__"]["state"])
            for name in ("limit all", "lr-scale none", "label-smoothing 0", "rotate 0", "brightness 0", "mixup 0"):
                assert f"\n{name}\n" in state["settings"], state["settings"]
                state["settings"] = state["settings"].replace(f"\n{name}\n", "\n")
            top["__metadata__"]["state"] = json.dumps(state)

    out = run_folder(work)
    train(out, "-q", "--epochs", 1)
    rewrite(out, drop_options)
    for option, value, old in (("rotate", "10", "0"), ("brightness", "0.1", "0"), ("mixup", "0.4", "0"),
                               ("label-smoothing", "0.1", "0"), ("limit", "50%", "all")):
        says(train(out, f"--{option}", value, code=6), f"made with other options: .*{option} {old} -> {value}")
    done = train(shutil.copytree(out, os.path.join(work, "scaled")), "--lr-scale", "linear")
    assert "changed since step-000006: epochs 1 -> 3, lr-scale none -> linear\n" in done.stderr, done.stderr
    done = train(out)
    assert "changed since step-000006: epochs 1 -> 3\n" in done.stderr, done.stderr
    same_as_whole(out)


@case("files of the densenet-micro that had 3 layers in its first block are refused with 6")
def _(work):
    out = shutil.copytree(whole(), os.path.join(work, "run"))

    def drop_layer(top):
        for name in [n for n in top if "denseblock1.denselayer4." in n]:
            top[name.replace("denseblock1.denselayer4.", "extra.")] = top.pop(name)

    rewrite(out, drop_layer)
    best = os.path.join(out, "best.safetensors")
    for done in (train(out, "--epochs", 4, code=6),
                 train(run_folder(work, "init"), "--init", best, code=6),
                 run([program("chex-train"), "-d", data(), "-o", out, "--eval-only"], 6)):
        says(done, r"tensors of densenet-micro do not fit: features\.denseblock1\.denselayer4\.norm1\.weight: wanted "
                   "80, found none")


@case("the chosen precision is stored in checkpoints and run.json, and a resumed run is compared with it")
def _(work):
    settings = json.loads(header(os.path.join(whole(), "best.safetensors"))["__metadata__"]["state"])["settings"]
    assert "\nprecision fp32\n" in settings, settings
    about = json.loads(slurp(os.path.join(whole(), "run.json")))
    assert about["options"]["precision"] == about["sessions"][0]["precision"] == "fp32", about["options"]
    done = train(shutil.copytree(whole(), os.path.join(work, "run")), "--precision", "fp32")
    assert "precision" not in done.stderr, done.stderr


# ---- the end of an epoch ---------------------------------------------------------------------------------------------


def lines(folder):
    return [json.loads(line) for line in slurp(os.path.join(folder, "metrics.jsonl")).decode().splitlines()]


def told(folder):
    """Each epoch of metrics.jsonl with its images; and what is no number of a run: a rate of 0."""
    epochs = [line for line in lines(folder) if line["kind"] == "epoch"]
    assert all(e["images_per_second"] > 0 and e["seconds"] > 0 for e in epochs), epochs
    return [(e["epoch"], e["images"]) for e in epochs]


def curves(folder):
    """{tag: steps} as TensorBoard shows them; None without it."""
    try:
        python = python_with("tensorboard")
    except Skip:
        return None
    seen = json.loads(run([python, os.path.join(SOURCE, "tests", "train", "log", "read_events.py"), folder]).stdout)
    return {tag: [step for step, _ in points] for tag, points in seen["scalars"].items()}


@case("a stop with the last step of an epoch, then one in its evaluation: reported once, with its images and its rate")
def _(work):
    # An epoch of one step: the time is over with its last one.
    more = ["--batch", 96, "--micro-batch", 16]
    straight, out = run_folder(work, "straight"), run_folder(work)
    train(straight, "-q", *more)
    done = train(out, *more, "--time-limit", "0.001s", code=75)
    says(done, "stopped at step 1", r"ep 1/3   loss \S+  lr 0\.001  [1-9]\S* img/s")
    assert told(out) == told(straight)[:1], lines(out)
    for _ in range(2):
        done = train(out, *more, "--time-limit", "0.001s", code=75)
        says(done, "resume   step-000001: 1 step, 0 of 3 epochs", "stopped at step 1")
        assert "ep 1/3" not in done.stderr and " img/s" not in done.stderr, done.stderr
    done = train(out, *more)
    same_as_whole(out, straight)
    assert told(out) == told(straight), (told(out), told(straight))
    assert len(told(straight)) == 3
    seen = curves(out)
    if seen:
        assert seen["epoch/loss"] == seen["train/loss"] == seen["val/loss"] == [1, 2, 3], seen


@case("a stop with the last step of an epoch where there are no metrics: the best model and the rate are the same")
def _(work):
    folder = os.path.join(work, "all")
    images = fixture("images120")
    run([program("chex-convert"), "-q", "-i", images + "/images", "-l", images + "/Data_Entry_2017_v2020.csv",
         "-o", folder, "--size", "36", "--split", "none"])
    more = ["--batch", 128, "--micro-batch", 16]
    straight, out = run_folder(work, "straight"), run_folder(work)
    train(straight, "-q", *more, source=folder)
    train(out, "-q", *more, "--time-limit", "0.001s", code=75, source=folder)
    train(out, "-q", *more, source=folder)
    same_as_whole(out, straight)
    assert told(out) == told(straight), (told(out), told(straight))


# ---- a rate to resume with -------------------------------------------------------------------------------------------


@case("a run that diverges: half of a rate that may be one, the default in the place of one that is none")
def _(work):
    # Weights with which any step diverges, whatever its rate.
    path = shutil.copy(os.path.join(whole(), "best.safetensors"), os.path.join(work, "huge.safetensors"))
    blob, first = bytearray(slurp(path)), header(path)["classifier.weight"]["data_offsets"]
    start = 8 + struct.unpack_from("<Q", blob)[0]
    count = (first[1] - first[0]) // 4
    struct.pack_into(f"<{count}f", blob, start + first[0], *[3e38] * count)
    write(path, blob)
    for rate, hint in (("0.01", "0.005"), ("1e-3", "0.0005"), ("0.02", "0.001"), ("1e20", "0.001"), ("1e30", "0.001")):
        done = train(os.path.join(work, rate), "--init", path, "--lr", rate, code=7)
        says(done, rf"not finite .*; last good checkpoint step-000000; try --lr {re.escape(hint)}\n")


# ---- checkpoints that are no longer wanted ---------------------------------------------------------------------------


@case("a power loss between the new list of checkpoints and the removal of the old ones: the next start removes them")
def _(work):
    out = run_folder(work)
    more = ["--keep", 1, "--epochs", 1]
    report = os.path.join(work, "report")
    straight = harness.run(command(out, *more), [os.path.realpath(out)], report=report)
    wanted = sorted(n for n in os.listdir(out) if n.startswith("step-"))
    assert straight.code == 0 and wanted == ["step-000006.opt.safetensors", "step-000006.safetensors"], wanted
    left = 0
    # Killed in the middle of the last save, a run that is complete has no other to tidy up with.
    for nth in range(1, straight.counts["unlink"] + 1):
        out = run_folder(work, f"kill{nth}")
        assert harness.run(command(out, *more), [os.path.realpath(out)], f"unlink:{nth}:once:kill").code == -9
        complete = os.path.exists(os.path.join(out, "latest")) and last_step(out) == "step-000006"
        left += complete and len([n for n in os.listdir(out) if n.startswith("step-")]) > 2
        train(out, "-q", *more)
        found = sorted(n for n in os.listdir(out) if n.startswith("step-"))
        assert found == wanted, (nth, found)
        shutil.rmtree(os.path.realpath(out))
    assert left > 0, "no kill came between the two"


@case("an older checkpoint that cannot be removed at the start ends no run")
def _(work):
    out = run_folder(work)
    more = ["--keep", 1, "--epochs", 1]
    train(out, "-q", *more, "--checkpoint-every", "3steps", "--keep", 0)
    newest = slurp(os.path.join(out, "latest")).decode().splitlines()[0]
    write(os.path.join(out, "latest"), newest + "\n")
    os.unlink(os.path.join(out, "step-000003.opt.safetensors"))
    os.mkdir(os.path.join(out, "step-000003.opt.safetensors"))
    done = train(out, *more)
    says(done, "resume   step-000006", r"warning: an older checkpoint stays: cannot remove .*step-000003\.opt")
    assert last_step(out) == "step-000006", slurp(os.path.join(out, "latest"))


if __name__ == "__main__":
    sys.exit(finish(case))
