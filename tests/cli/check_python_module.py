#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The module chex_tools: NumPy, runs and programs.  check_python_torch.py has PyTorch and TensorFlow.

    check_python_module.py [PATTERN]

The cases run in a Python with NumPy (CHEX_PYTHON names another one): `make check-pythons` runs them with each Python
that it finds.
"""
import functools
import hashlib
import json
import os
import re
import shutil
import struct
import sys

from support import (BUILD, FINDINGS, SOURCE, Cases, Skip, cache_folder, images, manifest, program, python_with, run,
                     says, slurp, synth, write)

case = Cases()
CACHE = cache_folder("module")
MODULE = os.path.join(SOURCE, "python")


@functools.lru_cache(None)
def dataset(*options):
    """A data set; without a constant size of views if there is an option."""
    folder, out = os.path.join(CACHE, f"in{len(options)}"), os.path.join(CACHE, f"shards{len(options)}")
    labels = synth(folder, 150, "--size", "64")
    if options:
        write(labels, slurp(labels).decode().replace(",PA,", ",,", 40))
    run([program("chex-convert"), "-q", "-i", f"{folder}/images", "-l", labels, "-o", out, "--size", "48",
         "--shard-size", "16", *options])
    return out


@functools.lru_cache(None)
def trained(*options):
    """A run of two epochs."""
    out = os.path.join(CACHE, f"run{len(options)}")
    run([program("chex-train"), "-q", "-d", dataset(), "-o", out, "--model", "densenet-micro", "--epochs", "2",
         "--bootstrap", "0", *options])
    return out


def python(text, *words, code=0, work=None, **variables):
    """Run this text in a Python that has NumPy and the module; the programs of this build are in PATH."""
    environment = dict(os.environ, PYTHONPATH=MODULE, PATH=f"{BUILD}:{os.environ['PATH']}", **variables)
    return run([python_with("numpy"), "-c", text, *words], code, env=environment, cwd=work)


def copied(work, folder=None):
    out = os.path.join(work, "copy")
    shutil.copytree(folder or dataset(), out)
    return out


RECORDS = """import json, sys
from chex_tools import Dataset
data = Dataset(sys.argv[1], *sys.argv[2:])
for record in data:
    print(json.dumps([record.name, record.patient, record.age, record.sex, record.view, record.label.tolist(),
                      record.split, record.slot, record.image.tobytes().hex()]))
"""


@case("records of every split equal those of the shards, also where views have different sizes")
def _(_work):
    for folder, splits in ((dataset(), ("train", "val", "test")),
                           (dataset("--split", "patient:80,10,10"), ("train",))):
        for split in splits:
            there = images(folder, split) if "view" in manifest(folder)["dtype"]["names"] else None
            rows = [json.loads(line) for line in python(RECORDS, folder, split).stdout.splitlines()]
            counted = next(s for s in manifest(folder)["splits"] if s["name"] == split)
            assert len(rows) == counted["images"] > 0
            if there is None:  # views of 1 and 2 bytes: chex-inspect reads them
                listed = json.loads(run([program("chex-inspect"), "list", "--json", "--fields",
                                         "name,patient,age,sex,view", "--split", split, folder]).stdout)
                listed = listed["results"][0]["records"]
                assert {r["view"] for r in listed} == {"U", "PA", "AP"}
                assert [r[0:5] for r in rows] == [[r[k] for k in ("name", "patient", "age", "sex", "view")]
                                                  for r in listed]
                continue
            assert {r[0] for r in rows} == there.keys()
            for name, patient, age, sex, view, label, _split, slot, image in rows:
                r = there[name]
                assert (patient, age, sex, view) == (r["patient"].decode(), r["age"], r["sex"].decode(),
                                                     r["view"].decode()), name
                assert label == list(r["label"]) and slot.encode() == r["slot"], name
                assert bytes.fromhex(image) == bytes(r["image"]), name


@case("columns, images(), subsets and a pickled Dataset agree with the records")
def _(_work):
    python("""import pickle, sys
