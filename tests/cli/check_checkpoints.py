#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect and checkpoints: description, list, diff; whether what they say is true.

    check_checkpoints.py [PATTERN]      $CHEX_INSPECT, $CHEX_CONVERT, $CHEX_SYNTH, $CHEX_TRAIN or in $BUILDDIR
"""
import functools
import json
import math
import os
import random
import re
import shutil
import struct
import sys
import tempfile

from check_diff import document, inspect, rows
import harness
from support import Cases, cache_folder, program, run, says, slurp, synth, write

case = Cases()

FORMATS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "B"}


def raw(header, data):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text)) + text + data


def pack(dtype, values):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


def save(path, tensors, metadata=None):
    """tensors: {name: (dtype, shape, values)}, in the order of the file."""
    head, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, values) in tensors.items():
        assert len(values) == math.prod(shape), name
        packed = pack(dtype, values)
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    return write(path, raw(head, data))


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


# ---- one file ----------------------------------------------------------------------------------------------------


@case("a checkpoint is recognised by its content; its header must fit the file")
def _(work):
    path = os.path.join(work, "x")
    head = {"__metadata__": {"step": "7"}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
            "b": {"dtype": "F32", "shape": [], "data_offsets": [24, 28]}}
    write(path, raw(head, bytes(28)))
    assert "2 tensors, 7 numbers, " in inspect(path).stdout
    found = document(path)
    assert (found["kind"], found["fault"]) == ("checkpoint", None)
    tensors = [{"name": "b", "dtype": "F32", "shape": []}, {"name": "w", "dtype": "F32", "shape": [2, 3]}]
    told = {"file": path, "tensors": tensors, "numbers": 7, "bytes": os.path.getsize(path), "metadata": {"step": "7"},
            "times": None}
    assert found["checkpoint"] == {**told, "not_finite": 0}
    assert document("check", "--quick", path)["checkpoint"] == {**told, "not_finite": None}
    assert document("check", "--full", path)["checkpoint"] == {**told, "not_finite": 0}
    assert inspect("-q", path).stdout == ""
    says(inspect("labels", path, code=2), "a checkpoint: it can be described and compared")
    says(inspect("list", path, code=2), "a checkpoint: it can be described and compared")
    write(path, raw(head, bytes(27)))
    assert "after the end of the file" in inspect(path, code=1).stdout
    assert document(path, code=1)["checkpoint"] is None
    write(path, raw(head, bytes(29)))
    assert "1 bytes after the last tensor" in inspect(path, code=1).stdout
    for bad in (b'{"w": 1}', b'{"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', b"{" * 4000,
                b'{"w": {"dtype": "F32", "shape": [4294967296, 4294967296, 4294967296], "data_offsets": [0, 4]}}',
                b'{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, -4]}}'):
        write(path, raw(bad, bytes(4)))
        assert "a checkpoint (safetensors): " in inspect(path, code=1).stdout, bad[:40]
        says(inspect("diff", path, path, code=1), "chex-inspect: ")
    write(path, struct.pack("<Q", 1 << 62) + b"{}")
    assert "neither" in inspect(path, code=3).stderr


@case("a checkpoint that ends within its header is damaged, not an unknown file")
def _(work):
    path = os.path.join(work, "x")
    head = {"w": {"dtype": "F32", "shape": [7], "data_offsets": [0, 28]}}
    for end in (9, 20, 60):
        write(path, raw(head, bytes(28))[:end])
        assert "the file ends within its header" in inspect(path, code=1).stdout, end
        assert document(path, code=1)["checkpoint"] is None


@case("-v and --json have name, type and shape of each tensor, in each type")
def _(work):
    tensors = {}
    for dtype in ("F64", "F32", "F16", "BF16"):
        for shape in ([], [1], [4096], [3, 4097], [0], [2, 0, 3]):
            tensors[f"{dtype}.{'x'.join(map(str, shape))}"] = dtype, shape, [1.5] * math.prod(shape)
    for dtype in ("I64", "I32", "I16", "I8", "U8", "BOOL"):
        tensors[dtype] = dtype, [9], [1] * 9
    path = save(os.path.join(work, "x.safetensors"), tensors)
    listed = document(path)["checkpoint"]["tensors"]
    assert listed == [{"name": name, "dtype": tensors[name][0], "shape": tensors[name][1]} for name in sorted(tensors)]
    text = inspect("-v", path).stdout
    assert "\n         F32.3x4097   F32   3x4097\n" in text and all(name in text for name in tensors), text
    assert "\n         F32.         F32   a single value\n" in text, text


@case("values that are not finite are a fault; the tensors with them are named")
def _(work):
    path = save(os.path.join(work, "x.safetensors"), {
        "good": ("F32", [2], [1, -3]), "nan": ("F32", [5000], [1.0] * 4999 + [math.nan]),
        "inf": ("BF16", [3], [math.inf, -math.inf, 2]), "half": ("F16", [2], [math.nan, 0.5])})
    text = inspect(path, code=1).stdout
    assert text.startswith(f"{path}: a checkpoint (safetensors): 4 tensors, 5,007 numbers, ")
    assert "4 values not finite, the first in 'half'" in text
    found = document(path, code=1)
    assert found["fault"].startswith("4 values not finite")
    assert found["checkpoint"]["not_finite"] == 4
    inspect("check", "--quick", path)


# ---- diff ------------------------------------------------------------------------------------------------------------

META = {"tool": "chex-train", "version": "0.1.0"}


@case("diff: another order of the tensors in the file is not a difference; exit code 0")
def _(work):
    tensors = {"w": ("F32", [2, 3], [1, 2, 3, 4, 5, math.nan]), "n": ("I64", [], [7])}
    a = save(os.path.join(work, "a"), tensors, META)
    b = save(os.path.join(work, "b"), dict(reversed(tensors.items())), META)
    assert slurp(a) != slurp(b)
    result = document("diff", a, b)
    assert result["same"] and not result["changes"]
    assert inspect("diff", a, b).stdout.splitlines()[2:] == ["equal"]
    assert rows("diff", a, b)[0] == []
    assert inspect("-q", "diff", a, b).stdout == ""


@case("diff: each kind of difference with its numbers, and no other; the complete table")
def _(work):
    state = {"model": "densenet-micro", "step": "9", "epoch": 1, "best": (0.1).hex(), "settings": "lr 0.001\ncrop 32\n"}
    a = save(os.path.join(work, "a"), {
        "same": ("F32", [2], [1, 2]), "moved": ("F32", [3], [3, 0, 4]), "bad": ("F32", [2], [1, 1]),
        "zero": ("F32", [1], [0]), "shape": ("F32", [2, 2], [0] * 4), "type": ("F32", [2], [0.5, 0.1]),
        "only": ("F32", [], [0]), "steps": ("I64", [], [9])}, {**META, "state": json.dumps(state), "note": "x"})
    state.update(step="18", epoch=2, best=(0.25).hex(), settings="lr 0.01\ncrop 32\n")
    b = save(os.path.join(work, "b"), {
        "same": ("F32", [2], [1, 2]), "moved": ("F32", [3], [3, 0.5, 4]), "bad": ("F32", [2], [2, math.nan]),
        "zero": ("F32", [1], [-2]), "shape": ("F32", [4], [0] * 4), "type": ("F16", [2], [0.5, 0.1]),
        "more": ("F32", [5], [0] * 5), "steps": ("I64", [], [18])}, {**META, "state": json.dumps(state)})
    result = document("diff", a, b, code=1)
    assert not result["same"]
    between = abs(struct.unpack("<e", struct.pack("<e", 0.1))[0] - single(0.1))
    plain = {(c["kind"], c["name"]): (c["a"], c["b"]) for c in result["changes"] if c["kind"] != "values"}
    assert plain == {
        ("meta", "note"): ("x", ""), ("meta", "options.lr"): ("0.001", "0.01"), ("meta", "state.best"): ("0.1", "0.25"),
        ("meta", "state.epoch"): ("1", "2"), ("meta", "state.step"): ("9", "18"),
        ("only_a", "only"): ("a single value", ""), ("only_b", "more"): ("", "5"), ("shape", "shape"): ("2x2", "4"),
        ("dtype", "type"): ("F32", "F16")}, plain
    values = [(c["name"], c["max_abs"]) for c in result["changes"] if c["kind"] == "values"]
    assert values == [("bad", None), ("moved", 0.5), ("steps", 9), ("type", between), ("zero", 2)], values
    table, lines = rows("diff", a, b, code=1)
    assert [r["name"] for r in table] == [c["name"] for c in result["changes"]]
    for line, change in zip(lines, result["changes"]):
        assert {k: v for k, v in line.items() if v is not None} == {k: v for k, v in change.items() if v is not None}
    os.chdir(work)
    text = inspect("diff", "a", "b", code=1).stdout
    assert text == f"""\
