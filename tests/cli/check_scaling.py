#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect scaling: its figures, recomputed from run.json and metrics.jsonl of runs that the test writes.

    check_scaling.py [PATTERN]      only the cases whose name matches the regular expression

Python 3, stdlib only; jsonschema where it is there.  One case trains with mpirun and is skipped without.
"""
import csv
import io
import json
import math
import os
import re
import shutil
import sys
import xml.etree.ElementTree as xml

import mpi
from fixtures import fixture
from mpi import ENVIRONMENT
from support import SOURCE, Cases, program, run, slurp

sys.path.insert(0, os.path.join(SOURCE, "bench"))
import scale
import scale_model as model

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
PARTS = ["data_wait", "copy", "forward", "backward", "reduce", "optimizer", "meet", "evaluation", "save", "peers"]
FACTORS = ("parallel_efficiency", "load_balance", "communication_efficiency", "computation_scaling",
           "global_efficiency")


# ---- runs ------------------------------------------------------------------------------------------------------------


def run_json(ranks, batch, images=1000, **changes):
    """run.json of a run; changes: model, data, split, crop, precision, device, backend, tta, bootstrap, wire."""
    have = {"model": "densenet121", "data": "0123456789abcdef", "split": "a" * 64, "crop": 224, "precision": "fp32",
            "device": "CPU, AVX2", "backend": "cpu", "tta": "none", "bootstrap": 1000, "wire": "fp32", "limit": "all",
            "eval-every": 1, "short_run": None, "epoch_images": images, **changes}
    split = {"name": "train", "use": "train", "sha256": have["split"], "images": images, "patients": 9,
             "positives": {f"finding {i}": 3 for i in range(14)}}
    session = {"started": "2026-01-01T00:00:00Z", "version": "0.1.0", "command": ["chex-train"], "from_step": 0,
               "ranks": ranks, "threads": 2, "hosts": {"n0": ranks}, "backend": have["backend"],
               "device": have["device"], "precision": have["precision"], "cpu": "x86-64", "libraries": {},
               "ended": "2026-01-01T00:01:00Z", "exit": 0, "reason": "complete", "to_step": 9}
    return {"format": 1, "tool": "chex-train", **({"short_run": have["short_run"]} if have["short_run"] else {}),
            "model": {"name": have["model"], "parameters": 1, "init": None, "init_sha256": None},
            "dataset": {"path": "data", "id": have["data"], "height": 256, "width": 256, "images": 2000,
                        "splits": [dict(split, name="val", use="validation", images=99, sha256="b" * 64), split]},
            "seed": 1, "global_batch": batch, "epoch_images": have["epoch_images"],
            "options": {key: have[key] for key in ("crop", "tta", "bootstrap", "wire", "limit", "eval-every")},
            "sessions": [dict(session, device="another"), session], "best": None, "results": None}


def times(ranks, steps, nodes=1, slow=1.0, cpu=True):
    """The last line about times.  Each rank has its own numbers, so no sum hides a swapped factor."""
    rows = []
    for r in range(ranks):
        parts = {part: (3 + i + 0.1 * r) * slow * steps / ranks / 100 for i, part in enumerate(PARTS)}
        work = sum(parts.values()) - parts["reduce"] - parts["peers"]
        row = {"rank": r, "host": f"n{r * nodes // ranks}", "seconds": sum(parts.values()) + 0.25, "work": work,
               "busy": None, "parts": parts}
        if cpu:
            row.update(modelled=None, cpu=2 * work, useful=0.9 / (1 + 0.02 * r) * work, threads=2.0, cpu_parts=parts)
        rows.append(row)
    return {"kind": "times", "time": 9.5, "step": steps, "epoch": 1, "over": "run", "steps": steps,
            "seconds": max(row["seconds"] for row in rows) + 0.5, "ideal_seconds": max(row["work"] for row in rows),
            "factors": {}, "ranks": rows, "advice": "none"}


def make(folder, file, line):
    os.makedirs(folder)
    with open(f"{folder}/run.json", "w", encoding="utf-8") as f:
        json.dump(file, f)
    with open(f"{folder}/metrics.jsonl", "w", encoding="utf-8") as f:
        for row in ({"kind": "note", "time": 1, "step": 0, "epoch": 0, "what": "x", "text": "y"},
                    dict(line, over="epoch", steps=1), line):
            print(json.dumps(row, separators=(",", ":")), file=f)
    return folder


def strong(work, counts=(1, 2, 4), nodes=1, **changes):
    """Runs of the same global batch; those of more ranks have more epochs, which must change no factor."""
    return [make(f"{work}/s{n}", run_json(n, 64, **changes), times(n, 16 * (1 + n // 2 % 2), min(nodes, n)))
            for n in counts]


def inspect(*words, code=0):
    return run([program("chex-inspect"), "scaling", *words], code)


def document(*words, code=0):
    """The object of --json, held against its schema."""
    found = json.loads(inspect("--json", *words, code=code).stdout)
    validate(found)
    assert found["action"] == "scaling" and found["exit_code"] == code
    result, = found["results"]
    return result


def validate(found):
    if jsonschema is not None:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "inspect.schema.json"))))


# ---- the formulas, a second time -------------------------------------------------------------------------------------


def facts(folder):
    """(run.json, the last line about times, epochs, seconds of an epoch, images)."""
    file = json.loads(slurp(f"{folder}/run.json"))
    lines = [json.loads(line) for line in slurp(f"{folder}/metrics.jsonl").splitlines()]
    line = [line for line in lines if line["kind"] == "times"][-1]
    images = file["epoch_images"]
    epochs = line["steps"] / math.ceil(images / file["global_batch"])
    return file, line, epochs, line["seconds"] / epochs, images


def expected(folder, reference):
    """A row: POP's factors from useful time (https://co-design.pop-coe.eu/metrics/), the rest from the wall time."""
    file, line, epochs, seconds, images = facts(folder)
    _, first, first_epochs, first_seconds, _ = facts(reference)
    ranks = line["ranks"]
    row = {"ranks": len(ranks), "nodes": len({r["host"] for r in ranks}), "global_batch": file["global_batch"],
           "gpus": len(ranks) if file["sessions"][-1]["backend"] == "cuda" else 0, "epoch_seconds": seconds,
           "images_per_second": images / seconds, "speedup": len(first["ranks"]) * first_seconds / seconds}
    row["efficiency"] = row["speedup"] / len(ranks)
    if "useful" not in ranks[0]:
        return {**row, **dict.fromkeys(FACTORS)}
    useful = [r["useful"] for r in ranks]
    row["load_balance"] = sum(useful) / len(useful) / max(useful)
    row["communication_efficiency"] = max(useful) / line["seconds"]
    row["parallel_efficiency"] = row["load_balance"] * row["communication_efficiency"]
    cpu, cpu_first = (sum(r["useful"] * r["threads"] for r in a["ranks"]) / b
                      for a, b in ((line, epochs), (first, first_epochs)))
    if "useful" in first["ranks"][0]:
        row["computation_scaling"] = cpu_first / cpu
        row["global_efficiency"] = row["parallel_efficiency"] * row["computation_scaling"]
    return row


