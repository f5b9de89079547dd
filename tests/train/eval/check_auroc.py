#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an evaluation finds, beside scikit-learn, pandas, NumPy, torchvision and a browser.

    check_auroc.py [PATTERN]      $CHECK_METRICS and $EVALUATE_SPLIT, or in $BUILDDIR

check-metrics computes on scores that are made here; evaluate-split scores a split of the small data set of make check
with densenet-micro, whose weights are random (and eight times too large in the last layer, so that probabilities
differ): nothing is learnt, but everything has to agree.
"""
import json
import os
import re
import subprocess
import sys

from browser import CONTRAST, OVERLAPS, SMALL, Browser
from support import (BUILD, FINDINGS, PATIENCE, SOURCE, Cases, Skip, images, manifest, program, run, same_tree, slurp,
                     write)

try:
    import numpy as np
except ImportError:
    print("skip: NumPy is missing\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)
try:
    import sklearn.metrics as sk
except ImportError:
    sk = None
try:
    import pandas as pd
except ImportError:
    pd = None
try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
EXACT = 1e-12
UNKNOWN = 255  # a label


def need(module, name):
    if module is None:
        raise Skip(f"{name} is missing")


# ---- metrics.h ---------------------------------------------------------------------------------------------------


def compute(scores, labels, patients=None, replicates=0, seed=1, threads=2):
    """What check-metrics prints: a dict for each finding, and one of the mean."""
    count, outputs = scores.shape
    patients = np.arange(count) if patients is None else patients
    text = scores.astype("=f4").tobytes() + labels.astype("u1").tobytes() + patients.astype("=u4").tobytes()
    command = [program("check-metrics"), count, outputs, patients.max() + 1, replicates, seed, threads]
    done = subprocess.run([str(c) for c in command], input=text, capture_output=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    rows = []
    for line in done.stdout.decode().splitlines():
        words = line.split()
        rows.append({name: float(value) for name, value in zip(words[::2], words[1::2])})
    return rows[:-1], rows[-1]


def draw_case(rng, count, prevalence, levels):
    """Scores with some truth in them; levels: the number of different ones, 0: all different."""
    labels = rng.random((count, 14)) < prevalence
    labels[0], labels[1] = True, False
    scores = (rng.normal(size=(count, 14)) + labels * rng.random(14) * 2).astype(np.float32)
    if levels:
        low, high = scores.min(), scores.max()
        scores = np.floor((scores - low) / (high - low + 1e-3) * levels).astype(np.float32) / levels
    return scores, labels.astype(np.uint8)


@case("AUROC and AUPRC are scikit-learn's, of scores with ties and without")
def _(_work):
    need(sk, "scikit-learn")
    rng = np.random.default_rng(1)
    worst = 0
    for count in (5, 40, 700, 20000):
        for levels in (0, 1, 2, 7, 300):
            scores, labels = draw_case(rng, count, 0.07 if count > 50 else 0.4, levels)
            findings, mean = compute(scores, labels)
            auroc = [sk.roc_auc_score(labels[:, k], scores[:, k]) for k in range(14)]
            auprc = [sk.average_precision_score(labels[:, k], scores[:, k]) for k in range(14)]
            for k in range(14):
                assert findings[k]["positives"] == labels[:, k].sum()
                worst = max(worst, abs(findings[k]["auroc"] - auroc[k]), abs(findings[k]["auprc"] - auprc[k]))
            worst = max(worst, abs(mean["auroc"] - np.mean(auroc)), abs(mean["auprc"] - np.mean(auprc)))
    assert worst < EXACT, worst
    print(f"     largest difference {worst:.1e}")


@case("an unknown label counts in no metric: scikit-learn's numbers over the known images of each finding")
def _(_work):
    need(sk, "scikit-learn")
    rng = np.random.default_rng(8)
    for count, levels in ((60, 0), (900, 7), (900, 0)):
        scores, labels = draw_case(rng, count, 0.2, levels)
        labels[rng.random(labels.shape) < rng.random(14)] = UNKNOWN
        labels[:, 3] = UNKNOWN
        labels[5] = UNKNOWN
        labels[labels[:, 4] == 1, 4] = UNKNOWN
        findings, mean = compute(scores, labels, rng.permutation(count) // 3, 100)
        aurocs = []
        for k, ours in enumerate(findings):
            known = labels[:, k] != UNKNOWN
            x, y = scores[known, k], labels[known, k]
            assert ours["positives"] == (y == 1).sum() and ours["negatives"] == (y == 0).sum()
            if len(np.unique(y)) < 2:
                assert np.isnan(ours["auroc"]) and np.isnan(ours["auprc"]) and np.isnan(ours["youden"])
                continue
            aurocs.append(sk.roc_auc_score(y, x))
            assert abs(ours["auroc"] - aurocs[-1]) < EXACT
            assert abs(ours["auprc"] - sk.average_precision_score(y, x)) < EXACT
            fpr, tpr, _ = sk.roc_curve(y, x, drop_intermediate=False)
            assert abs(ours["youden"] - (tpr - fpr).max()) < EXACT
        assert mean["defined"] == len(aurocs) and len(aurocs) <= 12
        assert abs(mean["auroc"] - np.mean(aurocs)) < EXACT


@case("intervals with unknown labels are those of a bootstrap over patients, within the sampling error")
def _(_work):
    rng = np.random.default_rng(9)
    patients, replicates = np.repeat(np.arange(150), 3), 2000
    labels = (rng.random((450, 1)) < 0.3).astype(np.uint8)
    scores = (rng.normal(size=(450, 1)) + labels).astype(np.float32)
    known = rng.random(450) < 0.6
    labels[~known] = UNKNOWN
    ours = compute(scores, labels, patients, replicates, seed=5)[0][0]
    draws = np.empty(replicates)
    for r in range(replicates):
        weights = np.bincount(rng.integers(0, 150, 150), minlength=150)[patients]
        draws[r] = auroc_weighted(scores[known, 0], labels[known, 0], weights[known])
    allowed = 4.5 * np.sqrt(2) * 2.67 * draws.std() / np.sqrt(replicates)
    low, high = np.percentile(draws, [2.5, 97.5])
    assert abs(ours["auroc_low"] - low) < allowed and abs(ours["auroc_high"] - high) < allowed, (ours, low, high)


@case("thresholds reach the optimum on scikit-learn's curves")
def _(_work):
    need(sk, "scikit-learn")
    rng = np.random.default_rng(2)
    for levels in (0, 5):
        scores, labels = draw_case(rng, 900, 0.1, levels)
        for k, ours in enumerate(compute(scores, labels)[0]):
            x, y = scores[:, k], labels[:, k]
            fpr, tpr, _ = sk.roc_curve(y, x, drop_intermediate=False)
            assert abs(ours["youden"] - (tpr - fpr).max()) < EXACT
            assert abs(ours["f1"] - max(sk.f1_score(y, x >= t) for t in np.unique(x))) < EXACT
            for name in ("youden", "f1"):
                called = x >= ours[name + "_threshold"]
                assert ours[name + "_tp"] == (called & (y == 1)).sum()
                assert ours[name + "_fp"] == (called & (y == 0)).sum()
            assert abs(ours["f1"] - sk.f1_score(y, x >= ours["f1_threshold"])) < EXACT


def auroc_weighted(scores, labels, weights):
    """The pairs in order, by weights, ties half: from sorted scores, in float64."""
    order = np.argsort(scores, kind="stable")
    s, p, n = scores[order], weights[order] * labels[order], weights[order] * (1 - labels[order])
    starts = np.flatnonzero(np.r_[True, s[1:] != s[:-1]])
    p, n = np.add.reduceat(p, starts), np.add.reduceat(n, starts)
    below = np.cumsum(n) - n
    return float((p * (below + n / 2)).sum() / (p.sum() * n.sum()))


@case("intervals equal those of a bootstrap over patients written with NumPy, within the sampling error")
def _(_work):
    rng = np.random.default_rng(3)
    patients = np.repeat(np.arange(150), rng.integers(1, 12, 150))
    count, replicates = len(patients), 2000
    # Images of a patient agree in label and, mostly, in score: a bootstrap over images would be far too sure.
    labels = np.repeat((rng.random((150, 3)) < 0.3).astype(np.uint8), np.bincount(patients), axis=0)
    own = np.repeat(rng.normal(size=(150, 3)), np.bincount(patients), axis=0)
    scores = (own + 0.3 * rng.normal(size=(count, 3)) + labels).astype(np.float32)
    findings, mean = compute(scores, labels, patients, replicates, seed=5)
    single = compute(scores, labels, None, replicates)
    draws = np.empty((replicates, 4))
    for r in range(replicates):
        weights = np.bincount(rng.integers(0, 150, 150), minlength=150)[patients]
        draws[r, :3] = [auroc_weighted(scores[:, k], labels[:, k], weights) for k in range(3)]
        draws[r, 3] = draws[r, :3].mean()
    for k, (ours, alone) in enumerate(zip([*findings, mean], [*single[0], single[1]])):
        # A quantile q of B draws has the deviation sqrt(q (1 - q) / B) / density, for a normal 2.67 sigma / sqrt(B);
        # two of them differ by sqrt(2) of it.
        sigma = draws[:, k].std()
        allowed = 4.5 * np.sqrt(2) * 2.67 * sigma / np.sqrt(replicates)
        low, high = np.percentile(draws[:, k], [2.5, 97.5])
        assert abs(ours["auroc_low"] - low) < allowed and abs(ours["auroc_high"] - high) < allowed, (ours, low, high)
        assert alone["auroc_high"] - alone["auroc_low"] < 0.8 * (high - low), "patients make no difference"


@case("threads and their number change no bit of an interval")
def _(_work):
    rng = np.random.default_rng(4)
    scores, labels = draw_case(rng, 500, 0.1, 50)
    patients = rng.permutation(500) // 3
    results = [compute(scores, labels, patients, 101, threads=t) for t in (1, 2, 5)]
    assert results[0] == results[1] == results[2]
    assert results[0] != compute(scores, labels, patients, 101, seed=2)


# ---- evaluate.h --------------------------------------------------------------------------------------------------


def dataset():
    path = os.environ.get("CHEX_DATASET") or os.path.join(BUILD, "tests", "dataset")
    if not os.path.exists(os.path.join(path, "manifest.json")):
        raise Skip("the small data set is not made: make check does")
    return path


# As in check_ranks.py.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none")


def evaluate(out, *options, ranks=0, code=0, data=None):
    """Run evaluate-split with side=28 of 32; the folder and what it printed."""
    launch = [os.environ["MPIRUN"], "-np", ranks] if ranks else []
    done = run([*launch, program("evaluate-split"), f"data={data or dataset()}", f"out={out}", "side=28", "spread=8",
                *options], None, env=ENVIRONMENT if ranks else None)
    if "this build has no MPI" in done.stderr:
        raise Skip("this build has no MPI")
    assert code is None or done.returncode == code, done.stderr
    return out, done


def document(folder):
    found = json.loads(slurp(os.path.join(folder, "metrics.json")))
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "evaluation.schema.json"))))
    return found


@case("pandas reads the predictions, and scikit-learn finds the metrics in them")
def _(work):
    need(pd, "pandas")
    need(sk, "scikit-learn")
    undefined = 0
    for split in ("train", "val", "test"):
        folder, done = evaluate(os.path.join(work, split), f"split={split}")
        doc = document(folder)
        table = pd.read_csv(os.path.join(folder, "predictions.csv"), dtype={"patient": str})
        real = images(dataset(), split)
        info = next(s for s in manifest(dataset())["splits"] if s["name"] == split)
        assert list(table.image) == list(real), "every image once, in the order of the shards"
        assert [p.encode() for p in table.patient] == [r["patient"] for r in real.values()]
        assert set(table.split) == {split}
        assert list(table.columns[3:6]) == ["age", "sex", "view"]
        assert list(table.age) == [r["age"] for r in real.values()]
        assert [s.encode() for s in table.sex] == [r["sex"] for r in real.values()]
        assert [v.encode() for v in table["view"]] == [r["view"] for r in real.values()]
        assert list(table.columns[6:]) == [*(f"{kind}_{f}" for kind in ("prob", "label") for f in FINDINGS),
                                           "research_use_only"]
        labels = table[[f"label_{f}" for f in FINDINGS]].to_numpy()
        assert (labels == np.array([r["label"] for r in real.values()])).all()
        probabilities = table[[f"prob_{f}" for f in FINDINGS]].to_numpy(np.float32)
        assert doc["split"]["images"] == len(real) == info["images"] and doc["split"]["patients"] == info["patients"]
        assert doc["split"]["members_sha256"] == info["members_sha256"]
        assert doc["dataset_id"] == manifest(dataset())["dataset_id"]
        assert [f["name"] for f in doc["findings"]] == FINDINGS
        values = []
        for k, finding in enumerate(doc["findings"]):
            positives = int(labels[:, k].sum())
            assert (finding["positives"], finding["negatives"]) == (positives, len(real) - positives)
            assert finding["prevalence"] == positives / len(real)
            if positives == 0:
                assert finding["auroc"] == finding["auprc"] == {"value": None, "low": None, "high": None}
                assert finding["youden"] is finding["f1"] is None
                undefined += 1
                continue
            values.append(sk.roc_auc_score(labels[:, k], probabilities[:, k]))
            assert abs(finding["auroc"]["value"] - values[-1]) < EXACT
            precision = sk.average_precision_score(labels[:, k], probabilities[:, k])
            assert abs(finding["auprc"]["value"] - precision) < EXACT
            for point in (finding["youden"], finding["f1"]):
                assert point["optimistic"] is True
                called = probabilities[:, k] >= np.float32(point["threshold"])
                tn, fp, fn, tp = sk.confusion_matrix(labels[:, k], called, labels=[0, 1]).ravel()
                assert [tn, fp, fn, tp] == [point[n + "s"] for n in ("true_negative", "false_positive",
                                                                     "false_negative", "true_positive")]
                assert abs(point["sensitivity"] - tp / (tp + fn)) < EXACT
                assert abs(point["specificity"] - tn / (tn + fp)) < EXACT
        assert doc["mean"]["findings"] == len(values)
        assert abs(doc["mean"]["auroc"]["value"] - np.mean(values)) < EXACT
        p = np.where(labels == 1, probabilities, 1 - probabilities.astype(np.float64))
        assert abs(doc["loss"] + np.log(p).mean()) < 1e-6, (doc["loss"], -np.log(p).mean())
        assert doc["loss"] == float(done.stdout.split()[0]) and doc["bootstrap"]["replicates"] == 200
    assert undefined > 0, "the small data set lacks no finding: nothing was tested about n/a"


@case("micro-batches and threads change no byte of the output")
def _(work):
    for tta in ("none", "tencrop"):
        folders = [evaluate(os.path.join(work, f"{tta}{i}"), "split=train", f"tta={tta}", *options)[0] for i, options in
                   enumerate((("batch=8",), ("batch=1",), ("batch=7", "threads=1"), ("batch=100", "threads=3")))]
        for folder in folders[1:]:
            same_tree(folders[0], folder)


@case("nor do ranks")
def _(work):
    if not os.environ.get("MPIRUN"):
        raise Skip("no mpirun, or a build without MPI")
    alone, _ = evaluate(os.path.join(work, "alone"), "split=train", "tta=flip", "batch=4")
    for ranks in (2, 3, 4):
        together, _ = evaluate(os.path.join(work, f"ranks{ranks}"), "split=train", "tta=flip", "batch=4", ranks=ranks)
        same_tree(alone, together)
    few, _ = evaluate(os.path.join(work, "few"), "split=val", "batch=8", ranks=4)  # micro-batches for some of them only
    same_tree(evaluate(os.path.join(work, "few alone"), "split=val", "batch=8")[0], few)


def damaged(work, split):
    """A copy of the data set with a flipped pixel in the second record of a split; that image's name, and the
    shard's."""
    folder = os.path.join(work, "damaged")
    run(["cp", "-r", dataset(), folder])
    m = manifest(folder)
    shard = next(s for s in m["shards"] if s["split"] == split)
    path = os.path.join(folder, shard["name"])
    data = bytearray(slurp(path))
    data[m["dtype"]["itemsize"] + m["dtype"]["offsets"][0]] ^= 1
    write(path, bytes(data))
    return folder, list(images(dataset(), split))[1], shard["name"]


