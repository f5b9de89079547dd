#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-convert --withdraw: the images of a patient are gone from every file, all other records keep their bytes, and
no fault or kill leaves a folder that is neither the old data set nor finished by the same command.

    check_withdraw.py [PATTERN]      only the cases whose name matches the regular expression

$CHEX_CONVERT, $CHEX_INSPECT, $CHEX_SYNTH and $CHEX_TRAIN are the programs.
"""
import collections
import functools
import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import harness
import replay
from mpi import ENVIRONMENT, ranks
from support import (SLOW, SOURCE, Cases, Skip, cache_folder, complete, images, manifest, program, read_csv, records,
                     rejects, run, says, slurp, synth, tree, write)

try:
    import numpy
except ImportError:
    numpy = None
try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
CACHE = cache_folder("withdraw", harness.SCRATCH)
COUNT = 60
OPTIONS = ["--size", "32", "--shard-size", "8", "--index", "dali"]


@functools.lru_cache(None)
def base():
    """Synthetic images with a damaged one of the patient with the most images in train, and one of another patient."""
    folder = os.path.join(CACHE, "base")
    labels = synth(folder, COUNT, "--size", "64")
    convert("plain", labels)
    by_patient = collections.Counter(r["patient"].decode() for r in images(f"{CACHE}/plain", "train").values())
    (patient, _), (other, _) = by_patient.most_common(2)
    for who in patient, other:
        name = max(row[0] for row in read_csv(labels)[1] if row[3].zfill(8) == who)
        write(f"{folder}/images/{name}", slurp(f"{folder}/images/{name}")[:-40])
    convert("source", labels, code=1)
    return labels, patient, other


def convert(name, labels, *more, code=0):
    out = name if os.path.isabs(name) else os.path.join(CACHE, name)
    pictures = os.path.join(os.path.dirname(labels), "images")
    return run([program("chex-convert"), "-q", "-i", pictures, "-l", labels, "-o", out, *OPTIONS, *more], code)


def copy_of_source(work, name="data"):
    base()
    return shutil.copytree(f"{CACHE}/source", os.path.join(work, name))


def withdraw(who, folder, *more, code=0):
    return run([program("chex-convert"), "--withdraw", who, folder, *more], code)


def check(folder, code=0):
    return run([program("chex-inspect"), "check", "--full", folder], code)


def traces(folder, patients):
    """What identifies these patients: ids, names, pixels and labels of their records, as bytes."""
    found = set()
    for shard in manifest(folder)["shards"]:
        for record in records(folder, shard):
            if record["patient"].decode() in patients:
                found |= {record["patient"], record["filename"]}
                pixels = record["image"]
                found |= {pixels[at:at + 32] for at in range(0, len(pixels), 32) if len(set(pixels[at:at + 32])) > 8}
    for row in read_csv(base()[0])[1]:
        if row[3].zfill(8) in patients:
            found.add(row[0].encode())
    assert len(found) > 30
    return found


def contains(folder, pieces):
    """(file, piece) of the first piece that a file of the folder contains."""
    for name in sorted(os.listdir(folder)):
        data = slurp(os.path.join(folder, name))
        for piece in pieces:
            if piece in data:
                return name, piece
    return None


def timeless(folder):
    """The files of a folder, with the manifest without times and checksum."""
    files = harness.read_tree(folder)
    text = re.sub(rb'"time": "[^"]*"', b'"time": ""', files["manifest.json"])
    files["manifest.json"] = re.sub(rb'"manifest_sha256": "[^"]*"', b"", text)
    return files


def patients_of(folder, split):
    return collections.Counter(r["patient"].decode() for r in images(folder, split).values())


# ---- the result ------------------------------------------------------------------------------------------------------


@case("NumPy: slots of the patient are copies of weight 0, all other records keep every byte")
def _(work):
    if not numpy:
        raise Skip("no NumPy")
    data, (_, patient, _) = copy_of_source(work), base()
    before = manifest(data)
    dtype = numpy.dtype(before["dtype"])
    old = {s["name"]: numpy.fromfile(f"{data}/{s['name']}", dtype) for s in before["shards"]}
    done = withdraw(patient, data)
    says(done, rf"{patient}: \d+ images", f"before: {before['dataset_id']}")
    after = complete(data)
    withdrawn, sums, count = 0, numpy.zeros(2), 0
    for shard in after["shards"]:
        new = numpy.fromfile(f"{data}/{shard['name']}", numpy.dtype(after["dtype"]))
        changed = (new.view(numpy.uint8).reshape(len(new), -1) != old[shard["name"]].view(numpy.uint8).reshape(
            len(new), -1)).any(axis=1)
        was = old[shard["name"]]
        gone = was["patient"] == patient.encode()
        assert (changed == gone).all(), shard["name"]
        withdrawn += int((gone & (was["weight"] == 1)).sum())
        stay = numpy.flatnonzero(~gone & (was["weight"] == 1))
        assert shard["images"] == len(stay) == int(new["weight"].sum())
        for i in numpy.flatnonzero(gone):
            donor = was[stay[i % len(stay)]]
            assert new[i]["weight"] == 0 and new[i]["slot"] == was[i]["slot"]
            for field in set(new.dtype.names) - {"weight", "slot"}:
                assert new[i][field].tobytes() == donor[field].tobytes(), field
        pixels = new["image"][new["weight"] == 1].astype(numpy.float64)
        sums += pixels.sum(), (pixels ** 2).sum()
        count += pixels.size
    assert withdrawn > 2
    assert abs(after["pixels"]["mean"] - sums[0] / count) < 1e-9
    assert abs(after["pixels"]["deviation"] - (sums[1] / count - (sums[0] / count) ** 2) ** .5) < 1e-6
    for split in after["splits"]:
        here = images(data, split["name"])
        assert split["images"] == len(here) and split["patients"] == len({r["patient"] for r in here.values()})
        positives = [sum(r["label"][f] for r in here.values()) for f in range(14)]
        assert positives == list(split["positives"].values())
    change, = after["withdrawals"]
    assert change["dataset_id"] == before["dataset_id"] != after["dataset_id"] and change["slots"] == withdrawn
    assert abs(time.time() - time.mktime(time.strptime(change["time"], "%Y-%m-%dT%H:%M:%SZ")) + time.timezone) < 600
    assert after["rejects"] == before["rejects"] - 1 == len(rejects(data))
    if jsonschema:
        with open(os.path.join(SOURCE, "schemas", "manifest.schema.json"), encoding="utf-8") as f:
            jsonschema.validate(after, json.load(f))
    check(data)
    run([program("chex-inspect"), "report", "-o", f"{work}/report.html", data])
    assert f"{withdrawn} images were withdrawn" in slurp(f"{work}/report.html").decode()
    shown = run([program("chex-inspect"), data]).stdout
    assert re.search(rf"removed +{withdrawn} images withdrawn", shown), shown
    found = json.loads(run([program("chex-inspect"), "--json", data]).stdout)
    if jsonschema:
        with open(os.path.join(SOURCE, "schemas", "inspect.schema.json"), encoding="utf-8") as f:
            jsonschema.validate(found, json.load(f))
    assert after["withdrawals"] == found["results"][0]["dataset"]["withdrawals"]


@case("no file of the folder contains a byte of the patient afterwards, not even what killed conversions left")
def _(work):
    data, (_, patient, _) = copy_of_source(work), base()
    pieces = traces(data, {patient})
    shard = next(s["name"] for s in manifest(data)["shards"] if contains(f"{data}", pieces)[0] == s["name"])
    shutil.copy(f"{data}/{shard}", f"{data}/.{shard}.part")
    shutil.copy(f"{data}/{shard}", f"{data}/.{shard}.tmp.123")
    for name in "missing.txt", ".chex-journal.jsonl", ".rejects.jsonl.tmp.77", "split-certificate.json":
        write(f"{data}/{name}", f"{patient}_000.png\n".encode())
    assert contains(data, [patient.encode()])
    write(f"{data}/notes.txt", b"of the user\n")
    says(withdraw(patient, data), r"not searched for these patients: notes\.txt\n")
    assert contains(data, pieces) is None, contains(data, pieces)
    check(data)
    assert not [n for n in os.listdir(data) if n.startswith(".")]


@case("padding records that copy a withdrawn image are replaced, and a shard without images gets those of its split")
def _(work):
    data = copy_of_source(work)
    last = [s for s in manifest(data)["shards"] if s["split"] == "train"][-1]
    everyone = {r["patient"].decode() for r in records(data, last)}
    copied = {r["patient"].decode() for r in records(data, last) if r["weight"] == 0}
    assert copied and len(everyone) < len(patients_of(data, "train"))
    pieces = traces(data, everyone)
    write(f"{work}/list", "\n".join(everyone).encode())
    withdraw(f"{work}/list", data)
    assert contains(data, pieces) is None
    emptied = next(s for s in complete(data)["shards"] if s["name"] == last["name"])
    assert emptied["images"] == 0 and emptied["records"] == last["records"]
    first = next(r for s in manifest(data)["shards"] if s["split"] == "train" for r in records(data, s) if r["weight"])
    assert {r["filename"] for r in records(data, emptied)} == {first["filename"]}
    check(data)


@case("any number of threads writes the same bytes, -n writes nothing, and a second withdrawal adds a line")
def _(work):
    one, two, (_, patient, other) = copy_of_source(work), copy_of_source(work, "two"), base()
    before = tree(one)
    planned = json.loads(withdraw(patient, one, "-n", "--json").stdout)["withdrawal"]
    assert tree(one) == before
    withdraw(patient, one, "-j", 1)
    withdraw(patient, two, "-j", 5)
    harness.differ(timeless(one), timeless(two))
    assert planned["dataset_id"] == manifest(one)["dataset_id"]
    id_before = manifest(one)["dataset_id"]
    withdraw(other, one)
    assert [w["dataset_id"] for w in manifest(one)["withdrawals"]] == [planned["from"], id_before]
    check(one)


@case("the remaining images converted again are those of a conversion with --exclude, and the source is recorded")
def _(work):
    data, (labels, patient, other) = copy_of_source(work), base()
    names = [row[0] for row in read_csv(labels)[1] if row[3].zfill(8) == patient]
    broken = max(row[0] for row in read_csv(labels)[1] if row[3].zfill(8) == other)
    withdraw(patient, data)
    run([program("chex-convert"), "-q", "-i", data, "-o", f"{work}/again", "--shard-size", 8])
    write(f"{work}/exclude", "\n".join([*names, broken]).encode())
    convert(f"{work}/images", labels, "--exclude", f"{work}/exclude")
    again, straight = manifest(f"{work}/again"), manifest(f"{work}/images")
    assert again["dataset_id"] == straight["dataset_id"] and again["shards"] == straight["shards"]
    source, = again["sources"]
    assert source["dataset_id"] == manifest(data)["dataset_id"] and source["withdrawn"] > 0
    assert "withdrawals" not in again


# ---- lists -----------------------------------------------------------------------------------------------------------


@case("a list may have comments, blank lines, CRLF, a byte order mark and repeated ids, and may be compressed")
def _(work):
    _, patient, other = base()
    text = f"\ufeff# withdrawn 2026\r\n\r\n  {int(patient)}\t\r\n{patient}\r\n{other}".encode()
    write(f"{work}/list.txt", text)
    write(f"{work}/list.gz", gzip.compress(text))
    one, two = copy_of_source(work, "one"), copy_of_source(work, "two")
    withdraw(f"{work}/list.txt", one)
    withdraw(f"{work}/list.gz", two)
    harness.differ(timeless(one), timeless(two))
    assert not {patient, other} & set(patients_of(one, None))


@case("an unknown patient is named and nothing changes; --allow-missing ignores it")
def _(work):
    data, (_, patient, _) = copy_of_source(work), base()
    before = tree(data)
    write(f"{work}/list", f"{patient}\n" + "".join(f"7000{i}\n" for i in range(9)))
    says(withdraw(f"{work}/list", data, code=2), "no image of patients 00070000, .* and 4 more .*--allow-missing")
    says(withdraw("12345678", data, code=2), "no image of patient 12345678")
    assert tree(data) == before
    withdraw("12345678", data, "--allow-missing")
    assert tree(data) == before
    withdraw(f"{work}/list", data, "--allow-missing")
    assert patient not in patients_of(data, None)
    says(withdraw(patient, data, code=2), f"no image of patient {patient}")


@case("a patient with rejected images only is an error and changes nothing; --allow-missing says so: 0, the same id")
def _(work):
    labels, patient, _ = base()
    rows = read_csv(labels)[1]
    counts = collections.Counter(row[3] for row in rows)
    rare = min(counts, key=counts.get)
    shutil.copytree(os.path.dirname(labels), f"{work}/images")
    for row in rows:
        if row[3] == rare:
            picture = f"{work}/images/images/{row[0]}"
            write(picture, slurp(picture)[:-40])
    data = f"{work}/data"
    convert(data, f"{work}/images/{os.path.basename(labels)}", code=1)
    before, rare = tree(data), rare.zfill(8)
    assert [r for r in rejects(data) if rare in r["name"]]
    says(withdraw(rare, data, code=2), f"no image of patient {rare} .only rejected ones. ")
    says(withdraw(rare, data, "--allow-missing"), "nothing: none of the patients has an image in the data set",
         "warning: rejects.jsonl still has the names of . rejected images of these patients")
    assert json.loads(withdraw(rare, data, "--allow-missing", "--json").stdout)["withdrawal"] is None
    assert tree(data) == before
    write(f"{work}/list", f"{rare}\n{patient}\n")
    says(withdraw(f"{work}/list", data, code=2), f"no image of patient {rare}")
    assert tree(data) == before
    says(withdraw(f"{work}/list", data, "--allow-missing"), f"{rare}: not in the data set, only rejected images")
    assert patient not in patients_of(data, None) and not [r for r in rejects(data) if rare in r["name"]]


@case("lists that are none, splits without images, links and shards that are not ours are refused, and nothing changes")
def _(work):
    data, (_, patient, _) = copy_of_source(work), base()
    before = tree(data)
    for name, content, said in (("nul", b"1\0\n", "NUL"), ("long", b"1" * 70000, "line"),
                                ("empty", b"# none\n", "no patient"), ("id", b"x" * 64, "list-id:1: .*longer than 63"),
                                ("latin", b"\xe9\n", "UTF-8")):
        write(f"{work}/list-{name}", content)
        says(withdraw(f"{work}/list-{name}", data, code=2), said)
    write(f"{work}/png", slurp(os.path.join(os.path.dirname(base()[0]), "images", sorted(
        os.listdir(os.path.join(os.path.dirname(base()[0]), "images")))[0])))
    withdraw(f"{work}/png", data, code=3)
    write(f"{work}/val", "\n".join(patients_of(data, "val")))
    says(withdraw(f"{work}/val", data, code=2), "all images of split 'val' are of these patients")
    extra = f"{data}/chestxray14-train.tfrecord-00000-of-00002"
    shutil.copy(f"{data}/{manifest(data)['shards'][0]['name']}", extra)
    says(withdraw(patient, data, code=1), "is not in the manifest: remove it")
    os.remove(extra)
    shard = next(n for n in sorted(before) if ".tfrecord-" in n and not n.endswith(".idx"))
    damaged = bytearray(slurp(f"{data}/{shard}"))
    damaged[600] ^= 1
    write(f"{data}/{shard}", bytes(damaged))
    says(withdraw(patient, data, code=1), "record 0: .*checksum")
    damaged[600] ^= 1
    write(f"{data}/{shard}", bytes(damaged))
    assert tree(data) == before
    shutil.move(data, f"{work}/real")
    os.mkdir(data)
    for name in before:
        os.symlink(f"{work}/real/{name}", f"{data}/{name}")
    says(withdraw(patient, data, code=4), "is a link: withdraw in the folder that has the files")
    assert sorted(os.listdir(data)) == sorted(before)
    assert {n: slurp(f"{work}/real/{n}") for n in before} == {n: slurp(f"{CACHE}/source/{n}") for n in before}
    assert manifest(f"{work}/real")["dataset_id"] == manifest(f"{CACHE}/source")["dataset_id"]


# ---- the source still has the images ---------------------------------------------------------------------------------


@case("the conversion, also with --repair, does not bring the patient back: 6, and what was withdrawn")
def _(work):
    data, (labels, patient, _) = copy_of_source(work), base()
    withdraw(patient, data)
    before = tree(data)
    for more in [], ["--repair"], ["-n"]:
        says(convert(data, labels, *more, code=6), "withdrawn from|holds another data set")
    assert tree(data) == before
    text = slurp(f"{data}/manifest.json")
    for broken in None, text[:-50]:
        os.remove(f"{data}/manifest.json")
        if broken:
            write(f"{data}/manifest.json", broken)
        says(convert(data, labels, "--repair", code=6), "patients may have been withdrawn")
        write(f"{data}/manifest.json", text)
        assert tree(data) == before


@case("--repair without a manifest still repairs a data set that has rejects but no withdrawal")
def _(work):
    data, (labels, _, _) = copy_of_source(work), base()
    before = tree(data)
    os.remove(f"{data}/manifest.json")
    convert(data, labels, "--repair", code=1)
    assert tree(data) == before


@case("an old shard that is put back is found by check --full and refused by training")
def _(work):
    data, (_, patient, _) = copy_of_source(work), base()
    withdraw(patient, data)
    name = next(n for n in sorted(os.listdir(data)) if slurp(f"{data}/{n}") != slurp(f"{CACHE}/source/{n}") and
                "train" in n)
    shutil.copy(f"{CACHE}/source/{name}", f"{data}/{name}")
    check(data, 1)
    run([program("chex-train"), "-q", "-d", data, "-o", f"{work}/run", "--model", "densenet-micro", "--epochs", 1,
         "--batch", 8], 1)


# ---- training --------------------------------------------------------------------------------------------------------


def train(data, out, *more, code=0, count=1):
    command = ["-q", "-d", data, "-o", out, "--model", "densenet-micro", "--batch", 8, "-j", 1, *more]
    if count > 1:
        return run(ranks("chex-train", count, program("chex-train"), *command), code, env=ENVIRONMENT)
    return run([program("chex-train"), *command], code)


@case("training works on the result with 1 and 2 ranks, and a run of the old data set is not resumed: 6, and why")
def _(work):
    data, (_, patient, _) = copy_of_source(work), base()
    train(data, f"{work}/run", "--epochs", 1, "--keep", 0, "--checkpoint-every", "1steps")
    command = [program("chex-inspect"), "list", "--trained-on", f"{work}/run", "--where", f"patient={patient}"]
    shown = run([*command, data]).stdout
    assert re.search(rf"epoch 1  step \d+  {patient}_\d+\.png  patient {patient}", shown), shown
    assert re.search(r"^with +\S+\.safetensors \(step \d+\)", shown, re.M), shown
    assert re.search(r"^without +\S+\.safetensors \(step 0\)", shown, re.M), shown
    shutil.copytree(data, f"{work}/kept")
    old = manifest(data)["dataset_id"]
    withdraw(patient, data)
    new = manifest(data)["dataset_id"]
    says(train(data, f"{work}/run", "--epochs", 2, code=6),
         rf"its data set was {old}, which is {new} since \d+ images of patients were withdrawn; .*--allow-new-data")
    train(data, f"{work}/run", "--epochs", 2, "--allow-new-data")
    shutil.rmtree(f"{work}/run")
    train(f"{work}/kept", f"{work}/run", "--epochs", 1, "--keep", 0, "--checkpoint-every", "1steps")
    refused = run([*command, data], 6)
    says(refused, f"was trained on data set {old}, before images were withdrawn .*give a copy of {old}")
    assert run([*command, f"{work}/kept"]).stdout == shown
    for count in 1, 2:
        train(data, f"{work}/new{count}", "--epochs", 1, count=count)


@case("--eval-only of a run says that images were withdrawn since, how many and when, and names the new data set id")
def _(work):
    data, (_, patient, other) = copy_of_source(work), base()
    train(data, f"{work}/run", "--epochs", 1)
    command = [program("chex-train"), "-d", data, "-o", f"{work}/run", "--eval-only", "-j", 1]
    assert "withdrawn" not in run(command).stderr
    old = manifest(data)["dataset_id"]
    for who in patient, other:
        withdraw(who, data)
        changes, new = manifest(data)["withdrawals"], manifest(data)["dataset_id"]
        slots, times = sum(w["slots"] for w in changes), " to ".join(w["time"] for w in changes)
        for more in [], ["--dry-run"], ["--init", f"{work}/run/best.safetensors"]:
            said = " ".join(run([*command, *more]).stderr.split())
            assert re.search(rf"{slots} images of patients were withdrawn \({times}\), and {old} became {new}; "
                             r".*remaining images.*chex-inspect list --trained-on", said), said
        result = json.loads(slurp(f"{work}/run/metrics-test.json"))
        assert result["dataset_id"] == new
        assert result["split"]["images"] == next(s["images"] for s in manifest(data)["splits"] if s["name"] == "test")


@case("a run that has the data set open continues while a patient is withdrawn")
def _(work):
    data, (_, patient, _) = copy_of_source(work), base()
    command = [program("chex-train"), "-q", "-o", f"{work}/run", "-d", data, "--model", "densenet-micro", "--epochs",
               "6", "--batch", "8", "-j", "1", "--checkpoint-every", "1steps"]
    run([*command[:3], f"{work}/straight", *command[4:]])
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not os.path.exists(f"{work}/run/latest"):
        time.sleep(0.01)
    withdraw(patient, data)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    assert slurp(f"{work}/run/latest") == slurp(f"{work}/straight/latest")


# ---- faults ----------------------------------------------------------------------------------------------------------


class Folder:
    """A withdrawal, and what must be true of its folder after a fault."""

    def __init__(self, work):
        self.work = work
        self.source = copy_of_source(work, "faults")
        self.patient = base()[1]
        self.pieces = traces(self.source, {self.patient})
        self.before = harness.read_tree(self.source)
        done = shutil.copytree(self.source, f"{work}/done")
        withdraw(self.patient, done, "-j", 1)
        self.after = timeless(done)
        self.number = 0

    def command(self, folder):
        return [program("chex-convert"), "-q", "--progress", "none", "-j", "1", "--withdraw", self.patient, folder]

    def new(self):
        self.number += 1
        return shutil.copytree(self.source, f"{self.work}/f{self.number}")

    def counts(self):
        folder = self.new()
        ended = harness.run(self.command(folder), [folder], report=folder + ".report")
        assert ended.code == 0, ended.err
        return ended.counts

    def settle(self, folder, why):
        """chex-inspect says what the folder is, and the same command finishes."""
        there = {n: d for n, d in harness.read_tree(folder).items() if not n.startswith(".chex.lock")}
        said = run([program("chex-inspect"), "-q", "check", "--full", folder], None)
        if said.returncode == 0:
            whole = there == self.before or timeless(folder) == self.after
            assert whole, f"{why}: check finds no fault, but this is neither the old nor the new data set"
        else:
            assert said.stdout + said.stderr, why
        again = run(self.command(folder), None)
        finished = again.returncode == 2 and timeless(folder) == self.after  # the call before had done everything
        assert again.returncode == 0 or finished, f"{why}: then {again.returncode}: {again.stderr}"
        harness.differ(timeless(folder), self.after)
        assert contains(folder, self.pieces) is None, why
        shutil.rmtree(folder)

    def fail(self, fault, codes):
        folder = self.new()
        ended = harness.run(self.command(folder), [folder], fault)
        assert ended.code in codes, f"{fault}: {ended.code} {ended.err}"
        if ended.code not in (0, -signal.SIGKILL):
            assert ended.err.strip(), fault
        self.settle(folder, fault)


@case("every write, fsync, close, rename, open and unlink fails: the old data set, or one that the next run finishes")
def _(work):
    f = Folder(work)
    counts = f.counts()
    faults = [f"{kind}:{n}:{mode}:{what}" for kind, what in (("write", "ENOSPC"), ("sync", "EIO"), ("close", "EIO"),
                                                             ("rename", "EIO"), ("open", "EMFILE"), ("unlink", "EIO"))
              for n in range(1, counts[kind] + 1, 1 if SLOW or counts[kind] < 40 else counts[kind] // 40)
              for mode in (("once", "ever") if SLOW or kind != "open" else ("once",))]
    assert len(faults) > 50
    harness.in_parallel(lambda fault: f.fail(fault, (0, 1, 3, 4, 5)), faults)
    harness.in_parallel(lambda fault: f.fail(fault, (0,)), [f"write:{n}:once:short" for n in (1, 2, 3, 5, 9)])


@case("after a full disk the message says whether a withdrawal was begun, and what the same command does")
def _(work):
    f = Folder(work)
    seen = set()
    for number in range(1, f.counts()["write"] + 1):
        folder = f.new()
        command = [word for word in f.command(folder) if word != "-q"]
        ended = harness.run(command, [folder], f"write:{number}:ever:ENOSPC")
        begun = any("withdrawal" in name and not re.search(r"\.tmp\.", name) for name in os.listdir(folder))
        said = " ".join(ended.err.split())
        if ended.code == 0:
            continue
        assert ("finishes the withdrawal that was begun" in said) == begun, (number, os.listdir(folder), said)
        assert (re.search("nothing in '.*' was changed", said) is not None) != begun, (number, said)
        if not begun:
            assert {n: d for n, d in harness.read_tree(folder).items() if not n.startswith(".chex")} == f.before
        seen.add(begun)
    assert seen == {False, True}, seen


@case("every read fails: nothing is lost")
def _(work):
    f = Folder(work)
    counts = f.counts()
    step = 1 if SLOW else max(1, counts["read"] // 40)
    harness.in_parallel(lambda fault: f.fail(fault, (0, 1, 3, 4, 6)),
                        [f"read:{n}:ever:EIO" for n in range(1, counts["read"] + 1, step)])


@case("kill -9 before every change of the folder")
def _(work):
    f = Folder(work)
    counts = f.counts()
    step = 1 if SLOW or counts["change"] < 120 else 2
    harness.in_parallel(lambda fault: f.fail(fault, (0, -signal.SIGKILL)),
                        [f"change:{n}:once:kill" for n in range(1, counts["change"] + 1, step)])


@case("power loss after every change, with any choice of what was not synced")
def _(work):
    f = Folder(work)
    folder = f.new()
    log = f"{work}/log"
    ended = harness.finish(harness.start(f.command(folder), [folder], log=log))
    assert ended.code == 0, ended.err
    ops = replay.read_log(log)
    start = before_ops(f.before, folder)
    cases = [(length, seed) for length in range(len(ops) + 1) for seed in range(16 if SLOW else 2)]

    def lose(which):
        length, seed = which
        state = replay.after(start + ops[:length], folder, seed and random.Random(length * 7919 + seed))
        target = f"{work}/p{length}-{seed}"
        os.mkdir(target)
        for name, data in state.items():
            write(os.path.join(target, name), data)
        f.settle(target, f"power loss after {length}, {seed}")

    harness.in_parallel(lose, cases)


def before_ops(files, folder):
    """The operations that make the old data set, all of it synced."""
    ops = []
    for name, data in files.items():
        path = os.path.join(folder, name)
        ops += [replay.Op("create", path, 0, b""), replay.Op("write", path, 0, data), replay.Op("sync", path, 0, b"")]
    return [*ops, replay.Op("sync", folder, 0, b"")]


@case("a kill in the middle: readers name the withdrawal, a conversion is refused, another withdrawal finishes it")
def _(work):
    f = Folder(work)
    labels, _, other = base()
    folder = f.new()
    counts = f.counts()
    ended = harness.run(f.command(folder), [folder], f"rename:{counts['rename'] - 2}:once:kill")
    assert ended.code == -signal.SIGKILL and not os.path.exists(f"{folder}/manifest.json")
    assert os.path.exists(f"{folder}/.chex-withdrawal")
    assert f.patient.encode() not in slurp(f"{folder}/.chex-withdrawal")
    assert not any(p in slurp(f"{folder}/.chex-withdrawal") for p in f.pieces)
    assert "unfinished withdrawal of patients" in check(folder, None).stdout
    says(train(folder, f"{work}/run", "--epochs", 1, code=6), "a withdrawal of patients is not finished")
    for more in [], ["--repair"]:
        says(convert(folder, labels, *more, code=6), "a withdrawal of patients is not finished")
    says(withdraw(other, folder, "-n", code=6), "a withdrawal of patients is not finished")
    shutil.copytree(folder, f"{work}/copy")
    says(withdraw("99999", f"{work}/copy", code=2), "the withdrawal that an earlier command began", "has no image of")
    says(withdraw(other, folder), "the withdrawal that an earlier command began")
    assert len(manifest(folder)["withdrawals"]) == 2
    assert contains(folder, f.pieces) is None
    check(folder)


@case("a signal stops it with 75, and the folder of another running command is left alone: 5")
def _(work):
    f = Folder(work)
    folder = f.new()
    process = harness.start(f.command(folder), [folder], "rename:2:once:wait")
    while process.poll() is None and not os.path.exists(f"{folder}/.chex-withdrawal"):
        time.sleep(0.01)
    says(withdraw(f.patient, folder, code=5), "is in use by")
    process.send_signal(signal.SIGINT)
    ended = harness.finish(process)
    assert ended.code in (0, 75), ended.err
    f.settle(folder, "SIGINT")


if __name__ == "__main__":
    sys.exit(case.main())
