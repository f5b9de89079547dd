#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report RUN --groups, --labels: other groups and other labels of the images; files that do not fit.

    check_run_labels.py [PATTERN]
"""
import sys

from report_runs import (DRAWS, FINDINGS, INSPECT, THRESHOLDS, Images, check_calibration, logit, make_run, near, report,
                         sigmoid, weighted_auroc)  # skips without NumPy and scikit-learn
from support import Cases, run, says, write

import numpy as np
from draws import drawn
from sklearn.metrics import cohen_kappa_score, confusion_matrix, roc_auc_score

case = Cases()


def names_of(images):
    return [f"{p:08d}_{f:03d}.png" for p, f in zip(images.patient, images.follow_up)]


def table(path, header, rows):
    write(path, ("\n".join([header, *rows]) + "\n").encode())
    return path


def refused(folder, *more, code=6):
    return run([INSPECT, "report", "-o", f"{folder}.html", *more, folder], code)


# ---- groups --------------------------------------------------------------------------------------------------------


@case("groups of a file have the gaps that NumPy computes on the same draws; several values are several groups")
def _(work):
    images, rng = Images(50), np.random.default_rng(50)
    drain, site = rng.choice(["0", "1", ""], len(images.p)), rng.choice(["north", "south", "west"], len(images.p))
    rows = [f"{n},{d},{s}" for n, d, s in zip(names_of(images), drain, site)]
    path = table(f"{work}/g.csv", "Image Index,drain,site", rows[:600][::-1] + ["other.png,1,south"])
    found, page = report(make_run(f"{work}/run", images), "--groups", path)
    groups = {g["name"]: g for g in found["groups"]}
    assert list(groups)[-4:] == ["drain: 1", "site: north", "site: south", "site: west"], list(groups)
    assert groups["drain: 1"]["rest"] == "drain: 0" and groups["site: west"]["rest"] == "other values"
    drain[600:], site[600:] = "", ""
    assert (groups["site: west"]["images"], groups["site: west"]["rest_images"]) == (
        (site == "west").sum(), np.isin(site, ["north", "south"]).sum())
    patients = len(set(images.patient))
    weights = [drawn(r, patients)[images.patient].astype(float) for r in range(DRAWS)]
    y, called = images.labels[:, 0], images.p[:, 0] >= np.float32(THRESHOLDS["youden"])

    def gap(w):
        sides = [(drain == d) & (y == 1) for d in "10"]
        return np.subtract(*[(w * called)[s].sum() / w[s].sum() for s in sides])

    cell = groups["drain: 1"]["findings"][0]["tpr"]
    near(cell["gap"]["value"], gap(np.ones(len(y))))
    low, high = np.percentile([gap(w) for w in weights], [2.5, 97.5])
    near(cell["gap"]["low"], low)
    near(cell["gap"]["high"], high)
    answer = {a["id"]: a["text"] for a in found["answers"]}["groups"]
    assert f"{len(images.p) - 600} of these images are not in the file of --groups" in answer, answer
    assert f"The file lacks {len(images.p) - 600} of the" in page.replace("\n    ", " ") and "drain: 1" in page


@case("calibration within a group: ECE of its images alone; too few is too few")
def _(work):
    images = Images(51, patients=300)
    rare = np.arange(len(images.p)) < 30
    path = table(f"{work}/g.csv", "image,rare", [f"{n},{int(r)}" for n, r in zip(names_of(images), rare)])
    found, _ = report(make_run(f"{work}/run", images), "--groups", path)
    groups = {g["name"]: g for g in found["groups"]}
    for k, f in enumerate(groups["rare: 1"]["findings"]):
        assert f["ece"] is f["auroc"] is f["bias"] is None, (k, f)
    here = (images.sex == "F") & (images.labels[:, 1] < 2)
    p = sigmoid(1.2 * logit(images.p[here, 1]) - 0.4).astype(np.float32)
    f = groups["female"]["findings"][1]
    order = np.argsort(p)
    ends = [len(p) * (b + 1) // 15 for b in range(15)][:-1]
    parts = np.split((p.astype(float) - images.labels[here, 1])[order], ends)
    near(f["ece"], sum(abs(part.sum()) for part in parts) / len(p), 1e-7)


@case("groups also without age, sex and view")
def _(work):
    images = Images(52, patients=60)
    folder = make_run(f"{work}/run", images)
    write(f"{folder}/predictions-test.csv", images.csv("test").replace(b"age,sex,view", b"x,y,z", 1))
    path = table(f"{work}/g.csv", "image,g", [f"{n},{i % 2}" for i, n in enumerate(names_of(images))])
    found, page = report(folder, "--groups", path)
    assert [g["name"] for g in found["groups"]] == ["g: 1"] and found["shortcuts"] == []
    assert "have no age, sex and view" in page


@case("files of groups that are hostile or do not fit are refused, with the line")
def _(work):
    images = Images(53, patients=30)
    folder, names = make_run(f"{work}/run", images), names_of(images)
    good = [f"{n},{i % 2}" for i, n in enumerate(names)]
    for header, rows, message in (
            ("name,g", good, r"g\.csv:1: no column 'image' or 'Image Index'"),
            ("image;g", good, r"g\.csv:1: "),
            ("image", names, "no column of groups"),
            ("image,", good, "column 2 has no name"),
            ("image,g,g", good, "two columns 'g'"),
            ("image,image id,g", good, "several columns of images"),
            ("image," + ",".join(f"g{i}" for i in range(9)), good, "more than 8 columns"),
            ("image,age", [f"{n},{i}" for i, n in enumerate(names)], r"g\.csv:10: the column 'age' has more than 8"),
            ("image,g", [*good, good[3]], rf"g\.csv:{len(good) + 2}: the image '{names[3]}' is there twice"),
            ("image,g", ["other.png,1"], "has none of the 90 images"),
            ("image,g", [f"{n},1" for n in names], "no column has two different values"),
            ("image,g", [f"{names[0]},{'x' * 60}"], "more than 47 characters"),
            ("image,g", [*good, ",1"], "no name of an image"),
            ("image,g", [*good, 'x"y,1'], "quote")):
        says(refused(folder, "--groups", table(f"{work}/g.csv", header, rows)), message)
    says(refused(folder, "--groups", f"{work}/none.csv", code=3), "none.csv")
    write(f"{work}/nul.csv", b"image,g\n\0,1\n")
    says(refused(folder, "--groups", f"{work}/nul.csv"), "NUL")
    markup = [f"{n},{'<script>x' if i % 2 else 'b&c'}" for i, n in enumerate(names)]
    _, page = report(folder, "--groups", table(f"{work}/g.csv", "image,<b>\u202e", markup))
    assert "<script" not in page and "<b>\\" not in page and "&lt;script&gt;x" in page


# ---- labels --------------------------------------------------------------------------------------------------------


def panel_of(images, seed):
    """Other labels of the first 600 images: some changed, some unknown."""
    rng = np.random.default_rng(seed)
    other = np.where(images.labels == 255, 0, images.labels)
    other = np.where(rng.random(other.shape) < 0.1, 1 - other, other)
    return np.where(rng.random(other.shape) < 0.05, 255, other)[:600]


def check_labels(found, images, other):
    patients = len(set(images.patient[:600]))
    weights = [drawn(r, patients)[images.patient[:600]].astype(float) for r in range(DRAWS)]
    for k, (f, a) in enumerate(zip(found["findings"], found["agreement"])):
        p, known = images.p[:600, k], other[:, k] < 2
        near(f["auroc"]["value"], roc_auc_score(other[known, k], p[known]))
        check_calibration(f["raw"], p[known], other[known, k])
        tn, fp, fn, tp = confusion_matrix(other[known, k], p[known] >= np.float32(THRESHOLDS["youden"])).ravel()
        assert (f["youden"]["true_positives"], f["youden"]["false_positives"]) == (tp, fp)
        both = known & (images.labels[:600, k] < 2)
        own, theirs = images.labels[:600, k][both], other[both, k]
        neither, only_file, only_run, agreed = confusion_matrix(own, theirs).ravel()
        assert (a["both"], a["only_run"], a["only_file"], a["neither"]) == (agreed, only_run, only_file, neither)
        near(a["kappa"], cohen_kappa_score(own, theirs))
        near(a["auroc_run"]["value"], roc_auc_score(own, p[both]))
        near(a["auroc_file"]["value"], roc_auc_score(theirs, p[both]))
        if k == 0:
            drawn_ = [weighted_auroc(p[known], other[known, k], w[known]) for w in weights]
            low, high = np.nanpercentile(drawn_, [2.5, 97.5])
            near(f["auroc"]["low"], low)
            near(f["auroc"]["high"], high)


@case("measures against other labels, and kappa, are those of scikit-learn and NumPy, in both forms of file")
def _(work):
    images = Images(54)
    folder, names, other = make_run(f"{work}/run", images), names_of(images), panel_of(images, 54)
    rows = [",".join([n, "x", *("" if v == 255 else str(v) for v in row)]) for n, row in zip(names, other)]
    header = "Image Index,reader," + ",".join(f.upper() for f in FINDINGS)
    path = table(f"{work}/l.csv", header, ["z.png,x,1,1,1,1", *rows])
    found, page = report(folder, "--labels", path)
    labels = found["labels"]
    assert (labels["images"], labels["others"], labels["unknown_labels"]) == (600, 1, 0)
    check_labels(labels, images, other)
    assert "Other labels" in page and "against the labels of the file" in page
    other = np.where(other == 255, 0, other)
    rows = [f"{n},{'|'.join(f for f, v in zip(FINDINGS, row) if v) or 'No Finding'}" for n, row in zip(names, other)]
    rows[list(other.any(1)).index(True)] += "|Fracture"
    path = table(f"{work}/l.csv", "Image Index,Finding Labels,Patient Age", [f"{r},33" for r in rows])
    found, page = report(folder, "--labels", path)
    check_labels(found["labels"], images, other)
    assert found["labels"]["unknown_labels"] == 1 and "Fracture" in page


def blank(images):
    images.labels[:] = 0
    return images


@case("names of findings in any case, and labels such as 1.0, are read as those of the run; equal labels")
def _(work):
    images = Images(57)
    folder, names = make_run(f"{work}/run", images), names_of(images)
    labels = images.labels % 2
    cells = ["|".join(f.lower() if i % 2 else f.upper() for f, y in zip(FINDINGS, row) if y) or "no finding"
             for i, row in enumerate(labels)]
    found, columns = [], "image," + ",".join(FINDINGS)
    for header, rows in (
            ("image,Finding Labels", [f"{n},{c}" for n, c in zip(names, cells)]),
            (columns, [",".join([n, *map(str, row)]) for n, row in zip(names, labels)]),
            (columns, [",".join([n, *(f"{y}.0" for y in row)]) for n, row in zip(names, labels)])):
        found.append(report(folder, "--labels", table(f"{work}/l.csv", header, rows))[0])
        assert found[-1]["labels"]["unknown_labels"] == 0, found[-1]["labels"]
        assert found[-1]["labels"] == found[0]["labels"], header
    own = [",".join([n, *("" if v > 1 else str(v) for v in row)]) for n, row in zip(names, images.labels)]
    same = report(folder, "--labels", table(f"{work}/l.csv", columns, own))[0]
    answer = next(a for a in same["answers"] if a["id"] == "labels")["text"]
    assert "The label sets agree on every finding that has enough images." in answer, answer
    assert "agree least" not in answer
    for option in ("--labels", "--groups"):
        write(f"{work}/empty.csv", b"")
        says(run([INSPECT, "report", "-o", f"{work}/x.html", option, f"{work}/empty.csv", folder], 6),
             r"empty\.csv': the file is empty")


@case("labels of few images or of one class: counts and a message, no number")
def _(work):
    images = Images(55)
    folder, names = make_run(f"{work}/run", images), names_of(images)
    path = table(f"{work}/l.csv", "image,Mass", [f"{n},1" for n in names[:9]])
    labels = report(folder, "--labels", path)[0]["labels"]
    assert labels["agreement"][1] is None and labels["agreement"][0]["kappa"] is None
    assert all(f["too_few"] for f in labels["findings"]) and labels["agreement"][0]["auroc_run"] is None
    path = table(f"{work}/l.csv", "image,Mass,Edema", [f"{n},0,{i % 2}" for i, n in enumerate(names)])
    found, page = report(folder, "--labels", path)
    assert found["labels"]["findings"][0]["too_few"] and not found["labels"]["findings"][2]["too_few"]
    assert "not in the file" in page and "nan" not in page
    path = table(f"{work}/l.csv", "image,Mass,Hernia", [f"{n},{int(i < 4)},{int(i < 5)}" for i, n in enumerate(names)])
    folder = make_run(f"{work}/run", blank(images))
    a = report(folder, "--labels", path)[0]["labels"]["agreement"]
    assert a[0]["only_file"] == 4 and a[0]["kappa"] is None and a[3]["kappa"] == 0, a


@case("files of labels that are hostile or do not fit are refused, with the line")
def _(work):
    images = Images(56, patients=30)
    folder, names = make_run(f"{work}/run", images), names_of(images)
    for header, rows, message in (
            ("image,Fracture", [f"{names[0]},1"], "none of a finding of the run"),
            ("image,Mass", [f"{names[0]},2"], r"l\.csv:2: the label of 'Mass' is '2'"),
            ("image,Mass", [f"{names[0]},yes"], "is 'yes', not 0, 1 or empty"),
            ("image,Mass", [f"{names[0]},1.5"], "is '1.5', not 0, 1 or empty"),
            ("image,Mass", [f"{names[0]},-1.0"], "is '-1.0', not 0, 1 or empty"),
            ("image,Mass,mass", [f"{names[0]},1,0"], "occurs twice"),
            ("image,Finding Labels", [f"{names[0]},"], "an empty label"),
            ("image,Finding Labels", [f"{names[0]},Mass|"], "an empty label"),
            ("image,Finding Labels", [f"{names[0]},Mass|No Finding"], "together with another label"),
            ("image,Mass", ["a.png,1"], "has none of the 90 images")):
        says(refused(folder, "--labels", table(f"{work}/l.csv", header, rows)), message)
    says(refused(work, "--labels", "x.csv", code=2), "--labels is for the folder of a run")


sys.exit(case.main())
