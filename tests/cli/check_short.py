#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Short runs of chex-train: --max-steps, --limit and --eval-every; the marks of what a short run writes.

    check_short.py [PATTERN]
"""
import csv
import hashlib
import json
import math
import os
import re
import shutil
import sys

import mpi
from mpi import ENVIRONMENT
from support import SOURCE, Cases, images, program, run, says, slurp, tree
from training import data, header, kept, last_step, run_folder, same_as_whole, train, with_header

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()


def valid(document, schema):
    if jsonschema:
        jsonschema.validate(document, json.loads(slurp(os.path.join(SOURCE, "schemas", schema))))
    return document


def unmarked(document, text, path=""):
    """The paths of objects of JSON that have a loss, a metric or a best value, and not this mark."""
    if isinstance(document, list):
        return [p for i, each in enumerate(document) for p in unmarked(each, text, f"{path}[{i}]")]
    if not isinstance(document, dict):
        return []
    numbers = {"loss", "auroc", "auprc", "value", "best", "gradient_norm"} & set(document)
    own = [path or "."] if numbers and document.get("short_run") != text else []
    parts = ("auroc", "auprc", "youden", "f1", "options", "operating")
    return own + [p for key, each in document.items() if key not in parts
                  for p in unmarked(each, text, f"{path}.{key}")]


def tags(path):
    """The tags of the scalars of an event file: field 1 of each value."""
    return set(re.findall(rb"\x0a[\x01-\x7f]\x0a[\x01-\x7f]((?:[a-z0-9_]+/)+[A-Za-z0-9_]+)", slurp(path)))


def marked_files(out, text):
    """Every file of a short run with numbers or figures is marked; the kinds of those found."""
    seen = set()
    for name in sorted(os.listdir(out)):
        path = os.path.join(out, name)
        if name.endswith(".json"):
            document = json.loads(slurp(path))
            assert document["short_run"] == text and unmarked(document, text) == [], (name, unmarked(document, text))
            valid(document, "run.schema.json" if name == "run.json" else "evaluation.schema.json")
        elif name == "metrics.jsonl":
            for line in slurp(path).splitlines():
                found = valid(json.loads(line), "metrics.schema.json")
                assert found["short_run"] == text and unmarked(found, text) == [], (unmarked(found, text), line)
        elif name.endswith(".csv"):
            rows = list(csv.DictReader(slurp(path).decode().splitlines()))
            assert rows and all(row["short_run"] == text for row in rows), name
        elif name.endswith(".svg"):
            picture = slurp(path).decode()
            assert re.search("<title>Short run: ", picture) and f">Short run: {text}<" in picture, name
            curves = re.findall(r">(0\.\d{3}[^<]*)<", picture.partition("ROC curves")[2])
            assert curves and all(c.endswith(" short run") for c in curves), (name, curves)
        elif name.startswith("events."):
            assert len(tags(path)) > 10 and all(t.startswith(b"short_run/") for t in tags(path)), tags(path)
        elif name.endswith(".safetensors"):
            metadata = header(path).get("__metadata__", {})
            assert metadata.get("short_run") == text or "state" not in metadata, name
        else:
            continue
        seen.add(re.sub(r"^(events|step).*", r"\1", name))
    return seen


def marked_lines(done, text):
    for line in re.sub(r"\n +(?=AUROC)", " ", done.stderr).splitlines():  # the last line may be wrapped
        if re.search(r"loss \d|AUROC (\d|n/a)|^ {9}[A-Z]\w+ +\d+ +(\d\.|n/a)", line):
            assert "short run" in line, line
    says(done, f"short run: {text}")


def lines(out, kind):
    return [line for line in map(json.loads, slurp(os.path.join(out, "metrics.jsonl")).splitlines())
            if line["kind"] == kind]


@case("--max-steps in the middle of an epoch saves that step and ends with 0; more steps continue to the same bytes")
def _(work):
    out = run_folder(work)
    done = train(out, "--max-steps", 8, "--json")
    says(done, r"short run: --max-steps 8 \(90 images an epoch\): every number",
         r"ep 1/3 .*short run: --max-steps 8  loss", r"done     8 steps \(--max-steps\): step-000008; a larger")
    document = valid(json.loads(done.stdout), "train.schema.json")
    assert document["result"]["step"] == 8 and document["final"] is None and not document["result"]["ended_early"]
    assert last_step(out) == "step-000008" and len(lines(out, "evaluation")) == 1
    assert not os.path.exists(f"{out}/metrics-test.json")
    before = tree(out)
    says(train(out, "--max-steps", 8), "resume   step-000008", "done     8 steps")  # nothing to do
    assert kept(out) == {n: before[n] for n in kept(out)}
    train(out, "--max-steps", 13)
    assert last_step(out) == "step-000013"
    train(out)
    same_as_whole(out, but={"metrics-val.json", "predictions-val.csv", "auroc.svg"})
    assert json.loads(slurp(f"{out}/run.json")).get("short_run") is None
    assert "short_run" not in header(f"{out}/best.safetensors")["__metadata__"]


@case("a short run marks every number and figure; what is evaluated with its weights later is marked too")
def _(work):
    out, text = run_folder(work), "--max-steps 8"
    done = train(out, "--max-steps", 8, "--json")
    marked_lines(done, text)
    assert unmarked(json.loads(done.stdout), text) == []
    seen = marked_files(out, text)
    assert {"run.json", "metrics.jsonl", "metrics-val.json", "predictions-val.csv", "auroc.svg", "events", "step",
            "best.safetensors"} <= seen, seen
    done = train(out, "--eval-only", "--json")
    marked_lines(done, text)
    assert unmarked(json.loads(done.stdout), text) == []
    assert {"metrics-test.json", "predictions-test.csv", "auroc-test.svg"} <= marked_files(out, text)
    other = run_folder(work, "other")
    shutil.copy(f"{out}/best.safetensors", work)
    done = train(other, "--init", f"{work}/best.safetensors", "--epochs", 1)
    assert "short run" not in done.stderr and b"short_run" not in slurp(f"{other}/run.json")


@case("a mark that was edited is repeated without characters that a file or a terminal could not bear")
def _(work):
    out, model = run_folder(work), f"{work}/edited.safetensors"
    train(out, "-q", "--max-steps", 6)
    shutil.copy(f"{out}/best.safetensors", model)
    with_header(model, lambda top: top["__metadata__"].update(short_run='--x 1,"\n\u001b' + 100 * "a"))
    train(f"{work}/other", "-q", "--eval-only", "--init", model)
    marked_files(f"{work}/other", ("--x 1????" + 100 * "a")[:63])


@case("--max-steps at the end of an epoch ends the epoch first; beyond the end of the run it changes nothing")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--max-steps", 12)
    assert [e["epoch"] for e in lines(out, "evaluation")] == [1, 2] and last_step(out) == "step-000012"
    train(out, "-q", "--max-steps", 18)
    same_as_whole(out, but={"metrics-val.json", "predictions-val.csv", "auroc.svg"})
    assert "short run" not in train(out, "--max-steps", 12).stderr  # it is complete, so the option comes too late
    marked = [name for name in os.listdir(out) if b"short_run" in slurp(f"{out}/{name}")]
    assert not {"run.json", "best.safetensors", "metrics-test.json"} & set(marked), marked
    far = run_folder(work, "far")
    assert "short run" not in train(far, "--max-steps", 1000).stderr
    same_as_whole(far)


@case("a run that ends before any evaluation says so")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--eval-every", "never", "--max-steps", 6)
    says(train(out, "--eval-every", "never", "--epochs", 1, code=2), "no epoch was evaluated")


@case("a part so small that no finding has an AUROC: the message blames the images, not the learning rate")
def _(work):
    out = run_folder(work)
    for words in ((), ("--eval-every", "2")):
        says(train(out, "--limit", 1, "--epochs", 2, *words, code=2), "no finding has an AUROC", "--select loss")
        assert "not finite" not in train(out, "--limit", 1, "--epochs", 2, *words, code=2).stderr  # resumed
    train(run_folder(work, "loss"), "-q", "--limit", 1, "--epochs", 1, "--select", "loss")


@case("a dry run of a short run estimates its steps")
def _(work):
    found = json.loads(train(f"{work}/run", "-n", "-q", "--json", "--max-steps", 3).stdout)["plan"]["estimate"]
    assert 0 < found["run"] <= found["epoch"] * 3 / 6, found


@case("a dry run estimates the evaluation of the images of --limit, alone and for several GPUs")
def _(work):
    def epoch(*words):
        done = train(f"{work}/run", "-n", "--device", "cuda:V100", "--ranks", 1, "--micro-batch", 1, *words, "--json")
        row = re.findall(r"^ +1 +1 +16 .* ([\d.]+) +1\.00$", done.stderr, re.M)
        return json.loads(done.stdout)["plan"]["estimate"]["epoch"], float(row[0])

    for few, every in zip(epoch("--limit", 1, "--tta", "tencrop"), epoch("--tta", "tencrop")):
        assert few < every / 12, (few, every)


@case("--eval-every evaluates every N epochs and after the last one; never: only after that")
def _(work):
    train(run_folder(work), "-q", "--schedule", "constant")
    wanted = {e["epoch"]: e for e in lines(f"{work}/run", "evaluation") if e["split"] == "val"}
    for every, epochs in ((2, [2, 3]), ("never", [3])):
        out = run_folder(work, f"run-{every}")
        train(out, "-q", "--eval-every", every, "--schedule", "constant", "--max-steps", 7)
        assert not lines(out, "evaluation") and not os.path.exists(f"{out}/best.safetensors")
        done = train(out, "--eval-every", every, "--schedule", "constant")
        found = [e for e in lines(out, "evaluation") if e["split"] == "val"]
        assert [e["epoch"] for e in found] == epochs, found
        assert found[-1]["loss"] == wanted[3]["loss"], "the training is that of the run with all evaluations"
        best = max(found, key=lambda e: e["auroc"])
        says(done, rf"best 0\.\d+ @{best['epoch']}  in", "done     test")
        assert json.loads(slurp(f"{out}/run.json"))["best"]["step"] == best["step"]
        assert json.loads(slurp(f"{out}/run.json"))["options"]["eval-every"] == (0 if every == "never" else every)


@case("--early-stop ends a run only after an evaluation, and plateau sees only evaluations")
def _(work):
    out = run_folder(work)
    done = train(out, "--epochs", 8, "--early-stop", 1, "--eval-every", 2, "--lr", "1e-9", "--patience", 0)
    epochs = [e["epoch"] for e in lines(out, "evaluation") if e["split"] == "val"]
    assert epochs and all(e % 2 == 0 for e in epochs), epochs
    says(done, "ended early: no better model")
    rates = [e["learning_rate"] for e in lines(out, "epoch")]
    assert rates[0] == rates[1] == rates[2] or epochs == [2], rates  # epoch 1 lowers nothing


def chosen(split, wanted, seed=1):
    """The images of a split that --limit takes, by the rule of the man page."""
    rows = [(record["patient"].decode(), name) for name, record in images(data(), split).items()]
    patients = sorted({p for p, _ in rows}, key=lambda p: hashlib.sha256(f"chex-limit:{seed}:{p}".encode()).digest())
    taken = set()
    while sum(p in taken for p, _ in rows) < wanted:
        taken.add(patients.pop(0))
    return sorted(name for p, name in rows if p in taken)


@case("--limit takes the patients of lowest hash of train and val, the same for 1 and 2 ranks, and marks the run")
def _(work):
    for limit, part in (("20", lambda n: min(n, 20)), ("34%", lambda n: math.ceil(n * 34 / 100))):
        wanted = {split: chosen(split, part(len(images(data(), split)))) for split in ("train", "val")}
        found = []
        for count, batch in ((1, 16), (2, 8)):
            out = os.path.join(work, f"run{limit}{count}")
            words = [program("chex-train"), "-d", data(), "-o", out, "--model", "densenet-micro", "--crop", "32",
                     "--epochs", "1", "--batch", str(batch), "--micro-batch", "4", "--bootstrap", "20", "-j", "1",
                     "--limit", limit]
            done = run(words if count == 1 else mpi.ranks("chex-train", 2, *words), env=ENVIRONMENT)
            says(done, rf"short run: --limit {limit} \({len(wanted['train'])} images an epoch\)")
            marked_files(out, f"--limit {limit}")
            epoch, = lines(out, "epoch")
            assert (epoch["images"], epoch["step"]) == (len(wanted["train"]), math.ceil(len(wanted["train"]) / 16))
            with open(f"{out}/predictions-val.csv", encoding="utf-8") as file:
                assert sorted(r["image"] for r in csv.DictReader(file)) == wanted["val"]
            with open(f"{out}/predictions-test.csv", encoding="utf-8") as file:
                assert len(list(csv.DictReader(file))) == len(images(data(), "test"))
            found.append(epoch["order"])
        assert found[0] == found[1], found
    assert len(wanted["train"]) < len(images(data(), "train")), "a part"


@case("another --limit is another run: 6, and nothing changes; 100% takes all images in their order")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--limit", "30%", "--max-steps", 1)
    before = tree(out)
    for other in (("--limit", "31%"), ()):
        says(train(out, *other, code=6), r"made with other options: limit 30% -> (31%|all)")
    assert kept(out) == {n: before[n] for n in kept(out)}
    train(out, "--limit", "30%", "--max-steps", 2)
    assert last_step(out) == "step-000002"
    every = run_folder(work, "every")
    train(every, "-q", "--limit", "100%", "--max-steps", 6)
    plain = run_folder(work, "plain")
    train(plain, "-q", "--max-steps", 6)
    assert lines(every, "epoch")[0]["order"] == lines(plain, "epoch")[0]["order"]


@case("2 ranks make the same short run as 1")
def _(work):
    found = []
    for count, batch in ((1, 16), (2, 8)):
        out = os.path.join(work, f"run{count}")
        words = [program("chex-train"), "-d", data(), "-o", out, "--model", "densenet-micro", "--crop", "32",
                 "--epochs", "3", "--batch", str(batch), "--micro-batch", "4", "--bootstrap", "20", "-j", "1",
                 "--max-steps", "8", "--eval-every", "never"]
        run(words if count == 1 else mpi.ranks("chex-train", 2, *words), env=ENVIRONMENT)
        assert last_step(out) == "step-000008" and not lines(out, "evaluation")
        steps, = [line["steps"] for line in lines(out, "times") if line["over"] == "run"]
        found.append((steps, [e["order"] for e in lines(out, "epoch")]))
        assert json.loads(slurp(f"{out}/run.json"))["short_run"] == "--max-steps 8"
    assert found[0] == found[1], found


if __name__ == "__main__":
    sys.exit(case.main())
