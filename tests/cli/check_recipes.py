#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the recipes of README.md and the pages in doc/, exactly as printed there.

    check_recipes.py [PATTERN]

A recipe is a block of Python behind the line <!-- recipe: NAME -->.  Each runs on a small synthetic data set, with
CHEX_DATASET naming its folder, in a Python that has what it imports.  With CHEX_SLOW=1 those that need more than NumPy.
A recipe of a run is for what chex-train leaves; CHEX_RUN names its folder.
"""
import functools
import os
import re
import shutil
import sys

from support import (BUILD, FINDINGS, SOURCE, Cases, cache_folder, images, manifest, program, python_with, run, says,
                     slurp, synth, write)

case = Cases()
CACHE = cache_folder("recipes")
PAGES = ("README.md", "doc/reading.md", "doc/tour.md")
NEEDS = {"dataset": "numpy", "numpy": "numpy", "tensorflow": "tensorflow", "tfrecorddataset": "tensorflow",
         "fixedlength": "tensorflow", "torch": "torch", "dali": "nvidia.dali"}


@functools.lru_cache(None)
def dataset():
    folder, out = os.path.join(CACHE, "synthetic"), os.path.join(CACHE, "shards")
    labels = synth(folder, 150, "--size", "64")
    run([program("chex-convert"), "-q", "-i", f"{folder}/images", "-l", labels, "-o", out, "--size", "48",
         "--shard-size", "32", "--index", "dali"])
    return out


@functools.lru_cache(None)
def recipes(kind="recipe"):
    text = "".join(slurp(os.path.join(SOURCE, page)).decode() for page in PAGES)
    return dict(re.findall(rf"<!-- {kind}: (\w+) -->\s*```python\n(.*?)```", text, re.S))


def start(name, work, text=None, code=0, shards=None, **environment):
    """Run the recipe, or another text in its place, in a folder of its own, as `python recipe_NAME.py` there."""
    assert name in recipes(), f"there is no recipe {name}"
    write(os.path.join(work, f"recipe_{name}.py"), text or recipes()[name])
    environment = dict(os.environ, CHEX_DATASET=shards or dataset(), TF_CPP_MIN_LOG_LEVEL="2",
                       PYTHONPATH=os.path.join(SOURCE, "python"), **environment)
    return run([python_with(NEEDS[name]), f"recipe_{name}.py"], code, env=environment, cwd=work)


def wanted():
    """How many images train has; and records, with its padding records."""
    split = next(s for s in manifest(dataset())["splits"] if s["name"] == "train")
    return split["images"], sum(s["records"] for s in manifest(dataset())["shards"] if s["split"] == "train")


def check(name, work):
    done = start(name, work)
    assert re.search(rf"\b{wanted()[0]} images\b", done.stdout), f"it prints: {done.stdout!r}"


@case("README.md and doc/reading.md have the seven recipes and no other")
def _(_work):
    assert sorted(recipes()) == sorted(NEEDS), sorted(recipes())


@case("doc/tour.md has one recipe of a run, for its predictions: all images, those with the finding")
def _(work):
    found = recipes("recipe of a run")
    assert list(found) == ["predictions"], list(found)
    python, folder = python_with("pandas"), os.path.join(work, "run")
    run([program("chex-train"), "-q", "-d", dataset(), "-o", folder, "--model", "densenet-micro", "--epochs", "1",
         "--bootstrap", "0"])
    path = write(os.path.join(work, "recipe.py"), found["predictions"])
    done = run([python, path], env=dict(os.environ, CHEX_RUN=folder), cwd=work)
    test = images(dataset(), "test")
    patients = {record["patient"].rstrip(b"\0") for record in test.values()}
    assert f"{len(test)} images of {len(patients)} patients" in done.stdout, f"it prints: {done.stdout!r}"
    for name in re.findall(r"\d{8}_\d{3}\.png", done.stdout):
        assert test[name]["label"][FINDINGS.index("Pneumothorax")] == 1, f"{name} has no pneumothorax"
    assert ".png" in done.stdout or not any(r["label"][7] for r in test.values()), "no image is printed"


@case("the examples of doc/python.md run, one after another")
def _(work):
    examples = re.findall(r"<!-- example of the module: (\w+) -->\n```python\n(.*?)```",
                          slurp(os.path.join(SOURCE, "doc/python.md")).decode(), re.S)
    assert [name for name, _ in examples] == ["select", "sampler", "run", "programs"]
    run([program("chex-train"), "-q", "-d", dataset(), "-o", os.path.join(work, "run"), "--model", "densenet-micro",
         "--epochs", "1", "--bootstrap", "0"])
    environment = dict(os.environ, CHEX_DATASET=dataset(), CHEX_RUN=os.path.join(work, "run"),
                       PYTHONPATH=os.path.join(SOURCE, "python"), PATH=f"{BUILD}:{os.environ['PATH']}")
    for name, text in examples:
        run([python_with("torch" if name == "sampler" else "numpy"), "-c", text], env=environment, cwd=work)
    assert manifest(os.path.join(work, "small"))["record"]["width"] == 32


for recipe in NEEDS:
    case(f"recipe {recipe}", slow=NEEDS[recipe] != "numpy")(functools.partial(check, recipe))


# ---- PyTorch ------------------------------------------------------------------------------------------------------

NETWORK = """import math, os
import torch, torchvision
from chex_tools.torch import Normalize, Shards, batches

