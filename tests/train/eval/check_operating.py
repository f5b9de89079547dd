#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thresholds and calibration of a model, next to scikit-learn and an independent fit in NumPy.

    check_operating.py [PATTERN]      $CHECK_OPERATING, or in $BUILDDIR
"""
import json
import subprocess
import sys

from support import PATIENCE, Cases, Skip, program

try:
    import numpy as np
except ImportError:
    print("skip: NumPy is missing\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)
try:
    import sklearn.metrics as sk
    from sklearn.calibration import _SigmoidCalibration  # of CalibratedClassifierCV(method="sigmoid")
except ImportError:
    sk = None

case = Cases()
UNKNOWN = 255


def choose(logits, labels):
    """The document that check-operating prints."""
    text = logits.astype("=f4").tobytes() + labels.astype("u1").tobytes()
    command = [program("check-operating"), str(logits.shape[0]), str(logits.shape[1])]
    done = subprocess.run(command, input=text, capture_output=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def draw(seed, count, prevalence, slope=1.0, offset=0.0, spread=1.5):
    """Logits and labels of one finding; the logits are wrong by slope and offset."""
    rng = np.random.default_rng(seed)
    true = rng.normal(np.log(prevalence / (1 - prevalence)), spread, count)
    labels = (rng.random(count) < 1 / (1 + np.exp(-true))).astype(np.uint8)
    return ((true - offset) / slope).astype(np.float32), labels


def table(columns):
    return np.stack([c[0] for c in columns], 1), np.stack([c[1] for c in columns], 1)


def platt(logits, labels):
    """Platt 1999, solved by the Gauss-Newton steps of iteratively reweighted least squares, damped to be safe."""
    z, y = logits.astype(np.float64), labels.astype(np.float64)
    positives, negatives = y.sum(), (1 - y).sum()
    target = np.where(y == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    x = np.stack([(z - z.mean()) / z.std(), np.ones(len(z))], 1)
    w = np.zeros(2)
    for _ in range(500):
        p = 1 / (1 + np.exp(-x @ w))
        step = np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]) + 1e-9 * np.eye(2), x.T @ (target - p))
        w = w + step * min(1, 1 / np.abs(step).max())
    return w[0] / z.std(), w[1] - w[0] * z.mean() / z.std()


CASES = [draw(1, 3000, 0.1), draw(2, 3000, 0.02, slope=3, offset=-2), draw(3, 3000, 0.5, slope=0.2),
         draw(4, 3000, 0.3, spread=6)]


@case("a and b are those of an independent fit")
def _(work):
    found = choose(*table(CASES))
    for finding, (logits, labels) in zip(found["findings"], CASES):
        a, b = platt(logits, labels)
        assert finding["refused"] is None
        assert abs(finding["platt"]["a"] - a) < 1e-6 * max(1, abs(a)), (finding, a)
        assert abs(finding["platt"]["b"] - b) < 1e-6 * max(1, abs(b)), (finding, b)


@case("calibrated probabilities are scikit-learn's")
def _(work):
    if sk is None:
        raise Skip("scikit-learn is missing")
    found = choose(*table(CASES))
    for finding, (logits, labels) in zip(found["findings"], CASES):
        ours = 1 / (1 + np.exp(-(finding["platt"]["a"] * logits.astype(np.float64) + finding["platt"]["b"])))
        theirs = _SigmoidCalibration().fit(logits.astype(np.float64), labels).predict(logits.astype(np.float64))
        assert np.abs(ours - theirs).max() < 1e-3, np.abs(ours - theirs).max()  # L-BFGS stops earlier than Newton


def points(logits, labels):
    """All thresholds, of nine digits: an image is positive if its probability is at least the threshold."""
    p = (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)
    rows = []
    for t in np.unique(p):
        tp, fp = int(((p >= t) & (labels == 1)).sum()), int(((p >= t) & (labels == 0)).sum())
        rows.append((float(f"{t:.9g}"), tp, fp, tp / (labels == 1).sum(), fp / (labels == 0).sum()))
    return rows


@case("thresholds are the best by definition, also with ties and unknown labels")
def _(work):
    columns = [draw(seed, 400, 0.2) for seed in range(5)]
    columns[1] = (np.round(columns[1][0]), columns[1][1])  # ties
    columns[2][1][::3] = UNKNOWN
    found = choose(*table(columns))
    for finding, (logits, labels) in zip(found["findings"], columns):
        known = labels != UNKNOWN
        rows = points(logits[known], labels[known])
        assert (finding["positives"], finding["negatives"]) == ((labels == 1).sum(), (labels == 0).sum())
        best = max(r[3] - r[4] for r in rows)
        t, tp, fp = max(r[:3] for r in rows if abs(r[3] - r[4] - best) < 1e-12)
        assert finding["youden"] == {"threshold": t, "true_positives": tp, "false_positives": fp}
        t, tp, fp = max(r[:3] for r in rows if r[1] * 10 >= 9 * (labels == 1).sum())
        assert finding["sensitivity_90"] == {"threshold": t, "true_positives": tp, "false_positives": fp}
        if sk is not None:
            fpr, tpr, _ = sk.roc_curve(labels[known], logits[known], drop_intermediate=False)
            assert abs(best - (tpr - fpr).max()) < 1e-6


@case("below ten positives or negatives, or with one output, there is no number")
def _(work):
    few = draw(7, 200, 0.5)[0]
    label = {n: (np.arange(200) < n).astype(np.uint8) for n in (0, 1, 9, 10, 190, 191, 200)}
    columns = [(few, label[n]) for n in label] + [(np.zeros(200, np.float32), label[10])]
    found = choose(*table(columns))["findings"]
    reasons = [f["refused"] for f in found]
    assert reasons == ["fewer than 10 positives"] * 3 + [None] * 2 + ["fewer than 10 negatives"] * 2 + [
        "all outputs are equal"], reasons
    for finding in found:
        parts = [finding["platt"], finding["youden"], finding["sensitivity_90"]]
        assert all(p is None for p in parts) if finding["refused"] else all(parts), finding
    assert found[3]["sensitivity_90"]["true_positives"] == 9, "9 of 10 positives are a sensitivity of 0.90"


@case("three patients are too few for any finding")
def _(work):
    found = choose(np.array([[1.0], [0.0], [-1.0]], np.float32), np.array([[1], [0], [0]], np.uint8))
    assert (found["images"], found["patients"]) == (3, 3)
    assert found["findings"][0]["refused"] == "fewer than 10 positives" and found["findings"][0]["platt"] is None


if __name__ == "__main__":
    sys.exit(case.main())
