#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files, names and options that were found to mislead chex-inspect, each once.

    check_inspect_hostile.py [PATTERN]      $CHEX_INSPECT, $CHEX_CONVERT, $CHEX_SYNTH or in $BUILDDIR
"""
import os
import re
import shutil
import sys

from check_archive import tar, with_crc32c
from check_checkpoints import save
from check_diff import document, inspect, rows
from check_source import need_archives
from support import Cases, chunk, crc32c, manifest, png, program, run, slurp, synth, write

case = Cases()


def dataset(work, *options, count=24, size=64):
    labels = synth(f"{work}/nih", count, "--size", 64)
    run([program("chex-convert"), "-q", "-i", f"{work}/nih/images", "-l", labels, "-o", f"{work}/out", "--size", size,
         "--shard-size", 8, *options])
    return f"{work}/out", [f"{work}/out/{s['name']}" for s in manifest(f"{work}/out")["shards"]]


def flip(path, at):
    data = bytearray(slurp(path))
    data[at] ^= 1
    return write(path, bytes(data))


# ---- what a file is ----------------------------------------------------------------------------------------------


@case("a file that the manifest next to it does not name is checked by itself")
def _(work):
    folder, shards = dataset(work)
    path = shutil.copy(shards[0], f"{folder}/copy.tfrecord")
    assert "1 of 1 file good, 8 records" in inspect("check", "--full", path).stdout
    found = document(path)
    assert (found["kind"], found["dataset"], found["check"]["manifest"]) == ("file", None, False), found
    flip(path, 2000)
    for mode in ("--quick", "--full"):
        assert "record 0 @0: data checksum mismatch" in inspect("check", mode, path, code=1).stdout
    assert document("check", "--sample", "50%", path, code=1)["check"]["faults"] == 1


@case("a TFRecord file is not taken for a checkpoint if the checksum of its first length begins like one")
def _(work):
    _, shards = dataset(work, size=362)
    assert slurp(shards[0])[8:9] == b"{", "another size makes such a length"
    path = shutil.copy(shards[0], f"{work}/alone.tfrecord")
    assert document(path)["kind"] == "file"


@case("of a folder without a manifest the indexes are not counted as shards")
def _(work):
    folder, shards = dataset(work, "--index", "dali")
    os.unlink(f"{folder}/manifest.json")
    assert f"{len(shards)} shards without a manifest.json" in inspect(folder, code=1).stdout


@case("check --full: an index that is there and cannot be read is a fault")
def _(work):
    folder, shards = dataset(work, "--index", "dali")
    inspect("check", "--full", folder)
    os.unlink(f"{shards[0]}.idx")
    inspect("check", "--full", folder)
    os.symlink(f"{shards[0]}.idx", f"{shards[0]}.idx")
    assert "index: cannot open" in inspect("check", "--full", folder, code=1).stdout


@case("a single shard as operand means its own records, also with an index")
def _(work):
    folder, shards = dataset(work)
    name = os.path.basename(shards[1])
    for which, path, code in (("1:0", shards[1], 0), (f"{name}:0", shards[1], 0), ("1:0", folder, 0),
                              ("0:0", shards[1], 3), (f"{name}:0", shards[0], 3), ("1:0", shards[0], 3)):
        done = inspect("extract", "-o", f"{work}/x.png", path, which, code=code)
        assert code == 0 or f"has no record '{which}'" in done.stderr, done.stderr


# ---- words -------------------------------------------------------------------------------------------------------


@case("a command to copy is one that the shell reads")
def _(work):
    folder, shards = dataset(work)
    flip(shards[0], 100)
    there = f"{work}/my 'set"
    os.rename(folder, there)
    done = inspect("list", "--fields", "sha256", there, code=1)
    command = re.search("chex-inspect check --full (.*)", done.stderr).group(1)
    assert run(["sh", "-c", f"printf %s {command}"]).stdout == there, command


@case("control characters of paths are not printed by inspection")
def _(work):
    folder, _ = dataset(work)
    bad, labels = f"{work}/a\x1b[2J.safetensors", write(f"{work}/l\x1b[2J.csv", "a,b\n1,2\n")
    save(bad, {"w": ("F32", [1], [0])})
    write(bad, slurp(bad)[:-1])
    for arguments, code in ((("check", bad), 1), (("source", "-l", labels, "-i", f"{work}/nih/images"), 1),
                            (("extract", "-o", f"{work}/\x1b[2J.png", folder, "0:0"), 0),
                            (("sheet", "-o", f"{work}/\x1b[2J.png", folder), 0),
                            (("report", "-o", f"{work}/\x1b[2J.html", folder), 0),
                            (("sheet", "--first", "\x1b[2J", folder), 2)):
        done = inspect(*arguments, code=code)
        assert "\x1b" not in done.stdout + done.stderr and "\\x1b[2J" in done.stdout + done.stderr, done


# ---- checkpoints -------------------------------------------------------------------------------------------------


@case("diff: a state that differs in any value differs, whatever it is")
def _(work):
    a, b = f"{work}/a", f"{work}/b"

    def differ(one, other, code=1):
        for path, state in ((a, one), (b, other)):
            save(path, {"w": ("F32", [1], [1])}, {"state": state})
        return [(r["name"], r["a"], r["b"]) for r in rows("diff", a, b, code=code)[0]]
    assert differ('{"x": 1.5, "y": 3}', '{"x": 2.5, "y": 4}') == [("state.x", "1.5", "2.5"), ("state.y", "3", "4")]
    assert differ('{"x": [1, null]}', '{"x": true}') == [("state.x", "[1,null]", "true")]
    assert differ('[1]', '[2]') == [("state", "[1]", "[2]")]
    assert differ('{"x": {"a": 1, "b": 2}}', '{"x": {"b": 2, "a": 1}}', 0) == []


# ---- downloads ---------------------------------------------------------------------------------------------------


@case("source: two images of one name, of one size and one CRC-32C, are in conflict, as for chex-convert")
def _(work):
    need_archives()

    def image(gray, x=bytes(8)):
        return png(64, 64, extra=chunk(b"teSt", x), row=lambda y, width: bytes([gray * (y % 2)]) * width)

    white = image(200)
    gray = with_crc32c(lambda x: image(100, x), crc32c(white))
    assert len(white) == len(gray) and crc32c(white) == crc32c(gray) and white != gray
    labels = write(f"{work}/l.csv", "Image Index,Finding Labels,Patient ID\n00000001_000.png,No Finding,1\n")
    one, two = (tar(f"{work}/one.tar", [("00000001_000.png", white)]),
                tar(f"{work}/two.tar", [("00000001_000.png", gray)]))
    same = tar(f"{work}/same.tar", [("00000001_000.png", white)])
    found = document("source", "-l", labels, "-i", one, two, code=1)
    assert found["counts"]["conflict"] == 1 and not found["good"], found["counts"]
    assert document("source", "-l", labels, "-i", one, same)["repeated"] == 1


@case("source: a label file may have more rows than the one of NIH")
def _(work):
    folder = f"{work}/images"
    os.mkdir(folder)
    write(f"{folder}/z.png", png(64, 64))
    count = 130_000
    labels = write(f"{work}/l.csv", "Image Index,Finding Labels,Patient ID\n"
                   + "".join(f"{i:07}.png,No Finding,1\n" for i in range(count)) + "z.png,No Finding,1\n")
    assert document("source", "-l", labels, "-i", folder, code=1)["counts"]["missing"] == count


# ---- drift -------------------------------------------------------------------------------------------------------


@case("check --leaks: the images of a single patient have no variance, and differ from nothing")
def _(work):
    def z(patients):
        """Train: 30 patients, of whom 10 have an effusion; test: 10 images with one, of so many patients."""
        folder = f"{work}/{patients}"
        os.makedirs(f"{folder}/images")
        labels, split = "Image Index,Finding Labels,Patient ID\n", "Patient ID,split\n"
        for i in range(40):
            patient = i if i < 30 else 30 + i % patients
            write(f"{folder}/images/{i}.png", png(64, 64, lambda y, width, i=i: bytes([i + y]) * width))
            labels += f"{i}.png,{'No Finding' if 10 <= i < 30 else 'Effusion'},{patient}\n"
            split += f"{patient},{'train' if i < 30 else 'test'}\n"
        run([program("chex-convert"), "-q", "-i", f"{folder}/images", "-l", write(f"{folder}/l.csv", labels), "-o",
             f"{folder}/out", "--size", 64, "--shard-size", 10, "--split", "file:" + write(f"{folder}/s.csv", split)])
        drift, = [d for d in document("check", "--leaks", f"{folder}/out")["drift"] if d["finding"] == "Effusion"]
        assert drift["differs"] == (drift["z"] >= 3.29)
        return drift["z"]
    assert z(10) > 3.29
    assert z(1) == 0


# ---- the page ----------------------------------------------------------------------------------------------------


@case("report: the commands that make the data set again name the least side")
def _(work):
    folder, _ = dataset(work, "--min-size", 32)
    inspect("report", "-o", f"{work}/r.html", folder)
    page = re.sub("</?span[^>]*>", "", slurp(f"{work}/r.html").decode())
    command = re.search("<pre[^>]*>chex-convert (.*?)\nchex-inspect", page, re.S).group(1)
    words = command.replace("\\\n", " ").split()
    labels = "Data_Entry_2017_v2020.csv"
    at = {"images": f"{work}/nih/images", labels: f"{work}/nih/{labels}", "again": f"{work}/again"}
    run([program("chex-convert"), "-q", *(at.get(w, w) for w in words)])
    assert manifest(f"{work}/again")["dataset_id"] == manifest(folder)["dataset_id"], command


if __name__ == "__main__":
    sys.exit(case.main())
