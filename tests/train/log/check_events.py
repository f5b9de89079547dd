#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the trainer leaves for those who watch: metrics.jsonl, run.json, event files.  Written by write_run.c,
read by the real TensorBoard (read_events.py) where some Python has it, and compared with each other and with the
scores.

    check_events.py [PATTERN]
"""
import json
import os
import re
import resource
import shutil
import struct
import subprocess

from man_pages import blocks
from support import BUILD, Cases, FINDINGS, SOURCE, Skip, masked, program, python_with, run, slurp

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
HERE = os.path.dirname(os.path.abspath(__file__))
DATASET = os.environ.get("CHEX_DATASET") or os.path.join(BUILD, "tests", "dataset")


def session(folder, first, last, number=0, how="end", more=(), **options):
    """Steps first + 1 .. last; [(score, label)] of the last evaluation, by image and finding."""
    done = run([program("write-run"), folder, DATASET, first, last, number, how, *more], **options)
    pairs = [line.split() for line in done.stdout.splitlines()]
    return [(float32(float(s)), int(label)) for s, label in pairs], done.stderr


def float32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def lines(folder):
    text = slurp(os.path.join(folder, "metrics.jsonl")).decode()
    assert text.endswith("\n") or not text, "the last line has no end"
    return [json.loads(line) for line in text.splitlines()]


def event_files(folder):
    return sorted(name for name in os.listdir(folder) if "tfevents" in name)


def seen_by_tensorboard(folder):
    python = python_with("tensorboard")
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    return json.loads(run([python, os.path.join(HERE, "read_events.py"), folder], env=env).stdout)


def validate(name, documents):
    if jsonschema is None:
        raise Skip("no jsonschema")
    with open(os.path.join(SOURCE, "schemas", name), encoding="utf-8") as f:
        validator = jsonschema.Draft202012Validator(json.load(f))
    for document in documents:
        validator.validate(document)
    return validator


def frames(path):
    """The records of a TFRecord file; an AssertionError where one is not whole."""
    data, at = slurp(path), 0
    while at < len(data):
        assert at + 12 <= len(data), "half a header"
        size, = struct.unpack_from("<Q", data, at)
        assert at + size + 16 <= len(data), "half a record"
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8])
        if size < 1000:  # this checksum is slow
            assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(data[at + 12:at + 12 + size])
        yield data[at + 12:at + 12 + size]
        at += size + 16


# ---- metrics.jsonl, run.json ---------------------------------------------------------------------------------------


# Of the times that write-run tells: useful time 5 and 6 of 7 seconds, 6.5 on an ideal network.
EFFICIENCY = {"parallel_efficiency": 5.5 / 7, "load_balance": 5.5 / 6, "communication_efficiency": 6 / 7,
              "serialisation_efficiency": 6 / 6.5, "transfer_efficiency": 6.5 / 7, "device_busy": None,
              "roofline_share": None, "core_share": 7.5 / 9}


@case("every line of metrics.jsonl is of its schema, and tells what happened")
def _(work):
    scores, said = session(work, 0, 20)
    found = lines(work)
    assert not said, said
    validate("metrics.schema.json", found)
    assert [e["kind"] for e in found].count("step") == 20
    steps = [e for e in found if e["kind"] == "step"]
    assert [e["loss"] for e in steps] == [float(i) for i in range(1, 21)]
    assert steps[6]["gradient_norm"] is None, "NaN is null"
    assert [e["epoch"] for e in steps] == [1] * 10 + [2] * 10
    assert [(e["loss_scale"], e["steps_skipped"]) for e in steps] == [(65536, 0)] * 7 + [(65536, 1)] * 13
    assert {e["steps_skipped"] for e in found if e["kind"] == "epoch"} == {1}
    last = [e for e in found if e["kind"] == "evaluation"][-1]
    assert [f["name"] for f in last["findings"]] == FINDINGS
    assert last["defined"] == 13 and last["findings"][13]["auroc"] is None and last["step"] == 20
    for i, finding in enumerate(last["findings"][:13]):
        assert finding["positives"] == sum(label for _, label in scores[i::14])
        assert abs(finding["auroc"] - auroc(scores[i::14])) < 1e-11
    mean = sum(f["auroc"] for f in last["findings"][:13]) / 13
    assert abs(last["auroc"] - mean) < 1e-11
    assert [e["what"] for e in found if e["kind"] == "note"] == ["checkpoint", "checkpoint", "end"]
    times = [e for e in found if e["kind"] == "times"]
    assert [(e["epoch"], e["over"], e["steps"]) for e in times] == [(1, "epoch", 10), (2, "epoch", 10)]
    for name, value in EFFICIENCY.items():
        assert times[0]["factors"][name] is None if value is None else abs(times[0]["factors"][name] - value) < 1e-11
    assert [r["host"] for r in times[0]["ranks"]] == ['n"07', "n08"] and times[0]["ranks"][1]["parts"]["data_wait"] == 1
    assert times[0]["advice"] == "ranks wait 14 % for rank 1, n08: its reading; --stage"


def auroc(pairs):
    positive = [s for s, label in pairs if label]
    negative = [s for s, label in pairs if not label]
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / len(positive) / len(negative)


@case("the schemas reject lines of other schemas")
def _(work):
    session(work, 0, 10)
    found = lines(work)
    with open(os.path.join(work, "run.json"), encoding="utf-8") as f:
        document = json.load(f)
    for name, good, key in (("metrics.schema.json", found[0], "loss"), ("metrics.schema.json", found[-4], "auroc"),
                            ("metrics.schema.json", found[-3], "ideal_seconds"),
                            ("metrics.schema.json", found[-1], "what"), ("run.schema.json", document, "sessions")):
        validator = validate(name, [good])
        assert not validator.is_valid({k: v for k, v in good.items() if k != key}), f"{name} does not need {key}"
        assert not validator.is_valid({**good, key: {}}), f"{name} takes any {key}"


@case("a resumed run drops the lines after its checkpoint, and half a line")
def _(work):
    session(work, 0, 25, 0, "kill")
    with open(os.path.join(work, "metrics.jsonl"), "ab") as f:
        f.write(b'{"kind":"step","ti')
    session(work, 20, 30, 1)
    found = lines(work)
    validate("metrics.schema.json", found)
    losses = [e["loss"] for e in found if e["kind"] == "step"]
    assert losses == [float(i) for i in range(1, 21)] + [i + 0.125 for i in range(21, 31)], losses
    assert [e["step"] for e in found if e["kind"] == "evaluation"] == [10, 20, 30]


@case("an evaluation that will be made again is dropped")
def _(work):
    session(work, 0, 20, 0, "kill")
    path = os.path.join(work, "metrics.jsonl")
    text = slurp(path).decode().splitlines(True)
    # the checkpoint was made at step 20, before the evaluation there: epoch 2 is not among its complete ones
    kept = [line.replace('"epoch":2', '"epoch":3') if '"kind":"evaluation"' in line else line for line in text]
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(kept)
    session(work, 20, 30)
    assert [e["step"] for e in lines(work) if e["kind"] == "evaluation"] == [10, 30]


@case("a new run in an old folder begins with empty logs")
def _(work):
    session(work, 0, 20, 0)
    session(work, 0, 10, 1)
    assert [e["loss"] for e in lines(work) if e["kind"] == "step"] == [i + 0.125 for i in range(1, 11)]


@case("run.json says what the run is and how it ended, over restarts")
def _(work):
    def document():
        with open(os.path.join(work, "run.json"), encoding="utf-8") as f:
            d = json.load(f)
        validate("run.schema.json", [d])
        return d

    session(work, 0, 10, 0, "kill")
    first = document()
    assert first["sessions"][0]["exit"] is None and first["best"] is None and first["results"] is None
    session(work, 10, 20)
    second = document()
    with open(os.path.join(DATASET, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    assert second["dataset"]["id"] == manifest["dataset_id"]
    assert [(s["name"], s["sha256"], s["images"], s["patients"]) for s in second["dataset"]["splits"]] == \
        [(s["name"], s["members_sha256"], s["images"], s["patients"]) for s in manifest["splits"]]
    assert [s["use"] for s in second["dataset"]["splits"]] == ["train", "validation", None]
    assert [(s["from_step"], s["exit"], s["to_step"]) for s in second["sessions"]] == [(0, None, None), (10, 0, 20)]
    assert second["sessions"][1]["command"][1:] == [work, DATASET, "10", "20", "0", "end"]
    assert second["sessions"][0]["hosts"] == {"n07": 2, "n08": 1}
    assert second["options"] == {"lr": 0.001, "epochs": 3, "deterministic": True, "augment": "flip|crop \\xff"}
    assert second["best"] == {"metric": "auroc", "value": lines(work)[-4]["auroc"], "step": 10,
                              "file": "best.safetensors"}
    result, = second["results"]
    assert result["split"] == "test" and result["auroc_of"]["Hernia"] is None and result["defined"] == 13
    # a file that is no JSON is replaced, and a new run forgets the best of the old one
    with open(os.path.join(work, "run.json"), "w", encoding="utf-8") as f:
        f.write('{"sessions": [')
    session(work, 0, 5, 0, "kill")
    third = document()
    assert len(third["sessions"]) == 1 and third["best"] is None


# ---- event files ---------------------------------------------------------------------------------------------------


@case("event files are TFRecord files that begin with the version")
def _(work):
    session(work, 0, 12)
    name, = event_files(work)
    records = list(frames(os.path.join(work, name)))
    assert b"brain.Event:2" in records[0] and len(records) == 2 + 12 + 3


@case("TensorBoard shows the scalars of metrics.jsonl")
def _(work):
    session(work, 0, 30)
    seen, found = seen_by_tensorboard(work), lines(work)
    with open(os.path.join(work, "run.json"), encoding="utf-8") as f:
        result = json.load(f)["results"][0]
    assert "auroc_of" in result
    steps = [e for e in found if e["kind"] == "step"]
    evaluations = [e for e in found if e["kind"] == "evaluation"]
    wanted = {"train/loss": [[e["step"], e["loss"]] for e in steps],
              "train/learning_rate": [[e["step"], e["learning_rate"]] for e in steps],
              "train/gradient_norm": [[e["step"], e["gradient_norm"]] for e in steps if e["step"] != 7],
              "speed/images_per_second": [[e["step"], 128] for e in steps],
              "epoch/loss": [[10, 10], [20, 20], [30, 30]],
              "val/loss": [[e["step"], 0.25] for e in evaluations]}
    metrics = [key[:-3] for key in evaluations[0] if key.endswith("_95")]
    assert metrics[:2] == ["auroc", "auprc"]
    for metric in metrics:
        wanted["val/" + metric] = [[e["step"], e[metric]] for e in evaluations]
    for name, value in EFFICIENCY.items():
        if value is not None:
            wanted["efficiency/" + name] = [[step, value] for step in (10, 20, 30)]
    for part in steps[0]["parts"]:
        wanted["speed/" + part] = [[e["step"], e["parts"][part] / e["seconds"]] for e in steps]
    for i, name in enumerate(FINDINGS[:13]):
        for metric in metrics:
            if metric + "_of" in result:
                wanted[f"val/{metric}/{name}"] = [[e["step"], e["findings"][i][metric]] for e in evaluations]
    for reader in ("scalars", "scalars_of_server"):
        assert set(seen[reader]) == set(wanted), set(seen[reader]) ^ set(wanted)
        for tag, series in wanted.items():
            assert [s for s, _ in seen[reader][tag]] == [s for s, _ in series], tag
            for (_, a), (_, b) in zip(seen[reader][tag], series):
                assert abs(a - b) <= 1e-6 * abs(b), f"{tag}: {a} instead of {b}"


@case("TensorBoard drops the steps after the checkpoint of a restart")
def _(work):
    session(work, 0, 25, 0, "kill")
    session(work, 20, 27, 1, "kill")
    session(work, 20, 30, 2)
    seen = seen_by_tensorboard(work)
    wanted = [[i, i] for i in range(1, 21)] + [[i, i + 0.25] for i in range(21, 31)]
    assert seen["scalars"]["train/loss"] == wanted, seen["scalars"]["train/loss"]
    assert seen["scalars_of_server"]["train/loss"] == wanted
    assert [step for step, _ in seen["scalars"]["val/auroc"]] == [10, 20, 30]
    assert len(seen["files"]) == 3
    session(work, 0, 5, 3)
    seen = seen_by_tensorboard(work)
    assert seen["scalars"]["train/loss"] == [[i, i + 0.375] for i in range(1, 6)]
    assert "val/auroc" not in seen["scalars"] or not seen["scalars"]["val/auroc"]


@case("a new event file sorts after the existing ones, whatever the clock says")
def _(work):
    late = 3000000000
    with open(os.path.join(work, f"events.out.tfevents.{late}.host.1"), "wb"):
        pass
    session(work, 0, 3)
    session(work, 3, 6)
    assert [int(n.split(".")[3]) for n in event_files(work)] == [late, late + 1, late + 2]


# ---- Prometheus, trace ---------------------------------------------------------------------------------------------


@case("the manual's jq command writes the newest numbers of a run as text for Prometheus")
def _(work):
    if shutil.which("jq") is None:
        raise Skip("no jq")
    folder = os.path.join(work, "runs", "a")
    os.makedirs(os.path.dirname(folder))
    session(folder, 0, 20)
    with open(os.path.join(SOURCE, "man", "chex-train.1"), encoding="utf-8") as f:
        command = blocks(f.read(), "example")["prometheus"]
    run(["sh", "-c", command.removeprefix("$ ")], cwd=work)
    with open(os.path.join(work, "chex.prom"), encoding="utf-8") as f:
        samples = [re.fullmatch(r"([a-z_]+) (-?[0-9.]+(?:[eE][-+]?[0-9]+)?)\n", line).groups() for line in f]
    values = {name: float(value) for name, value in samples}
    assert len(values) == len(samples), "a sample twice"
    for kind in ("step", "epoch", "evaluation", "times"):
        last = [e for e in lines(folder) if e["kind"] == kind][-1]
        for key, value in last.items():
            if type(value) in (int, float):
                assert abs(values.pop(f"chex_train_{kind}_{key}") - value) <= 1e-12 * abs(value), key
    assert set(values) == {"chex_train_note_step", "chex_train_note_epoch", "chex_train_note_time"}, values
    assert os.listdir(work).count("chex.tmp") == 0


def of_track(events, rank, track):
    return [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (rank, track)]


@case("a trace is JSON in the Trace Event Format: each rank a process, its parts inside their steps, none over another")
def _(work):
    path = os.path.join(work, "t.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write("an old one, longer than the new")
    session(os.path.join(work, "run"), 0, 12, 0, "end", (path, 0))
    with open(path, encoding="utf-8") as f:
        events = json.load(f)
    for rank in range(2):
        steps, host, device = (of_track(events, rank, track) for track in range(3))
        assert [e["name"] for e in steps] == [f"step {i}" for i in range(1, 13)]
        assert [e["name"] for e in host] == ["meet"] * 12
        assert [e["name"] for e in device] == ["forward", "backward"] * 12, "what ends before it begins is left out"
        for step, forward, backward in zip(steps, device[::2], device[1::2]):
            assert abs(step["dur"] - 1000) < 0.01 and abs(forward["dur"] - 250) < 0.01
            assert abs(backward["dur"] - 500) < 0.01, "what lies before the end of the track is left out"
            assert abs(forward["ts"] - step["ts"]) < 0.2 and abs(backward["ts"] - forward["ts"] - 250) < 0.2
        names = [e["args"]["name"] for e in events if e["ph"] == "M" and e["pid"] == rank and "name" in e["args"]]
        assert names == [f'chex-train, rank {rank}, n"07', "steps", "host", "device"], names


@case("a trace is bounded, and a run that is killed leaves a valid one")
def _(work):
    path = os.path.join(work, "t.json")
    session(os.path.join(work, "run"), 0, 1000, 0, "end", (path, 20000))
    with open(path, encoding="utf-8") as f:
        events = json.load(f)
    assert os.path.getsize(path) <= 20000 and events[-1]["name"] == "the trace is full" and len(events) > 100
    session(os.path.join(work, "run"), 0, 20000, 0, "kill", (path, 0))
    with open(path, encoding="utf-8") as f:
        assert len(json.load(f)) > 10000
    assert os.path.getsize(path) > 1 << 20 and sorted(os.listdir(work)) == ["run", "t.json"]


@case("a disk that is full ends the trace, not the run")
def _(work):
    full = os.path.join(work, "trace")
    os.makedirs(full)
    done = run([program("write-run"), os.path.join(work, "run"), DATASET, 0, 10, 0, "end",
                os.path.join(full, "t.json"), 0], env=injected(full, "write:1:ever:ENOSPC"))
    assert done.stderr.count("warning:") == 1 and "without the trace" in done.stderr, done.stderr


# ---- chex-inspect --------------------------------------------------------------------------------------------------


@case("chex-inspect refuses an event file and names TensorBoard")
def _(work):
    session(work, 0, 3)
    name, = event_files(work)
    done = run([program("chex-inspect"), os.path.join(work, name)], 3)
    assert "is an event file: use tensorboard --logdir" in done.stderr, done.stderr


# ---- faults --------------------------------------------------------------------------------------------------------


def injected(work, fault):
    library = os.path.join(BUILD, "tests", "faults", "inject.so")
    if not os.path.exists(library):
        raise Skip("inject.so is not built")
    if "sanitize" in subprocess.run(["nm", "-D", program("write-run")], capture_output=True, text=True,
                                    check=False).stdout:
        raise Skip("preloading and the sanitizers do not go together")
    return dict(os.environ, LD_PRELOAD=os.path.abspath(library), CHEX_FAULT=fault, CHEX_FAULT_BELOW=work)


def whole(work):
    """What is there is whole."""
    found = lines(work)
    for name in event_files(work):
        list(frames(os.path.join(work, name)))
    return found


@case("a full disk is reported once, the run continues, and nothing half is left")
def _(work):
    folder = os.path.join(work, "run")
    limit = 60000

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    _, said = session(folder, 0, 100, preexec_fn=small)
    assert said.count("warning:") == 1 and "File too large" in said and "the run continues" in said, said
    found = whole(folder)
    assert len(found) > 50 and all(os.path.getsize(os.path.join(folder, n)) <= limit for n in os.listdir(folder))


@case("a disk that is full for a while leaves no hole")
def _(work):
    folder = os.path.join(work, "run")
    session(folder, 0, 10)
    before = len(lines(folder))
    for n in range(1, 12):
        fresh = os.path.join(work, f"run{n}")
        os.mkdir(fresh)
        for kind in ("once:ENOSPC", "once:short", "once:EINTR"):
            done = run([program("write-run"), fresh, DATASET, 0, 10, 0, "end"], None,
                       env=injected(fresh, f"write:{n}:{kind}"))
            if done.returncode != 0:  # run.json, which the trainer judges
                assert "run.json" in done.stderr, done.stderr
                continue
            assert done.stderr.count("warning:") == (kind == "once:ENOSPC" and "warning:" in done.stderr), done.stderr
            assert len(whole(fresh)) == before, f"write {n} {kind}: {len(whole(fresh))} lines"


@case("what cannot be opened, synced or renamed is reported once, the run continues")
def _(work):
    told = 0
    for kind in ("open", "sync", "rename", "close"):
        for n in range(1, 9):
            folder = os.path.join(work, f"{kind}{n}")
            session(folder, 0, 10, 0, "kill")
            done = run([program("write-run"), folder, DATASET, 5, 20, 0, "end"], None,
                       env=injected(folder, f"{kind}:{n}:ever:EIO"))
            assert done.returncode in (0, 1) and done.stderr.count("warning:") <= 1, done.stderr
            if done.returncode == 1:
                assert "run.json" in done.stderr or "folder" in done.stderr, done.stderr
            told += "warning:" in done.stderr
            whole(folder)
    assert told > 3, f"only {told} runs were told of a fault"


@case("allocations that fail end no run")
def _(work):
    reported = os.path.join(work, "report")
    folder = os.path.join(work, "first")
    os.mkdir(folder)
    env = injected(folder, "memory:1000000:once:ENOMEM")
    env["CHEX_FAULT_REPORT"] = reported
    run([program("write-run"), folder, DATASET, 0, 10, 0, "end"], env=env)
    count = dict(line.split() for line in slurp(reported).decode().splitlines())["memory"]
    total, tried = int(count), 0
    for n in range(1, total, max(1, total // 60)):
        folder = os.path.join(work, str(n))
        os.mkdir(folder)
        done = run([program("write-run"), folder, DATASET, 0, 10, 0, "end"], None,
                   env=injected(folder, f"memory:{n}:once:ENOMEM"))
        assert done.returncode in (0, 1), f"allocation {n}: exit code {done.returncode}\n{done.stderr}"
        assert done.returncode == 0 or "memory" in done.stderr, done.stderr
        if os.path.exists(os.path.join(folder, "metrics.jsonl")):
            whole(folder)
        tried += 1
    assert tried > 20


@case("a folder that was deleted is reported, and a link is not followed")
def _(work):
    folder = os.path.join(work, "run")
    os.mkdir(folder)
    os.symlink(os.path.join(work, "elsewhere"), os.path.join(folder, "metrics.jsonl"))
    _, said = session(folder, 0, 10)
    assert said.count("warning:") == 1 and not os.path.exists(os.path.join(work, "elsewhere")), said
    os.remove(os.path.join(folder, "metrics.jsonl"))
    os.mkfifo(os.path.join(folder, "metrics.jsonl"))
    _, said = session(folder, 0, 10)
    assert said.count("warning:") == 1, said


if __name__ == "__main__":
    raise SystemExit(case.main())