import numpy as np
from chex_tools import Dataset, UsageError
for folder in sys.argv[1:]:
    data = Dataset(folder, "train")
    for d in (data, pickle.loads(pickle.dumps(data)), data[::-1], data[[5, 3, 3]], data[data.labels.any(axis=1)],
              data[[]]):
        records = list(d)
        assert len(records) == len(d)
        for name, column in (("name", d.names), ("patient", d.patients), ("sex", d.sexes), ("view", d.views),
                             ("age", d.ages), ("split", d.split_names)):
            assert [getattr(r, name) for r in records] == column.tolist(), name
        assert d.labels.shape == (len(d), 14) and all((r.label == k).all() for r, k in zip(records, d.labels))
        images = d.images()
        assert images.shape == (len(d), 48, 48) and all((r.image == k).all() for r, k in zip(records, images))
    assert (data.images([7, 2])[1] == data[2].image).all() and data[-1].name == data[len(data) - 1].name
    assert len(data[[5, 3, 3]]) == 3 and 0 < len(data[data.labels.any(axis=1)]) < len(data)
    for wrong in (len(data), -len(data) - 1):
        try:
            data[wrong]
            raise SystemExit("no error")
        except IndexError:
            pass
    for write in (lambda: data[0].image.fill(0), lambda: data.labels.fill(0)):
        try:
            write()
            raise SystemExit("the records can be changed")
        except ValueError:
            pass
    try:
        data["x"]
        raise SystemExit("no error")
    except UsageError:
        pass
""", dataset(), dataset("--split", "patient:80,10,10"))


@case("where selects the records that chex-inspect list --where selects, and refuses what it refuses")
def _(_work):
    good = ["Effusion", "effusion=0", "No_Finding", "no finding=0", "pleural thickening", "Infiltrate", "view=ap",
            "sex=f", "age=40-59", "age=60", "AGE=0-200,Hernia", "patient=1", "patient=00000001", "split=val",
            "name=00000001_000.png", "Mass,Nodule,sex=M", ["sex=F", "Mass,Nodule=0"], "sex=U", "age=001",
            "\tMass", "Ma\tss"]
    bad = ["Efusion", "Effusion=2", "sex=X", "age=5-4", "age=", "age=-5", "age=1000", "", "Mass,", "split=none",
           "view="]
    text = """import json, sys
from chex_tools import ChexError, Dataset
for where in json.load(open(sys.argv[2])):
    try:
        print(json.dumps(Dataset(sys.argv[1], where=where).names.tolist()))
    except ChexError as e:
        print(e.exit_code)
"""
    for folder in (dataset(), dataset("--split", "patient:80,10,10")):
        path = write(os.path.join(_work, "where.json"), json.dumps(good + bad))
        found = [json.loads(line) for line in python(text, folder, path).stdout.splitlines()]
        assert len(found) == len(good + bad)
        some = 0
        for where, names in zip(good + bad, found):
            words = [w for each in ([where] if isinstance(where, str) else where) for w in ("--where", each)]
            done = run([program("chex-inspect"), "list", "--json", *words, folder], None)
            assert done.returncode in ((0, 3) if where in good else (2,)), (where, done.returncode, done.stderr)
            if where in good:  # 3: no image of this selection
                results = json.loads(done.stdout)["results"] if done.returncode == 0 else [{"records": []}]
                listed = [r["name"] for r in results[0]["records"]]
                assert names == listed, (where, len(names), len(listed))
                some += len(listed) > 0
            else:
                assert names == 2, (where, names)
        assert some > 10, some


ORDER = """import sys
from chex_tools import Dataset, epoch_order, order_hash
data = Dataset(sys.argv[1], "train")
for epoch in range(2):
    order = epoch_order(data, int(sys.argv[2]), epoch, int(sys.argv[3]))
    assert sorted(order.tolist()) == list(range(len(data)))
    print(order_hash(data, order))
