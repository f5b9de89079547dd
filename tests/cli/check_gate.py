#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate of a model: mean image and components of val, and the turned and inverted images that chex-predict finds.

    check_gate.py [PATTERN]

NumPy's SVD of the same images is the oracle.  With CHEX_NIH also on images of the real data set.
"""
import base64
import csv
import json
import os
import sys

from mpi import ENVIRONMENT, ranks
from support import SOURCE, Cases, Skip, images, nih, png, program, run, says, slurp
from training import finish, header, scratch, three_splits, with_header

try:
    import numpy as np
except ImportError:
    print("skip: NumPy is missing\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)
try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
SIDE = 32


class Made:
    """A data set of 64 x 64, of which most is val, and a run on it."""
    data = folder = None


def made():
    if not Made.data:
        source = three_splits("gate", 150, 32, "patient:20,65,15")
        Made.data = os.path.join(scratch(), "gate64")
        run([program("chex-convert"), "-q", "-i", source + ".images/images", "-l",
             source + ".images/Data_Entry_2017_v2020.csv", "-o", Made.data, "--size", "64", "--shard-size", "32",
             "--split", "patient:20,65,15"])
        Made.folder = os.path.join(scratch(), "gate-run")
        train(Made.folder)
    return Made.data, Made.folder


def train(out, *more, count=1, source=None, code=0):
    words = [program("chex-train"), "-d", source or Made.data, "-o", out, "--model", "densenet-micro", "--crop", "32",
             "--batch", "8", "--micro-batch", "4", "--epochs", "1", "--bootstrap", "0", "-q", *more]
    if count > 1:
        return run([*ranks("chex-train", count), *words], code, env=ENVIRONMENT)
    return run(words, code)


def gate_of(run_folder):
    """Mean image and components of a model, and the JSON."""
    top = header(os.path.join(run_folder, "best.safetensors"))
    found = json.loads(top["__metadata__"]["operating"])["gate"]
    if found is None:
        return None, None, None
    values = np.frombuffer(base64.b64decode(found["values"]), "<i2").reshape(1 + found["components"], SIDE * SIDE)
    rows = values.astype(float) * np.array(found["scales"])[:, None]
    return rows[0], rows[1:], found


def shrunk(pixels):
    """An image of 64 x 64, shrunk by area, rounded half up."""
    sums = np.frombuffer(pixels, "u1").reshape(SIDE, 2, SIDE, 2).astype(int).sum((1, 3))
    return (sums + 2) // 4


def normal(image):
    z = image.astype(float) - image.mean()
    return (z / np.sqrt((z ** 2).sum())).ravel()


def fit(mean, components, z):
    rest = z - mean
    for c in components:
        rest = rest - c * (c @ rest)
    return np.sqrt((rest ** 2).sum())


def predict(*words, code=0):
    return run([program("chex-predict"), *map(str, words)], code)


def document(folder):
    found = json.loads(slurp(os.path.join(folder, "predictions.json")))
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "predict.schema.json"))))
    return found


def statuses(folder):
    with open(os.path.join(folder, "predictions.csv"), encoding="utf-8", newline="") as file:
        return {row["image"]: row["status"] for row in csv.DictReader(file)}


@case("mean, components and signs are those of NumPy's SVD of the images of val")
def _(_work):
    data, out = made()
    mean, components, found = gate_of(out)
    val = np.array([normal(shrunk(record["image"])) for record in images(data, "val").values()])
    assert found["images"] == len(val) >= 50, (found["images"], len(val))
    assert np.abs(mean - val.mean(0)).max() < 1e-5
    _, sizes, vectors = np.linalg.svd(val - val.mean(0), full_matrices=False)
    for k in range(8):
        if sizes[k + 1] < 0.95 * sizes[k] and (k == 0 or sizes[k] < 0.95 * sizes[k - 1]):
            assert abs(components[k] @ vectors[k]) > 0.9999, (k, components[k] @ vectors[k])
    assert np.abs(components @ components.T - np.eye(24)).max() < 1e-3
    assert all(c[np.abs(c).argmax()] > 0 for c in components)
    ours = np.array([fit(mean, components, z) for z in val])
    best = np.sqrt(((val - val.mean(0)) ** 2).sum(1) - (((val - val.mean(0)) @ vectors[:24].T) ** 2).sum(1))
    assert abs((ours ** 2).sum() / (best ** 2).sum() - 1) < 1e-3, ((ours ** 2).sum(), (best ** 2).sum())


@case("threads, ranks and a resumed run make the same gate; fewer than 50 images of val make none")
def _(work):
    data, out = made()
    wanted = gate_of(out)[2]
    train(f"{work}/threads", "-j", "2", "--cache", "none")
    train(f"{work}/ranks", "-j", "1", count=2)
    train(f"{work}/again", "-j", "1", "--max-steps", "1")
    train(f"{work}/again", "-j", "1")
    for name in ("threads", "ranks", "again"):
        assert gate_of(f"{work}/{name}")[2] == wanted, name
    few = three_splits("gate-few", 60, 32, "patient:60,30,10")
    train(f"{work}/few", "-j", "1", source=few)
    assert gate_of(f"{work}/few")[2] is None
    says(predict(f"{work}/few", few), "gate     none: turned and inverted images are not found, because",
         "val had fewer than 50 images")
    assert data


def written(folder, arrays):
    """A folder with these images as PNG files: {name: array}."""
    os.mkdir(folder)
    for name, a in arrays.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(png(a.shape[1], a.shape[0], lambda y, w, a=a: a[y].tobytes()))
    return folder


def changed(pixels):
    """An image as it is, turned clockwise by 90, 180 and 270 degrees, inverted, and both."""
    a = np.frombuffer(pixels, "u1").reshape(64, 64)
    turned = {"as": a, "90": np.rot90(a, -1), "180": np.rot90(a, 2), "270": np.rot90(a, 1)}
    return {**turned, "inverted": 255 - a, **{f"inverted{how}": 255 - t for how, t in turned.items() if how != "as"}}


@case("synthetic images, turned or inverted, are found, with the fits that NumPy computes; --strict refuses them")
def _(work):
    data, out = made()
    mean, components, found = gate_of(out)
    arrays = {f"{name[:-4]}-{how}.png": np.ascontiguousarray(a)
              for name, record in list(images(data, "test").items())[:10]
              for how, a in changed(record["image"]).items()}
    folder = written(f"{work}/images", arrays)
    done = predict(out, folder, "-o", f"{work}/out")
    says(done, f"gate     turned and inverted images are found by a comparison with {found['images']} images of val",
         "fits better (turned by|inverted)")
    result, back = document(f"{work}/out"), {"90": "270", "180": "180", "270": "90"}
    named = {o["image"]: o for o in result["orientation"]}
    right = {"turned": 0, "inverted": 0, "inverted and turned": 0}
    for name in arrays:
        how = name[:-4].rsplit("-", 1)[1]
        if how == "as":
            continue
        words = [*["inverted"] * how.startswith("inverted"), *["turned"] * how.endswith("0")]
        wanted = " and ".join(words) + (f" by {back[how.replace('inverted', '')]} degrees" if how.endswith("0") else "")
        right[" and ".join(words)] += name in named and named[name]["change"] == wanted
    assert right["turned"] >= 27 and right["inverted"] >= 9 and right["inverted and turned"] >= 27, right
    assert sum(name.endswith("-as.png") for name in named) <= 1, named.keys()
    for name, o in named.items():
        z = normal(shrunk(arrays[name].tobytes()))
        square = z.reshape(SIDE, SIDE)
        turns = {f"turned by {90 * k} degrees": np.rot90(square, -k) for k in (1, 2, 3)}
        turns = {**turns, "inverted": -square, **{f"inverted and {how}": -turned for how, turned in turns.items()}}
        assert abs(o["fit"] - fit(mean, components, z)) < 1e-9
        assert abs(o["changed_fit"] - fit(mean, components, turns[o["change"]].ravel())) < 1e-9
    says(predict(out, folder, "-o", f"{work}/strict", "--strict", code=1), "images refused")
    refused = slurp(f"{work}/strict/refused.csv").decode()
    assert ",inverted,\"fits better inverted: 0." in refused
    assert ",turned,\"fits better turned by 90 degrees: 0." in refused


@case("real images: none is reported as it is, all are reported turned, inverted, and both (CHEX_NIH)")
def _(work):
    if len(os.listdir(nih("images"))) < 60:
        raise Skip("CHEX_NIH has fewer than 60 images")
    data = f"{work}/data"
    run([program("chex-convert"), "-q", "-i", nih("images"), "-l", nih("csv", "Data_Entry_2017_v2020.csv.gz"), "-o",
         data, "--size", "64", "--split", "patient:20,76,4", "--allow-missing"])
    train(f"{work}/run", "-j", "1", source=data)
    others = {**images(data, "train"), **images(data, "test")}
    folder = written(f"{work}/images", {f"{name[:-4]}-{how}.png": np.ascontiguousarray(a)
                                        for name, record in others.items()
                                        for how, a in changed(record["image"]).items()})
    predict(f"{work}/run", folder, "-o", f"{work}/out")
    found = statuses(f"{work}/out")
    assert len(found) == 8 * len(others) >= 80, len(found)
    wrong = {}
    for name, status in found.items():
        how = name[:-4].rsplit("-", 1)[1]
        wanted = "+".join(["turned"] * how.endswith("0") + ["inverted"] * how.startswith("inverted")) or "ok"
        if status != wanted:
            wrong[name] = status
    assert not wrong, wrong


@case("a gate that is not one is refused (6)")
def _(work):
    _, out = made()
    for change in ({"side": 64}, {"components": 25}, {"images": 3}, {"scales": [2] * 25}, {"scales": [0.1] * 24},
                   {"scales": [1] * 25},
                   {"values": "AAAA"}, {"values": "*" * 68268}, {"values": None}, {"scales": "x"}):
        folder = f"{work}/run"
        os.mkdir(folder)
        for name in ("best.safetensors", "run.json"):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(slurp(f"{out}/{name}"))

        def edit(top, change=change):
            operating = json.loads(top["__metadata__"]["operating"])
            operating["gate"].update(change)
            top["__metadata__"]["operating"] = json.dumps(operating)
        with_header(f"{folder}/best.safetensors", edit)
        says(predict(folder, Made.data, code=6), "operating points of the model: 'gate' is")
        for name in os.listdir(folder):
            os.remove(f"{folder}/{name}")
        os.rmdir(folder)


if __name__ == "__main__":
    raise SystemExit(finish(case))