A        8 tensors, {size(a)}  a
B        8 tensors, {size(b)}  b
meta     note                       x -> -
meta     state.step                 9 -> 18
meta     state.epoch                1 -> 2
meta     state.best                 0.1 -> 0.25
meta     options.lr                 0.001 -> 0.01
values   bad                        not finite
only_b   more                       - -> 5
values   moved                      differ by 0.5 at most
only_a   only                       a single value -> -
shape    shape                      2x2 -> 4
values   steps                      differ by 9 at most
dtype    type                       F32 -> F16
values   type                       differ by {between:.4g} at most
values   zero                       differ by 2 at most
""", text


def size(path):
    n = os.path.getsize(path)
    return f"{n} bytes" if n < 1000 else f"{n / 1000:.1f} kB"


@case("diff: the largest difference is found in any piece of a long tensor")
def _(work):
    draw = random.Random(3)
    values = [draw.uniform(-1, 1) for _ in range(10001)]
    other = list(values)
    for place, by in ((0, 1e-3), (4095, -2e-3), (4096, 0.5), (10000, 0.25)):
        other[place] += by
    a = save(os.path.join(work, "a"), {"w": ("F32", [10001], values)})
    b = save(os.path.join(work, "b"), {"w": ("F32", [10001], other)})
    change, = document("diff", a, b, code=1)["changes"]
    assert change == {"kind": "values", "name": "w", "a": "", "b": "",
                      "max_abs": single(other[4096]) - single(values[4096])}


@case("diff: what cannot be done, and damaged files")
def _(work):
    a = save(os.path.join(work, "a"), {"w": ("F32", [4], [1, 2, 3, 4])})
    data = os.path.join(work, "data")
    labels = synth(os.path.join(work, "in"), 40, "--size", 64)
    run([program("chex-convert"), "-q", "-i", os.path.join(work, "in", "images"), "-l", labels, "-o", data,
         "--size", 32])
    for pair in ((a, data), (data, a)):
        says(inspect("diff", *pair, code=2), "two of a kind", "is a data set")
    says(inspect("diff", a, code=2), "two PATHs")
    says(inspect("diff", a, os.path.join(work, "no"), code=3), "cannot open")
    cut = write(os.path.join(work, "cut"), slurp(a)[:-1])
    for pair in ((a, cut), (cut, a)):
        says(inspect("diff", *pair, code=1), f"'{cut}'.* after the end of the file")
    found = json.loads(inspect("--json", "diff", a, cut, code=1).stdout)
    assert found["results"][0]["error"]["status"] == "truncated"
    odd = save(os.path.join(work, "odd"), {"\x1b[2J\n\u20ac" + "x" * 3000: ("F32", [1], [1])}, {"\x07": "\x1b]0;x"})
    for options in ([], ["-v"], ["--format", "csv"], ["--format", "jsonl"], ["--json"]):
        text = inspect("diff", *options, a, odd, code=1).stdout + inspect("-v", odd).stdout
        assert "\x1b" not in text and "\x07" not in text


# ---- the folder of a run -----------------------------------------------------------------------------------------

CACHE = cache_folder("checkpoints")


@functools.lru_cache(None)
def trained(name, *options):
    labels = os.path.join(CACHE, "in", "Data_Entry_2017_v2020.csv")
    if not os.path.exists(labels):
        synth(os.path.join(CACHE, "in"), 60, "--size", 64)
        run([program("chex-convert"), "-q", "-i", os.path.join(CACHE, "in", "images"), "-l", labels, "-o",
             os.path.join(CACHE, "data"), "--size", 32, "--shard-size", 8])
    out = os.path.join(CACHE, name)
    run([program("chex-train"), "-q", "-d", os.path.join(CACHE, "data"), "-o", out, "--model", "densenet-micro",
         "--crop", 32, "--device", "cpu", "--epochs", 2, "--batch", 8, "-j", 1, *options])
    return out


@case("the folder of a run means its newest complete checkpoint, without one its best.safetensors")
def _(work):
    out = os.path.join(work, "run")
    shutil.copytree(trained("a"), out)
    newest, older = [os.path.join(out, line.split()[0] + ".safetensors")
                     for line in slurp(os.path.join(out, "latest")).decode().splitlines()]
    assert document(out)["checkpoint"]["file"] == newest
    assert document(out + "/")["path"] == out + "/"
    result = document("diff", out, newest)
    assert result["same"] and result["files"] == [newest, newest] and result["paths"] == [out, newest]
    data = bytearray(slurp(newest))
    data[-1] ^= 1
    write(newest, data)
    done = inspect("--json", out)
    assert json.loads(done.stdout)["results"][0]["checkpoint"]["file"] == older
    assert "warning: " in done.stderr and os.path.basename(newest) in done.stderr
    best = os.path.join(out, "best.safetensors")
    for name in os.listdir(out):
        if name.startswith(("step-", "latest")):
            os.remove(os.path.join(out, name))
    assert document(out)["checkpoint"]["file"] == best
    os.remove(best)
    says(inspect(out, code=3), "no data set in")


@case("two runs: the same options give the same checkpoint; another learning rate is named, and moves the weights")
def _(_work):
    a, b, other = trained("a"), trained("b"), trained("c", "--lr", "0.01")
    assert document("diff", a, b)["same"]
    result = document("diff", a, other, code=1)
    assert {c["kind"] for c in result["changes"]} == {"meta", "values"}
    meta = {c["name"]: (c["a"], c["b"]) for c in result["changes"] if c["kind"] == "meta"}
    assert meta["options.lr"] == ("0.001", "0.01") and "state.step" not in meta
    moved = {c["name"] for c in result["changes"] if c["kind"] == "values"}
    assert "classifier.weight" in moved and not any(name.endswith("num_batches_tracked") for name in moved)
    optimizers = [f"{run_}/{os.path.basename(result['files'][0])[:-12]}.opt.safetensors" for run_ in (a, b)]
    assert document("diff", *optimizers)["same"]


# ---- faults ------------------------------------------------------------------------------------------------------


def fail(command, folder, fault, reference):
    ended = harness.run([program("chex-inspect"), *command], [folder], fault)
    assert ended.code is not None, f"{fault}: it hangs"
    if ended.code == reference.code and "warning: " not in ended.err:
        # A checkpoint that cannot be read is a fault too, and not a difference.
        assert ended.out == reference.out or (ended.code == 1 and ended.err), f"{fault}: {ended.out[-300:]}"
    else:
        passed_over = ended.code == 0 and "warning: " in ended.err
        assert ended.code in (1, 3, 4, 6) or passed_over, f"{fault}: exit code {ended.code}: {ended.err}"
        assert ended.err.strip() or ended.out.strip(), f"{fault}: an exit code without a word"


# ---- the other files of a run ----------------------------------------------------------------------------------------


def faults_of(folder, code=1):
    """What chex-inspect says of a run, with its faults in the first line."""
    return inspect("check", "--quick", folder, code=code).stdout


def changed(value, path, change):
    """A copy of a JSON value in which change(container, key) was made at a path of keys."""
    copy = json.loads(json.dumps(value))
    at = copy
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return copy


def members(value, path=()):
    """The paths of all members, but not of those with a name of the data: findings, options, parts."""
    free = {"positives", "known", "options", "hosts", "libraries", "auroc_of", "auprc_of", "parts", "factors",
            "cpu_parts"}
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, each in items:
        if isinstance(value, dict):
            yield (*path, key)
        if key not in free:
            yield from members(each, (*path, key))


# Members that earlier versions did not write, or that are not checked.
LOOSE = {"certificate", "optimistic", "loss_scale", "steps_skipped", "modelled", "epochs", "auprc_of", "cpu", "useful",
         "threads", "cpu_parts", "known", "in_use", "epoch_images", "resize"}


@case("metrics.jsonl of a run: each member that is missing or of another type is named with its line")
def _(work):
    folder = shutil.copytree(trained("a"), os.path.join(work, "run"))
    path = os.path.join(folder, "metrics.jsonl")
    lines = slurp(path).decode().splitlines()
    assert "metrics.jsonl" not in faults_of(folder, 0)
    for kind in ("step", "epoch", "evaluation", "times", "note"):
        number = next(i for i, line in enumerate(lines) if line.startswith(f'{{"kind":"{kind}"'))
        line = json.loads(lines[number])
        checked = 0
        for where in members(line):
            if where[-1] in LOOSE or isinstance(where[-1], int):
                continue
            for change in (lambda at, key: at.pop(key), lambda at, key: at.update({key: {"x": [{}]}})):
                write(path, "".join(each + "\n" for each in [*lines[:number], json.dumps(changed(line, where, change)),
                                                             *lines[number + 1:]]))
                text = faults_of(folder)
                assert f"metrics.jsonl line {number + 1}: '{where[0]}" in text, (where, text)
                checked += 1
        assert checked >= 10, (kind, checked)


@case("run.json of a run: each member that is missing or of another type is named")
def _(work):
    folder = shutil.copytree(trained("a"), os.path.join(work, "run"))
    path = os.path.join(folder, "run.json")
    whole = json.loads(slurp(path))
    for where in members(whole):
        if where[-1] in LOOSE:
            continue
        for change in (lambda at, key: at.pop(key), lambda at, key: at.update({key: 7.5})):
            write(path, json.dumps(changed(whole, where, change)))
            if change.__code__.co_names[0] == "update" and where[-1] in ("value", "auroc", "auprc"):
                continue  # a number there is one
            assert f"run.json: '{where[0]}" in faults_of(folder), where


@case("lists of metrics.jsonl and run.json have as many values as the schemas say; epochs of a start is a whole number")
def _(work):
    folder = shutil.copytree(trained("a"), os.path.join(work, "run"))
    metrics, about = os.path.join(folder, "metrics.jsonl"), os.path.join(folder, "run.json")
    lines = [json.loads(line) for line in slurp(metrics).decode().splitlines()]
    whole = json.loads(slurp(about))
    for kind, change, told in (("evaluation", {"auroc_95": [0.5]}, "'auroc_95' is a list, not a list of 2 values"),
                               ("evaluation", {"auprc_95": [0, 0.5, 1]}, "'auprc_95' is a list, not a list of 2"),
                               ("times", {"ranks": []}, "'ranks' is a list, not a list of at least 1 value")):
        write(metrics, json.dumps({**next(line for line in lines if line["kind"] == kind), **change}) + "\n")
        assert told in faults_of(folder), told
    os.unlink(metrics)
    for change, told in (({"sessions": []}, "'sessions' is a list, not a list of at least 1 value"),
                         ({"sessions": [{**whole["sessions"][0], "epochs": 1.5}]}, "'sessions[0].epochs' is 1.5")):
        write(about, json.dumps({**whole, **change}))
        assert told in faults_of(folder), told


@case("garbage in metrics.jsonl and run.json: 1, with the file and the line; what a kill leaves is a note")
def _(work):
    folder = shutil.copytree(trained("a"), os.path.join(work, "run"))
    metrics, about = os.path.join(folder, "metrics.jsonl"), os.path.join(folder, "run.json")
    lines, whole = slurp(metrics), slurp(about)
    step = next(line for line in lines.splitlines() if line.startswith(b'{"kind":"step"'))
    after = f"line {lines.count(10) + 1}: "
    for text, told in ((b"garbage\n", "line 1: "), (b"garbage", "line 1: "),
                       (lines + b"\xff\xfe\0\n" + lines, after),
                       (lines + b"\n", after), (b"[]\n", "line 1: 'kind' is"),
                       (lines + b'{"kind":"other"}\n', "'kind' is \"other\", not step or epoch or evaluation"),
                       (re.sub(b'"loss":[^,]+', b'"loss":NaN', step) + b"\n", "line 1: invalid token near 'NaN'"),
                       (re.sub(b'"loss":[^,]+', b'"loss":1e999', step) + b"\n", "line 1: real number overflow"),
                       (re.sub(b'"step":1,', b'"step":%d,' % 10 ** 30, step) + b"\n",
                        "line 1: 'step' is 1e+30, not a whole number from 0"),
                       (re.sub(b'"step":1,', b'"step":-1,', step) + b"\n", "'step' is -1, not a whole number from 0"),
                       (re.sub(b'"step":1,', b'"step":1,"step":2,', step) + b"\n", "line 1: duplicate object key"),
                       (b'{"kind":"step"' + b"[" * 5000 + b"\n", "line 1: nested deeper than 8"),
                       (b'{"a":1}\n' * 3,
                        "line 1: 'kind' is missing, not step or epoch or evaluation or times or note, and 2 more")):
        write(metrics, text)
        said = faults_of(folder)
        assert "metrics.jsonl " in said and told in said, (text[-80:], said)
        assert document(folder, code=1)["fault"] in said
    for text in (b"", lines[:-20], lines + b"{", lines + b'{"kind":"no'):
        write(metrics, text)
        note = "note: metrics.jsonl ends within a line" in faults_of(folder, 0)
        assert note == (text != b""), text[-40:]
    os.unlink(metrics)
    faults_of(folder, 0)
    for text, told in ((b"", "empty file"), (b"\0" * 100, "line 1: "), (whole[:-10], "line "),
                       (b"[1]", "not an object"),
                       (whole.replace(b'"format": 1', b'"format": 2'), "'format' is 2, not a whole number from 1 to 1"),
                       (whole.replace(b'"tool": "chex-train"', b'"tool": "other"'),
                        "'tool' is \"other\", not chex-train"),
                       (whole.replace(b'"ranks": 1,', b'"ranks": NaN,'), "invalid token near 'NaN'"),
                       (whole.replace(b'"from_step": 0', b'"from_step": 1.5'), "'sessions[0].from_step' is 1.5, not a"),
                       (whole.replace(b'"positives": {', b'"positives": {"\\u001b": "x",', 1),
                        "'dataset.splits[0].positives.\\x1b' is \"x\", not a whole number from 0")):
        write(about, text)
        said = faults_of(folder)
        assert "run.json: " in said and told in said.splitlines()[0], (told, said)
    os.unlink(about)
    faults_of(folder, 0)


@case("every read, open and allocation fails")
def _(work):
    a = save(os.path.join(work, "a"), {"w": ("F32", [5000], [1] * 5000), "n": ("I64", [], [1])}, META)
    b = save(os.path.join(work, "b"), {"w": ("F32", [5000], [2] * 5000), "n": ("I64", [], [2])},
             {"state": json.dumps({"step": "3", "settings": "lr 1\n"})})
    shutil.copytree(trained("a"), os.path.join(work, "run"))
    cases = []
    for command in (["diff", a, b], ["diff", "--json", a, b], ["diff", "--format", "csv", a, b],
                    [a], ["--json", b], ["-v", os.path.join(work, "run")]):
        with tempfile.TemporaryDirectory(dir=work) as reports:
            reference = harness.run([program("chex-inspect"), *command], [work], report=os.path.join(reports, "x"))
        assert reference.code == ("diff" in command), reference.err
        for kind, whats, tried in (("read", ("EIO", "short"), 4), ("open", ("EMFILE", "EACCES"), 6),
                                   ("memory", ("ENOMEM",), 24)):
            every = max(1, reference.counts[kind] // tried)
            cases += [(command, work, f"{kind}:{n}:{mode}:{what}", reference) for what in whats
                      for mode in ("once", "ever") for n in range(1, reference.counts[kind] + 1, every)]
    assert len(cases) > 200, len(cases)  # clang's sanitizer has an allocator of its own, where nothing can fail
    harness.in_parallel(lambda t: fail(*t), cases)


if __name__ == "__main__":
    sys.exit(case.main())
