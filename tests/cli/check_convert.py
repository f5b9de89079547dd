#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line of chex-convert: exit codes, messages, and what is in the folder afterwards (Python 3, stdlib).

    check_convert.py [PATTERN]      only the cases whose name matches the regular expression

$CHEX_CONVERT and $CHEX_SYNTH are the programs, $CHEX_NIH a folder with files of the real data set.  With CHEX_SLOW=1
the cases that take minutes are run, and only these.
"""
import functools
import glob
import gzip
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import harness
from fixtures import fixture
from support import (PATIENCE, Cases, Skip, cache_folder, chunks, complete, images, joined, manifest, next_command, nih,
                     png, png_gray, program, read_csv, records, rejects, run, same_tree, says, slurp, synth, tree,
                     write, write_csv)

case = Cases()
CACHE = cache_folder("cases")
SMALL = ["--size", "32", "--shard-size", "8"]


def base():
    """60 small images with lists; read only."""
    return fixture("images")


def larger():
    """Images that take a while; read only."""
    return fixture("larger")


def labels_of(folder):
    return os.path.join(folder, "Data_Entry_2017_v2020.csv")


def command(folder, out, *options, labels=None):
    return [program("chex-convert"), "-i", os.path.join(folder, "images"), "-l", labels or labels_of(folder), "-o", out,
            *SMALL, *options]


def convert(folder, out, *options, code=0, labels=None, **how):
    return run(command(folder, out, *options, labels=labels), code, **how)


@functools.lru_cache(None)
def straight(*options):
    """The folder of a conversion of base() with these options."""
    if not options:
        return fixture("dataset")
    out = tempfile.mkdtemp(dir=CACHE)
    convert(base(), out, *options)
    complete(out)
    return out


def nothing_at(path):
    assert not os.path.exists(path), f"{path} was made"


def copy_of(folder, work, name="copy"):
    """A copy whose files may be changed."""
    return shutil.copytree(folder, os.path.join(work, name))


def change_rows(folder, change):
    """Rewrite the label file: change(rows) returns the new rows (a list of lists)."""
    header, rows = read_csv(labels_of(folder))
    write_csv(labels_of(folder), header, change(rows))


# ---- the same bytes ------------------------------------------------------------------------------------------------


@case("another order of the rows changes nothing but the hash of the label file")
def _(work):
    folder = copy_of(base(), work)
    change_rows(folder, lambda rows: random.Random(1).sample(rows, len(rows)))
    convert(folder, f"{work}/out")
    a, b = manifest(straight()), complete(f"{work}/out")
    assert a.pop("labels_sha256") != b.pop("labels_sha256")
    assert a.pop("manifest_sha256") != b.pop("manifest_sha256")
    assert a == b


@case("BOM, CRLF, a missing final newline and a trailing comma in the header are read")
def _(work):
    folder = copy_of(base(), work)
    lines = slurp(labels_of(folder)).decode().splitlines()
    lines[0] += ","
    write(labels_of(folder), "\ufeff" + "\r\n".join(lines))
    convert(folder, f"{work}/out")
    assert manifest(f"{work}/out")["shards"] == manifest(straight())["shards"]


@case("time zone and a locale with decimal commas change nothing")
def _(work):
    environment = dict(os.environ, TZ="Pacific/Kiritimati", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8", LOCPATH=work)
    made = shutil.which("localedef") and subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", f"{work}/de_DE.UTF-8"], capture_output=True, check=False)
    convert(base(), f"{work}/out", env=environment)
    same_tree(straight(), f"{work}/out")
    if not made or not os.path.isdir(f"{work}/de_DE.UTF-8"):
        raise Skip("the locale de_DE cannot be made here (Debian: apt-get install locales); without it all is well")


@case("sixteen file descriptors are enough")
def _(work):
    convert(base(), f"{work}/out", "-j", 2,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
    same_tree(straight(), f"{work}/out")


# ---- what is in a record -------------------------------------------------------------------------------------------


@case("--resize none keeps every pixel; labels, patient, age, sex and view equal the row")
def _(work):
    convert(base(), f"{work}/out", "--resize", "none", "--size", 64)
    complete(f"{work}/out")
    found = images(f"{work}/out")
    _, rows = read_csv(labels_of(base()))
    names = manifest(f"{work}/out")["labels"]
    assert sorted(found) == sorted(r[0] for r in rows)
    for name, findings, _, patient, age, sex, view, *_ in rows:
        r = found[name]
        assert r["image"] == png_gray(slurp(f"{base()}/images/{name}"))[2], f"pixels of {name}"
        assert r["label"] == [int(n in findings.split("|")) for n in names], f"labels of {name}"
        assert (r["patient"].decode(), r["age"], r["sex"].decode(), r["view"].decode()) == \
            (patient.zfill(8), float(age), sex, view), f"values of {name}"


@case("every method of --resize gives other pixels for the same records")
def _(work):
    for method in ("bilinear", "area", "lanczos"):
        convert(base(), f"{work}/{method}", "--resize", method)
        assert complete(f"{work}/{method}")["decode"]["resize"] == method
    a, b, c = (images(f"{work}/{m}") for m in ("bilinear", "area", "lanczos"))
    assert set(a) == set(b) == set(c)
    assert a != b != c != a
    for name, record in a.items():
        assert [record[k] for k in ("label", "age", "patient")] == [b[name][k] for k in ("label", "age", "patient")]


@case("--resize none refuses an image of another size, as a reject")
def _(work):
    folder = copy_of(base(), work)
    name = sorted(os.listdir(f"{folder}/images"))[5]
    write(f"{folder}/images/{name}", png(65, 64))
    convert(folder, f"{work}/out", "--resize", "none", "--size", 64, code=1)
    assert [r["name"] for r in rejects(f"{work}/out")] == [name]


@case("--align gives strides that are multiples, and the same pixels")
def _(work):
    pixels = {n: r["image"] for n, r in images(straight()).items()}
    for align in (64, 512, 4096):
        convert(base(), f"{work}/{align}", "--align", align)
        m = complete(f"{work}/{align}")
        assert m["record"]["stride"] % align == 0 and m["record"]["pixel_offset"] % 64 == 0
        assert {n: r["image"] for n, r in images(f"{work}/{align}").items()} == pixels


@case("--tail pad fills with copies of weight 0, short ends the shard, drop leaves images out")
def _(work):
    counts = {}
    for tail in ("pad", "short", "drop"):
        convert(base(), f"{work}/{tail}", "--tail", tail, "--shard-size", 7)
        m = complete(f"{work}/{tail}")
        counts[tail] = sum(s["images"] for s in m["shards"])
        for shard in m["shards"]:
            weights = [r["weight"] for r in records(f"{work}/{tail}", shard, m)]
            assert sum(weights) == shard["images"] and len(weights) == shard["records"]
            assert tail == "short" or len(weights) == 7
            assert tail == "pad" or 0 not in weights
    assert counts["pad"] == counts["short"] == 60 > counts["drop"] > 30, counts


@case("the manifest of synthetic images says so; shards and id equal those of images without this note")
def _(work):
    folder = f"{work}/in"
    shutil.copytree(base(), folder)
    assert "SYNTHETIC" in slurp(f"{folder}/SYNTHETIC.txt").decode()
    convert(folder, f"{work}/synthetic")
    os.remove(f"{folder}/SYNTHETIC.txt")
    convert(folder, f"{work}/others")
    synthetic, others = (tree(f"{work}/{name}") for name in ("synthetic", "others"))
    assert {n: d for n, d in synthetic.items() if n != "manifest.json"} == \
        {n: d for n, d in others.items() if n != "manifest.json"}
    shutil.copy(f"{base()}/SYNTHETIC.txt", f"{folder}/images")  # here too, the label file may come from elsewhere
    shutil.copy(labels_of(folder), f"{work}/labels.csv")
    run([program("chex-convert"), "-q", "-i", f"{folder}/images", "-l", f"{work}/labels.csv", "-o", f"{work}/moved"])
    assert manifest(f"{work}/moved")["synthetic"] is True
    m, n = manifest(f"{work}/synthetic"), manifest(f"{work}/others")
    assert m.pop("synthetic") is True and "synthetic" not in n
    assert m.pop("manifest_sha256") != n.pop("manifest_sha256") and m == n


@case("a padding record is a copy of an image of the same split")
def _(work):
    m = manifest(straight())
    for split in m["splits"]:
        whole = images(straight(), split["name"])
        for shard in m["shards"]:
            for r in records(straight(), shard, m) if shard["split"] == split["name"] else ():
                original = whole[r["filename"].decode()]
                assert r["image"] == original["image"] and r["label"] == original["label"]


@case("--seed changes the order and nothing else")
def _(work):
    convert(base(), f"{work}/out", "--seed", 5)
    a, b = images(straight()), images(f"{work}/out")
    assert list(a) != list(b) and set(a) == set(b)
    assert all(a[n]["image"] == b[n]["image"] for n in a)


@case("--index dali writes offset and length of every record, also next to a complete data set")
def _(work):
    out = f"{work}/out"
    for options in ([], ["--index", "dali"]):
        convert(base(), out, *options)
    convert(base(), f"{work}/second", "--index", "dali")
    same_tree(out, f"{work}/second")
    m = complete(out)
    for shard in m["shards"]:
        stride = m["record"]["stride"]
        wanted = "".join(f"{i * stride} {stride}\n" for i in range(shard["records"]))
        assert slurp(f"{out}/{shard['name']}.idx").decode() == wanted


@case("images in other forms are converted and counted")
def _(work):
    synth(f"{work}/odd", 60, "--size", 64, "--odd", "60")
    done = convert(f"{work}/odd", f"{work}/out", "--json")
    noticed = json.loads(done.stdout)["result"]["noticed"]
    assert noticed["rgba"] > 0, noticed
    assert sum(noticed[k] for k in ("deep", "palette", "interlaced")) > 0, noticed
    assert len(images(f"{work}/out")) == 60


@case("one image may be given instead of a folder")
def _(work):
    name = sorted(os.listdir(f"{base()}/images"))[0]
    run([program("chex-convert"), "-i", f"{base()}/images/{name}", "-l", labels_of(base()), "-o", f"{work}/out", *SMALL,
         "--allow-missing"])
    assert list(images(f"{work}/out")) == [name]


# ---- splits and selection ------------------------------------------------------------------------------------------


def split_of(patient, a, b, seed):
    """chex-convert(1), SPLITS"""
    text = f"chex-split:{seed}:{patient}".encode()
    percent = int.from_bytes(hashlib.sha256(text).digest()[:8], "big") * 100 >> 64
    return "train" if percent < a else "val" if percent < a + b else "test"


def members(out):
    return {s["name"]: set(images(out, s["name"])) for s in manifest(out)["splits"]}


def grouped(pairs):
    wanted = {}
    for name, split in pairs:
        wanted.setdefault(split, set()).add(name)
    return wanted


@case("the official split follows the lists, and val is a tenth of the patients of train_val_list.txt")
def _(work):
    convert(base(), f"{work}/out", "--split", "official")
    same_tree(straight(), f"{work}/out")
    test = set(slurp(f"{base()}/test_list.txt").decode().split())
    rows = read_csv(labels_of(base()))[1]
    wanted = grouped((r[0], "test" if r[0] in test else "val" if split_of(r[3].zfill(8), 10, 0, 0) == "train" else
                      "train") for r in rows)
    assert members(f"{work}/out") == wanted


@case("--split patient follows the rule of the page, without lists it is the default")
def _(work):
    rows = read_csv(labels_of(base()))[1]
    for rule, (a, b, seed) in {"patient:60,20,20:7": (60, 20, 7), "patient:70,10,20": (70, 10, 0)}.items():
        convert(base(), f"{work}/{seed}", "--split", rule)
        assert members(f"{work}/{seed}") == grouped((r[0], split_of(r[3].zfill(8), a, b, seed)) for r in rows)
    alone = shutil.copy(labels_of(base()), f"{work}/labels.csv")
    convert(base(), f"{work}/default", labels=alone)
    same_tree(f"{work}/0", f"{work}/default")


@case("--split none and --split file:PATH")
def _(work):
    convert(base(), f"{work}/none", "--split", "none")
    assert {k: len(v) for k, v in members(f"{work}/none").items()} == {"all": 60}
    rows = read_csv(labels_of(base()))[1]
    pairs = [(r[0], "dev" if int(r[3]) % 3 == 0 else "train") for r in rows]
    write(f"{work}/split.csv", "Image Index,split\n" + "".join(f"{n},{s}\n" for n, s in pairs))
    convert(base(), f"{work}/file", "--split", f"file:{work}/split.csv")
    assert members(f"{work}/file") == grouped((n, "val" if s == "dev" else s) for n, s in pairs)


@case("--view and --exclude leave images out")
def _(work):
    rows = read_csv(labels_of(base()))[1]
    excluded = [r[0] for r in rows[::4]]
    write(f"{work}/exclude.txt", "\n".join(excluded))
    convert(base(), f"{work}/out", "--view", "PA", "--exclude", f"{work}/exclude.txt", "--split", "none")
    assert set(images(f"{work}/out")) == {r[0] for r in rows if r[6] == "PA" and r[0] not in excluded}
    convert(base(), f"{work}/no", "--exclude", f"{work}/absent.txt", code=3)
    convert(base(), f"{work}/no", "--view", "LATERAL", code=3)
    nothing_at(f"{work}/no")


# ---- interruptions -------------------------------------------------------------------------------------------------


SLOWER = ["--resize", "lanczos", "--size", "256", "--shard-size", "8"]


def start(folder, out, *options):
    # pylint: disable=consider-using-with
    return subprocess.Popen([str(c) for c in command(folder, out, *options)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_for(condition, process):
    """True once the condition holds, False if the process ended before."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    raise AssertionError("waited in vain")


