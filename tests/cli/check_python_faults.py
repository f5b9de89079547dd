#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex_tools where data sets, runs or arguments are wrong: an exception of the module, and never a wrong result.

    check_python_faults.py [PATTERN]

check_python_module.py has hostile manifests and damaged shards, and says in which Python the cases run.
"""
import json
import os
import shutil
import sys

from check_python_module import copied, dataset, python, trained
from support import Cases, manifest, slurp, synth, write

case = Cases()

FAILS = """import json, os, pickle, shutil, sys
import numpy as np
import chex_tools
from chex_tools import Dataset, convert, epoch_order, inspect, read_run

def fails(name, text, call):
    try:
        call()
    except chex_tools.ChexError as e:
        assert type(e).__name__ == name and text in str(e), (type(e).__name__, str(e))
        return e
    raise SystemExit(f"no {name}: {text}")
"""


@case("a data set that is replaced or changed while it is open, or pickled: no image under another's name")
def _(work):
    python(FAILS + """
def make(seed):
    convert("set", sys.argv[1], split="patient:80,10,10", seed=seed, shard_size=16, force=True)

def old(data):
    return fails("IncompatibleError", "since it was opened", data.images)

make(1)
data, lazy = Dataset("set"), Dataset("set")
state, pixels = pickle.dumps(data), data.images()
assert (pickle.loads(state).images() == pixels).all()
os.rename("set/manifest.json", "set/before")
old(pickle.loads(state))
shutil.copy("set/before", "set/manifest.json")  # the same bytes in another file
assert (pickle.loads(state).images() == pixels).all()
make(2)
assert (data.images() == pixels).all()  # it has the old shards open
old(lazy)
old(pickle.loads(state))
fails("IncompatibleError", "since it was opened", lazy.verify)
lazy, data = Dataset("set"), Dataset("set")
patient = data.patients[0]
state = pickle.dumps(data)
done = convert("set", withdraw=patient)
assert done["tool"] == "chex-convert" and patient not in Dataset("set").patients
old(lazy)
old(pickle.loads(state))
""", dataset(), work=work)


@case("Datasets share the maps of shards; without a free file descriptor an InputError names `ulimit -n`")
def _(_work):
    python(FAILS + """
import resource
data, late = Dataset(sys.argv[1]), Dataset(sys.argv[1])
pixels = data.images()
opened = len(os.listdir("/proc/self/fd"))
more = [Dataset(sys.argv[1], where="sex=F"), Dataset(sys.argv[1], "train"), pickle.loads(pickle.dumps(data))]
assert all(len(d.images()) for d in more) and len(os.listdir("/proc/self/fd")) == opened
del data, more
resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
fails("InputError", "ulimit -n", late.images)
""", dataset())


@case("wrong indices, selections and numbers are refused; numbers of NumPy and paths of bytes are not")
def _(_work):
    python(FAILS + """
data = Dataset(os.fsencode(sys.argv[1]), "train")
assert (epoch_order(data, np.uint8(7), np.int16(1)) == epoch_order(data, 7, 1)).all()
fails("UsageError", "whole number", lambda: epoch_order(data, 1.5))
fails("UsageError", "a seed is from 0", lambda: epoch_order(data, -1))
fails("UsageError", "an epoch is from 0", lambda: epoch_order(data, 1, 1 << 32))
fails("UsageError", "an index is", lambda: data.images(5))
fails("UsageError", "an index is", lambda: data[1.5])
for where in (5, [None], [], [5]):
    fails("UsageError", "where is a text", lambda: Dataset(sys.argv[1], where=where))
fails("UsageError", "NUL", lambda: Dataset("a" + chr(0)))
fails("UsageError", "not a path", lambda: Dataset(5))
none = Dataset(sys.argv[1], where="age=999")
assert len(none) == 0 and none.names.dtype.kind == none.sexes.dtype.kind == "U" and none.images().shape == (0, 48, 48)
assert none.labels.shape == (0, 14) and none.ages.dtype == np.float32
""", dataset())


@case("a sex that is no text is the same in a record and in the column")
def _(work):
    folder = copied(work)
    m = manifest(folder)
    path = os.path.join(folder, next(s["name"] for s in m["shards"] if s["split"] == "train"))
    data = bytearray(slurp(path))
    data[dict(zip(m["dtype"]["names"], m["dtype"]["offsets"]))["sex"]] = 0xFF
    write(path, data)
    python(FAILS + """