@case("a damaged record is named, or left out of everything")
def _(work):
    folder, name, shard = damaged(work, "val")
    _, done = evaluate(os.path.join(work, "stop"), data=folder, code=1)
    assert re.search(rf"checksum: '{re.escape(shard)}' record 1 \({re.escape(name)}\): ", done.stderr), done.stderr
    assert not os.listdir(os.path.join(work, "stop"))
    out, _ = evaluate(os.path.join(work, "skip"), "skip=1", data=folder)
    doc = document(out)
    assert doc["split"]["skipped"] == [{"shard": shard, "record": 1}]
    assert doc["split"]["images"] == len(images(dataset(), "val")) - 1
    whole, _ = evaluate(os.path.join(work, "whole"))
    lines = slurp(os.path.join(whole, "predictions.csv")).decode().splitlines()
    left = slurp(os.path.join(out, "predictions.csv")).decode().splitlines()
    assert left == [line for line in lines if not line.startswith(name)] and len(left) == len(lines) - 1
    if os.environ.get("MPIRUN"):
        same_tree(out, evaluate(os.path.join(work, "ranks"), "skip=1", "batch=3", data=folder, ranks=3)[0])


# ---- auroc.svg -----------------------------------------------------------------------------------------------------


def texts(browser):
    return browser.run("[...document.querySelectorAll('text')].map(t => t.textContent)")