def stopped_midway(folder, out, *options):
    """A converter that was stopped (SIGSTOP) when it had finished a shard but not all, or None."""
    process = start(folder, out, *options)
    if wait_for(lambda: glob.glob(f"{out}/chestxray14-*"), process):
        process.send_signal(signal.SIGSTOP)
        if not os.path.exists(f"{out}/manifest.json"):
            return process
        process.send_signal(signal.SIGCONT)
    process.communicate()
    raise AssertionError("the conversion was over before it could be stopped")


def finish(process):
    process.send_signal(signal.SIGCONT)
    _, text = process.communicate(timeout=PATIENCE)
    return process.returncode, text


@functools.lru_cache(None)
def larger_straight():
    out, folder = os.path.join(CACHE, "larger-straight"), larger()
    convert(folder, out, *SLOWER)
    return out


def visible_shards_are_whole(out):
    reference = larger_straight()
    for path in glob.glob(f"{out}/chestxray14-*"):
        assert slurp(path) == slurp(os.path.join(reference, os.path.basename(path))), f"{path} is not whole"


def kill_until_done(out, seed, threads):
    """Run and kill at a random change of the folder until the run comes to its end; how often it was killed."""
    chance, kills = random.Random(seed), 0
    while True:
        fault = f"change:{chance.randint(1, 120)}:once:kill" if kills < 12 else None  # of some 290
        ended = harness.run([*map(str, command(larger(), out, *SLOWER, "-j", threads))], [out], fault)
        if ended.code == 0:
            return kills
        assert ended.code == -signal.SIGKILL, f"exit code {ended.code}: {ended.err}"
        kills += 1
        if os.path.isdir(out):
            visible_shards_are_whole(out)


