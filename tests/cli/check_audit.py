#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train --audit: the steps between the checkpoints of a run, trained again.

    check_audit.py [PATTERN]

An honest run passes on one and two ranks.  A changed weight, moment, state, prediction, label or seed is found and
named.
"""
import json
import os
import re
import shutil
import struct

from mpi import ENVIRONMENT, ranks
from support import SOURCE, Cases, manifest, masked, program, run, says, slurp, tree, write
from training import data, finish, header, scratch, three_splits, train, with_header

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
LABEL = b"image/label"
OPTIONS = ("-q", "--keep", "0", "--checkpoint-every", "4steps", "--micro-batch", "8", "--ema", "0.9", "--pos-weight",
           "auto", "--rotate", "5")


class Made:
    """The run that all cases audit; it has checkpoints within epochs and between them."""
    folder = None


def honest(work):
    """A copy of a run with all its checkpoints."""
    if not Made.folder:
        Made.folder = os.path.join(scratch(), "audited")
        train(Made.folder, *OPTIONS)
    out = os.path.join(work, "run")
    shutil.copytree(Made.folder, out)
    return out


def audit(out, *more, code=0, count=1, source=None):
    words = [program("chex-train"), "--audit", out, "-j", "1", "-d", source or data(), *map(str, more)]
    if count > 1:
        return run([*ranks("chex-train", count), *words], code, env=ENVIRONMENT)
    return run(words, code)


def document(done):
    result = json.loads(done.stdout)
    if jsonschema:
        jsonschema.validate(result, json.loads(slurp(os.path.join(SOURCE, "schemas", "train.schema.json"))))
    return result


def compared(out, code, **how):
    """{(from, to): comparison} of an audit that finds a difference, or none."""
    done = audit(out, "--json", code=code, **how)
    return {(c["from"], c["to"]): c for c in document(done)["audit"]["comparisons"]}


def differing(out, **how):
    """The comparisons that differ."""
    return {pair: c for pair, c in compared(out, 1, **how).items() if c["outcome"] == "differs"}


def change_float(path, tensor, index):
    """Flip the lowest bit of one value of a tensor."""
    blob = bytearray(slurp(path))
    size, = struct.unpack_from("<Q", blob)
    blob[8 + size + header(path)[tensor]["data_offsets"][0] + 4 * index] ^= 1
    write(path, bytes(blob))


@case("an honest run: every pair is equal, on one and two ranks; nothing in RUN changes")
def _(work):
    out = honest(work)
    before = tree(out)
    says(audit(out), r"audit    start -> step-000000: equal\n",
         r"audit    step-000000 -> step-000004, 4 steps: equal\n",
         r"audit    step-000004 -> step-000006, 2 steps: equal\n", r"step-\d+ -> best\.safetensors: equal\n",
         r"val -> best\.safetensors: equal\n",
         r"best\.safetensors -> predictions-val\.csv: equal\n", r"best\.safetensors -> predictions-test\.csv: equal\n",
         r"best\.safetensors -> metrics-val\.json: equal\n", r"best\.safetensors -> metrics-test\.json: equal\n",
         r"done     7 pairs of checkpoints, 18 steps trained again:\s+all 13 comparisons are equal\n")
    says(audit(out, count=2), "all 13 comparisons are equal", "without running statistics, because of another number")
    assert tree(out) == before


@case("a run of two ranks: equal with its running statistics on two ranks, without them on one")
def _(work):
    out = os.path.join(work, "run")
    run([*ranks("chex-train", 2), program("chex-train"), "-d", data(), "-o", out, "--model", "densenet-micro",
         "--crop", "32", "--batch", "8", "--epochs", "2", "--bootstrap", "0", "-j", "1", "-q", "--keep", "0",
         "--lr-scale", "linear"], env=ENVIRONMENT)
    both = compared(out, 0, count=2)
    assert all(c["statistics"] and c["outcome"] == "equal" for c in both.values()), both
    one = compared(out, 0)
    assert not one["step-000000", "step-000006"]["statistics"] and one["start", "step-000000"]["outcome"] == "equal"


@case("a changed bit of a weight, a running statistic, a moment or the moving average is found and named")
def _(work):
    for suffix, tensor, name in (
            ("", "classifier.weight", "classifier.weight"),
            ("", "features.norm5.running_mean", "features.norm5.running_mean"),
            (".opt", "moment2.features.conv0.weight", "moment2.features.conv0.weight"),
            (".opt", "average.classifier.bias", "average.classifier.bias")):
        out = honest(work)
        change_float(os.path.join(out, f"step-000008{suffix}.safetensors"), tensor, 3)
        found = differing(out)
        first = found["step-000006", "step-000008"]
        assert (first["name"], first["differing"], first["others"]) == (name, 1, 0), first
        assert 0 < first["largest_difference"] < 1e-4 and first["was"] != first["now"], first
        assert ("step-000000", "step-000004") not in found
        # A running statistic changes no later weight.
        assert (("step-000008", "step-000012") in found) == (suffix == ".opt" or "classifier" in tensor), found
        shutil.rmtree(out)


@case("a changed state is found: the best value, the mean loss, the number of micro-batches")
def _(work):
    for field, value in (("best", "0x1.8p-1"), ("loss_images", "9"), ("micro_batches", "3")):
        out = honest(work)

        def change(top, field=field, value=value):
            state = json.loads(top["__metadata__"]["state"])
            state[field] = value
            top["__metadata__"]["state"] = json.dumps(state)
        with_header(os.path.join(out, "step-000004.safetensors"), change)
        first = differing(out)["step-000000", "step-000004"]
        assert first["name"] == "state." + field, first
        shutil.rmtree(out)


@case("a changed best model or prediction")
def _(work):
    out = honest(work)
    path = os.path.join(out, "predictions-test.csv")
    lines = slurp(path).decode().split("\n")
    cells = lines[3].split(",")
    column = lines[0].split(",").index("prob_Edema")
    cells[column] = "0.123456789"
    lines[3] = ",".join(cells)
    write(path, "\n".join(lines).encode())
    found = differing(out)["best.safetensors", "predictions-test.csv"]
    assert found["name"] == cells[0] + " prob_Edema" and found["was"] == "0.123456789", found
    assert (found["differing"], found["others"]) == (1, 0)
    out2 = shutil.copytree(Made.folder, os.path.join(work, "second"))
    change_float(os.path.join(out2, "best.safetensors"), "classifier.bias", 0)
    found = compared(out2, 1)
    best = [c for (_, to), c in found.items() if to == "best.safetensors"]
    assert best[0]["outcome"] == "differs" and best[0]["name"] == "classifier.bias", best
    numbers = found["best.safetensors", "metrics-test.json"]
    assert numbers["outcome"] == "differs" and numbers["name"] == "model.checkpoint_sha256", numbers


def change_cell(path, column, text):
    """Replace a cell of the third image; returns the name of that image."""
    lines = slurp(path).decode().split("\n")
    cells = lines[3].split(",")
    cells[lines[0].split(",").index(column)] = text
    lines[3] = ",".join(cells)
    write(path, "\n".join(lines).encode())
    return cells[0]


@case("a digit of a threshold, of the calibration or of the gate, or a field of the state of the best model")
def _(work):
    source = three_splits("many", 260, 16, "patient:25,50,25")
    made = os.path.join(work, "made")
    train(made, "-q", "--keep", "0", "--epochs", "1", source=source)
    says(audit(made, source=source), r"val -> best\.safetensors: equal\n", "all .* comparisons are equal")
    for name in ("youden", "platt", "gate", "state"):
        out = shutil.copytree(made, os.path.join(work, name))
        path = os.path.join(out, "best.safetensors")
        place = {}

        def change(top, name=name, place=place):
            old = json.loads(top["__metadata__"]["state" if name == "state" else "operating"])
            if name == "state":
                old["best"] = "0x1.8p-1"
            elif name == "gate":
                place["name"] = "operating.gate.images"
                old["gate"]["images"] -= 1
            else:
                k, f = next((k, f) for k, f in enumerate(old["findings"]) if f.get(name))
                part = f[name]
                key = "threshold" if name == "youden" else "a"
                place["name"] = f"operating.findings.{f['name']}.{name}.{key}"
                part[key] *= 0.999
            top["__metadata__"]["state" if name == "state" else "operating"] = json.dumps(old)
        with_header(path, change)
        found = differing(out, source=source)
        if name == "state":
            best = next(c for (a, b), c in found.items() if b == "best.safetensors")
            assert best["name"] == "state.best", best
        else:
            assert found["val", "best.safetensors"]["name"] == place["name"], found
            assert ("best.safetensors", "predictions-val.csv") not in found, found
        for split in ("val", "test"):
            assert found["best.safetensors", f"metrics-{split}.json"]["name"] != "", found


@case("without val a model has no thresholds: stored ones are found, also if the results agree with them")
def _(work):
    source = three_splits("no-val", 60, 16, "patient:75,0,25")
    made = os.path.join(work, "made")
    train(made, "-q", "--keep", "0", "--epochs", "2", source=source)
    says(audit(made, source=source), r"metrics-test\.json: equal\n", "all 6 comparisons are equal")

    def change(top):
        top["__metadata__"]["operating"] = "{}"
    with_header(os.path.join(made, "best.safetensors"), change)
    found = differing(made, source=source)
    assert found["step-000006", "best.safetensors"]["name"] == "operating points", found


@case("a changed number, age, sex, view or line of the results; a missing file; a file that is not JSON")
def _(work):
    out = honest(work)
    path = os.path.join(out, "metrics-test.json")
    numbers = json.loads(slurp(path))
    k, f = next((k, f) for k, f in enumerate(numbers["findings"]) if f["auroc"]["value"] is not None)
    f["auroc"]["value"] += 1e-6
    numbers["mean"]["auroc"]["value"] += 0.1
    numbers["version"] = "0.0"
    write(path, json.dumps(numbers).encode())
    image = change_cell(os.path.join(out, "predictions-val.csv"), "view", "XX")
    found = differing(out)
    assert set(found) == {("best.safetensors", "metrics-test.json"), ("best.safetensors", "predictions-val.csv")}, found
    assert found["best.safetensors", "metrics-test.json"]["name"] == "mean.auroc.value", found
    assert found["best.safetensors", "metrics-test.json"]["others"] == 1, found
    first = found["best.safetensors", "predictions-val.csv"]
    assert (first["name"], first["was"], first["others"]) == (f"{image} view", "XX", 0), first
    for name, text in (("age", "9"), ("sex", "X"), ("patient", "nobody")):
        image = change_cell(os.path.join(out, "predictions-test.csv"), name, text)
        first = differing(out)["best.safetensors", "predictions-test.csv"]
        assert (first["name"], first["was"]) == (f"{image} {name}", text), first
        shutil.copy(os.path.join(Made.folder, "predictions-test.csv"), out)
    lines = slurp(os.path.join(out, "predictions-test.csv"))
    os.remove(path)
    write(os.path.join(out, "predictions-val.csv"), lines[:-40])
    write(os.path.join(out, "metrics-val.json"), b"{")
    os.remove(os.path.join(out, "predictions-test.csv"))
    done = audit(out, code=1)
    says(done, r"metrics-test\.json: DIFFERS: the file is missing\n",
         r"predictions-test\.csv: DIFFERS: the file is missing\n", r"metrics-val\.json: DIFFERS: ", "4 of 13 .* DIFFER")
    os.remove(os.path.join(out, "best.safetensors"))
    says(audit(out, code=1), r"-> best\.safetensors: DIFFERS", r"predictions-val\.csv: DIFFERS: there is no best")


@case("predictions of a version before the column research_use_only are compared without it, all other columns too")
def _(work):
    out = honest(work)
    for name in ("predictions-val.csv", "predictions-test.csv"):
        path = os.path.join(out, name)
        lines = slurp(path).decode().splitlines()
        assert lines[0].endswith(",research_use_only") and all(line.endswith(",1") for line in lines[1:])
        write(path, "".join(line[:line.rindex(",")] + "\n" for line in lines).encode())
    says(audit(out), r"predictions-val\.csv: equal\n", r"predictions-test\.csv: equal\n")
    image = change_cell(os.path.join(out, "predictions-val.csv"), "view", "XX")
    first = differing(out)["best.safetensors", "predictions-val.csv"]
    assert (first["name"], first["was"], first["others"]) == (f"{image} view", "XX", 0), first
    shutil.copy(os.path.join(Made.folder, "predictions-val.csv"), out)
    image = change_cell(os.path.join(out, "predictions-val.csv"), "research_use_only", "0")
    first = differing(out)["best.safetensors", "predictions-val.csv"]
    assert (first["name"], first["was"]) == (f"{image} research_use_only", "0"), first


@case("a CSV file that was saved with CRLF differs only in its line ends; a changed cell comes first")
def _(work):
    out = honest(work)
    path = os.path.join(out, "predictions-test.csv")
    lines = slurp(path)
    write(path, lines.replace(b"\n", b"\r\n"))
    says(audit(out, code=1), r"predictions-test\.csv: DIFFERS: only the line ends: CRLF in the file, LF again\n",
         "1 of 13 .* DIFFER")
    image = change_cell(path, "view", "XX")
    write(path, slurp(path).replace(b"\r", b"").replace(b"\n", b"\r\n"))
    first = differing(out)["best.safetensors", "predictions-test.csv"]
    assert (first["name"], first["was"], first["others"]) == (f"{image} view", "XX", 0), first
    write(path, lines.replace(b"\n", b"\r", 1))
    assert differing(out)["best.safetensors", "predictions-test.csv"]["name"] == "columns"


@case("a run that is not complete may lack files; results by --eval-only with other views are compared, too")
def _(work):
    out = os.path.join(work, "cut")
    train(out, "-q", "--keep", "0", "--epochs", "2", "--max-steps", "8")
    says(audit(out), r"predictions-test\.csv: skipped\n.*the run is not complete", r"metrics-val\.json: equal\n")
    out = honest(work)
    run([program("chex-train"), "--eval-only", "-d", data(), "-o", out, "--tta", "flip", "-j", "1", "-q"])
    says(audit(out), "all 13 comparisons are equal")


@case("a changed label of a training image, or of a test image, in a shard")
def _(work):
    out = honest(work)
    for split, pair in (("train", ("step-000000", "step-000004")), ("test", ("best.safetensors",
                                                                            "predictions-test.csv"))):
        folder = os.path.join(work, split)
        shutil.copytree(data(), folder)
        m = manifest(folder)
        path = os.path.join(folder, next(s["name"] for s in m["shards"] if f"-{split}." in s["name"]))
        blob, stride = bytearray(slurp(path)), m["record"]["stride"]
        at = blob.index(LABEL) + len(LABEL) + 6
        blob[at] ^= 1
        blob[stride - 4:stride] = struct.pack("<I", masked(bytes(blob[12:stride - 4])))
        write(path, bytes(blob))
        first = differing(out, source=folder)[pair]
        assert re.search("label_Atelectasis" if split == "test" else r"\.weight", first["name"]), first


@case("another seed than that of the run: the initial weights differ, and every pair")
def _(work):
    out = honest(work)

    def change(top):
        state = json.loads(top["__metadata__"]["state"])
        state["seed"] = "7"
        state["settings"] = state["settings"].replace("seed 1\n", "seed 7\n")
        top["__metadata__"]["state"] = json.dumps(state)
    for name in os.listdir(out):
        if re.fullmatch(r"step-\d+\.safetensors", name):
            with_header(os.path.join(out, name), change)
    found = differing(out)
    assert found["start", "step-000000"]["others"] > 10 and ("step-000000", "step-000004") in found


@case("one checkpoint: trained from the start; with --init from its file")
def _(work):
    out = os.path.join(work, "one")
    train(out, "-q", "--keep", "1", "--epochs", "1")
    says(audit(out), r"audit    start -> step-000006, 6 steps: equal\n")
    second = os.path.join(work, "two")
    weights = shutil.copy(os.path.join(out, "best.safetensors"), work)
    train(second, "-q", "--keep", "1", "--epochs", "1", "--init", weights)
    says(audit(second), r"audit    start -> step-000006, 6 steps: equal\n")
    os.remove(weights)
    says(audit(second, code=6), "start -> step-000006: skipped", "nothing of '.*' could be compared", "best.safetens")


@case("a run that resumed with another rate and more epochs: each pair has its own schedule")
def _(work):
    out = os.path.join(work, "run")
    train(out, "-q", "--keep", "0", "--epochs", "1", "--schedule", "cosine", "--lr", "1e-3")
    train(out, "-q", "--keep", "0", "--epochs", "2", "--schedule", "cosine", "--lr", "5e-4", "--eval-every", "1")
    says(audit(out), "step-000006 -> step-000012, 6 steps: equal", "done     3 pairs")


@case("--max-steps leaves pairs out, evenly; the newest is among the audited ones")
def _(work):
    out = honest(work)
    result = document(audit(out, "--max-steps", "9", "--json"))["audit"]
    assert 0 < result["steps"] <= 9 and result["left_out"] > 0 and result["different"] == 0, result
    assert ("step-000016", "step-000018") in [(c["from"], c["to"]) for c in result["comparisons"]]


@case("what cannot be compared: other data (6), no checkpoint (3), no run.json (3), ranks that do not share a step (2)")
def _(work):
    out = honest(work)
    says(audit(out, code=6, source=data("other")), "nothing of '.*' could be compared", "data-set [0-9a-f]+ -> ")
    says(audit(work, code=3), "contains no checkpoint")
    says(audit(out, code=2, count=3), r"3 ranks cannot share equally .* \(2 of 8 images\)")
    wrong = os.path.join(out, "step-000007")
    for suffix in (".safetensors", ".opt.safetensors"):
        shutil.copy(os.path.join(out, "step-000004" + suffix), wrong + suffix)
    says(audit(out, code=6), "step-000007' is of step 4")
    for suffix in (".safetensors", ".opt.safetensors"):
        os.remove(wrong + suffix)
    cut = os.path.join(out, "step-000008.opt.safetensors")
    write(cut, slurp(cut)[:1000])
    says(audit(out, code=6), "step-000008.opt.safetensors")
    os.remove(os.path.join(out, "run.json"))
    says(audit(out, code=3), "no run.json of a training run")


@case("--audit takes no options of a run (2)")
def _(work):
    for more in (("--seed", "2"), ("-o", os.path.join(work, "x")), ("-n",), ("--eval-only",)):
        says(audit(work, *more, code=2), "does not go with --audit")


if __name__ == "__main__":
    raise SystemExit(finish(case))
