#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train in the hands of somebody who wishes it ill, or a machine that does: options that cannot be, little of
everything.

    check_train_hostile.py [PATTERN]

All with densenet-micro on synthetic images of some dozens of pixels.
"""
import json
import os
import re
import resource
import shutil
import stat
import struct
import sys

import mpi
from fixtures import fixture
from support import Cases, Skip, manifest, program, run, says, slurp, write

case = Cases()


def data():
    """Three splits in many shards; read only."""
    return fixture("trainable8")


def words(*more, source=None):
    return [program("chex-train"), "-d", source or data(), "--model", "densenet-micro", "--crop", "32", "--epochs", "1",
            "--bootstrap", "20", "-j", "1", *map(str, more)]


def train(*more, code=0, source=None, **options):
    return run(words(*more, source=source), code, **options)


def images_to_train_on():
    return next(s["images"] for s in manifest(data())["splits"] if s["name"] == "train")


# ---- options ---------------------------------------------------------------------------------------------------------


@case("a long option without its value is reported by its name")
def _(work):
    del work
    for name in ("chex-train", "chex-convert", "chex-synth"):
        for option, value in re.findall(r"^ +(?:-\w, )?(--[\w-]+) ([A-Z]\S*)", run([program(name), "--help"]).stdout,
                                        re.M):
            done = run([program(name), option], 2)
            assert f"option '{option}' needs a value" in done.stderr, (name, option, value, done.stderr)
    says(run([program("chex-train"), "--dry-run=yes"], 2), "option '--dry-run=yes' takes no value")
    says(run([program("chex-train"), "-vd"], 2), "option -d needs a value")


# ---- --predict -------------------------------------------------------------------------------------------------------


@case("a pipe or a device is not replaced by the trace")
def _(work):
    pipe = os.path.join(work, "pipe")
    os.mkfifo(pipe)
    says(train("-o", os.path.join(work, "run"), "--trace", pipe, code=4), r"--trace: '.*pipe' is not a regular file")
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)


@case("a device is not replaced by the predictions")
def _(work):
    done = train("--init", weights(work), "--eval-only", "--predict", "/dev/null", code=4)
    says(done, "'/dev/null' is not a regular file")
    assert not os.path.isfile("/dev/null")


def weights(work):
    """best.safetensors of a run."""
    out = os.path.join(work, "of-a-run")
    train("-o", out, "-q")
    return os.path.join(out, "best.safetensors")


@case("the results are shown even if --predict fails in the end")
def _(work):
    best = weights(work)

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    csv = os.path.join(work, "p.csv")
    done = train("--init", best, "--eval-only", "--predict", csv, code=4, preexec_fn=small)
    says(done, r"test     .*images of", "Hernia", "cannot write")
    assert not os.path.exists(csv)
    train("--init", best, "--eval-only", "--predict", csv)
    assert slurp(csv) == slurp(os.path.join(os.path.dirname(best), "predictions-test.csv"))


@case("without a split test the summary gives the AUROC of the best model, not of the last")
def _(work):
    folder = os.path.join(work, "shards")
    images = fixture("images120")
    run([program("chex-convert"), "-q", "-i", os.path.join(images, "images"), "-l",
         os.path.join(images, "Data_Entry_2017_v2020.csv"), "-o", folder, "--size", "36", "--split", "patient:50,50,0"])
    out = os.path.join(work, "run")
    # The learning rate is too large, so an epoch is soon worse than the best; then the run ends.
    more = ["-o", out, "--epochs", 60, "--early-stop", 1, "--lr", "0.005", "--schedule", "constant"]
    done = train(*more, source=folder)
    judged = re.findall(r"^val (\d+) .*  AUROC (\S+) .*best (\S+) @(\d+)", done.stderr, re.M)
    assert judged[-1][0] != judged[-1][3] and judged[-1][1] != judged[-1][2], "the last epoch is the best"
    says(done, rf"^(?s:.*)done     val \(\S+, [0-9a-f]{{8}}\): AUROC {re.escape(judged[-1][2])} ")
    with open(os.path.join(out, "metrics-val.json"), encoding="utf-8") as f:
        assert f"{json.load(f)['mean']['auroc']['value']:.3f}" == judged[-1][2]
    # The best model is one of an earlier start: the last epoch's AUROC is not its own.
    again = train(*more, source=folder)
    says(again, r"done     \S+/best\.safetensors")


# ---- steps -----------------------------------------------------------------------------------------------------------


@case("a last step of few micro-batches does not hang, however few images are left for it")
def _(work):
    count = images_to_train_on()
    for i, (batch, micro, accumulate) in enumerate(((count - 1, 1, 1), (count // 2 + 1, 1, 1), (16, 2, 1), (8, 1, 7),
                                                    (1, 1, 1000), (4096, 16, 1))):
        out = os.path.join(work, f"run{i}")
        done = train("-o", out, "--batch", batch, "--micro-batch", micro if batch % micro == 0 else 1,
                     "--accumulate", accumulate)
        steps = -(-count // (batch * accumulate))
        says(done, f" {steps} steps?, {count} images in")


@case("nor with ranks that have nothing to do in it")
def _(work):
    if not os.access(program("chex-train"), os.X_OK):
        raise Skip("chex-train is not built")
    out = os.path.join(work, "run")
    try:
        command = mpi.ranks("chex-train", 3, *words("-o", out, "--batch", 16, "--micro-batch", 1))
    except mpi.Skip as e:
        raise Skip(str(e)) from e
    says(run(command, 0, env=mpi.ENVIRONMENT), f" {images_to_train_on()} images in")


@case("ranks of which one trains and another evaluates, plans or stages end with a message, and none waits")
def _(work):
    best = weights(work)
    for i, (one, other, text) in enumerate((([], ["-n"], "dry-run"), (["-n"], [], "dry-run"),
                                            ([], ["--eval-only"], "eval-only"), (["--eval-only"], [], "eval-only"),
                                            (["--stage", work], [], "stage"), ([], ["--stage", work], "stage"),
                                            (["--eval-only"], ["--eval-only", "--split", "val"], "split"),
                                            (["--eval-only"], ["--eval-only", "--init", best], "init"))):
        out = os.path.join(work, f"run{i}")
        try:
            command = mpi.ranks("chex-train", 1, *words("-o", out, *one))
        except mpi.Skip as e:
            raise Skip(str(e)) from e
        done = run([*command, ":", "-np", "1", *words("-o", out, *other)], 2, env=mpi.ENVIRONMENT)
        says(done, f"rank 1 .*does not do the same as rank 0: it has '{text} ")
        assert not os.path.exists(out)


# ---- records ---------------------------------------------------------------------------------------------------------


@case("an invalid manifest is not a data set, in agreement with chex-inspect")
def _(work):
    folder = os.path.join(work, "shards")
    shutil.copytree(data(), folder)
    whole = slurp(f"{folder}/manifest.json")
    for text in (whole[:300], b"", b"[]\n", whole.replace(b'"train"', b'"tr/in"', 1)):
        write(f"{folder}/manifest.json", text)
        says(train("-o", os.path.join(work, "run"), code=6, source=folder), "manifest.json'")
        run([program("chex-inspect"), folder], 6)
    assert not os.path.exists(os.path.join(work, "run"))


@case("a damaged record in a shard with padding is named, or skipped with --on-bad-record skip")
def _(work):
    folder = os.path.join(work, "shards")
    shutil.copytree(data(), folder)
    m = manifest(folder)
    mixed = [(i, s) for i, s in enumerate(m["shards"]) if s["images"] < s["records"]]
    assert len(mixed) >= 2, m["shards"]
    for number, shard in mixed:
        path = os.path.join(folder, shard["name"])
        good = slurp(path)
        for record in (0, shard["records"] - 1):  # an image, and a padding record, which nobody reads
            blob = bytearray(good)
            blob[record * m["record"]["stride"]] ^= 4  # of the length
            write(path, bytes(blob))
            out = os.path.join(work, f"{number}-{record}")
            done = train("-o", out, code=0 if record else 1, source=folder)
            if record:
                assert "damaged" not in done.stderr, done.stderr
                continue
            says(done, rf"'{re.escape(shard['name'])}' record 0 \(\S+\.png\): ")
            assert os.path.exists(os.path.join(out, "latest"))
            done = train("-o", out, "--on-bad-record", "skip", code=1, source=folder)
            says(done, r"done     test \(")
        write(path, good)


# ---- little of everything --------------------------------------------------------------------------------------------


@case("more shards than files may be open: closed and opened again, and the same bytes")
def _(work):
    assert len(manifest(data())["shards"]) >= 15
    many, few = os.path.join(work, "many"), os.path.join(work, "few")
    train("-o", many, "-q")

    def little():
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))

    done = train("-o", few, preexec_fn=little)
    assert "Too many" not in done.stderr, done.stderr
    assert slurp(os.path.join(many, "best.safetensors")) == slurp(os.path.join(few, "best.safetensors"))


@case("a limit of the address space counts as memory")
def _(work):
    def little():
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

    if run([program("chex-train"), "--version"], None, preexec_fn=little).returncode != 0:
        raise Skip("a sanitizer needs more addresses")
    done = train("-o", os.path.join(work, "run"), "--batch", "4096", "--micro-batch", "4096", code=4, preexec_fn=little)
    free = re.search(r"micro-batches of 4096 images: \S+ [MG]B are needed and (\S+) MB are there", done.stderr)
    assert free and float(free.group(1).replace(",", "")) <= 315, done.stderr


@case("a full disk at the end says where the same command resumes")
def _(work):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    says(train("-o", os.path.join(work, "run"), code=4, preexec_fn=small),
         "the same command again resumes from the start")


# ---- what a file says ------------------------------------------------------------------------------------------------


def sealed(path, change):
    """Rewrite the header of a checkpoint with change(header) -> header or bytes."""
    blob = slurp(path)
    size, = struct.unpack_from("<Q", blob)
    text = change(json.loads(blob[8:8 + size]))
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + blob[8 + size:]


@case("weights that lie about themselves: 6, no sanitizer has a word to say")
def _(work):
    best, bad = weights(work), os.path.join(work, "bad.safetensors")
    blob = slurp(best)

    def of(name, key, value):
        def change(top):
            top[name][key] = value
            return top
        return change

    def twice(top):
        return (json.dumps(top).encode()[:-1] + b',"classifier.bias":' + json.dumps(top["classifier.bias"]).encode()
                + b"}")

    name = "classifier.bias"
    for change in (of(name, "data_offsets", [-4, 52]), of(name, "data_offsets", [2 ** 63, 2 ** 63 + 56]),
                   of(name, "data_offsets", [56, 0]), of(name, "data_offsets", [0, 0]),
                   of(name, "shape", [2 ** 32, 2 ** 32]), of(name, "shape", [-14]),
                   of(name, "shape", [1] * 100000), of(name, "shape", None),
                   of(name, "dtype", "I64"), of(name, "dtype", 7), twice, lambda top: b"{" * 50000,
                   lambda top: {k: v for k, v in top.items() if k != name}):
        done = train("--init", write(bad, sealed(best, change)), "--eval-only", "--predict", os.path.join(work, "p"),
                     code=6)
        says(done, re.escape(bad))
    for code, data_of in ((3, b""), (3, blob[:7]), (6, blob[:len(blob) // 2]), (6, blob + b"x"),
                          (3, struct.pack("<Q", 2 ** 63) + blob[8:]),
                          (6, blob[:-56] + struct.pack("<f", float("nan")) * 14)):
        train("--init", write(bad, data_of), "--eval-only", "--predict", os.path.join(work, "p"), code=code)


@case("an output that is not finite is reported as such, not as findings without positives")
def _(work):
    best = weights(work)
    blob = bytearray(slurp(best))
    size, = struct.unpack_from("<Q", blob)
    first, last = json.loads(blob[8:8 + size])["classifier.weight"]["data_offsets"]
    count = (last - first) // 4
    struct.pack_into(f"<{count}f", blob, 8 + size + first, *[3e38] * count)
    bad = write(os.path.join(work, "bad.safetensors"), bytes(blob))
    done = train("--init", bad, "--eval-only", "--predict", os.path.join(work, "p"))
    says(done, r"warning: the network's output is not finite for \d+ images of test: there are no metrics")
    assert "0 positives" not in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(case.main())
