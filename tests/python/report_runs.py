# SPDX-License-Identifier: Apache-2.0
"""Runs for the tests of `chex-inspect report RUN`: folders of files made here, and the same numbers computed again."""
import json
import os
import sys

from support import SOURCE, program, run, slurp, write

try:
    import numpy as np
    from sklearn.metrics import brier_score_loss, roc_auc_score
except ImportError:
    print("skip: NumPy or scikit-learn is missing\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)
try:
    import jsonschema
except ImportError:
    jsonschema = None

FINDINGS = ["Mass", "Nodule", "Edema", "Hernia"]
HASH, DATASET = "0123456789abcdef" * 4, "0123456789abcdef"
DRAWS, BINS = 1000, 15
INSPECT = program("chex-inspect")


# ---- runs ----------------------------------------------------------------------------------------------------------


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


class Images:
    """Images of a split: probabilities, labels (255: unknown), and who is on them."""

    def __init__(self, seed, patients=250, each=3, findings=4, gain=1.5):
        rng = np.random.default_rng(seed)
        n = patients * each
        self.patient = np.repeat(np.arange(patients), each)
        self.age = np.repeat(rng.integers(5, 95, patients), each).astype(float)
        self.sex = np.repeat(rng.choice(list("MF"), patients), each)
        self.view = rng.choice(["PA", "AP"], n)
        base = np.array([-1.5, -2, -2.5, -3])[:findings]
        truth = base + 0.02 * (self.age[:, None] - 50) + 0.8 * (self.view == "AP")[:, None]
        self.labels = (rng.random((n, findings)) < sigmoid(truth)).astype(np.uint8)
        self.labels[rng.random(self.labels.shape) < 0.05] = 255
        self.p = sigmoid(0.6 * truth + gain * (self.labels == 1) + rng.normal(size=truth.shape)).astype(np.float32)
        self.age[rng.random(n) < 0.02] = np.nan
        self.sex[rng.random(n) < 0.02] = "U"
        self.follow_up = np.tile(np.arange(each), patients)

    def csv(self, split, names=None):
        names = names or FINDINGS[:self.p.shape[1]]
        lines = ["image,patient,split,age,sex,view," + ",".join([f"prob_{f}" for f in names] +
                                                                [f"label_{f}" for f in names])]
        for i, row in enumerate(self.p):
            age = "" if np.isnan(self.age[i]) else f"{self.age[i]:g}"
            name = f"{i:05d}.png" if self.follow_up[i] < 0 else f"{self.patient[i]:08d}_{self.follow_up[i]:03d}.png"
            lines.append(f"{name},{self.patient[i]:08d},{split},{age},{self.sex[i]},{self.view[i]}," + ",".join(
                [f"{x:.9g}" for x in row] + ["" if x == 255 else str(x) for x in self.labels[i]]))
        return ("\n".join(lines) + "\n").encode()


def operating(chosen, k):
    return {"positives": 30, "negatives": 300, "refused": None, "platt": {"a": 1.2, "b": -0.3 - 0.1 * k},
            **{rule: {"optimistic": False, "chosen_on": "val", "threshold": t, "value": 0.5, "sensitivity": 0.8,
                      "specificity": 0.7, "precision": 0.5, "true_positives": 1, "false_positives": 1,
                      "true_negatives": 1, "false_negatives": 1} for rule, t in chosen.items()}}


THRESHOLDS = {"youden": 0.25, "sensitivity_90": 0.125}


def make_run(folder, images, train=None, names=None, change=lambda metrics: None):
    os.makedirs(folder, exist_ok=True)
    names = names or FINDINGS[:images.p.shape[1]]
    write(f"{folder}/predictions-test.csv", images.csv("test", names))
    if train:
        write(f"{folder}/predictions-train.csv", train.csv("train", names))
    metrics = {"format": 1, "tool": "chex-train", "version": "0.1.0", "dataset_id": DATASET,
               "split": {"name": "test", "members_sha256": HASH, "images": len(images.p),
                         "patients": len(set(images.patient)), "skipped": []},
               "model": {"name": "densenet-micro", "checkpoint_sha256": "f" * 64, "step": 7, "epochs": 1.5},
               "views": {"tta": "none"}, "operating": {"chosen_on": "val", "optimistic": False},
               "findings": [{"name": name, "positives": int((images.labels[:, k] == 1).sum()),
                             "operating": operating(THRESHOLDS, k)} for k, name in enumerate(names)]}
    change(metrics)
    write(f"{folder}/metrics-test.json", json.dumps(metrics).encode())
    write(f"{folder}/run.json", json.dumps({
        "dataset": {"path": "/nowhere/shards", "id": DATASET, "splits": [
            {"name": "train", "use": "train", "images": 10, "patients": 5},
            {"name": "test", "use": None, "images": len(images.p), "patients": 3}]},
        "sessions": [{"command": ["/secret/bin/chex-train", "-d", "hidden", "-o", "/secret/run", "--epochs", "2",
                                  "--init", "/secret/weights.safetensors"]}]}).encode())
    return folder


def edit_run(folder, change):
    facts = json.loads(slurp(f"{folder}/run.json"))
    change(facts)
    write(f"{folder}/run.json", json.dumps(facts).encode())


def report(folder, *more, code=0):
    page = f"{folder}.html"
    done = run([INSPECT, "report", "--json", "-o", page, *more, folder], code)
    found = json.loads(done.stdout)
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "inspect.schema.json"))))
    if code:
        return done
    return found["results"][0], slurp(page).decode()


