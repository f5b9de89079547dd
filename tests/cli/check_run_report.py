#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report RUN: the numbers, next to scikit-learn and NumPy; files that do not fit; the page.

    check_run_report.py [PATTERN]      Chromium where it is there

The runs are folders with files that are made here.  NumPy draws the same patients as the program (draws.py).
"""
import html
import json
import math
import os
import re
import sys

from report_runs import (BINS, DRAWS, HASH, INSPECT, THRESHOLDS, Images, check_calibration, edit_run, logit, make_run,
                         near, report, sigmoid, weighted_auroc)  # skips without NumPy and scikit-learn
from support import Cases, program, run, says, slurp, synth, write

import numpy as np
from browser import CONTRAST, OVERLAPS, Browser
from draws import drawn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score

case = Cases()


def floor_columns(images):
    ages = [(images.age >= low) & (images.age < high) for low, high in
            ((-1, 20), (20, 40), (40, 60), (60, 80), (80, 999))]
    return np.stack([*ages, images.sex == "F", images.sex == "M", images.view == "AP", images.view == "PA"],
                    1).astype(float)


# ---- cases ---------------------------------------------------------------------------------------------------------


@case("AUROC, AUPRC, Brier, slope, ECE and counts at thresholds are those of scikit-learn and NumPy")
def _(work):
    for seed, levels in ((1, 0), (2, 8)):
        images = Images(seed)
        if levels:  # ties
            images.p = (np.round(images.p * levels) / levels).astype(np.float32).clip(1 / 64, 63 / 64)
        found, _ = report(make_run(f"{work}/run{seed}", images))
        for k, f in enumerate(found["findings"]):
            known = images.labels[:, k] < 2
            p, y = images.p[known, k], images.labels[known, k]
            assert (f["positives"], f["negatives"], f["too_few"]) == ((y == 1).sum(), (y == 0).sum(), False)
            near(f["auroc"]["value"], roc_auc_score(y, p))
            near(f["auprc"]["value"], average_precision_score(y, p))
            check_calibration(f["raw"], p, y)
            check_calibration(f["calibrated"], sigmoid(1.2 * logit(p) - 0.3 - 0.1 * k), y)
            for rule, t in THRESHOLDS.items():
                tn, fp, fn, tp = confusion_matrix(y, p >= np.float32(t)).ravel()
                assert (f[rule]["true_positives"], f[rule]["false_positives"], f[rule]["true_negatives"],
                        f[rule]["false_negatives"]) == (tp, fp, tn, fn)
                near(f[rule]["sensitivity"], tp / (tp + fn))
                near(f[rule]["specificity"], tn / (tn + fp))
                near(f[rule]["ppv"], tp / (tp + fp) if tp + fp else np.nan)
                near(f[rule]["npv"], tn / (tn + fn))


@case("net benefit is that of its formula, with calibrated probabilities where the model has them")
def _(work):
    def refuse(metrics):
        metrics["findings"][1]["operating"].update(refused="fewer than 10 positives", platt=None)

    images = Images(34)
    found, _ = report(make_run(f"{work}/run", images, change=refuse))
    for k, f in enumerate(found["findings"]):
        known = images.labels[:, k] < 2
        p, y = images.p[known, k].astype(float), images.labels[known, k]
        if k != 1:
            p = sigmoid(1.2 * logit(p) - 0.3 - 0.1 * k)
        assert f["net_benefit"][0]["threshold"] == 0 and len(f["net_benefit"]) == 40
        near(f["net_benefit"][-1]["threshold"], min(0.95, 3 * y.mean()))
        for point in f["net_benefit"]:
            t, q = point["threshold"], y.mean()
            near(point["network"], ((p >= t) & (y == 1)).mean() - ((p >= t) & (y == 0)).mean() * t / (1 - t))
            near(point["all"], q - (1 - q) * t / (1 - t))


@case("the ECE of perfect calibration is the mean of ECE over labels drawn with the probabilities")
def _(work):
    images = Images(3)
    found, _ = report(make_run(f"{work}/run", images))
    rng = np.random.default_rng(3)
    known = images.labels[:, 0] < 2
    p = images.p[known, 0].astype(float)
    eces = []
    for _ in range(400):
        y = rng.random(len(p)) < p
        order = np.argsort(p)
        ends = [len(p) * (b + 1) // BINS for b in range(BINS)]
        eces.append(sum(abs(part.sum()) for part in np.split((p - y)[order], ends[:-1])) / len(p))
    near(found["findings"][0]["raw"]["ece_perfect"], np.mean(eces), 4 * np.std(eces) / 20)


@case("the floor is scikit-learn's logistic regression on age, sex and view, with intervals on the same draws")
def _(work):
    images, train = Images(4), Images(5, patients=400)
    found, _ = report(make_run(f"{work}/run", images, train))
    patients = len(set(images.patient))
    for k, f in enumerate(found["findings"][:1]):  # the draws take seconds
        known = train.labels[:, k] < 2
        model = LogisticRegression(C=1, tol=1e-12, max_iter=1000, solver="newton-cholesky")
        model.fit(floor_columns(train)[known], train.labels[known, k])
        here = images.labels[:, k] < 2
        y = images.labels[here, k]
        score = np.round(model.decision_function(floor_columns(images)[here]), 9)  # equal columns tie
        near(f["floor"]["auroc"], roc_auc_score(y, score), 1e-9)
        drawn_ = []
        for r in range(DRAWS):
            w = drawn(r, patients)[images.patient[here]].astype(float)
            drawn_.append(weighted_auroc(images.p[here, k], y, w) - weighted_auroc(score, y, w))
        low, high = np.nanpercentile(drawn_, [2.5, 97.5])
        near(f["floor"]["difference"]["value"], roc_auc_score(y, images.p[here, k]) - roc_auc_score(y, score))
        near(f["floor"]["difference"]["low"], low)
        near(f["floor"]["difference"]["high"], high)
    assert "from only age, sex and view" in {a["id"]: a["text"] for a in found["answers"]}["floor"]


@case("a network that knows only age, sex and view is not better than the floor, and the page says so")
def _(work):
    images, train = Images(6), Images(7, patients=400)
    images.p = np.repeat(sigmoid(0.02 * (np.nan_to_num(images.age, nan=50) - 50) + 0.8 * (images.view == "AP") - 2)
                         [:, None], 4, 1).astype(np.float32)
    found, _ = report(make_run(f"{work}/run", images, train))
    answer = {a["id"]: a for a in found["answers"]}["floor"]
    assert answer["level"] == "look" and "includes 0" in answer["text"] and "Mass: AUROC" in answer["text"], answer


@case("the mean AUROC says what it would be without the findings with too few patients")
def _(work):
    images = Images(42)
    images.labels[:, 3] = 0
    images.labels[:3, 3] = 1  # one patient
    found, _ = report(make_run(f"{work}/run", images))
    text = {a["id"]: a["text"] for a in found["answers"]}
    values = [f["auroc"]["value"] for f in found["findings"][:3]]
    assert text["auroc"].endswith(f" Without the 1 with too few patients: {np.mean(values):.3f}."), text["auroc"]
    assert "Mean over the 4 findings with a positive and a negative image" in text["auroc"]
    assert "3 of 4 findings have positives" in text["scope"]
    images.labels[:, 1:3] = 0
    found, _ = report(make_run(f"{work}/run", images))
    assert "1 of 4 findings has positives" in {a["id"]: a["text"] for a in found["answers"]}["scope"]


@case("a network that is worse than age, sex and view is called worse, not indistinguishable")
def _(work):
    images, train = Images(40), Images(41, patients=400)
    images.p[:, 0] = 1 - images.p[:, 0]
    found, _ = report(make_run(f"{work}/run", images, train))
    assert found["findings"][0]["floor"]["difference"]["high"] < 0
    text = {a["id"]: a for a in found["answers"]}["floor"]["text"]
    assert "is worse for 1 finding, with an interval of the difference wholly below 0: Mass: AUROC" in text, text
    assert "includes 0" not in text, text


@case("without training labels the floor is n/a; a damaged or another data set is refused if it was asked for")
def _(work):
    folder = make_run(f"{work}/run", Images(8))
    found, page = report(folder)
    assert all(f["floor"] is None for f in found["findings"]) and found["synthetic"] is None
    answer = {a["id"]: a["text"] for a in found["answers"]}["floor"]
    assert answer == "n/a: the data set of the run could not be opened; --data names it.", answer
    assert "cannot say whether" in page
    says(run([INSPECT, "report", "-o", f"{work}/x.html", "--data", f"{work}/none", folder], 3), "none")


def calibrated(images, k):
    """The probabilities as floats, with a and b of operating()."""
    return sigmoid(1.2 * logit(images.p[:, k]) - 0.3 - 0.1 * k).astype(np.float32).astype(float)


METRICS = ("tpr", "fpr", "auroc", "bias")


def group_side(images, name):
    """0: in the group, 1: the rest, 2: unknown."""
    sexed, aged, number = images.sex != "U", ~np.isnan(images.age), images.follow_up
    known, member = {
        "female": (sexed, images.sex == "F"), "AP": (np.isin(images.view, ["AP", "PA"]), images.view == "AP"),
        "age 40-59": (aged, (images.age >= 40) & (images.age < 60)), "age 80 and more": (aged, images.age >= 80),
        "first image": (number >= 0, number == 0), "follow-up 1-4": (number >= 0, (number >= 1) & (number <= 4)),
        "male from 60": (sexed & aged, (images.sex == "M") & (images.age >= 60))}[name]
    return np.where(known, np.where(member, 0, 1), 2)


def patients_of(rows, images):
    return len(set(images.patient[rows]))


def gap_values(images, k, side, metric, weights):
    """The value of a metric of a finding in the group and in the rest, or None if they are too few."""
    found = []
    for s in (0, 1):
        y, here = images.labels[:, k], side == s
        called = images.p[:, k] >= np.float32(THRESHOLDS["youden"])
        rows = {"tpr": here & (y == 1), "fpr": here & (y == 0)}.get(metric, here & (y < 2))
        counted = [rows] if metric in ("tpr", "fpr") else [rows & (y == 1), rows & (y == 0)]
        if any(c.sum() < 20 for c in counted) or patients_of(counted[0], images) < 5:
            return None
        if metric == "bias":
            excess = calibrated(images, k)[rows] - y[rows]
            found.append((weights[rows] * excess).sum() / weights[rows].sum())
            continue
        found.append(weighted_auroc(images.p[rows, k], y[rows], weights[rows]) if metric == "auroc" else
                     (weights[rows] * called[rows]).sum() / weights[rows].sum())
    return found


def underdiagnosed(images, side, weights):
    ill = (images.labels == 1).any(1)
    called = (images.p >= np.float32(THRESHOLDS["youden"])).any(1)
    return [(weights * (ill & ~called))[side == s].sum() / (weights * ill)[side == s].sum() for s in (0, 1)]


@case("gaps of groups: values, intervals on the same draws, p and Holm's p are NumPy's")
def _(work):
    images = Images(30)
    images.p[images.sex == "F", 0] *= 0.6  # a real gap
    found, _ = report(make_run(f"{work}/run", images))
    names = [g["name"] for g in found["groups"]]
    assert len(names) == len(set(names)) == 13, "a patient has three images: no follow-up 5 and more"
    once, patients = np.ones(len(images.p)), len(set(images.patient))
    weights = [drawn(r, patients)[images.patient].astype(float) for r in range(DRAWS)]

    def check(cell, values):
        near(cell["group"], values(once)[0])
        near(cell["rest"], values(once)[1])
        gaps = np.array([np.subtract(*values(w)) for w in weights])
        gap = values(once)[0] - values(once)[1]
        low, high = np.percentile(gaps, [2.5, 97.5])
        near(cell["gap"]["value"], gap)
        near(cell["gap"]["low"], low)
        near(cell["gap"]["high"], high)
        extreme = {0, 1} & set(values(once))  # all draws are equal
        near(cell["p"], np.nan if extreme else math.erfc(abs(gap) / gaps.std(ddof=1) / math.sqrt(2)))

    for name in ("female", "AP", "age 40-59", "age 80 and more", "first image", "follow-up 1-4", "male from 60"):
        group, side = found["groups"][names.index(name)], group_side(images, name)
        assert (group["images"], group["rest_images"]) == ((side == 0).sum(), (side == 1).sum()), name
        check(group["underdiagnosis"], lambda w, side=side: underdiagnosed(images, side, w))
        for k, f in enumerate(group["findings"]):
            for metric in METRICS:
                values = gap_values(images, k, side, metric, once)
                assert (f[metric] is None) == (values is None), (name, k, metric)
                if values is None:
                    continue
                near(f[metric]["group"], values[0])
                near(f[metric]["rest"], values[1])
                if k == 0 and metric != "auroc" and name in ("female", "follow-up 1-4"):
                    check(f[metric], lambda w, m=metric, side=side: gap_values(images, 0, side, m, w))
    cells = [c for g in found["groups"] for c in [g["underdiagnosis"]] + [f[m] for f in g["findings"] for m in
             METRICS] if c and c["p"] is not None]
    assert found["gaps_tested"] == len(cells)
    untested = sum(bool(c) and c["p"] is None for g in found["groups"] for c in [g["underdiagnosis"]] + [
        f[m] for f in g["findings"] for m in METRICS])
    text = {a["id"]: a["text"] for a in found["answers"]}["groups"]
    assert f"{len(cells)} gaps between a group and the rest were tested" in text, text
    assert (f"{untested} more gap" in text) == (untested > 0) and ("more gap" in text) == (untested > 0), text
    least = 0
    for i, c in enumerate(sorted(cells, key=lambda c: c["p"])):
        least = max(least, min(1, c["p"] * (len(cells) - i)))
        near(c["holm"], least)
    answer = {a["id"]: a for a in found["answers"]}["groups"]
    assert answer["level"] == "look" and "Mass, false positive rate" in answer["text"], answer


@case("the interval of a gap of AUROC uses the same draws for the group and the rest")
def _(work):
    images = Images(31, patients=120, findings=1)
    found, _ = report(make_run(f"{work}/run", images))
    side, patients = group_side(images, "AP"), len(set(images.patient))
    weights = [drawn(r, patients)[images.patient].astype(float) for r in range(DRAWS)]
    gaps = [np.subtract(*gap_values(images, 0, side, "auroc", w)) for w in weights]
    cell = found["groups"][1]["findings"][0]["auroc"]
    near(cell["gap"]["low"], np.nanpercentile(gaps, 2.5))
    near(cell["gap"]["high"], np.nanpercentile(gaps, 97.5))


@case("shortcuts: AUROC within views, and of an output for AP where the finding is absent, are scikit-learn's")
def _(work):
    images = Images(32)
    images.view[::50] = "LL"
    images.p[:, 1] = np.clip(images.p[:, 1] + 0.3 * (images.view == "AP"), 0, 1)
    found, _ = report(make_run(f"{work}/run", images))
    for k, s in enumerate(found["shortcuts"][:2]):
        y, p = images.labels[:, k], images.p[:, k]
        views = [(images.view == v) & (y < 2) for v in ("AP", "PA")]
        both = views[0] | views[1]
        near(s["both_views"]["value"], roc_auc_score(y[both], p[both]))
        weights = [(y[v] == 1).sum() for v in views]
        near(s["within_views"], np.average([roc_auc_score(y[v], p[v]) for v in views], weights=weights))
        absent = both & (y == 0)
        near(s["view"]["value"], roc_auc_score(images.view[absent] == "AP", p[absent]))
    answer = {a["id"]: a for a in found["answers"]}["shortcuts"]
    assert answer["level"] == "look" and "Nodule" in answer["text"], answer


@case("without age, sex and view, or with names of another form, there are no such groups")
def _(work):
    images = Images(33, patients=60)
    images.follow_up[:] = -1
    folder = make_run(f"{work}/a", images)
    assert not {"first image", "follow-up 1-4"} & {g["name"] for g in report(folder)[0]["groups"]}
    text = slurp(f"{folder}/predictions-test.csv").decode().replace("age,sex,view", "years,gender,position", 1)
    write(f"{folder}/predictions-test.csv", text.encode())
    found, page = report(folder)
    assert found["groups"] == found["shortcuts"] == [] and "have no age, sex and view" in page


@case("too few patients, one class: counts, and no number")
def _(work):
    images = Images(9)
    images.labels[:, 1] = 0
    images.labels[:12, 1] = 1  # 12 images of 4 patients
    images.labels[:, 2] = 0
    images.labels[images.labels[:, 3] == 0, 3] = 1
    found, page = report(make_run(f"{work}/run", images))
    counts = {"name", "positives", "negatives", "positive_patients", "too_few"}
    for k in (1, 2, 3):
        f = found["findings"][k]
        assert f["too_few"] and set(f) == counts, f
    assert found["findings"][1]["positive_patients"] == 4 and not found["findings"][0]["too_few"]
    assert page.count("too few") >= 3
    text = {a["id"]: a["text"] for a in found["answers"]}["scope"]
    assert "1 of 4 findings" in text, text


@case("three patients: no number at all, but a page")
def _(work):
    found, page = report(make_run(f"{work}/run", Images(10, patients=3, each=1)))
    assert all(f["too_few"] for f in found["findings"]) and found["mean_auroc"] is None
    assert "No finding has enough patients" in page


@case("labels that a limit separates have no slope; few images no ECE")
def _(work):
    images = Images(11, patients=60, each=2)
    images.labels[:, 0] = images.patient % 3 == 0
    images.p[:, 0] = np.where(images.labels[:, 0] == 1, 0.9, 0.1)
    found, _ = report(make_run(f"{work}/run", images))
    raw = found["findings"][0]["raw"]
    assert (raw["slope"], raw["intercept"], raw["ece"], raw["ece_perfect"], raw["bins"]) == (None,) * 4 + ([],)
    near(raw["brier"], 0.01, 1e-8)


@case("probabilities of exactly 0 and 1 are kept finite")
def _(work):
    images = Images(12)
    images.p[:40, 0], images.p[40:60, 0] = 0, 1
    found, page = report(make_run(f"{work}/run", images))
    known = images.labels[:, 0] < 2
    check_calibration(found["findings"][0]["raw"], images.p[known, 0], images.labels[known, 0])
    assert not re.search(r"\b(nan|inf)\b", page)


@case("thresholds and calibration that the model lacks are named; those chosen on this split are called too good")
def _(work):
    def refuse(metrics):
        for f in metrics["findings"]:
            f["operating"].update(refused="fewer than 10 positives", platt=None, youden=None, sensitivity_90=None)

    found, page = report(make_run(f"{work}/a", Images(13), change=refuse))
    f = found["findings"][0]
    assert f["youden"] is f["calibrated"] is None and f["refused"] == "fewer than 10 positives"
    assert "fewer than 10 positives in val" in page

    found, page = report(make_run(f"{work}/b", Images(13), change=lambda m: m["operating"].update(optimistic=True)))
    assert "too good" in {a["id"]: a["text"] for a in found["answers"]}["thresholds"]

    found, page = report(make_run(f"{work}/c", Images(13), change=lambda m: m.update(
        operating=None, findings=[{**f, "operating": None} for f in m["findings"]])))
    assert found["chosen_on"] is None and found["findings"][0]["youden"] is None


@case("files that do not fit together, or are none of chex-train, are refused")
def _(work):
    images = Images(14, patients=40)
    refuse = [(lambda m: m["split"].update(images=119), "does not belong"),
              (lambda m: m["split"].update(patients=39), "does not belong"),
              (lambda m: m["split"].update(name="val"), "of the split 'val', not 'test'"),
              (lambda m: m.update(mean={"auroc": {"value": 0.126}}), "mean AUROC is 0.126000"),
              (lambda m: m["findings"][1].update(positives=5000), "positives of 'Nodule' differ"),
              (lambda m: m["findings"][1].update(name="Knot"), "name or the positives of 'Nodule'"),
              (lambda m: m["findings"].pop(), "has 3 findings"),
              (lambda m: m.update(findings="none"), "has 0 findings"),
              (lambda m: m.update(split=[]), "has 4 findings, 0 images")]
    for i, (change, message) in enumerate(refuse):
        says(report(make_run(f"{work}/{i}", images, change=change), code=6), message)
    folder = make_run(f"{work}/run", images)
    good = slurp(f"{folder}/metrics-test.json")
    write(f"{folder}/metrics-test.json", good[:-9])
    says(report(folder, code=6), "not a file of chex-train")
    write(f"{folder}/metrics-test.json", good)
    csv = slurp(f"{folder}/predictions-test.csv").decode().splitlines()
    row = csv[1].split(",")
    for at, text, message in ((6, "nan", "is 'nan'"), (6, "-0.1", "is '-0.1'"), (3, "old", "age is 'old'"),
                              (3, "nan", "age is 'nan'"), (4, "X", "sex is 'X'"), (10, "3", "is '3'")):
        write(f"{folder}/predictions-test.csv",
              "\n".join([csv[0], ",".join(row[:at] + [text] + row[at + 1:]), *csv[2:], ""]).encode())
        says(report(folder, code=6), ":2: ", message)
    says(report(folder, "--split", "train", code=3), "no predictions-train.csv", "--eval-only --split train",
         "another one with --split")
    says(report(folder, "--split", "val", code=3), "no split 'val': choose one of train, test with --split")
    says(report(folder, "--split", "../x", code=2), "split")


@case("values of another type in metrics and run.json count as missing")
def _(work):
    folder = make_run(f"{work}/run", Images(15, patients=60), change=lambda m: [
        f["operating"].update(platt={"a": "1", "b": 1e99}, youden={"threshold": 7}, sensitivity_90=[]) for f in
        m["findings"]] + [m.update(model=3, views="x", version=None)])
    write(f"{folder}/run.json", json.dumps({"dataset": {"path": 3, "splits": [1, {"name": [], "use": "train"}] * 20},
                                            "sessions": [{"command": [3, None, "x" * 5000, "--fine"]}]}).encode())
    found, page = report(folder)
    f = found["findings"][0]
    assert f["youden"] is f["sensitivity_90"] is f["calibrated"] is None
    assert "--fine" in page


@case("the page has neither path nor host, says its use, and is the same for any number of threads")
def _(work):
    folder = make_run(f"{work}/run", Images(16), Images(17))
    pages = [report(folder, "-j", j)[1] for j in ("1", "4")]
    copy = run(["cp", "-r", folder, f"{work}/copy"]) and report(f"{work}/copy")[1]
    assert pages[0] == pages[1] == copy
    page = html.unescape(pages[0])
    assert "Research use only" in page and "secret" not in page and "hidden" not in page and work not in page
    assert "chex-train -d DATA -o RUN --epochs 2 --init PATH" in re.sub(r"<[^>]*>", "", page)


@case("the command shows the fold, but no path in any form; the page names the rule of the split")
def _(work):
    folder = make_run(f"{work}/run", Images(42, patients=60),
                      change=lambda m: m["split"].update(rule="official, fold 1/4"))
    edit_run(folder, lambda run: run["sessions"][0].update(command=[
        "chex-train", "--data=hidden", "-ohidden", "--fold", "1/4", "--fold=1/3", "--init=/hidden/x", "--stage", "a/b",
        "--lr=0.1", "-j2"]))
    page = re.sub(r"<[^>]*>", "", report(folder)[1])
    assert "chex-train --data=DATA -o RUN --fold 1/4 --fold=1/3 --init=PATH --stage PATH --lr=0.1 -j2" in page
    assert "hidden" not in page and "official, fold 1/4" in page


@case("a report on the images of the training, or of the choice of the epoch, says so first")
def _(work):
    folder = make_run(f"{work}/run", Images(43, patients=60), Images(44))
    first = [{"use": "train"}, {"use": "validation"}, {"sha256": HASH, "name": "other", "use": "train"}]
    for i, split in enumerate(first):
        edit_run(folder, lambda run, split=split: run["dataset"]["splits"][1].update(split))
        found, page = report(folder)
        answer = found["answers"][0]
        expected = "the best epoch, so the figures are too good" if i == 1 else "trained on these images"
        assert (answer["id"], answer["level"]) == ("used", "look") and expected in answer["text"], answer
        header = html.unescape(re.sub("<[^>]*>", "", page.split("<nav>")[0]))
        assert answer["text"] in header, header[-900:]
    edit_run(folder, lambda run: run["dataset"]["splits"][1].update(sha256="0", use=None))
    assert report(folder)[0]["answers"][0]["id"] == "scope"


@case("a folder with predictions, but without run.json: that is said")
def _(work):
    folder = make_run(f"{work}/run", Images(45, patients=60))
    os.remove(f"{folder}/run.json")
    says(report(folder, code=3), r"has no run\.json")


@case("with --fold and --limit, the floor is fitted on the images of the training; the flow counts them")
def _(work):
    csv = synth(f"{work}/in", 400, "--size", 64)
    run([program("chex-convert"), "-q", "-i", f"{work}/in/images", "-l", csv, "-o", f"{work}/shards", "--size", 36])
    for i, more in enumerate((["--fold", "1/3"], ["--limit", "40"], ["--fold", "2/3", "--limit", "50%"])):
        folder = f"{work}/run{i}"
        run([program("chex-train"), "-q", "-d", f"{work}/shards", "-o", folder, "--model", "densenet-micro", "--crop",
             32, "--batch", 16, "--epochs", 1, "-j", 1, *more])
        facts = json.loads(slurp(f"{folder}/run.json"))
        page = re.sub(r"\s+", " ", report(folder, "--split", "val")[1])
        where = f"{facts['epoch_images']} images of train" + "".join(f", {a[2:]} {b}" for a, b in
                                                                     zip(more[::2], more[1::2]))
        assert f"fitted on {where}" in page, (where, re.search("fitted on.*?[.]", page))
        limited = f"train (--limit {more[-1]}: {facts['epoch_images']} images an epoch)"
        assert (limited in page) == ("--limit" in more), limited


@case("hostile names do not become markup")
def _(work):
    names = ["<script>alert(1)</script>", "a&b'd", "\u00e9\u202e", "Hernia"]
    _, page = report(make_run(f"{work}/run", Images(18, patients=60), names=names))
    assert "<script" not in page and "a&amp;b&#39;d" in page and "\u202e" not in page


@case("wrong usage: exit code 2 and a hint")
def _(work):
    folder = make_run(f"{work}/run", Images(19, patients=30))
    says(run([INSPECT, "report", folder], 2), "needs -o")
    says(run([INSPECT, "report", "-o", f"{work}/x.png", folder], 2), r"\.html")
    says(run([INSPECT, "report", "--split", "test", "-o", f"{work}/x.html", work], 2), "folder of a run")


@case("a real run: the AUROC of its own metrics, synthetic images named, the floor from the data set")
def _(work):
    csv = synth(f"{work}/in", 700, "--size", 64)
    shards = f"{work}/shards"
    run([program("chex-convert"), "-q", "-i", f"{work}/in/images", "-l", csv, "-o", shards, "--size", 36])
    run([program("chex-train"), "-q", "-d", shards, "-o", f"{work}/run", "--model", "densenet-micro", "--crop", 32,
         "--batch", 16, "--epochs", 1, "-j", 1])
    found, page = report(f"{work}/run")
    metrics = json.loads(slurp(f"{work}/run/metrics-test.json"))
    assert found["synthetic"] is True and "SYNTHETIC" in page
    several = [(f, m) for f, m in zip(found["findings"], metrics["findings"]) if not f["too_few"]]
    assert several and all(f["auroc"] == m["auroc"] and f["auprc"] == m["auprc"] for f, m in several)
    assert any(f["floor"] for f, _ in several)
    os.rename(shards, f"{work}/moved")
    assert report(f"{work}/run")[0]["synthetic"] is None
    assert report(f"{work}/run", "-d", f"{work}/moved") == (found, page)


@case("a browser shows all of it: no overlap, enough contrast, no complaint, at four widths")
def _(work):
    folder = make_run(f"{work}/run", Images(20), Images(21))
    report(folder)
    with Browser() as browser:
        for width in (390, 700, 1000, 1400):
            browser.size(width, 900)
            browser.open(f"{folder}.html")
            assert not browser.complaints()
            assert browser.run(OVERLAPS) == [], browser.run(OVERLAPS)
            assert browser.run("document.documentElement.scrollWidth <= window.innerWidth"), width
        assert browser.run(CONTRAST) == [], browser.run(CONTRAST)


sys.exit(case.main())
