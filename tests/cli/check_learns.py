#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does chex-train learn?  By hand, `make check-learns`: some minutes; prints what was reached, and the CPU time it
took.

    check_learns.py [PATTERN]

doc/tour.md's commands of a training run, with the seeds 1, 2 and 3: mean AUROC of the split test,
whose patients training has not seen.  DenseNet-121 on the few real images of $CHEX_NIH: it must be able to learn them
by heart, so that each finding that occurs has an AUROC of 1.  The maps of a network that was trained on the synthetic
images must point to the boxes that chex-synth lists.
"""
import functools
import json
import os
import random
import re
import resource
import struct
import sys

from support import SOURCE, Cases, cache_folder, nih, program, run, slurp, write

case = Cases()
CACHE = cache_folder("learns")
AT_LEAST = 0.90


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command):
    """CPU seconds of all its threads."""
    before = cpu_seconds()
    run(command, cwd=CACHE, timeout=3600)
    return cpu_seconds() - before


def commands():
    """Those of doc/tour.md's training session, each once: chex-synth, chex-convert, chex-train."""
    text = slurp(os.path.join(SOURCE, "doc", "tour.md")).decode()
    session = re.search(r"<!-- training session -->\n(.*?)<!-- /training session -->", text, re.S).group(1)
    found = list(dict.fromkeys(re.findall(r"^    \$ (chex-(?:synth|convert|train) .*)$", session, re.M)))
    assert [c.split()[0] for c in found] == ["chex-synth", "chex-convert", "chex-train"], found
    return [[program(c.split()[0]), "-q", *c.split()[1:]] for c in found]


@functools.lru_cache(None)
def synthetic():
    """Make the data set of doc/tour.md; the command that trains on it."""
    *before, train = commands()
    for command in before:
        run(command, cwd=CACHE)
    return train


def judged(folder, split):
    with open(os.path.join(CACHE, folder, f"metrics-{split}.json"), encoding="utf-8") as f:
        return json.load(f)


def learns(seed, _work):
    command = synthetic()
    folder = f"seed-{seed}"
    command = [folder if before == "-o" else word for before, word in zip(["", *command], command)]
    seconds = timed([*command, "--seed", str(seed)])
    found = judged(folder, "test")
    mean = found["mean"]["auroc"]
    print(f"     seed {seed}: AUROC {mean['value']:.3f} [{mean['low']:.3f}, {mean['high']:.3f}] of "
          f"{found['split']['images']} images of {found['split']['patients']} patients, {seconds:.0f} s of CPU time")
    assert mean["value"] >= AT_LEAST, f"AUROC {mean['value']:.3f}, less than {AT_LEAST}"


for number in (1, 2, 3):
    case(f"doc/tour.md's training run reaches an AUROC of {AT_LEAST:.2f} with seed {number}")(
        functools.partial(learns, number))


@case("DenseNet-121 learns the real images by heart")
def _(_work):
    run([program("chex-convert"), "-q", "-i", nih("images"), "-l", nih("csv", "Data_Entry_2017_v2020.csv.gz"),
         "--allow-missing", "--split", "none", "--size", "64", "--shard-size", "64", "-o", "real"], cwd=CACHE)
    train = [program("chex-train"), "-q", "-d", "real", "-o", "by-heart"]
    seconds = timed([*train, "--augment", "none", "--batch", "16", "--epochs", "20", "--schedule", "constant"])
    run([*train, "--eval-only", "--split", "all", "--bootstrap", "0"], cwd=CACHE)
    found = judged("by-heart", "all")
    occur = [f for f in found["findings"] if f["positives"] > 0]
    lowest = min(occur, key=lambda f: f["auroc"]["value"])
    print(f"     {found['split']['images']} images, {len(occur)} findings that occur, lowest AUROC "
          f"{lowest['auroc']['value']:.4f} ({lowest['name']}), {seconds:.0f} s of CPU time")
    assert len(occur) > 3, "too few findings to say anything"
    assert lowest["auroc"]["value"] == 1, f"{lowest['name']}: AUROC {lowest['auroc']['value']}"


# ---- maps --------------------------------------------------------------------------------------------------------


def shuffle_classifier(path, out):
    """The model with the weights of its linear layer in another order."""
    blob = bytearray(slurp(path))
    size, = struct.unpack_from("<Q", blob)
    head = json.loads(blob[8:8 + size])
    first, end = (8 + size + at for at in head["classifier.weight"]["data_offsets"])
    values = [bytes(blob[at:at + 4]) for at in range(first, end, 4)]
    random.Random(1).shuffle(values)
    blob[first:end] = b"".join(values)
    write(out, bytes(blob))


def found_boxes(model, out):
    """{finding: {method: its pointing game}} on the synthetic test images."""
    run([program("chex-predict"), "-q", model, "synth/images", "--size", "96", "--boxes", "synth/BBox_List_2017.csv",
         "-f", "-o", out], cwd=CACHE)
    with open(os.path.join(CACHE, out, "boxes.json"), encoding="utf-8") as f:
        told = json.load(f)
    found = {finding["name"]: {method: finding[method]["pointing_game"] for method in ("map", "constant", "chance")}
             for finding in told["findings"] if not finding["too_few"]}
    for name, methods in found.items():
        print(f"     {out}, {name}: pointing game of", ", ".join(
            f"{method} {m['value']:.2f} [{m['low'] or m['value']:.2f}, {m['high'] or m['value']:.2f}]"
            for method, m in methods.items()))
    return found


def is_above(one, other):
    """Whether the intervals do not overlap; without an interval the value counts."""
    low = one["value"] if one["low"] is None else one["low"]
    return low > (other["value"] if other["high"] is None else other["high"])


@case("maps point to Mass and Effusion more often than chance and the constant box; with shuffled weights they do not")
def _(_work):
    synthetic()
    run([program("chex-convert"), "-q", "-i", "synth/images", "-l", "synth/Data_Entry_2017_v2020.csv", "--size", "96",
         "--findings", "Mass,Effusion", "-o", "two"], cwd=CACHE)
    seconds = timed([program("chex-train"), "-q", "-d", "two", "-o", "maps", "--model", "densenet-micro",
                     "--crop", "80", "--batch", "32", "--epochs", "30", "--bootstrap", "20"])
    print(f"     {seconds:.0f} s of CPU time")
    found = found_boxes("maps", "boxes")
    shuffle_classifier(os.path.join(CACHE, "maps", "best.safetensors"), os.path.join(CACHE, "shuffled.safetensors"))
    shuffled = found_boxes("shuffled.safetensors", "shuffled")
    for finding in ("Mass", "Effusion"):
        for control in ("chance", "constant"):
            assert is_above(found[finding]["map"], found[finding][control]), (finding, control, found[finding])
        assert not all(is_above(shuffled[finding]["map"], shuffled[finding][control])
                       for control in ("chance", "constant")), (finding, shuffled[finding])


if __name__ == "__main__":
    sys.exit(case.main())
