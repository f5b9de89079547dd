#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect diff --split: the predictions of two runs, next to an independent computation in NumPy.

    check_compare.py [PATTERN]

The runs are folders with CSV files that are made here.  NumPy draws the same patients and swaps (Philox4x32-10, Salmon
et al. 2011) and computes every AUROC by counting pairs.
"""
import csv
import json
import os
import sys

from support import SOURCE, Cases, program, run, says, write

try:
    import numpy as np
except ImportError:
    print("skip: NumPy is missing\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)
try:
    from sklearn.metrics import cohen_kappa_score
except ImportError:
    cohen_kappa_score = None
try:
    import jsonschema
except ImportError:
    jsonschema = None
from draws import SWAP, bits, drawn

case = Cases()
FINDINGS = ["Mass", "Nodule", "Hernia"]
HASH = "0123456789abcdef" * 4
DRAWS = 1000


# ---- the same numbers, computed again --------------------------------------------------------------------------------


def auroc(scores, labels, weights=None):
    weights = np.ones(len(scores)) if weights is None else weights
    p, n = labels == 1, labels == 0
    if weights[p].sum() == 0 or weights[n].sum() == 0:
        return np.nan
    above = (scores[p][:, None] > scores[n]) + 0.5 * (scores[p][:, None] == scores[n])
    return weights[p] @ above @ weights[n] / (weights[p].sum() * weights[n].sum())


def ranks(scores, known):
    """Twice the rank of each known score of a finding among those of the same run; 0: unknown."""
    found = np.zeros(scores.shape)
    for k, rows in enumerate(known):
        _, at, count = np.unique(scores[rows, k], return_inverse=True, return_counts=True)
        found[rows, k] = (2 * np.cumsum(count) - count)[at]
    return found


def expected(a, b, labels, patient):
    """(difference, low, high, p) of each finding and of the mean, and Holm's p; None: not tested."""
    patients, findings = int(patient.max()) + 1, range(labels.shape[1])
    known = [labels[:, k] != 255 for k in findings]

    def difference(k, x, y, weights=None):
        w = None if weights is None else weights[known[k]]
        return auroc(y[known[k], k], labels[known[k], k], w) - auroc(x[known[k], k], labels[known[k], k], w)

    observed = np.array([difference(k, a, b) for k in findings])
    defined = [k for k in findings if not np.isnan(observed[k])]
    x, y = ranks(a, known), ranks(b, known)
    draws, swaps = np.full((DRAWS, len(findings)), np.nan), np.full((DRAWS, len(findings)), np.nan)
    for r in range(DRAWS):
        weights = drawn(r, patients)[patient].astype(float)
        flip = (bits(SWAP, r + 1, patients) >> np.uint64(63)).astype(bool)[patient][:, None]
        for k in defined:
            draws[r, k] = difference(k, a, b, weights)
            swaps[r, k] = difference(k, np.where(flip, y, x), np.where(flip, x, y))
    rows = []
    for value, drawn_, swapped, few in [(observed[k], draws[:, k], swaps[:, k],
                                         len(set(patient[labels[:, k] == 1])) < 5) for k in findings] + [
            (observed[defined].mean(), np.nanmean(draws[:, defined], 1), swaps[:, defined].mean(1), False)]:
        if np.isnan(value) or few:
            rows.append((value, None, None, None))
            continue
        low, high = np.nanpercentile(drawn_, [2.5, 97.5])
        rows.append((value, low, high, (1 + (abs(swapped) >= abs(value) - 1e-12).sum()) / (1 + DRAWS)))
    tested = sorted((p, k) for k, (*_, p) in enumerate(rows[:-1]) if p is not None)
    holm, least = {}, 0
    for i, (p, k) in enumerate(tested):
        least = holm[k] = max(least, min(1, (len(tested) - i) * p))
    return rows, holm


# ---- runs ----------------------------------------------------------------------------------------------------------


