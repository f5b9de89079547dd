#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-q in all tools: nothing where the exit status is 0, one line on standard error where it is another one.

    check_quiet.py [PATTERN]

Data on standard output (the faults of chex-inspect, JSON) is no part of this.
"""
import functools
import os
import shutil
import sys

from support import Cases, cache_folder, manifest, program, run, slurp, synth, write
from training import poison

case = Cases()
CACHE = cache_folder("quiet")


@functools.lru_cache(None)
def images():
    synth(os.path.join(CACHE, "images"), 40, "--size", 64)
    return os.path.join(CACHE, "images")


def labels(folder=None):
    return os.path.join(folder or images(), "Data_Entry_2017_v2020.csv")


def convert(out, *more, source=None):
    source = source or images()
    return [program("chex-convert"), "-i", os.path.join(source, "images"), "-l", labels(source), "-o", out,
            "--size", 36, "--shard-size", 8, *more]


@functools.lru_cache(None)
def dataset():
    run(convert(os.path.join(CACHE, "data"), "-q"))
    return os.path.join(CACHE, "data")


def says_one_line(command, code, text):
    done = run([*command, "-q"], code)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and not done.stdout, (command, done.stdout, done.stderr)
    assert lines[0].startswith(os.path.basename(command[0]) + ": ") and text in lines[0], lines


def says_nothing(command):
    done = run([*command, "-q"])
    assert not done.stderr and not done.stdout, (done.stdout, done.stderr)


@case("chex-convert: rejects, rows, missing images, existing output")
def _(work):
    cut = shutil.copytree(images(), os.path.join(work, "cut"))
    first = sorted(os.listdir(os.path.join(cut, "images")))[0]
    write(os.path.join(cut, "images", first), slurp(os.path.join(cut, "images", first))[:300])
    out = os.path.join(work, "out")
    for _again in range(2):
        says_one_line(convert(out, source=cut), 1, "1 image of this data set was rejected, see ")
    text = slurp(labels(cut)).decode().splitlines()
    text[5] = ",".join([text[5].split(",")[0], "", *text[5].split(",")[2:]])
    write(labels(cut), "\n".join(text) + "\n")
    out = os.path.join(work, "rows")
    says_one_line(convert(out, source=cut), 1,
                  "1 image of this data set was rejected, 1 row of the label file cannot be used, see ")
    says_nothing(convert(os.path.join(work, "good")))
    says_one_line(convert(os.path.join(work, "good"), "--seed", 7), 6, "holds another data set")
    os.unlink(os.path.join(cut, "images", first))
    says_one_line(convert(os.path.join(work, "none"), source=cut), 3, "1 of ")
    says_one_line(convert(os.path.join(work, "none"), "-n", source=cut), 3, "1 of ")
    says_one_line(convert(os.path.join(labels(), "out")), 4, "out")


@case("chex-inspect: differences, missing files")
def _(work):
    runs = [os.path.join(work, str(seed)) for seed in (1, 2)]
    for seed, out in enumerate(runs):
        says_nothing(train(out, "--seed", seed))
    best = [os.path.join(out, "best.safetensors") for out in runs]
    says_one_line([program("chex-inspect"), "diff", *best], 1, "differ")
    says_nothing([program("chex-inspect"), "diff", best[0], best[0]])


def train(out, *more, source=None):
    return [program("chex-train"), "-d", source or dataset(), "-o", out, "--model", "densenet-micro", "--crop", 32,
            "--batch", 8, "--epochs", 1, "--bootstrap", 0, "-j", 1, *more]


@case("chex-train: damaged records, a run that is stopped or diverges, inputs that are not there")
def _(work):
    bad = shutil.copytree(dataset(), os.path.join(work, "bad"))
    poison(bad, 1)
    out = os.path.join(work, "run")
    says_one_line(train(out, source=bad), 1, "record 1 (")
    says_one_line(train(os.path.join(work, "skip"), "--on-bad-record", "skip", source=bad), 1,
                  "1 damaged record skipped")
    name = next(s["name"] for s in manifest(bad)["shards"] if "-test." in s["name"])
    poison(bad, 0, name)
    judge = ["--eval-only", "--on-bad-record", "skip"]
    says_one_line([*train(os.path.join(work, "skip"), source=bad)[:7], *judge], 1, "1 damaged record skipped")
    says_one_line(train(os.path.join(work, "stop"), "--time-limit", "0.001s"), 75, "stopped at step")
    says_one_line(train(os.path.join(work, "far"), "--lr", "1e30", "--epochs", 3), 7, "try --lr 0.001")
    says_one_line(train(os.path.join(work, "none"), "--init", os.path.join(work, "no file")), 3, "no file")
    says_one_line(train(os.path.join(work, "none"), "-n", "--init", os.path.join(work, "no file")), 3, "no file")
    says_one_line(train(os.path.join(work, "none"), source=os.path.join(work, "none")), 3, "none")
    says_one_line(train(os.path.join(labels(), "out")), 4, "out")


if __name__ == "__main__":
    sys.exit(case.main())
