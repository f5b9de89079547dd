#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check what chex-synth writes: the form of the files, labels and lists, the same bytes, findings that can be seen.

    check_synth.py [PATTERN]      $CHEX_SYNTH is the program, default ./chex-synth

The form is that of the files of the NIH (see synth_png.c); the proportions of findings, patients and views are those
of Data_Entry_2017_v2020.csv.  Checks of pixels need numpy and Pillow.
"""
import collections
import glob
import hashlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zlib

from support import FINDINGS, Cases, Skip, png_gray, program, run, says, slurp, synth, tree, write

try:
    import numpy
    from PIL import Image
except ImportError:
    numpy = None

HEADER = ("Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
          "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]")
PREVALENCE = [10.31, 2.48, 11.88, 17.74, 5.16, 5.65, 1.28, 4.73, 4.16, 2.05, 2.24, 1.50, 3.02, 1.00]
CSV, TRAIN, TEST = "Data_Entry_2017_v2020.csv", "train_val_list.txt", "test_list.txt"
BOXES = "BBox_List_2017.csv"

case = Cases()


def needs_pixels():
    if numpy is None:
        raise Skip("numpy or Pillow is missing")


def text(*parts):
    return slurp(os.path.join(*parts)).decode()


def rows(folder):
    return [line.split(",") for line in text(folder, CSV).splitlines()[1:]]


def chunks(data):
    """[(name, content)]; the checksums are compared."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, []
    while at < len(data):
        size, = struct.unpack_from(">I", data, at)
        name, content = data[at + 4:at + 8], data[at + 8:at + 8 + size]
        assert zlib.crc32(name + content) == struct.unpack_from(">I", data, at + 8 + size)[0], name
        found.append((name.decode(), content))
        at += 12 + size
    return found


def images(folder):
    return {name: slurp(os.path.join(folder, "images", name)) for name in sorted(os.listdir(folder + "/images"))}


def pixels(folder, size=None):
    """All images, uint8[count][side][side]."""
    needs_pixels()
    found = []
    for row in rows(folder):
        with Image.open(os.path.join(folder, "images", row[0])) as picture:
            found.append(numpy.asarray(picture if size is None else picture.resize((size, size), Image.BILINEAR)))
    return numpy.stack(found)


@case("a file of 1024 x 1024 has the form of the real ones")
def _(work):
    synth(work, 16)
    filters, sizes = collections.Counter(), []
    for name, data in images(work).items():
        found = chunks(data)
        assert struct.unpack(">IIBBBBB", found[0][1]) == (1024, 1024, 8, 0, 0, 0, 0), name
        names = [n for n, _ in found]
        assert names == ["IHDR"] + ["IDAT"] * (len(names) - 2) + ["IEND"], names
        assert {len(c) for _, c in found[1:-2]} == {8192} and 0 < len(found[-2][1]) <= 8192, name
        packed = b"".join(c for _, c in found[1:-1])
        assert packed[:2] == b"\x78\x9c"
        filters.update(zlib.decompress(packed)[::1025])
        sizes.append(len(data))
    total = sum(filters.values())
    share = [100 * filters[k] / total for k in range(5)]
    assert total == 16 * 1024
    for k, wanted in ((4, 59), (3, 29), (2, 11)):
        assert abs(share[k] - wanted) < 2, f"filters {share}"
    assert 0 < share[0] + share[1] < 2, f"filters {share}"
    mean = sum(sizes) / len(sizes)
    assert 300e3 < mean < 450e3, f"{mean:.0f} bytes an image"


@case("the label file has the form of the real one, and a row for each image")
def _(work):
    synth(work, 300, "--size", 64)
    lines = text(work, CSV).split("\n")
    assert lines[0] == HEADER and lines[-1] == "" and "\r" not in lines[1]
    number = collections.Counter()
    for row in rows(work):
        assert len(row) == 11, row
        name, labels, study, patient, age, sex, view = row[:7]
        assert name == f"{int(patient):08d}_{int(study):03d}.png" and int(study) == number[patient], row
        number[patient] += 1
        assert 0 <= int(age) <= 95 and sex in "MF" and view in ("PA", "AP"), row
        assert all(re.fullmatch(r"\d{4}", x) for x in row[7:9]) and row[9] == row[10], row
        names = labels.split("|")
        assert names == ["No Finding"] or (names == sorted(set(names)) and set(names) <= set(FINDINGS)), row
    assert [row[0] for row in rows(work)] == sorted(images(work))
    ap = sum(row[6] == "AP" for row in rows(work)) / 300
    men = len({row[3] for row in rows(work) if row[5] == "M"}) / len(number)
    single = sum(n == 1 for n in number.values()) / len(number)
    assert 0.25 < ap < 0.55 and 0.4 < men < 0.7 and 0.4 < single < 0.7, (ap, men, single)