def look(browser, work, folder):
    """Nothing is requested, overlaps or leaves the picture; every text is dark enough; the numbers are the
    document's."""
    path = os.path.join(folder, "auroc.svg")
    browser.open(path)
    assert not browser.complaints(), browser.complaints()
    assert len(browser.requests()) == 1, browser.requests()
    assert not browser.run(OVERLAPS), browser.run(OVERLAPS)[:8]
    doc, shown = document(folder), texts(browser)
    assert shown[0].startswith(f"AUROC {doc['mean']['auroc']['value']:.3f} ["), shown[0]
    assert shown[1].endswith(f" on split {doc['split']['name']}"), shown[1]
    assert any(doc["split"]["members_sha256"][:16] in t for t in shown) and f"of data set {doc['dataset_id']}" in shown
    assert "SYNTHETIC images and labels, drawn by chex-synth" in shown
    assert any("Research use only, not for diagnosis" in t for t in shown)
    good = [f for f in doc["findings"] if f["auroc"]["value"] is not None]
    for finding in good:
        assert f"{finding['auroc']['value']:.3f}" in shown
        low, high = finding["auroc"]["low"], finding["auroc"]["high"]
        assert ("[too few]" if low is None else f"[{low:.3f}, {high:.3f}]") in shown, finding
        assert f"{finding['positives']} positive, {100 * finding['prevalence']:.1f} %" in shown, (finding, shown)
        assert f"AUPRC {finding['auprc']['value']:.3f}" in shown
    assert shown.count("n/a (0 positives)") == 14 - len(good)
    few = [f for f in good if f["auroc"]["low"] is None]
    assert shown.count("[too few]") == len(few) > 0
    names = [n.replace("_", " ") for n in FINDINGS]
    order = [t for t in shown if t in names]
    by_value = [f["name"].replace("_", " ") for f in sorted(good, key=lambda f: -f["auroc"]["value"])]
    assert order[:len(good)] == by_value and sorted(order) == sorted(2 * names), order
    assert browser.run("document.querySelectorAll('polyline').length") == len(good)
    page = write(os.path.join(work, "page.html"), b"<!doctype html><body style='background:#888'>" + slurp(path))
    browser.open(page)
    papers = []
    for dark in (False, True):
        browser.dark(dark)
        assert not browser.run(CONTRAST), (dark, browser.run(CONTRAST)[:8])
        papers.append(browser.run("getComputedStyle(document.querySelector('.paper')).fill"))
    browser.dark(False)
    assert papers[0] == "rgb(255, 255, 255)" and papers[1] != papers[0], papers


