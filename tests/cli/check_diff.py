#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect diff, --format, and files of other kinds: exit codes, and that what they say is true.

    check_diff.py [PATTERN]      $CHEX_INSPECT, $CHEX_CONVERT, $CHEX_SYNTH or in $BUILDDIR
"""
import csv
import ctypes
import ctypes.util
import io
import json
import os
import shutil
import sys
import tempfile

from support import (FINDINGS, SOURCE, Cases, images, manifest, nih, program, read_csv, run, says, slurp, synth,
                     write, write_csv)

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()


def inspect(*arguments, code=0, **options):
    return run([program("chex-inspect"), *arguments], code, **options)


def document(*arguments, code=0):
    """The --json document, held against its schema; its only result."""
    found = json.loads(inspect("--json", *arguments, code=code).stdout)
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "inspect.schema.json"))))
    assert found["exit_code"] == code
    result, = found["results"]
    return result


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh128(data):
    """By the library that chex-inspect is linked to."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_128bits.argtypes, library.XXH3_128bits.restype = [ctypes.c_char_p, ctypes.c_size_t], Hash128
    return library.XXH3_128bits(bytes(data), len(data))


def rows(*arguments, code=0):
    """The rows of --format csv, which must be those of --format jsonl."""
    text = printed("csv", arguments, code)
    assert b"\n" not in text.replace(b"\r\n", b""), "lines do not end with CR LF"
    table = list(csv.DictReader(io.StringIO(text.decode(), newline="")))
    lines = [json.loads(line) for line in printed("jsonl", arguments, code).splitlines()]
    assert len(table) == len(lines)
    for a, b in zip(table, lines):
        assert list(a) == list(b)
    return table, lines


def printed(form, arguments, code):
    """The bytes on standard output: as text, CR LF would become LF."""
    with tempfile.TemporaryFile() as out:
        inspect(*arguments, "--format", form, code=code, stdout=out)
        out.seek(0)
        return out.read()


def make(work, name, csv_path, folder, *options):
    out = os.path.join(work, name)
    run([program("chex-convert"), "-q", "-i", folder, "-l", csv_path, "-o", out, "--size", 48, "--shard-size", 16,
         *options])
    return out


def start(work, count=90):
    csv_path = synth(os.path.join(work, "in"), count, "--size", 96)
    return csv_path, os.path.join(work, "in", "images")


# ---- diff ------------------------------------------------------------------------------------------------------------


@case("a data set and its copy are the same, and nothing is read; exit code 0")
def _(work):
    csv_path, folder = start(work)
    a = make(work, "a", csv_path, folder)
    shutil.copytree(a, os.path.join(work, "b"))
    result = document("diff", a, os.path.join(work, "b"))
    assert result["same"] and not result["read"] and not result["changes"]
    assert "same" in inspect("diff", a, a).stdout
    assert rows("diff", a, a)[0] == []


@case("other shards of the same images: only specification and places differ; exit code 1")
def _(work):
    csv_path, folder = start(work)
    a = make(work, "a", csv_path, folder)
    b = make(work, "b", csv_path, folder, "--shard-size", 32, "--align", 512)
    result = document("diff", a, b, code=1)
    assert {c["name"] for c in result["changes"] if c["kind"] == "spec"} >= {"shard_size", "align", "dataset_id"}
    assert {c["kind"] for c in result["changes"]} == {"spec", "place"}
    assert result["in_both"] == 90 and result["pixels_compared"]


