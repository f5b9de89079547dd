#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-convert with a data set as input: the same bytes as from the images, and what is said where that is impossible.

    check_reshard.py [PATTERN]      only the cases whose name matches the regular expression

$CHEX_CONVERT and $CHEX_SYNTH are the programs (Python 3, stdlib only).
"""
import functools
import html
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

import harness
import mpi
import support
from support import (PATIENCE, Cases, cache_folder, complete, images, manifest, program, read_csv, rejects, run,
                     same_tree, says, slurp, synth, tree, write, write_csv)

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
CACHE = cache_folder("reshard")
SHARDS = ["--shard-size", "8"]
COUNT = 60


@functools.lru_cache(None)
def base():
    """Synthetic images of 64 x 64 with the official lists; read only."""
    folder = os.path.join(CACHE, "base")
    synth(folder, COUNT, "--size", "64")
    return folder


def labels():
    return os.path.join(base(), "Data_Entry_2017_v2020.csv")


def from_images(out, *more, code=0):
    return run([program("chex-convert"), "-i", f"{base()}/images", "-l", labels(), "-o", out, *SHARDS, *more], code)


def reshard(source, out, *more, code=0):
    return run([program("chex-convert"), "-i", source, "-o", out, *more], code)


@functools.lru_cache(None)
def source():
    """A data set with the official split, of 32 x 32; read only."""
    out = os.path.join(CACHE, "source")
    from_images(out, "--size", "32")
    return out


def copy_of_source(work):
    return shutil.copytree(source(), os.path.join(work, "source"))


def shards(folder):
    return {name: digest for name, digest in tree(folder).items() if ".tfrecord-" in name}


def without_source(folder):
    """The manifest without the two keys that the source changes."""
    return {key: value for key, value in manifest(folder).items() if key not in ("sources", "manifest_sha256")}


def flip(path, offset):
    data = bytearray(slurp(path))
    data[offset] ^= 1
    write(path, bytes(data))


# ---- the same bytes ------------------------------------------------------------------------------------------------


@case("a data set of the same size has the shards of a conversion from the images, with and without -l")
def _(work):
    wanted = f"{work}/wanted"
    from_images(wanted, "--size", "32", "--shard-size", "16", "--seed", "7", "--view", "PA")
    options = ["--shard-size", "16", "--seed", "7", "--view", "PA"]
    for name, more in (("rows", []), ("labels", ["-l", labels()])):
        out = f"{work}/{name}"
        reshard(source(), out, *options, *more)
        same_tree(shards(out), shards(wanted))
        assert without_source(out) == without_source(wanted)
        assert complete(out)["sources"] == [
            {"dataset_id": manifest(source())["dataset_id"], "size": 32, "resize": "bilinear"}]


@case("threads and parts write the same data set from a data set")
def _(work):
    options = ["--size", "16", "--shard-size", "4"]
    reshard(source(), f"{work}/one", "-j", "1", *options)
    wanted = tree(f"{work}/one")
    reshard(source(), f"{work}/seven", "-j", "7", *options)
    same_tree(f"{work}/seven", wanted)
    for part in (2, 1, 3):
        reshard(source(), f"{work}/parts", "--part", f"{part}/3", *options)
    reshard(source(), f"{work}/parts", *options)
    same_tree(f"{work}/parts", wanted)


@case("ranks write the same data set from a data set")
def _(work):
    options = ["--size", "16", "--shard-size", "4"]
    reshard(source(), f"{work}/one", *options)
    command = [program("chex-convert"), "-i", source(), "-o", f"{work}/ranks", *options]
    run(mpi.ranks("chex-convert", 3, *command), env=mpi.ENVIRONMENT)
    same_tree(f"{work}/ranks", f"{work}/one")


@case("a smaller size resizes the stored pixels, and has another id than a conversion from the images")
def _(work):
    from_images(f"{work}/large", "--size", "64", "--resize", "none")
    reshard(f"{work}/large", f"{work}/small", "--size", "16", "--shard-size", "8")
    from_images(f"{work}/direct", "--size", "16")
    small, direct = images(f"{work}/small"), images(f"{work}/direct")
    # The images of 64 x 64 were stored unchanged: so there was only one resize that changed pixels.
    assert {name: r["image"] for name, r in small.items()} == {name: r["image"] for name, r in direct.items()}
    assert manifest(f"{work}/small")["dataset_id"] != manifest(f"{work}/direct")["dataset_id"]
    assert manifest(f"{work}/small")["sources"][0]["resize"] == "none"
    twice = reshard(f"{work}/small", f"{work}/twice", "--size", "8", "--resize", "area")
    says(twice, "complete|done")
    assert manifest(f"{work}/twice")["sources"][0]["from"] == "64x64 none"
    copied = reshard(f"{work}/twice", f"{work}/copied", "--shard-size", "5")
    says(copied, "done")
    assert manifest(f"{work}/copied")["sources"][0]["from"] == "16x16 bilinear of 64x64 none"
    refused = reshard(f"{work}/direct", f"{work}/small", "--size", "16", "--shard-size", "8", code=6)
    says(refused, "it has .*from 64x64 none")


@case("the manifest with a source is valid, and a data set without one has no such key")
def _(work):
    assert "sources" not in manifest(source())
    reshard(source(), f"{work}/out", "--size", "16")
    if jsonschema:
        with open(os.path.join(support.SOURCE, "schemas", "manifest.schema.json"), encoding="utf-8") as f:
            jsonschema.validate(manifest(f"{work}/out"), json.load(f))
    run([program("chex-inspect"), "check", "--full", f"{work}/out"])


# ---- rows and splits -----------------------------------------------------------------------------------------------


@case("without -l and --split each image stays in its split")
def _(work):
    reshard(source(), f"{work}/out", "--size", "16", "--seed", "3")
    for split in ("train", "val", "test"):
        assert sorted(images(f"{work}/out", split)) == sorted(images(source(), split)), split
    assert manifest(f"{work}/out")["split"]["rule"] == "official"
    header, rows = read_csv(labels())
    patient = header.index("Patient ID")
    splits = [(p, "one" if int(p) % 2 else "two") for p in sorted({row[patient] for row in rows})]
    write_csv(f"{work}/splits.csv", ["Patient ID", "split"], splits)
    reshard(source(), f"{work}/file", "--split", f"file:{work}/splits.csv")
    reshard(f"{work}/file", f"{work}/again", "--size", "16")
    assert sorted(images(f"{work}/again", "two")) == sorted(images(f"{work}/file", "two"))
    reshard(f"{work}/file", f"{work}/patient", "--split", "patient:50,20,30:4")
    from_images(f"{work}/wanted", "--size", "32", "--split", "patient:50,20,30:4", "--shard-size", "256")
    same_tree(shards(f"{work}/patient"), shards(f"{work}/wanted"))
    says(reshard(f"{work}/patient", f"{work}/no", "--split", "official", code=2),
         "--split official needs --lists: the split of .* is patient:50,20,30:4")
    reshard(source(), f"{work}/same", "--split", "official", *SHARDS)
    same_tree(shards(f"{work}/same"), shards(source()))
    reshard(f"{work}/patient", f"{work}/lists", "--lists", base(), *SHARDS)
    same_tree(shards(f"{work}/lists"), shards(source()))


@case("-l gives new labels by image name; images without a row and rows without an image are reported")
def _(work):
    header, rows = read_csv(labels())
    finding = header.index("Finding Labels")
    for row in rows:
        row[finding] = "Hernia"
    write_csv(f"{work}/new.csv", header, rows[:-1])
    done = reshard(source(), f"{work}/out", "-l", f"{work}/new.csv")
    says(done, "1 without a row")
    found = images(f"{work}/out")
    assert len(found) == len(rows) - 1 and all(sum(r["label"]) == 1 and r["label"][13] for r in found.values())
    assert [r["name"] for r in rejects(f"{work}/out")] == [rows[-1][0]]
    assert manifest(f"{work}/out")["split"]["rule"] == "official"
    other = ["99999999_000.png", *rows[0][1:3], "99999999", *rows[0][4:]]
    write_csv(f"{work}/more.csv", header, rows + [other])
    says(reshard(source(), f"{work}/no", "-l", f"{work}/more.csv", code=3), "1 of 61 images is missing")
    reshard(source(), f"{work}/fewer", "-l", f"{work}/more.csv", "--allow-missing")
    assert len(images(f"{work}/fewer")) == COUNT


@case("--exclude and --view leave rows of a data set out, and the manifest counts them with those of the data set")
def _(work):
    names = sorted(images(source()))
    write(f"{work}/list.txt", "\n".join(names[:5]))
    reshard(source(), f"{work}/first", "--exclude", f"{work}/list.txt")
    assert sorted(images(f"{work}/first")) == names[5:]
    assert manifest(f"{work}/first")["left_out"] == {"views": "", "other_views": 0, "excluded": 5, "missing": 0}
    frontal = [n for n, r in images(f"{work}/first").items() if r["view"] == b"PA"]
    reshard(f"{work}/first", f"{work}/second", "--view", "PA")
    assert sorted(images(f"{work}/second")) == sorted(frontal)
    assert manifest(f"{work}/second")["left_out"] == {
        "views": "PA", "other_views": COUNT - 5 - len(frontal), "excluded": 5, "missing": 0}
    reshard(f"{work}/second", f"{work}/third", "--size", "16")
    assert manifest(f"{work}/third")["left_out"] == manifest(f"{work}/second")["left_out"]


@case("unknown labels and names with folders, as of CheXpert, stay as they are")
def _(work):
    folder = f"{work}/CheXpert/train"
    header = ["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", "No Finding", "Enlarged Cardiomediastinum",
              "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema", "Consolidation", "Pneumonia", "Atelectasis",
              "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture", "Support Devices"]
    rows = []
    for number, path in enumerate(sorted(os.listdir(f"{base()}/images"))[:12]):
        name = f"patient{number // 2:05}/study{number % 2 + 1}/view1_frontal.png"
        os.makedirs(os.path.dirname(f"{folder}/{name}"))
        shutil.copy(f"{base()}/images/{path}", f"{folder}/{name}")
        rows.append([f"CheXpert/train/{name}", "Male", "60", "Frontal", "PA", "", "", "1.0", "-1.0", *[""] * 10])
    write_csv(f"{work}/train.csv", header, rows)
    options = ["--size", "32", "--shard-size", "4"]
    run([program("chex-convert"), "-i", folder, "-l", f"{work}/train.csv", "-o", f"{work}/files", *options])
    reshard(f"{work}/files", f"{work}/rows", *options)
    same_tree(shards(f"{work}/rows"), shards(f"{work}/files"))
    assert without_source(f"{work}/rows") == without_source(f"{work}/files")
    write(f"{work}/list.txt", rows[0][0])
    reshard(f"{work}/files", f"{work}/fewer", "--exclude", f"{work}/list.txt")
    assert len(images(f"{work}/fewer")) == len(rows) - 1


# ---- selections ----------------------------------------------------------------------------------------------------


WHERE = ["--where", "no finding , mass=1", "--where", "sex=f,age=50-120"]


def matches(record):
    finding = manifest(source())["labels"].index("Mass")
    return ((not any(record["label"]) or record["label"][finding]) and
            (record["sex"] == b"F" or 50 <= record["age"] < 121))


@case("--where selects the same rows of images, of a data set, and of a data set with -l: the same bytes")
def _(work):
    wanted = f"{work}/wanted"
    done = from_images(wanted, "--size", "32", *WHERE)
    names = sorted(name for name, record in images(source()).items() if matches(record))
    assert sorted(images(wanted)) == names and 0 < len(names) < COUNT
    says(done, f"{COUNT - len(names)} images left out by --where")
    assert manifest(wanted)["left_out"] == {
        "views": "", "other_views": 0, "excluded": 0, "missing": 0,
        "where": "Mass,No_Finding & age=50-120,sex=F", "not_selected": COUNT - len(names)}
    for name, more in (("rows", []), ("labels", ["-l", labels()])):
        reshard(source(), f"{work}/{name}", *SHARDS, *WHERE, *more)
        same_tree(shards(f"{work}/{name}"), shards(wanted))
        assert without_source(f"{work}/{name}") == without_source(wanted)
    # A selection of a selection is the selection by both; its own texts again change nothing.
    reshard(source(), f"{work}/first", *WHERE[:2])
    reshard(f"{work}/first", f"{work}/second", *SHARDS, *WHERE[2:])
    assert without_source(f"{work}/second") == without_source(wanted)
    reshard(f"{work}/second", f"{work}/again", *SHARDS, *WHERE)
    assert without_source(f"{work}/again") == without_source(wanted)
    reshard(source(), f"{work}/parts", *SHARDS, *WHERE, "--part", "2/2")
    reshard(source(), f"{work}/parts", *SHARDS, *WHERE, "-j", "1")
    same_tree(f"{work}/parts", f"{work}/rows")
    run([program("chex-inspect"), "check", "--full", wanted])


@case("--where uses the new labels of -l, and the split that the images get")
def _(work):
    header, rows = read_csv(labels())
    for number, row in enumerate(sorted(rows)):
        row[header.index("Finding Labels")] = "Hernia" if number < 20 else "No Finding"
    write_csv(f"{work}/new.csv", header, rows)
    reshard(source(), f"{work}/hernia", "-l", f"{work}/new.csv", "--where", "Hernia")
    assert sorted(images(f"{work}/hernia")) == sorted(images(source()))[:20]
    reshard(source(), f"{work}/test", "--where", "split=test")
    assert sorted(images(f"{work}/test")) == sorted(images(source(), "test"))
    rule = ["--split", "patient:50,20,30"]
    reshard(source(), f"{work}/all", *rule)
    from_images(f"{work}/val", "--size", "32", *rule, "--where", "split=val")
    assert sorted(images(f"{work}/val")) == sorted(images(f"{work}/all", "val"))
    # Images of rows that are not selected may be missing.
    first, second = sorted(images(source()))[:2]
    os.mkdir(f"{work}/one")
    shutil.copy(f"{base()}/images/{first}", f"{work}/one")
    one = ["-i", f"{work}/one", "-l", labels(), "--size", "32", "-o", f"{work}/single"]
    run([program("chex-convert"), *one, "--where", f"name={first}"])
    assert list(images(f"{work}/single")) == [first]
    says(run([program("chex-convert"), *one, "--force", "--where", f"name={second}"], 3), "none of the 1 images")


@case("spellings, repeats and orders of --where with one meaning give one manifest and data set id, also in two steps")
def _(work):
    patient = next(iter(images(source()).values()))["patient"].decode()
    texts = (["Mass", "mass=1", "Mass,Mass", "mass,Mass=1"], ["age=60,sex=F", "sex=f,age=060-60", "sex=F,age=60,sex=f"],
             [f"patient={patient},view=PA", f"view=pa,patient={int(patient)}"])
    for number, same in enumerate(texts):
        found = set()
        for text in same:
            reshard(source(), f"{work}/out", "--force", "--where", text)
            found.add((manifest(f"{work}/out")["dataset_id"], manifest(f"{work}/out")["left_out"]["where"]))
        assert len(found) == 1, (number, found)
    both, found = ["--where", "sex=M", "--where", "age=20-90"], set()
    for options in both, both[2:] + both[:2], [*both, "--where", "age=20-90"]:
        reshard(source(), f"{work}/out", "--force", *options)
        found.add((manifest(f"{work}/out")["dataset_id"], manifest(f"{work}/out")["left_out"]["where"]))
    for options in both, both[2:] + both[:2]:
        reshard(source(), f"{work}/step", "--force", *options[:2])
        reshard(f"{work}/step", f"{work}/out", "--force", *options[2:])
        assert manifest(f"{work}/out")["left_out"]["where"] == "age=20-90 & sex=M"
    assert {where for _, where in found} == {"age=20-90 & sex=M"} and len(found) == 1, found
    # More texts than fit in the line: an error, not a shorter selection.
    names = ",".join(f"name={n}" for n in list(images(source()))[:14])
    says(reshard(source(), f"{work}/long", "--where", names, code=2), "longer than 255 bytes")


@case("a split or a sex that cannot be in a data set is an error of --where that lists those that can: 2")
def _(work):
    for text, said in (("split=foo", "--where: no split 'foo'; there are train, val, test"),
                       ("Mass,split=Train", "no split 'Train'"), ("split=tes", "no split 'tes'"),
                       ("sex=Z", "a sex is M, F or U, not 'Z'"), ("sex=FM", "M, F or U, not 'FM'")):
        says(reshard(source(), f"{work}/out", "--where", text, code=2), said)
        says(run([program("chex-inspect"), "list", "--where", text, source()], 2), said)
        says(run([program("chex-inspect"), "labels", "--where", text, source()], 2), said)
        assert not os.path.exists(f"{work}/out/manifest.json")
    from_images(f"{work}/out", "--size", "32", "--where", "sex=u,split=test")
    says(from_images(f"{work}/new", "--size", "32", "--split", "patient:80,10,10", "--where", "split=x", code=2),
         "no split 'x'; there are train, val, test")


@case("another --where does not resume a conversion: exit status 6, also if the data set is complete")
def _(work):
    out, options = f"{work}/out", ["--where", "sex=F", "--shard-size", "2"]
    reshard(source(), out, *options, "--part", "1/2")
    for other in ("sex=M", "patient=nobody,sex=F"):
        says(reshard(source(), out, "--where", other, "--shard-size", "2", code=6),
             f"it has where sex=F, wanted is where {other}")
    reshard(source(), out, *options)
    says(reshard(source(), out, "--where", "sex=M", "--shard-size", "2", code=6),
         "it has where sex=F, wanted is where sex=M")
    says(reshard(source(), out, "--shard-size", "2", code=6), "it has where sex=F, wanted is nothing")


# ---- several data sets ---------------------------------------------------------------------------------------------


def select(out, *more, size="32"):
    """A part of the images, as a data set."""
    from_images(out, "--size", size, *more)
    return out


def merge(out, inputs, *more, code=0):
    return run([program("chex-convert"), *[word for path in inputs for word in ("-i", path)], "-o", out, *more], code)


@functools.lru_cache(None)
def halves():
    """Two data sets without a common patient, that have all images of source() together; read only."""
    return [select(os.path.join(CACHE, sex), "--where", f"sex={sex}") for sex in "FM"]


@functools.lru_cache(None)
def site():
    """Other images of other patients, with the names and patient ids of source(), of 48 x 48; read only."""
    folder = os.path.join(CACHE, "other")
    synth(folder, 12, "--size", "64", "--seed", "5")
    out = os.path.join(CACHE, "site")
    run([program("chex-convert"), "-i", f"{folder}/images", "-l", f"{folder}/Data_Entry_2017_v2020.csv", "-o", out,
         "--size", "48", "--split", "patient:50,20,30"])
    return out


@case("two parts of a data set that are merged have its shards, in any order of the inputs, with and without -l")
def _(work):
    for name, inputs, more in (("both", halves(), []), ("turned", halves()[::-1], []),
                               ("labels", halves(), ["-l", labels()])):
        out = f"{work}/{name}"
        merge(out, inputs, *SHARDS, "-j", "3" if name == "both" else "1", *more)
        same_tree(shards(out), shards(source()))
        assert without_source(out) == without_source(source())
        found = complete(out)["sources"]
        assert [s["dataset_id"] for s in found] == sorted(manifest(half)["dataset_id"] for half in halves())
        for s in found:
            half, = [m for m in map(manifest, halves()) if m["dataset_id"] == s["dataset_id"]]
            left = {} if more else {"left_out": half["left_out"]["not_selected"], "where": half["left_out"]["where"]}
            assert s == {"dataset_id": half["dataset_id"], "size": 32, "resize": "bilinear", **left}
    same_tree(f"{work}/turned", f"{work}/both")
    if jsonschema:
        with open(os.path.join(support.SOURCE, "schemas", "manifest.schema.json"), encoding="utf-8") as f:
            jsonschema.validate(manifest(f"{work}/both"), json.load(f))
    run([program("chex-inspect"), "check", "--full", f"{work}/both"])


@case("parts, kills and ranks write the same merged data set")
def _(work):
    options = ["--size", "16", "--shard-size", "4"]
    merge(f"{work}/one", halves(), *options, "-j", "1")
    wanted = tree(f"{work}/one")
    for part in (2, 3, 1):
        merge(f"{work}/parts", halves(), *options, "--part", f"{part}/3")
    merge(f"{work}/parts", halves(), *options)
    same_tree(f"{work}/parts", wanted)
    command = [program("chex-convert"), "-q", "-i", halves()[0], "-i", halves()[1], *options]
    for delay in (0.005, 0.01, 0.02, 0.03):
        process = subprocess.Popen([*command, "-o", f"{work}/killed", "-j", "2"])
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    merge(f"{work}/killed", halves(), *options)
    same_tree(f"{work}/killed", wanted)
    run(mpi.ranks("chex-convert", 3, *command, "-o", f"{work}/ranks"), env=mpi.ENVIRONMENT)
    same_tree(f"{work}/ranks", wanted)


@case("--id-prefix keeps images and patients of different data sets apart, also for --exclude, --where and -l")
def _(work):
    both, prefix, out = [source(), site()], ["--id-prefix", "a-,b-"], f"{work}/out"
    merge(out, both, *prefix, "--size", "32")
    wanted = {f"a-{name}" for name in images(source())} | {f"b-{name}" for name in images(site())}
    found = images(out)
    assert set(found) == wanted
    assert all(r["patient"].startswith(name[:2].encode()) for name, r in found.items())
    mine = images(source())
    assert all(found[f"a-{name}"]["image"] == r["image"] for name, r in mine.items())
    # The splits are different rules: each image stays in its split.
    assert manifest(out)["split"]["rule"] == "file"
    for split in ("train", "val", "test"):
        assert set(images(out, split)) == ({f"a-{name}" for name in images(source(), split)} |
                                           {f"b-{name}" for name in images(site(), split)}), split
    m = {s["dataset_id"]: s for s in complete(out)["sources"]}
    assert m[manifest(source())["dataset_id"]]["id_prefix"] == "a-"
    assert m[manifest(site())["dataset_id"]]["id_prefix"] == "b-" and m[manifest(site())["dataset_id"]]["size"] == 48
    run([program("chex-inspect"), "check", "--full", out])
    first = sorted(mine)[0]
    write(f"{work}/list.txt", f"a-{first}\n")
    merge(f"{work}/less", both, *prefix, "--size", "32", "--exclude", f"{work}/list.txt")
    assert set(images(f"{work}/less")) == wanted - {f"a-{first}"}
    merge(f"{work}/one", both, *prefix, "--size", "32", "--where", f"name=b-{first}")
    assert set(images(f"{work}/one")) == {f"b-{first}"}
    header, rows = read_csv(labels())
    rows = [[f"a-{row[0]}", *row[1:]] for row in rows]
    write_csv(f"{work}/new.csv", header, rows)
    merge(f"{work}/labels", both, *prefix, "--size", "32", "-l", f"{work}/new.csv")
    assert set(images(f"{work}/labels")) == {f"a-{name}" for name in mine}
    # Empty prefixes change nothing; with one input, a split by hash is kept record by record.
    merge(f"{work}/empty", halves(), "--id-prefix", ",", *SHARDS)
    merge(f"{work}/none", halves(), *SHARDS)
    same_tree(f"{work}/empty", f"{work}/none")
    merge(f"{work}/single", [site()], "--id-prefix", "b-")
    assert manifest(f"{work}/single")["split"]["rule"] == "file"
    assert set(images(f"{work}/single", "val")) == {f"b-{name}" for name in images(site(), "val")}


@case("images that were resized differently get a data set id of their own, and can be made smaller once")
def _(work):
    a, b = select(f"{work}/a", "--where", "sex=F"), select(f"{work}/b", "--where", "sex=M", size="48")
    merge(f"{work}/out", [a, b], "--size", "32", *SHARDS)
    assert manifest(f"{work}/out")["dataset_id"] != manifest(source())["dataset_id"]
    merge(f"{work}/turned", [b, a], "--size", "32", *SHARDS)
    same_tree(f"{work}/out", f"{work}/turned")
    one = images(source())
    assert all(r["image"] == one[name]["image"] for name, r in images(f"{work}/out").items() if r["sex"] == b"F")
    says(merge(f"{work}/out", halves(), *SHARDS, code=6), "it has from mixed [0-9a-f]{8}, wanted is nothing")
    reshard(f"{work}/out", f"{work}/small", "--size", "16")
    reshard(f"{work}/small", f"{work}/copy")
    assert re.fullmatch("32x32 bilinear of mixed [0-9a-f]{8}", manifest(f"{work}/copy")["sources"][0]["from"])
    damaged = manifest(f"{work}/out")["shards"][0]["name"]
    before = tree(f"{work}/out")
    flip(f"{work}/out/{damaged}", 100)
    done = run([program("chex-inspect"), "check", "--full", f"{work}/out"], 1)
    line = support.joined(done.stdout[done.stdout.index("next "):]).split("next")[1]
    for number, path in enumerate(sorted([a, b], key=lambda path: manifest(path)["dataset_id"])):
        line = line.replace(f"SHARDS{number + 1}", path)
    run([program("chex-convert"), *shlex.split(line)[1:]])
    same_tree(f"{work}/out", before)


@case("data sets that do not fit each other are refused with both names, before anything is written")
def _(work):
    out, mine = f"{work}/out", halves()[0]
    other = ["--where", "sex=M"]
    says(merge(out, [source(), site()], "--size", "32", code=2),
         r"12 images in two data sets \(--id-prefix keeps different images apart\): .* is in '.*source' and '.*site'")
    says(merge(out, [source(), site()], "--id-prefix", "a-,b-", code=2),
         "are 32x32, those of '.*site' are 48x48: give --size 32")
    says(merge(out, [source(), source()], code=2), "are the same data set, [0-9a-f]{8}")
    says(merge(out, [mine, f"{base()}/images"], code=2), "is a data set, and another input is not")
    method = select(f"{work}/method", *other, "--resize", "area")
    says(merge(out, [mine, method], code=2), "was made with --resize bilinear and '.*method' with --resize area")
    limits = select(f"{work}/limits", *other, "--min-size", "32")
    says(merge(out, [mine, limits], code=2), "'.*F' and '.*limits' were made with different --max-pixels, --min-size")
    findings = select(f"{work}/findings", *other, "--findings", "Mass,Nodule")
    says(merge(out, [mine, findings], code=6), "has the findings nih14 and '.*findings' has")
    merge(f"{work}/labels", [mine, findings], "-l", labels(), *SHARDS)
    same_tree(shards(f"{work}/labels"), shards(source()))
    says(merge(out, halves(), "--id-prefix", "a-", code=2), "--id-prefix takes a prefix for each input.*: 1 for 2")
    says(merge(out, halves(), "--id-prefix", "a-,b/", code=2), "takes prefixes separated by commas")
    says(merge(out, halves(), "--id-prefix", f"a,{'b' * 33}", code=2), "takes prefixes separated by commas")
    says(from_images(out, "--id-prefix", "a", code=2), "--id-prefix is for data sets")
    says(merge(out, [mine], "--same-patients", code=2), "--same-patients is for two or more")
    says(merge(out, halves(), "--split", "official", "--id-prefix", "a,b", "-n"), "official")
    says(merge(out, [source(), site()], "--size", "32", "--split", "official", "--id-prefix", "a-,b-", code=2),
         "--split official needs --lists: the split of '.*site' is patient:50,20,30")
    long = [source()]
    for number in range(3):  # names get longer than a patient may be
        long.append(f"{work}/long{number}")
        made = merge(long[-1], long[-2:-1], "--id-prefix", "x" * 20, code=2 if number == 2 else 0)
    says(made, "--id-prefix: 'x{60}[0-9]+' is longer than 63 bytes")
    assert not os.path.exists(out)


@case("a patient in two data sets is refused over the selected rows, unless --same-patients")
def _(work):
    by_patient = {}
    for name, record in sorted(images(source()).items()):
        by_patient.setdefault(record["patient"].decode(), []).append(name)
    patient, names = max(by_patient.items(), key=lambda item: len(item[1]))
    assert len(names) > 1
    one = select(f"{work}/one", "--where", f"name={names[0]}")
    write(f"{work}/list.txt", names[0])
    rest = select(f"{work}/rest", "--exclude", f"{work}/list.txt")
    says(merge(f"{work}/out", [one, rest], *SHARDS, code=2),
         rf"1 patient in two data sets \(--same-patients: .*\): {patient} is in '.*one' and '.*rest'")
    assert not os.path.exists(f"{work}/out")
    merge(f"{work}/out", [one, rest], *SHARDS, "--same-patients")
    same_tree(shards(f"{work}/out"), shards(source()))
    assert without_source(f"{work}/out") == without_source(source())
    merge(f"{work}/labels", [one, rest], *SHARDS, "-l", labels())
    same_tree(shards(f"{work}/labels"), shards(source()))
    write(f"{work}/others.txt", "\n".join(names[1:]))
    merge(f"{work}/selected", [one, rest], *SHARDS, "--exclude", f"{work}/others.txt")
    assert len(images(f"{work}/selected")) == COUNT - len(names) + 1
    merge(f"{work}/apart", [one, rest], *SHARDS, "--id-prefix", ",b-")
    listed = run([program("chex-inspect"), "list", f"{work}/apart"]).stdout
    for name, prefix in ((names[0], ""), (names[1], "b-")):
        assert f"\t{prefix}{name}\t{prefix}{patient}\t" in listed, listed
    run([program("chex-inspect"), "check", "--full", f"{work}/apart"])
    # The same patient in two splits is a leak, as with any other input.
    split = next(split for split in ("train", "val", "test") if names[0] in images(source(), split))
    write_csv(f"{work}/split.csv", ["Image Index", "split"], [(names[0], "val" if split == "test" else "test")])
    moved = f"{work}/moved"
    reshard(one, moved, "--split", f"file:{work}/split.csv")
    says(merge(f"{work}/leak", [moved, rest], "--same-patients", code=2), f"patient {patient} is in .* and ")
    merge(f"{work}/leak", [moved, rest], "--same-patients", "--allow-leak")
    assert manifest(f"{work}/leak")["leaks"]["patients"] == 1


@case("a damaged second data set is refused, or its damaged pixels are a reject that names its record")
def _(work):
    one, mine, out = halves()[0], shutil.copytree(halves()[1], f"{work}/two"), f"{work}/out"
    m = manifest(mine)
    shard, stride = m["shards"][0]["name"], m["record"]["stride"]
    whole, text = slurp(f"{mine}/{shard}"), slurp(f"{mine}/manifest.json")
    flip(f"{mine}/{shard}", stride + m["record"]["pixel_offset"] + 100)
    merge(out, [one, mine], *SHARDS, code=1)
    line, = [r for r in rejects(out) if r["kind"] == "image"]
    assert line["reason"] == "checksum" and f"'{shard}', record 1" in line["detail"], line
    write(f"{mine}/{shard}", whole)
    merge(out, [one, mine], *SHARDS, "--repair")
    same_tree(shards(out), shards(source()))
    flip(f"{mine}/{shard}", 2 * stride + 20)
    says(merge(f"{work}/no", [one, mine], code=1), "repair '.*two' first .*: '.*record 2")
    write(f"{mine}/{shard}", whole[:-1])
    says(merge(f"{work}/no", [one, mine], code=1), "repair '.*two' first")
    write(f"{mine}/{shard}", whole)
    for bad in (text[:-20], text.replace(b'"sex=M"', b'"sex=\\u0001"'), b"[" * 100000):
        write(f"{mine}/manifest.json", bad)
        says(merge(f"{work}/no", [one, mine], code=1), "two")
    assert not os.path.exists(f"{work}/no")
    write(f"{mine}/manifest.json", text)
    says(merge(mine, [one, mine], code=2), "'.*two' is an input and the output")
    assert slurp(f"{mine}/manifest.json") == text


@case("--json lists the data sets that are merged")
def _(work):
    done = merge(f"{work}/out", halves(), "-n", "--json", "--id-prefix", "a-,b-")
    says(done, r"60 found in data sets [0-9a-f]{8} \(32x32\), [0-9a-f]{8} \(32x32\)")
    found = json.loads(done.stdout)["images"]
    assert found["source"] is None and sorted(s["id_prefix"] for s in found["sources"]) == ["a-", "b-"]
    assert [s["dataset_id"] for s in found["sources"]] == sorted(manifest(h)["dataset_id"] for h in halves())


# ---- refusals ------------------------------------------------------------------------------------------------------


@case("options that do not fit the data set, and the output as input, are refused before anything is written")
def _(work):
    mine = copy_of_source(work)
    before = tree(mine)
    out = f"{work}/out"
    says(reshard(source(), out, "--size", "33", code=2), "--size 33 is larger than the images of '.*', which are 32x32")
    says(reshard(source(), out, "--size", "16", "--resize", "none", code=2), "--size 16 with --resize none")
    says(reshard(source(), out, "--resize", "area", code=2), "--resize area needs a smaller --size")
    says(reshard(source(), out, "--lenient", code=2), "--max-pixels, --min-size and --lenient are for image files")
    says(reshard(source(), out, "--cross-check", "1%", code=2), "--cross-check compares decoders")
    says(reshard(source(), out, "-i", f"{base()}/images", code=2), "is a data set, and another input is not")
    says(reshard(source(), out, "-i", mine, code=2), "are the same data set")
    says(reshard(f"{base()}/images", out, code=2), "no labels: give Data_Entry_2017_v2020.csv with -l")
    os.symlink(mine, f"{work}/link")
    for same in (mine, f"{work}/link", f"{mine}/../source"):
        for more in ([], ["--force"], ["-l", labels()]):
            says(reshard(mine, same, "--size", "16", *more, code=2), "is an input and the output")
    same_tree(mine, before)
    assert not os.path.exists(out)


@case("a folder of images that is also the output is searched for images, as before")
def _(work):
    shutil.copytree(f"{base()}/images", f"{work}/both")
    command = [program("chex-convert"), "-i", f"{work}/both", "-l", labels(), "-o", f"{work}/both", "--size", "32"]
    run(command)
    says(run(command), "complete")


@case("an unfinished or damaged data set is refused with what repairs it")
def _(work):
    mine, out = copy_of_source(work), f"{work}/out"
    shard = manifest(mine)["shards"][1]["name"]
    whole = slurp(f"{mine}/{shard}")
    write(f"{mine}/{shard}", whole[:-1])
    says(reshard(mine, out, code=1), "repair '.*' first .chex-inspect check names the command.: '.*" + shard)
    os.unlink(f"{mine}/{shard}")
    says(reshard(mine, out, code=3), "repair '.*' first")
    write(f"{mine}/{shard}", whole)
    stride = manifest(mine)["record"]["stride"]
    flip(f"{mine}/{shard}", 2 * stride + 20)  # in the head of record 2
    says(reshard(mine, out, code=1), "record 2")
    write(f"{mine}/{shard}", whole)
    text = slurp(f"{mine}/manifest.json")
    write(f"{mine}/manifest.json", text[:-20])
    says(reshard(mine, out, code=1), "repair '.*' first")
    os.unlink(f"{mine}/manifest.json")
    says(reshard(mine, out, code=3), "holds an unfinished conversion: first finish it")
    assert not os.path.exists(out)


# ---- damage, changes, kills ----------------------------------------------------------------------------------------


@case("a record with damaged pixels is a reject, and converts again after a repair")
def _(work):
    mine, out = copy_of_source(work), f"{work}/out"
    m = manifest(mine)
    shard, stride, at = m["shards"][0]["name"], m["record"]["stride"], m["record"]["pixel_offset"]
    whole = slurp(f"{mine}/{shard}")
    flip(f"{mine}/{shard}", 3 * stride + at + 100)
    done = reshard(mine, out, code=1)
    line, = [r for r in rejects(out) if r["kind"] == "image"]
    assert line["reason"] == "checksum" and f"'{shard}', record 3" in line["detail"], line
    says(done, "reject")
    write(f"{mine}/{shard}", whole)
    run([program("chex-convert"), "-i", mine, "-o", out, "--repair"])
    reshard(source(), f"{work}/wanted")
    same_tree(out, f"{work}/wanted")


@case("a conversion that is killed resumes to the same bytes")
def _(work):
    options = ["--size", "16", "--shard-size", "4", "-j", "2"]
    reshard(source(), f"{work}/wanted", *options)
    out = f"{work}/out"
    for delay in (0.005, 0.01, 0.02, 0.03):
        process = subprocess.Popen([program("chex-convert"), "-q", "-i", source(), "-o", out, *options])
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    reshard(source(), out, *options)
    same_tree(out, f"{work}/wanted")


def with_fault(out, fault, *more):
    """A conversion with a fault in the calls for one shard of the source."""
    shard = f"{source()}/{manifest(source())['shards'][0]['name']}"
    command = [program("chex-convert"), "--progress", "none", "-j", "1", "-i", source(), "-o", out, *more]
    return harness.run(command, [shard], fault)


@case("a record that cannot be read is no reject: the others are converted, the run ends with 3, a rerun resumes")
def _(work):
    out = f"{work}/out"
    calls = 2 * manifest(source())["shards"][0]["records"]  # the plan reads the bytes around the pixels
    small = manifest(source())["record"]["height"] ** 2 <= 4096  # or whole records, several at once
    ended = with_fault(out, f"read:{2 if small else calls + 2}:ever:EIO", "--allow-rejects", "100%")
    assert ended.code == 3 and "Input/output error" in ended.err, ended.err
    assert re.search(r"unread \d{8}_\d{3}\.png: 'chestxray14-.*', record \d+: read error", ended.err), ended.err
    assert "same command again resumes" in ended.err and not os.path.exists(f"{out}/manifest.json")
    says(reshard(source(), out), "resume")
    reshard(source(), f"{work}/wanted")
    same_tree(out, f"{work}/wanted")


@case("a shard that cannot be opened any more ends the run with 3, and a rerun resumes")
def _(work):
    out = f"{work}/out"
    ended = with_fault(out, "open:2:ever:EACCES", "--allow-rejects", "100%")
    assert ended.code == 3 and "the input has changed: '" in ended.err, ended.err
    assert not os.path.exists(f"{out}/manifest.json")
    reshard(source(), out)
    reshard(source(), f"{work}/wanted")
    same_tree(out, f"{work}/wanted")


@case("a limit on the size of files ends with 4, and a rerun resumes")
def _(work):
    limit = manifest(source())["record"]["stride"] * 3
    command = [program("chex-convert"), "-i", source(), "-o", f"{work}/out", *SHARDS]
    run(command, 4, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    run(command)
    same_tree(shards(f"{work}/out"), shards(source()))


@case("-n shows the plan of a data set and writes nothing; --json names the data set")
def _(work):
    done = reshard(source(), f"{work}/out", "-n", "--size", "16", "--json")
    says(done, r"60 found in data set [0-9a-f]{8} \(32x32\)")
    assert json.loads(done.stdout)["images"]["source"] == {
        "dataset_id": manifest(source())["dataset_id"], "size": 32, "resize": "bilinear"}
    assert not os.path.exists(f"{work}/out")


@case("the command that chex-inspect check shows repairs a data set made from a data set")
def _(work):
    out = f"{work}/out"
    reshard(source(), out, "--size", "16", "--resize", "area", *WHERE, *SHARDS)
    before = tree(out)
    shard = manifest(out)["shards"][0]["name"]
    flip(f"{out}/{shard}", 100)
    done = run([program("chex-inspect"), "check", "--full", out], 1)
    line = support.joined(done.stdout[done.stdout.index("next "):]).split("next")[1].replace("SHARDS", source())
    run([program("chex-convert"), *shlex.split(line)[1:]])
    same_tree(out, before)


@case("the commands of check and of the report repeat a merge with a patient in two data sets, and name its sources")
def _(work):
    rows, out = list(images(source()).values()), f"{work}/out"
    patient = next(p for p in {r["patient"] for r in rows} if sum(r["patient"] == p for r in rows) > 1).decode()
    name = next(r["filename"] for r in rows if r["patient"] == patient.encode()).decode()
    one = select(f"{work}/one", "--where", f"name={name}")
    write(f"{work}/exclude", name.encode())
    rest = select(f"{work}/rest", "--exclude", f"{work}/exclude")
    merge(out, [one, rest], *SHARDS, "--same-patients")
    before = tree(out)
    folder = {manifest(path)["dataset_id"]: path for path in (one, rest)}
    run([program("chex-inspect"), "report", "-o", f"{work}/report.html", out])
    page = html.unescape(re.sub("<[^>]*>", "", slurp(f"{work}/report.html").decode().split('<pre id="again">')[1]))
    text = page[:page.index("\nchex-inspect check")]
    for number, ident in re.findall("# (shards[12]) is the data set ([0-9a-f]{16})\n", text):
        text = text.replace(f"-i {number} ", f"-i {folder[ident]} ")
    run([program("chex-convert"), *shlex.split(text[text.index("chex-convert"):].replace("\\\n", " "))[1:]], cwd=work)
    assert tree(f"{work}/again") == before
    flip(f"{out}/{manifest(out)['shards'][0]['name']}", 100)
    done = run([program("chex-inspect"), "check", "--full", out], 1)
    line = support.joined(done.stdout[done.stdout.index("next "):]).split("next")[1]
    for number, ident in re.findall("(SHARDS[12]) is the data set ([0-9a-f]{16})", done.stdout):
        line = line.replace(number, folder[ident])
    run([program("chex-convert"), *shlex.split(line)[1:]])
    same_tree(out, before)


sys.exit(case.main())
