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

from support import (FINDINGS, SOURCE, Cases, cache_folder, images, manifest, program, python_with, run, says, slurp,
                     synth, write)

case = Cases()
CACHE = cache_folder("recipes")
PAGES = ("README.md", "doc/reading.md", "doc/tour.md")
NEEDS = {"numpy": "numpy", "tfrecorddataset": "tensorflow", "fixedlength": "tensorflow", "torch": "torch",
         "dali": "nvidia.dali"}


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
    environment = dict(os.environ, CHEX_DATASET=shards or dataset(), TF_CPP_MIN_LOG_LEVEL="2", **environment)
    return run([python_with(NEEDS[name]), f"recipe_{name}.py"], code, env=environment, cwd=work)


def wanted():
    """How many images train has; and records, with its padding records."""
    split = next(s for s in manifest(dataset())["splits"] if s["name"] == "train")
    return split["images"], sum(s["records"] for s in manifest(dataset())["shards"] if s["split"] == "train")


def check(name, work):
    done = start(name, work)
    assert re.search(rf"\b{wanted()[0]} images\b", done.stdout), f"it prints: {done.stdout!r}"


@case("README.md and doc/reading.md have the five recipes and no other")
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


for recipe in NEEDS:
    case(f"recipe {recipe}", slow=recipe != "numpy")(functools.partial(check, recipe))


# ---- the recipe for PyTorch ---------------------------------------------------------------------------------------

# Python reads this before the program, in worker processes too.
SITE = """import multiprocessing, os
multiprocessing.set_start_method(os.environ["START_METHOD"], force=True)
"""

NETWORK = """import math, os, sys
import torch, torchvision
from recipe_torch import Normalize, Shards, batches

T = torchvision.transforms

if __name__ == "__main__":
    folder = os.environ["CHEX_DATASET"]
    plain = Shards(folder, "train")
    train = Shards(folder, "train", T.RandomHorizontalFlip(1.0))
    image, label, about = next(iter(batches(train, 8, shuffle=False)))
    assert image.shape == (8, 1, 48, 48) and image.dtype == torch.uint8, (image.shape, image.dtype)
    gray = plain.images(0)[0].unsqueeze(0)
    as_torchvision = T.functional.normalize(
        gray.expand(3, -1, -1) / 255, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    assert torch.equal(plain[0][0], gray)
    assert torch.allclose(Normalize()(gray), as_torchvision, atol=1e-6)
    assert not Normalize().state_dict(), "it changes the checkpoints of a network"
    assert torch.equal(image[0], gray.flip(2)), "transform"
    floats = Shards(folder, "train", T.Compose([T.RandomHorizontalFlip(1.0), Normalize()]))
    assert torch.equal(floats[0][0], Normalize()(image)[0]), "floats on the CPU"
    wipe = Shards(folder, "train", torch.Tensor.zero_)
    assert not wipe[0][0].any() and not wipe[[0, 1]][0].any()
    assert wipe.images(0)[0].any(), "a transform in place changes the images that are mapped"
    network = torchvision.models.densenet121(num_classes=14)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(network(Normalize()(image)), label)
    loss.backward()
    assert math.isfinite(loss.item())
    alone = next(iter(torch.utils.data.DataLoader(train, batch_size=8, num_workers=2)))  # the same, image by image
    assert torch.equal(alone[0], image) and torch.equal(alone[1], label) and torch.equal(alone[2]["age"], about["age"])
    assert [alone[2][n] for n in ("name", "sex", "view")] == [about[n] for n in ("name", "sex", "view")]
    seen = 0
    sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(plain), 8, drop_last=False)
    loader = torch.utils.data.DataLoader(plain, batch_size=None, sampler=sampler, num_workers=2)  # of doc/reading.md
    for image, label, about in (loader if os.environ["START_METHOD"] != "fork" else batches(plain, 8)):
        for k, name in enumerate(about["name"]):
            n = plain.text["name"].tolist().index(name)
            assert torch.equal(image[k], plain[n][0]), "an image and a name of two records"
            seen += 1
            print(name, about["age"][k].item(), about["sex"][k], about["view"][k],
                  "".join(str(int(v)) for v in label[k]))
    assert seen == len(plain)
"""


ORDER = """import os
from recipe_torch import Shards, batches

class Counted(Shards):
    read = 0

    def __getitem__(self, k):
        if isinstance(k, list):
            self.read += 1
        return super().__getitem__(k)

def names(loader):
    return [name for image, label, about in loader for name in about["name"]]

def fail(image):
    raise ValueError("the transform fails")

shards = Counted(os.environ["CHEX_DATASET"], "train")
want = shards.text["name"].tolist()
assert names(batches(shards, 8, shuffle=False)) == want
first, second = names(batches(shards, 8)), names(batches(shards, 8))
assert sorted(first) == sorted(second) == sorted(want) and first != second and first != want
assert len(names(batches(shards, 10 * len(shards), threads=1))) == len(shards), "one batch"
shards.read = 0
loader = batches(shards, 1)
next(loader)
loader.close()  # waits for the threads
assert 1 <= shards.read <= 5, shards.read
shards.transform = fail
try:
    names(batches(shards, 8))
    raise SystemExit("no error")
except ValueError:
    pass
"""


def under(method, work):
    site = os.path.join(work, "site")
    os.mkdir(site)
    write(os.path.join(site, "sitecustomize.py"), SITE)
    return {"PYTHONPATH": site, "START_METHOD": method}


@case("batches() of the recipe for PyTorch: each image once, order, errors, at most 5 batches read ahead",
      slow=True)
def _(work):
    write(os.path.join(work, "recipe_torch.py"), recipes()["torch"])
    write(os.path.join(work, "order.py"), ORDER)
    run([python_with("torch"), "order.py"], env=dict(os.environ, CHEX_DATASET=dataset()), cwd=work)


@case("the recipe for PyTorch feeds densenet121 of torchvision; names, ages, sexes, views equal the records",
      slow=True)
def _(work):
    python_with("torchvision")
    for method in ("fork", "forkserver", "spawn"):
        folder = os.path.join(work, method)
        os.mkdir(folder)
        write(os.path.join(folder, "recipe_torch.py"), recipes()["torch"])
        write(os.path.join(folder, "network.py"), NETWORK)
        environment = dict(os.environ, CHEX_DATASET=dataset(), **under(method, folder))
        done = run([python_with("torch"), "network.py"], env=environment, cwd=folder)
        assert "Warning" not in done.stderr, done.stderr
        rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
        there = images(dataset(), "train")
        assert rows.keys() == there.keys(), f"{len(rows)} of {len(there)} images"
        for name, (age, sex, view, label) in rows.items():
            r = there[name]
            assert (float(age), sex, view, label) == (r["age"], r["sex"].decode(), r["view"].decode(),
                                                      "".join(map(str, r["label"]))), name


@case("the recipe for PyTorch reads a data set in which views have different sizes", slow=True)
def _(work):
    labels = synth(os.path.join(work, "in"), 40, "--size", "64")
    text = slurp(labels).decode().replace(",PA,", ",,", 1)
    write(labels, text)
    out = os.path.join(work, "shards")
    run([program("chex-convert"), "-q", "-i", os.path.join(work, "in"), "-l", labels, "-o", out, "--size", "48",
         "--split", "patient:80,10,10", "--shard-size", "16"])
    assert "view" not in manifest(out)["dtype"]["names"]
    start("torch", work, shards=out)


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
    for name in ("numpy", "fixedlength", "torch", "dali"):
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