@case("a browser draws auroc.svg, legible, with the numbers of the document")
def _(work):
    with Browser(1000, 950) as browser:
        for split, *options in (("train",), ("val",),
                                ("test", "tta=tencrop", "save=a-long-name-of-a-file.safetensors")):
            folder, _ = evaluate(os.path.join(work, split), f"split={split}", *options)
            look(browser, work, folder)


@case("on a phone auroc.svg fits the width, and no letter is smaller than 9.5 pixels")
def _(work):
    folder, _ = evaluate(os.path.join(work, "test"), "split=test", "tta=tencrop")
    with Browser(390, 800) as browser:
        for width in (390, 1280):
            browser.size(width, 800)
            browser.open(os.path.join(folder, "auroc.svg"))
            assert not browser.run(SMALL), (width, browser.run(SMALL)[:8])
            assert not browser.run(OVERLAPS), (width, browser.run(OVERLAPS)[:8])
            assert browser.run("document.documentElement.getBoundingClientRect().right") <= width


@case("each ROC curve has ticks with numbers at 0, 0.5 and 1 on both axes")
def _(work):
    folder, _ = evaluate(os.path.join(work, "out"), "split=train")
    text = slurp(os.path.join(folder, "auroc.svg")).decode()
    text = text[text.index("ROC curves"):]
    lines = [[float(v) for v in ends] for ends in re.findall(
        r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)" class="a"/>', text)]
    numbers = [(float(x), float(y), n) for x, y, n in re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" class="[me] n d">([\d.]+)</text>', text)]
    curves = re.findall(r'<polyline class="s0" points="([^"]*)"', text)
    assert curves and len(lines) == len(numbers) == 6 * len(curves), (len(lines), len(numbers), len(curves))
    for points in curves:
        (left, bottom), (right, top) = ([float(v) for v in p.split(",")] for p in
                                        (points.split()[0], points.split()[-1]))
        for share, name in ((0, "0"), (0.5, "0.5"), (1, "1")):
            x, y = left + share * (right - left), bottom + share * (top - bottom)
            assert any(abs(a - x) < 0.1 and b == bottom and a == c for a, b, c, _ in lines), (x, bottom)
            assert any(abs(b - y) < 0.1 and c == left and b == d for _, b, c, d in lines), (left, y)
            assert any(abs(a - x) < 0.1 and 0 < b - bottom < 20 and n == name for a, b, n in numbers), (x, name)
            assert any(0 < left - a < 20 and abs(b - y) < 6 and n == name for a, b, n in numbers), (y, name)


@case("the curves of auroc.svg have the areas that are written")
def _(work):
    folder, _ = evaluate(os.path.join(work, "out"), "split=train")
    text = slurp(os.path.join(folder, "auroc.svg")).decode()
    values = sorted((f["auroc"]["value"] for f in document(folder)["findings"] if f["auroc"]["value"] is not None),
                    reverse=True)
    curves = re.findall(r'<polyline class="s0" points="([^"]*)"', text)
    assert len(curves) == len(values)
    for value, points in zip(values, curves):
        x, y = np.array([[float(v) for v in p.split(",")] for p in points.split()]).T
        side = x[-1] - x[0]
        area = np.trapz(y[0] - y, x) / side ** 2
        assert abs(area - value) < 0.02, (area, value)


@case("auroc.svg draws what chance reaches: a line at 0.5 of the axis, and one in each curve")
def _(work):
    folder, _ = evaluate(os.path.join(work, "out"), "split=test")
    text = slurp(os.path.join(folder, "auroc.svg")).decode()
    at = [float(re.search(rf'<text x="([\d.]+)"[^>]*>{label}</text>', text).group(1))
          for label in ("0.50?", "chance")]
    lines = [[float(v) for v in ends] for ends in re.findall(
        r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)" class="c"/>', text)]
    upright = [line for line in lines if line[0] == line[2]]
    curves = text.count('<polyline class="s0"')
    assert at[0] == at[1] == upright[0][0] and len(upright) == 1, (at, upright)
    assert upright[0][3] - upright[0][1] > 300, upright
    assert len(lines) == 1 + curves and curves > 3, (len(lines), curves)


if __name__ == "__main__":
    sys.exit(case.main())
