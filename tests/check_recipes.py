#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the recipes of README.md as they stand there.

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
import tempfile

from support import FINDINGS, SOURCE, Cases, images, manifest, program, python_with, run, slurp, synth, write

case = Cases()
CACHE = tempfile.mkdtemp(prefix="chex-recipes-")
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
    text = slurp(os.path.join(SOURCE, "README.md")).decode()
    return dict(re.findall(rf"<!-- {kind}: (\w+) -->\s*```python\n(.*?)```", text, re.S))


def check(name, work):
    assert name in recipes(), f"README.md has no recipe {name}"
    path = os.path.join(work, f"recipe_{name}.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(recipes()[name])
    environment = dict(os.environ, CHEX_DATASET=dataset(), TF_CPP_MIN_LOG_LEVEL="2")
    done = run([python_with(NEEDS[name]), path], env=environment, cwd=work)
    wanted = next(s["images"] for s in manifest(dataset())["splits"] if s["name"] == "train")
    assert re.search(rf"\b{wanted} images\b", done.stdout), f"it prints: {done.stdout!r}"


@case("README.md has the five recipes and no other")
def _(_work):
    assert sorted(recipes()) == sorted(NEEDS), sorted(recipes())


@case("README.md has one recipe of a run, for its predictions: all images, those with the finding")
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


if __name__ == "__main__":
    try:
        CODE = case.main()
    finally:
        shutil.rmtree(CACHE, ignore_errors=True)
    sys.exit(CODE)