"""


@case("epoch_order() is the order of chex-train, by seed and epoch, for the whole set and for windows of shards")
def _(_work):
    for options, seed, window in (((), 1, 0), (("--seed", "9223372036854775807"), (1 << 63) - 1, 0),
                                  (("--seed", "7", "--shuffle", "2"), 7, 2)):
        lines = slurp(os.path.join(trained(*options), "metrics.jsonl")).decode().splitlines()
        wanted = [e["order"] for e in map(json.loads, lines) if e["kind"] == "epoch"]
        assert len(wanted) == 2 and wanted[0] != wanted[1]
        assert python(ORDER, dataset(), str(seed), str(window)).stdout.split() == wanted, options


# ---- damaged and hostile data sets -----------------------------------------------------------------------------------

OPEN = """import sys
from chex_tools import ChexError, Dataset
try:
    data = Dataset(sys.argv[1])
    data.images()
    data.names, data.views, data.labels
    if sys.argv[2:]:
        data.verify()
except ChexError as e:
    print(type(e).__name__, e.exit_code, e)
    raise SystemExit(e.exit_code)
"""


def changed(work, change):
    """A copy of the data set with another manifest, whose own hash is right again."""
    folder = copied(work)
    path = os.path.join(folder, "manifest.json")
    text = slurp(path).decode()
    found = json.loads(text)
    del found["manifest_sha256"]
    result = change(found)
    text = result if isinstance(result, str) else json.dumps(found, indent=2)
    text = text.rstrip()[:-1].rstrip() + ",\n"
    write(path, text + f'  "manifest_sha256": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n')
    return folder


def setting(*path):
    """A change of the manifest: the last word is the value for the keys before it."""
    def change(found):
        for key in path[:-2]:
            found = found[key]
        found[path[-2]] = path[-1]
    return change


def pair(key, names, other):
    def change(found):
        found[key][names], found[key][other] = found[key][other], found[key][names]
    return change


HOSTILE = {
    "a newer format": (setting("format", 2), 6, "format 2|format: 2"),
    "a format that is a text": (setting("format", "1"), 1, "format"),
    "a format that is true": (setting("format", True), 1, "format"),
    "a name outside the folder": (setting("shards", 0, "name", "../x"), 1, "shards.0..name"),
    "a name with a newline": (setting("shards", 0, "name", "x\n"), 1, "shards.0..name"),
    "a stride of 0": (setting("record", "stride", 0), 1, "stride"),
    "a huge stride": (setting("record", "stride", 1 << 40), 1, "stride"),
    "more records than the size says": (setting("shards", 0, "records", 17), 1, "size"),
    "images that are more than records": (setting("shards", 0, "images", 17), 1, "images"),
    "images that the shards do not have": (setting("splits", 0, "images", 1), 1, "images"),
    "a split with the shards of another": (setting("splits", 0, "first_shard", 1), 1, "splits"),
    "two shards of one name": (lambda m: m["shards"][1].update(name=m["shards"][0]["name"]), 1, "twice"),
    "an offset outside the record": (setting("dtype", "offsets", 1, 1 << 30), 1, "dtype.offsets"),
    "a last field that ends outside the record": (
        lambda m: m["dtype"]["offsets"].__setitem__(-1, m["record"]["stride"] - 8), 1, "dtype.offsets"),
    "a negative offset": (setting("dtype", "offsets", 1, -8), 1, "dtype.offsets"),
    "fields that overlap": (setting("dtype", "offsets", 2, 64), 1, "dtype.offsets"),
    "a format of Python objects": (setting("dtype", "formats", 1, "O"), 1, "dtype.formats"),
    "an image of another size": (setting("dtype", "formats", 0, "(480,480)u1"), 1, "dtype.formats"),
    "labels of another number": (setting("labels", FINDINGS[:13]), 1, "dtype.formats"),
    "a finding twice": (setting("labels", FINDINGS[:13] + FINDINGS[:1]), 1, "labels"),
    "no list of shards": (setting("shards", {}), 1, "shards"),
    "a shard that is null": (setting("shards", 0, None), 1, "shards.0."),
    "an itemsize of its own": (setting("dtype", "itemsize", 64), 1, "dtype"),
    "repeated keys": (lambda m: '{"format": 1, "format": 1}', 1, "twice"),
    "deep nesting": (lambda m: '{"x":' + "[" * 100000 + "]" * 100000 + "}", 1, "not JSON"),
    "a number of 10,000 digits": (lambda m: '{"format": ' + "1" * 10000 + "}", 1, "digits"),
    "no JSON": (lambda m: '{"format": nan}', 1, "not JSON"),
}


@case("a hostile manifest gives an exception with its exit code, and chex-inspect refuses it as well")
def _(work):
    for name, (change, code, pattern) in HOSTILE.items():
        folder = changed(work, change)
        done = python(OPEN, folder, code=code)
        assert re.search(pattern, done.stdout), f"{name}: {done.stdout}"
        assert done.stdout.startswith("DamagedError" if code == 1 else "IncompatibleError"), f"{name}: {done.stdout}"
        assert run([program("chex-inspect"), "-q", "check", folder], None).returncode != 0, name
        shutil.rmtree(folder)
    folder = changed(work, lambda m: m.update(new_key=[1]))  # a later version may add keys
    python(OPEN, folder)


@case("an edited manifest, missing and short shards, other kinds of files: which exception, and its message")
def _(work):
    folder = copied(work)
    path = os.path.join(folder, "manifest.json")
    text = slurp(path)
    shard = os.path.join(folder, manifest(folder)["shards"][0]["name"])
    data = slurp(shard)
    write(path, text.replace(b'"rejects": 0', b'"rejects": 1'))
    assert "manifest_sha256" in python(OPEN, folder, code=1).stdout
    write(path, text[:-200])
    assert "DamagedError" in python(OPEN, folder, code=1).stdout
    write(path, text)
    for size, pattern in ((len(data) - 1, "bytes, the manifest says"), (0, "has 0 bytes"), (len(data) + 1, "bytes")):
        write(shard, (data + b"x")[:size])
        assert re.search(pattern, python(OPEN, folder, code=1).stdout), size
    os.remove(shard)
    assert "InputError" in python(OPEN, folder, code=3).stdout
    os.mkfifo(shard)
    assert "not a regular file" in python(OPEN, folder, code=3).stdout
    os.remove(shard)
    write(shard, data)
    python(OPEN, folder, "verify")
    os.remove(path)
    os.mkfifo(path)
    assert "not a regular file" in python(OPEN, folder, code=3).stdout
    os.remove(path)
    assert "no manifest.json" in python(OPEN, folder, code=3).stdout
    assert "InputError" in python(OPEN, os.path.join(work, "nothing"), code=3).stdout


@case("verify() finds one changed bit and names its shard; a wrong weight is found without it")
def _(work):
    folder = copied(work)
    first = manifest(folder)["shards"][0]
    path = os.path.join(folder, first["name"])
    data = bytearray(slurp(path))
    data[manifest(folder)["record"]["stride"] + 100] ^= 1
    write(path, data)
    python(OPEN, folder)
    assert first["name"] in python(OPEN, folder, "verify", code=1).stdout
    mixed = next(s for s in manifest(folder)["shards"] if s["images"] < s["records"])
    path = os.path.join(folder, mixed["name"])
    data = bytearray(slurp(path))
    offset = dict(zip(manifest(folder)["dtype"]["names"], manifest(folder)["dtype"]["offsets"]))["weight"]
    data[offset] ^= 1
    write(path, data)
    assert "images, the manifest says" in python(OPEN, folder, code=1).stdout


@case("damaged texts of records without constant sizes give an exception")
def _(work):
    folder = copied(work, dataset("--split", "patient:80,10,10"))
    m = manifest(folder)
    path = os.path.join(folder, m["shards"][0]["name"])
    good = slurp(path)
    begin = dict(zip(m["dtype"]["names"], m["dtype"]["offsets"]))["slot"] + 28
    for at, value in ((begin, 0xFF), (begin + 1, 0xFF), (begin + 3, 0xFF), (begin + 1, 0)):
        data = bytearray(good)
        data[at] = value
        write(path, data)
        assert "texts of the record" in python(OPEN, folder, code=1).stdout, (at, value)


# ---- runs ------------------------------------------------------------------------------------------------------------


@case("read_run(): metrics, predictions and weights equal the files; without pandas as arrays")
def _(_work):
    done = python("""import json, sys
