#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train on data sets with other lists of findings, 1 to 254, and with unknown labels.

    check_findings.py [PATTERN]      only the cases whose name matches the regular expression
"""
import csv
import glob
import json
import os
import re
import sys
import xml.dom.minidom

import mpi
from fixtures import fixture
from mpi import ENVIRONMENT
from support import FINDINGS, SOURCE, Cases, cache_folder, images, manifest, program, run, says, slurp

try:
    import jsonschema
except ImportError:
    jsonschema = None
try:
    import numpy as np
    import sklearn.metrics as sk
except ImportError:
    sk = None

case = Cases()
CACHE = cache_folder("findings")
COUNTS = (1, 2, 60, 254)


def data(findings, unknown=0, *split):
    """A copy of the small data set with these findings; this per cent of labels is unknown, in one or all splits."""
    path = os.path.join(CACHE, re.sub(r"\W", "", f"{findings}-{unknown}{split}")[:40])
    if not os.path.exists(path):
        run([program("relabel"), fixture("trainable"), path, str(findings), str(unknown), *split])
    return path


def words(folder, out, *more):
    return [program("chex-train"), "-d", folder, "-o", out, "--model", "densenet-micro", "--crop", "32", "--batch",
            "16", "--micro-batch", "4", "--epochs", "1", "--bootstrap", "20", "-j", "1", *map(str, more)]


def names(count):
    return [f"finding_{k:03}" for k in range(count)]


def header(path):
    """The metadata of a safetensors file."""
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        return json.loads(f.read(size))


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def schema(name, document):
    if jsonschema:
        jsonschema.validate(document, json.loads(slurp(os.path.join(SOURCE, "schemas", f"{name}.schema.json"))))


for the_count in COUNTS:
    @case(f"{the_count} findings, a third of the labels unknown: training, predictions, metrics, pictures, logs")
    def _(work, count=the_count):
        out, wanted = os.path.join(work, "run"), names(count)
        done = run([*words(data(count, 33), out), "--json"])
        schema("train", json.loads(done.stdout))
        meta = header(f"{out}/best.safetensors")
        assert meta["__metadata__"]["labels"] == ",".join(wanted)
        assert meta["classifier.weight"]["shape"][0] == count
        predictions = rows(f"{out}/predictions-test.csv")
        columns = ["image", "patient", "split", "age", "sex", "view", *(f"prob_{n}" for n in wanted),
                   *(f"label_{n}" for n in wanted), "research_use_only"]
        assert list(predictions[0]) == columns
        labels = [[row[f"label_{n}"] for n in wanted] for row in predictions]
        assert {label for row in labels for label in row} <= {"0", "1", ""}
        assert any(label == "" for row in labels for label in row)
        document = json.loads(slurp(f"{out}/metrics-test.json"))
        schema("evaluation", document)
        compare(document, predictions, wanted)
        if count > 1: # the second one has no known label
            second = document["findings"][1]
            assert (second["positives"], second["negatives"], second["prevalence"]) == (0, 0, None)
            assert second["auroc"]["value"] is None
        described = json.loads(slurp(f"{out}/run.json"))
        schema("run", described)
        split = described["data_set"]["splits"][0] if "data_set" in described else described["dataset"]["splits"][0]
        labels = [r["label"] for r in images(data(count, 33), split["name"]).values()]
        columns = list(zip(*labels))
        assert split["positives"] == {name: c.count(1) for name, c in zip(wanted, columns)}
        assert split["known"] == {name: len(c) - c.count(255) for name, c in zip(wanted, columns)}
        for line in slurp(f"{out}/metrics.jsonl").decode().splitlines():
            event = json.loads(line)
            assert [f["name"] for f in event.get("findings", [])] in ([], wanted)
        tags = slurp(glob.glob(f"{out}/events.out.tfevents.*")[0])
        assert f"auroc/{wanted[0]}".encode() in tags
        picture = slurp(f"{out}/auroc-test.svg").decode()
        xml.dom.minidom.parseString(picture)
        assert "nan" not in picture and picture.count(wanted[-1].replace("_", " ")) == 2


def compare(document, predictions, wanted):
    """The metrics from the predictions, over the rows with a label; the loss over all known labels."""
    if sk is None:
        return
    aurocs, losses = [], []
    for name, found in zip(wanted, document["findings"]):
        known = [row for row in predictions if row[f"label_{name}"] != ""]
        y = np.array([int(row[f"label_{name}"]) for row in known])
        p = np.array([float(row[f"prob_{name}"]) for row in known])
        losses.extend(-np.log(np.where(y == 1, p, 1 - p)))
        assert (found["name"], found["positives"], found["negatives"]) == (name, (y == 1).sum(), (y == 0).sum())
        if len(set(y)) < 2:
            assert found["auroc"]["value"] is None and found["youden"] is None
            continue
        aurocs.append(sk.roc_auc_score(y, p))
        assert abs(found["auroc"]["value"] - aurocs[-1]) < 1e-12
        assert abs(found["auprc"]["value"] - sk.average_precision_score(y, p)) < 1e-12
        assert abs(found["prevalence"] - y.mean()) < 1e-12
    assert document["mean"]["findings"] == len(aurocs)
    if aurocs:
        assert abs(document["mean"]["auroc"]["value"] - np.mean(aurocs)) < 1e-12
    assert abs(document["loss"] - np.mean(losses)) < 1e-5


@case("chex-inspect labels --json counts positive, known and unknown labels of each finding")
def _(_work):
    folder = data("a,b,c", 40)
    document = json.loads(run([program("chex-inspect"), "labels", "--json", folder]).stdout)
    schema("inspect", document)
    for split in document["results"][0]["splits"]:
        labels = [r["label"] for r in images(folder, split["name"]).values()]
        for k, found in enumerate(split["findings"].values()):
            column = [label[k] for label in labels]
            assert [found["images"], found["unknown"]] == [column.count(1), column.count(255)]
            assert found["known"] == len(column) - column.count(255) and found["unknown"] > 0


@case("with unknown labels, 1, 2 and 4 ranks train the same network")
def _(work):
    folder, made = data(5, 60), {}
    for ranks, batch in ((1, 16), (2, 8), (4, 4)):
        out = os.path.join(work, str(ranks))
        line = words(folder, out, "--batch", batch, "--epochs", 2)
        run(line if ranks == 1 else mpi.ranks("chex-train", ranks, *line), env=ENVIRONMENT)
        made[ranks] = parameters(sorted(glob.glob(f"{out}/step-*[0-9].safetensors"))[-1])
        losses = [json.loads(line) for line in slurp(f"{out}/metrics.jsonl").decode().splitlines()]
        made[ranks, "loss"] = [e["loss"] for e in losses if e["kind"] == "epoch"]
    assert made[1] == made[2] == made[4] and len(made[1, "loss"]) == 2
    assert all(abs(a - b) < 1e-6 for k in (2, 4) for a, b in zip(made[1, "loss"], made[k, "loss"]))


def parameters(path):
    """The bytes of all tensors except running statistics."""
    meta, text = header(path), slurp(path)
    start = 8 + int.from_bytes(text[:8], "little")
    return {name: text[start + entry["data_offsets"][0]:start + entry["data_offsets"][1]]
            for name, entry in meta.items() if name != "__metadata__" and "running" not in name}


@case("a split without any known label: train is refused, val counts as missing, test has no figures")
def _(work):
    says(run(words(data("a,b", 100, "train"), f"{work}/1"), 2), "split 'train' of '.*' has no known label to train on")
    run(words(data("a,b", 100, "val"), f"{work}/2"))
    assert not os.path.exists(f"{work}/2/predictions-val.csv")
    run(words(data("a,b", 100, "test"), f"{work}/3"))
    document = json.loads(slurp(f"{work}/3/metrics-test.json"))
    schema("evaluation", document)
    assert document["loss"] is None and document["mean"]["findings"] == 0
    xml.dom.minidom.parseString(slurp(f"{work}/3/auroc-test.svg").decode())


@case("a step without any known label has the loss 0 and changes no weight with SGD")
def _(work):
    """Nearly all labels are unknown, and a step has two images."""
    folder, out = data("a,b", 97), os.path.join(work, "run")
    run(words(folder, out, "--batch", 2, "--micro-batch", 2, "--optimizer", "sgd"))
    lines = [json.loads(line) for line in slurp(f"{out}/metrics.jsonl").decode().splitlines()]
    losses = [line["loss"] for line in lines if line["kind"] == "step"]
    assert 0 in losses and all(loss is not None for loss in losses), losses


@case("a checkpoint of another list of findings is refused with both lists, for --resume, --init and scoring")
def _(work):
    out, other = os.path.join(work, "run"), os.path.join(work, "other")
    run(words(data("a,b,c"), out))
    both = "its findings are 'a,b,c' .3., those of the data set 'a,c,b' .3."
    says(run(words(data("a,c,b"), other, "--resume", out), 6), both)
    says(run(words(data("a,c,b"), other, "--resume", out, "--allow-new-data"), 6), both)
    says(run(words(data("a,c,b"), out, "--allow-new-data"), 6), both)
    says(run(words(data("a,c,b"), other, "--init", f"{out}/best.safetensors"), 6), both)
    score = [program("chex-train"), "-d", data("a,c,b"), "--eval-only", "--init", f"{out}/best.safetensors",
             "--predict", os.path.join(work, "p.csv"), "-j", "1"]
    says(run(score, 6), both)
    assert not os.path.exists(other)
    long = run(words(data(254), other, "--resume", out), 6)
    says(long, "'a,b,c' .3., those of the data set 'finding_000,finding_001,.*\\.\\.\\.' .254.")
    assert max(map(len, long.stderr.splitlines())) < 600


@case("--init from a model with another number of findings starts with a new last layer")
def _(work):
    first, second = os.path.join(work, "first"), os.path.join(work, "second")
    run(words(data("a,b,c"), first))
    run(words(data("a,c"), second, "--init", f"{first}/best.safetensors"))
    assert header(f"{second}/best.safetensors")["__metadata__"]["labels"] == "a,c"
    # The shape of the last layer decides, not the number of names in the metadata.
    text = slurp(f"{second}/best.safetensors").replace(b'"labels":"a,c"', b'"labels":"a.c"')
    with open(f"{work}/names.safetensors", "wb") as f:
        f.write(text)
    says(run(words(data("a,c"), f"{work}/third", "--init", f"{work}/names.safetensors"), 6),
         "its findings are 'a.c' .1., those of the data set 'a,c' .2.")


@case("a model of the 14 findings scores a data set with the same list and unknown labels")
def _(work):
    first, table = os.path.join(work, "first"), os.path.join(work, "p.csv")
    run(words(fixture("trainable"), first))
    run([program("chex-train"), "-d", data(",".join(FINDINGS), 20), "--eval-only", "--init",
         f"{first}/best.safetensors", "--predict", table, "-j", "1"])
    assert [n for n in rows(table)[0] if n.startswith("prob_")] == [f"prob_{n}" for n in FINDINGS]


@case("--pos-weight auto divides known negatives by positives; a file names the findings of the data set")
def _(work):
    folder, out = data("a,b,c", 40), os.path.join(work, "run")
    run(words(folder, out, "--pos-weight", "auto"))
    split = next(s for s in manifest(folder)["splits"] if s["name"] == "train")
    assert split["known"]["a"] < split["images"]
    with open(f"{work}/same.csv", "w", encoding="ascii") as f:
        for name in "abc":
            positives, known = split["positives"][name], split["known"][name]
            f.write(f"{name},{(known - positives) / positives if 0 < positives < known else 1!r}\n")
    run(words(folder, f"{work}/same", "--pos-weight", f"{work}/same.csv"))
    assert parameters(f"{out}/best.safetensors") == parameters(f"{work}/same/best.safetensors")
    for text, code, wanted in (("c,2\na,3\nb,1.5\n", 0, None), ("c,2\na,3\n", 2, "no weight for b"),
                               ("c,2\na,3\nb,1\na,3\n", 2, "w.csv:4: a a second time"),
                               ("c,2\nHernia,3\n", 2, "w.csv:2: 'Hernia' is not a finding of")):
        with open(f"{work}/w.csv", "w", encoding="ascii") as f:
            f.write(text)
        done = run(words(folder, f"{work}/{code}{len(text)}", "--pos-weight", f"{work}/w.csv"), code)
        if wanted:
            says(done, wanted)


if __name__ == "__main__":
    sys.exit(case.main())