@case("the proportions equal the real data; a run that is killed leaves only complete files")
def _(work):
    # The plan is printed before the images are made, and they would take an hour.
    command = [program("chex-synth"), "-v", "-n", "200000", "-o", work, "--size", "64"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        plan = "".join(running.stderr.readline() for _ in range(3 + len(FINDINGS)))  # and the first line of a log
        while running.poll() is None and not glob.glob(work + "/images/*"):
            time.sleep(0.05)
        running.terminate()
        assert running.wait() == -signal.SIGTERM
    for finding, wanted in zip(FINDINGS, PREVALENCE):
        share = float(re.search(rf"^ +{finding} +[\d,]+ +([\d.]+) %$", plan, re.M).group(1))
        assert abs(share - wanted) < 0.2 + 0.04 * wanted, f"{finding}: {share} %"
    assert re.search("No Finding 5[345] %", plan), plan
    patients = int(re.search(r" of ([\d,]+) invented patients", plan).group(1).replace(",", ""))
    assert 3.5 < 200000 / patients < 3.8, patients
    train, test = (text(work, name).split("\n") for name in (TRAIN, TEST))
    assert len(train) + len(test) == 200000 and 0.22 < len(test) / 200000 < 0.235
    assert not os.path.exists(os.path.join(work, CSV))
    for name, data in images(work).items():
        assert name.startswith(".") or chunks(data)[-1][0] == "IEND", name


@case("the lists hold all images once, no patient twice, and end without a newline")
def _(work):
    for count in (3, 40, 300):
        folder = os.path.join(work, str(count))
        synth(folder, count, "--size", 64)
        lists = [text(folder, name).split("\n") for name in (TRAIN, TEST)]
        assert "" not in lists[0] + lists[1]
        assert sorted(lists[0] + lists[1]) == [row[0] for row in rows(folder)] and lists[0] == sorted(lists[0])
        train, test = ({name[:8] for name in names} for names in lists)
        assert train and test and not train & test
        assert count < 40 or 0.15 < len(lists[1]) / count < 0.31, len(lists[1])


@case("one image is for training, and its test list is empty")
def _(work):
    synth(work, 1, "--size", 64)
    assert text(work, TRAIN) == "00000001_000.png" and text(work, TEST) == ""


@case("any number of threads writes the same bytes, and so does a rerun; another seed does not")
def _(work):
    for name, options in (("a", ["-j1"]), ("b", ["-j2"]), ("c", ["-j5"]), ("other", ["--seed", 2])):
        synth(os.path.join(work, name), 16, "--size", 200, "--odd", "30%", *options)
    first = tree(os.path.join(work, "a"))
    assert len(first) == 16 + 5 and b"SYNTHETIC" in slurp(os.path.join(work, "a", "SYNTHETIC.txt"))
    assert first == tree(os.path.join(work, "b")) == tree(os.path.join(work, "c"))
    synth(os.path.join(work, "a"), 16, "--size", 200, "--odd", "30%")
    assert first == tree(os.path.join(work, "a"))
    assert first != tree(os.path.join(work, "other"))


@case("every compiler and machine draws the same pixels, labels and lists")
def _(work):
    # All 14 findings, both views.  Pixels and not files: how zlib packs them depends on its version.
    synth(work, 150, "--size", 64)
    drawn = hashlib.sha256()
    assert {f for row in rows(work) for f in row[1].split("|")} == {*FINDINGS, "No Finding"}
    for name in (CSV, TRAIN, TEST):
        drawn.update(slurp(os.path.join(work, name)))
    for name, data in images(work).items():
        drawn.update(name.encode() + png_gray(data)[2])
    assert drawn.hexdigest() == \
        "f8ed4cb8e7a1b42978948475e115704a49f2f5b8753325aed0c1c0ec6eea7b37", drawn.hexdigest()


@case("an odd file shows the same picture")
def _(work):
    needs_pixels()
    plain, odd = os.path.join(work, "plain"), os.path.join(work, "odd")
    synth(plain, 60, "--size", 96)
    synth(odd, 60, "--size", 96, "--odd", "100%")
    assert text(plain, CSV) == text(odd, CSV)
    forms = collections.Counter()
    for name in images(plain):
        with Image.open(os.path.join(plain, "images", name)) as picture:
            wanted = numpy.asarray(picture)
        with Image.open(os.path.join(odd, "images", name)) as picture:
            interlaced = bool(picture.info.get("interlace"))
            forms[picture.mode + " interlaced" * interlaced] += 1
            values = numpy.asarray(picture if picture.mode != "P" else picture.convert("RGB")).astype(int)
            if picture.mode.startswith("I"):
                assert (values % 257 == 0).all()
                values //= 257
        values = values if values.ndim == 3 else values[:, :, None]
        if picture.mode in ("RGBA", "LA"):
            assert (values[:, :, -1] == 255).all()
            values = values[:, :, :-1]
        assert (values == wanted[:, :, None]).all(), f"{name}: {picture.mode}"
    assert len(forms) == 6 and forms["RGBA"] == max(forms.values()), forms


@case("an RGBA file has the chunks of the real RGBA files")
def _(work):
    synth(work, 12, "--size", 512, "--odd", "100%")
    seen = 0
    for data in images(work).values():
        found = chunks(data)
        if struct.unpack(">IIBBBBB", found[0][1])[3] == 6:
            names = [name for name, _ in found]
            assert names[:5] == ["IHDR", "sRGB", "gAMA", "pHYs", "IDAT"] and names[-1] == "IEND", names
            assert found[4][1][:2] == b"\x78\x5e" and len(found[4][1]) == 65524
            seen += 1
    assert seen > 0


@case("a picture does not depend on its size")
def _(work):
    found = []
    for size in (1000, 512, 300, 64):
        folder = os.path.join(work, str(size))
        synth(folder, 4, "--size", size)
        found.append(pixels(folder, 32).astype(float))
    for other in found[1:]:
        difference = numpy.abs(other - found[0]).mean()
        assert difference < 2.5, difference


@case("each finding can be seen: its images stand out from those without any")
def _(work):
    needs_pixels()
    synth(work, 600, "--size", 64, "--seed", 1)
    picture = pixels(work).astype(numpy.float32)
    picture -= picture.mean(axis=(1, 2), keepdims=True)
    labels = numpy.array([[f in row[1].split("|") for f in FINDINGS] for row in rows(work)])
    none = numpy.flatnonzero(~labels.any(axis=1))
    known, normal = none[::2], none[1::2]
    away = (picture - picture[known].mean(axis=0)) / (picture[known].std(axis=0) + 6)
    # How far from the usual the 20 most unusual pixels are.
    score = numpy.sort(away.reshape(len(away), -1) ** 2, axis=1)[:, -20:].mean(axis=1)
    for k, finding in enumerate(FINDINGS):
        seen = score[labels[:, k]]
        assert len(seen) > 0, f"no image with {finding}"
        auroc = (seen[:, None] > score[normal][None]).mean()
        assert auroc > 0.7, f"{finding}: {auroc:.2f}"


def boxes(folder):
    """[(image, finding, x, y, width, height)]; the form of the file is that of the real one."""
    lines = text(folder, BOXES).split("\n")
    assert lines[0] == "Image Index,Finding Label,Bbox [x,y,w,h],,," and lines[-1] == "", lines[0]
    cells = [line.split(",") for line in lines[1:-1]]
    return [(name, finding, *map(float, numbers)) for name, finding, *numbers in cells]


@case("the list of boxes has one row for an image and a finding, of test images with this finding")
def _(work):
    synth(work, 400, "--size", 64)
    labels = {row[0]: row[1].replace("Infiltration", "Infiltrate").split("|") for row in rows(work)}
    test, found = set(text(work, TEST).split("\n")), boxes(work)
    counted = collections.Counter(finding for _, finding, *_ in found)
    of_test = collections.Counter(finding for name in test for finding in labels[name])
    assert len({box[:2] for box in found}) == len(found)
    for name, finding, x, y, width, height in found:
        assert name in test and finding in labels[name], (name, finding)
        assert min(x, y) >= 0 and min(width, height) >= 1 and max(x + width, y + height) <= 64, (name, finding)
    for finding in ("Atelectasis", "Cardiomegaly", "Mass", "Pneumothorax", "Consolidation", "Hernia"):
        assert counted[finding] == of_test[finding], (finding, counted, of_test)
    for finding in ("Effusion", "Infiltrate", "Nodule"):  # some are drawn in several places
        assert 0 < counted[finding] < of_test[finding], (finding, counted, of_test)
    assert not counted.keys() & {"Edema", "Emphysema", "Fibrosis"}
    order = [FINDINGS.index(box[1].replace("Infiltrate", "Infiltration")) for box in found]
    assert order == sorted(order)


@case("a box scales with the image, and its pixels stand out from those around it")
def _(work):
    needs_pixels()
    small, large = os.path.join(work, "small"), os.path.join(work, "large")
    synth(small, 400, "--size", 64, "--seed", 3)
    synth(large, 400, "--size", 128, "--seed", 3)
    for a, b in zip(boxes(small), boxes(large), strict=True):
        assert a[:2] == b[:2] and all(abs(2 * u - v) < 1e-4 for u, v in zip(a[2:], b[2:])), (a, b)
    picture, names = pixels(large).astype(float), [row[0] for row in rows(large)]
    normal = numpy.array([row[1] == "No Finding" for row in rows(large)])
    away = (picture - picture[normal].mean(axis=0)) / (picture[normal].std(axis=0) + 6)
    expected = ("Mass", 1, 1), ("Effusion", 1, 1), ("Consolidation", 1, 1), ("Pneumothorax", -1, 0.3)
    for finding, sign, margin in expected:
        chosen = [box for box in boxes(large) if box[1] == finding]
        inside, around = [], []
        for name, _, x, y, width, height in chosen:
            at = sign * away[names.index(name)]
            mask = numpy.zeros(at.shape, bool)
            mask[round(y):round(y + height), round(x):round(x + width)] = True
            inside.append(at[mask].mean())
            around.append(at[~mask].mean())
        assert len(chosen) > 0 and numpy.mean(inside) > numpy.mean(around) + margin, (finding, inside, around)


@case("--json reports what was made")
def _(work):
    done = run([program("chex-synth"), "-q", "-n", 50, "-o", os.path.join(work, "a"), "--size", 64, "--odd", "20",
                "--json"])
    said = json.loads(done.stdout)
    sets = [row[1].split("|") for row in rows(os.path.join(work, "a"))]
    assert said["images"] == 50 and said["size"] == 64 and said["seed"] == 1
    assert said["findings"] == {f: sum(f in s for s in sets) for f in FINDINGS}
    assert said["no_finding"] == sets.count(["No Finding"])
    assert said["test_images"] == len(text(work, "a", TEST).split("\n"))
    assert said["bytes"] == sum(len(data) for data in images(os.path.join(work, "a")).values())


@case("a folder with other content is refused and left unchanged")
def _(work):
    tool, folder = program("chex-synth"), os.path.join(work, "a")
    synth(folder, 5, "--size", 64)
    before = tree(folder)
    says(run([tool, "-n", 6, "-o", folder, "--size", 64], code=6), "holds another data set")
    assert tree(folder) == before
    real = os.path.join(work, "real")
    os.makedirs(os.path.join(real, "images"))
    write(os.path.join(real, "images", "00000001_000.png"), "real")
    says(run([tool, "-n", 5, "-o", real, "--size", 64], code=6), "no list says")
    os.makedirs(os.path.join(work, "boxes"))
    write(os.path.join(work, "boxes", BOXES), "Image Index\n")
    says(run([tool, "-n", 5, "-o", os.path.join(work, "boxes"), "--size", 64], code=6), "BBox_List_2017.csv of another")
    assert sorted(tree(os.path.join(work, "boxes"))) == [BOXES]
    write(os.path.join(real, CSV), "Image Index\n")
    says(run([tool, "-n", 5, "-o", real, "--size", 64], code=6), "holds another data set")
    assert sorted(tree(real)) == [CSV, "images/00000001_000.png"]


@case("a run that was interrupted is completed by the same command")
def _(work):
    synth(work, 6, "--size", 64)
    whole = tree(work)
    os.remove(os.path.join(work, CSV))
    os.remove(os.path.join(work, "images", "00000001_000.png"))
    synth(work, 6, "--size", 64)
    assert tree(work) == whole


if __name__ == "__main__":
    sys.exit(case.main())