sys.modules["pandas"] = sys.modules["torch"] = None  # as if they were not installed
from chex_tools import read_run
run = read_run(sys.argv[1])
epochs, steps, test = run.metrics(), run.metrics("step"), run.predictions("test")
weights = run.weights()
print(json.dumps({"epochs": {k: v.tolist() for k, v in epochs.items()}, "steps": steps["step"].tolist(),
                  "forward": steps["parts.forward"].tolist(), "test": {k: v.tolist() for k, v in test.items()},
                  "types": [str(test[k].dtype) for k in ("image", "age", "prob_Hernia", "label_Hernia")],
                  "weights": {k: [str(v.dtype), list(v.shape)] for k, v in weights.items()}, "id": run.info["dataset"],
                  "newest": run.checkpoints, "findings": run.findings, "auroc": run.evaluation("val")["mean"],
                  "sum": float(weights["features.conv0.weight"].astype("f8").sum())}))
""", trained())
    found = json.loads(done.stdout)
    lines = [json.loads(line) for line in slurp(os.path.join(trained(), "metrics.jsonl")).decode().splitlines()]
    epochs = [line for line in lines if line["kind"] == "epoch"]
    assert found["epochs"]["loss"] == [e["loss"] for e in epochs] and len(epochs) == 2
    assert found["epochs"]["order"] == [e["order"] for e in epochs]
    steps = [line for line in lines if line["kind"] == "step"]
    assert found["steps"] == [s["step"] for s in steps]
    assert found["forward"] == [s["parts"]["forward"] for s in steps]
    rows = slurp(os.path.join(trained(), "predictions-test.csv")).decode().splitlines()
    names = rows[0].split(",")
    assert list(found["test"]) == names and len(found["test"]["image"]) == len(rows) - 1
    for k, row in enumerate(rows[1:]):
        for name, value in zip(names, row.split(",")):
            have = found["test"][name][k]
            assert (have == value if isinstance(have, str) else abs(have - float(value)) < 1e-7), (name, have, value)
    assert found["types"] == ["object", "float32", "float32", "float32"]
    assert found["findings"] == FINDINGS and found["newest"][0].startswith("step-")
    file = slurp(os.path.join(trained(), "best.safetensors"))
    size = int.from_bytes(file[:8], "little")
    tensors = {name: t for name, t in json.loads(file[8:8 + size]).items() if name != "__metadata__"}
    assert {name: t["shape"] for name, t in tensors.items()} == {n: shape for n, (_, shape) in found["weights"].items()}
    begin, end = tensors["features.conv0.weight"]["data_offsets"]
    values = struct.unpack(f"<{(end - begin) // 4}f", file[8 + size + begin:8 + size + end])
    assert abs(sum(values) - found["sum"]) < 1e-9, (sum(values), found["sum"])


@case("damaged safetensors files and runs give an exception")
def _(work):
    text = """import sys