def near(a, b, limit=1e-9):
    assert (a is None) == (b is None or np.isnan(b)) and (a is None or abs(a - b) < limit), (a, b)


# ---- the same numbers, computed again ------------------------------------------------------------------------------


def logit(p):
    p = np.clip(p.astype(float), 2.0 ** -149, 1 - 2.0 ** -25)
    return np.log(p) - np.log1p(-p)


def newton(z, y):
    """Intercept and slope of a logistic regression of y on z, without a penalty."""
    x, b = np.stack([np.ones_like(z), z], 1), np.zeros(2)
    for _ in range(50):
        p = sigmoid(x @ b)
        b = b - np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (p - y))
    return b


def bins_of(p, y):
    """(images, positives, mean probability, chance) of bins of equally many images; equal p share a bin."""
    order = np.argsort(p, kind="stable")
    p, y, begin, found = p[order], y[order], 0, []
    for b in range(BINS):
        end = len(p) * (b + 1) // BINS
        while 0 < end < len(p) and p[end] == p[end - 1]:
            end += 1
        if end <= begin:
            continue
        share = np.ones(1)
        for x in p[begin:end]:
            share = np.convolve(share, [1 - x, x])
        chance = share @ abs(p[begin:end].sum() - np.arange(len(share)))
        found.append((end - begin, int(y[begin:end].sum()), p[begin:end].mean(), chance))
        begin = end
    return found


def check_calibration(found, p, y):
    near(found["brier"], brier_score_loss(y, p))
    q = y.mean()
    near(found["skill"], 1 - brier_score_loss(y, p) / (q * (1 - q)))
    intercept, slope = newton(logit(p), y)
    near(found["slope"], slope, 1e-6)
    near(found["intercept"], intercept, 1e-6)
    bins = bins_of(p.astype(float), y)
    assert [(b["images"], b["positives"]) for b in found["bins"]] == [b[:2] for b in bins]
    near(found["ece"], sum(n * abs(mean - k / n) for n, k, mean, _ in bins) / len(p))
    near(found["ece_perfect"], sum(b[3] for b in bins) / len(p))


def weighted_auroc(scores, labels, weights):
    p, n = labels == 1, labels == 0
    if weights[p].sum() == 0 or weights[n].sum() == 0:
        return np.nan
    return roc_auc_score(labels, scores, sample_weight=weights)