def compare(row, wanted):
    for key, value in wanted.items():
        found = row[key]
        if value is None:
            assert found is None, (key, found)
        else:
            assert math.isclose(found, value, rel_tol=1e-6), (key, found, value)


def check_rows(result, runs):
    rows = [row for row in result["rows"] if row["kind"] == "measured"]
    assert [row["source"] for row in rows] == list(runs)
    for row in rows:
        compare(row, expected(row["source"], runs[0]))


# ---- the prediction, by bench/scale_model.py -------------------------------------------------------------------------


def densenet(stem, growth, blocks, side, outputs):
    """([(parameters, elements read and written)] of the nodes, floats of the running statistics) of a DenseNet."""
    nodes, statistics = [], 0

    def conv(a, b, kernel, before, after):
        nodes.append((a * b * kernel ** 2, a * before ** 2 + b * after ** 2))

    def norm(channels, at):
        nonlocal statistics
        nodes.append((2 * channels, 2 * channels * at ** 2))
        statistics += 2 * channels

    half = (side + 1) // 2
    conv(3, stem, 7, side, half)
    norm(stem, half)
    side, channels = (half + 1) // 2, stem
    nodes.append((0, stem * (half ** 2 + side ** 2)))
    for block, layers in enumerate(blocks):
        for _ in range(layers):
            norm(channels, side)
            conv(channels, 4 * growth, 1, side, side)
            norm(4 * growth, side)
            conv(4 * growth, growth, 3, side, side)
            channels += growth
        if block + 1 < len(blocks):
            norm(channels, side)
            nodes.append((0, channels * (side ** 2 + (side // 2) ** 2)))
            side //= 2
            conv(channels, channels // 2, 1, side, side)
            channels //= 2
    norm(channels, side)
    nodes.append((0, channels * (side ** 2 + 1)))
    nodes.append((channels * outputs + outputs, channels + outputs))
    return nodes, statistics


MODELS = {"densenet121": (64, 32, (6, 12, 24, 16)), "densenet-micro": (32, 16, (4, 4, 4))}
NETWORKS = {"edr": "EDR", "hdr": "HDR", "ndr": "NDR", "10g": "10 GbE"}


def expected_epoch(base, ranks, batch, node, network):
    """Seconds of an epoch: the parts of the base, which the ranks share, and the links of bench/scale_model.py."""
    file, line, epochs, _, images = facts(base)
    session = file["sessions"][-1]
    nodes, statistics = densenet(*MODELS[file["model"]["name"]], file["options"]["crop"], 14)
    rows = line["ranks"]
    part = {name: sum(r["parts"][name] for r in rows) for name in PARTS}
    forward, backward = (part[name] / epochs / images for name in ("forward", "backward"))
    data = (part["data_wait"] + part["copy"]) / epochs / images
    update = part["optimizer"] / len(rows) / line["steps"]
    rest = [r["seconds"] - sum(s for name, s in r["parts"].items() if name != "meet" or r["busy"] is None)
            for r in rows]
    total = sum(elements for _, elements in nodes)
    layers = tuple(model.Layer("", count, forward * elements / total, backward * elements / total)
                   for count, elements in nodes)
    inside = "PCIe 3" if session["backend"] == "cpu" else \
        "NVLink V100" if "V100" in session["device"] else "NVLink H200"
    machine = model.Machine(node, model.LINKS[inside], model.LINKS[NETWORKS[network]])
    wire = 8 if session["backend"] == "cpu" else {"fp32": 4, "bf16": 2}[file["options"]["wire"]]

    def step(each):
        job = model.Job(machine, rate=1 / (forward + backward + update / each), batch=each, update=update, wire=wire,
                        last=1.6e6, tail=4 * statistics, layers=layers, meetings=20)
        return model.step(job, ranks)["total"] + data * each, job

    seconds, job = step(math.ceil(batch / ranks))
    seconds *= images // batch
    if images % batch:  # rank 0 has the most images of the last step
        seconds += step(min(images % batch, math.ceil(batch / ranks)))[0]
    return seconds + part["evaluation"] / epochs / ranks + max(r["parts"]["save"] for r in rows) / epochs + \
        sum(max(0, x) for x in rest) / len(rows) / epochs + model.meetings(job, ranks)


# ---- figures ---------------------------------------------------------------------------------------------------------


@case("speed-up, efficiency and POP's factors are those that the files give; text, rows and the files of -o agree")
def _(work):
    runs = strong(work, (2, 4, 6), nodes=2)
    shuffled = [runs[2], runs[0], runs[1]]
    result = document(*shuffled)
    assert result["scaling"] == "strong" and result["reference"] == runs[0] and result["comparable"]
    check_rows(result, runs)
    text = inspect(*shuffled).stdout
    for row in result["rows"]:
        numbers = [f"{row[key]:.2f}" for key in FACTORS]
        assert re.search(rf"^ +{row['ranks']} +{' +'.join(numbers)} {row['source']}$", text, re.M), (numbers, text)
        assert re.search(rf"^ +{row['ranks']} +{row['nodes']} +- +64 .* {row['speedup']:.2f} +{row['efficiency']:.2f} "
                         rf"{row['source']}$", text, re.M), text
    assert "strong scaling: the global batch is 64 in all runs" in text
    share = result["rows"][0]["global_efficiency"]
    assert share < 0.95 and f"the reference has a global efficiency of {share:.2f}: the efficiency of a run" in text
    printed = inspect("--format", "csv", *shuffled).stdout
    table = list(csv.DictReader(io.StringIO(printed)))
    lines = [json.loads(line) for line in inspect("--format", "jsonl", *shuffled).stdout.splitlines()]
    for a, b, c in zip(table, lines, result["rows"], strict=True):
        assert b == {**dict.fromkeys(b), **c} and list(a) == list(b), (a, b, c)
        for key, value in c.items():
            assert a[key] == value if isinstance(value, str) else math.isclose(float(a[key]), value, rel_tol=1e-8), key
    inspect("-q", "-o", f"{work}/x.csv", *shuffled)
    inspect("-q", "-o", f"{work}/x.json", *shuffled)
    assert slurp(f"{work}/x.csv").decode().replace("\r\n", "\n") == printed.replace("\r\n", "\n")
    assert json.loads(slurp(f"{work}/x.json")) == result


@case("strong and weak scaling are recognised from the global batch")
def _(work):
    for batches, kind, said in (((64, 64), "strong", "strong scaling"), ((64, 128), "weak", "batch of a rank is 64"),
                                ((64, 96), "mixed", "neither strong nor weak")):
        runs = [make(f"{work}/{kind}{n}", run_json(n, batch), times(n, 16)) for n, batch in zip((1, 2), batches)]
        result = document(*runs)
        assert result["scaling"] == kind
        check_rows(result, runs)
        assert said in inspect(*runs).stdout
        inspect("-q", "-o", f"{work}/x.svg", *runs)
        assert {"strong": "global batch 64", "weak": "batch 64 per rank",
                "mixed": "several batches"}[kind] + ", fp32" in slurp(f"{work}/x.svg").decode()
    assert document(runs[0])["scaling"] == "one"
    again = make(f"{work}/again", run_json(1, 128), times(1, 16, slow=2))
    result = document(again, runs[0])
    assert result["scaling"] == "one" and result["reference"] == again


@case("a run that recorded no CPU times shows n/a, and the others keep their factors")
def _(work):
    runs = strong(work)
    old = make(f"{work}/old", run_json(8, 64), times(8, 16, cpu=False))
    result = document(*runs, old)
    check_rows(result, [*runs, old])
    assert re.search(r"^ +8( +n/a){5} .*old$", inspect(*runs, old).stdout, re.M)
    first = make(f"{work}/first", run_json(1, 64), times(1, 16, cpu=False))
    row = document(first, runs[1])["rows"][1]
    assert row["load_balance"] > 0 and row["computation_scaling"] is None and row["global_efficiency"] is None
    inspect("-q", "-o", f"{work}/old.svg", first, old)
    assert "nan" not in slurp(f"{work}/old.svg").decode()


@case("runs that differ in model, data, precision and so on are refused with 6; --force shows them with a mark")
def _(work):
    first = make(f"{work}/first", run_json(1, 64), times(1, 16))
    for i, (key, value, name) in enumerate((("model", "resnet50", "model"), ("data", "f" * 16, "data set"),
                                            ("split", "c" * 64, "training split"), ("crop", 32, "crop"),
                                            ("precision", "bf16", "precision"), ("device", "H100", "device"),
                                            ("tta", "flip", "evaluation view"), ("bootstrap", 0, "bootstrap"),
                                            ("limit", "10%", "--limit"), ("short_run", "--max-steps 9", "short run"),
                                            ("eval-every", 0, "epochs between evaluations"))):
        other = make(f"{work}/{i}", run_json(2, 64, **{key: value}), times(2, 16))
        said = inspect(first, other, code=6).stderr
        value = str(value).removesuffix(" 9")
        assert re.search(rf"not comparable: {name} \(.*{value[:20]}.*\); --force shows them", said), said
        failed = json.loads(inspect("--json", other, first, code=6).stdout)
        validate(failed)
        assert failed["results"][0]["error"]["status"] == "incompatible"
        result = document("--force", first, other)
        assert not result["comparable"] and not result["rows"][0]["differs"] and name in result["rows"][1]["differs"]
        assert len(re.findall(rf"\*{re.escape(other)}", inspect("--force", first, other).stdout)) == 3
    inspect("-q", "--force", "-o", f"{work}/x.svg", first, other)
    text = slurp(f"{work}/x.svg").decode()
    assert ">not comparable</text>" in text and 'class="h0"' in text
    inspect("-q", "-o", f"{work}/y.svg", first, first)
    assert "not comparable" not in slurp(f"{work}/y.svg").decode()


@case("short runs: images per second count the images of --limit; text, rows, JSON and figure name the options")
def _(work):
    runs = [make(f"{work}/{n}", run_json(n, 64 * n, 1000, short_run=f"--limit 10% --max-steps {99 + n}", limit="10%",
                                         epoch_images=130), times(n, 5)) for n in (1, 2)]
    result = document(*runs)
    check_rows(result, runs)
    assert result["comparable"] and [row["short_run"] for row in result["rows"]] == \
        ["--limit 10% --max-steps 100", "--limit 10% --max-steps 101"], result
    assert f"short run: --limit 10% --max-steps 100: {runs[0]}" in inspect(*runs).stdout
    whole = make(f"{work}/whole", run_json(1, 64), times(1, 16))
    for words, marked in ((runs, True), ([whole], False)):  # with --force, only the hollow markers are short runs
        inspect("-q", "-o", f"{work}/x.svg", *words)
        assert ("measured, short run" in slurp(f"{work}/x.svg").decode()) == marked
        assert ("short run" in inspect(*words).stdout) == marked
    earlier = run_json(2, 128)  # as before --limit, --max-steps and --eval-every
    del earlier["epoch_images"], earlier["options"]["limit"], earlier["options"]["eval-every"]
    assert document(whole, make(f"{work}/earlier", earlier, times(2, 8)))["comparable"]


@case("a run that did not end: text, rows and JSON say what its figures are of")
def _(work):
    whole = make(f"{work}/whole", run_json(1, 64), times(1, 16))
    assert document(whole)["rows"][0]["unfinished"] == "" and "did not end" not in inspect(whole).stdout
    live = run_json(2, 64)
    live["sessions"][-1].update(ended=None, exit=None, reason=None, to_step=None)
    stopped = run_json(2, 64)
    stopped["sessions"][-1].update(exit=75)
    for name, over, made, said in (("live", "epoch", live, "epoch 3"), ("lost", "epoch", run_json(2, 64), "epoch 3"),
                                   ("again", "run", live, "the start before the last"),
                                   ("stopped", "run", stopped, "the steps before it was stopped")):
        folder = make(f"{work}/{name}", made,
                      dict(times(2, 16), over=over, epoch=3))
        result = document(whole, folder)
        assert [row["unfinished"] for row in result["rows"]] == ["", said], result
        assert f"did not end: the figures are those of {said}: {folder}\n" in inspect(whole, folder).stdout
        rows = list(csv.DictReader(io.StringIO(inspect("--format", "csv", whole, folder).stdout)))
        assert [row["unfinished"] for row in rows] == ["", said], rows
        check_rows(result, [whole, folder])


@case("published points: those of bench/scale.py, with their source, and those of a file")
def _(work):
    runs = strong(work)
    rows = [row for row in document("--reference", "dell", *runs)["rows"] if row["kind"] == "published"]
    assert {row["gpus"]: row["images_per_second"] for row in rows} == scale.DELL_RATES
    for row in rows:
        assert math.isclose(row["speedup"], row["images_per_second"] / scale.DELL_RATES[1], rel_tol=1e-9)
        assert math.isclose(row["efficiency"], row["speedup"] / row["gpus"], rel_tol=1e-9)
        assert row["source"].startswith("Dell")
    rows = [row for row in document("--reference", "rwth", *runs)["rows"] if row["kind"] == "published"]
    assert {row["gpus"]: row["parallel_efficiency"] for row in rows} == scale.RWTH_EFFICIENCY
    assert all(row["speedup"] is None for row in rows)
    inspect("-q", "--reference", "dell", "-o", f"{work}/x.svg", *runs)
    assert "Dell, V100, TensorFlow, published" in slurp(f"{work}/x.svg").decode()
    with open(f"{work}/own.csv", "w", encoding="utf-8") as f:
        f.write("images_per_second,source,gpus\n300,\"A <b>&\x1b, B\",4\n100,\"A <b>&\x1b, B\",2\n7,C,1\n")
    found = document("--reference", f"{work}/own.csv", *runs)["rows"][3:]
    assert [(row["source"], row["speedup"]) for row in found] == \
        [("A <b>&\\x1b, B", 6), ("A <b>&\\x1b, B", 2), ("C", 1)], found
    inspect("-q", "--reference", f"{work}/own.csv", "-o", f"{work}/own.svg", *runs)
    assert "<b>" not in slurp(f"{work}/own.svg").decode()
    xml.parse(f"{work}/own.svg")
    head = "source,gpus,images_per_second\n"
    for text, said in (("gpus,images_per_second\n1,2\n", "needs the columns"), ("gpus," + head, "gpus"),
                       (head + "A,0,1\n", "0"), (head + "A,1.5,1\n", "needs a source"), (head + "A,1,\n", "a rate"),
                       (head + "A,1,-1\n", "-1"), (head + "A,1,nan\n", "nan"),
                       (head + "A,1,1\n" * 257, "more than 256")):
        with open(f"{work}/bad.csv", "w", encoding="utf-8") as f:
            f.write(text)
        assert said in inspect("--reference", f"{work}/bad.csv", *runs, code=2).stderr, text[:60]
    assert "delll" in inspect("--reference", "delll", *runs, code=3).stderr


@case("the figure: well-formed, has the ideal, a marker for each run, and no text outside of it")
def _(work):
    for name, counts, words in (("few", (1, 2, 4), ()), ("one", (1,), ()), ("many", (1, 3, 300, 4096), ()),
                                ("dell", (1, 2), ("--reference", "dell")), ("rwth", (2, 4), ("--reference", "rwth"))):
        runs = strong(f"{work}/{name}", counts)
        inspect("-q", *words, "-o", f"{work}/{name}.svg", *runs)
        root = xml.parse(f"{work}/{name}.svg").getroot()
        width, height = (float(x) for x in root.get("viewBox").split()[2:])
        space = "{http://www.w3.org/2000/svg}"
        texts = root.findall(f"{space}text")
        assert {"measured", "ideal", "speed-up", "efficiency"} <= {t.text for t in texts}
        assert len(root.findall(f"{space}circle[@class='f0']")) == 2 * len(runs) + 1
        for t in texts:
            x, y, long = float(t.get("x")), float(t.get("y")), 7.6 * len(t.text or "")
            kind = t.get("class").split()
            left = x - long if "e" in kind else x - long / 2 if "m" in kind else x
            assert -4 <= left and left + long <= width + 8 and 8 < y < height, (name, t.text, x, y)
        for circle in root.findall(f"{space}circle"):
            assert 0 < float(circle.get("cx")) < width and 0 < float(circle.get("cy")) < height


# ---- predictions -----------------------------------------------------------------------------------------------------


def modelled(result):
    row = result["rows"][-1]
    assert row["kind"] == result["prediction"]["kind"] == "modelled"
    return row


@case("a prediction is the parts of the first run and the links of bench/scale_model.py, to six digits")
def _(work):
    gpu = {"backend": "cuda", "device": "NVIDIA H100"}
    number = 0
    for name, crop, changes in (("densenet121", 224, gpu), ("densenet121", 224, dict(gpu, device="Tesla V100")),
                                ("densenet121", 224, dict(gpu, wire="bf16")), ("densenet-micro", 32, {})):
        for ranks, batch, node, network in ((1, 64, 4, "edr"), (4, 256, 8, "10g"), (2, 96, 1, "hdr"),
                                            (8, 512, 3, "ndr")):
            number += 1
            base = make(f"{work}/{number}", run_json(ranks, batch, 100_003, model=name, crop=crop, **changes),
                        times(ranks, 2 * math.ceil(100_003 / batch), min(2, ranks)))
            for wanted in (1, 7, 64):
                result = document("--predict", str(wanted), "--network", network, "--node", str(node), base)
                row, each = modelled(result), batch // ranks
                assert (row["ranks"], row["nodes"], row["global_batch"]) == (wanted, -(-wanted // node), wanted * each)
                seconds = expected_epoch(base, wanted, wanted * each, node, network)
                assert math.isclose(row["epoch_seconds"], seconds, rel_tol=1e-6), (row, seconds)
                compare(row, {"images_per_second": 100_003 / seconds,
                              "speedup": ranks * facts(base)[3] / seconds,
                              "efficiency": ranks * facts(base)[3] / seconds / wanted})
                assert row["epoch_low"] is None and result["prediction"]["error_factor"] is None
    assert "no error bar: no other run" in inspect("--predict", "64", "--network", "edr", base).stdout


@case("the error bar is the largest error of the same prediction for the other runs; strong runs keep their batch")
def _(work):
    for kind, batches in (("strong", (64, 64, 64)), ("weak", (32, 64, 128))):
        runs = [make(f"{work}/{kind}{n}", run_json(n, batch, model="densenet-micro", crop=32),
                     times(n, 32, min(2, n), slow=1 + n / 9)) for n, batch in zip((1, 2, 4), batches)]
        order = [runs[1], runs[2], runs[0]]  # the base is the first one given, not the reference
        result = document("--predict", "16", "--network", "edr", *order)
        row, prediction = modelled(result), result["prediction"]
        assert prediction["base"] == runs[1] and row["source"] == runs[1] and prediction["node_ranks"] == 2
        assert row["global_batch"] == (64 if kind == "strong" else 512)
        compare(row, {"epoch_seconds": expected_epoch(runs[1], 16, row["global_batch"], 2, "edr")})
        errors = []
        for found, run_, ranks, batch, node in zip(prediction["checks"], (runs[0], runs[2]), (1, 4),
                                                   (batches[0], batches[2]), (1, 2), strict=True):
            seconds, measured = expected_epoch(runs[1], ranks, batch, node, "edr"), facts(run_)[3]
            assert found["source"] == run_
            compare(found, {"modelled_seconds": seconds, "measured_seconds": measured})
            errors += [seconds / measured, measured / seconds]
        compare(row, {"epoch_low": row["epoch_seconds"] / max(errors),
                      "epoch_high": row["epoch_seconds"] * max(errors)})
        text = inspect("--predict", "16", "--network", "edr", *order).stdout
        assert re.search(r"^ +16 +8 +- .* modelled$", text, re.M) and text.count("the same of") == 2
        assert f"(x {max(errors):.2f})" in text and "modelled: 16 ranks on 8 nodes with EDR" in text
        for name in ("csv", "json", "svg"):
            inspect("-q", "--predict", "16", "--network", "edr", "-o", f"{work}/x.{name}", *order)
            assert b"modelled" in slurp(f"{work}/x.{name}"), name
        assert slurp(f"{work}/x.svg").decode().count('class="i4"') == 6
        xml.parse(f"{work}/x.svg")
    other = make(f"{work}/other", run_json(8, 64, model="densenet121"), times(8, 32))
    checks = document("--force", "--predict", "16", "--network", "edr", *order, other)["prediction"]["checks"]
    assert len(checks) == 2, "a run that is not comparable is in the error bar"


@case("a prediction of an unknown model, or of a crop that is none, ends with a message")
def _(work):
    for i, (changes, code, said) in enumerate((({"model": "alexnet"}, 2, "alexnet"), ({"crop": 1e9}, 1, "no crop"),
                                               ({"crop": "x"}, 1, "no crop"), ({"crop": 2}, 2, "2"))):
        base = make(f"{work}/{i}", run_json(1, 64, **changes), times(1, 16))
        assert said in inspect("--predict", "64", "--network", "edr", base, code=code).stderr


# ---- hostile and missing files ---------------------------------------------------------------------------------------


@case("a hostile run.json, or a run without times, ends with a message")
def _(work):
    good = make(f"{work}/good", run_json(1, 64), times(1, 16))
    bad = make(f"{work}/bad", run_json(2, 64), times(2, 16))

    def replace(text, code, said):
        with open(f"{bad}/run.json", "w", encoding="utf-8") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        done = inspect(good, bad, code=code)
        assert said in done.stderr and "\x1b" not in done.stderr + done.stdout, done.stderr

    for text in ("", "{", "[]", "null", '{"format":1,"format":1}', "[" * 5000):
        replace(text, 1, "run.json")
    whole = run_json(2, 64)
    for key in whole.keys() - {"epoch_images"}:
        replace({k: v for k, v in whole.items() if k != key}, 1, f"'{key}' is missing")
    replace(dict(whole, global_batch=0), 1, "no global batch")
    replace(dict(whole, global_batch=1e18), 1, "no global batch")
    replace(dict(whole, global_batch=-1), 1, "'global_batch'")
    replace(dict(whole, sessions=[]), 1, "'sessions'")
    replace(dict(whole, dataset=dict(whole["dataset"], splits=[])), 1, "no images of training")
    replace(dict(whole, model=dict(whole["model"], name="\x1b[31mred")), 6, "model")
    os.remove(f"{bad}/run.json")
    assert "is no run of chex-train" in inspect(good, bad, code=3).stderr
    assert "none" in inspect(good, f"{work}/none", code=3).stderr
    replace(whole, 0, "")
    with open(f"{bad}/metrics.jsonl", "w", encoding="utf-8") as f:
        f.write('{"kind":"times","over":"run"}\n')
    assert "did not complete an epoch" in inspect(good, bad, code=3).stderr
    os.remove(f"{bad}/metrics.jsonl")
    assert "did not complete an epoch" in inspect(good, bad, code=3).stderr
    for seconds in (5e-324, 0, 1e308):
        short = make(f"{work}/{seconds}", run_json(2, 64), dict(times(2, 16), seconds=seconds))
        assert "did not complete an epoch" in inspect("-o", f"{work}/x.svg", good, short, code=3).stderr
    for value in (0, 1e308):
        empty = times(1, 16)
        empty["ranks"][0]["parts"] = dict.fromkeys(PARTS, value)
        empty = make(f"{work}/empty{value}", run_json(1, 64), empty)
        done = inspect("--predict", "8", "--network", "edr", "-o", f"{work}/x.svg", empty, code=1)
        assert "no times of forward and backward" in done.stderr
    hostile = times(2, 16)
    hostile["ranks"][1]["host"] = "\x1b[31m<script>"
    done = inspect("-o", f"{work}/x.svg", good, make(f"{work}/\x1b[1m<b>", run_json(2, 64), hostile))
    assert "\x1b" not in done.stdout and "<script>" not in slurp(f"{work}/x.svg").decode()


# ---- a real sweep ----------------------------------------------------------------------------------------------------


@case("runs of 1, 2 and 4 ranks of chex-train, also of four on one core, have the factors that their files give")
def _(work):
    launcher = mpi.mpirun("chex-train")
    for ranks in (1, 2, 4):
        line = [program("chex-train"), "-d", fixture("trainable"), "-o", f"{work}/{ranks}", "-j", "1", "--epochs", "1",
                "--model", "densenet-micro", "--crop", "32", "--batch", str(8 // ranks), "--micro-batch", "2",
                "--bootstrap", "0"]
        core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if ranks == 4 and shutil.which("taskset") else []
        run([*core, launcher, "-np", str(ranks), *line], env=ENVIRONMENT)
    runs = [f"{work}/1", f"{work}/2", f"{work}/4"]
    result = document(*runs)
    assert result["scaling"] == "strong"
    check_rows(result, runs)


if __name__ == "__main__":
    sys.exit(case.main())
