#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report RUN RUN...: mean, SD and range over runs, and the ensemble, next to NumPy and scikit-learn.

    check_run_many.py [PATTERN]      Chromium where it is there
"""
import copy
import html
import json
import os
import re
import sys

from report_runs import (DRAWS, HASH, INSPECT, Images, bins_of, edit_run, logit, make_run, near, newton, report,
                         sigmoid, weighted_auroc)  # skips without NumPy and scikit-learn
from support import Cases, run, says, slurp, write

import numpy as np
from browser import OVERLAPS, Browser
from draws import drawn
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score, roc_curve

case = Cases()


def several(work, images, count=3, seeds=True):
    """Runs with other probabilities for the same images."""
    made, folders = [], []
    for i in range(count):
        x = copy.deepcopy(images)
        noise = np.random.default_rng(100 + i).normal(size=x.p.shape)
        x.p = (1 / (1 + np.exp(-(np.log(x.p) - np.log1p(-x.p) + 0.4 * noise)))).astype(np.float32)
        folders.append(make_run(f"{work}/run{i}", x))
        options = {"seed": i + 1, "lr": "0.1" if seeds or i < 2 else "0.2"}
        edit_run(folders[-1], lambda facts, options=options: facts.update(options=options))
        made.append(x.p)
    return folders, made


def few(images, count):
    """The first images."""
    part = copy.copy(images)
    for name, value in vars(images).items():
        setattr(part, name, value[:count])
    return part


def add_validation(folder, images, sha256="f" * 64, members="e" * 64):
    """Predictions of val, from which the thresholds of the run could be chosen."""
    write(f"{folder}/predictions-val.csv", images.csv("val"))
    metrics = json.loads(slurp(f"{folder}/metrics-test.json"))
    metrics["split"].update(name="val", members_sha256=members, images=len(images.p),
                            patients=len(set(images.patient)))
    metrics["model"]["checkpoint_sha256"] = sha256
    for k, f in enumerate(metrics["findings"]):
        f["positives"] = int((images.labels[:, k] == 1).sum())
    write(f"{folder}/metrics-val.json", json.dumps(metrics).encode())


def measures(p, y):
    known = y < 2
    p, y = p[known].astype(float), y[known]
    brier, q = brier_score_loss(y, p), y.mean()
    return {"auroc": roc_auc_score(y, p), "auprc": average_precision_score(y, p), "brier": brier,
            "skill": 1 - brier / (q * (1 - q)),
            "ece": sum(n * abs(mean - k / n) for n, k, mean, _ in bins_of(p, y)) / len(p)}


def check_spread(found, values, ensemble):
    near(found["mean"], np.mean(values), 1e-7)
    near(found["sd"], np.std(values, ddof=1), 1e-7)
    near(found["min"], min(values), 1e-7)
    near(found["max"], max(values), 1e-7)
    near(found["ensemble"], ensemble, 1e-7)


@case("mean, SD and range over runs of each measure, and the ensemble, are those of NumPy and scikit-learn")
def _(work):
    images = Images(60)
    images.labels[:, 3] = 0  # too few
    folders, p = several(work, images)
    found, page = report(folders[0], code=0)
    assert found["runs"] is None and "Several runs" not in page
    done = run([INSPECT, "report", "--json", "-o", f"{work}/all.html", *folders])
    found, page = json.loads(done.stdout)["results"][0], slurp(f"{work}/all.html").decode()
    runs = found["runs"]
    mean = np.mean([x.astype(float) for x in p], 0).astype(np.float32)
    every = [[measures(x[:, k], images.labels[:, k]) for k in range(3)] for x in [*p, mean]]
    for name in ("auroc", "auprc", "brier", "skill", "ece"):
        values = [np.mean([m[name] for m in of]) for of in every]
        check_spread(runs[name], values[:-1], values[-1])
    for k in range(3):
        for name in ("auroc", "auprc", "brier", "skill", "ece"):
            values = [of[k][name] for of in every]
            check_spread(runs["findings"][k][name], values[:-1], values[-1])
    assert runs["findings"][3]["auroc"]["mean"] is None and runs["only_seeds"] and runs["left_out"] == 0
    assert "differ only in their seed" in page and "no run was chosen" in re.sub(r"\s+", " ", page)
    patients = len(set(images.patient))
    weights = [drawn(r, patients)[images.patient].astype(float) for r in range(DRAWS)]
    known = images.labels[:, 0] < 2
    draws = [weighted_auroc(mean[known, 0], images.labels[known, 0], w[known]) for w in weights]
    low, high = np.percentile(draws, [2.5, 97.5])
    assert f"({low:.3f} to {high:.3f})" in page.split('id="runs"')[1].split('id="calibration"')[0]


@case("runs that differ in more than the seed: the SD is not called that of seeds; no run is called the best")
def _(work):
    folders, _ = several(work, Images(61, patients=60), seeds=False)
    found, page = report(folders[0], *folders[1:])
    assert not found["runs"]["only_seeds"] and "not that of seeds alone" in page and "lr=0.2" in page
    assert not re.search(r"\bbest run\b", page)


@case("another split is refused with both hashes and exit code 6; images that a run lacks are left out: exit code 1")
def _(work):
    images = Images(62, patients=60)
    folders, _ = several(work, images)
    text = slurp(f"{folders[1]}/metrics-test.json").decode()
    write(f"{folders[1]}/metrics-test.json", text.replace(HASH, "f" * 64, 1).encode())
    done = run([INSPECT, "report", "-o", f"{work}/x.html", *folders], 6)
    says(done, rf"members {HASH} in run 1, {'f' * 64} in run 2")
    write(f"{folders[1]}/metrics-test.json", text.encode())
    make_run(folders[2], few(images, 59 * 3))
    run([INSPECT, "report", "-o", f"{work}/x.html", *folders], 1)
    page = slurp(f"{work}/x.html").decode()
    assert "images are not in all runs" in page and "Not all images are in all runs." in page
    assert "on the 177 images that all of them have" in page
    says(run([INSPECT, "report", "-o", f"{work}/x.html", folders[0], work], 2), "the folders of runs")
    says(run([INSPECT, "report", "-o", f"{work}/x.html", folders[0], f"{work}/none"], 2),
         "the folders of runs; '.*none' does not exist")


@case("the findings of the mean are counted; a run that is given twice is named")
def _(work):
    images = Images(65)
    images.labels[:, 3] = 0  # too few
    folders, _ = several(work, images)
    found, _ = report(folders[0], *folders[1:])
    answer = next(a for a in found["answers"] if a["id"] == "runs")
    assert answer["level"] == "good" and "same predictions" not in answer["text"], answer
    assert answer["text"].startswith("Mean AUROC of 3 runs, over the 3 findings with enough patients: "), answer
    found, _ = report(folders[0], folders[0], folders[1])
    answer = next(a for a in found["answers"] if a["id"] == "runs")
    assert answer["level"] == "look", answer
    assert "Run 3 has the same predictions as run 1: mean, SD and ensemble count it again." in answer["text"], answer


def plain(page):
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", "", page)))


@case("the details of each run are those of its own report; gaps, sensitivity and specificity over runs are their mean")
def _(work):
    images = Images(66)
    images.labels[:, 3] = 0  # too few
    folders, _ = several(work, images)
    found, page = report(folders[2], folders[0], folders[1])  # its own path is the last of the command
    runs, alone = found["runs"], [report(folder)[0] for folder in folders]
    for x, y in zip(runs["details"], alone):
        for key in ("findings", "groups", "shortcuts"):
            assert x[key] == y[key], key
        assert [a for a in x["answers"] if a["id"] != "runs"] == y["answers"]
    assert len(runs["details"]) == 3
    for k in range(3):
        for key in ("sensitivity", "specificity"):
            check_spread({**runs["findings"][k][key], "ensemble": None},
                         [x["findings"][k]["youden"][key] for x in alone], None)
    names = [g["name"] for g in runs["groups"]]
    assert names == [g["name"] for g in alone[0]["groups"]] and "female" in names
    some = both = 0
    for g, group in enumerate(runs["groups"]):
        every = [*alone, runs["ensemble"]]
        cells = [(group["underdiagnosis"], [x["groups"][g]["underdiagnosis"] for x in every])]
        cells += [(f[key], [x["groups"][g]["findings"][k][key] for x in every])
                  for k, f in enumerate(group["findings"]) for key in ("tpr", "fpr", "auroc", "bias")]
        for cell, (*of, mean) in cells:
            marked = sum(x is not None and x["holm"] is not None and x["holm"] < 0.05 for x in of)
            some, both = some + (marked > 0), both + (marked == 3)
            if None in of:
                assert cell is None, (group["name"], cell, of)
                continue
            check_spread(cell, [x["gap"]["value"] for x in of], mean and mean["gap"]["value"])
            assert cell["marked"] == marked
    assert some > both > 0, (some, both)
    assert f"remain after Holm's correction: {some} in at least one run, {both} of them in every run" in plain(page)
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and {"run2", "run3", "ensemble", "run2-group0", "ensemble-plots"} <= set(ids)
    assert re.findall(r'href="#([^"]*)"', page) and set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)


@case("the ensemble has the numbers of a run with the mean probabilities, and thresholds chosen from the mean on val")
def _(work):
    images, val = Images(67), Images(68, patients=200)
    folders, p = several(work, images)
    mean = copy.copy(images)
    mean.p = np.mean([x.astype(float) for x in p], 0).astype(np.float32)
    alone = report(make_run(f"{work}/mean", mean))[0]
    found, page = report(folders[2], *folders[:2])
    ensemble = found["runs"]["ensemble"]
    assert ensemble["findings"][0]["auroc"] == alone["findings"][0]["auroc"]
    assert ensemble["findings"][0]["raw"] == alone["findings"][0]["raw"] and ensemble["shortcuts"] == alone["shortcuts"]
    assert all(f["calibrated"] is None and f["youden"] is None for f in ensemble["findings"])
    assert "neither thresholds nor calibration: run 1 has no complete predictions of &#39;val&#39;" in page
    vals = []
    for i, folder in enumerate(folders):
        x = copy.copy(val)
        x.p = (val.p ** (1 + 0.2 * i)).astype(np.float32)
        vals.append(x.p)
        add_validation(folder, x)
    found, page = report(folders[2], *folders[:2])
    z = logit(np.mean([x.astype(float) for x in vals], 0))
    for k, f in enumerate(found["runs"]["ensemble"]["findings"]):
        known = val.labels[:, k] < 2
        x, y = z[known, k].astype(np.float32), val.labels[known, k]
        fpr, tpr, at = roc_curve(y, x, drop_intermediate=False)
        threshold = at[np.argmax(tpr - fpr)]
        near(logit(np.array([f["youden"]["threshold"]]))[0], threshold, 1e-5)
        n = y.sum()
        b, a = newton(x.astype(float), np.where(y == 1, (n + 1) / (n + 2), 1 / (len(y) - n + 2)))
        known = images.labels[:, k] < 2
        q, y = sigmoid(a * logit(mean.p[known, k]) + b), images.labels[known, k]
        near(f["calibrated"]["brier"], brier_score_loss(y, q), 1e-6)
        called = logit(mean.p[known, k]) >= threshold
        near(f["youden"]["sensitivity"], called[y == 1].mean(), 0.02)
    assert "chosen again, from the mean of the runs' predictions of val." in plain(page)
    assert found["runs"]["ensemble"]["groups"][0]["underdiagnosis"]["gap"]["value"] is not None


@case("the ensemble has no thresholds where val is of other weights, other images, or missing; the page says why")
def _(work):
    folders, _ = several(work, Images(69, patients=60), count=2)
    val = Images(70, patients=60)

    def why(*more):
        for folder, how in zip(folders, more):
            add_validation(folder, **how)
        found, page = report(folders[1], folders[0])
        assert all(f["too_few"] or f["youden"] is None for f in found["runs"]["ensemble"]["findings"])
        return plain(page)

    assert "the predictions of 'val' of run 2 are of other weights" in why(
        {"images": val}, {"images": val, "sha256": "a" * 64})
    assert "run 2 chose its thresholds on other images" in why({"images": val}, {"images": val, "members": "d" * 64})
    assert "run 2 chose its thresholds on other images" in why({"images": val}, {"images": few(val, 120)})
    for folder in folders:  # of other findings, in both files
        for name in ("predictions-val.csv", "metrics-val.json"):
            write(f"{folder}/{name}", slurp(f"{folder}/{name}").replace(b"Nodule", b"Other"))
    page = plain(report(folders[1], folders[0])[1])
    assert "the predictions of 'val' of run 1 have other findings" in page
    write(f"{folders[1]}/predictions-val.csv", b"image\n")
    assert "run 2 has no complete predictions of" in why({"images": val})
    text = json.loads(slurp(f"{folders[0]}/metrics-test.json"))
    text["operating"] = None
    write(f"{folders[0]}/metrics-test.json", json.dumps(text).encode())
    assert "run 1 has no thresholds of its own" in why({"images": val}, {"images": val})


@case("a second run without run.json has details; with more than ten runs the page has those of ten")
def _(work):
    images = Images(71, patients=20)
    folders, _ = several(work, images, count=12)
    os.remove(f"{folders[1]}/run.json")
    os.remove(f"{folders[11]}/run.json")
    page = report(folders[1], folders[0])[1]
    assert "Without a run.json, nothing says on which images it was trained" in page
    found, page = report(folders[11], *folders[:11])
    assert len(found["runs"]["details"]) == 10 and 'id="run10"' in page and 'id="run11"' not in page
    assert "details of the first 10 runs only. Means and SDs are over all 12" in plain(page)
    assert len(found["runs"]["rows"]) == 13
    says(run([INSPECT, "report", "-o", f"{work}/x.html", folders[1]], 3), "has no run.json")


@case("numbers of a run that do not belong to its predictions are refused, and the run is named")
def _(work):
    images = Images(72, patients=150)
    noise = np.random.default_rng(72).normal(size=images.p.shape)
    images.p = sigmoid(2.0 * (images.labels == 1) - 1 + noise).astype(np.float32)  # for each group the same
    folders, _ = several(work, images)
    page = plain(report(folders[2], *folders[:2])[1])
    assert "No gap between groups remains after Holm's correction, in any run." in page
    text = json.loads(slurp(f"{folders[1]}/metrics-test.json"))
    text["findings"][0]["positives"] += 1
    write(f"{folders[1]}/metrics-test.json", json.dumps(text).encode())
    says(run([INSPECT, "report", "-o", f"{work}/x.html", *folders], 6), r"run1/metrics-test\.json' does not belong")


@case("a run that was trained on these images: the page, the answer about all runs and the ensemble say it")
def _(work):
    folders, _ = several(work, Images(74))

    def use(folder, what):
        edit_run(folder, lambda facts: facts["dataset"]["splits"][1].update(use=what))

    assert "made choices by them" not in plain(report(folders[2], *folders[:2])[1])
    use(folders[1], "train")
    for count in (1, 2):
        found, page = report(folders[2], *folders[:2])
        header = plain(page.split("<nav>")[0])
        assert f"{count} of the 3 runs were trained on these images" in header, header[-900:]
        several_runs = next(a for a in found["answers"] if a["id"] == "runs")
        assert several_runs["level"] == "look" and f"{count} of the runs were trained" in several_runs["text"]
        ensemble = found["runs"]["ensemble"]["answers"][0]
        assert (ensemble["id"], ensemble["level"]) == ("used", "look"), ensemble
        use(folders[2], "validation")
    assert found["answers"][0]["id"] != "used"  # of run 1


@case("the terminal has the result of all runs, and names the run whose answers need a look")
def _(work):
    images = Images(73)
    images.labels[images.view == "AP", 0] = 1  # a shortcut
    folders, _ = several(work, images)
    done = run([INSPECT, "report", "-o", f"{work}/x.html", *folders])
    says(done, r"x\.html: 3 runs, split test, 750 images,", r"runs     Mean AUROC of 3 runs, over the 4 findings",
         "look     Run 1, ")
    run([INSPECT, "report", "-o", f"{work}/x.html", folders[0]])
    assert "Run 1" not in run([INSPECT, "report", "-o", f"{work}/x.html", folders[0]]).stderr


@case("in a browser, the details unfold, and nothing is wider than the window")
def _(work):
    folders, _ = several(work, Images(74, patients=60))
    report(folders[2], *folders[:2])
    with Browser() as browser:
        for width in (390, 1000):
            browser.size(width, 900)
            browser.open(f"{folders[2]}.html")
            browser.run("document.querySelectorAll('.fold>input').forEach(x => { x.checked = true; })")
            assert not browser.complaints()
            assert browser.run("document.getElementById('run2-group0').offsetParent !== null")
            assert browser.run("document.documentElement.scrollWidth <= window.innerWidth"), width
            assert browser.run(OVERLAPS) == [], browser.run(OVERLAPS)


@case("three patients, one positive: a page without a number")
def _(work):
    images = Images(63, patients=3, each=1)
    images.labels[:] = 0
    images.labels[0] = 1
    folders, _ = several(work, images)
    found, page = report(folders[0], *folders[1:])
    assert found["runs"]["auroc"]["mean"] is None and "nan" not in page
    assert found["runs"]["rows"] == [None] * 4, found["runs"]["rows"]
    assert {a["id"]: a["text"] for a in found["answers"]}["runs"] == "n/a: no finding has enough patients."


@case("the page is the same for any number of threads")
def _(work):
    folders, _ = several(work, Images(64, patients=60))
    pages = []
    for threads in (1, 2):
        run([INSPECT, "report", "-j", threads, "-o", f"{work}/{threads}.html", *folders])
        pages.append(slurp(f"{work}/{threads}.html"))
    assert pages[0] == pages[1]


sys.exit(case.main())
