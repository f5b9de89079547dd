#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect list --trained-on: the steps that it prints are those in which the weights depend on the images.

    check_trained_on.py [PATTERN]      $CHEX_INSPECT, $CHEX_CONVERT, $CHEX_SYNTH, $CHEX_TRAIN or in $BUILDDIR

The test trains twice, on data sets that differ in the pixels of one patient.  The weights of both runs must be equal
up to the last step before the first use, and differ from that step on.
"""
import csv
import io
import json
import os
import re
import shutil
import struct
import sys

from mpi import ENVIRONMENT, ranks
from support import SOURCE, Cases, png, program, read_csv, run, says, slurp, synth, write

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()


def tensors(path):
    """The bytes after the header of a safetensors file."""
    data = slurp(path)
    return data[8 + struct.unpack("<Q", data[:8])[0]:]


def convert(work, name, labels):
    out = os.path.join(work, name)
    run([program("chex-convert"), "-q", "-i", os.path.join(work, "images"), "-l", labels, "-o", out, "--size", 64,
         "--shard-size", 8])
    return out


def datasets(work):
    """Two data sets, the second with black images of one patient of the training split; the patient's id."""
    labels = synth(work, 70, "--size", 64)
    one = convert(work, "one", labels)
    listed = run([program("chex-inspect"), "list", "--split", "train", "--fields", "patient", one]).stdout.split()[1:]
    patient = next(p for p in sorted(set(listed)) if listed.count(p) == 2)
    for row in read_csv(labels)[1]:
        if row[3].zfill(8) == patient:
            write(os.path.join(work, "images", row[0]), png(64, 64, lambda y, width: bytes([y]) * width))
    return one, convert(work, "two", labels), patient


def train(data, out, *options, count=1):
    command = [program("chex-train"), "-q", "-d", data, "-o", out, "--model", "densenet-micro", "--epochs", 2, "--keep",
               0, "--checkpoint-every", "1steps", "-j", 1, *options]
    if count == 1:
        run(command)
    else:
        run(ranks("chex-train", count, *command), env=ENVIRONMENT)
    return out


def trained_on(out, patient, data):
    command = [program("chex-inspect"), "list", "--trained-on", out, "--where", f"patient={patient}"]
    found = json.loads(run([*command, "--json", data]).stdout)
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "inspect.schema.json"))))
    result, = found["results"]
    rows = list(csv.DictReader(io.StringIO(run([*command, "--format", "csv", data]).stdout)))
    assert [(int(r["epoch"]), int(r["step"]), r["name"], r["kind"] == "partner") for r in rows
            if r["kind"] in ("use", "partner")] == [(u["epoch"], u["step"], u["name"], u["partner"])
                                                    for u in result["uses"]]
    assert {r["name"] for r in rows if r["kind"] == "with"} == {c["name"] for c in result["checkpoints"] if c["used"]}
    return result


def agrees(work, name, *options, count=1):
    """Compare the weights of two runs on different pixels with the uses."""
    one, two, patient = work
    out = [train(data, f"{data}-{name}", *options, count=count) for data in (one, two)]
    result = trained_on(out[0], patient, one)
    images = result["images"]
    assert images > 1 and result["images_of_other_splits"] == 0
    uses = [(u["epoch"], u["name"]) for u in result["uses"] if not u["partner"]]
    assert len(uses) == len(set(uses)) == 2 * images, "each image once in each epoch"
    partners = [(u["epoch"], u["name"]) for u in result["uses"] if u["partner"]]
    assert len(partners) == len(set(partners)) <= 2 * images and bool(partners) == ("--mixup" in options), partners
    first = result["uses"][0]["step"]
    assert sorted(u["step"] for u in result["uses"]) == [u["step"] for u in result["uses"]]
    files = [n for n in sorted(os.listdir(out[0])) if re.fullmatch(r"step-\d+\.safetensors", n)]
    assert len(files) == result["step"] + 1, (files, result["step"])
    used = {c["name"]: c["used"] for c in result["checkpoints"]}
    for file in files:
        step = int(file[5:11])
        same = tensors(os.path.join(out[0], file)) == tensors(os.path.join(out[1], file))
        assert same == (step < first), (file, first, same)
        assert used[file.removesuffix(".safetensors")] == (step >= first), (file, first)
    return first, result["uses"]


@case("weights depend on a patient's images from the first printed step on, for any window and batch")
def _(work):
    data = datasets(work)
    firsts = {agrees(data, "plain", "--batch", 8)[0],
              agrees(data, "window", "--batch", 4, "--shuffle", 1, "--seed", 5)[0],
              agrees(data, "accumulate", "--batch", 4, "--accumulate", 2, "--seed", 3)[0]}
    assert firsts != {1}, "the test compares no step before the first use"


@case("the printed steps are right for several ranks")
def _(work):
    data = datasets(work)
    assert max(agrees(data, f"ranks{seed}", "--batch", 4, "--seed", seed, count=2)[0] for seed in (7, 8)) > 1


@case("with --mixup, an image is also used in the step of the image before it, which can be an earlier step")
def _(work):
    data = datasets(work)
    uses = [agrees(data, f"mixup{seed}", "--batch", 2, "--mixup", 1, "--seed", seed)[1] for seed in range(1, 5)]
    assert any(u[0]["partner"] and u[0]["step"] < min(x["step"] for x in u if not x["partner"]) for u in uses), (
        "the test has no run whose first use is that of a partner in an earlier step")


@case("an image outside the training split is in no step, and another data set or batch is refused with 6")
def _(work):
    one, _two, _patient = datasets(work)
    out = train(one, f"{work}/run", "--batch", 8)
    other = run([program("chex-inspect"), "list", "--split", "test", "--fields", "patient", one]).stdout.split()[1]
    result = trained_on(out, other, one)
    assert result["uses"] == [] and result["images_of_other_splits"] > 0
    assert not any(c["used"] for c in result["checkpoints"])
    command = [program("chex-inspect"), "list", "--trained-on", out, "--where", f"patient={other}"]
    labels = os.path.join(work, "Data_Entry_2017_v2020.csv")
    run([program("chex-convert"), "-q", "-i", f"{work}/images", "-l", labels, "-o", f"{work}/other", "--size", 32,
         "--min-size", 1])
    says(run([*command, f"{work}/other"], 6), "was trained on data set [0-9a-f]{16}, not on [0-9a-f]{16}")
    run([program("chex-train"), "-q", "-d", one, "-o", out, "--model", "densenet-micro", "--epochs", 3, "--batch", 4,
         "--allow-batch-change"])
    says(run([*command, one], 6), "changed its global batch")
    shutil.rmtree(f"{work}/other")
    os.remove(f"{out}/run.json")
    says(run([*command, one], 3), r"run\.json' does not name the training split")


if __name__ == "__main__":
    sys.exit(case.main())
