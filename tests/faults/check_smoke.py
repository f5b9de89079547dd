#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One small run of each tool, what it does about faults included: for builds with sanitizers, where all takes too long.

In a build for the thread sanitizer the cases that have no threads, and MPI's own, are not run.
"""
import functools
import os
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import check_faults
import mpi
import support
import training
from support import BUILD, PATIENCE, Cases, complete, program, rejects, run, same_tree, says, slurp, synth, write

case = Cases()


@functools.lru_cache(None)
def sanitizers():
    """The word after --enable-sanitizers, "yes" where there is none, "" in a build without."""
    options = run([os.path.join(BUILD, "config.status"), "--config"], cwd=BUILD).stdout.replace("'", "").split()
    found = [o for o in options if o.startswith("--enable-sanitizers")]
    return (found[-1].partition("=")[2] or "yes") if found else ""


def other_than_threads():
    if sanitizers() == "thread":
        raise support.OtherBuild("a build for the thread sanitizer")


def little_disk():
    """No file may grow above this."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))


@functools.lru_cache(None)
def source():
    """The folder and the label file: 24 rows, the file of one is missing, that of another is cut."""
    folder = os.path.join(training.scratch(), "smoke")
    labels = synth(folder, 24, "--size", "96")
    names = sorted(os.listdir(f"{folder}/images"))
    write(f"{folder}/images/{names[3]}", slurp(f"{folder}/images/{names[3]}")[:-200])
    os.unlink(f"{folder}/images/{names[7]}")
    return folder, labels


def convert(out, *more, code=1, **options):
    """With four threads, from the loose files or from what is named."""
    folder, labels = source()
    return run([program("chex-convert"), "-l", labels, "-o", out, "--size", "32", "--shard-size", "8", "-j", "4",
                "--allow-missing", "--index", "dali", *(more or ("-i", f"{folder}/images"))], code, **options)


@case("chex-synth: a folder; one that is there already is refused")
def _(work):
    other_than_threads()
    synth(f"{work}/a", 6, "--size", "64")
    synth(f"{work}/b", 6, "--size", "64")
    same_tree(f"{work}/a", f"{work}/b")
    done = run([program("chex-synth"), "-q", "-n", "7", "-o", f"{work}/a", "--size", "64"], None)
    assert done.returncode != 0 and done.stderr, done
    run([program("chex-synth"), "-n", "x", "-o", f"{work}/c"], 2)


@case("chex-convert: loose files and a .tar.gz that is cut, a damaged image, a full disk, a stop, a rerun, --repair")
def _(work):
    folder, labels = source()
    loose, packed = f"{work}/loose", f"{work}/packed"
    convert(loose)
    complete(loose)
    assert len(rejects(loose)) == 1, rejects(loose)
    archive = f"{work}/images.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(f"{folder}/images", "images")
    convert(packed, "-i", archive)
    same_tree({n: d for n, d in support.tree(loose).items() if "tfrecord" in n},
              {n: d for n, d in support.tree(packed).items() if "tfrecord" in n})
    write(f"{work}/cut.tar.gz", slurp(archive)[:-5000])
    convert(f"{work}/cut", "-i", f"{work}/cut.tar.gz", code=None)
    convert(f"{work}/full", code=4, preexec_fn=little_disk)
    convert(f"{work}/full")
    same_tree(loose, f"{work}/full")
    process = subprocess.Popen([program("chex-convert"), "-q", "-i", f"{folder}/images", "-l", labels, "-o",
                                f"{work}/stop", "--allow-missing", "--resize", "lanczos", "--size", "512"],
                               stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) in (75, 1, -signal.SIGTERM), process.returncode
    shard = next(n for n in sorted(os.listdir(loose)) if "tfrecord" in n and not n.endswith(".idx"))
    damaged = bytearray(slurp(f"{loose}/{shard}"))
    damaged[100] ^= 1
    write(f"{loose}/{shard}", bytes(damaged))
    run([program("chex-inspect"), "check", "--full", loose], 1)
    convert(loose, "-i", f"{folder}/images", "--repair")
    same_tree(loose, f"{work}/full")
    convert(loose, "-i", f"{work}/nothing", code=3)