data = Dataset(sys.argv[1], "train")
assert data[0].sex == data.sexes[0] == chr(0xFFFD), (data[0].sex, data.sexes[0])
""", folder)


@case("damaged tables of a run; True and False in metrics; findings without best.safetensors")
def _(work):
    folder = os.path.join(work, "run")
    shutil.copytree(trained(), folder)
    rows = slurp(os.path.join(folder, "predictions-test.csv")).decode().splitlines()
    for name, text in (("long", "x" * 200000), ("twice", None)):
        lines = [f"{row},{row.split(',')[-1]}" for row in rows] if text is None else [rows[0], text, *rows[1:]]
        write(os.path.join(folder, f"predictions-{name}.csv"), "\n".join(lines) + "\n")
    write(os.path.join(folder, "metrics.jsonl"), "".join(json.dumps(line) + "\n" for line in (
        {"kind": "a", "good": True, "some": None, "n": 1}, {"kind": "a", "good": False, "some": True, "n": 2})))
    python(FAILS + """
sys.modules["pandas"] = None
run = read_run(os.fsencode(sys.argv[1]))
found = run.metrics("a")
assert found["good"].dtype == np.bool_ and (~found["good"]).tolist() == [False, True]
assert found["some"].tolist() == [None, True] and found["n"].dtype == np.int64
fails("DamagedError", "field larger than field limit", lambda: run.predictions("long"))
fails("DamagedError", "a column occurs twice", lambda: run.predictions("twice"))
with open(os.path.join(sys.argv[1], "metrics.jsonl"), "a") as f:
    f.write('{"kind": "a", "n": ' + "9" * 400 + "}" + chr(10))
fails("DamagedError", "line 3", lambda: run.metrics("a"))
findings = run.findings
best = os.path.join(sys.argv[1], "best.safetensors")
os.remove(best)
assert run.findings == findings and len(findings) == 14
with open(best, "wb") as f:
    f.write((2).to_bytes(8, "little") + b"{}")
fails("DamagedError", "no labels", lambda: run.findings)
os.remove(best)
os.remove(os.path.join(sys.argv[1], "latest"))
fails("InputError", "best.safetensors", lambda: run.findings)
""", folder)


@case("programs: the message of a failure, calls without JSON, kinds of options, a program that cannot run")
def _(work):
    folder = copied(work)
    m = manifest(folder)
    path = os.path.join(folder, m["shards"][0]["name"])
    data = bytearray(slurp(path))
    data[100] ^= 1
    write(path, data)
    for name, text in (("none", "#!/no/such/program\n"), ("null", "#!/bin/sh\necho '{\"results\": null}'\nexit 1\n")):
        os.chmod(write(os.path.join(work, name), text), 0o755)
    python(FAILS + """
e = fails("DamagedError", "checksum", lambda: inspect("check", b"copy", full=True))
assert Dataset("copy").manifest["shards"][0]["name"] in str(e) and e.document["exit_code"] == 1, e
convert("other", [sys.argv[1]], split="patient:70,10,20")
fails("DamagedError", "they differ in ", lambda: inspect("diff", sys.argv[1], "other"))
for call in (lambda: inspect("help", "list"), lambda: inspect("list", sys.argv[1], help=True),
             lambda: inspect("check", sys.argv[1], version=True)):
    assert fails("UsageError", "gives no JSON", call).exit_code == 2
fails("UsageError", "NUL", lambda: inspect("check", "a" + chr(0)))
fails("UsageError", "where is a text, a path", lambda: inspect("list", sys.argv[1], where={"a": 1}))
some = inspect("list", sys.argv[1], where={"sex=F", "age=0-200"}, fields="name")["results"][0]["records"]
assert [r["name"] for r in some] == Dataset(sys.argv[1], where="sex=F").names.tolist()
plan = convert(b"new", [os.fsencode(sys.argv[1])], size=np.int64(32), dry_run=np.True_, split="patient:70,10,20",
               json=np.False_)
assert plan["dry_run"] and not os.path.exists("new")
for program, name, said in (("none", "InputError", "cannot run"), ("null", "DamagedError", "ended with 1")):
    chex_tools._programs.find_program = lambda _: os.path.abspath(program)
    fails(name, said, lambda: inspect("check", "copy"))
""", dataset(), work=work)


@case("an image that chex-convert rejects: DamagedError says how many, also with progress")
def _(work):
    labels = synth(os.path.join(work, "in"), 20, "--size", "64")
    images = os.path.join(work, "in", "images")
    path = os.path.join(images, sorted(os.listdir(images))[0])
    write(path, slurp(path)[:300])
    python(FAILS + """
for progress in (False, True):
    e = fails("DamagedError", "1 ", lambda: convert(f"out{progress}", "in/images", sys.argv[1], size=48,
                                                    split="patient:80,10,10", progress=progress))
    assert e.document["result"]["rejects"] == 1
assert "1 image could not be used" in str(e), e
""", labels, work=work)


if __name__ == "__main__":
    sys.exit(case.main())