def kill_case(work, rounds):
    for i in range(rounds):
        assert kill_until_done(f"{work}/{i}", i, 1 + i % 3) > 1
        complete(f"{work}/{i}")
        same_tree(larger_straight(), f"{work}/{i}")


@case("killed at random times and resumed, the folder equals that of an uninterrupted run")
def _(work):
    kill_case(work, 2)


@case("killed at random times, twenty runs", slow=True)
def _(work):
    kill_case(work, 20)


@case("SIGTERM, SIGINT and SIGHUP end with 75, and the same command resumes")
def _(work):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for attempt in range(10):  # on a busy machine the signal may come when all is done
            out = f"{work}/{number}-{attempt}"
            process = stopped_midway(larger(), out, *SLOWER)
            process.send_signal(number)
            code, text = finish(process)
            if code != 0:
                break
        assert code == 75, f"{number}: exit code {code}\n{text}"
        assert not os.path.exists(f"{out}/manifest.json") and not os.path.exists(f"{out}/.chex.lock")
        visible_shards_are_whole(out)
        done = convert(larger(), out, *SLOWER, "--json")
        assert json.loads(done.stdout)["result"]["resumed"] >= 8
        same_tree(larger_straight(), out)


@case("a run with --force that was stopped says that the same command without it resumes")
def _(work):
    for attempt in range(10):  # as above
        out = f"{work}/{attempt}"
        process = stopped_midway(larger(), out, *SLOWER, "--force")
        process.send_signal(signal.SIGTERM)
        code, text = finish(process)
        if code != 0:
            break
    assert code == 75 and "the same command without --force resumes" in text, f"exit code {code}\n{text}"
    done = convert(larger(), out, *SLOWER, "--json")
    assert json.loads(done.stdout)["result"]["resumed"] >= 8


@case("a second converter in the same folder ends with 5, and the first is not disturbed")
def _(work):
    process = stopped_midway(larger(), f"{work}/out", *SLOWER)
    try:
        says(convert(larger(), f"{work}/out", *SLOWER, code=5), rf"in use by host \S+ pid {process.pid}\b")
        convert(larger(), f"{work}/out", *SLOWER, "--force", "--seed", 3, code=5)
    finally:
        code, text = finish(process)
    assert code == 0, text
    same_tree(larger_straight(), f"{work}/out")


@case("the lock of a process that has ended is taken over, one of another host is not")
def _(work):
    process = stopped_midway(larger(), f"{work}/out", *SLOWER)
    process.kill()
    process.communicate()
    assert os.path.exists(f"{work}/out/.chex.lock")
    lock = slurp(f"{work}/out/.chex.lock").decode()
    lines = lock.splitlines()
    lines[0] = "host some-other-machine"
    write(f"{work}/out/.chex.lock", "\n".join(lines) + "\n")
    says(convert(larger(), f"{work}/out", *SLOWER, code=5), "some-other-machine")
    convert(larger(), f"{work}/out", *SLOWER, "--break-lock")
    same_tree(larger_straight(), f"{work}/out")


@case("a lock that became empty, was cut or replaced by a folder ends a run with 4, one of another process with 5")
def _(work):
    def cut(lock, size):
        os.truncate(lock, size)

    def become_folder(lock):
        os.unlink(lock)
        os.mkdir(lock)

    def become_anothers(lock):
        write(lock, slurp(lock).replace(b"host ", b"host other-"))
    for number, (change, code, text) in enumerate((
            (lambda lock: cut(lock, 0), 4, r"the lock '\S+/\.chex\.lock' is damaged: 0 bytes, not the \d+ "),
            (lambda lock: cut(lock, 50), 4, r"is damaged: 50 bytes, not the \d+ "),
            (become_folder, 4, "the lock '.*': not a regular file"),
            (os.unlink, 5, r"chex\.lock' was removed: another process may have taken the folder"),
            (become_anothers, 5, r"was taken over by host other-\S+ pid \d+"))):
        out = f"{work}/{number}"
        process = stopped_midway(larger(), out, *SLOWER)
        change(f"{out}/.chex.lock")
        ended, said = finish(process)
        assert ended == code and re.search(text, said), (number, ended, said)
        assert not os.path.exists(f"{out}/manifest.json")