from chex_tools import ChexError, read_run
try:
    read_run(sys.argv[1]).weights()
except ChexError as e:
    print(type(e).__name__, e)
    raise SystemExit(e.exit_code)
"""
    folder = os.path.join(work, "run")
    shutil.copytree(trained(), folder)
    python(text, folder)
    path = os.path.join(folder, "best.safetensors")
    good = slurp(path)
    length = int.from_bytes(good[:8], "little")
    header, data = json.loads(good[8:8 + length]), good[8 + length:]
    one = next(name for name in header if header[name].get("shape"))

    def made(change):
        other = json.loads(json.dumps(header))
        change(other)
        text = json.dumps(other).encode()
        return len(text).to_bytes(8, "little") + text + data

    for wrong in (b"", good[:7], good[:-1], good + b"x", (1 << 62).to_bytes(8, "little") + good[8:],
                  made(lambda h: h[one].update(data_offsets=[0, 1 << 40])),
                  made(lambda h: h[one].update(data_offsets=[-4, 0])),
                  made(lambda h: h[one].update(shape=[1 << 62, 1 << 62])),
                  made(lambda h: h[one].update(dtype="O")),
                  made(lambda h: h.update(twice=h[one])),
                  made(lambda h: h.update(empty={"dtype": "F32", "shape": [0, 1 << 62], "data_offsets": [0, 0]})),
                  made(lambda h: h.update(empty={"dtype": "F32", "shape": [0, 1 << 63], "data_offsets": [0, 0]})),
                  made(lambda h: h.update({one: None})),
                  made(lambda h: h.pop(one)),
                  made(lambda h: h[one].update(shape=[True]))):
        write(path, wrong)
        assert "DamagedError" in python(text, folder, code=1).stdout, wrong[:20]
    os.remove(path)
    assert "InputError" in python(text, folder, code=3).stdout
    assert "InputError" in python(text, dataset(), code=3).stdout


# ---- programs --------------------------------------------------------------------------------------------------------


@case("convert() and inspect() return the documents of the programs, and their failures as exceptions")
def _(work):
    synth(os.path.join(work, "in"), 40, "--size", "64")
    python("""import json, os