@case("chex-inspect: checks, lists, sheet, report, source, diff; of damage too")
def _(work):
    other_than_threads()
    folder, labels = source()
    out = f"{work}/out"
    convert(out)
    inspect = program("chex-inspect")
    for words in (["check", "--full", "--sha256"], ["list"], ["labels"], ["check", "--leaks"], ["--json"]):
        run([inspect, *words, out])
    run([inspect, "sheet", "-o", f"{work}/sheet.png", "--random", "4", out])
    run([inspect, "report", "-o", f"{work}/report.html", out])
    run([inspect, "source", "-l", labels, "-i", f"{folder}/images"], 1)
    shutil.copytree(out, f"{work}/other")
    run([inspect, "diff", out, f"{work}/other"])
    shard = next(n for n in sorted(os.listdir(out)) if "tfrecord" in n and not n.endswith(".idx"))
    write(f"{out}/{shard}", slurp(f"{out}/{shard}")[:-9])
    run([inspect, "check", "--full", out], 1)
    convert(f"{work}/unsplit", "-i", f"{folder}/images", "--split", "none")
    run([inspect, "diff", f"{work}/unsplit", f"{work}/other"], 1)
    write(f"{out}/manifest.json", slurp(f"{out}/manifest.json")[:-20])
    assert run([inspect, "check", "--full", out], None).returncode in (1, 3, 6)


@case("chex-train: a run with threads, and another epoch of it")
def _(work):
    out = training.run_folder(work)
    training.train(out, "--epochs", "1", "-j", "2")
    says(training.train(out, "--epochs", "2", "-j", "2"), r"resume +step-")


@case("chex-train: plans for a CPU and for GPUs that are not there, without a folder for the run")
def _(work):
    for words in (("--model", "densenet-micro"),
                  ("--device", "cuda:V100", "--ranks", "8", "--nodes", "2", "--network", "edr", "-v", "-v"),
                  ("--device", "cuda:H200", "--model", "resnet50", "--accumulate", "2", "--ema", "0.9")):
        done = run([program("chex-train"), "-n", "-d", training.data(), "--batch", "8", *words])
        says(done, "modelled" if "--device" in words else "measured")


@case("chex-train: a damaged record, a full disk, no data")
def _(work):
    other_than_threads()
    few = ("--epochs", "1", "-j", "2")
    training.train(training.run_folder(work, "full"), *few, code=4, preexec_fn=little_disk)
    damaged = training.copy(work)
    training.poison(damaged)
    training.train(training.run_folder(work, "damaged"), *few, source=damaged, code=1)
    training.train(training.run_folder(work, "none"), *few, source=f"{work}/nothing", code=3)


@case("two ranks convert and train; one with other options is told so")
def _(work):
    other_than_threads()
    folder, labels = source()
    words = ["-i", f"{folder}/images", "-l", labels, "--allow-missing", "-o", f"{work}/out", "--size", "32"]
    run(mpi.ranks("chex-convert", 2, program("chex-convert"), *words), 1, env=mpi.ENVIRONMENT)
    complete(f"{work}/out")
    run(mpi.ranks("chex-train", 2, *training.command(training.run_folder(work), "--epochs", "1", "--batch", "8")),
        env=mpi.ENVIRONMENT)
    run([*mpi.ranks("chex-convert", 1, program("chex-convert"), *words), ":", "-np", "1", program("chex-convert"),
         *words, "--seed", "9"], 2, env=mpi.ENVIRONMENT)


@case("a conversion of which a call of each kind fails leaves a whole folder or none, and leaks nothing")
def _(work):
    if sanitizers() in ("", "thread"):
        raise support.OtherBuild("check_faults.py has more of it")
    for kind, what in (("write", "ENOSPC"), ("sync", "EIO"), ("close", "EDQUOT"), ("rename", "EIO"), ("open", "EMFILE"),
                       ("reserve", "ENOSPC"), ("unlink", "EIO"), ("link", "EIO"), ("list", "EIO"), ("read", "EIO"),
                       ("memory", "ENOMEM")):
        check_faults.sweep(work, kind, [what], (1, 3, 4, 5), tried=30 if kind == "memory" else 3)


if __name__ == "__main__":
    CODE = training.finish(case)
    if check_faults.Shared.conversion:
        check_faults.Shared.conversion.close()
    sys.exit(CODE)