@case("every file is written under one name: a hard link to an unfinished conversion keeps its content")
def _(work):
    process = stopped_midway(larger(), f"{work}/out", *SLOWER)
    process.kill()
    process.communicate()
    shutil.copytree(f"{work}/out", f"{work}/backup", copy_function=os.link)
    before = tree(f"{work}/backup")
    victim = write(f"{work}/victim", b"not a journal\n")
    convert(larger(), f"{work}/out", *SLOWER)
    same_tree(larger_straight(), f"{work}/out")
    same_tree(before, f"{work}/backup")
    os.mkdir(f"{work}/new")
    os.link(victim, f"{work}/new/.chex-journal.jsonl")
    convert(base(), f"{work}/new")
    assert slurp(victim) == b"not a journal\n"


@case("a FIFO, a folder or a link in the place of a file of ours ends with 4 or 6, and nobody waits for it")
def _(work):
    for name in (".chex.lock", ".chex-journal.jsonl", "manifest.json",
                 ".chestxray14-test.tfrecord-00000-of-00002.part"):
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
            out = tempfile.mkdtemp(dir=work)
            make(f"{out}/{name}")
            done = convert(base(), out, code=None)
            assert done.returncode in (4, 6), f"{name}: exit code {done.returncode}\n{done.stderr}"