import chex_tools
from pathlib import Path
options = dict(size=48, shard_size=8, split="patient:80,10,10", threads=1)
plan = chex_tools.convert("out", ["in/images"], "in/Data_Entry_2017_v2020.csv", dry_run=True, **options)
assert plan["dry_run"] and not os.path.exists("out")
done = chex_tools.convert(Path("out"), Path("in/images"), Path("in/Data_Entry_2017_v2020.csv"), **options)
assert done["tool"] == "chex-convert" and done["result"]["converted"] == 40
data = chex_tools.Dataset("out")
assert len(data) == 40 and data.shape == (48, 48) and data.id == done["plan"]["dataset_id"]
checked = chex_tools.inspect("check", "out", full=True)
assert checked["exit_code"] == 0 and checked["results"][0]["dataset"]["images"] == 40
listed = chex_tools.inspect("list", "out", where=["sex=F", "age=0-200"], fields="name,sex")
assert {r["name"] for r in listed["results"][0]["records"]} == set(data[data.sexes == "F"].names.tolist())
for error, code, call in (
        (chex_tools.UsageError, 2, lambda: chex_tools.convert("out", "in/images", "in/x.csv", size="x")),
        (chex_tools.InputError, 3, lambda: chex_tools.convert("out2", "in/images", "in/nothing.csv")),
        (chex_tools.InputError, 3, lambda: chex_tools.inspect("check", "-nothing")),
        (chex_tools.IncompatibleError, 6, lambda: chex_tools.convert("out", "in/images",
                                                                     "in/Data_Entry_2017_v2020.csv", size=32)),
        (chex_tools.UsageError, 2, lambda: chex_tools.inspect("list", "out", nothing=True))):
    try:
        call()
        raise SystemExit(f"no {error}")
    except error as e:
        assert e.exit_code == code and len(str(e)) > 10, (code, e.exit_code, str(e))
shard = Path("out") / data.manifest["shards"][0]["name"]
shard.write_bytes(shard.read_bytes()[:-1])
try:
    chex_tools.inspect("check", "out")
    raise SystemExit("no error")
except chex_tools.DamagedError as e:
    assert e.document["exit_code"] == 1 and e.document["results"][0]["path"] == "out", e.document
""", work=work)


@case("a program that is not there: the message says where it would come from")
def _(work):
    done = run([python_with("numpy"), "-c", "import chex_tools; chex_tools.inspect('check', 'x')"], 1,
               env={"PYTHONPATH": MODULE, "PATH": work}, cwd=work)
    if "chex-inspect: " in done.stderr:
        raise Skip("chex-inspect is installed next to this Python")
    says(done, "InputError: there is no program chex-inspect", "pip install chex-tools")


# ---- the module itself -----------------------------------------------------------------------------------------------


@case("mypy --strict finds nothing in the module")
def _(work):
    checker = python_with("mypy")
    run([checker, "-m", "mypy", "--strict", "--config-file", os.path.join(MODULE, "pyproject.toml"), "--cache-dir",
         work, "--python-executable", python_with("torch"), os.path.join(MODULE, "chex_tools")])


@case("`import chex_tools` needs neither PyTorch, TensorFlow nor pandas")
def _(_work):
    done = python("import sys, chex_tools; print([m for m in ('torch', 'tensorflow', 'pandas') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stdout


if __name__ == "__main__":
    sys.exit(case.main())