def make_run(folder, scores, labels, patient, members=HASH, names=None, more="", findings=FINDINGS):
    os.makedirs(folder)
    lines = ["image,patient,split,age,sex,view," + ",".join([f"prob_{f}" for f in findings] +
                                                            [f"label_{f}" for f in findings]) + (more and ",leaky")]
    for i, row in enumerate(scores):
        name = names[i] if names else f"{i:05d}.png"
        lines.append(f"{name},{patient[i]:08d},test,50,F,PA," + ",".join(
            [f"{x:.9g}" for x in row] + ["" if x == 255 else str(x) for x in labels[i]]) + more)
    write(os.path.join(folder, "predictions-test.csv"), ("\n".join(lines) + "\n").encode())
    write(os.path.join(folder, "metrics-test.json"), json.dumps({"split": {"members_sha256": members}}).encode())
    return folder


def put_thresholds(folder, thresholds, findings=FINDINGS):
    """Write thresholds of val, as chex-train does; None: refused."""
    document = json.loads(open(f"{folder}/metrics-test.json", encoding="utf-8").read())
    document["findings"] = [{"name": f, "operating": x and {"youden": {"threshold": x, "chosen_on": "val"}}}
                            for f, x in zip(findings, thresholds)]
    write(f"{folder}/metrics-test.json", json.dumps(document).encode())