@case("each change of an image is found, with its name and both values, and no other")
def _(work):
    csv_path, folder = start(work)
    rule = os.path.join(work, "split.csv")
    header, table = read_csv(csv_path)
    column = {name: i for i, name in enumerate(header)}
    people = sorted({row[0][:8] for row in table})
    part = {p: "train" if i % 3 else "test" for i, p in enumerate(people)}

    def split(of):
        write(rule, "name,split\n" + "".join(f"{row[0]},{of[row[0][:8]]}\n" for row in table))

    split(part)
    a = make(work, "a", csv_path, folder, "--split", "file:" + rule, "--size", 50)  # no multiple of a block
    moved = people[1]
    assert part[moved] == "train"
    split({**part, moved: "test"})
    label, age, sex, view, gone, pixels = [row for row in table if row[0][:8] in people[2:]][:6]
    old = label[column["Finding Labels"]]
    label[column["Finding Labels"]] = "Hernia" if old != "Hernia" else "Mass"
    age[column["Patient Age"]] = "77" if age[column["Patient Age"]] != "77" else "78"
    sex[column["Patient Gender" if "Patient Gender" in column else "Patient Sex"]] = "U"
    view[column["View Position"]] = "AP" if view[column["View Position"]] == "PA" else "PA"
    source = next(row for row in table if row is not pixels)
    shutil.copy(os.path.join(folder, source[0]), os.path.join(folder, pixels[0]))
    table.remove(gone)
    write_csv(csv_path, header, table)
    os.remove(os.path.join(folder, gone[0]))
    b = make(work, "b", csv_path, folder, "--split", "file:" + rule, "--size", 50)
    result = document("diff", a, b, code=1)
    changes = {}
    for c in result["changes"]:
        changes.setdefault(c["kind"], {})[c["name"]] = (c["a"], c["b"])
    assert list(changes["only_a"]) == [gone[0]] and "only_b" not in changes
    assert changes["split"] == {row[0]: ("train", "test") for row in table if row[0][:8] == moved}
    assert changes["labels"] == {label[0]: (old, label[column["Finding Labels"]])}
    assert list(changes["age"]) == [age[0]] and list(changes["sex"]) == [sex[0]] and list(changes["view"]) == [view[0]]
    assert changes["sex"][sex[0]][1] == "U" and list(changes["pixels"]) == [pixels[0]]
    assert result["counts"] == {k: len(changes.get(k, {})) for k in result["counts"]}
    csv_rows, lines = rows("diff", a, b, code=1)
    assert lines == result["changes"] and [dict(r) for r in csv_rows] == result["changes"]
    heads = tuple(f"{xxh128(images(folder)[pixels[0]]['image']).high:016x}" for folder in (a, b))
    assert changes["pixels"][pixels[0]] == heads
    text = inspect("diff", a, b, code=1).stdout
    assert f"train -> test: {len(changes['split'])}" in text and f"{gone[0]}  (" in text
    back = document("diff", b, a, code=1)
    assert back["counts"]["only_b"] == 1 and back["counts"]["labels"] == 1
    threads = [inspect("diff", "-j", n, a, b, code=1).stdout for n in (1, 4)]
    assert threads[0] == threads[1]


@case("images of another size are not compared by pixels, and that is said")
def _(work):
    csv_path, folder = start(work, 40)
    a = make(work, "a", csv_path, folder)
    b = make(work, "b", csv_path, folder, "--size", 32)
    result = document("diff", a, b, code=1)
    assert not result["pixels_compared"] and result["counts"]["pixels"] == 0
    assert "not compared" in inspect("diff", a, b, code=1).stdout


@case("diff: what cannot be done")
def _(work):
    csv_path, folder = start(work, 40)
    a = make(work, "a", csv_path, folder)
    says(inspect("diff", a, code=2), "two PATHs")
    says(inspect("diff", a, a, a, code=2), "two PATHs")
    says(inspect("diff", a, os.path.join(work, "no"), code=3), "cannot open")
    says(inspect("diff", a, os.path.join(a, manifest(a)["shards"][0]["name"]), code=2), "folders of two data sets")
    says(inspect("diff", "--format", "csv", "--json", a, a, code=2), "--format")
    b = make(work, "b", csv_path, folder, "--shard-size", 8)
    shard = os.path.join(b, manifest(b)["shards"][0]["name"])
    data = bytearray(slurp(shard))
    data[200] ^= 1
    write(shard, data)
    result = document("diff", a, b, code=1)
    assert result["faults"] == 1 and result["counts"]["only_a"] == 1


