#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line of chex-inspect: exit codes, messages, and that what it says of a data set is true.

    check_inspect.py        $CHEX_INSPECT: the program; $CHEX_DATASET: a data set of at least two shards in a split

The data set is copied, damaged in each way of the fault table, and looked at.  Stdlib only; the documents of --json are
held against their schemas where python3-jsonschema is there.  The last line counts; exit code 1 where something failed.
"""
import collections
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from support import crc32c, masked, png_gray

PROGRAM = os.environ.get("CHEX_INSPECT", "./chex-inspect")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

try:
    import jsonschema
except ImportError:
    jsonschema = None


class Tally:
    """Checks that passed, failed, were skipped."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def skip(self, name, why):
        self.skipped += 1
        print(f"skip {name}: {why}")

    def check(self, name, good, detail=""):
        if good:
            self.passed += 1
            print(f"ok   {name}")
        else:
            self.failed += 1
            print(f"FAIL {name}\n     {detail}")


def run(*arguments, **options):
    environment = dict(os.environ, LC_ALL="C", TERM="dumb")
    return subprocess.run([PROGRAM, *arguments], capture_output=True, env=environment,
                          check=False, **options)


def expect(tally, name, arguments, code, *texts, absent=()):
    """Run; the exit code is this one, and each text is in what it says."""
    result = run(*arguments)
    said = (result.stdout + result.stderr).decode("utf-8", "replace")
    missing = [t for t in texts if t not in said]
    surplus = [t for t in absent if t in said]
    tally.check(name, result.returncode == code and not missing and not surplus,
                f"exit code {result.returncode}, wanted {code}; missing {missing}; surplus {surplus}\n{said[:2000]}")
    return said


# ---- an independent reader of the data set ---------------------------------------------------------------------------

