#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thresholds and calibration of a run of chex-train: chosen on val, stored in the best model, applied to test.

    check_thresholds.py [PATTERN]

tests/train/eval/check_operating.py compares the numbers with other software; here they are computed again from the CSV
files of the run.
"""
import csv
import functools
import json
import os
import shutil
import sys

from support import SOURCE, Cases, says, slurp
from training import finish, header, run_folder, scratch, three_splits, train, with_header

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
RULES = ("youden", "sensitivity_90")


@functools.lru_cache(None)
def many():
    """A data set with ten positives of a few findings in val."""
    return three_splits("many", 260, 16, "patient:25,50,25")


@functools.lru_cache(None)
def reference():
    out = os.path.join(scratch(), "thresholds")
    train(out, "--epochs", "1", source=many())
    return out


def predictions(out, split, finding):
    with open(os.path.join(out, f"predictions-{split}.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [(float(r[f"prob_{finding}"]), int(r[f"label_{finding}"])) for r in rows]


def counts(rows, threshold):
    return [sum(p >= threshold and label == wanted for p, label in rows) for wanted in (1, 0)]


def best(rows, rule):
    """The threshold by definition, from all scores."""
    positives = sum(label for _, label in rows)
    negatives = len(rows) - positives
    found = [(t, *counts(rows, t)) for t in sorted({p for p, _ in rows})]
    if rule == "sensitivity_90":
        return max(f for f in found if 10 * f[1] >= 9 * positives)
    most = max(tp * negatives - fp * positives for _, tp, fp in found)
    return max(f for f in found if f[1] * negatives - f[2] * positives == most)


def stored(path):
    return json.loads(header(path)["__metadata__"]["operating"])


def document(out, split):
    found = json.loads(slurp(os.path.join(out, f"metrics-{split}.json")))
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "evaluation.schema.json"))))
    return found


@case("thresholds are the best ones of val, and a finding with fewer than ten positives or negatives has none")
def _(_work):
    model = stored(os.path.join(reference(), "best.safetensors"))
    assert (model["split"], model["precision"], model["tta"]) == ("val", "fp32", "none"), model
    fitted = 0
    for finding in model["findings"]:
        rows = predictions(reference(), "val", finding["name"])
        positives = sum(label for _, label in rows)
        assert (finding["positives"], finding["negatives"]) == (positives, len(rows) - positives)
        if positives < 10:
            assert finding["refused"] == "fewer than 10 positives"
            assert finding["platt"] is finding["youden"] is finding["sensitivity_90"] is None
            continue
        fitted += 1
        assert finding["refused"] is None and set(finding["platt"]) == {"a", "b"}
        for rule in RULES:
            point = finding[rule]
            assert (point["threshold"], point["true_positives"], point["false_positives"]) == best(rows, rule), finding
    assert 0 < fitted < len(model["findings"]), f"{fitted} findings: the data set tests only one side"


@case("test gets the thresholds of val; only val's own figures are optimistic")
def _(_work):
    model = {f["name"]: f for f in stored(os.path.join(reference(), "best.safetensors"))["findings"]}
    for split in ("val", "test"):
        found = document(reference(), split)
        assert found["operating"]["chosen_on"] == "val" and found["operating"]["optimistic"] == (split == "val")
        assert found["operating"]["members_sha256"] == document(reference(), "val")["split"]["members_sha256"]
        for finding in found["findings"]:
            own = [finding[name] for name in ("youden", "f1") if finding[name]]
            assert all(p["optimistic"] and p["chosen_on"] == split for p in own), own
            applied, chosen = finding["operating"], model[finding["name"]]
            assert all(applied[key] == chosen[key] for key in ("positives", "negatives", "refused", "platt"))
            for rule in RULES:
                if not chosen[rule]:
                    assert applied[rule] is None
                    continue
                point = applied[rule]
                tp, fp = counts(predictions(reference(), split, finding["name"]), chosen[rule]["threshold"])
                assert (point["threshold"], point["true_positives"], point["false_positives"]) == (
                    chosen[rule]["threshold"], tp, fp)
                assert (point["true_positives"] + point["false_negatives"],
                        point["false_positives"] + point["true_negatives"]) == (
                    finding["positives"], finding["negatives"])
                assert point["optimistic"] == (split == "val") and point["chosen_on"] == "val"
                assert (point["sensitivity"] is None) == (finding["positives"] == 0)


@case("the run says how many findings have no thresholds; --eval-only gives the same bytes, also with more threads")
def _(work):
    out = os.path.join(work, "again")
    shutil.copytree(reference(), out)
    os.unlink(os.path.join(out, "metrics-test.json"))
    done = train(out, "--eval-only", "-j", "2", source=many())
    says(done, r"findings have no thresholds and no calibration: val has fewer than 10 positives")
    assert slurp(f"{out}/metrics-test.json") == slurp(os.path.join(reference(), "metrics-test.json"))
    threads = run_folder(work, "threads")
    train(threads, "--epochs", "1", "-j", "2", source=many())
    for name in ("best.safetensors", "metrics-val.json", "predictions-val.csv"):
        assert slurp(os.path.join(threads, name)) == slurp(os.path.join(reference(), name)), name


def changed(work, name, change):
    """A run whose best model has other operating points; None removes them."""
    out = os.path.join(work, name)
    os.mkdir(out)

    def edit(top):
        text = change(top["__metadata__"]["operating"])
        if text is None:
            del top["__metadata__"]["operating"]
        else:
            top["__metadata__"]["operating"] = text
    path = os.path.join(out, "best.safetensors")
    shutil.copy(os.path.join(reference(), "best.safetensors"), path)
    with_header(path, edit)
    return out


@case("a model without operating points gives null; hostile ones are refused by name")
def _(work):
    out = changed(work, "none", lambda text: None)
    train(out, "--eval-only", source=many())
    found = document(out, "test")
    assert found["operating"] is None and all(f["operating"] is None for f in found["findings"])
    wrong = (("{", "operating points of the model"),
             ("[" * 1000, "operating points of the model"),
             ('{"format": 9}', "format"),
             ('{"format": 1, "split": "val", "members_sha256": "", "precision": "fp32", "tta": "none", "images": 1, '
              '"patients": 1, "findings": []}', "of 0 findings"))
    for i, (text, words) in enumerate(wrong):
        out = changed(work, f"bad{i}", lambda _, text=text: text)
        says(train(out, "--eval-only", code=6, source=many()), words)
        assert not os.path.exists(f"{out}/metrics-test.json")


@case("without a val split there are no operating points")
def _(work):
    source = three_splits("two", 60, 16, "patient:50,0,50")
    out = run_folder(work)
    train(out, "--epochs", "1", source=source)
    assert "operating" not in header(os.path.join(out, "best.safetensors"))["__metadata__"]
    assert document(out, "test")["operating"] is None


if __name__ == "__main__":
    sys.exit(finish(case))
