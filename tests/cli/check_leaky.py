#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leaky splits: chex-convert --allow-leak, the leaks in the manifest, and the mark on what chex-train writes.

    check_leaky.py [PATTERN]      $CHEX_CONVERT, $CHEX_INSPECT, $CHEX_SYNTH, $CHEX_TRAIN or in $BUILDDIR
"""
import csv
import json
import os
import re
import sys

from support import SOURCE, Cases, manifest, program, run, says, slurp, synth, tree, write, write_csv

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
made = {}


def convert(folder, *more, code=0, split="leaky.csv"):
    source = os.path.dirname(made["labels"])
    return run([program("chex-convert"), "-i", os.path.join(source, "images"), "-l", made["labels"], "-o", folder,
                "--size", "36", "--shard-size", "16", "--split", f"file:{os.path.join(source, split)}", *more], code)


def inspect(*words, code=0):
    return run([program("chex-inspect"), *words], code)


def valid(document, schema):
    if jsonschema:
        jsonschema.validate(document, json.loads(slurp(os.path.join(SOURCE, "schemas", schema))))
    return document


def sources(work):
    """Images with two split files: by image (leaky.csv), and by patient (clean.csv)."""
    folder = os.path.join(work, "source")
    made["labels"] = synth(folder, 120, "--size", "64")
    with open(made["labels"], encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    made["split_of"] = {r["Image Index"]: ("train", "train", "val", "test")[i % 4] for i, r in enumerate(rows)}
    made["patient_of"] = {r["Image Index"]: f"{int(r['Patient ID']):08d}" for r in rows}
    write_csv(os.path.join(folder, "leaky.csv"), ["Image Index", "split"], made["split_of"].items())
    patients = sorted(set(made["patient_of"].values()))
    write_csv(os.path.join(folder, "clean.csv"), ["Patient ID", "split"],
              [[p, ("train", "train", "val", "test")[i % 4]] for i, p in enumerate(patients)])


def leaks():
    """(patients in two splits, their images), from the split file alone."""
    splits = {}
    for image, patient in made["patient_of"].items():
        splits.setdefault(patient, []).append(made["split_of"][image])
    shared = [found for found in splits.values() if len(set(found)) > 1]
    return len(shared), sum(map(len, shared))


@case("a split with a patient in two splits needs --allow-leak, which counts them in the plan and the manifest")
def allowed(work):
    sources(work)
    patients, images = leaks()
    says(convert(f"{work}/out", code=2), rf"{patients} patients are in two splits")
    assert not os.path.exists(f"{work}/out/manifest.json")
    done = convert(f"{work}/out", "--allow-leak", "--json")
    says(done, rf"leaky    {patients} patients with {images} images are in two splits",
         rf"patients in two splits: {patients} \(leaky\)")
    plan = valid(json.loads(done.stdout), "convert.schema.json")["plan"]
    assert (plan["leaky_patients"], plan["leaky_images"]) == (patients, images), plan
    found = valid(manifest(f"{work}/out"), "manifest.schema.json")
    assert found["leaks"] == {"patients": patients, "images": images}, found["leaks"]
    assert sum(s["patients"] for s in found["splits"]) > len(set(made["patient_of"].values()))
    text = inspect(f"{work}/out").stdout
    assert f"leaky: {patients} patients with {images} images in two splits" in text, text
    shown = valid(json.loads(inspect("--json", f"{work}/out").stdout), "inspect.schema.json")["results"][0]
    assert (shown["dataset"]["leaky_patients"], shown["dataset"]["leaky_images"]) == (patients, images)


@case("--allow-leak changes no byte of a split without a leak, nor of the shards for any threads")
def unchanged(work):
    sources(work)
    convert(f"{work}/plain", split="clean.csv")
    convert(f"{work}/allowed", "--allow-leak", split="clean.csv")
    assert tree(f"{work}/plain") == tree(f"{work}/allowed")
    assert "leaks" not in manifest(f"{work}/plain")
    convert(f"{work}/one", "--allow-leak", "-j", "1")
    convert(f"{work}/three", "--allow-leak", "-j", "3")
    assert tree(f"{work}/one") == tree(f"{work}/three")


@case("an image in two lists is an error also with --allow-leak")
def image_twice(work):
    sources(work)
    folder = os.path.dirname(made["labels"])
    names = sorted(made["split_of"])
    write(f"{folder}/train_val_list.txt", "".join(n + "\n" for n in names[:90]))
    write(f"{folder}/test_list.txt", "".join(n + "\n" for n in names[89:]))
    done = run([program("chex-convert"), "-i", f"{folder}/images", "-l", made["labels"], "-o", f"{work}/out",
                "--split", "official", "--allow-leak"], 2)
    says(done, f"image {names[89]} is in (train|val) and test")


@case("check --full counts the patients in two splits again: a manifest that hides or invents them is a fault")
def counted_again(work):
    sources(work)
    patients, images = leaks()
    for name, split, lie in (("hidden", "leaky.csv", None), ("fewer", "leaky.csv", {"patients": 1, "images": 2}),
                             ("invented", "clean.csv", {"patients": 1, "images": 2})):
        out = f"{work}/{name}"
        convert(out, "--allow-leak", split=split)
        inspect("check", "--full", out)
        found = manifest(out)
        del found["manifest_sha256"]
        found.pop("leaks", None)
        if lie:
            found["leaks"] = lie
        write(f"{out}/manifest.json", json.dumps(found))
        text = inspect("check", "--full", out, code=1).stdout
        real = (0, 0) if split == "clean.csv" else (patients, images)
        assert f"the records have {real[0]} with {real[1]}" in text, text
        inspect("check", "--quick", out)


@case("the repair command that check prints has --allow-leak, and repairs a leaky data set to the same bytes")
def repaired(work):
    sources(work)
    convert(f"{work}/out", "--allow-leak")
    before = tree(f"{work}/out")
    shard = manifest(f"{work}/out")["shards"][0]["name"]
    os.remove(f"{work}/out/{shard}")
    text = inspect("check", f"{work}/out", code=1).stdout
    assert re.search(r"chex-convert --repair[^#]*--allow-leak", text, re.S), text
    convert(f"{work}/out", "--allow-leak", "--repair")
    assert tree(f"{work}/out") == before


@case("a leaky data set as input needs --allow-leak again, unless it gets a clean split")
def resharded(work):
    sources(work)
    convert(f"{work}/out", "--allow-leak")
    again = [program("chex-convert"), "-i", f"{work}/out", "-o"]
    says(run([*again, f"{work}/refused", "--size", "18"], 2), "are in two splits")
    run([*again, f"{work}/small", "--size", "18", "--allow-leak"])
    assert manifest(f"{work}/small")["leaks"] == manifest(f"{work}/out")["leaks"]
    run([*again, f"{work}/clean", "--size", "18", "--split", "patient:70,10,20"])
    assert "leaks" not in manifest(f"{work}/clean")


if __name__ == "__main__":
    sys.exit(case.main())