def draw(seed, patients=60, each=3, levels=0, gain=0.5):
    """Scores of A and B, labels, patients.  Patients are numbered in the order of first appearance."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), each)
    labels = (rng.random((len(patient), 3)) < (0.3, 0.15, 0.01)).astype(np.uint8)
    labels[:, 2] = 0
    labels[:2, 2] = 1  # of one patient
    labels[rng.random(labels.shape) < 0.1] = 255
    shared = rng.normal(size=labels.shape) + (labels == 1)
    scores = [1 / (1 + np.exp(-(shared + rng.normal(size=labels.shape) * 0.5 + extra * (labels == 1))))
              for extra in (0, gain)]
    if levels:
        scores = [np.round(s * levels) / levels for s in scores]
    return [s.astype(np.float32) for s in scores], labels, patient


def diff(*words, code=0):
    done = run([program("chex-inspect"), "diff", "--split", "test", "--json", *words], code)
    found = json.loads(done.stdout)
    if jsonschema:
        jsonschema.validate(found, json.loads(open(os.path.join(SOURCE, "schemas", "inspect.schema.json"),
                                                   encoding="utf-8").read()))
    return found["results"][0] if found["results"] else done


@case("differences, intervals, p and Holm's p are NumPy's with the same draws, with ties and unknown labels")
def _(work):
    for i, (levels, gain) in enumerate(((0, 0.5), (6, 0.0), (12, 1.0))):
        (a, b), labels, patient = draw(i, levels=levels, gain=gain)
        found = diff(make_run(f"{work}/a{i}", a, labels, patient), make_run(f"{work}/b{i}", b, labels, patient))
        rows, holm = expected(a, b, labels, patient)
        assert (found["images"], found["patients"], found["mean"]["findings"]) == (180, 60, 3)
        for k, (ours, theirs) in enumerate(zip([*found["findings"], found["mean"]], rows)):
            got = [ours["difference"], ours.get("low"), ours.get("high"), ours.get("p")]
            for x, y in zip(got, theirs):
                assert (x is None) == (y is None) and (x is None or abs(x - y) < 1e-9), (k, got, theirs)
            assert abs(ours.get("holm", 0) - holm.get(k, 0)) < 1e-12, (ours, holm)
        assert "p" not in found["findings"][2], "its positives are of one patient"


@case("the same run twice differs by nothing, and p is 1")
def _(work):
    (a, _), labels, patient = draw(3)
    found = diff(make_run(f"{work}/a", a, labels, patient), f"{work}/a")
    for row in [*found["findings"][:2], found["mean"]]:
        assert (row["difference"], row["low"], row["high"], row["p"]) == (0, 0, 0, 1), row
    assert found["changed"] == []


@case("with one image a patient, the interval is that of DeLong")
def _(work):
    (a, b), labels, patient = draw(4, patients=900, each=1)
    found = diff(make_run(f"{work}/a", a, labels, patient), make_run(f"{work}/b", b, labels, patient))["findings"][0]
    known = labels[:, 0] != 255
    y = labels[known, 0]
    parts = []
    for scores in (a[known, 0], b[known, 0]):
        above = (scores[y == 1][:, None] > scores[y == 0]) + 0.5 * (scores[y == 1][:, None] == scores[y == 0])
        parts.append((above.mean(1), above.mean(0)))
    positives, negatives = parts[1][0] - parts[0][0], parts[1][1] - parts[0][1]
    se = np.sqrt(positives.var(ddof=1) / len(positives) + negatives.var(ddof=1) / len(negatives))
    width = (found["high"] - found["low"]) / (2 * 1.959964)
    # The standard error of a percentile interval of 1,000 draws is about 4 %.
    assert abs(width / se - 1) < 0.12, (width, se)


@case("threads and the order of the lines change no number; the largest changes are listed by image")
def _(work):
    (a, b), labels, patient = draw(5)
    first = diff(make_run(f"{work}/a", a, labels, patient), make_run(f"{work}/b", b, labels, patient), "-j", "1")
    order = np.random.default_rng(1).permutation(len(a))
    again = diff(f"{work}/a", make_run(f"{work}/c", b[order], labels[order], patient[order],
                                       names=[f"{i:05d}.png" for i in order]), "-j", "3")
    assert {**first, "paths": 0} == {**again, "paths": 0}
    by = abs(b - a).max(1)
    assert [c["image"] for c in first["changed"]] == [f"{i:05d}.png" for i in np.argsort(-by, kind="stable")[:20]]
    top = first["changed"][0]
    k = FINDINGS.index(top["finding"])
    i = int(top["image"][:5])
    assert abs(top["b"] - top["a"]) == by[i] and top["label"] == (None if labels[i, k] == 255 else labels[i, k])


@case("a run whose probabilities are all higher, in the same order, has the same numbers")
def _(work):
    (a, b), labels, patient = draw(7)
    first = diff(make_run(f"{work}/a", a, labels, patient), make_run(f"{work}/b", b, labels, patient))
    again = diff(f"{work}/a", make_run(f"{work}/c", 0.5 + 0.5 * b.astype(float), labels, patient))
    assert first["findings"] == again["findings"] and first["mean"] == again["mean"], (first, again)


@case("kappa of the flags is scikit-learn's; without a threshold, or if no flag differs, there is none")
def _(work):
    (a, b), labels, patient = draw(11, levels=40)
    make_run(f"{work}/a", a, labels, patient)
    make_run(f"{work}/b", b, labels, patient)
    thresholds = [(0.6, 0.7), (0.525, 0.5), (None, 0.5)]  # 0.525 is a probability of the file
    for side, folder in enumerate("ab"):
        put_thresholds(f"{work}/{folder}", [pair[side] for pair in thresholds])
    found = diff(f"{work}/a", f"{work}/b")["findings"]
    for k in (0, 1):
        x, y = a[:, k] >= np.float32(thresholds[k][0]), b[:, k] >= np.float32(thresholds[k][1])
        got = [found[k][name] for name in ("flagged_a", "flagged_b", "flagged_both")]
        assert got == [x.sum(), y.sum(), (x & y).sum()], (k, got)
        agreed, chance = (x == y).mean(), x.mean() * y.mean() + (1 - x.mean()) * (1 - y.mean())
        assert abs(found[k]["kappa"] - (agreed - chance) / (1 - chance)) < 1e-12, (k, found[k])
        if cohen_kappa_score:
            assert abs(found[k]["kappa"] - cohen_kappa_score(x, y)) < 1e-12, (k, found[k])
    assert (a[:, 1] == np.float32(0.525)).any(), "a probability at the threshold is a flag"
    assert not {"kappa", "flagged_a"} & set(found[2]), found[2]
    text = run([program("chex-inspect"), "diff", "--split", "test", f"{work}/a", f"{work}/b"]).stdout
    assert f" {found[0]['kappa']:.3f}\n" in text and "at its own threshold of val" in text, text
    put_thresholds(f"{work}/a", [1e-6, 0.5, 0.5])
    put_thresholds(f"{work}/b", [1e-7, 0.5, 0.5])
    found = diff(f"{work}/a", f"{work}/b")["findings"][0]
    assert "kappa" not in found and found["flagged_both"] == len(a), found


def mean_auroc(scores, labels, patient):
    """(value, low, high) of the mean AUROC."""
    findings = range(labels.shape[1])
    known = [labels[:, k] != 255 for k in findings]

    def mean(weights=None):
        return np.nanmean([auroc(scores[known[k], k], labels[known[k], k],
                                 None if weights is None else weights[known[k]]) for k in findings])

    draws = [mean(drawn(r, int(patient.max()) + 1)[patient].astype(float)) for r in range(DRAWS)]
    return mean(), *np.percentile(draws, [2.5, 97.5])


def put_options(folder, **options):
    write(f"{folder}/run.json", json.dumps({"options": options}).encode())


@case("the table of four runs has NumPy's numbers, the options that differ, seeds and the ensemble")
def _(work):
    (a, b), labels, patient = draw(12, patients=40, levels=50)
    (c, d), *_ = draw(13, patients=40, gain=1.0)
    runs = [a, b, c, d]
    common = {"crop": 224, "output": "x", "ema": 0, "limit": "all", "augment": "flip"}
    for i, (scores, lr, seed) in enumerate(zip(runs, (0.001, 0.001, 0.01, 0.001), ("1", "2", "2", "3"))):
        make_run(f"{work}/{i}", scores, labels, patient)
        put_options(f"{work}/{i}", **{**common, "output": str(i), "threads": i}, lr=lr, seed=seed)
    paths = [f"{work}/{i}" for i in range(4)]
    found = diff(*paths)
    assert (found["kind"], found["images"], found["patients"], found["findings"]) == ("runs", 120, 40, 3)
    ensemble = np.mean([s.astype(np.float64) for s in runs], 0).astype(np.float32)
    tested = []
    for i, (row, scores) in enumerate(zip([*found["runs"], found["ensemble"]], [*runs, ensemble])):
        wanted = mean_auroc(scores, labels, patient)
        assert np.allclose([row["auroc"], row["low"], row["high"]], wanted, atol=1e-9), (i, row, wanted)
        each = [auroc(scores[labels[:, k] != 255, k], labels[labels[:, k] != 255, k]) for k in range(3)]
        assert row["lowest"]["finding"] == FINDINGS[int(np.argmin(each))]
        assert abs(row["lowest"]["auroc"] - min(each)) < 1e-9
        if i == 0:
            assert row["difference"] is row["p"] is row["holm"] is row["difference_low"] is None, row
            continue
        wanted = expected(a, scores, labels, patient)[0][-1]
        got = [row[name] for name in ("difference", "difference_low", "difference_high", "p")]
        assert np.allclose(got, wanted, atol=1e-9), (i, got, wanted)
        tested.append((row["p"], row["holm"]))
    least = 0
    for i, (p, holm) in enumerate(sorted(tested)):
        least = max(least, min(1, (len(tested) - i) * p))
        assert abs(holm - least) < 1e-12, tested
    assert [run["options"] for run in found["runs"]] == [
        {"lr": "0.001", "seed": "1"}, {"lr": "0.001", "seed": "2"}, {"lr": "0.01", "seed": "2"},
        {"lr": "0.001", "seed": "3"}], found["runs"]
    group, = found["seeds"]
    values = np.array([found["runs"][i]["auroc"] for i in (0, 1, 3)])
    assert group["runs"] == [1, 2, 4]
    assert np.allclose([group[n] for n in ("mean", "sd", "min", "max")],
                       [values.mean(), values.std(ddof=1), values.min(), values.max()], atol=1e-12), group
    assert diff(*paths, "-j", "3") == found
    text = run([program("chex-inspect"), "diff", "--split", "test", *paths]).stdout
    assert "runs 1, 2 and 4 differ only in their seed" in text and "variance between seeds" in text, text
    assert "research use only" in text and "best" not in text.lower() and f"{work}/2: lr 0.01, seed 2" in text, text
    table = run([program("chex-inspect"), "diff", "--split", "test", "--format", "csv", *paths]).stdout.splitlines()
    rows = list(csv.DictReader(table))
    assert [row["run"] for row in rows] == ["1", "2", "3", "4", "ensemble"]
    assert all(list(row)[-1] == "research_use_only" and row["research_use_only"] == "1" for row in rows)
    assert rows[2]["options"] == "lr=0.01 seed=2" and rows[4]["path"] == rows[0]["p"] == ""
    assert abs(float(rows[3]["difference"]) - found["runs"][3]["difference"]) < 1e-8


@case("a table of runs: other splits are 6, missing images 1; a run of another program has no options")
def _(work):
    (a, b), labels, patient = draw(14)
    make_run(f"{work}/a", a, labels, patient)
    make_run(f"{work}/b", b[3:], labels[3:], patient[3:], names=[f"{i:05d}.png" for i in range(3, len(b))])
    make_run(f"{work}/c", b, labels, patient, members="f" * 64)
    make_run(f"{work}/d", b, labels, patient, more=",1")
    says(run([program("chex-inspect"), "diff", "--split", "test", *(f"{work}/{n}" for n in "abc")], 6),
         f"{HASH} in run 1, {'f' * 64} in run 3")
    for name, seed in (("a", "1"), ("b", "2")):
        put_options(f"{work}/{name}", seed=seed)
    found = diff(f"{work}/a", f"{work}/d", f"{work}/b", code=1)
    assert found["images"] == 177 and [r["left_out"] for r in found["runs"]] == [3, 3, 0], found
    assert [r["options"] for r in found["runs"]] == [{"seed": "1"}, None, {"seed": "2"}]
    assert [r["leaky"] for r in found["runs"]] == [False, True, False] and found["seeds"][0]["runs"] == [1, 3]
    done = run([program("chex-inspect"), "diff", "--split", "test", *(f"{work}/{n}" for n in "adb")], 1)
    assert "options not known" in done.stdout and "leaky" in done.stdout, done.stdout
    write(f"{work}/d/run.json", b'{"options": {"a\x1b[31m": "\xff"}}')
    says(run([program("chex-inspect"), "diff", "--split", "test", *(f"{work}/{n}" for n in "adb")], 6), "run.json")
    write(f"{work}/d/run.json", b'{"options": {"a\\u001b[31m": "b\\u001b[31m", "seed": [1], "x": {}, "y": true}}')
    for form in ("table", "csv"):
        done = run([program("chex-inspect"), "diff", "--split", "test", "--format", form,
                    *(f"{work}/{n}" for n in "adb")], 1)
        assert "\x1b" not in done.stdout and "a\\x1b[31m" in done.stdout, done.stdout
    few = np.array([[1, 0, 255], [0, 0, 255], [0, 0, 255]], np.uint8)
    for name in "xyz":
        make_run(f"{work}/{name}", np.full((3, 3), 0.5, np.float32), few, np.arange(3))
    found = diff(*(f"{work}/{n}" for n in "xyz"))
    assert found["ensemble"]["auroc"] == 0.5 and found["ensemble"]["p"] is found["ensemble"]["low"] is None, found
    for name in "uvw":
        make_run(f"{work}/{name}", np.full((3, 3), 0.5, np.float32), few * 0, np.arange(3))
    found = diff(*(f"{work}/{n}" for n in "uvw"))
    assert found["findings"] == 0 and found["ensemble"]["auroc"] is found["ensemble"]["lowest"] is None, found
    assert "n/a" in run([program("chex-inspect"), "diff", "--split", "test", *(f"{work}/{n}" for n in "uvw")]).stdout


@case("254 findings: each has NumPy's numbers, Holm counts all of them, and 255 are refused")
def _(work):
    rng, count = np.random.default_rng(15), 254
    findings = [f"Finding {i}" for i in range(count + 1)]
    patient = np.repeat(np.arange(20), 2)
    labels = (rng.random((40, count)) < 0.5).astype(np.uint8)
    labels[:, 7] = 0
    runs = [(rng.random((40, count)).round(2) + labels * gain).astype(np.float32) / 2 for gain in (0.1, 0.6, 0.3)]
    for name, scores in zip("abc", runs):
        make_run(f"{work}/{name}", scores, labels, patient, findings=findings[:count])
        put_thresholds(f"{work}/{name}", [0.3] * count, findings)
    found = diff(f"{work}/a", f"{work}/b")
    rows = found["findings"]
    assert [row["finding"] for row in rows] == findings[:count] and found["mean"]["findings"] == count - 1
    some = [0, 7, 100, 253]
    wanted, _holm = expected(runs[0][:, some], runs[1][:, some], labels[:, some], patient)
    for k, theirs in zip(some, wanted):
        for name, value in zip(("difference", "low", "high", "p"), theirs):
            assert (value is None or np.isnan(value)) == (name not in rows[k]), (k, name)
            assert name not in rows[k] or abs(rows[k][name] - value) < 1e-9, (k, name, rows[k], value)
    tested = sorted((row["p"], row["holm"]) for row in rows if "p" in row)
    assert len(tested) == count - 1
    least = 0
    for i, (p, holm) in enumerate(tested):
        least = max(least, min(1, (len(tested) - i) * p))
        assert abs(holm - least) < 1e-12, (i, p, holm, least)
    assert abs(found["mean"]["difference"] - np.mean([row["difference"] for row in rows if "difference" in row])) < 1e-9
    x, y = (scores >= np.float32(0.3) for scores in runs[:2])
    assert [row["flagged_both"] for row in rows] == (x & y).sum(0).tolist()
    words = [program("chex-inspect"), "diff", "--split", "test", f"{work}/a", f"{work}/b", "--format"]
    lines = list(csv.DictReader(run([*words, "csv"]).stdout.splitlines()))
    assert len(lines) == count and all(list(line)[-1] == "research_use_only" for line in lines)
    assert {line["research_use_only"] for line in lines} == {"1"} and "research_use_only" not in rows[0]
    assert all(json.loads(line)["research_use_only"] == 1 for line in run([*words, "jsonl"]).stdout.splitlines())
    table = diff(f"{work}/a", f"{work}/b", f"{work}/c")
    assert table["runs"][1]["difference"] == found["mean"]["difference"] and table["findings"] == count - 1
    make_run(f"{work}/d", np.full((40, 255), 0.5), np.zeros((40, 255), np.uint8), patient, findings=findings)
    says(run([program("chex-inspect"), "diff", "--split", "test", f"{work}/a", f"{work}/d"], 6),
         "more than 254 findings")


@case("different splits: 6 and both hashes")
def _(work):
    (a, b), labels, patient = draw(6)
    make_run(f"{work}/a", a, labels, patient)
    make_run(f"{work}/b", b, labels, patient, members="f" * 64)
    says(run([program("chex-inspect"), "diff", "--split", "test", f"{work}/a", f"{work}/b"], 6), HASH, "f" * 64)


@case("images of only one run are left out and counted: 1")
def _(work):
    (a, b), labels, patient = draw(7)
    make_run(f"{work}/a", a, labels, patient)
    make_run(f"{work}/b", b[3:], labels[3:], patient[3:], names=[f"{i:05d}.png" for i in range(3, len(b))])
    found = diff(f"{work}/a", f"{work}/b", code=1)
    assert (found["only_a"], found["only_b"], found["images"]) == (3, 0, 177)


@case("three patients, one class: no interval and no p")
def _(work):
    labels = np.array([[1, 0, 255], [0, 0, 255], [0, 0, 255]], np.uint8)
    scores = np.array([[0.9, 0.1, 0.5], [0.1, 0.2, 0.5], [0.2, 0.3, 0.5]], np.float32)
    a = make_run(f"{work}/a", scores, labels, np.arange(3))
    b = make_run(f"{work}/b", 1 - scores, labels, np.arange(3))
    found = diff(a, b)
    assert found["findings"][0] == {"finding": "Mass", "positives": 1, "negatives": 2, "a": 1, "b": 0, "difference": -1}
    assert set(found["findings"][1]) == set(found["findings"][2]) == {"finding", "positives", "negatives"}
    assert found["mean"]["p"] is found["mean"]["low"] is found["mean"]["high"] is None
    done = run([program("chex-inspect"), "diff", "--split", "test", a, b])
    assert all(word in done.stdout for word in ("too few", "n/a", "research use only")), done.stdout


@case("files that do not fit are refused with the line")
def _(work):
    (a, b), labels, patient = draw(8)
    make_run(f"{work}/a", a, labels, patient)
    good = open(f"{work}/a/predictions-test.csv", encoding="utf-8").read().splitlines()
    row = good[1].split(",")
    cases = [(lambda t: [t[0].replace("patient,", "person,"), *t[1:]], "no column 'patient'"),
             (lambda t: [t[0].replace("label_Mass", "label_Mess"), *t[1:]], "no column 'label_Mass'"),
             (lambda t: [t[0].replace("prob_Nodule", "prob_Mass"), *t[1:]], "two columns 'prob_Mass'"),
             (lambda t: [t[0].replace("prob_", "p_"), *t[1:]], "no column 'prob_"),
             (lambda t: t[:1], "no image"),
             (lambda t: [t[0], ",".join(row[:6] + ["nan"] + row[7:]), *t[2:]], ":2: .*probability of 'Mass' is 'nan'"),
             (lambda t: [t[0], ",".join(row[:6] + ["1.5"] + row[7:]), *t[2:]], "is '1.5'"),
             (lambda t: [t[0], ",".join(row[:9] + ["2"] + row[10:]), *t[2:]], "label of 'Mass' is '2'"),
             (lambda t: [t[0], ",".join(row[:5]), *t[2:]], "5 columns, 12 are needed"),
             (lambda t: [*t, t[1]], "twice"),
             (lambda t: [t[0], ",".join([row[0], "77777777", *row[2:]]), *t[2:]], "different patients"),
             (lambda t: [t[0].replace("Hernia", "Edema"), *t[1:]], "different findings: number 3"),
             (lambda t: [t[0], *[",".join(["x" + r.split(",")[0], *r.split(",")[1:]]) for r in t[1:]]],
              "no image is in both")]
    for i, (change, words) in enumerate(cases):
        folder = make_run(f"{work}/b{i}", b, labels, patient)
        write(f"{folder}/predictions-test.csv", ("\n".join(change(good)) + "\n").encode())
        says(run([program("chex-inspect"), "diff", "--split", "test", f"{work}/a", folder], 6), words)
    other = labels.copy()
    other[0, 0] = 1 - (other[0, 0] == 1)
    make_run(f"{work}/other", b, other, patient)
    says(run([program("chex-inspect"), "diff", "--split", "test", f"{work}/a", f"{work}/other"], 6), "different labels")
    says(run([program("chex-inspect"), "diff", "--split", "val", f"{work}/a", f"{work}/a"], 3), "metrics-val.json")
    write(f"{work}/other/metrics-test.json", b"{")
    says(run([program("chex-inspect"), "diff", "--split", "test", f"{work}/a", f"{work}/other"], 6), "not a file of")


@case("a name with an escape sequence is printed without it")
def _(work):
    (a, _), labels, patient = draw(10)
    folder = make_run(f"{work}/a", a, labels, patient)
    text = open(f"{folder}/predictions-test.csv", encoding="utf-8").read()
    write(f"{folder}/predictions-test.csv", text.replace("Mass", "Ma\x1b[31mss").encode())
    for form in ("table", "csv"):
        done = run([program("chex-inspect"), "diff", "--split", "test", "--format", form, folder, folder])
        assert "\x1b" not in done.stdout and "Ma\\x1b[31mss" in done.stdout, done.stdout


@case("a leaky run is marked")
def _(work):
    (a, b), labels, patient = draw(9)
    make_run(f"{work}/a", a, labels, patient)
    make_run(f"{work}/b", b, labels, patient, more=",1")
    assert diff(f"{work}/a", f"{work}/b")["leaky"] == [False, True]
    assert "leaky    B" in run([program("chex-inspect"), "diff", "--split", "test", f"{work}/a", f"{work}/b"]).stdout


if __name__ == "__main__":
    sys.exit(case.main())
