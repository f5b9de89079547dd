#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train --fold K/N: cross-validation by patient on the shards of one data set.

    check_fold.py [PATTERN]

The rule of the man page is computed with hashlib from the records of train and val.
"""
import collections
import csv
import hashlib
import json
import os
import re
import shutil
import sys

import mpi
from mpi import ENVIRONMENT
from support import SOURCE, Cases, images, manifest, program, run, says, slurp, tree, write
from training import command, copy, data, header, kept, last_step, run_folder, same_as_whole, train, with_header

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()


def everyone():
    """{image: patient} of train and val."""
    return {name: record["patient"].decode() for split in ("train", "val")
            for name, record in images(data(), split).items()}


def fold_of(patient, count):
    return int.from_bytes(hashlib.sha256(f"chex-fold:{patient}".encode()).digest()[:8], "big") % count + 1


def members(names):
    return hashlib.sha256("".join(name + "\n" for name in sorted(names)).encode()).hexdigest()


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def epoch_of(out, number=1):
    """The line of the last epoch in metrics.jsonl, which has this number."""
    lines = map(json.loads, slurp(f"{out}/metrics.jsonl").splitlines())
    *_, found = [line for line in lines if line["kind"] == "epoch"]
    assert found["epoch"] == number, found
    return found


def leaks(validated):
    """What is wrong with the validation images of N folds, {K: rows}: [] if they divide train and val by patient."""
    found = collections.Counter(row["image"] for each in validated.values() for row in each)
    wrong = [f"{name} is in {found[name]} folds" for name in sorted({*everyone(), *found}) if found[name] != 1]
    folds = collections.defaultdict(set)
    for k, each in validated.items():
        for row in each:
            folds[row["patient"]].add(k)
    return wrong + [f"patient {p} is in folds {sorted(k)}" for p, k in sorted(folds.items()) if len(k) > 1]


@case("three folds together validate with each image of train and val once, and test stays whole")
def _(work):
    validated = {}
    for k in (1, 2, 3):
        out = run_folder(work, f"run{k}")
        done = train(out, "--epochs", 1, "--fold", f"{k}/3")
        own = {name for name, patient in everyone().items() if fold_of(patient, 3) == k}
        others = set(everyone()) - own
        says(done, f"fold {k}/3", f"train {len(others)} .{members(others)[:8]}., val {len(own)} .{members(own)[:8]}.",
             f"fold     {k}/3: train has {len(others)} images of {len({everyone()[n] for n in others})} patients, "
             f"val {len(own)} images? of {len({everyone()[n] for n in own})} patients?")
        validated[k] = rows(f"{out}/predictions-val.csv")
        assert {row["image"] for row in validated[k]} == own
        assert all(everyone()[row["image"]] == row["patient"] for row in validated[k])
        numbers = json.loads(slurp(f"{out}/metrics-val.json"))
        assert numbers["split"]["members_sha256"] == members(own) and numbers["split"]["images"] == len(own)
        assert numbers["split"]["rule"].endswith(f", fold {k}/3"), numbers["split"]
        operating = json.loads(header(f"{out}/best.safetensors")["__metadata__"]["operating"])
        assert (operating["members_sha256"], operating["images"]) == (members(own), len(own))
        final = json.loads(slurp(f"{out}/metrics-test.json"))
        assert final["operating"]["members_sha256"] == members(own)
        assert final["split"]["images"] == len(images(data(), "test"))
        about = json.loads(slurp(f"{out}/run.json"))
        if jsonschema:
            jsonschema.validate(about, json.loads(slurp(os.path.join(SOURCE, "schemas", "run.schema.json"))))
        splits = {split["name"]: split for split in about["dataset"]["splits"]}
        assert about["options"]["fold"] == f"{k}/3"
        assert (splits["val"]["sha256"], splits["val"]["images"]) == (members(own), len(own))
        assert (splits["train"]["sha256"], splits["train"]["images"]) == (members(others), len(others))
        assert splits["train"]["patients"] == len({everyone()[n] for n in others})
        assert epoch_of(out)["images"] == len(others)
    assert leaks(validated) == [], leaks(validated)
    # The check itself finds a leak.
    stranger = validated[2][0]
    planted = {**validated, 1: validated[1] + [stranger]}
    assert leaks(planted) == [f"{stranger['image']} is in 2 folds", f"patient {stranger['patient']} is in folds [1, 2]"]


@case("diff refuses another fold, and a fold against the split of the data set, and compares test")
def _(work):
    runs = {name: run_folder(work, name) for name in ("one", "two", "plain")}
    for name, words in (("one", ["--fold", "1/2"]), ("two", ["--fold", "2/2"]), ("plain", [])):
        train(runs[name], "-q", "--epochs", 1, *words)
    for other in ("two", "plain"):
        done = run([program("chex-inspect"), "diff", "--split", "val", runs["one"], runs[other]], 6)
        hashes = [json.loads(slurp(f"{runs[n]}/metrics-val.json"))["split"]["members_sha256"] for n in ("one", other)]
        says(done, "different splits", *hashes)
    done = run([program("chex-inspect"), "diff", "--split", "test", runs["one"], runs["two"]])
    assert "note" not in done.stdout, done.stdout
    for count in (2, 3):
        done = run([program("chex-inspect"), "diff", "--split", "val", *[runs["one"]] * count])
        assert "\nnote     the best epoch and the thresholds of each model were chosen on val" in done.stdout


@case("1, 2 and 4 ranks, and a run that resumes, train the same fold")
def _(work):
    found = set()
    for count, batch in ((1, 16), (2, 8), (4, 4)):
        out = os.path.join(work, f"run{count}")
        words = command(out, "--fold", "2/3", "--epochs", 1, "--batch", batch, "--micro-batch", 4)
        run(words if count == 1 else mpi.ranks("chex-train", count, *words), env=ENVIRONMENT)
        epoch = epoch_of(out)
        found.add((epoch["order"], epoch["images"], epoch["step"],
                   json.loads(slurp(f"{out}/metrics-val.json"))["split"]["members_sha256"],
                   tuple(row["image"] for row in rows(f"{out}/predictions-val.csv"))))
    assert len(found) == 1, found
    reference, out = run_folder(work, "reference"), run_folder(work, "resumed")
    train(reference, "-q", "--fold", "2/3", "--shuffle", 2)
    for steps in (3, 8):
        train(out, "-q", "--fold", "2/3", "--shuffle", 2, "--max-steps", steps)
        assert last_step(out) == f"step-{steps:06}"
    train(out, "-q", "--fold", "2/3", "--shuffle", 2)
    same_as_whole(out, reference, but={"metrics-val.json", "predictions-val.csv", "auroc.svg"})


@case("list --trained-on knows the images of a fold, and those of --limit")
def _(work):
    for name, words in (("fold", ["--fold", "2/3"]), ("limit", ["--limit", "40%"]),
                        ("both", ["--fold", "2/3", "--limit", "20"])):
        out = run_folder(work, name)
        train(out, "-q", "--epochs", 2, "--shuffle", 1, *words)
        listed = run([program("chex-inspect"), "list", "--trained-on", out, "--format", "json", data()])
        found = json.loads(listed.stdout)["results"][0]
        uses = collections.Counter(use["name"] for use in found["uses"])
        assert set(uses.values()) == {2} and len(uses) == epoch_of(out, 2)["images"], (name, uses)
        assert not set(uses) & {row["image"] for row in rows(f"{out}/predictions-val.csv")}, name
        if name == "fold":
            assert set(uses) == {image for image, patient in everyone().items() if fold_of(patient, 3) != 2}


@case("a run keeps its fold: another one, or none, is refused with 6 and changes nothing")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--epochs", 1, "--fold", "1/3")
    before = tree(out)
    for other, name in ((("--fold", "2/3"), "2/3"), (("--fold", "1/4"), "1/4"), ((), "none")):
        says(train(out, "--epochs", 2, *other, code=6), f"made with other options: fold 1/3 -> {name}")
    plain = run_folder(work, "plain")
    train(plain, "-q", "--max-steps", 1)
    says(train(plain, "--fold", "1/3", code=6), "made with other options: fold none -> 1/3")
    for name in os.listdir(plain):  # as written before there was --fold
        if name.startswith("step-") and ".opt." not in name:
            with_header(f"{plain}/{name}", lambda top: top["__metadata__"].update(
                state=top["__metadata__"]["state"].replace("fold none\\n", "")))
    os.unlink(f"{plain}/latest")
    says(train(plain, "--fold", "1/3", code=6), "made with other options: fold none -> 1/3")
    assert kept(out) == {n: before[n] for n in kept(out)}


@case("--eval-only validates with the fold of the run; another fold is refused")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--epochs", 1, "--fold", "3/3")
    first = rows(f"{out}/predictions-val.csv")
    shutil.move(f"{out}/predictions-val.csv", f"{work}/first.csv")
    done = train(out, "--eval-only", "--split", "val")
    says(done, "fold     3/3: train has")
    assert slurp(f"{out}/predictions-val.csv") == slurp(f"{work}/first.csv")
    train(out, "-q", "--eval-only", "--split", "train", "--stage", f"{work}/stage")
    assert {r["image"] for r in rows(f"{out}/predictions-train.csv")} == set(everyone()) - {r["image"] for r in first}
    assert "fold     " not in train(out, "--eval-only", "--split", "test").stderr
    for words in (("--fold", "1/3"), ("--fold", "1/3", "--init", f"{out}/best.safetensors")):
        says(train(out, "--eval-only", "--split", "val", *words, code=6), "trained with --fold 3/3", "by --fold 1/3")
    with_header(f"{out}/best.safetensors", lambda top: top["__metadata__"].update(
        state=top["__metadata__"]["state"].replace("fold 3/3", "fold 3/2")))
    says(train(out, "--eval-only", "--split", "val", code=6), "fold of the model's run", "not '3/2'")


@case("weights that have seen the fold's val are refused: those of another fold, or of the split")
def _(work):
    fold, plain = run_folder(work, "fold"), run_folder(work, "plain")
    train(fold, "-q", "--epochs", 1, "--fold", "1/3")
    train(plain, "-q", "--epochs", 1)
    fresh = f"{work}/fresh"
    says(train(fresh, "--fold", "2/3", "--init", f"{fold}/best.safetensors", code=6), "trained with --fold 1/3 ",
         "by --fold 2/3")
    says(train(fresh, "--fold", "2/3", "--init", f"{plain}/best.safetensors", code=6), "trained without --fold")
    says(train(fresh, "--init", f"{fold}/best.safetensors", code=6), "trained with --fold 1/3 ")
    assert not os.path.exists(fresh)
    train(fresh, "-q", "--epochs", 1, "--fold", "1/3", "--init", f"{fold}/best.safetensors")
    run([program("chex-train"), "-d", data("other"), "-o", f"{work}/other", "--model", "densenet-micro", "--crop", "32",
         "--epochs", "1", "-q", "-j", "1", "--fold", "2/3", "--init", f"{fold}/best.safetensors"])


@case("-n, --limit, --device none and a cache see the images of the fold")
def _(work):
    own = [name for name, patient in everyone().items() if fold_of(patient, 2) == 1]
    rest = len(everyone()) - len(own)
    document = json.loads(train(f"{work}/none", "-n", "--json", "--fold", "1/2").stdout)
    splits = {split["name"]: split for split in document["plan"]["splits"]}
    assert (splits["val"]["images"], splits["train"]["images"]) == (len(own), rest)
    assert not os.path.exists(f"{work}/none")
    reading = run([program("chex-train"), "-d", data(), "--device", "none", "--fold", "1/2", "--json"])
    assert json.loads(reading.stdout)["storage"]["images"] == rest, reading.stdout
    out = run_folder(work)
    train(out, "-q", "--fold", "1/2", "--limit", "50%", "--epochs", 1)
    few = {row["image"] for row in rows(f"{out}/predictions-val.csv")}
    assert few < set(own) and len(few) >= len(own) / 2
    found = set()
    for name, words in (("host", ("--cache", "host")), ("never", ("--cache", "none", "--crc", "always"))):
        cached = run_folder(work, name)
        train(cached, "-q", "--fold", "1/2", "--epochs", 2, "--shuffle", "whole", *words)
        found.add(slurp(f"{cached}/predictions-val.csv"))
    assert len(found) == 1


def break_length(folder, split):
    """Break the length of record 2 of a shard, so that it has no readable patient; a pattern of the record."""
    m = manifest(folder)
    shard = next(s["name"] for s in m["shards"] if f"-{split}." in s["name"])
    blob = bytearray(slurp(f"{folder}/{shard}"))
    blob[m["record"]["stride"] * 2] ^= 1
    write(f"{folder}/{shard}", bytes(blob))
    return rf"warning: '{re.escape(shard)}' record 2\b.*"


@case("a record without a readable patient is named once, counted, and ends a run of a fold or a part with 1")
def _(work):
    folder = copy(work)
    found = {split: break_length(folder, split) for split in ("train", "val")}
    for name, words in (("fold", ["--fold", "1/2"]), ("limit", ["--limit", "50%", "--select", "loss"])):
        out = run_folder(work, name)
        words += ["--on-bad-record", "skip", "--epochs", 2]
        if name == "fold":  # the count is that of a run that was never stopped
            says(train(out, *words, "--max-steps", 1, code=1, source=folder), *found.values())
        done = train(out, *words, "--json", code=1, source=folder)
        document = json.loads(done.stdout)
        for pattern in found.values():
            assert len(re.findall(pattern, done.stderr)) == 1, done.stderr
        assert document["exit_code"] == 1, document
        assert document["result"]["skipped"] == (2 if name == "fold" else 4), document["result"]
        says(train(out, *words, code=1, source=folder), "damaged records? skipped")  # it is complete
    reading = ["--device", "none", "--fold", "1/2", "--on-bad-record", "skip"]
    done = run([program("chex-train"), "-d", folder, *reading], 1)
    says(done, *found.values(), r"\nfold     1/2: train has \d+ images")
    assert json.loads(slurp(f"{work}/limit/metrics-val.json"))["split"]["skipped"] != []


@case("a fold without images, and a data set without val, are refused")
def _(work):
    says(train(f"{work}/run", "--fold", "1/100", code=2), "--fold 1/100 has no image to validate with")
    labels = data("unsplit") + ".images/Data_Entry_2017_v2020.csv"
    run([program("chex-convert"), "-q", "-i", data("unsplit") + ".images/images", "-l", labels, "-o", f"{work}/all",
         "--size", "36", "--split", "none"])
    says(train(f"{work}/run", "--fold", "1/3", code=2, source=f"{work}/all"), "divides the splits 'train' and 'val'")
    assert not os.path.exists(f"{work}/run")


if __name__ == "__main__":
    sys.exit(case.main())
