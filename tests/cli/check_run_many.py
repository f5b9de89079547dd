#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report RUN RUN...: mean, SD and range over runs, and the ensemble, next to NumPy and scikit-learn.

    check_run_many.py [PATTERN]
"""
import copy
import json
import re
import sys

from report_runs import (DRAWS, HASH, INSPECT, Images, bins_of, edit_run, make_run, near, report,
                         weighted_auroc)  # skips without NumPy and scikit-learn
from support import Cases, run, says, slurp, write

import numpy as np
from draws import drawn
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

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
        values = [of[k]["auroc"] for of in every]
        check_spread(runs["findings"][k]["auroc"], values[:-1], values[-1])
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
    lines = slurp(f"{folders[2]}/predictions-test.csv").decode().splitlines(keepends=True)
    write(f"{folders[2]}/predictions-test.csv", "".join(lines[:-3]).encode())
    run([INSPECT, "report", "-o", f"{work}/x.html", *folders], 1)
    assert "images are not in all runs" in slurp(f"{work}/x.html").decode()
    says(run([INSPECT, "report", "-o", f"{work}/x.html", folders[0], work], 2), "the folders of runs")
    says(run([INSPECT, "report", "-o", f"{work}/x.html", folders[0], f"{work}/none"], 2), "the folders of runs")


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
