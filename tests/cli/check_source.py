#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect source: every fault of a download, loose and in archives, is found, and told in the same words.

    check_source.py [PATTERN]      $CHEX_INSPECT, $CHEX_SYNTH or in $BUILDDIR

Archives are written by Python's own modules, which know nothing of ours.
"""
import functools
import gzip
import io
import itertools
import os
import shutil
import struct
import sys
import tarfile
import zipfile
import zlib

from check_diff import document, inspect, rows, start
from support import Cases, Skip, joined, nih, png, program, read_csv, run, says, slurp, write, write_csv

case = Cases()

HEAD = "  images  missing    short  damaged     no row     bytes"
NAMES = [f"{i:08}_000.png" for i in range(1, 10)]


# ---- a small download, of which every byte is known ------------------------------------------------------------------


def image(i):
    """Not compressible, so that a cut of an archive is a cut of an image."""
    return png(80, 80, lambda y, width: bytes((x * x * 31 + y * 57 + (x * y * (i + 3)) // 7) & 255
                                              for x in range(width)))


IMAGES = {name: image(i) for i, name in enumerate(NAMES)}


def within(function):
    """Names in the output are short: run in the folder."""
    @functools.wraps(function)
    def run_there(work):
        before = os.getcwd()
        os.chdir(work)
        try:
            function()
        finally:
            os.chdir(before)
    return run_there


def label_file(names=NAMES):
    write("labels.csv", "Image Index,Finding Labels,Patient ID\n"
                 + "".join(f"{n},No Finding,{int(n[:8])}\n" for n in names))


def some(first, last):
    return [(f"images/{n}", IMAGES[n]) for n in NAMES[first:last]]


def need_archives():
    if "libarchive" in inspect("-V", "-v", code=None).stdout.replace("libarchive: not", ""):
        return
    raise Skip("chex-inspect was built without libarchive")


def tar(path, files, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def pack_zip(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files:
            archive.writestr(name, data)
    return path


def loose(folder, files):
    os.makedirs(folder)
    for name, data in files:
        write(os.path.join(folder, os.path.basename(name)), data)
    return folder


def size_of(files):
    """In the words of the table."""
    return in_words(sum(len(d) for _, d in files))


def in_words(n):
    for unit, size in (("MB", 10 ** 6), ("kB", 10 ** 3)):
        if n >= size:
            return f"{n // size}.{n % size * 10 // size} {unit}" if n < 100 * size else f"{n // size} {unit}"
    return f"{n} bytes"


def line(path, images="-", size="-", missing="-", short="-", damaged="-", extra="-"):
    return f"{images:>8} {missing:>8} {short:>8} {damaged:>8} {extra:>10} {size:>9}  {path}"


def told(done, *expected):
    """Standard output, to the byte, each command on one line; nothing is on standard error."""
    assert done.stderr == "", done.stderr
    for found, line_of in itertools.zip_longest(joined(done.stdout).splitlines(), expected):
        assert found == line_of, f"\n{found}\ninstead of\n{line_of}\nin\n{done.stdout}"


def first(n, of):
    """What is said of labels and images."""
    return f"labels   {n} rows, {n} images of {n} patients", f"         note: {n} ages unknown", of


# ---- whole downloads -------------------------------------------------------------------------------------------------


@case("complete archives of every kind and a folder: the table, exit code 0, the same for any number of threads")
@within
def _():
    need_archives()
    label_file()
    tar("a.tar.gz", [*some(0, 2), ("README.txt", b"hello"), ("images/._00000001_000.png", b"of macOS")], "w:gz")
    tar("b.tar", some(2, 4))
    tar("c.tar.xz", some(4, 5), "w:xz")
    tar("d e.tar.bz2", some(5, 6), "w:bz2")
    pack_zip("f.zip", some(6, 8))
    loose("loose", some(8, 9))
    for threads in (1, 2, 7):
        done = inspect("source", "-l", "labels.csv", "-j", threads, "-i", "a.tar.gz", "b.tar", "c.tar.xz",
                       "d e.tar.bz2", "f.zip", "-i", "loose")
        told(done, *first(9, f"images   9 files in 1 folder and 5 archives, {size_of(some(0, 9))}; "
                             "9 of 9 rows have one"),
             HEAD, line("a.tar.gz", 2, size_of(some(0, 2))),
             line("b.tar", 2, size_of(some(2, 4))), line("c.tar.xz", 1, size_of(some(4, 5))),
             line("d e.tar.bz2", 1, size_of(some(5, 6))), line("f.zip", 2, size_of(some(6, 8))),
             line("loose", 1, size_of(some(8, 9))),
             "good     every row has an image that begins and ends as it should",
             "next     chex-convert -n -i a.tar.gz loose b.tar c.tar.xz 'd e.tar.bz2' f.zip "
             "-l labels.csv -o shards")
    result = document("source", "-l", "labels.csv", "-i", "a.tar.gz", "b.tar", "c.tar.xz", "d e.tar.bz2", "f.zip",
                      "loose")
    assert result["good"] and result["faults"] == [] and result["files"] == result["found"] == 9
    assert result["bytes"] == sum(len(d) for d in IMAGES.values())
    assert [(p["path"], p["kind"], p["images"]) for p in result["places"]] == [
        ("loose", "folder", 1), ("a.tar.gz", "archive", 2), ("b.tar", "archive", 2), ("c.tar.xz", "archive", 1),
        ("d e.tar.bz2", "archive", 1), ("f.zip", "archive", 2)]
    for place in result["places"][1:]:
        assert place["size"] == os.path.getsize(place["path"]) and place["damage"] is None
    assert inspect("-q", "source", "-l", "labels.csv", "b.tar", "-i", "a.tar.gz", "c.tar.xz", "d e.tar.bz2", "f.zip",
                   "loose").stdout == ""


@case("the same image twice, in two archives, in one, and loose, is counted and no fault")
@within
def _():
    need_archives()
    label_file(NAMES[:4])
    tar("a.tar", some(0, 3))
    tar("b.tar.gz", [*some(1, 4), *some(3, 4)], "w:gz")
    loose("loose", some(0, 1))
    for threads in (1, 4):
        told(inspect("source", "-l", "labels.csv", "-j", threads, "-i", "a.tar", "-i", "b.tar.gz", "-i", "loose"),
             *first(4, f"images   4 files in 1 folder and 2 archives, {size_of(some(0, 4))}; 4 of 4 rows have one"),
             "         note: 4 images repeated, with the same content", HEAD,
             line("a.tar", 2, size_of(some(1, 3))), line("b.tar.gz", 1, size_of(some(3, 4))),
             line("loose", 1, size_of(some(0, 1))),
             "good     every row has an image that begins and ends as it should",
             "next     chex-convert -n -i a.tar b.tar.gz loose -l labels.csv -o shards")
    assert document("source", "-l", "labels.csv", "a.tar", "b.tar.gz", "loose")["repeated"] == 4


# ---- damaged archives ------------------------------------------------------------------------------------------------


def damaged(path, before, after, lost, offset, why):
    """The table for an archive with all nine images, of which this number is read; exit code 1."""
    read = some(0, before) if after == 0 else some(0, before) + some(9 - after, 9)
    here = len(read) + lost
    done = inspect("source", "-l", "labels.csv", "-i", path, code=1)
    size = in_words(document("source", "-l", "labels.csv", "-i", path, code=1)["bytes"])
    missing = NAMES[before + lost:9 - after]
    expected = [*first(9, f"images   {here} files in 1 archive, {size}; {here} of 9 rows have one"), HEAD,
                line(path, here, size, len(missing) or "-", damaged=lost or "-"),
                f"          damaged at byte {offset:,} of {os.path.getsize(path):,}: {why}",
                f"          {before} image{'s' * (before != 1)} read before that, up to {NAMES[before - 1]}"
                + (f"; {after} after it" if after else "")]
    if missing:
        expected += [f"missing  {len(missing)} row{'s' * (len(missing) != 1)} without an image",
                     *("         " + n for n in missing)]
    if lost:
        expected += [f"lost     {lost}: in the damage of the archive", f"         {NAMES[before]}  in {path}"]
    told(done, *expected, f"next     fetch again: {path}")


@case("a truncated tar: the byte, the images that are complete, the one that is lost")
@within
def _():
    need_archives()
    label_file()
    data = slurp(tar("whole.tar", some(0, 9)))
    member = [m.offset_data for m in tarfile.open("whole.tar")]
    cut = member[5] + len(IMAGES[NAMES[5]]) // 2
    write("cut.tar", data[:cut])
    damaged("cut.tar", 5, 0, 1, cut, "Truncated tar archive (the file ends there)")


@case("a tar.gz that was cut")
@within
def _():
    need_archives()
    label_file()
    data = slurp(tar("whole.tar.gz", some(0, 9), "w:gz"))
    cut = len(data) * 6 // 10
    write("cut.tar.gz", data[:cut])
    # what zlib gets out of it
    got = len(zlib.decompressobj(31).decompress(data[:cut]))
    plain = io.BytesIO(gzip.decompress(data))
    members = tarfile.open(fileobj=plain).getmembers()
    before = sum(m.offset_data + m.size <= got for m in members)
    assert 2 <= before <= 7 and members[before].offset_data < got, "the cut is at a header"
    damaged("cut.tar.gz", before, 0, 1, cut, "the gzip stream ends early (the file ends there)")


@case("a tar.gz with a wrong checksum: nothing is lost, and it is damaged all the same")
@within
def _():
    need_archives()
    label_file()
    data = bytearray(slurp(tar("a.tar.gz", some(0, 9), "w:gz")))
    data[-8] ^= 1
    write("a.tar.gz", data)
    done = inspect("source", "-l", "labels.csv", "-i", "a.tar.gz", code=1)
    assert f"damaged at byte {len(data):,} of {len(data):,}: " in done.stdout and "checksum" in done.stdout
    assert "9 images read before that, up to 00000009_000.png\nnext     fetch again: a.tar.gz\n" in done.stdout
    result = document("source", "-l", "labels.csv", "-i", "a.tar.gz", code=1)
    assert not result["good"] and result["counts"]["good"] == 9 and result["counts"]["archive"] == 1
    assert [(f["kind"], f["folder"]) for f in result["faults"]] == [("archive", "a.tar.gz")]


@case("a damaged header in the middle of a tar: the images after it are counted separately")
@within
def _():
    need_archives()
    label_file()
    data = bytearray(slurp(tar("a.tar", some(0, 9))))
    member = tarfile.open("a.tar").getmembers()[4]
    data[member.offset:member.offset + 100] = bytes(100)
    write("a.tar", data)
    result = document("source", "-l", "labels.csv", "-i", "a.tar", code=1)
    damage = result["places"][0]["damage"]
    assert (damage["images_before"], damage["images_after"], damage["last_before"]) == (4, 4, NAMES[3])
    assert member.offset <= damage["offset"] <= member.offset + (1 << 20)
    damaged("a.tar", 4, 4, 0, damage["offset"], damage["text"])


@case("a member whose size differs from its header")
@within
def _():
    need_archives()
    label_file(NAMES[:3])
    # a tar: one block of data is left behind its member and is no header
    data = bytearray(slurp(tar("a.tar", some(0, 3))))
    member = tarfile.open("a.tar").getmembers()[1]
    header = data[member.offset:member.offset + 512]
    header[124:136] = b"%011o\0" % (member.size - 600)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data[member.offset:member.offset + 512] = header
    write("a.tar", data)
    result = document("source", "-l", "labels.csv", "-i", "a.tar", code=1)
    assert [(f["kind"], f["name"]) for f in result["faults"]] == [("archive", ""), ("short", NAMES[1])], result
    # a zip, stored: both headers say ten bytes less, and the checksum is that of the whole
    data = bytearray(slurp(pack_zip("b.zip", some(0, 3))))
    size, = struct.unpack_from("<I", data, data.index(b"PK\1\2") + 20)
    assert size == len(IMAGES[NAMES[0]])
    struct.pack_into("<II", data, data.index(b"PK\1\2") + 20, size - 10, size - 10)
    struct.pack_into("<II", data, 18, size - 10, size - 10)
    write("b.zip", data)
    result = document("source", "-l", "labels.csv", "-i", "b.zip", code=1)
    assert result["places"][0]["damage"] and {(f["kind"], f["name"]) for f in result["faults"]} == {
        ("archive", ""), ("lost", NAMES[0])}, result["faults"]


@case("an image that is lost in one archive and complete in another is not damaged; the archive is")
@within
def _():
    need_archives()
    label_file()
    data = slurp(tar("b.tar", some(0, 9)))
    member = tarfile.open("b.tar").getmembers()[5]
    write("cut.tar", data[:member.offset_data + 100])
    result = document("source", "-l", "labels.csv", "-i", "cut.tar", "-i", "b.tar", code=1)
    assert result["counts"]["lost"] == 0 and result["counts"]["good"] == 9 and result["repeated"] == 5
    assert [f["kind"] for f in result["faults"]] == ["archive"]
    done = inspect("source", "-l", "labels.csv", "-i", "cut.tar", "-i", "b.tar", code=1)
    assert joined(done.stdout).endswith("next     fetch again: cut.tar\n         or do without: chex-convert -n "
                                        "--allow-missing -i b.tar -l labels.csv -o shards\n"), done.stdout


@case("a file that is not an archive is recognised by its content, the others are still read")
@within
def _():
    need_archives()
    label_file(NAMES[:2])
    tar("a.tar", some(0, 2))
    write("images_002.tar.gz", "<!DOCTYPE html><html><body>Log in</body></html>")
    write("images_003.tar.gz", b"")
    write("notes", "hello")
    told(inspect("source", "-l", "labels.csv", "a.tar", "images_002.tar.gz", "images_003.tar.gz", "notes", code=1),
         *first(2, f"images   2 files in 4 archives, {size_of(some(0, 2))}; 2 of 2 rows have one"), HEAD,
         line("a.tar", 2, size_of(some(0, 2))),
         line("images_002.tar.gz"), "          not a tar or zip archive: looks like HTML: the download failed",
         line("images_003.tar.gz"), "          empty file (download interrupted?)",
         line("notes"), "          not a tar or zip archive: looks like text",
         "next     fetch again: images_002.tar.gz, images_003.tar.gz, notes",
         "         or do without: chex-convert -n -i a.tar -l labels.csv -o shards")
    table, lines = rows("source", "-l", "labels.csv", "a.tar", "notes", code=1)
    assert lines == [{"kind": "archive", "name": "", "folder": "notes",
                      "detail": "not a tar or zip archive: looks like text"}] and dict(table[0]) == lines[0]


@case("archives in a folder are not looked into, and that is said")
@within
def _():
    label_file(NAMES[:2])
    os.mkdir("dl")
    os.mkdir("dl/more")
    for name in ("b.tar.gz", "a.ZIP", "more/c.tgz", "notes.txt", ".d.tar"):
        write(f"dl/{name}", "not read")
    lines = inspect("source", "-l", "labels.csv", "-i", "dl", code=1).stdout.splitlines()
    assert lines[2:4] == ["images   0 files in 0 folders, 0 bytes; 0 of 2 rows have one",
                          "         note: 3 archives in these folders not looked into; give archives by name"], lines
    assert lines[-1] == "next     give the archives by name, as -i dl/a.ZIP"
    done = run([program("chex-convert"), "-i", "dl", "-l", "labels.csv", "-o", "out"], 3)
    says(done, r"archives in a folder are not looked into: give them by name, as -i 'dl/a.ZIP'")
    loose("dl/images", some(0, 2))
    assert "note: 3 archives" in inspect("source", "-l", "labels.csv", "-i", "dl").stdout
    says(run([program("chex-convert"), "-i", "dl", "-l", "labels.csv", "-o", "out", "-n"], 0), "3 archives in these")


# ---- damaged images in archives --------------------------------------------------------------------------------------


@case("images in an archive are looked at as loose ones are: one of each fault")
@within
def _():
    need_archives()
    label_file()
    files = dict(some(0, 9))
    names = list(files)
    files[names[1]] = b""
    files[names[2]] = files[names[2]][:-20]
    files[names[3]] = b"<!DOCTYPE html><html>log in</html>"
    files[names[4]] = b"hello"
    del files[names[5]]
    files["images/99999999_000.png"] = IMAGES[NAMES[0]]
    files["images/99999998_000.jpg"] = b"\xff\xd8\xff and no end"
    loose("loose", files.items())
    tar("a.tar.gz", files.items(), "w:gz")
    pack_zip("b.zip", files.items())
    expected = {("empty", NAMES[1], ""), ("short", NAMES[2], ""),
                ("type", NAMES[3], "looks like HTML: the download failed"), ("type", NAMES[4], "looks like text"),
                ("missing", NAMES[5], ""), ("extra", "99999999_000.png", ""), ("extra", "99999998_000.jpg", ""),
                ("short", "99999998_000.jpg", "")}
    for path in ("loose", "a.tar.gz", "b.zip"):
        result = document("source", "-l", "labels.csv", "-i", path, code=1)
        assert {(f["kind"], f["name"], f["detail"]) for f in result["faults"]} == expected, (path, result["faults"])
        assert {f["folder"] for f in result["faults"]} == {path, ""}
        _, lines = rows("source", "-i", path, "-l", "labels.csv", code=1)
        assert lines == result["faults"]
    size = size_of(files.items())
    told(inspect("source", "-l", "labels.csv", "-i", "a.tar.gz", code=1),
         *first(9, f"images   10 files in 1 archive, {size}; 8 of 9 rows have one"), HEAD,
         line("a.tar.gz", 10, size, 1, 3, 2, 2),
         "missing  1 row without an image", f"         {NAMES[5]}",
         "empty    1: no bytes", f"         {NAMES[1]}  in a.tar.gz",
         "short    2: the end is lacking, the download was cut", f"         {NAMES[2]}  in a.tar.gz",
         "         99999998_000.jpg  in a.tar.gz",
         "type     2: no image", f"         {NAMES[3]}  in a.tar.gz: looks like HTML: the download failed",
         f"         {NAMES[4]}  in a.tar.gz: looks like text",
         "extra    2: without a row, left out", "         99999998_000.jpg  in a.tar.gz",
         "         99999999_000.png  in a.tar.gz",
         "         the files named above are rejected at conversion, unless they come", "         again",
         "next     chex-convert -n --allow-missing -i a.tar.gz -l labels.csv -o shards")


@case("two images of one name with other content are a conflict: in one archive, in two, and loose")
@within
def _():
    need_archives()
    label_file(NAMES[:3])
    other = IMAGES[NAMES[8]]
    tar("a.tar", [*some(0, 2), ("x/" + NAMES[0], other)])
    tar("b.tar.gz", [("y/" + NAMES[1], other), *some(2, 3)], "w:gz")
    loose("loose", [(NAMES[2], other)])
    for threads in (1, 4):
        told(inspect("source", "-l", "labels.csv", "-j", threads, "-i", "a.tar", "b.tar.gz", "loose", code=1),
             *first(3, f"images   3 files in 1 folder and 2 archives, "
                       f"{size_of([*some(0, 2), (0, other)])}; 3 of 3 rows have one"), HEAD,
             line("a.tar", 2, size_of(some(0, 2)), damaged=1), line("b.tar.gz", damaged=2),
             line("loose", 1, size_of([(0, other)])),
             "conflict 3: the name of another image, but other content",
             f"         {NAMES[0]}  twice in a.tar", f"         {NAMES[1]}  in a.tar and b.tar.gz",
             f"         {NAMES[2]}  in loose and b.tar.gz",
             "next     leave out the wrong one of each conflict: chex-convert refuses to",
             "         choose")
    table, _ = rows("source", "-l", "labels.csv", "-i", "a.tar", "b.tar.gz", "loose", code=1)
    assert [(r["kind"], r["name"], r["folder"], r["detail"]) for r in table] == [
        ("conflict", NAMES[0], "a.tar", "a.tar"), ("conflict", NAMES[1], "b.tar.gz", "a.tar"),
        ("conflict", NAMES[2], "b.tar.gz", "loose")]


@case("an image above 256 MiB, which chex-convert does not read, is named, loose and in an archive")
@within
def _():
    need_archives()
    label_file(NAMES[:2])
    size = (256 << 20) + 1
    loose("loose", [(NAMES[0], b"\x89PNG\r\n\x1a\n")])
    os.truncate(f"loose/{NAMES[0]}", size)
    info = tarfile.TarInfo(NAMES[1])
    info.size = size
    write("a.tar", info.tobuf())
    os.truncate("a.tar", 512 + (size + 511) // 512 * 512 + 1024)
    result = document("source", "-l", "labels.csv", "-i", "loose", "a.tar", code=1)
    assert [(f["kind"], f["name"], f["folder"]) for f in result["faults"]] == [
        ("large", NAMES[0], "loose"), ("large", NAMES[1], "a.tar")]


# ---- the label file of the whole data set ----------------------------------------------------------------------------


def all_names():
    return [f"{i:08}_000.png" for i in range(112120)]


@case("missing images are reported by archive of NIH: either the rest of it was found, or nothing")
@within
def _():
    need_archives()
    label_file(all_names())
    body = image(0)

    def archive(path, first_row, count):
        return tar(path, [(f"images/{i:08}_000.png", body) for i in range(first_row, first_row + count)])

    archive("images_001.tar", 0, 4999)  # all
    archive("two.tar", 4999, 7)
    archive("three.tar", 14999, 3)
    data = slurp("three.tar")
    write("three.tar", data[:tarfile.open("three.tar").getmembers()[2].offset_data + 9])
    done = inspect("source", "-l", "labels.csv", "-i", "images_001.tar", "two.tar", "three.tar", code=1)
    size = in_words(len(body) * 4999)
    lines = joined(done.stdout).splitlines()
    assert lines[3:11] == [
        HEAD, line("images_001.tar", "4,999", size), line("two.tar", 7, in_words(7 * len(body)), "9,993"),
        line("three.tar", 3, in_words(3 * len(body)), "9,997", damaged=1), lines[7], lines[8],
        line("(images_004: nothing of it)", missing="10,000"), line("(images_005: nothing of it)", missing="10,000")], \
        done.stdout
    assert lines[8] == "          2 images read before that, up to 00015000_000.png"
    assert lines[17] == line("(images_012: nothing of it)", missing="7,121")
    assert lines[-3:-1] == ["next     fetch again: three.tar, images_002.tar.gz,",
                            "         images_004.tar.gz to images_012.tar.gz"]
    assert lines[-1] == ("         or do without: chex-convert -n --allow-missing -i images_001.tar two.tar "
                         "-l labels.csv -o shards")
    result = document("source", "-l", "labels.csv", "-i", "images_001.tar", "two.tar", "three.tar", code=1)
    assert [p["missing"] for p in result["places"]] == [0, 9993, 9997]
    assert result["archives"][:4] == [{"images": 4999, "found": 4999}, {"images": 10000, "found": 7},
                                      {"images": 10000, "found": 3}, {"images": 10000, "found": 0}]


@case("one folder with all: the archives of NIH by the order of the names")
@within
def _():
    label_file(all_names())
    body = image(0)
    loose("images", [(f"{i:08}_000.png", body) for i in (0, 4998, 4999, 112119)])
    lines = joined(inspect("source", "-l", "labels.csv", "-i", "images", code=1).stdout).splitlines()
    assert lines[3:9] == [HEAD, line("images", 4, in_words(4 * len(body)), "112,116"),
                          "  images  missing  of NIH's archive", "       2    4,997  images_001.tar.gz",
                          "       1    9,999  images_002.tar.gz", "       -   10,000  images_003.tar.gz"], lines
    assert lines[17] == "       1    7,120  images_012.tar.gz"
    assert lines[-2] == "next     fetch: images_001.tar.gz to images_012.tar.gz"


# ---- loose files -----------------------------------------------------------------------------------------------------


@case("a complete download is good: exit code 0, and the command that converts it")
def _(work):
    csv_path, folder = start(work)
    done = inspect("source", "-i", folder, "-l", csv_path)
    assert f"chex-convert -n -i {folder} -l {csv_path}" in joined(done.stdout) and "good" in done.stdout
    result = document("source", "-i", folder, "-l", csv_path)
    assert result["good"] and result["found"] == 90 and result["faults"] == []
    assert result["bytes"] == sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder))


@case("one of each fault of a download is named: exit code 1")
def _(work):
    csv_path, folder = start(work)
    header, table = read_csv(csv_path)
    names = sorted(row[0] for row in table)

    def at(i):
        return os.path.join(folder, names[i])

    os.remove(at(0))
    write(at(1), b"")
    write(at(2), slurp(at(2))[:-20])
    write(at(3), "<!DOCTYPE html><html>log in</html>")
    shutil.copy(at(4), os.path.join(folder, "99999999_000.png"))
    os.makedirs(os.path.join(folder, "twice"))
    shutil.copy(at(5), os.path.join(folder, "twice", names[5]))
    table[-1][header.index("Finding Labels")] = ""
    write_csv(csv_path, header, table)
    result = document("source", "-i", folder, "-l", csv_path, code=1)
    found = {(f["kind"], f["name"]) for f in result["faults"]}
    assert found == {("missing", names[0]), ("empty", names[1]), ("short", names[2]), ("type", names[3]),
                     ("extra", "99999999_000.png"), ("row", table[-1][0])} | \
        ({("extra", table[-1][0])}), found
    assert result["repeated"] == 1
    assert "HTML" in next(f["detail"] for f in result["faults"] if f["kind"] == "type")
    csv_rows, lines = rows("source", "-i", folder, "-l", csv_path, code=1)
    assert lines == result["faults"] and len(csv_rows) == len(lines)
    text = inspect("source", "-i", folder, "-l", csv_path, code=1).stdout
    for word in (*names[:4], "99999999_000.png", "next"):
        assert word in text, word


@case("a label file that cannot be used is a result, files that are not there are none")
def _(work):
    csv_path, folder = start(work, 40)
    header, table = read_csv(csv_path)
    table[3][header.index("Finding Labels")] = "Hernja"
    write_csv(csv_path, header, table)
    result = document("source", "-i", folder, "-l", csv_path, code=1)
    assert "Hernja" in result["labels_error"] and result["files"] == 40
    says(inspect("source", "-i", folder, "-l", os.path.join(work, "no.csv"), code=3), "no.csv")
    says(inspect("source", "-i", os.path.join(work, "no"), "-l", csv_path, code=3), "cannot read")
    assert document("source", "-i", folder, "--labels", csv_path, code=1) == result
    says(inspect("source", "-i", folder, code=2), "needs -i PATH and -l CSV")
    says(inspect("source", "-l", csv_path, code=2), "needs -i PATH and -l CSV")
    says(inspect("-l", csv_path, work, code=2), "is an option of report and source")


@case("the table by archive, if the label file is the one of the complete data set")
def _(work):
    result = document("source", "-i", nih("images"), "-l", nih("csv", "Data_Entry_2017_v2020.csv.gz"), code=1)
    assert [a["images"] for a in result["archives"]] == [4999] + [10000] * 10 + [7121]
    assert sum(a["found"] for a in result["archives"]) == result["found"] == 67
    assert result["counts"]["missing"] == 112120 - 67 and result["counts"]["short"] == result["counts"]["type"] == 0


@case("of real files the type and the end are reported")
def _(work):
    csv_path = write(os.path.join(work, "x.csv"), "Image Index,Finding Labels,Patient ID\na.png,No Finding,1\n")
    for folder in ("images", "jpeg", "odd"):
        result = document("source", "-i", nih(folder), "-l", csv_path, code=1)
        assert result["counts"]["good"] == result["files"] > 0, (folder, result["faults"])


if __name__ == "__main__":
    sys.exit(case.main())