@case("the releases of 2017 and 2020 of the real label file, over the real images")
def _(work):
    sets = [os.path.join(work, n) for n in "ab"]
    for out, release in zip(sets, ("Data_Entry_2017.csv.gz", "Data_Entry_2017_v2020.csv.gz")):
        run([program("chex-convert"), "-q", "--allow-missing", "-i", nih("images"), "-l", nih("csv", release),
             "-o", out, "--size", 64, "--split", "none"])
    result = document("diff", *sets, code=1)
    assert result["in_both"] == 67 and result["counts"]["pixels"] == 0 and result["counts"]["only_a"] == 0
    a, b = (images(s) for s in sets)
    differ = [n for n in a if a[n]["label"] != b[n]["label"]]
    assert result["counts"]["labels"] == len(differ)


# ---- --format ----------------------------------------------------------------------------------------------------


@case("list, labels, check --leaks as CSV and JSON lines")
def _(work):
    csv_path, folder = start(work)
    a = make(work, "a", csv_path, folder)
    records = images(a)
    table, lines = rows("list", "--fields", "name,labels,age,index,weight,sha256", a)
    assert {r["name"] for r in table} == set(records)
    for row, line in zip(table, lines):
        named = [f for f, v in zip(FINDINGS, records[row["name"]]["label"]) if v]
        assert line["labels"] == named and row["labels"] == ("|".join(named) or "No Finding")
        assert float(row["age"]) == line["age"] == records[row["name"]]["age"]
        assert row["sha256"] == line["sha256"] and line["weight"] == 1 and row["index"] == str(line["index"])
    table, lines = rows("labels", a)
    positives = {(s["name"], f): n for s in manifest(a)["splits"] for f, n in s["positives"].items()}
    assert {(r["split"], r["finding"]): r["images"] for r in lines
            if r["together_with"] is None and r["finding"] != "No Finding"} == positives
    pairs = [r for r in lines if r["together_with"]]
    assert len(pairs) == 14 * 13 * len(manifest(a)["splits"])
    assert all(r["of"] == positives[r["split"], r["finding"]] for r in pairs)
    _, lines = rows("check", "--leaks", a)
    assert len(lines) == 28 and {r["check"] for r in lines} == {"prevalence"}
    assert json.loads(inspect("list", "--format", "json", a).stdout)["action"] == "list"
    assert inspect("list", "--format", "table", a).stdout == inspect("list", a).stdout
    says(inspect("check", "--format", "csv", a, code=2), "go with --leaks")
    says(inspect("sheet", "--format", "csv", a, code=2),
         "is an option of list, labels, check, diff, scaling and source")
    says(inspect("show", "--json", a, "0:0", code=2), "cannot both")
    says(inspect("diff", "--where", "Hernia", a, a, code=2), "is an option of list, labels and sheet")
    says(inspect("list", "--format", "csv", a, a, code=2), "one PATH")
    says(inspect("list", "--format", "xml", a, code=2), "takes table")


@case("a field with quotes, commas and line ends is quoted as RFC 4180 says")
def _(work):
    csv_path, folder = start(work, 40)
    header, table = read_csv(csv_path)
    odd = 'a,"b".png'
    os.rename(os.path.join(folder, table[0][0]), os.path.join(folder, odd))
    table[0][0] = odd
    table[0][header.index("Patient ID")] = "someone, else"
    write_csv(csv_path, header, table)
    a = make(work, "a", csv_path, folder, "--split", "none")
    found, lines = rows("list", "--fields", "name,patient", a)
    assert {"name": odd, "patient": "someone, else"} in [dict(r) for r in found]
    assert {"name": odd, "patient": "someone, else"} in lines


if __name__ == "__main__":
    sys.exit(case.main())