T = torchvision.transforms
train = Shards(os.environ["CHEX_DATASET"], "train", T.RandomHorizontalFlip(1.0))
image, label, about = next(iter(batches(train, 8, shuffle=False)))
gray = Shards(os.environ["CHEX_DATASET"], "train")[0][0]
as_torchvision = T.functional.normalize(
    gray.expand(3, -1, -1) / 255, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
assert torch.allclose(Normalize()(gray), as_torchvision, atol=1e-6)
assert torch.equal(image[0], gray.flip(2)), "transform"
floats = Shards(os.environ["CHEX_DATASET"], "train", T.Compose([T.RandomHorizontalFlip(1.0), Normalize()]))
assert torch.equal(floats[0][0], Normalize()(image)[0]), "floats on the CPU"
network = torchvision.models.densenet121(num_classes=14)
loss = torch.nn.functional.binary_cross_entropy_with_logits(network(Normalize()(image)), label)
loss.backward()
assert math.isfinite(loss.item())
"""


@case("the recipe for PyTorch feeds densenet121 of torchvision, with its transforms", slow=True)
def _(work):
    write(os.path.join(work, "network.py"), NETWORK)
    environment = dict(os.environ, CHEX_DATASET=dataset(), PYTHONPATH=os.path.join(SOURCE, "python"))
    run([python_with("torchvision"), "network.py"], env=environment, cwd=work)


# ---- padding records and damage: what doc/reading.md and chex-shard(5) say about the readers -------------------------


@case("without its filter the pipeline with interleave gets the padding records too", slow=True)
def _(work):
    text = recipes()["tfrecorddataset"]
    assert ".interleave(tf.data.TFRecordDataset" in text
    without = re.sub(r"^dataset = dataset\.filter\(.*\n", "", text, flags=re.M)
    assert without != text
    real, records = wanted()
    assert real < records
    done = start("tfrecorddataset", work, without, 1)
    assert f"{records} images" in done.stdout and "AssertionError" in done.stderr, done.stdout


@case("a damaged record: which reader notices, which loses the rest of the file, which takes it unchecked", slow=True)
def _(work):
    real, _ = wanted()
    shards = os.path.join(work, "damaged")
    shutil.copytree(dataset(), shards)
    first = next(s for s in manifest(shards)["shards"] if s["split"] == "train")
    path, stride, bad = os.path.join(shards, first["name"]), manifest(shards)["record"]["stride"], 5
    data = bytearray(slurp(path))
    data[bad * stride + manifest(shards)["record"]["pixel_offset"] + 7] ^= 0x40
    write(path, data)
    run([program("chex-inspect"), "-q", "check", "--full", shards], 1)
    for name in ("dataset", "numpy", "tensorflow", "fixedlength", "torch", "dali"):
        done = start(name, work, shards=shards)
        assert re.search(rf"\b{real} images\b", done.stdout), f"{name}: {done.stdout!r}"
    says(start("tfrecorddataset", work, None, 1, shards), "DataLossError")
    text = recipes()["tfrecorddataset"].replace("dataset = dataset.map(", "dataset = dataset.ignore_errors().map(")
    done = start("tfrecorddataset", work, text, 1, shards)  # its assert counts
    assert first["images"] == first["records"], "choose another shard: this one has padding records"
    left = real - (first["records"] - bad)
    assert f"{left} images" in done.stdout, f"not {left} of {real}: {done.stdout!r}"


if __name__ == "__main__":
    sys.exit(case.main())