class Dataset:
    """The records by the manifest's dtype, without a library."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "manifest.json"), encoding="ascii") as f:
            text = f.read()
        self.manifest = json.loads(text)
        # head -n -2 manifest.json | sha256sum
        self.sum_is_right = (self.manifest.pop("manifest_sha256", None) ==
                             hashlib.sha256("".join(text.splitlines(True)[:-2]).encode()).hexdigest())
        self.stride = self.manifest["record"]["stride"]
        dtype = self.manifest["dtype"]
        self.offset = dict(zip(dtype["names"], dtype["offsets"]))
        self.format = dict(zip(dtype["names"], dtype["formats"]))
        self.shards = self.manifest["shards"]

    def path(self, shard):
        return os.path.join(self.folder, self.shards[shard]["name"])

    def bytes(self, shard):
        with open(self.path(shard), "rb") as f:
            return f.read()

    def records(self):
        """(shard, index, record) of all."""
        for s, shard in enumerate(self.shards):
            data = self.bytes(s)
            for i in range(shard["records"]):
                yield s, i, data[i * self.stride:(i + 1) * self.stride]

    def chain(self, shard):
        """CRC-32C over the stored checksums of the data."""
        data, ends = self.bytes(shard), range(self.stride, self.shards[shard]["size"] + 1, self.stride)
        return crc32c(b"".join(data[end - 4:end] for end in ends))

    def text(self, record, name):
        size = int(self.format[name][1:])
        return record[self.offset[name]:self.offset[name] + size].decode("ascii")

    def labels(self, record):
        at = self.offset["label"]
        names = [n for n, v in zip(self.manifest["labels"], record[at:at + 14]) if v]
        return "|".join(names) or "No Finding"

    def pixels(self, record):
        side = self.manifest["record"]
        return record[self.offset["image"]:self.offset["image"] + side["height"] * side["width"]]


# ---- what it says of a good data set ---------------------------------------------------------------------------------

def check_good(tally, ds, work):
    folder = ds.folder
    records = sum(s["records"] for s in ds.shards)
    expect(tally, "without an action a data set is described and checked", [folder], 0, ds.manifest["dataset_id"],
           ds.manifest["split"]["rule"], f"{len(ds.shards)} of {len(ds.shards)} shards good", "--full")
    expect(tally, "--quick is clean", ["check", "--quick", folder], 0)
    expect(tally, "--sample is clean", ["check", "--sample", "20.5%", folder], 0)
    expect(tally, "--full reads every record", ["check", "--full", folder], 0, f"{records:,} record")
    expect(tally, "--full --sha256 is clean", ["check", "--full", "--sha256", folder], 0, f"{records:,} record")
    tally.check("manifest_sha256 is that of the lines before it", ds.sum_is_right)
    tally.check("crc32c is what the format says", [s["crc32c"] for s in ds.shards] ==
                [f"{ds.chain(s):08x}" for s in range(len(ds.shards))])
    expect(tally, "one shard is checked against its manifest", ["check", "--full", ds.path(1)], 0, "1 of 1 shard good")
    expect(tally, "the manifest stands for its data set", [os.path.join(folder, "manifest.json")], 0)
    result = run("-q", "check", "--full", folder)
    tally.check("--quiet says nothing of a good data set", result.returncode == 0 and not result.stdout + result.stderr)
    alone = os.path.join(work, "alone.tfrecord")
    shutil.copy(ds.path(0), alone)
    expect(tally, "a file without a manifest is checked by itself", ["check", "--full", alone], 0, "1 of 1 file good",
           "no manifest")
    expect(tally, "--sha256 of a file without a manifest", ["check", "--full", "--sha256", alone], 3, "no SHA-256")
    outputs = {run("check", "--full", "-j", str(j), folder).stdout.split(b" in ")[0] for j in (1, 2, 7)}
    tally.check("the output does not depend on the number of threads", len(outputs) == 1, outputs)


def check_list(tally, ds):
    fields = ["slot", "split", "shard", "index", "name", "patient", "labels", "weight", "age", "sex", "view", "sha256"]
    lines = run("list", "--padding", "--fields", ",".join(fields), ds.folder).stdout.decode("ascii").splitlines()
    tally.check("list begins with the names of the fields", lines[0].split("\t") == fields, lines[0])
    wrong = []
    for line, (s, i, record) in zip(lines[1:], ds.records()):
        got = dict(zip(fields, line.split("\t")))
        age = struct.unpack("<f", record[ds.offset["age"]:ds.offset["age"] + 4])[0]
        wanted = {"slot": f"{ds.manifest['dataset_id']}/{s:05}/{i:05}", "split": ds.shards[s]["split"],
                  "shard": ds.shards[s]["name"], "index": str(i), "labels": ds.labels(record),
                  "weight": str(record[ds.offset["weight"]]), "sex": chr(record[ds.offset["sex"]]),
                  "sha256": hashlib.sha256(ds.pixels(record)).hexdigest()}
        for name in ("patient", "view", "filename"):
            if name in ds.offset:
                wanted["name" if name == "filename" else name] = ds.text(record, name)
        if any(got[k] != v for k, v in wanted.items()) or (age == age and abs(float(got["age"]) - age) > 1e-5):
            wrong.append((got, wanted))
    tally.check(f"list says what is in the records ({len(lines) - 1})",
                not wrong and len(lines) - 1 == sum(s["records"] for s in ds.shards), wrong[:1])
    plain = run("list", ds.folder).stdout.decode("ascii").splitlines()
    tally.check("list leaves padding records out", len(plain) - 1 == sum(s["images"] for s in ds.shards), len(plain))
    split = ds.manifest["splits"][-1]
    part = run("list", "--split", split["name"], "--fields", "split", ds.folder).stdout.decode("ascii").splitlines()
    tally.check("--split chooses a split", part[1:] == [split["name"]] * split["images"], part[:3])


def check_where(tally, ds):
    """--where of list and labels: exactly the images for which it holds."""
    at, real = ds.offset, [(ds.shards[s]["split"], r) for s, _, r in ds.records() if r[ds.offset["weight"]]]
    last = ds.manifest["splits"][-1]["name"]
    mass, edema = ds.manifest["labels"].index("Mass"), ds.manifest["labels"].index("Edema")
    for terms, holds in ((["Mass"], lambda _, r: r[at["label"] + mass]),
                         (["Mass,Edema", "sex=F"], lambda _, r: (r[at["label"] + mass] or r[at["label"] + edema])
                          and r[at["sex"]] == ord("F")),
                         (["No_Finding=0"], lambda _, r: any(r[at["label"]:at["label"] + 14])),
                         ([f"split={last},Mass"], lambda split, r: split == last or r[at["label"] + mass]),
                         (["patient=nobody"], lambda _, r: False)):
        words = [w for t in terms for w in ("--where", t)]
        wanted = [ds.text(r, "filename") for s, r in real if holds(s, r)]
        got = run("list", "--fields", "name", *words, ds.folder).stdout.decode("ascii").splitlines()
        tally.check(f"list --where {' --where '.join(terms)} ({len(wanted)})", got == ["name", *wanted], got[:5])
        if not wanted:
            expect(tally, "labels of no image", ["labels", *words, ds.folder], 3, "no image of this selection")
            continue
        counts = collections.Counter(split for split, r in real if holds(split, r))
        document = json.loads(run("labels", "--json", *words, ds.folder).stdout)["results"][0]
        tally.check(f"labels --where {' --where '.join(terms)}",
                    {s["name"]: s["images"] for s in document["splits"]} == dict(counts), document["splits"])
    split = ds.manifest["splits"][0]["name"]
    wanted = [ds.text(r, "filename") for s, r in real if s == split and r[at["sex"]] == ord("M")]
    got = run("list", "--fields", "name", "--where", "sex=M", "--split", split, ds.folder).stdout.decode("ascii")
    tally.check("--where and --split", got.splitlines()[1:] == wanted, got[:200])


def check_labels_key(tally, ds):
    lines = run("labels", ds.folder).stdout.decode("ascii").splitlines()
    table = lines[lines.index("images with both") + 1:]
    used = set(table[0].split()) | {line.split()[0] for line in table[1:14]}
    key = dict(re.findall(r"(\w{4}) = (\w+)", " ".join(table[14:])))
    tally.check("labels explains each abbreviation of its table",
                set(key) == used and list(key.values()) == ds.manifest["labels"], key)
    tally.check("no line of --labels is wider than 80 columns", max(map(len, lines)) <= 80, lines)


def check_labels(tally, ds):
    counts, pairs, images = collections.Counter(), collections.Counter(), collections.Counter()
    for s, _, record in ds.records():
        if record[ds.offset["weight"]]:
            split, names = ds.shards[s]["split"], ds.labels(record).split("|")
            images[split] += 1
            counts.update((split, n) for n in names)
            pairs.update((split, a, b) for a in names for b in names if a != b)
    document = json.loads(run("labels", "--json", ds.folder).stdout)
    wrong = []
    for split in document["results"][0]["splits"]:
        wrong += [split["name"]] * (split["images"] != images[split["name"]])
        wrong += ["No Finding"] * (split["no_finding"] != counts[split["name"], "No Finding"])
        for name, finding in split["findings"].items():
            wrong += [(split["name"], name)] * (finding["images"] != counts[split["name"], name])
            wrong += [(split["name"], name, other) for other, n in finding["together_with"].items()
                      if n != pairs[split["name"], name, other]]
    tally.check("labels counts what is in the records",
                not wrong and len(images) == len(document["results"][0]["splits"]), wrong[:3])


def check_extract(tally, ds, work):
    shard, index, record = next((s, i, r) for s, i, r in ds.records() if r[ds.offset["weight"]] and i == 1)
    wanted, side = ds.pixels(record), ds.manifest["record"]["width"]
    png, pgm = os.path.join(work, "x.png"), os.path.join(work, "x.PGM")
    expect(tally, "extract by number", ["extract", "-o", png, ds.folder, f"{shard}:{index}"], 0)
    with open(png, "rb") as f:
        tally.check("the PNG holds the pixels", png_gray(f.read()) == (side, ds.manifest["record"]["height"], wanted))
    expect(tally, "extract by the shard's name",
           ["extract", "-o", pgm, ds.folder, f"{ds.shards[shard]['name']}:{index}"], 0)
    with open(pgm, "rb") as f:
        tally.check("the PGM holds the pixels", f.read() == b"P5\n%d %d\n255\n" % (side, side) + wanted)
    result = run("extract", "-q", "-o", "-", ds.folder, f"{shard}:{index}")
    tally.check("- is standard output", result.returncode == 0 and png_gray(result.stdout)[2] == wanted)
    if "filename" in ds.offset:
        expect(tally, "extract by name", ["extract", "-o", png, ds.folder, ds.text(record, "filename")], 0)
        with open(png, "rb") as f:
            tally.check("and it is that image", png_gray(f.read())[2] == wanted)
    expect(tally, "no folder to write to", ["extract", "-o", os.path.join(work, "no/where.png"), ds.folder, "0:0"], 4)
    left = [n for n in os.listdir(work) if ".tmp." in n]
    tally.check("nothing temporary is left", not left, left)


def check_split(tally, ds):
    said = expect(tally, "check --leaks of a split by patient", ["check", "--leaks", ds.folder], 0,
                  "no patient is in two splits", "no image is in two splits")
    patients = {ds.text(r, "patient") for _, _, r in ds.records()} if "patient" in ds.offset else set()
    tally.check("it counts the patients", not patients or f"({len(patients):,} patient" in said, said)


# ---- faults ----------------------------------------------------------------------------------------------------------

def copy(ds, work):
    folder = os.path.join(work, "copy")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ds.folder, folder)
    return Dataset(folder)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def seal(data):
    """A record with both checksums right."""
    body = data[12:-4]
    return data[:8] + struct.pack("<I", masked(data[:8])) + body + struct.pack("<I", masked(body))


def damaged(tally, good, work, name, change, code, *texts, arguments=("check", "--full"), absent=()):
    ds = copy(good, work)
    change(ds)
    return expect(tally, name, [*arguments, ds.folder], code, *texts, absent=absent)


def change_record(shard, index, edit):
    """A function that edits one record of a data set."""
    def change(ds):
        data = bytearray(ds.bytes(shard))
        at = index * ds.stride
        data[at:at + ds.stride] = edit(ds, bytes(data[at:at + ds.stride]))
        write(ds.path(shard), data)
    return change


def flip(at, bit=0):
    return lambda ds, r: r[:at(ds)] + bytes([r[at(ds)] ^ 1 << bit]) + r[at(ds) + 1:]


def tamper(ds):
    """A pixel with its checksum, and what the manifest has over the checksums."""
    change_record(0, 1, lambda d, r: seal(flip(lambda e: e.offset["image"])(d, r)))(ds)
    ds.shards[0]["crc32c"] = f"{ds.chain(0):08x}"
    write(os.path.join(ds.folder, "manifest.json"), json.dumps(ds.manifest).encode())


def check_damage(tally, good, work):
    stride = good.stride
    place = f"record 1 @{stride:,}: "
    damaged(tally, good, work, "a flipped bit in the length", change_record(0, 1, flip(lambda ds: 2)), 1,
            place + "length checksum mismatch, in the length", "1 fault")
    damaged(tally, good, work, "a flipped bit in the length's checksum", change_record(0, 1, flip(lambda ds: 9)), 1,
            place + "length checksum mismatch, in the checksum")
    damaged(tally, good, work, "a flipped bit in the pixels",
            change_record(0, 1, flip(lambda ds: ds.offset["image"] + 3)), 1,
            place + "data checksum mismatch, in the pixels")
    damaged(tally, good, work, "a flipped bit in the data's checksum", change_record(0, 1, flip(lambda ds: stride - 1)),
            1, place + "data checksum mismatch, in the checksum")
    damaged(tally, good, work, "--sample 100% finds it too", change_record(0, 1, flip(lambda ds: stride - 1)), 1, place,
            arguments=("check", "--sample", "100%"))
    damaged(tally, good, work, "--quick does not read other records", change_record(0, 1, flip(lambda ds: stride - 1)),
            0, arguments=("check", "--quick"))
    damaged(tally, good, work, "a changed header with right checksums",
            change_record(0, 1, lambda ds, r: seal(flip(lambda _: 20)(ds, r))), 1,
            "record header differs from the manifest")
    damaged(tally, good, work, "a label of 2 with right checksums",
            change_record(0, 1, lambda ds, r: seal(r[:ds.offset["label"]] + b"\x02" + r[ds.offset["label"] + 1:])), 1,
            "label Atelectasis is 2")
    damaged(tally, good, work, "a changed label with right checksums",
            change_record(0, 1, lambda ds, r: seal(flip(lambda d: d.offset["label"])(ds, r))), 1,
            "every record is good, but they are not those of the manifest (crc32c)")
    damaged(tally, good, work, "a pixel, its checksum and the crc32c of the manifest changed", tamper, 0)
    damaged(tally, good, work, "--sha256 finds that", tamper, 1, "SHA-256 is not that of the manifest",
            arguments=("check", "--full", "--sha256"))
    damaged(tally, good, work, "a length of 2^63 with a right checksum",
            change_record(0, 1, lambda ds, r: struct.pack("<QI", 1 << 63, masked(struct.pack("<Q", 1 << 63))) + r[12:]),
            1, "record with 9,223,372,036,854,775,808 bytes")
    damaged(tally, good, work, "many faults are counted and not listed",
            lambda ds: write(ds.path(0), bytes(len(ds.bytes(0)))), 1,
            *(["and "] if good.shards[0]["records"] > 10 else []))
    ds = copy(good, work)
    change_record(0, 1, flip(lambda d: d.offset["image"]))(ds)
    output = os.path.join(work, "damaged.png")
    expect(tally, "a damaged image is not extracted", ["extract", "-o", output, ds.folder, "0:1"], 1,
           "checksum mismatch")
    tally.check("and no file is written", not os.path.exists(output))
    expect(tally, "list continues behind a damaged record", ["list", "--fields", "index,sha256", ds.folder], 1,
           "record 1: data checksum mismatch", "chex-inspect check --full")


def fault_places(work, mode):
    """[record, offset] of each fault of the copy, by --json."""
    document = json.loads(run("--json", "check", mode, os.path.join(work, "copy")).stdout)
    return [[f["record"], f["offset"]] for f in document["results"][0]["fault_list"]]


def check_files(tally, good, work):
    stride, records = good.stride, good.shards[0]["records"]
    first, second = good.shards[0]["name"], good.shards[1]["name"]
    for mode in ("--quick", "--full"):
        damaged(tally, good, work, f"cut inside a record ({mode})", lambda ds: write(ds.path(0), ds.bytes(0)[:-10]), 1,
                f"record {records - 1} @{(records - 1) * stride:,}: file ends {stride - 10:,} bytes inside the record",
                arguments=("check", mode))
        tally.check(f"and in the document ({mode})",
                    fault_places(work, mode) == [[records - 1, (records - 1) * stride]], fault_places(work, mode))
        damaged(tally, good, work, f"cut between two records ({mode})",
                lambda ds: write(ds.path(0), ds.bytes(0)[:-stride]), 1,
                f"record {records - 1} @{(records - 1) * stride:,}: file ends before it: {records - 1:,} record",
                f"manifest says {records:,}", arguments=("check", mode))
        tally.check(f"and in the document ({mode})",
                    fault_places(work, mode) == [[records - 1, (records - 1) * stride]], fault_places(work, mode))
        damaged(tally, good, work, f"a record too many ({mode})",
                lambda ds: write(ds.path(0), ds.bytes(0) + ds.bytes(0)[:stride]), 1,
                f"{records + 1:,} records, manifest says", arguments=("check", mode))
        damaged(tally, good, work, f"empty ({mode})", lambda ds: write(ds.path(0), b""), 1, "empty file",
                arguments=("check", mode))
        damaged(tally, good, work, f"missing ({mode})", lambda ds: os.unlink(ds.path(0)), 1, first, "cannot open",
                arguments=("check", mode))

    def swap(ds):
        a, b = ds.bytes(0), ds.bytes(1)
        write(ds.path(0), b)
        write(ds.path(1), a)
    damaged(tally, good, work, "two shards swapped", swap, 1, f"holds the records of '{first}'",
            f"holds the records of '{second}'", "2 faults")
    for arguments in (("check",), ("check", "--sample", "1%"), ()):
        damaged(tally, good, work, f"two shards swapped {arguments}", swap, 1, f"holds a record of '{first}'",
                f"holds a record of '{second}'", "2 faults", arguments=arguments)
    damaged(tally, good, work, "a shard copied over another", lambda ds: write(ds.path(1), ds.bytes(0)), 1,
            f"holds the records of '{first}'", "1 fault")

    def swap_records(ds):
        data = ds.bytes(0)
        write(ds.path(0), data[stride:2 * stride] + data[:stride] + data[2 * stride:])
    damaged(tally, good, work, "two records swapped", swap_records, 1, "holds the record of slot 1",
            "holds the record of slot 0")
    for name, text in ((".x.tmp.4242", "left over"), (f".{first}.part", "left over"), (".chex.lock", "lock"),
                       (".chex-journal.jsonl", "journal"), ("a.tfrecord-00000-of-00001", "not in the manifest")):
        damaged(tally, good, work, f"{name} beside the shards",
                lambda ds, n=name: write(os.path.join(ds.folder, n), b"x"), 1, name, text,
                arguments=("check", "--quick"))
    damaged(tally, good, work, "other files are nobody's business",
            lambda ds: write(os.path.join(ds.folder, "README.txt"), b"x"), 0)


def check_unfinished(tally, good, work):
    def remove(ds):
        return os.unlink(os.path.join(ds.folder, "manifest.json"))

    def interrupt(ds):
        remove(ds)
        head = {"journal": 1, "dataset_id": ds.manifest["dataset_id"], "spec": "some \x1b[31mspecification"}
        write(os.path.join(ds.folder, ".chex-journal.jsonl"), (json.dumps(head) + "\n{}\n{}\n").encode())
    damaged(tally, good, work, "an unfinished conversion", interrupt, 1, "unfinished conversion", "2 shards done",
            "chex-convert", absent=("\x1b",))
    damaged(tally, good, work, "its records cannot be listed", interrupt, 1, "unfinished", arguments=("list",))
    damaged(tally, good, work, "shards without a manifest", remove, 1, "without a manifest.json")
    ds = copy(good, work)
    remove(ds)
    expect(tally, "each of them can be checked by itself", ["check", "--full", ds.path(0), ds.path(1)], 0,
           "in no manifest")
    expect(tally, "but not listed", ["list", ds.path(0)], 3, "is in no manifest")


def check_paths(tally, good, work):
    """A folder's name is data of somebody else too: what it could tell a terminal is printed, not sent."""
    folder = os.path.join(work, "set\x1b[2J\udc9b\u0085\u202e\u200b\U000e0041\u00e9")
    shutil.copytree(good.folder, folder)
    shard = good.manifest["shards"][0]["name"]
    for what, arguments, code in (("described", (folder,), 0), ("-v", ("-v", folder), 0),
                                  ("--full", ("check", "--full", folder), 0), ("diff", ("diff", folder, folder), 0),
                                  ("list", ("list", folder), 0), ("one shard", (f"{folder}/{shard}",), 0),
                                  ("what is not there", (f"{folder}/no",), 3)):
        said = expect(tally, f"a path with control characters: {what}", arguments, code)
        tally.check(f"none of them comes out: {what}",
                    not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u202e\ufffd\U000e0000-\U000e0fff]", said),
                    repr(said))
    expect(tally, "its control characters are printed", [f"{folder}/no"], 3,
           "set\\x1b[2J\\x9b\\u0085\\u202e\\u200b\\U000e0041\u00e9")
    said = expect(tally, "a command to copy has them in quotes", [folder], 0, "next     ")
    word = said[said.index("chex-inspect check --full"):].rstrip("\n").split(" ", 3)[3]
    tally.check("which the shell reads",
                subprocess.check_output(["bash", "-c", f"printf %s {word}"]) == os.fsencode(folder), word)
    os.unlink(f"{folder}/manifest.json")
    said = expect(tally, "a path with control characters: a folder without a manifest", [folder], 1, "set\\x1b[2J")
    tally.check("none of them comes out", "\x1b" not in said, repr(said))
    shutil.rmtree(folder)


