#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-predict --boxes: the measures of the maps of --maps, counted again; lists that do not fit.

    check_boxes.py [PATTERN]
"""
import csv
import io
import json
import os
import random
import sys

from support import SOURCE, Cases, images, png, program, run, says, slurp, write
from training import data, scratch, whole

try:
    import numpy as np
    from box_measures import measures_of_map
except ImportError:
    print("skip: NumPy is missing\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)
try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
HEADER = "Image Index,Finding Label,Bbox [x,y,w,h],,,\n"
SIZE, SIDE, ORIGINAL = 36, 32, 64  # of the images, of the crop, of the files
NAMES = {"pointing_game": (0, 1), "mass": (1, 1), "iou": (2, 7), "iobb": (9, 5), "false_boxes": (14, 5)}


def predict(*words, code=0, **options):
    return run([program("chex-predict"), *words], code, **options)


def listed(path, findings=("Mass", "Infiltrate", "Hernia"), few=4):
    """A list with a box of each finding in each image, but of the last one only in `few`; {(image, finding): box}."""
    dice, boxes = random.Random(1), {}
    for name in sorted(images(data())):
        for finding in findings[:-1] if len(boxes) > few * len(findings) else findings:
            x, y = dice.uniform(0, 40), dice.uniform(0, 40)
            boxes[name, finding] = x, y, dice.uniform(2, 64 - x), dice.uniform(2, 64 - y)
    lines = [f"{name},{finding},{','.join(map(str, box))}\n" for (name, finding), box in boxes.items()]
    dice.shuffle(lines)
    write(path, HEADER + "".join(lines))
    return boxes


def result():
    """The folder of a result with maps and boxes of all images, and the boxes."""
    out, path = (os.path.join(scratch(), name) for name in ("boxes-out", "boxes.csv"))
    boxes = listed(path)
    if not os.path.exists(out):
        predict(whole(), data(), "--maps", "--boxes", path, "--box-size", ORIGINAL, "-o", out, "-q", "-j", "1")
    return out, path, boxes


def document(folder):
    found = json.loads(slurp(f"{folder}/boxes.json"))
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "boxes.schema.json"))))
    return found


def rows(folder):
    return list(csv.DictReader(io.StringIO(slurp(f"{folder}/boxes.csv").decode(), newline="")))


def placed(cells, grid):
    """The map at the pixels of the file: from pixels of the file to those of the image, of the crop, to cells."""
    pixel = (np.arange(ORIGINAL) + 0.5) * SIZE / ORIGINAL - 0.5 - (SIZE - SIDE) // 2
    at = np.clip((pixel - grid["offset"]) / grid["jump"], 0, grid["width"] - 1)
    first = np.minimum(at.astype(int), grid["width"] - 2)
    share = at - first
    weights = np.zeros((ORIGINAL, grid["width"]))
    weights[np.arange(ORIGINAL), first] = 1 - share
    weights[np.arange(ORIGINAL), first + 1] += share
    return (weights @ cells.astype(np.float64) @ weights.T).astype(np.float32)


@case("the measures are those of the maps that --maps writes, by scipy and NumPy")
def _(_work):
    out, _path, boxes = result()
    told = json.loads(slurp(f"{out}/predictions.json"))
    names = [finding["name"] for finding in told["findings"]]
    found = {finding["name"]: finding for finding in document(out)["findings"]}
    assert found.keys() == {"Infiltration", "Mass", "Hernia"} and found["Hernia"]["too_few"]
    for finding, label in (("Mass", "Mass"), ("Infiltration", "Infiltrate")):
        made = []
        for (name, which), (x, y, width, height) in boxes.items():
            if which == label:
                cells = np.load(f"{out}/maps/{name}.npy")[names.index(finding)]
                box = np.array([x, y, x + width, y + height])
                made.append(measures_of_map(box, placed(cells, told["maps"])))
        assert found[finding]["boxes"] == len(made) > 20
        wanted = np.mean(made, axis=0)
        wanted[14:] *= len(made) / len(boxes)
        for name, (first, count) in NAMES.items():
            got = found[finding]["map"][name]
            for step, measured in enumerate(got if count > 1 else [got]):
                assert abs(measured["value"] - wanted[first + step]) < 1e-5, (finding, name, step, measured, wanted)


@case("boxes.csv and predictions.json have the numbers of boxes.json, and the table says that the images are synthetic")
def _(_work):
    out, _path, _boxes = result()
    told, lines = document(out), rows(out)
    assert json.loads(slurp(f"{out}/predictions.json"))["boxes"] == told
    assert told["synthetic"] and all(line["note"].endswith("research use only; synthetic images") for line in lines)
    few = [line for line in lines if line["finding"] == "Hernia"]
    assert len(few) == 1 and few[0]["note"].startswith("too few boxes") and few[0]["value"] == ""
    for finding in [f for f in told["findings"] if not f["too_few"]] + [told["mean"]]:
        assert finding["published"] == []
        own = [line for line in lines if line["finding"] == finding["name"]]
        assert len(own) == 4 * 19
        for line in own:
            got = finding[line["method"]][line["measure"]]
            if isinstance(got, list):
                got = next(step for step in got if step["threshold"] == float(line["threshold"]))
            for key in ("value", "low", "high"):
                assert (line[key] == "") == (got[key] is None)
                assert line[key] == "" or abs(float(line[key]) - got[key]) < 1e-8, (line, got)


@case("threads and micro-batches change no byte of the boxes")
def _(work):
    out, path, _boxes = result()
    wanted = [slurp(f"{out}/{name}") for name in ("boxes.csv", "boxes.json")]
    for number, words in enumerate((["-j", "3"], ["--micro-batch", "5"])):
        other = f"{work}/{number}"
        predict(*words, whole(), data(), "--boxes", path, "--box-size", ORIGINAL, "-o", other, "-q")
        assert [slurp(f"{other}/{name}") for name in ("boxes.csv", "boxes.json")] == wanted
        assert not os.path.exists(f"{other}/maps")


@case("image files bring their own size; published values are named; images that are not scored are counted")
def _(work):
    path = f"{work}/list.csv"
    boxes = listed(path)
    os.makedirs(f"{work}/files")
    source, dice = sorted(images(data()))[:-3], random.Random(2)
    for name in source:
        write(f"{work}/files/{name}", png(ORIGINAL, ORIGINAL, lambda _y, width: dice.randbytes(width)))
    says(predict(whole(), f"{work}/files", "--boxes", path, "-o", f"{work}/out"), "of other images", "Wang",
         "research use only")
    told = document(f"{work}/out")
    left_out = sum(name not in source for name, _finding in boxes)
    assert not told["synthetic"] and told["list"]["not_scored"] == left_out
    assert told["list"]["measured"] == len(boxes) - left_out
    mass = next(finding for finding in told["findings"] if finding["name"] == "Mass")
    wang = {(p["source"], p["measure"], p["threshold"]): p["value"] for p in mass["published"]}
    assert wang["Wang et al. 2017, table 19, ChestX-ray14", "iobb", 0.1] == 0.5882 and len(wang) == 8, wang
    methods = {line["method"] for line in rows(f"{work}/out") if line["value"]}
    assert methods == {"map", "constant", "gauss", "chance", "wang2017_table4", "wang2017_table7", "wang2017_table19"}
    predict(whole(), f"{work}/files", "-o", f"{work}/out", "-f", "-q")
    assert not os.path.exists(f"{work}/out/boxes.csv") and not os.path.exists(f"{work}/out/boxes.json")


@case("boxes that reach beyond their image files are left out, named and counted, and the scores are written (1)")
def _(work):
    path, out = f"{work}/list.csv", f"{work}/out"
    names, dice = sorted(images(data()))[:25], random.Random(3)
    os.makedirs(f"{work}/files")
    for name in names:
        write(f"{work}/files/{name}", png(ORIGINAL, ORIGINAL, lambda _y, width: dice.randbytes(width)))
    lines = [f"{name},Mass,{60 if i in (3, 5) else 6},2,{5 + i % 7},9\n" for i, name in enumerate(names)]
    scored = f"{work}/scored"
    predict(whole(), f"{work}/files", "-o", scored, "-q")

    def check(code, measured, outside, refused, *words):
        write(path, HEADER + "".join(lines))
        done = predict("--json", whole(), f"{work}/files", "--boxes", path, "-o", out, "-f", code=code)
        assert json.loads(done.stdout)["exit_code"] == code
        says(done, *words)
        told = document(out)
        found = {key: told["list"][key] for key in ("measured", "images", "outside", "refused")}
        assert found == {"measured": measured, "images": measured, "outside": outside, "refused": refused}, found
        assert [finding["boxes"] for finding in told["findings"]] == [measured] * (measured > 0)
        assert (len(rows(out)) > 0) == (measured > 0)
        return done

    check(1, 23, 2, 0, "2 outside of their images", r"list\.csv:5: the box reaches beyond the 64 x 64 pixels of")
    assert slurp(f"{out}/predictions.csv") == slurp(f"{scored}/predictions.csv")
    predict(whole(), f"{work}/files", "--boxes", path, "--box-size", "64", "-o", f"{work}/none", "-q", code=2)
    assert not os.path.exists(f"{work}/none")
    del lines[3:6:2]
    assert "outside" not in check(0, 23, 0, 0).stderr
    lines[:] = [f"{name},Mass,60,2,9,9\n" for name in names]
    check(1, 0, 25, 0, "no box could be measured")
    assert slurp(f"{out}/predictions.csv") == slurp(f"{scored}/predictions.csv")
    lines[1:] = []
    write(f"{work}/files/{names[0]}", b"no image")
    check(1, 0, 0, 1, "1 of refused images", "no box could be measured")
    assert len(slurp(f"{out}/predictions.csv").splitlines()) == 26


@case("a list that does not fit is refused with its line, and nothing is written")
def _(work):
    first = sorted(images(data()))[0]
    for text, words in ((f"{first},Mass,1,2,3\n", "boxes.csv:2: expected 6 fields"),
                        (f"{first},Mass,1,2,3,-4\n", "boxes.csv:2: \"-4\" is no h of a box"),
                        (f"{first},Lump,1,2,3,4\n", "boxes.csv:2: unknown finding"),
                        (f"{first},Mass,1,2,3,4\n{first},Mass,1,2,3,4\n", "boxes.csv:3: a second box"),
                        (f"{first},Mass,1000,2,30,4\n", "boxes.csv:2: the box reaches beyond the 1024 x 1024 pixels"),
                        (f"{first},Mass,1,2,3,4\n", "synthetic ones may have any size: --box-size N"),
                        ("other.png,Mass,1,2,3,4\n", "no image of the list is among the images"),
                        ("", "boxes.csv: no box")):
        path = write(f"{work}/boxes.csv", HEADER + text)
        says(predict(whole(), data(), "--boxes", path, "-o", f"{work}/out", "-q", code=2), words)
        assert not os.path.exists(f"{work}/out"), text
    says(predict(whole(), data(), "--boxes", f"{work}/none.csv", "-o", f"{work}/out", "-q", code=3), "none.csv")


if __name__ == "__main__":
    sys.exit(case.main())
