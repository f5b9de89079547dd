#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-convert with images in archives: the same bytes as from folders, and what is said where one is not whole.

    check_archive.py [PATTERN]      only the cases whose name matches the regular expression

$CHEX_CONVERT and $CHEX_SYNTH are the programs.  Archives are written by Python's own modules (Python 3, stdlib only).
"""
import bz2
import functools
import glob
import gzip
import io
import json
import lzma
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
import zlib

import harness
import support
from support import (PATIENCE, SOURCE, Cases, Skip, cache_folder, chunk, complete, crc32c, images, manifest,
                     peak_kib, png, program, rejects, run, same_tree, says, slurp, synth, tree, write)

case = Cases()
CACHE = cache_folder("archive")
SMALL = ["--size", "32", "--shard-size", "8"]
COUNT = 60


@functools.lru_cache(None)
def has_archives():
    empty = write(os.path.join(CACHE, "empty.tar"), bytes(10240))
    done = run([program("chex-convert"), "-i", empty, "-l", labels(), "-o", os.path.join(CACHE, "no"), "-n"], None)
    return "without libarchive" not in done.stderr


def need_archives():
    if not has_archives():
        raise Skip("chex-convert was built without libarchive")


@functools.lru_cache(None)
def base():
    """Small images with lists, one of them without a row; read only."""
    folder = os.path.join(CACHE, "base")
    synth(folder, COUNT, "--size", "64")
    write(f"{folder}/images/99999999_000.png", png(64, 64))
    write(f"{folder}/images/99999998_000.jpg", b"no image")
    return folder


def labels():
    return os.path.join(base(), "Data_Entry_2017_v2020.csv")


def names():
    return sorted(os.listdir(f"{base()}/images"))


def wanted():
    return [n for n in names() if not n.startswith("9999999")]


def content(name):
    return slurp(f"{base()}/images/{name}")


def members(chosen=None):
    """(path in the archive, bytes) of the images."""
    return [("images/" + n, content(n)) for n in (names() if chosen is None else chosen)]


def tar(path, files, mode="w", form=tarfile.PAX_FORMAT):
    with tarfile.open(path, mode, format=form) as archive:
        for name, data in files:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if data is not None:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data or b""))
    return path


def pack_zip(path, files, how=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return path


def command(inputs, out, *options, csv=None):
    inputs = [x for i in ([inputs] if isinstance(inputs, str) else inputs) for x in ("-i", i)]
    return [program("chex-convert"), *inputs, "-l", csv or labels(), "-o", out, *SMALL, *options]


def convert(inputs, out, *options, code=0, csv=None, **how):
    need_archives()
    return run(command(inputs, out, *options, csv=csv), code, **how)


@functools.lru_cache(None)
def straight():
    """From the folder."""
    out = os.path.join(CACHE, "straight")
    run(command(f"{base()}/images", out))
    complete(out)
    assert [r["name"] for r in rejects(out)] == ["99999998_000.jpg", "99999999_000.png"]
    return out


def unpublished(out):
    left = [n for n in os.listdir(out) if n in ("manifest.json", "rejects.jsonl", ".chex.lock")]
    assert not left, f"{left} in {out}"


def missing_list(out):
    return slurp(f"{out}/missing.txt").decode().split()


# ---- the same bytes --------------------------------------------------------------------------------------------------


@case("tar, with every compression and in every form, gives the folder that loose files give")
def _(work):
    for mode, suffix in (("w", "tar"), ("w:gz", "tar.gz"), ("w:xz", "tar.xz"), ("w:bz2", "tar.bz2")):
        convert(tar(f"{work}/a.{suffix}", members(), mode), f"{work}/{suffix}")
        same_tree(straight(), f"{work}/{suffix}")
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        convert(tar(f"{work}/{form}.tar", members(), form=form), f"{work}/{form}")
        same_tree(straight(), f"{work}/{form}")
    if not shutil.which("zstd"):
        raise Skip("there is no zstd to make a tar.zst with; the others are good")
    subprocess.run(["zstd", "-q", f"{work}/a.tar"], check=True)
    convert(f"{work}/a.tar.zst", f"{work}/zst")
    same_tree(straight(), f"{work}/zst")


@case("a zip, stored or deflated, gives the folder that loose files give")
def _(work):
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        convert(pack_zip(f"{work}/{how}.zip", members(), how), f"{work}/{how}")
        same_tree(straight(), f"{work}/{how}")


@case("what an archive is says its content, not its name")
def _(work):
    convert(tar(f"{work}/images_001.zip", members(), "w:gz"), f"{work}/out")
    same_tree(straight(), f"{work}/out")


@case("what a shell makes of -i *.tar.gz is understood: paths without an option are inputs")
def _(work):
    need_archives()
    files = members()
    for i in range(3):
        tar(f"{work}/{i}.tar.gz", files[i::3], "w:gz")
    run([program("chex-convert"), "-i", f"{work}/0.tar.gz", f"{work}/1.tar.gz", "-l", labels(), f"{work}/2.tar.gz",
         "-o", f"{work}/out", *SMALL])
    same_tree(straight(), f"{work}/out")


def spread(work, parts=3):
    """Several archives of several kinds, and a folder with the rest."""
    files = members()
    paths = [tar(f"{work}/p0.tar.gz", files[0::parts + 1], "w:gz"), tar(f"{work}/p1.tar", files[1::parts + 1]),
             pack_zip(f"{work}/p2.zip", files[2::parts + 1])][:parts]
    folder = f"{work}/loose"
    os.mkdir(folder)
    for name, data in files[parts::parts + 1]:
        write(f"{folder}/{os.path.basename(name)}", data)
    return [*paths, folder]


@case("several archives and a folder, in any order, with one, two and seven threads")
def _(work):
    inputs = spread(work)
    for i, order in enumerate((inputs, inputs[::-1], inputs[2:] + inputs[:2])):
        for threads in (1, 2, 7):
            convert(order, f"{work}/out{i}-{threads}", "-j", threads)
            same_tree(straight(), f"{work}/out{i}-{threads}")


@case("damaged images in an archive are the rejects that they are in a folder")
def _(work):
    files = [(n, d[:len(d) // 2] if i % 20 == 3 else b"" if i % 20 == 7 else d) for i, (n, d) in enumerate(members())]
    os.mkdir(f"{work}/loose")
    for name, data in files:
        write(f"{work}/loose/{os.path.basename(name)}", data)
    run(command(f"{work}/loose", f"{work}/out"), 1)
    assert len([r for r in rejects(f"{work}/out") if r["kind"] == "image"]) == 6
    for path in (tar(f"{work}/a.tar.gz", files, "w:gz"), pack_zip(f"{work}/a.zip", files)):
        convert(path, f"{path}.out", code=1)
        same_tree(f"{work}/out", f"{path}.out")


@case("multi-member gzip files, also with zeros after the end")
def _(work):
    data = slurp(tar(f"{work}/a.tar", members()))
    pieces = [data[i:i + 50000] for i in range(0, len(data), 50000)]
    write(f"{work}/a.tar.gz", b"".join(map(gzip.compress, pieces)) + bytes(777))
    convert(f"{work}/a.tar.gz", f"{work}/out")
    same_tree(straight(), f"{work}/out")


@case("archives concatenated into one file are all read")
def _(work):
    half = len(members()) // 2
    for kind, mode in (("tar", "w"), ("tar.gz", "w:gz")):
        halves = enumerate((members()[:half], members()[half:]))
        parts = [slurp(tar(f"{work}/{i}.{kind}", part, mode)) for i, part in halves]
        write(f"{work}/both.{kind}", b"".join(parts))
        convert(f"{work}/both.{kind}", f"{work}/{kind}-out")
        same_tree(straight(), f"{work}/{kind}-out")


@case("other data after the end of an archive is reported, exit code 1, although no image is missing")
def _(work):
    path = tar(f"{work}/a.tar", members())
    write(path, slurp(path) + b"something else" * 100)
    says(convert(path, f"{work}/out", code=1), "damaged  .*a.tar' at byte", "1 damaged archive")
    same_tree(straight(), f"{work}/out")


@case("a limit of file descriptors far below the number of shards is enough")
def _(work):
    path = tar(f"{work}/a.tar.gz", members()[::-1], "w:gz")
    run(command(f"{base()}/images", f"{work}/straight", "--shard-size", 1))
    convert(path, f"{work}/out", "--shard-size", 1, "-j", 2,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
    same_tree(f"{work}/straight", f"{work}/out")


@case("with --allow-missing the data set is the same as from the loose files that exist")
def _(work):
    some = wanted()[::3]
    os.mkdir(f"{work}/loose")
    for name in some:
        write(f"{work}/loose/{name}", content(name))
    run(command(f"{work}/loose", f"{work}/straight", "--allow-missing"))
    for path in (tar(f"{work}/a.tar.gz", members(some), "w:gz"), tar(f"{work}/a.tar", members(some)),
                 pack_zip(f"{work}/a.zip", members(some))):
        says(convert(path, f"{path}.out", "--allow-missing"), r"20 found in 1 archive, 40 missing")
        same_tree(f"{work}/straight", f"{path}.out")


@case("--exclude and --view also select images in archives")
def _(work):
    write(f"{work}/exclude.txt", "\n".join(wanted()[::4]))
    options = ["--view", "PA", "--exclude", f"{work}/exclude.txt", "--split", "none"]
    run(command(f"{base()}/images", f"{work}/straight", *options))
    convert(tar(f"{work}/a.tar.gz", members(), "w:gz"), f"{work}/out", *options)
    same_tree(f"{work}/straight", f"{work}/out")


# ---- members of other kinds ------------------------------------------------------------------------------------------


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, None


@case("paths with ../ and absolute ones, links, devices and hidden files: nothing outside is touched")
def _(work):
    first = wanted()[0]
    files = [(f"../../../../{work}/escaped/{n}" if i % 2 else f"/{work}/escaped/{n}", content(n))
             for i, n in enumerate(names())]
    files += [special("link.png", tarfile.SYMTYPE, "/etc/passwd"), special("hard.png", tarfile.LNKTYPE, first),
              special("device.png", tarfile.CHRTYPE), special("fifo.png", tarfile.FIFOTYPE),
              special("folder.png", tarfile.DIRTYPE), ("._" + first, b"apple"), (".hidden/x.png", b"x"),
              ("README.txt", b"hello"), (first + "/", None)]
    before = set(os.listdir(work)) | {"a.tar", "out"}
    done = convert(tar(f"{work}/a.tar", files), f"{work}/out", "--json")
    same_tree(straight(), f"{work}/out")
    assert set(os.listdir(work)) == before
    document = json.loads(done.stdout)["images"]
    assert document["inputs"][0]["others"] == 7 and document["inputs"][0]["images"] == len(names()), document


@case("names in a pax header are bytes, whatever the locale")
def _(work):
    os.mkdir(f"{work}/loose")
    more = ["\u00fcml\u00e4ut.png", "\u0416.jpg", "x" * 200 + ".png"]
    for name in names():
        os.link(f"{base()}/images/{name}", f"{work}/loose/{name}")
    for name in more:
        write(f"{work}/loose/{name}", b"x")
    files = [(f"b\u00e4r/{os.path.basename(n)}", d) for n, d in members()] + [(n, b"x") for n in more]
    run(command(f"{work}/loose", f"{work}/straight"))
    assert len(rejects(f"{work}/straight")) == 5
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        for locale in ("C", "C.UTF-8", "POSIX"):
            out = f"{work}/out{form}{locale}"
            convert(tar(f"{work}/a.tar", files, form=form), out, env=dict(os.environ, LC_ALL=locale))
            same_tree(f"{work}/straight", out)


@case("a member larger than an image may be is a reject, a sparse one of a terabyte too")
def _(work):
    a, b = wanted()[5:7]
    with tarfile.open(f"{work}/a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if os.path.basename(name) not in (a, b):
                archive.addfile(info, io.BytesIO(data))
        info = tarfile.TarInfo(a)
        info.type = tarfile.GNUTYPE_SPARSE
        header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
        header[386:410] = b"%011o\0%011o\0" % (0, 0)  # one piece, of no bytes
        header[483:495] = b"\x80\0\0\0\0\0\1\0\0\0\0\0"  # real size 2^40
        header[148:156] = b"        "
        header[148:156] = b"%06o\0 " % sum(header)
        archive.fileobj.write(bytes(header))
        archive.offset += len(header)
    with open(f"{work}/big", "wb") as f:
        f.truncate((256 << 20) + 1)
    if not shutil.which("gzip") or not shutil.which("tar"):
        raise Skip("no tar and gzip to add a large member with")
    os.rename(f"{work}/big", f"{work}/{b}")
    subprocess.run(["tar", "-rf", f"{work}/a.tar", "-C", work, b], check=True)
    subprocess.run(["gzip", "-1", f"{work}/a.tar"], check=True)
    done = convert(f"{work}/a.tar.gz", f"{work}/out", "--json", code=1)
    found = {r["name"]: r["reason"] for r in rejects(f"{work}/out") if r["kind"] == "image"}
    assert found == {a: "limit", b: "limit"}, found
    assert json.loads(done.stdout)["result"]["converted"] == COUNT - 2


# ---- two of one name -------------------------------------------------------------------------------------------------


@case("the same image twice is counted: in two archives, in one, and next to a folder")
def _(work):
    whole = tar(f"{work}/a.tar.gz", members(), "w:gz")
    twice = tar(f"{work}/b.tar", members() + members(wanted()[:7]))
    for inputs, repeated in (([whole, twice], COUNT + 7), ([twice], 7), ([f"{base()}/images", whole], COUNT),
                             ([whole, f"{base()}/images"], COUNT)):
        out = f"{work}/out{len(os.listdir(work))}"
        document = json.loads(convert(inputs, out, "--json").stdout)
        same_tree(straight(), out)
        assert document["images"]["repeated"] == repeated, (inputs, document["images"])


@case("one name with different content ends with 2, in either order")
def _(work):
    name = wanted()[20]
    other = [(f"images/{name}", content(wanted()[21]))]
    one = tar(f"{work}/one.tar.gz", members(), "w:gz")
    two = tar(f"{work}/two.zip.tar", other)
    os.mkdir(f"{work}/loose")
    write(f"{work}/loose/{name}", other[0][1])
    for i, inputs in enumerate(([one, two], [two, one], [one, f"{work}/loose"], [f"{work}/loose", one])):
        for threads in (1, 5):
            out = f"{work}/out{i}{threads}"
            says(convert(inputs, out, "-j", threads, code=2), f"'{name}' found twice with different content: ",
                 re.escape(one), "two.zip.tar|loose", "--force")
            unpublished(out)
            convert([one], out, "--force")
            same_tree(straight(), out)


def with_crc32c(image, wanted):
    """The PNG that image(x) makes of eight bytes x, so that its CRC-32C, in which each bit of x counts alone, is
    this."""
    none = crc32c(image(bytes(8)))
    rows, found = {}, 0
    for i in range(64):
        row, bits = none ^ crc32c(image((1 << i).to_bytes(8, "little"))), 1 << i
        while row and row.bit_length() in rows:
            row, bits = row ^ rows[row.bit_length()][0], bits ^ rows[row.bit_length()][1]
        if row:
            rows[row.bit_length()] = row, bits
    rest = none ^ wanted
    while rest:
        rest, found = rest ^ rows[rest.bit_length()][0], found ^ rows[rest.bit_length()][1]
    return image(found.to_bytes(8, "little"))


@case("two images of one name, of one size and one checksum, have different content all the same")
def _(work):
    name = wanted()[20]

    def image(gray, x=bytes(8)):
        return png(64, 64, extra=chunk(b"teSt", x), row=lambda y, width: bytes([gray * (y % 2)]) * width)

    white, gray = image(200), with_crc32c(lambda x: image(100, x), crc32c(image(200)))
    assert len(white) == len(gray) and crc32c(white) == crc32c(gray) and white != gray
    one = tar(f"{work}/one.tar", members([n for n in wanted() if n != name]) + [(name, white)])
    two = tar(f"{work}/two.tar", [(name, gray)])
    says(convert([one, two], f"{work}/out", code=2), f"'{name}' found twice with different content: ")
    unpublished(f"{work}/out")


@case("a second image of one name is compared too where its slot is full from an earlier run")
def _(work):
    some = tar(f"{work}/a.tar", members(wanted()[:30]))
    rest = tar(f"{work}/b.tar", members(wanted()[30:]))
    convert(some, f"{work}/out", code=3)
    other = tar(f"{work}/c.tar", [(wanted()[3], content(wanted()[4]))])
    convert([some, rest, other], f"{work}/out", code=2)
    unpublished(f"{work}/out")


# ---- what is missing -------------------------------------------------------------------------------------------------


@case("missing images end with 3 and a list, the parts stay, and a rerun resumes without decoding them again")
def _(work):
    some, rest = wanted()[::2], wanted()[1::2]
    a = tar(f"{work}/a.tar.gz", members(some), "w:gz")
    b = tar(f"{work}/b.tar.gz", members(rest + ["99999999_000.png", "99999998_000.jpg"]), "w:gz")
    done = convert(a, f"{work}/out", "--json", code=3)
    says(done, "30 of 60 images are in none of the inputs", re.escape(rest[0]), r"out/missing\.txt",
         "missing  30 of 60 images: " + r",\s+".join(rest[:5]))
    assert json.loads(done.stdout)["images"]["missing"] == 30
    assert missing_list(f"{work}/out") == rest
    unpublished(f"{work}/out")
    document = json.loads(convert(b, f"{work}/out", "--json", code=0).stdout)
    assert document["result"]["resumed"] == 30 and document["result"]["converted"] == 60
    same_tree(straight(), f"{work}/out")


@case("a part of the archives: little space is taken, the end says how to go on, and --allow-missing can be added")
def _(work):
    some = tar(f"{work}/a.tar", members(wanted()[:6]))
    rest = tar(f"{work}/b.tar", members(wanted()[6:]))
    size = ("--size", "256", "--shard-size", "30")
    done = convert(some, f"{work}/out", *size, code=3)
    says(done, "next     the same command with the other archives in addition resumes", "or with --allow-missing")
    taken = sum(e.stat(follow_symlinks=False).st_blocks * 512 for e in os.scandir(f"{work}/out"))
    assert taken < 1 << 20, f"{taken} bytes for 6 images of 65 kB"
    convert([some], f"{work}/new", "--allow-missing", *size)
    convert([some], f"{work}/out", "--allow-missing", "--part", "1/2", *size, code=6)  # others may be at work beside it
    says(convert([some], f"{work}/out", "--allow-missing", *size), "again    the unfinished conversion here counted on")
    same_tree(f"{work}/new", f"{work}/out")
    # What is published stays, and so does what another label file or other options have begun.
    convert([some, rest], f"{work}/all", *size)
    before = tree(f"{work}/all")
    convert([some], f"{work}/all", "--allow-missing", *size, code=6)
    same_tree(before, f"{work}/all")
    convert(some, f"{work}/other", *size, "--seed", "7", code=3)
    before = tree(f"{work}/other")
    convert(some, f"{work}/other", "--allow-missing", *size, code=6)
    same_tree(before, f"{work}/other")


@case("archives that come one by one: --allow-missing is offered with all of them, not with the last one alone")
def _(work):
    a = tar(f"{work}/a.tar", members(wanted()[:20]))
    b = tar(f"{work}/b.tar", members(wanted()[20:40]))
    done = convert(a, f"{work}/out", code=3)
    says(done, "or with --allow-missing: it leaves out what is missing")
    done = convert(b, f"{work}/out", code=3)
    says(done, "resume ", "or with --allow-missing and all archives so far")
    assert "--allow-missing: it leaves out" not in done.stderr, done.stderr
    convert([a, b], f"{work}/out", "--allow-missing")
    complete(f"{work}/out")
    convert([a, b], f"{work}/new", "--allow-missing")
    same_tree(f"{work}/new", f"{work}/out")


@case("an archive without members or without images is not an error")
def _(work):
    empty = tar(f"{work}/empty.tar.gz", [], "w:gz")
    other = tar(f"{work}/other.tar", [("LICENSE", b"text")])
    convert([empty, other, tar(f"{work}/a.tar", members())], f"{work}/out")
    same_tree(straight(), f"{work}/out")
    says(convert([empty], f"{work}/none", code=3), "60 of 60 images are in none of the inputs")


@case("--dry-run reads no archive but reports what it expects; with --allow-missing it reads them")
def _(work):
    a = tar(f"{work}/a.tar.gz", members(wanted()[:25]), "w:gz")
    done = convert(a, f"{work}/out", "-n")
    says(done, "60 expected in 1 archive, not read yet, 0 without",
         "next     -n does not read the archive: with --allow-missing")
    assert "missing, " not in done.stderr, done.stderr
    says(convert(a, f"{work}/out", "-n", "--allow-missing"), "25 found in 1 archive, 35 missing")
    assert not os.path.exists(f"{work}/out")


# ---- archives that are not whole -------------------------------------------------------------------------------------


@case("a file that is not an archive, an empty file, a FIFO, a missing file: exit code 3, and nothing is written")
def _(work):
    text = write(f"{work}/page.tar.gz", b"<html>log in</html>" * 1000)
    says(convert(text, f"{work}/out", code=3),
         "page.tar.gz' is neither a folder nor a .png or .jpg file: not a tar or zip archive: looks like HTML: the "
         "download failed")
    says(convert(write(f"{work}/labels.gz", gzip.compress(b"a,b,c\n" * 500)), f"{work}/out", code=3),
         "labels.gz' is neither .*: it is compressed, but contains no tar")
    says(convert(write(f"{work}/empty.tar.gz", b""), f"{work}/out", code=3), "empty file .download interrupted")
    says(convert(f"{work}/absent.tar.gz", f"{work}/out", code=3), "absent.tar.gz")
    os.mkfifo(f"{work}/fifo.tar")
    says(convert(f"{work}/fifo.tar", f"{work}/out", code=3), "fifo.tar': not a regular file")
    assert not os.path.exists(f"{work}/out")


def damaged(work):
    """(path, its whole form, what is said) of archives that are not whole, of the first half of the images."""
    half = members(wanted()[:30])
    for name, data in (("tar", slurp(tar(f"{work}/0.tar", half))), ("gz", slurp(tar(f"{work}/0.gz", half, "w:gz"))),
                       ("xz", slurp(tar(f"{work}/0.xz", half, "w:xz"))),
                       ("bz2", slurp(tar(f"{work}/0.bz2", half, "w:bz2"))),
                       ("zip", slurp(pack_zip(f"{work}/0.zip", half)))):
        yield f"cut.{name}", data, data[:len(data) // 2]
        if name != "tar":
            middle = bytearray(data)
            middle[len(data) // 2:len(data) // 2 + 64] = bytes(64)
            yield f"hole.{name}", data, bytes(middle)
    data = slurp(f"{work}/0.gz")
    yield "crc.gz", data, data[:-8] + b"abcd" + data[-4:]
    yield "length.gz", data, data[:-1] + b"\7"
    yield "end.gz", data, data[:-5]


@case("of a damaged archive all is used that can be, the others are read to the end; mended, the same command finishes")
def _(work):
    rest = tar(f"{work}/rest.tar.gz", members(wanted()[30:] + ["99999998_000.jpg", "99999999_000.png"]), "w:gz")
    count = 0
    for name, whole, broken in list(damaged(work)):
        out, path = f"{work}/{name}.out", write(f"{work}/{name}", broken)
        done = convert([path, rest], out, code=1)
        says(done, rf"damaged  '{re.escape(path)}' at byte [\d,]+: \S+")
        if os.path.exists(f"{out}/missing.txt"):
            count += 1
            unpublished(out)
            lost = missing_list(out)
            assert 1 <= len(lost) <= 30 and set(lost) <= set(wanted()[:30]), (name, lost)
            says(done, rf"chex-convert: '{re.escape(path)}' is damaged at byte [\d,]+: .*; "
                 rf"{len(lost)} image(s are| is) missing")
            convert([path, rest], out, "--allow-missing", code=1)  # nobody knows what it held
            unpublished(out)
            write(path, whole)
            document = json.loads(convert([path, rest], out, "--json").stdout)
            bad = len(re.findall("^reject ", done.stderr, re.M))
            assert document["result"]["resumed"] == 60 - len(lost) - bad, name
        elif not os.path.exists(f"{out}/manifest.json"):
            says(done, "images were rejected")  # damage that only the images themselves show
            write(path, whole)
            convert([path, rest], out)
        else:
            assert name in ("crc.gz", "length.gz", "end.gz", "hole.bz2", "hole.zip"), name  # all images came before it
        same_tree(straight(), out)
    assert count >= 8, count


def cut_between_members(work, have):
    """(path, what is said) of archives of these images that lack the last one, cut where no member is hurt."""
    whole = slurp(tar(f"{work}/whole.tar", members(have), form=tarfile.USTAR_FORMAT))
    with tarfile.open(f"{work}/whole.tar") as archive:
        last = archive.getmembers()[-1].offset
    cut = whole[:last]
    for name, pack in (("tar", bytes), ("tar.gz", gzip.compress), ("tar.xz", lzma.compress), ("tar.bz2", bz2.compress)):
        yield write(f"{work}/cut.{name}", pack(cut)), r"the archive has no end \(the file ends there\)"
        zeros = cut + bytes((1 << 20) + 2048)
        yield (write(f"{work}/zeros.{name}", pack(zeros)),
               "more than 1 MiB of zeros after its last member: download int")
    # Two whole archives put together, and a bit of the second one's first bytes is wrong.
    ends = bytes(1024)
    for name, pack in (("gz", gzip.compress), ("bz2", bz2.compress)):
        second = bytearray(pack(whole[last:]))
        second[1] ^= 4
        yield write(f"{work}/second.{name}", pack(cut + ends) + second), "what follows the .* stream is neither"


@case("an archive cut between two members is damaged, whether or not images may be missing")
def _(work):
    have = wanted()[:12]
    for path, text in cut_between_members(work, have):
        text = rf"'{re.escape(path)}' is damaged at byte [\d,]+: {text}"
        says(convert(path, f"{path}.out", "--allow-missing", code=1), text, "fetch it again")
        assert not os.path.exists(f"{path}.out/manifest.json")
        says(convert([path, f"{base()}/images"], f"{path}.all", code=1), "1 damaged archive")
        same_tree(straight(), f"{path}.all")
    says(convert(f"{work}/cut.tar", f"{work}/out", code=1), "49 images are missing", "fetch it again")
    assert missing_list(f"{work}/out") == wanted()[11:]


@case("tars of every program, with records of up to 1 MiB, are complete, with many files and with none")
def _(work):
    os.mkdir(f"{work}/loose")
    for name in names():
        os.link(f"{base()}/images/{name}", f"{work}/loose/{name}")
    programs = [p for p in ("tar", "bsdtar") if shutil.which(p)]
    for tool in programs:
        for blocks, form, count in ((1, "ustar", 5), (20, "pax", 0), (20, "pax", 6), (2047, "ustar", 3),
                                    (2048, "ustar", 0), (2048, "pax", 4)):
            path = write(f"{work}/a.tar", b"")
            chosen = write(f"{work}/list", "".join(n + "\n" for n in names()[:count]))
            subprocess.run([tool, "-c", "-b", str(blocks), f"--format={form}", "-f", path, "-C", f"{work}/loose",
                            "-T", chosen], check=True)
            assert os.path.getsize(path) % (512 * blocks) == 0
            packed = write(f"{work}/a.tar.gz", gzip.compress(slurp(path), 1))
            convert([path, packed, f"{base()}/images"], f"{work}/out", "-f")
            same_tree(straight(), f"{work}/out")
    if len(programs) < 2:
        raise Skip("there is no tar or no bsdtar; the others are good")


@case("a zip that is encrypted ends with 2 and says so, before anything is written")
def _(work):
    path = pack_zip(f"{work}/a.zip", [("images/", b""), *members(wanted()[:3])], zipfile.ZIP_STORED)
    data = bytearray(slurp(path))
    for magic, flags in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        at = data.find(magic, 1)  # all but the folder
        while at > 0:
            data[at + flags] |= 1
            at = data.find(magic, at + 1)
    says(convert(write(path, bytes(data)), f"{work}/out", code=2), "a.zip': it is encrypted: unpack it by hand")
    assert not os.path.exists(f"{work}/out")


@case("a flipped bit in the header of a tar's member loses that image alone")
def _(work):
    data = bytearray(slurp(tar(f"{work}/a.tar", members(), form=tarfile.USTAR_FORMAT)))
    at = data.find(f"images/{wanted()[10]}".encode())
    data[at + 8] ^= 1
    out = f"{work}/out"
    done = convert(write(f"{work}/a.tar", bytes(data)), out, code=1)
    says(done, "damaged  .*Damaged tar archive")
    assert missing_list(out) == [wanted()[10]]


@case("--allow-rejects publishes the readable images of a damaged archive, the others as rejects")
def _(work):
    data = slurp(tar(f"{work}/0.tar.gz", members(), "w:gz"))
    path = write(f"{work}/a.tar.gz", data[:len(data) - len(data) // 10])
    done = convert(path, f"{work}/out", code=1)
    lost = missing_list(f"{work}/out")
    assert 0 < len(lost) < 15
    convert(path, f"{work}/out", "--allow-rejects", len(lost) - 1, code=1)
    unpublished(f"{work}/out")
    done = convert(path, f"{work}/out", "--allow-rejects", len(lost))
    says(done, f"reject {lost[0]}: the archive that held it is damaged", "within --allow-rejects", "1 damaged archive")
    complete(f"{work}/out")
    assert sorted(r["name"] for r in rejects(f"{work}/out") if r["kind"] == "image") == lost
    assert sorted(images(f"{work}/out")) == [n for n in wanted() if n not in lost]
    assert not os.path.exists(f"{work}/out/missing.txt")
    convert(path, f"{work}/second", "--allow-rejects", "50%", "-j", 5)
    same_tree(f"{work}/out", f"{work}/second")


@case("a wrong checksum at the very end is said, with 1, although all images are there")
def _(work):
    data = slurp(tar(f"{work}/0.tar.gz", members(), "w:gz"))
    says(convert(write(f"{work}/a.tar.gz", data[:-8] + b"abcd" + data[-4:]), f"{work}/out", code=1), "checksum error")
    same_tree(straight(), f"{work}/out")


@case("--force removes the list of missing images, and no other file")
def _(work):
    a = tar(f"{work}/a.tar", members(wanted()[:30]))
    convert(a, f"{work}/out", code=3)
    write(f"{work}/out/missing.text", "mine")
    write(f"{work}/out/.missing.txt.tmp.123", "left by a kill")
    convert(f"{base()}/images", f"{work}/out", "--force")
    os.remove(f"{work}/out/missing.text")
    same_tree(straight(), f"{work}/out")


# ---- interruptions ---------------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def slow_set():
    """Two archives and a folder whose conversion takes a while, and the folder of a straight run."""
    folder = os.path.join(CACHE, "slow")
    synth(folder, 160, "--size", "384")
    files = [("images/" + n, slurp(f"{folder}/images/{n}")) for n in sorted(os.listdir(f"{folder}/images"))]
    inputs = [tar(f"{folder}/a.tar.gz", files[:60], "w:gz"), tar(f"{folder}/b.tar", files[60:120])]
    os.mkdir(f"{folder}/c")
    for name, data in files[120:]:
        write(f"{folder}/c/{os.path.basename(name)}", data)
    inputs.append(f"{folder}/c")
    write(f"{folder}/c/stray.png", b"x")
    out = os.path.join(CACHE, "slow-straight")
    csv = os.path.join(folder, "Data_Entry_2017_v2020.csv")
    run(command(inputs, out, *SLOW_OPTIONS, csv=csv))
    complete(out)
    return inputs, csv, out


SLOW_OPTIONS = ["--resize", "lanczos", "--size", "256"]


def start(inputs, out, *options, csv=None):
    # pylint: disable=consider-using-with
    return subprocess.Popen([str(x) for x in command(inputs, out, *options, csv=csv)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@case("killed and resumed, the folder equals that of an uninterrupted run")
def _(work):
    need_archives()
    inputs, csv, reference = slow_set()
    for threads in (1, 2, 5):
        out = f"{work}/{threads}"
        for change in (100, 100, 50):  # of some 380
            ended = harness.run([*map(str, command(inputs, out, *SLOW_OPTIONS, "-j", threads, csv=csv))], [out],
                                f"change:{change}:once:kill")
            assert ended.code == -signal.SIGKILL, f"exit code {ended.code}: {ended.err}"
        run(command(inputs, out, *SLOW_OPTIONS, "-j", threads, csv=csv))
        complete(out)
        same_tree(reference, out)


@case("SIGTERM ends with 75 at once, and the same command resumes")
def _(work):
    need_archives()
    inputs, csv, reference = slow_set()
    for threads in (1, 3):
        out = f"{work}/{threads}"
        process = start(inputs, out, *SLOW_OPTIONS, "-j", threads, csv=csv)
        while not glob.glob(f"{out}/.chestxray14-*.part") and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        _, text = process.communicate(timeout=PATIENCE)
        assert process.returncode == 75, f"exit code {process.returncode}\n{text}"
        unpublished(out)
        run(command(inputs, out, *SLOW_OPTIONS, csv=csv))
        same_tree(reference, out)


# ---- what a small file may ask for -----------------------------------------------------------------------------------


def ask_for_4_gib(path):
    """A .tar.xz whose first block header says a dictionary of 4 GiB, which is allowed."""
    data = bytearray(lzma.compress(slurp(tar(path, members()))))
    size = (data[12] + 1) * 4
    header = data[12:12 + size]
    header[header.index(b"\x21\x01") + 2] = 40
    header[-4:] = struct.pack("<I", zlib.crc32(header[:-4]))
    data[12:12 + size] = header
    return write(path, data)


@case("a .tar.xz that asks for 4 GiB of memory, and a zip that may, are refused; --max-memory allows it")
def _(work):
    need_archives()
    for path, text in ((ask_for_4_gib(f"{work}/a.tar.xz"), "it takes 4097 MiB of memory"),
                       (pack_zip(f"{work}/lzma.zip", members(), zipfile.ZIP_LZMA), "it may take 4160 MiB of memory")):
        out = f"{path}.out"
        peak, done = peak_kib([str(a) for a in command(path, out)], 1)
        says(done, f"refused  '{re.escape(path)}' at byte .*{text}, --max-memory allows 128 MiB", "is refused at byte",
             "allow it, or pack it again")
        assert peak < 600 << 10, f"{peak} KiB"
        unpublished(out)
        says(convert(path, f"{out}-2", "--allow-missing", code=1), text)
        inspect = [program("chex-inspect"), "source", "-l", labels(), "-i", path]
        assert re.search(rf"refused at byte \S+ of .*{text}", run(inspect, 1).stdout)
        convert(path, out, "--max-memory", "5G")
        same_tree(straight(), out)
        assert text not in run([*inspect, "--max-memory", "5G"], 1).stdout  # an image has no row, one is none
    convert(path, f"{work}/no", "--max-memory", "4", code=2)


def zip_with_long_list(path, count):
    """A zip whose list has this number of members of 46 bytes, the least that there can be: all are one empty file."""
    header = struct.pack("<I5H3I2H", 0x04034b50, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0) + b"x"
    entry = struct.pack("<I6H3I5H2I", 0x02014b50, 20, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    size, at = count * len(entry), len(header)
    end = struct.pack("<IQ2H2I4Q", 0x06064b50, 44, 45, 45, 0, 0, count, count, size, at)
    end += struct.pack("<IIQI", 0x07064b50, 0, at + size, 1)
    end += struct.pack("<I4H2IH", 0x06054b50, 0, 0, 0xffff, 0xffff, size, at, 0)
    return write(path, header + entry * count + end)


@case("the list of a zip takes no more memory than four times the file, however often the zip is opened")
def _(work):
    need_archives()
    with open(program("chex-convert"), "rb") as f:
        if b"__asan_init" in f.read():
            raise Skip("the address sanitizer keeps what is freed")
    peaks = {}
    for count in (1, 400000):
        path = zip_with_long_list(f"{work}/{count}.zip", count)
        out = f"{work}/{count}"
        for name, words in (("convert", command(path, out + "-a", "-j", 2)),
                            ("allow", command([f"{base()}/images", path], out + "-b", "-j", 1, "--allow-missing")),
                            ("source", [program("chex-inspect"), "source", "-l", labels(), "-i", path])):
            peaks[name, count], done = peak_kib([str(word) for word in words], None)
            assert done.returncode == {"convert": 3, "allow": 0, "source": 1}[name], done.stderr
    for name in ("convert", "allow", "source"):
        factor = (peaks[name, 400000] - peaks[name, 1]) * 1024 / os.path.getsize(path)
        assert factor <= 4, f"{name}: {factor:.1f} times the file"  # SECURITY.md says four


@case("too little memory ends with 4, in an archive of any form, and is never taken for damage")
def _(work):
    forms = (("w", "tar"), ("w:gz", "tar.gz"), ("w:xz", "tar.xz"), ("w:bz2", "tar.bz2"))
    paths = [tar(f"{work}/a.{form}", members(), mode) for mode, form in forms]
    paths.append(pack_zip(f"{work}/a.zip", members()))
    with open(program("chex-convert"), "rb") as f:
        if b"__asan_init" in f.read():
            raise Skip("the address sanitizer needs terabytes of address space")
    for path in paths:
        codes, kib, out = set(), 20000, f"{path}.out"
        # From what is too little to load the program to what is enough.
        while kib < 2 << 20 and not (0 in codes and kib > 80000):
            done = run(["sh", "-c", f"ulimit -v {kib}; exec \"$@\"", "sh",
                        *command(path, out, "-j", 1, "-q", "--allow-rejects", "100%")], None)
            loaded = "error while loading" not in done.stderr
            assert done.returncode in (0, 4) or not loaded, (kib, done.returncode, done.stderr)
            if done.returncode == 0:
                same_tree(straight(), out)
                shutil.rmtree(out)
            elif done.returncode == 4 and loaded:
                says(done, "out of memory")
                assert not os.path.exists(f"{out}/manifest.json")
            codes.add(done.returncode)
            kib += 4000 if kib < 100000 else kib // 8
        assert 0 in codes and (4 in codes or ".xz" not in path), codes
        shutil.rmtree(out, ignore_errors=True)


def tar_with_huge_member(path, pack, gib):
    """A member of zeros, a multiple of 16 MiB that were packed once, and the images behind it."""
    info = tarfile.TarInfo("disk.img")
    info.size = gib << 30
    piece = pack(bytes(16 << 20))
    images = slurp(tar(f"{path}.tar", members()))
    return write(path, pack(info.tobuf(tarfile.GNU_FORMAT)) + piece * (gib * 64) + pack(images))


def children_used():
    """Seconds of the processor that processes took which have ended and were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def used(pid):
    """Those that a process took until now."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@case("SIGTERM inside a member of gigabytes from a small archive ends with 75 before all of it is read")
def _(work):
    need_archives()
    for form, pack in (("tar.bz2", bz2.compress), ("tar.xz", lzma.compress), ("tar.gz", gzip.compress)):
        path = tar_with_huge_member(f"{work}/a.{form}", pack, 7)
        before = children_used()
        process = start(path, f"{work}/{form}", *SMALL)
        while not os.path.exists(f"{work}/{form}/.chex.lock") and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.3)
        before += used(process.pid)
        process.send_signal(signal.SIGTERM)
        _, text = process.communicate(timeout=PATIENCE)
        assert process.returncode == 75, f"{form}: exit code {process.returncode}\n{text}"
        took = children_used() - before
        assert took < 2, f"{form}: {took:.1f} s of the processor after the signal"
        unpublished(f"{work}/{form}")


@case("a tail of zeros is rejected early: eight terabytes of it cost no more than a megabyte")
def _(work):
    path = tar(f"{work}/a.tar", members())
    with open(path, "ab") as f:
        f.truncate(1 << 43)
    # At three GB a second all of it would take longer than run() waits.
    says(convert(path, f"{work}/out", code=1), "more than 1 MiB of zeros after its last member", "1 damaged archive")
    same_tree(straight(), f"{work}/out")
    for form, pack in (("bz2", bz2.compress), ("xz", lzma.compress), ("gz", gzip.compress)):
        path = write(f"{work}/b.{form}", pack(slurp(tar(f"{work}/b.tar", members()))) + pack(bytes(16 << 20)) * 640)
        before = children_used()
        says(convert(path, f"{work}/{form}", code=1), "more than 1 MiB of zeros after its last member")
        assert children_used() - before < 2, f"{form}: {children_used() - before:.1f} s of the processor"
        same_tree(straight(), f"{work}/{form}")


@case("the header of a tar's member may not be endless")
def _(work):
    info = tarfile.TarInfo("sparse.img")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 0)  # one piece, of no bytes
    header[482] = 1  # another block of pieces follows
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    block = bytearray(512)
    block[504] = 1
    data = slurp(tar(f"{work}/a.tar", members()))
    with tarfile.open(f"{work}/a.tar") as archive:
        last = archive.getmembers()[-1]
    end = last.offset_data + (last.size + 511) // 512 * 512
    path = write(f"{work}/a.tar.gz", gzip.compress(data[:end] + header + block * (20 << 11) + bytes(1024)))
    says(convert(path, f"{work}/out", code=1), "the header of a member has more than 4 MiB")
    same_tree(straight(), f"{work}/out")


@case("a limit on the size of files ends with 4 while archives are read, and a rerun resumes")
def _(work):
    path = tar(f"{work}/a.tar.gz", members(), "w:gz")
    stride = manifest(straight())["record"]["stride"]
    for threads in (1, 4):
        out = f"{work}/{threads}"
        convert(path, out, "-j", threads, code=4,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3 * stride, 3 * stride)))
        unpublished(out)
        convert(path, out)
        same_tree(straight(), out)


@case("--strict stops at the first reject in an archive")
def _(work):
    files = [(n, b"" if i == 30 else d) for i, (n, d) in enumerate(members())]
    for threads in (1, 4):
        says(convert(tar(f"{work}/a.tar", files), f"{work}/{threads}", "--strict", "-j", threads, code=1), "--strict")
        unpublished(f"{work}/{threads}")


@case("--json is valid by its schema, also with a damaged archive")
def _(work):
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError as e:
        raise Skip("no Python module jsonschema") from e
    schema = json.loads(slurp(os.path.join(SOURCE, "schemas", "convert.schema.json")))
    data = slurp(tar(f"{work}/0.tar.gz", members(), "w:gz"))
    path = write(f"{work}/a.tar.gz", data[:len(data) // 2])
    for inputs, options, code in (([path], [], 1), ([f"{work}/0.tar.gz"], [], 0), ([path], ["-n"], 0)):
        done = convert(inputs, f"{work}/out{code}", "--json", *options, code=code)
        jsonschema.validate(json.loads(done.stdout), schema)


@case("a build without libarchive says so with 3")
def _(work):
    if has_archives():
        raise support.OtherBuild("this is a build with libarchive")
    says(run(command(tar(f"{work}/a.tar", members()), f"{work}/out"), 3), "built without libarchive")
    assert not os.path.exists(f"{work}/out")


if __name__ == "__main__":
    sys.exit(case.main())