# ---- manifests -------------------------------------------------------------------------------------------------------

def hostile_manifests(good):
    """(name, text) of manifests that must be refused."""
    text = json.dumps(good.manifest)

    def edit(path, value):
        copied = json.loads(text)
        at = copied
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return json.dumps(copied)
    yield "empty", ""
    yield "half", text[:len(text) // 2]
    yield "no object", "[]"
    yield "a repeated key", text[:-1] + ', "format": 1}'
    yield "deep nesting", "[" * 100000
    yield "deep nesting in a later key", text[:-1] + ', "x": ' + "[" * 17 + "]" * 17 + "}"
    yield "a newer format", edit(["format"], 2)
    yield "not UTF-8", text.replace("bilinear", "bil\udcff")
    for value in ("../../etc/passwd", "/etc/passwd", "..", "a/b", "a b", "", ".hidden", "a\u0000b", "\u001b[2J"):
        yield f"the shard name {value!r}", edit(["shards", 0, "name"], value)
    yield "two shards of a name", edit(["shards", 0, "name"], good.shards[1]["name"])
    for value in (-1, 0, 2**31, 2**63 - 1, 1e30, "8", None):
        yield f"{value!r} records", edit(["shards", 0, "records"], value)
        yield f"a stride of {value!r}", edit(["record", "stride"], value)
        yield f"a height of {value!r}", edit(["record", "height"], value)
        yield f"{value!r} shards", edit(["splits", 0, "shards"], value)
        if value:
            yield f"{value!r} images", edit(["splits", 0, "images"], value)
    yield "no images", text.replace('"images"', '"image"')
    yield "another dtype", edit(["dtype", "offsets", 0], 0)
    yield "a mean of 256", edit(["pixels", "mean"], 256)
    yield "other labels", edit(["labels", 3], "Dragons")


def check_manifests(tally, good, work):
    ds = copy(good, work)
    path = os.path.join(ds.folder, "manifest.json")
    for name, text in hostile_manifests(good):
        write(path, text.encode("utf-8", "surrogateescape"))
        expect(tally, f"manifest: {name}", ["check", "--full", ds.folder], 6, "manifest.json",
               *(() if name == "a newer format" else ("\nnext     chex-convert --repair with",)), absent=("\x1b",))
    with open(path, "wb") as f:
        f.truncate((64 << 20) + 1)
    expect(tally, "manifest: more than 64 MB", [ds.folder], 6, "more than")
    os.unlink(path)
    os.mkfifo(path)
    expect(tally, "manifest: a FIFO", [ds.folder], 6, "not a regular file")
    os.unlink(path)
    other = dict(good.manifest, dataset_id="0123456789abcdef")
    write(path, json.dumps(other).encode())
    expect(tally, "the manifest of another run", ["check", "--full", ds.folder], 1,
           "of data set '" + good.manifest["dataset_id"])
    wrong = json.loads(json.dumps(good.manifest))
    wrong["splits"][0]["positives"]["Mass"] += 1
    write(path, json.dumps(wrong).encode())
    expect(tally, "a wrong number of positives", ["check", "--full", ds.folder], 1,
           "images with Mass, the records have")
    write(path, json.dumps(dict(good.manifest, later={"x": 1})).encode())
    expect(tally, "an unknown outer key is allowed", ["check", "--full", ds.folder], 0)


# ---- a leak between splits -------------------------------------------------------------------------------------------

def check_leak(tally, good, work):
    """Give the first record of the last split the patient, the name and the pixels of the first one of all."""
    last = good.manifest["splits"][-1]
    if len(good.manifest["splits"]) < 2 or "filename" not in good.offset:
        return tally.skip("a leak", "one split, or texts of different sizes")
    ds = copy(good, work)
    source = ds.bytes(0)[:ds.stride]

    def put(record, *fields):
        out = bytearray(record)
        for name, size in fields:
            out[ds.offset[name]:ds.offset[name] + size] = source[ds.offset[name]:ds.offset[name] + size]
        return seal(bytes(out))

    pixels = ("image", len(ds.pixels(source)))

    def leak(_, record):
        return put(record, ("patient", int(ds.format["patient"][1:])), pixels)

    def leak_image(_, record):
        return put(record, pixels)

    change_record(last["first_shard"], 0, leak)(ds)
    patient, name = ds.text(source, "patient"), ds.text(source, "filename")
    expect(tally, "a patient and an image in two splits", ["check", "--leaks", ds.folder], 1,
           "1 patient in more than one split", f"{patient}: {ds.shards[0]['split']}", f"{last['name']} 1 image",
           "1 image in more than one split",
           f"{ds.shards[0]['split']} {name} = {last['name']} ")
    document = json.loads(run("check", "--leaks", "--json", ds.folder).stdout)["results"][0]
    tally.check("and in the document", [p["patient"] for p in document["patients_in_two_splits"]] == [patient]
                and len(document["images_in_two_splits"]) == 1)
    if ds.shards[last["first_shard"]]["records"] < 6:
        return tally.skip("a leak of many", "too few records")
    for i in range(1, 6):
        change_record(last["first_shard"], i, leak_image)(ds)
    expect(tally, "of many equal images the first of each split is named", ["check", "--leaks", ds.folder], 1,
           f" {ds.shards[0]['split']} {name} = {last['name']} ", ", 7 images in all")
    return None


# ---- output ----------------------------------------------------------------------------------------------------------

def check_output(tally, ds):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([PROGRAM, "list", ds.folder], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    tally.check("a reader that stops, as head does, is no message", (result.returncode, result.stderr) == (4, b""),
                str(result))
    for arguments in ([ds.folder], ["list", ds.folder], ["labels", ds.folder], ["check", "--full", "--json", ds.folder],
                      ["extract", "-o", "-", ds.folder, "0:0"], ["--help"]):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
        tally.check(f"a full standard output: {arguments[0]}",
                    result.returncode == 4 and b"standard output" in result.stderr,
                    (result.returncode, result.stderr))


def check_json(tally, ds, work):
    schema = None
    if jsonschema:
        with open(os.path.join(SOURCE, "schemas", "inspect.schema.json"), encoding="ascii") as f:
            schema = jsonschema.Draft202012Validator(json.load(f))
        with open(os.path.join(SOURCE, "schemas", "manifest.schema.json"), encoding="ascii") as f:
            manifest_schema = jsonschema.Draft202012Validator(json.load(f))
        faults = [e.message for e in manifest_schema.iter_errors(ds.manifest)]
        tally.check("the manifest is of its schema", not faults, faults[:1])
    else:
        tally.skip("documents against their schemas", "no python3-jsonschema")
    bad = copy(ds, work)
    change_record(0, 1, flip(lambda d: 2))(bad)
    nowhere, png = os.path.join(work, "nowhere"), os.path.join(work, "j.png")
    fields = "slot,split,shard,index,name,patient,labels,weight,age,sex,view,sha256"
    for arguments, code in (([ds.folder], 0), (["check", "--full", bad.folder, ds.folder, nowhere, bad.path(0)], 3),
                            (["check", "--full", bad.folder], 1), (["check", "--sample", "50", ds.folder], 0),
                            (["list", ds.folder], 0),
                            (["list", "--padding", "--fields", fields, bad.folder], 1), (["list", nowhere], 3),
                            (["labels", ds.folder, ds.folder], 0), (["check", "--leaks", ds.folder], 0),
                            (["extract", "-o", png, ds.folder, "0:0"], 0),
                            (["extract", "-o", png, ds.folder, "no"], 3)):
        result = run("--json", *arguments)
        try:
            document = json.loads(result.stdout)
            faults = [e.message for e in schema.iter_errors(document)] if schema else []
        except ValueError as error:
            document, faults = {}, [str(error)]
        tally.check(f"--json {' '.join(os.path.basename(a) for a in arguments)}",
                    not faults and result.returncode == code == document.get("exit_code"),
                    (result.returncode, faults[:1]))


def main():
    tally = Tally()
    folder = os.environ.get("CHEX_DATASET")
    if not folder or not os.path.isdir(folder):
        print("CHEX_DATASET is not the folder of a data set", file=sys.stderr)
        return 2
    work = tempfile.mkdtemp(prefix="chex-inspect-")
    try:
        ds = Dataset(folder)
        check_good(tally, ds, work)
        check_list(tally, ds)
        check_where(tally, ds)
        check_labels(tally, ds)
        check_labels_key(tally, ds)
        check_extract(tally, ds, work)
        check_split(tally, ds)
        check_damage(tally, ds, work)
        check_files(tally, ds, work)
        check_unfinished(tally, ds, work)
        check_paths(tally, ds, work)
        check_manifests(tally, ds, work)
        check_leak(tally, ds, work)
        check_output(tally, ds)
        check_json(tally, ds, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
