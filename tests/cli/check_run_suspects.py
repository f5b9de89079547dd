#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report of fold runs: images whose label disagrees most with the fold that did not see them.

    check_run_suspects.py [PATTERN]
"""
import base64
import copy
import hashlib
import json
import os
import re
import sys

from report_runs import INSPECT, Images, edit_run, make_run, report  # skips without NumPy and scikit-learn
from support import Cases, program, run, says, slurp, synth, write

import numpy as np
from sklearn.metrics import roc_auc_score

case = Cases()
FOLDS = 3


def fold_of(patient):
    return int.from_bytes(hashlib.sha256(f"chex-fold:{patient:08d}".encode()).digest()[:8], "big") % FOLDS + 1


def folds(work, test, val, change=lambda k, images: None):
    """Runs of three folds: all predict test; each predicts its own part of val, on a scale of its own."""
    made = []
    for k in range(1, FOLDS + 1):
        folder = make_run(f"{work}/fold{k}", test)
        mine = np.array([fold_of(p) == k for p in val.patient])
        part = Images.__new__(Images)
        for name, value in vars(val).items():
            setattr(part, name, value[mine])
        part.p = (part.p ** k).astype(np.float32)
        change(k, part)
        write(f"{folder}/predictions-val.csv", part.csv("val"))
        edit_run(folder, lambda facts, k=k: (facts["dataset"]["splits"].append({"name": "val", "use": "validation"}),
                                             facts.update(options={"fold": f"{k}/{FOLDS}", "seed": 1})))
        made.append((folder, part))
    return made


def expected(parts, finding, label):
    """The six images of this label that disagree most, by the share of lower outputs of their fold."""
    found = []
    for k, part in enumerate(parts, 1):
        known = part.labels[:, finding] < 2
        p, n = part.p[:, finding], known.sum()
        for i in np.flatnonzero(part.labels[:, finding] == label):
            others = p[known]
            lower = ((others < p[i]).sum() + ((others == p[i]).sum() - 1) / 2) / n
            name = f"{part.patient[i]:08d}_{part.follow_up[i]:03d}.png"
            if (lower < 0.5) if label else (lower > 0.5):
                found.append((lower if label else -lower, name, k))
    return [(name, k, abs(lower)) for lower, name, k in sorted(found)[:6]]


@case("the lists are those of NumPy: by the share of the fold's images with a lower output, whatever the scale")
def _(work):
    test, val = Images(80, patients=60), Images(81)
    val.labels[val.labels == 255] = 0
    val.p[:, 1] = np.round(val.p[:, 1], 1).clip(0.1, 0.9)  # ties
    flipped = np.flatnonzero((val.labels[:, 0] == 0) & (val.p[:, 0] < np.quantile(val.p[:, 0], 0.05)))[:2]
    val.labels[flipped, 0] = 1
    made = folds(work, test, val)
    found, page = report(made[0][0], *[folder for folder, _ in made[1:]])
    suspects = found["suspects"]
    parts = [part for _, part in made]
    assert (suspects["folds"], suspects["examined"], suspects["images"]) == (3, 3, len(val.p))
    for k in range(2):
        assert abs(suspects["findings"][k]["auroc"] -
                   np.mean([roc_auc_score(x.labels[:, k], x.p[:, k]) for x in parts])) < 1e-9
        for label, key in ((1, "positives"), (0, "negatives")):
            got = [(x["image"], x["fold"], x["lower"]) for x in suspects["findings"][k][key]]
            want = expected(parts, k, label)
            assert [g[:2] for g in got] == [w[:2] for w in want], (got, want)
            assert np.allclose([g[2] for g in got], [w[2] for w in want]), (got, want)
    listed = {x["image"] for x in suspects["findings"][0]["positives"]}
    assert {f"{val.patient[i]:08d}_{val.follow_up[i]:03d}.png" for i in flipped} <= listed
    assert "there are no contact sheets" in page and "no proof" in page


@case("one fold, two of a kind, other numbers of folds, no predictions of val: a message, and no list")
def _(work):
    made = [folder for folder, _ in folds(work, Images(82, patients=40), Images(83, patients=60))]

    def change(folder, fold):
        edit_run(folder, lambda facts: facts["options"].update(fold=fold))

    found, page = report(made[0], made[1])
    assert found["suspects"]["examined"] == 2 and "images of the other folds were not examined" in page
    os.rename(f"{made[1]}/predictions-val.csv", f"{made[1]}/hidden")
    found, page = report(made[0], made[1])
    assert found["suspects"] is None and "run 1 has no predictions-val.csv" in page
    os.rename(f"{made[1]}/hidden", f"{made[1]}/predictions-val.csv")
    edit_run(made[1], lambda facts: facts["dataset"]["splits"][-1].update(name="<i>val"))
    page = report(made[0], made[1])[1]  # the first run is the last argument
    assert "run 1 has no predictions-&lt;i&gt;val.csv" in page and "<i>val" not in page
    edit_run(made[1], lambda facts: facts["dataset"]["splits"][-1].update(name="val"))
    for fold, message in (("1/3", r"the runs are of fewer than two folds \(chex-train --fold\)"),
                          ("2/4", "the runs are of 3 and of 4 folds"),
                          ("none", "the runs are of fewer than two folds"), ("9/3", "fewer than two folds")):
        change(made[1], fold)
        found, page = report(made[1], made[0])
        assert found["suspects"] is None and re.search(message, re.sub("<[^>]*>", "", page)), (fold, message)
    change(made[0], "none")
    assert "Suspect labels" not in report(made[1], made[0])[1]


@case("two seeds of each fold: the lists are those of their mean; a fold with one run, or of other images, is refused")
def _(work):
    test, val = Images(88, patients=40), Images(89)
    val.labels[val.labels == 255] = 0

    def other_seed(_k, images):
        noise = np.random.default_rng(90).normal(size=images.p.shape)  # other ranks
        images.p = (images.p ** np.exp(0.5 * noise)).astype(np.float32)

    first, second = folds(f"{work}/a", test, val), folds(f"{work}/b", test, val, other_seed)
    parts = []
    for (_, x), (_, y) in zip(first, second):
        both = copy.copy(x)
        both.p = ((x.p.astype(float) + y.p.astype(float)) / 2).astype(np.float32)
        parts.append(both)
    runs = [folder for made in (first, second) for folder, _ in made]
    found, page = report(runs[0], *runs[1:])
    suspects = found["suspects"]
    assert (suspects["folds"], suspects["examined"], suspects["images"]) == (3, 3, len(val.p))
    assert "3 of 3 folds, p is the mean of 2 runs." in page
    for k in range(2):
        for label, key in ((1, "positives"), (0, "negatives")):
            got = [(x["image"], x["fold"]) for x in suspects["findings"][k][key]]
            assert got == [w[:2] for w in expected(parts, k, label)], (got, k, label)
    found, page = report(runs[0], *runs[1:5])  # the last run of the command is the first fold's first seed
    assert found["suspects"] is None
    assert re.search("fold 2/3 has 2 runs, and fold 3/3 has 1: give as many runs of each fold", page), page[-3000:]
    text = slurp(f"{runs[4]}/predictions-val.csv").splitlines(keepends=True)
    write(f"{runs[4]}/predictions-val.csv", b"".join(text[:-1]))
    assert "are of one fold, but of other images or labels" in report(runs[0], *runs[1:])[1]


@case("predictions of patients that the run was trained on are refused; so are other findings")
def _(work):
    made = [folder for folder, _ in folds(work, Images(84, patients=40), Images(85, patients=60))]
    write(f"{made[1]}/predictions-val.csv", slurp(f"{made[0]}/predictions-val.csv"))
    says(run([INSPECT, "report", "-o", f"{work}/x.html", *made], 6), "has a patient of another fold than 2/3")
    text = slurp(f"{made[2]}/predictions-val.csv").decode().replace("_Mass", "_Other")
    write(f"{made[1]}/predictions-val.csv", text.encode())
    says(run([INSPECT, "report", "-o", f"{work}/x.html", *made], 6), "has other findings")


@case("outputs that are no better than chance, and too few patients, give no list")
def _(work):
    def invert(k, images):
        images.p[:, 0] = 1 - images.p[:, 0]
        images.labels[:, 1] = 0

    made = [folder for folder, _ in folds(work, Images(86, patients=40), Images(87, patients=90), invert)]
    found, page = report(made[0], *made[1:])
    for k in (0, 1):
        f = found["suspects"]["findings"][k]
        assert f["auroc"] is None and f["positives"] == f["negatives"] == [], f
    assert "no fold has enough patients and an AUROC above 0.5" in page


@case("real fold runs: their own patients; a contact sheet for each finding, marked as synthetic")
def _(work):
    csv = synth(f"{work}/in", 400, "--size", 64)
    run([program("chex-convert"), "-q", "-i", f"{work}/in/images", "-l", csv, "-o", f"{work}/shards", "--size", 36])
    for k in (1, 2):
        run([program("chex-train"), "-q", "-d", f"{work}/shards", "-o", f"{work}/fold{k}", "--model", "densenet-micro",
             "--crop", 32, "--batch", 16, "--epochs", 2, "--fold", f"{k}/2", "-j", 1])
    found, page = report(f"{work}/fold1", f"{work}/fold2")
    findings = [f for f in found["suspects"]["findings"] if f["positives"] or f["negatives"]]
    section = page.split('id="suspects"')[1].split("</section>")[0]
    sheets = re.findall(r'src="data:image/jpeg;base64,([^"]*)"', section)
    assert findings and len(sheets) == len(findings), (len(findings), len(sheets))
    assert all(b"Research use only" in base64.b64decode(s) and b"SYNTHETIC" in base64.b64decode(s) for s in sheets)
    names = {line.split(",")[0] for k in (1, 2) for line in
             slurp(f"{work}/fold{k}/predictions-val.csv").decode().splitlines()[1:]}
    assert all(x["image"] in names for f in findings for x in f["positives"] + f["negatives"])
    done = run([INSPECT, "report", "--json", "-j", 1, "-o", f"{work}/again.html", f"{work}/fold2", f"{work}/fold1"])
    assert json.loads(done.stdout)["results"][0]["suspects"] == found["suspects"]
    assert slurp(f"{work}/again.html").decode() == page


sys.exit(case.main())