@case("a finished shard that was damaged while the run was interrupted is made again")
def _(work):
    process = stopped_midway(larger(), f"{work}/out", *SLOWER)
    process.kill()
    process.communicate()
    path = sorted(glob.glob(f"{work}/out/chestxray14-*"))[0]
    data = bytearray(slurp(path))
    data[len(data) // 2] ^= 1
    write(path, bytes(data))
    convert(larger(), f"{work}/out", *SLOWER)
    same_tree(larger_straight(), f"{work}/out")


# ---- what is there already -----------------------------------------------------------------------------------------


@case("an unfinished conversion with other options ends with 6; --force replaces it")
def _(work):
    process = stopped_midway(larger(), f"{work}/out", *SLOWER)
    process.kill()
    process.communicate()
    convert(larger(), f"{work}/out", *SLOWER, "--seed", 4, code=6)
    convert(larger(), f"{work}/out", *SLOWER, "--seed", 4, "--force")
    complete(f"{work}/out")
    assert manifest(f"{work}/out")["split"]["order_seed"] == 4


# ---- a complete data set with faults -------------------------------------------------------------------------------


def one_reject(work):
    """A data set of base() but for one image that is cut; the folder of images, that image's name, the output."""
    folder = copy_of(base(), work)
    name = sorted(os.listdir(f"{folder}/images"))[4]
    write(f"{folder}/images/{name}", slurp(f"{folder}/images/{name}")[:500])
    convert(folder, f"{work}/out", code=1)
    return folder, name, f"{work}/out"


@case("a rerun reports the rejects, also with --quiet, and --repair tries them again")
def _(work):
    folder, name, out = one_reject(work)
    before = tree(out)
    for options in ([], ["-q"]):
        says(convert(folder, out, *options, code=1), "1 image of this data set was rejected",
             r"rejects\.jsonl", "--repair")
    assert not convert(folder, out, "-q", "--allow-rejects", 1).stderr
    convert(folder, out, "--repair", code=1)
    same_tree(before, out)
    shutil.copy(f"{base()}/images/{name}", f"{folder}/images/{name}")
    convert(folder, out, code=1)
    same_tree(before, out)
    convert(folder, out, "--repair")
    same_tree(straight(), out)


@case("images that could not be read are tried again by the same command, also where the data set is complete")
def _(work):
    folder, out = copy_of(base(), work), f"{work}/out"
    names = sorted(os.listdir(f"{folder}/images"))
    for name in (names[4], names[9]):  # as of a file system that is not mounted
        os.rename(f"{folder}/images/{name}", f"{work}/{name}")
        os.symlink(f"{work}/away/{name}", f"{folder}/images/{name}")
    says(convert(folder, out, code=1), "2 rejected: 2 missing", "the same command tries those again")
    before = tree(out)
    says(convert(folder, out, code=1), "complete already", "2 images of this data set were rejected")
    same_tree(before, out)
    os.mkdir(f"{work}/away")
    os.rename(f"{work}/{names[4]}", f"{work}/away/{names[4]}")
    says(convert(folder, out, code=1), "again    1 rejected image that could not be read", "1 rejected: 1 missing")
    os.rename(f"{work}/{names[9]}", f"{work}/away/{names[9]}")
    convert(folder, out, "--part", "1/2", code=1)  # parts leave it alone
    convert(folder, out)
    same_tree(straight(), out)


@case("a reject that was repaired between two runs is not reported as a changed image")
def _(work):
    folder, out = copy_of(base(), work), f"{work}/out"
    name = sorted(os.listdir(f"{folder}/images"))[4]
    whole = slurp(f"{folder}/images/{name}")
    write(f"{folder}/images/{name}", whole[:500])
    parts = [["--part", f"{part}/2"] for part in (1, 2)]
    for part in parts:  # finished shards, and no manifest yet
        convert(folder, out, *part, code=None)
    write(f"{folder}/images/{name}", whole)
    for part in [*parts, []]:
        assert "source has changed" not in convert(folder, out, *part).stderr
    same_tree(straight(), out)


@case("a manifest that is missing is made again by --repair, which the refusal names")
def _(work):
    out = copy_of(straight(), work, "out")
    os.remove(f"{out}/manifest.json")
    before = tree(out)
    says(convert(base(), out, code=6), "neither a manifest nor a journal", "--repair", "--force")
    convert(base(), out, "--repair", "--size", 48, code=6)
    same_tree(before, out)
    os.remove(sorted(glob.glob(f"{out}/chestxray14-*"))[1])
    convert(base(), out, "--repair")
    same_tree(straight(), out)
    convert(base(), f"{work}/new", "--repair")
    same_tree(straight(), f"{work}/new")


@case("what chex-inspect check --full names after faults repairs them, whatever options the data set was made with")
def _(work):
    inspect, images_of = program("chex-inspect"), f"{base()}/images"
    write(f"{work}/my rule.csv", "patient,split\n" + "".join(f"{name},{'ab'[i % 3 == 0]}\n" for i, name in enumerate(
        sorted({os.path.basename(path)[:8] for path in glob.glob(f"{images_of}/*")}))))
    rows = read_csv(labels_of(base()))[1]
    write(f"{work}/exclude.txt", rows[0][0])
    write(f"{work}/empty.csv", edit_line(5, set_field(1, ""))(slurp(labels_of(base())).decode()))
    for i, options in enumerate(([], ["--size", "24", "--shard-size", "7", "--tail", "short", "--seed", "5"],
                                 ["--split", "patient:50,25,25:9", "--align", "512", "--resize", "area", "--lenient"],
                                 ["--view", "PA", "--shard-size", "5"],
                                 ["--size", "64", "--resize", "none", "--max-pixels", "1M", "--min-size", "16"],
                                 ["--split", f"file:{work}/my rule.csv", "--index", "dali", "--tail", "drop",
                                  "--shard-size", "5"],
                                 ["--exclude", f"{work}/exclude.txt", "--empty-is-no-finding"])):
        out = f"{work}/a set {i}"
        labels = f"{work}/empty.csv" if "--empty-is-no-finding" in options else labels_of(base())
        run([program("chex-convert"), "-q", "-i", images_of, "-l", labels, "-o", out, *options])
        good, shards = tree(out), manifest(out)["shards"]
        cut, flipped = (f"{out}/{shards[k]['name']}" for k in (0, -1))
        os.truncate(cut, os.path.getsize(cut) - 10)
        data = bytearray(slurp(flipped))
        data[len(data) // 2] ^= 1
        write(flipped, bytes(data))
        done = run([inspect, "check", "--full", out], 1)
        named = next_command(done.stdout)
        assert done.stdout.endswith(named + "\n"), done.stdout
        named = joined(named)
        assert named.startswith("chex-convert --repair -i IMAGES -l LABELS.csv -o "), named
        assert ("LIST is the list of the 1 image that --exclude left out" in done.stdout) == ("LIST" in named)
        assert ("--exclude" in named, "--empty-is-no-finding" in named) == tuple(
            option in options for option in ("--exclude", "--empty-is-no-finding")), named
        typed = (named.replace("IMAGES", images_of).replace("LABELS.csv", labels)
                 .replace("file:PATH", f"'file:{work}/my rule.csv'").replace("LIST", f"{work}/exclude.txt"))
        bin_first = os.path.dirname(program("chex-convert")) + os.pathsep + os.environ["PATH"]
        run(["sh", "-c", typed], env=dict(os.environ, PATH=bin_first))
        same_tree(good, out)
        run([inspect, "check", "--full", out])
    # Of one shard: its data set.  The manifest itself: made again.  What lies beside the shards: not by --repair.
    os.truncate(cut, 100)
    assert "--repair" in next_command(run([inspect, "check", "--full", cut], 1).stdout)
    convert(base(), f"{work}/sums")
    m = manifest(f"{work}/sums")
    m.pop("manifest_sha256")
    m["splits"][0]["positives"]["Mass"] += 1
    write(f"{work}/sums/manifest.json", json.dumps(m))
    named = next_command(run([inspect, "check", "--full", f"{work}/sums"], 1).stdout)
    run(["sh", "-c", named.replace("IMAGES", images_of).replace("LABELS.csv", labels_of(base()))],
        env=dict(os.environ, PATH=bin_first))
    same_tree(straight(), f"{work}/sums")
    write(f"{work}/sums/b.tfrecord-00000-of-00001", "")
    assert next_command(run([inspect, f"{work}/sums"], 1).stdout).startswith("remove the files named above")


@case("--repair does not touch a shard or a manifest that is not a regular file")
def _(work):
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
        out = copy_of(straight(), tempfile.mkdtemp(dir=work), "out")
        path = sorted(glob.glob(f"{out}/chestxray14-*"))[1]
        os.remove(path)
        make(path)
        says(convert(base(), out, "--repair", code=4), "is not a regular file: remove it")
        assert os.path.exists(f"{out}/manifest.json") and os.path.lexists(path) and not os.path.isfile(path)
        os.rmdir(path) if os.path.isdir(path) else os.remove(path)
        convert(base(), out, "--repair")
        same_tree(straight(), out)


@case("--repair warns of a shard whose source images have changed")
def _(work):
    folder, out = copy_of(base(), work), copy_of(straight(), work, "out")
    names = sorted(os.listdir(f"{folder}/images"))
    write(f"{folder}/images/{names[3]}", slurp(f"{folder}/images/{names[4]}"))
    m, name = manifest(out), names[3].encode()
    shard = next(s for s in m["shards"] if any(r["filename"] == name and r["weight"] for r in records(out, s, m)))
    write(f"{out}/{shard['name']}", b"")
    says(convert(folder, out, "--repair", code=1), f"source has changed: '{shard['name']}'")
    convert(folder, f"{work}/fresh")
    same_tree(f"{work}/fresh", out)
    write(f"{out}/{shard['name']}", b"")
    assert "source has changed" not in convert(folder, out, "--repair").stderr


# ---- images that cannot be used ------------------------------------------------------------------------------------


def damaged(good):
    """{kind: (content, word of the reason)} of images with a fault, made from the bytes of a good one."""
    parts = {kind: (at, size) for kind, at, size in chunks(good)}
    at, size = parts[b"IDAT"]
    bad_crc = bytearray(good)
    bad_crc[at + 8 + size] ^= 1
    damaged_data = bytearray(good)
    damaged_data[at + 8 + size // 2] ^= 255
    return {
        "cut in its data": (good[:at + 8 + size // 2], "truncated"),
        "cut before its end": (good[:parts[b"IEND"][0]], "truncated"),
        "wrong checksum": (bytes(bad_crc), "checksum"),
        "damaged data": (bytes(damaged_data), "checksum|damaged"),
        "empty": (b"", "empty"),
        "login page": (b"<!DOCTYPE html><html><body>Log in</body></html>", "image"),
        "Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "image"),
        "gzip file": (gzip.compress(b"x"), "image"),
        "one pixel": (png(1, 1), "limit"),
        "bomb": (png(100000, 10, lambda y, w: bytes(w // 8), 1).replace(
            chunk_head(100000, 10), chunk_head(100000, 100000)), "limit"),
    }


def chunk_head(width, height):
    from support import chunk, struct  # pylint: disable=import-outside-toplevel
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))


def with_faults(work):
    """A copy of base() in which some images are damaged; {name: word of the reason}."""
    folder = copy_of(base(), work)
    names = sorted(os.listdir(f"{folder}/images"))
    wanted = {}
    for (content, reason), name in zip(damaged(slurp(f"{folder}/images/{names[0]}")).values(), names[1::3]):
        write(f"{folder}/images/{name}", content)
        wanted[name] = reason
    fifo, loop, device = names[-1], names[-2], names[-3]
    for name in (fifo, loop, device):
        os.remove(f"{folder}/images/{name}")
    os.mkfifo(f"{folder}/images/{fifo}")
    os.symlink(loop, f"{folder}/images/{loop}")
    os.symlink("/dev/zero", f"{folder}/images/{device}")
    wanted.update({fifo: "", loop: "", device: ""})
    return folder, wanted


def check_rejects(out, wanted):
    found = {r["name"]: r for r in rejects(out)}
    assert set(found) == set(wanted), f"rejected {sorted(found)}, expected {sorted(wanted)}"
    for name, reason in wanted.items():
        assert re.search(reason, found[name]["reason"] + " " + found[name]["detail"]), found[name]
        assert found[name]["kind"] == "image"
    m = complete(out)
    assert m["rejects"] == len(wanted)
    assert set(images(out)).isdisjoint(wanted)
    for shard in m["shards"]:
        weights = [r["weight"] for r in records(out, shard, m)]
        assert all(weights[r["index"]] == 0 for r in found.values() if r["shard"] == shard["name"])


@case("damaged images are rejected, listed, and their slots filled with weight 0; the others are converted")
def _(work):
    folder, wanted = with_faults(work)
    done = convert(folder, f"{work}/out", code=1)
    for name in wanted:
        says(done, f"reject {name}: ")
    check_rejects(f"{work}/out", wanted)
    assert len(images(f"{work}/out")) == 60 - len(wanted)
    for threads in (1, 7):
        convert(folder, f"{work}/{threads}", "-j", threads, code=1)
        same_tree(f"{work}/out", f"{work}/{threads}")
    assert {n: r["image"] for n, r in images(f"{work}/out").items()}.items() <= \
        {n: r["image"] for n, r in images(straight()).items()}.items()


@case("an image whose path is too long is a reject, and no file of a shorter name is taken for it")
def _(work):
    source, out = os.path.join(work, "source"), os.path.join(work, "out")
    shutil.copytree(base(), source)
    names, length = sorted(os.listdir(os.path.join(source, "images"))), len(os.path.join(source, "images"))
    at = os.open(os.path.join(source, "images"), os.O_RDONLY)
    while length < 4090:  # bytes of the path of the folder, of 4095 that a path may have
        part = min(200, 4090 - length - 1)
        part -= 10 if 0 < 4090 - length - 1 - part < 2 else 0
        os.mkdir("d" * part, dir_fd=at)
        below = os.open("d" * part, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at, length = below, length + 1 + part
    os.rename(os.path.join(source, "images", names[0]), names[0], dst_dir_fd=at)
    with open(os.open(names[0][:4], os.O_CREAT | os.O_WRONLY, dir_fd=at), "wb") as f:
        f.write(slurp(os.path.join(source, "images", names[-1])))
    os.close(at)
    convert(source, out, code=1)
    (line,) = rejects(out)
    assert line["name"] == names[0] and line["detail"] == "the path is too long", line


@case("--allow-rejects makes them no fault, --strict stops at the first")
def _(work):
    folder, wanted = with_faults(work)
    for allowed in ("15", "50%"):
        convert(folder, f"{work}/{allowed}", "--allow-rejects", allowed)
        check_rejects(f"{work}/{allowed}", wanted)
    convert(folder, f"{work}/few", "--allow-rejects", 3, code=1)
    check_rejects(f"{work}/few", wanted)
    says(convert(folder, f"{work}/strict", "--strict", code=1), "--strict")
    assert not os.path.exists(f"{work}/strict/manifest.json")


@case("a run with rejects that was interrupted gives the same folder")
def _(work):
    folder = copy_of(larger(), work)
    for name in sorted(os.listdir(f"{folder}/images"))[::9]:
        write(f"{folder}/images/{name}", b"")
    convert(folder, f"{work}/straight", *SLOWER, code=1)
    process = stopped_midway(folder, f"{work}/out", *SLOWER)
    process.kill()
    process.communicate()
    convert(folder, f"{work}/out", *SLOWER, code=1)
    same_tree(f"{work}/straight", f"{work}/out")


@case("--lenient keeps an image of which only the end is missing")
def _(work):
    folder = copy_of(base(), work)
    name = sorted(os.listdir(f"{folder}/images"))[3]
    good = slurp(f"{folder}/images/{name}")
    write(f"{folder}/images/{name}", good[:-12])
    convert(folder, f"{work}/strict", code=1)
    convert(folder, f"{work}/out", "--lenient")
    assert images(f"{work}/out")[name]["image"] == images(straight())[name]["image"]


@case("bytes after the end and a wrong checksum in an unimportant chunk are warnings")
def _(work):
    from support import chunk  # pylint: disable=import-outside-toplevel
    folder = copy_of(base(), work)
    a, b = sorted(os.listdir(f"{folder}/images"))[:2]
    write(f"{folder}/images/{a}", slurp(f"{folder}/images/{a}") + b"trailing")
    data = slurp(f"{folder}/images/{b}")
    text = bytearray(chunk(b"tEXt", b"a\0b"))
    text[-1] ^= 1
    write(f"{folder}/images/{b}", data[:-12] + bytes(text) + data[-12:])
    done = convert(folder, f"{work}/out", "--json")
    assert json.loads(done.stdout)["result"]["noticed"]["warned"] == 2
    assert images(f"{work}/out")[a]["image"] == images(straight())[a]["image"]


@case("--max-pixels and --min-size reject by the header")
def _(work):
    folder = copy_of(base(), work)
    a, b = sorted(os.listdir(f"{folder}/images"))[:2]
    write(f"{folder}/images/{a}", png(100, 100))
    write(f"{folder}/images/{b}", png(65, 63))
    convert(folder, f"{work}/out", "--max-pixels", 4096, code=1)
    assert sorted(r["name"] for r in rejects(f"{work}/out")) == [a, b]
    convert(folder, f"{work}/all", "--min-size", 63)


# ---- label files and lists with faults -----------------------------------------------------------------------------


def refused(work, change, code, *patterns, options=()):
    """With the label file changed so, the run ends with this code and message, and nothing was made."""
    folder = copy_of(base(), work, f"copy{len(os.listdir(work))}")
    path = labels_of(folder)
    write(path, change(slurp(path).decode()))
    says(convert(folder, f"{work}/out", *options, code=code), *patterns)
    nothing_at(f"{work}/out")


def edit_line(number, change):
    """Change line `number` (1: the header)."""
    def edit(text):
        lines = text.splitlines()
        lines[number - 1] = change(lines[number - 1])
        return "\n".join(lines) + "\n"
    return edit


def set_field(index, value):
    def change(line):
        fields = line.split(",")
        fields[index] = value
        return ",".join(fields)
    return change


@case("names with ../ and absolute ones are refused row by row")
def _(work):
    folder = copy_of(base(), work)
    write(f"{folder}/secret.png", png(64, 64))
    bad = ["../secret.png", "/etc/passwd", "..\\secret.png"]  # a backslash is reported as \x5c

    def change(rows):
        return rows + [[name, *rows[0][1:]] for name in bad]

    change_rows(folder, change)
    done = convert(folder, f"{work}/out", code=1)
    says(done, "rows? ")
    found = [r for r in rejects(f"{work}/out") if r["kind"] == "row"]
    assert sorted(r["name"] for r in found) == sorted(n.replace("\\", "\\x5c") for n in bad), found
    assert len(images(f"{work}/out")) == 60 and complete(f"{work}/out")["shards"] == manifest(straight())["shards"]


@case("an empty label rejects its row; with --empty-is-no-finding it does not")
def _(work):
    folder = copy_of(base(), work)
    path = labels_of(folder)
    name = read_csv(path)[1][3][0]
    write(path, edit_line(5, set_field(1, ""))(slurp(path).decode()))
    convert(folder, f"{work}/out", code=1)
    assert ("row", name) in {(r["kind"], r["name"]) for r in rejects(f"{work}/out")}
    assert name not in images(f"{work}/out")
    convert(folder, f"{work}/kept", "--empty-is-no-finding")
    assert images(f"{work}/kept")[name]["label"] == [0] * 14
    assert manifest(f"{work}/kept")["empty_labels"] == 1 and "empty_labels" not in manifest(f"{work}/out")


@case("impossible ages are unknown, ages in months and days are read")
def _(work):
    folder = copy_of(base(), work)
    ages = ["411", "058Y", "006M", "073D", "", "0"]

    def change(rows):
        for row, age in zip(rows, ages):
            row[4] = age
        return rows

    change_rows(folder, change)
    names = [r[0] for r in read_csv(labels_of(folder))[1]]
    convert(folder, f"{work}/out")
    got = [images(f"{work}/out")[n]["age"] for n in names[:6]]
    wanted = [float("nan"), 58, 0.5, 73 / 365.25, float("nan"), 0]
    assert all(abs(g - w) < 1e-6 or (g != g and w != w) for g, w in zip(got, wanted)), got


@case("a patient in train and test is named")
def _(work):
    rows = read_csv(labels_of(base()))[1]
    twice = next(r for r in rows if sum(x[3] == r[3] for x in rows) > 1)
    write(f"{work}/split.csv", "Image Index,split\n" + "".join(
        f"{r[0]},{'test' if r is twice else 'train'}\n" for r in rows))
    says(convert(base(), f"{work}/out", "--split", f"file:{work}/split.csv", code=2),
         rf"patient '?0*{twice[3]}'? is in (train and test|test and train)")
    nothing_at(f"{work}/out")


@case("a label file that says .png where the files are .jpg gets a hint, loose and in an archive")
def _(work):
    folder = copy_of(base(), work)
    for path in glob.glob(f"{folder}/images/*.png"):
        os.rename(path, path[:-4] + ".jpg")
    hint = r"60 are there with another ending: '\S+\.jpg' where the label file says '\S+\.png'"
    says(convert(folder, f"{work}/out", code=3), hint)
    says(convert(folder, f"{work}/out", "-n", code=3), hint)
    with tarfile.open(f"{work}/images.tar", "w") as tar:
        tar.add(f"{folder}/images")
    try:
        says(run([program("chex-convert"), "-i", f"{work}/images.tar", "-l", labels_of(folder), "-o", f"{work}/out",
                  *SMALL], code=3), hint)
    except AssertionError as e:
        if "libarchive" not in str(e):
            raise
    os.rename(f"{folder}/images", f"{folder}/other")
    os.mkdir(f"{folder}/images")
    assert "another ending" not in convert(folder, f"{work}/out", code=None).stderr


@case("a name that turns the writing, or has characters without width, is shown with their numbers")
def _(work):
    folder = copy_of(base(), work)
    odd = "\u202egnp.exe\u200b\u0085.png"
    header, rows = read_csv(labels_of(folder))
    write_csv(labels_of(folder), header, [*rows, ["\u202egnp.exe\u2066.png", *rows[0][1:]]])
    done = convert(folder, f"{work}/out\u202e", code=3)
    says(done, r"\\u202egnp\.exe\\u2066\.png")
    write_csv(labels_of(folder), header, rows)
    done = convert(folder, f"{work}/{odd}\udc9b", "-n")
    write(f"{work}/file", b"")
    done.stderr += convert(folder, f"{work}/file/{odd}\udc9b", code=4).stderr
    says(done, r"\\u202egnp\.exe\\u200b\\u0085\.png\\x9b")
    assert not set(done.stderr) & set("\u202e\u200b\u0085\u2066"), repr(done.stderr)


@case("values that are read differently from how they are written are counted in the plan, and listed with -v")
def _(work):
    folder = copy_of(base(), work)

    def change(rows):
        rows[0][1], rows[1][1] = "Infiltrate", "mass|Effusion"
        rows[2][5], rows[3][4] = "X", "old"
        return rows

    change_rows(folder, change)
    names = sorted(os.listdir(f"{folder}/images"))
    write(f"{work}/exclude.txt", f"# not these\n{names[7]}{names[8]}\n{names[9]}\n")
    done = convert(folder, f"{work}/out", "-n", "--exclude", f"{work}/exclude.txt")
    says(done, "2 rows with a finding in another spelling", "1 age that is not a number", "1 sex other than M and F",
         "1 line of a list that names no image", "1 line of a list with two names", "-v lists these")
    assert "Infiltrate" not in done.stderr
    done = convert(folder, f"{work}/out", "-n", "-v", "--exclude", f"{work}/exclude.txt")
    says(done, r"csv:2: Infiltrate\n", r"csv:3: mass\|Effusion\n", r"csv:4: X\n", r"csv:5: old\n",
         r"exclude\.txt:1: #\n", rf"exclude\.txt:2: {names[7]}{names[8]}\n")
    plain = convert(base(), f"{work}/out", "-n").stderr
    assert "-v lists" not in plain and "no column" not in plain, plain
    header, rows = read_csv(labels_of(folder))
    write_csv(f"{work}/short.csv", [header[0], header[1], header[3]], [[r[0], r[1], r[3]] for r in rows])
    says(convert(folder, f"{work}/out", "-n", labels=f"{work}/short.csv"), "no column for age sex view: unknown for")
    lists = copy_of(base(), work, "lists")
    text = slurp(f"{lists}/train_val_list.txt").decode().split("\n")
    write(f"{lists}/train_val_list.txt", "\n".join([text[0] + text[1], *text[2:]]))
    says(convert(lists, f"{work}/out", "--split", "official", code=2), "two names in one line: ", text[0] + text[1])


# ---- the command line ----------------------------------------------------------------------------------------------


# ---- output that fails ---------------------------------------------------------------------------------------------


@case("a full stdout ends with 4")
def _(work):
    with open("/dev/full", "w", encoding="ascii") as full:
        run([program("chex-convert"), "--help"], 4, stdout=full)
        convert(base(), f"{work}/out", "--json", code=4, stdout=full)
    complete(f"{work}/out")


@case("a closed pipe at stdout ends with 4, not with a signal")
def _(work):
    reader, writer = os.pipe()
    os.close(reader)
    convert(base(), f"{work}/out", "--json", code=4, stdout=writer)
    os.close(writer)


@case("a read-only folder ends with 4")
def _(work):
    os.mkdir(f"{work}/out", 0o555)
    if os.geteuid() == 0:
        mount(work, "-t", "tmpfs", "-o", "ro", "tmpfs", f"{work}/out")
    try:
        convert(base(), f"{work}/out", code=4)
        assert not os.listdir(f"{work}/out")
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", f"{work}/out"], check=True)


@case("a complete data set in a folder that cannot be written to is complete")
def _(work):
    out = copy_of(straight(), work, "out")
    broken = copy_of(straight(), work, "broken")
    path = sorted(glob.glob(f"{broken}/chestxray14-*"))[0]
    data = bytearray(slurp(path))
    data[len(data) // 2] ^= 1
    write(path, bytes(data))
    half = copy_of(straight(), work, "half")
    os.remove(f"{half}/manifest.json")
    folders, root = (out, broken, half), os.geteuid() == 0
    mounted = []
    try:
        for folder in folders:
            if root:
                mount(work, "--bind", folder, folder)
                mounted.append(folder)
                mount(work, "-o", "remount,bind,ro", folder)
            else:
                os.chmod(folder, 0o555)
        for options in ([], ["--verify"]):
            says(convert(base(), out, *options), "is complete already: nothing to do")
        convert(base(), broken)
        says(convert(base(), broken, "--verify", code=1), "differs from what the manifest says")
        for options in (["--repair"], ["--force"]):
            convert(base(), out, *options, code=4)
        convert(base(), half, code=4)
    finally:
        for folder in mounted:
            subprocess.run(["umount", folder], check=True)
        for folder in folders:
            os.chmod(folder, 0o755)
    same_tree(straight(), out)


def mount(_work, *words):
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False) if shutil.which("mount") \
        else None
    if not done or done.returncode != 0:
        raise Skip("no right to mount a file system here")


def no_torn_shards(out):
    """What has its final name is whole; there is no manifest."""
    visible_shards_are_whole(out)
    assert not os.path.exists(f"{out}/manifest.json")


@case("a full disk ends with 4, files with their final name are complete, and a rerun resumes")
def _(work):
    out = f"{work}/out"
    os.mkdir(out)
    if os.geteuid() != 0:
        raise Skip("only root may mount a small file system")
    size = sum(s["size"] for s in manifest(larger_straight())["shards"])
    mount(work, "-t", "tmpfs", "-o", f"size={size + 4 * 1024 * 1024}", "tmpfs", out)
    try:
        process = stopped_midway(larger(), out, *SLOWER)
        with open(f"{out}/filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(65536)) == 65536:
                    pass
            except OSError:
                pass
        code, text = finish(process)
        assert code == 4, f"exit code {code}\n{text}"
        assert "full" in text or "No space" in text, text
        no_torn_shards(out)
        says(convert(larger(), out, *SLOWER, code=4), "free")
        os.remove(f"{out}/filler")
        convert(larger(), out, *SLOWER)
        same_tree(larger_straight(), out)
    finally:
        subprocess.run(["umount", out], check=True)


@case("a limit on the size of files ends with 4, not with a signal, and a rerun resumes")
def _(work):
    limit = manifest(larger_straight())["record"]["stride"] * 3
    done = convert(larger(), f"{work}/out", *SLOWER, code=4,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    says(done, "chex-convert: .*")
    no_torn_shards(f"{work}/out")
    convert(larger(), f"{work}/out", *SLOWER)
    same_tree(larger_straight(), f"{work}/out")


# ---- the real files ------------------------------------------------------------------------------------------------


def real(out, *options, code=0, labels="Data_Entry_2017_v2020.csv.gz"):
    return run([program("chex-convert"), "-i", nih("images"), "-l", nih("csv", labels), "--lists", nih("lists"),
                "--split", "official", "-o", out, *options], code)


@case("the real images: without --allow-missing 3 with the table of archives, with it 0 and RGBA counted")
def _(work):
    done = real(f"{work}/out", code=3)
    says(done, r"missing  112,053 of 112,120 images", "chex-convert: 112,053 of 112,120 images are missing")
    nothing_at(f"{work}/out")
    count = len(os.listdir(nih("images")))
    done = real(f"{work}/out", "--allow-missing", "--shard-size", 16, "--json", "-j", 2)
    document = json.loads(done.stdout)
    assert document["result"]["converted"] == count and document["result"]["noticed"]["rgba"] == 3
    real(f"{work}/one", "--allow-missing", "--shard-size", 16, "-j", 1)
    same_tree(f"{work}/out", f"{work}/one")
    assert set(images(f"{work}/out")) == set(os.listdir(nih("images")))


@case("both releases of the real label file give the same slots")
def _(work):
    a, b = (real(f"{work}/out", "--allow-missing", "-n", "--json", labels=n) for n in
            ("Data_Entry_2017_v2020.csv.gz", "Data_Entry_2017.csv.gz"))
    a, b = json.loads(a.stdout), json.loads(b.stdout)
    assert a["labels"]["rows"] == b["labels"]["rows"] == 112120 and a["labels"]["patients"] == 30805
    assert a["plan"]["splits"] == b["plan"]["splits"]


if __name__ == "__main__":
    sys.exit(case.main())
