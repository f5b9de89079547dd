#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect check --near: the pairs of nearly equal images, compared with all correlations that NumPy computes.

    check_near.py [PATTERN]      $CHEX_INSPECT, $CHEX_CONVERT, $CHEX_SYNTH or in $BUILDDIR
"""
import csv
import io
import json
import os
import re
import sys

from fixtures import fixture
from support import SOURCE, Cases, Skip, images, program, run, slurp, synth, write_csv

try:
    import jsonschema
except ImportError:
    jsonschema = None
try:
    import numpy
    from PIL import Image, ImageFilter
except ImportError:
    numpy = Image = None

case = Cases()
LEAST = 0.97


def inspect(*arguments, code=0):
    return run([program("chex-inspect"), "check", *arguments], code)


def printed(pattern, *arguments, code=0):
    text = inspect(*arguments, code=code).stdout
    assert re.search(pattern, text), text


def document(*arguments, code=0):
    found = json.loads(inspect("--json", *arguments, code=code).stdout)
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "inspect.schema.json"))))
    return found["results"][0]


def dataset(work, pictures, size, split_of=lambda i: ("train", "val", "test")[i % 3]):
    """Convert pictures, each of its own patient, with a split for each."""
    if numpy is None:
        raise Skip("no NumPy and Pillow")
    folder = os.path.join(work, "images")
    os.makedirs(folder)
    rows, splits = [], []
    for i, picture in enumerate(pictures):
        name = f"{i + 1:08d}_000.png"
        picture.save(os.path.join(folder, name))
        rows.append([name, "No Finding", str(i + 1)])
        splits.append([name, split_of(i)])
    labels = write_csv(os.path.join(work, "labels.csv"), ["Image Index", "Finding Labels", "Patient ID"], rows)
    split = write_csv(os.path.join(work, "split.csv"), ["Image Index", "split"], splits)
    out = os.path.join(work, "out")
    run([program("chex-convert"), "-q", "-i", folder, "-l", labels, "-o", out, "--size", size, "--min-size", 1,
         "--split", f"file:{split}"])
    return out


def pictures_of(work, count, side):
    """Synthetic images, and for each a changed copy."""
    if numpy is None:
        raise Skip("no NumPy and Pillow")
    synth(os.path.join(work, "synth"), count, "--size", max(side, 64))
    folder = os.path.join(work, "synth", "images")
    random = numpy.random.default_rng(3)
    for i, name in enumerate(sorted(os.listdir(folder))):
        picture = Image.open(os.path.join(folder, name)).convert("L").resize((side, side))
        yield picture
        values = numpy.asarray(picture, dtype=float)
        if i % 5 == 0:
            yield Image.fromarray((values * 0.7 + 40).astype(numpy.uint8))
        elif i % 5 == 1:
            again = io.BytesIO()
            picture.save(again, "JPEG", quality=40)
            yield Image.open(again).convert("L")
        elif i % 5 == 2:
            yield Image.fromarray(numpy.roll(values, 1, axis=1).astype(numpy.uint8))
        elif i % 5 == 3:
            yield picture.filter(ImageFilter.GaussianBlur(2))
        else:
            yield Image.fromarray(numpy.clip(values + random.normal(0, 40, values.shape), 0, 255).astype(numpy.uint8))


def expected(folder, side):
    """{(name, name): correlation} of all pairs in different splits, by the definition."""
    split = {name: s for s in ("train", "val", "test") for name in images(folder, s)}
    names, means = [], []
    edges = [(i * side // 64, max((i + 1) * side // 64, i * side // 64 + 1)) for i in range(64)]
    for name, record in sorted(images(folder).items()):
        pixels = numpy.frombuffer(record["image"], dtype=numpy.uint8).reshape(side, side).astype(float)
        cells = [[pixels[a:b, c:d].mean() for c, d in edges] for a, b in edges]
        names.append(name)
        means.append(numpy.array(cells).ravel())
    values = numpy.array(means)
    values -= values.mean(axis=1, keepdims=True)
    values /= numpy.linalg.norm(values, axis=1, keepdims=True)
    table = values @ values.T
    return {(names[i], names[j]): table[i, j] for i in range(len(names)) for j in range(i)
            if split[names[i]] != split[names[j]]}


@case("--near finds exactly the pairs that all correlations of NumPy give, for every size and number of threads")
def _(work):
    for side in (40, 64, 100, 256):
        place = os.path.join(work, str(side))
        os.mkdir(place)
        out = dataset(place, pictures_of(place, 60, side), side)
        wanted = expected(out, side)
        near = {frozenset(pair) for pair, value in wanted.items() if value >= LEAST}
        assert 20 < len(near) < len(wanted) / 2, (side, len(near))
        value_of = {frozenset(pair): value for pair, value in wanted.items()}
        found = document("--near", out, "-j", "1", code=1)["near_in_two_splits"]
        assert found == document("--near", out, "-j", "3", code=1)["near_in_two_splits"], side
        pairs = {frozenset(image["name"] for image in pair["images"]): pair["correlation"] for pair in found}
        assert pairs.keys() == near, (side, len(pairs), len(near))
        for pair, value in pairs.items():
            assert abs(value - value_of[pair]) < 1e-9, (side, pair, value)
        assert [p["correlation"] for p in found] == sorted(pairs.values(), reverse=True)
        table = list(csv.DictReader(io.StringIO(inspect("--near", "--format", "csv", out, code=1).stdout)))
        rows = {frozenset((row["name"], row["other_name"])) for row in table if row["check"] == "near"}
        assert rows == near, side


@case("equal images and images of one value are no pairs, and a single split has none")
def _(work):
    copies = list(pictures_of(work, 6, 64))[::2]
    flat = Image.new("L", (64, 64), 80)
    out = dataset(work, [*copies[:1] * 6, flat, flat, flat], 64)
    result = document("--leaks", "--near", out, code=1)
    assert result["near_in_two_splits"] == [] and len(result["images_in_two_splits"]) == 2, result
    assert document("--leaks", out, code=1)["near_in_two_splits"] is None
    alone = os.path.join(work, "alone")
    os.mkdir(alone)
    out = dataset(alone, list(pictures_of(alone, 6, 64)), 64, lambda i: "train")
    assert document("--near", out)["near_in_two_splits"] == []
    printed("no image is nearly equal to one of another split", "--near", out)


@case("a changed copy of a real or synthetic image in another split is found, and the exit status is 1")
def _(work):
    source = os.path.join(fixture("images"), "images")
    names = sorted(os.listdir(source))[:12]
    pictures = [Image.open(os.path.join(source, name)).convert("L") for name in names] if Image else []
    if not pictures:
        raise Skip("no NumPy and Pillow")
    changed = pictures[0].resize((80, 80)).resize(pictures[0].size).point(lambda v: v * 0.8 + 10)
    out = dataset(work, [*pictures, changed], 64, lambda i: "test" if i == len(pictures) else "train")
    printed(r"train 00000001_000\.png ~ test 00000013_000\.png, correlation 0\.9\d\d", "--near", out, code=1)


@case("of more than 100,000 pairs none is listed")
def _(work):
    if numpy is None:
        raise Skip("no NumPy and Pillow")
    base = numpy.add.outer(numpy.arange(64), 2 * numpy.arange(64)).astype(numpy.uint8)
    pictures = []
    for i in range(640):
        pixels = base.copy()
        pixels[i // 64, i % 64] ^= 3
        pictures.append(Image.fromarray(pixels))
    out = dataset(work, pictures, 64, lambda i: ("train", "test")[i % 2])
    assert document("--near", out, code=1)["near_in_two_splits"] is None
    printed("more than 100,000 pairs of images in two splits may be nearly equal", "--near", out, code=1)
    run([program("chex-inspect"), "report", out, "-o", os.path.join(work, "report.html")])
    page = re.sub(rb"<[^>]*>", b"", slurp(os.path.join(work, "report.html")))
    assert b"More than 100,000 pairs of images may be nearly equal" in page


if __name__ == "__main__":
    sys.exit(case.main())
