#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is left when the disk fills up, a call fails, memory runs out, the process is killed or the power goes.

    check_faults.py [PATTERN]

A small conversion runs again and again, each time with another call failing; tests/faults/inject.c is preloaded and
does that.  Afterwards the exit code is one that the manual names, chex-inspect tells the truth about the folder, and
the same command again gives the bytes of a run without faults.  In make check a sample of the calls is tried, with
CHEX_SLOW all; KILLS is the number of kills at random times (default 200).
"""
import functools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile

import harness
import replay
from support import SLOW, Cases, slurp, write

case = Cases()
KILLS = int(os.environ.get("KILLS") or 200)
SEED = int(os.environ.get("CHEX_SEED") or 1)


class Shared:
    """Made once, by the first case that needs it."""
    conversion = counts = None


def conversion(work):
    if not Shared.conversion:
        Shared.conversion = harness.Conversion(os.path.dirname(work))
        Shared.counts = Shared.conversion.counts()
    return Shared.conversion


def numbers(count, tried):
    """1 to count, or a sample of about `tried` of them that has the first and the last, and one more than there are."""
    if SLOW or count <= tried:
        return range(1, count + 2)
    step = count / tried
    return sorted({1, 2, count - 1, count, count + 1} | {int(1 + i * step) for i in range(tried)})


# ---- the N-th call fails ---------------------------------------------------------------------------------------------


def fail_convert(c, fault, codes, below=None):
    """One run of chex-convert with this fault."""
    folder = c.new_folder()
    report = folder + ".report"
    try:
        ended = harness.run(c.command(folder), below or [folder], fault, report)
        assert ended.code is not None, "it hangs"
        assert ended.code in codes, f"exit code {ended.code}: {ended.err[-300:]}"
        if ended.code in (0, 1):
            harness.differ(harness.read_tree(folder), c.tree)
            assert ended.code == 1, "one image is damaged"
        else:
            assert ended.err.strip(), "an exit code without a word"
        c.check_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(work, kind, whats, codes, tried=40, modes=("once", "ever")):
    c = conversion(work)
    cases = [f"{kind}:{n}:{mode}:{what}" for what in whats for mode in modes
             for n in numbers(Shared.counts[kind], tried)]
    harness.in_parallel(lambda fault: fail_convert(c, fault, codes), cases)


@case("convert: every write fails, disk full, quota, device")
def _(work):
    sweep(work, "write", ["ENOSPC", "EIO", "EDQUOT"], (1, 4))


@case("convert: every write is short or interrupted")
def _(work):
    sweep(work, "write", ["short"], (1,))
    sweep(work, "write", ["EINTR"], (1,), modes=("once",))


@case("convert: a disk that fails once (EIO) is overcome, one that fails for ever is not")
def _(work):
    c = conversion(work)

    def once(fault):
        folder = c.new_folder()
        try:
            ended = harness.run(c.command(folder), [folder], fault)
            shard = re.search(r"tfrecord-\d+-of-\d+'", ended.err)  # and not its index, the journal or the manifest
            only_the_reject = re.fullmatch(r"chex-convert: 1 image of this data set was rejected, .*\n", ended.err)
            assert ended.code == (1 if only_the_reject else 4) and not shard, f"exit code {ended.code}: {ended.err}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    harness.in_parallel(once, [f"{kind}:{n}:once:EIO" for kind in ("write", "sync", "close")
                               for n in range(1, Shared.counts[kind] + 1)])
    folder = c.new_folder()
    ended = harness.run(c.command(folder), [folder], "write:4:ever:EIO")
    assert ended.code == 4 and "Input/output error" in ended.err, ended.err


@case("convert: every fsync fails")
def _(work):
    sweep(work, "sync", ["EIO", "ENOSPC", "EDQUOT"], (1, 4))
    sweep(work, "sync", ["EINTR"], (1,), modes=("once",))


@case("convert: every close fails")
def _(work):
    sweep(work, "close", ["EDQUOT", "EIO"], (1, 4))
    sweep(work, "close", ["EINTR"], (1,))


@case("convert: every rename fails")
def _(work):
    sweep(work, "rename", ["EIO", "ENOSPC", "EACCES"], (1, 4))


@case("convert: every open of the output fails")
def _(work):
    sweep(work, "open", ["EMFILE", "EACCES", "EIO"], (1, 3, 4, 5))
    sweep(work, "open", ["EINTR"], (1,), modes=("once",))


@case("convert: every reservation of space fails")
def _(work):
    sweep(work, "reserve", ["ENOSPC", "EIO", "EDQUOT"], (1, 4))
    sweep(work, "reserve", ["EINTR"], (1,), modes=("once",))


@case("convert: every unlink, link and listing of the output fails")
def _(work):
    sweep(work, "unlink", ["EIO", "EROFS"], (1, 4))
    sweep(work, "link", ["EIO", "EACCES"], (1, 4))
    sweep(work, "list", ["EIO"], (1, 3, 4))


@case("convert: every read of the output fails")
def _(work):
    sweep(work, "read", ["EIO", "ESTALE"], (1, 4, 5), tried=12, modes=("once", "ever") if SLOW else ("once",))
    sweep(work, "read", ["short"], (1,))
    sweep(work, "read", ["EINTR"], (1,), modes=("once",))


@case("convert: a lock of its own that it may not or cannot read is a failure of the disk, and no other process")
def _(work):
    c = conversion(work)
    for fault in ("open:1:ever:EACCES", "open:1:ever:EIO", "read:1:ever:EIO", "stat:1:ever:EIO"):
        folder = c.new_folder()
        ended = harness.run(c.command(folder), [os.path.join(folder, ".chex.lock")], fault)
        assert ended.code == 4, (fault, ended.code, ended.err)
        assert "the lock '" in ended.err and "taken" not in ended.err, (fault, ended.err)
        assert not os.path.exists(os.path.join(folder, "manifest.json"))


@case("convert: every allocation fails")
def _(work):
    sweep(work, "memory", ["ENOMEM"], (1, 4), tried=300)


@functools.lru_cache(None)
def archives(work, noise=0):
    """
    The images of the conversion in every form of archive that is read: {form: path}.  In their middle is a file of
    `noise` bytes, so that a larger archive is read in several pieces.
    """
    images = os.path.join(work, "source", "images")
    members = [os.path.join(images, name) for name in sorted(os.listdir(images))]
    if noise:
        members.insert(3, write(os.path.join(work, "noise"), random.Random(SEED).randbytes(noise)))
    paths = {form: os.path.join(work, f"{noise}.{form}") for form in ("tar", "tar.gz", "tar.xz", "tar.bz2", "zip")}
    for form, path in paths.items():
        if form != "zip":
            with tarfile.open(path, "w:" + form[4:]) as archive:
                for member in members:
                    archive.add(member, "images/" + os.path.basename(member))
    with zipfile.ZipFile(paths["zip"], "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.write(member, "images/" + os.path.basename(member))
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", paths["tar"]], check=True)
        paths["tar.zst"] = paths["tar"] + ".zst"
    return paths


@case("convert: every allocation fails while an archive is read, of every form: that is no damage")
def _(work):
    c = conversion(work)
    for path in archives(c.work).values():
        a = c.reading(path)
        counts = a.counts()

        def one(fault, a=a):
            folder = a.new_folder()
            try:
                ended = harness.run(a.command(folder, "--allow-rejects", "3"), [folder], fault)
                assert ended.code in (0, 4), f"exit code {ended.code}: {ended.err[-300:]}"
                if ended.code == 0:
                    harness.differ(harness.read_tree(folder), a.tree)
                else:
                    assert ended.err.strip(), "an exit code without a word"
                a.check_folder(folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        harness.in_parallel(one, [f"memory:{n}:{mode}:ENOMEM" for mode in ("once", "ever")
                                  for n in numbers(counts["memory"], 40)])


@case("convert: an allocation that fails while a journal is read is no torn line")
def _(work):
    c = conversion(work)
    half = c.new_folder()
    harness.run(c.command(half), [half], "rename:5:once:kill")
    name = ".chex-journal.jsonl"
    journal = slurp(os.path.join(half, name))
    assert journal.count(b"\n") > 1, journal

    def one(fault):
        folder = c.new_folder()
        shutil.copytree(half, folder)
        try:
            ended = harness.run(c.command(folder), [folder], fault)
            assert ended.code in (1, 4), f"exit code {ended.code}: {ended.err[-300:]}"
            if ended.code == 4 and not os.path.exists(os.path.join(folder, "manifest.json")):
                now = slurp(os.path.join(folder, name))
                assert now.startswith(journal), f"{len(now)} of {len(journal)} bytes of the journal are left"
            c.check_folder(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    harness.in_parallel(one, [f"memory:{n}:once:ENOMEM" for n in numbers(Shared.counts["memory"], 500)])


@case("convert: what ran short is said, with what was in use and what to try")
def _(work):
    c = conversion(work)
    with open(c.convert, "rb") as program:
        sanitized = b"__asan_init" in program.read()  # it has an allocator of its own, where nothing can fail
    for below, fault, texts in (
            ([], "memory:200:ever:ENOMEM", ("out of memory", "were in use with 8 threads; try --threads 2")),
            ([c.source], "open:5:ever:EMFILE", ("Too many open files", ".png'", "8 threads need up to 24 open files"))):
        if sanitized and fault.startswith("memory"):
            continue
        folder = c.new_folder()
        command = [a for a in c.command(folder, "-j", "8") if a != "-q"]
        ended = harness.run(command, below, fault)
        assert ended.code == 4 and all(t in ended.err for t in texts), f"exit code {ended.code}: {ended.err}"
        c.check_folder(folder)


ERRORS = {"EIO": "Input/output error", "ESTALE": "Stale file handle", "EACCES": "Permission denied"}


def fail_input(c, below, fault, *options):
    """
    A fault of the input.  If it passes, the run does not notice it.  If it lasts, it is reported as such and nothing
    is published.  Then the same command without the fault resumes.
    """
    _, _, times, what = fault.split(":")
    folder = c.new_folder()
    try:
        ended = harness.run(c.command(folder, *options), below, fault)
        whole = os.path.isdir(folder) and harness.read_tree(folder) == c.tree
        good = 0 if "--allow-rejects" in options else 1  # one image is damaged
        if whole:
            assert ended.code == good, f"exit code {ended.code}: {ended.err[-300:]}"
        else:
            assert what != "EINTR", f"it passed: {ended.err[-300:]}"
            assert times == "ever" or what not in ("EIO", "ESTALE"), f"it passed: {ended.err[-300:]}"
            assert ended.code in ((4,) if what in ("ENOMEM", "EMFILE") else (3, 4)), f"{ended.code}: {ended.err[-300:]}"
            assert "amaged" not in ended.err and ERRORS.get(what, "") in ended.err, ended.err
            assert not os.path.exists(os.path.join(folder, "manifest.json")), f"it is published: {ended.err}"
        c.check_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def input_faults(c, below, kinds, tried):
    """Faults at each call, or at a sample of about `tried` of them: {kind: errors} that pass, and that last."""
    ended = harness.run(c.command(c.new_folder()), below, report=c.new_folder())
    assert ended.code == 1, ended.err
    for kind, what in ((kind, what) for kind, whats in kinds.items() for what in whats):
        for times in ("once",) if what == "EINTR" else ("once", "3", "ever"):
            assert ended.counts[kind] > 0, kind
            yield from (f"{kind}:{n}:{times}:{what}" for n in numbers(ended.counts[kind], tried))


@case("convert: an input of which a read, open, stat or listing fails for good is never published without its images")
def _(work):
    c = conversion(work)
    cases = [*input_faults(c, [c.source], dict.fromkeys(("read", "open", "stat", "list"), ("EIO",)), 30),
             *input_faults(c, [c.source], {"read": ("ESTALE", "EINTR", "ENOMEM", "short"),
                                           "open": ("ESTALE", "EINTR", "EMFILE", "EACCES"), "list": ("ESTALE",)}, 8)]
    harness.in_parallel(lambda t: fail_input(c, [c.source], *t),
                        [(fault, *options) for fault in cases for options in ([], ["--allow-rejects", "100%"])])


@case("convert: a read error of an archive, of every form, is no damage: nothing is published, a rerun resumes")
def _(work):
    c = conversion(work)
    cases = []
    for form, path in archives(c.work, 1200000).items():
        a = c.reading(path)
        faults = list(input_faults(a, [path], dict.fromkeys(("read", "open", "stat"), ("EIO",)), 8))
        lasting = [fault for fault in faults if "ever" in fault]
        tried = faults if SLOW or form in ("tar", "tar.gz", "zip") else lasting
        cases += [(a, [path], fault, "--allow-rejects", "100%") for fault in tried]
        lasting = [fault.replace("EIO", "ESTALE") for fault in lasting]
        cases += [(a, [path], fault, *options) for fault in lasting for options in ([], ["--allow-missing"])]
    harness.in_parallel(lambda t: fail_input(*t), cases)


@case("convert: a read error of a loose image keeps no other from its slot, and is no conflict with an archive")
def _(work):
    c = conversion(work)
    images = os.path.join(c.source, "images")
    names = sorted(os.listdir(images))
    bad = os.path.join(images, names[1])
    folder = c.new_folder()
    ended = harness.run([a for a in c.command(folder) if a != "-q"], [bad], "read:1:ever:EIO")
    assert ended.code == 3 and f"unread {names[1]}: read error at byte 0: Input/output error" in ended.err, ended.err
    assert f"chex-convert: '{names[1]}': read error" in ended.err, ended.err
    assert "same command again resumes" in ended.err, ended.err
    started = harness.start(c.command(folder, "--allow-rejects", "1"), [images], report=folder + ".report")
    ended = harness.finish(started, folder + ".report")
    assert ended.code == 0 and ended.counts["open"] < 6, f"{ended.counts}: {ended.err}"
    harness.differ(harness.read_tree(folder), c.tree)
    both = c.command(c.new_folder(), "-i", archives(c.work)["tar"])
    for fault in ("read:1:ever:EIO", "open:1:ever:EIO", "stat:3:ever:EIO"):
        ended = harness.run(both, [bad], fault)
        assert ended.code == 3 and "Input/output error" in ended.err and "twice" not in ended.err, ended.err


@case("convert: threads that cannot be started are done without, and that is said")
def _(work):
    c = conversion(work)
    for fault, said in (("thread:1:ever:EAGAIN", "only 1 of 4 threads"),
                        ("thread:3:ever:EAGAIN", " of 4 threads could")):
        folder = c.new_folder()
        ended = harness.run([a for a in c.command(folder, "-j", "4") if a != "-q"], [], fault)
        assert ended.code == 1 and said in ended.err, f"exit code {ended.code}: {ended.err}"
        harness.differ(harness.read_tree(folder), c.tree)
        ended = harness.run([c.inspect, "check", "-q", "-j", "4", "--full", folder], [], fault)
        assert ended.code == 0, ended.err


def caught(process, number):
    """Is there a handler yet?"""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
        return int(re.search(r"^SigCgt:\s*(\S+)", f.read(), re.M)[1], 16) >> number - 1 & 1


@case("convert: a signal while it plans and waits for a call ends it with 75, and nothing is written")
def _(work):
    c = conversion(work)
    images = os.path.join(c.source, "images")
    archive = write(os.path.join(work, "images.tar"), b"")
    with tarfile.open(archive, "w") as tar:
        tar.add(images, "images")
    loose = c.command(os.path.join(work, "no"))
    packed = [a if a != images else archive for a in [*loose, "--allow-missing"]]
    for command, below, fault in (
            (loose, os.path.join(c.source, "Data_Entry_2017_v2020.csv"), "read:1:once:wait9999999"),
            (loose, images, "list:3:once:wait9999999"),
            ([*loose, "-n"], images, "list:3:once:wait9999999"),
            (packed, archive, "read:3:once:wait9999999")):  # behind the first two the archive was only opened
        process = harness.start(command, [below], fault)
        while process.poll() is None and not caught(process, signal.SIGTERM):
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        ended = harness.finish(process)
        assert ended.code == 75, f"{fault}: exit code {ended.code}: {ended.err}"
        assert not os.path.exists(os.path.join(work, "no")), "something was written"


@case("a second signal, later than a second after the first, ends the process at once")
def _(work):
    c = conversion(work)

    def end(number):
        folder = c.new_folder()
        process = harness.start(c.command(folder), [os.path.join(c.source, "images")], "read:4:once:wait9999999")
        while process.poll() is None and not caught(process, number):
            time.sleep(0.05)
        process.send_signal(number)
        time.sleep(2.1)  # whole seconds are compared
        process.send_signal(number)
        ended = harness.finish(process)
        c.check_folder(folder)
        return ended

    for number in (signal.SIGINT, signal.SIGTERM):
        for _ in range(10):
            ended = end(number)
            if ended.code != 75:  # the first signal came while it planned
                break
        assert ended.code == -number, f"exit code {ended.code}: {ended.err}"


# ---- chex-inspect ----------------------------------------------------------------------------------------------------


def inspect_commands(c):
    shard = sorted(n for n in c.tree if n.endswith("-of-00003"))[0]
    return {"--full": ["check", "--full", "--sha256", c.out], "--sample": ["check", "--sample", "100", c.out],
            "list": ["list", "--fields", "slot,name,labels,sha256", c.out], "labels": ["labels", c.out],
            "--leaks": ["check", "--leaks", c.out], "extract": ["extract", "-o", "-", c.out, f"{shard}:0"],
            "a file": ["check", "--full", os.path.join(c.work, "alone.tfrecord")]}


def fail_inspect(c, command, fault, reference):
    ended = harness.run([c.inspect, "-j", "1", *command], [c.work], fault)
    assert ended.code is not None, "it hangs"
    if ended.code == 0:
        assert ended.out.split(b" in ")[0] == reference.out.split(b" in ")[0], f"exit code 0, but {ended.out[-300:]}"
    else:
        assert ended.code in (3, 4), f"exit code {ended.code}: {ended.err}{ended.out}"
        assert ended.err.strip() or ended.out.strip(), "an exit code without a word"


@case("inspect source: a read error is reported as such, with exit code 3, and never as damage")
def _(work):
    c = conversion(work)
    csv_path = c.options[c.options.index("-l") + 1]

    def one(t):
        path, fault, reference = t
        ended = harness.run([c.inspect, "source", "-j", "1", "-i", path, "-l", csv_path], [path], fault)
        said = ended.out.decode() + ended.err
        if ":ever:" not in fault or ended.code == 1:
            assert (ended.code, ended.out) == (reference.code, reference.out), f"exit code {ended.code}: {said}"
        else:
            assert ended.code == 3 and ERRORS[fault.split(":")[3]] in said, f"exit code {ended.code}: {said}"
            assert "fetch" not in said and "damaged at" not in said, said

    cases = []
    for path in [*archives(c.work).values(), os.path.join(c.source, "images")]:
        reference = harness.run([c.inspect, "source", "-j", "1", "-i", path, "-l", csv_path], [path],
                                report=c.new_folder())
        assert reference.code == 1, reference.err  # one image is cut
        cases += [(path, f"{kind}:{n}:{times}:EIO", reference) for kind in ("read", "open", "stat")
                  for times in ("once", "3", "ever") for n in numbers(reference.counts[kind], 8)]
        cases += [(path, f"open:{n}:ever:EACCES", reference) for n in numbers(reference.counts["open"], 8)]
    harness.in_parallel(one, cases)


@case("inspect: every read, open and allocation fails")
def _(work):
    c = conversion(work)
    shard = sorted(n for n in c.tree if n.endswith("-of-00003"))[0]
    write(os.path.join(c.work, "alone.tfrecord"), c.tree[shard])
    cases = []
    for command in inspect_commands(c).values():
        reference = harness.run([c.inspect, "-j", "1", *command], [c.work], report=c.new_folder())
        assert reference.code == 0, reference.err
        for kind, whats, tried in (("read", ("EIO", "short"), 6), ("open", ("EMFILE", "EACCES"), 20),
                                   ("memory", ("ENOMEM",), 40)):
            for what in whats:
                for mode in ("once", "ever"):
                    cases += [(command, f"{kind}:{n}:{mode}:{what}", reference)
                              for n in numbers(reference.counts[kind], tried)]
    harness.in_parallel(lambda t: fail_inspect(c, *t), cases)


# ---- kills -----------------------------------------------------------------------------------------------------------


def killed(c, fault):
    folder = c.new_folder()
    try:
        ended = harness.run(c.command(folder), [folder], fault)
        assert ended.code in (-signal.SIGKILL, 1), f"exit code {ended.code}: {ended.err[-300:]}"
        c.check_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@case("kill -9 at every change of the folder")
def _(work):
    c = conversion(work)
    for kind in ("change", "open", "read", "close"):
        cases = [f"{kind}:{n}:once:kill" for n in range(1, Shared.counts[kind] + 2)]
        harness.in_parallel(lambda fault: killed(c, fault), cases)


@case("kill -9 at every change of a run that resumes after a kill")
def _(work):
    c = conversion(work)
    rng = random.Random(SEED)

    def twice(fault):
        folder = c.new_folder()
        try:
            for f in fault:
                harness.run(c.command(folder), [folder], f)
            c.check_folder(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    count = Shared.counts["change"]
    harness.in_parallel(twice, [[f"change:{rng.randrange(1, count + 1)}:once:kill" for _ in range(3)]
                                for _ in range(400 if SLOW else 60)])


@case("kill -9 at random times")
def _(work):
    c = conversion(work)
    begun = time.monotonic()
    harness.run(c.command(c.new_folder()), [c.work])
    whole = time.monotonic() - begun

    def one(number):
        rng = random.Random(SEED * 1000003 + number)
        folder = c.new_folder()
        try:
            for _ in range(rng.choice((1, 1, 2))):
                process = harness.start(c.command(folder, "-j", str(rng.choice((1, 2, 3)))), [folder])
                time.sleep(rng.random() * whole * 1.2)
                process.kill()
                harness.finish(process)
            c.check_folder(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    harness.in_parallel(one, range(KILLS))


# ---- repair ----------------------------------------------------------------------------------------------------------


def damages(c):
    """{name: function of a folder that damages it}"""
    shards = sorted(n for n in c.tree if n.endswith("-of-00003"))
    half = len(c.tree[shards[0]]) // 2

    def change(name, edit):
        return lambda folder: write(os.path.join(folder, name), edit(c.tree[name]))

    def flip(at):
        return lambda data: data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]

    def swap(folder):
        for a, b in ((0, 1), (1, 0)):
            write(os.path.join(folder, shards[a]), c.tree[shards[b]])

    def both(folder):
        change(shards[1], flip(70))(folder)
        change("manifest.json", flip(100))(folder)

    return {"a flipped pixel": change(shards[0], flip(half + 70)), "a flipped length": change(shards[1], flip(3)),
            "a cut shard": change(shards[2], lambda d: d[:-9]), "a longer shard": change(shards[0], lambda d: d + b"x"),
            "an empty shard": change(shards[1], lambda d: b""), "swapped shards": swap,
            "a missing shard": lambda folder: os.unlink(os.path.join(folder, shards[2])),
            "a flipped bit in the manifest": change("manifest.json", flip(300)),
            "a cut manifest": change("manifest.json", lambda d: d[:-20]), "shard and manifest": both,
            "a flipped bit in an index": change(shards[0] + ".idx", flip(0))}


def damaged_copy(c, damage):
    folder = c.new_folder()
    os.mkdir(folder)
    for name, data in c.tree.items():
        write(os.path.join(folder, name), data)
    damage(folder)
    return folder


def stamps(folder):
    return {n: (s.st_ino, s.st_mtime_ns) for n in os.listdir(folder) for s in [os.stat(os.path.join(folder, n))]}


@case("--repair gives back every byte, and leaves whole shards alone")
def _(work):
    c = conversion(work)
    rejects = re.search(r'"shard":"([^"]+)"', c.tree["rejects.jsonl"].decode()).group(1)
    for name, damage in damages(c).items():
        folder = damaged_copy(c, damage)
        before, bad = stamps(folder), {n for n, d in c.tree.items() if harness.read_tree(folder).get(n) != d}
        assert c.say(folder) != 0, f"{name}: chex-inspect does not notice it"
        ended = harness.run(c.command(folder, "--repair"), [])
        assert ended.code == 1, f"{name}: {ended.err}"  # the image that was damaged from the start still is
        harness.differ(harness.read_tree(folder), c.tree)
        touched = {n for n, s in stamps(folder).items() if before.get(n) != s and "tfrecord" in n}
        assert touched <= bad | {rejects}, f"{name}: {touched} were touched, {bad} were bad"
        shutil.rmtree(folder)


@case("--repair of what is whole touches no whole shard; damage is named without it; another data set is refused")
def _(work):
    c = conversion(work)
    folder = damaged_copy(c, lambda folder: None)
    before = stamps(folder)
    again = re.search(r'"shard":"([^"]+)"', c.tree["rejects.jsonl"].decode()).group(1)  # it has a reject: tried again
    assert harness.run(c.command(folder, "--repair"), []).code == 1
    harness.differ(harness.read_tree(folder), c.tree)
    touched = {n for n, s in stamps(folder).items() if before[n] != s and "tfrecord" in n}
    assert touched == {again}, touched
    damages(c)["a missing shard"](folder)
    ended = harness.run(c.command(folder), [])
    assert "--repair" in ended.err and ended.code == 1, ended.err
    damages(c)["a cut manifest"](folder)
    ended = harness.run(c.command(folder), [])
    assert "--repair" in ended.err and ended.code == 6, ended.err
    before = harness.read_tree(folder)
    ended = harness.run(c.command(folder, "--repair", "--size", "24"), [])
    assert ended.code == 6 and harness.read_tree(folder) == before, f"exit code {ended.code}: {ended.err}"
    assert harness.run(c.command(folder, "--repair", "--force"), []).code == 2
    shutil.rmtree(folder)


@case("--repair that is killed or fails anywhere can be done again")
def _(work):
    c = conversion(work)
    every = damages(c)

    def one(t):
        name, fault = t
        folder = damaged_copy(c, every[name])
        harness.run(c.command(folder, "--repair"), [folder], fault)
        ended = harness.run(c.command(folder, "--repair"), [])
        assert ended.code == 1, f"exit code {ended.code}: {ended.err}"
        harness.differ(harness.read_tree(folder), c.tree)
        shutil.rmtree(folder)

    rng = random.Random(SEED)
    kinds = ("change:{}:once:kill", "change:{}:once:EIO", "change:{}:ever:ENOSPC", "memory:{}:once:ENOMEM")
    harness.in_parallel(one, [(name, rng.choice(kinds).format(rng.randrange(1, 90)))
                              for name in every for _ in range(60 if SLOW else 12)])


@case("--repair with a read error ends with 3 or 4 or overcomes it; no whole shard changes, and it can be done again")
def _(work):
    c = conversion(work)
    rejects = re.search(r'"shard":"([^"]+)"', c.tree["rejects.jsonl"].decode()).group(1)
    seen = set()

    def one(t):
        name, below, fault = t
        folder = damaged_copy(c, damages(c)[name])
        good = {n for n, d in c.tree.items() if "tfrecord" in n and not n.startswith(rejects)
                and harness.read_tree(folder).get(n) == d}
        ended = harness.run(c.command(folder, "--repair"), below or [folder], fault)
        there = harness.read_tree(folder)
        assert all(there.get(n) == c.tree[n] for n in good), f"{sorted(good)}: a whole shard was changed"
        if ended.code == 1:
            harness.differ(there, c.tree)
        else:
            assert ended.code in (3, 4), f"exit code {ended.code}: {ended.err}"
            assert ERRORS[fault.split(":")[-1]] in ended.err, ended.err
            assert "manifest.json" not in there or there["manifest.json"] == c.tree["manifest.json"]
        seen.add((bool(below), ended.code))
        assert harness.run(c.command(folder, "--repair"), []).code == 1
        harness.differ(harness.read_tree(folder), c.tree)
        shutil.rmtree(folder)

    cases = []
    for name in ("a flipped pixel", "a missing shard", "a flipped bit in an index"):
        for below in ([], [c.source]):
            folder = damaged_copy(c, damages(c)[name])
            ended = harness.run(c.command(folder, "--repair"), below or [folder], report=folder + ".report")
            shutil.rmtree(folder)
            cases += [(name, below, f"read:{n}:{times}:{what}") for what in ("EIO", "ESTALE")
                      for times in ("once", "ever") for n in range(1, ended.counts["read"] + 1)]
    harness.in_parallel(one, cases)
    assert {(False, 1), (False, 3), (True, 1), (True, 3)} <= seen, seen


# ---- power loss ------------------------------------------------------------------------------------------------------


def lose_power(c, ops, folder, length, seed):
    """One of the states in which the folder may be found."""
    target = c.new_folder()
    state = replay.after(ops[:length], folder, random.Random(seed) if seed else None)
    os.mkdir(target)
    try:
        for name, data in state.items():
            write(os.path.join(target, name), data)
        if state.get("manifest.json") is not None and c.say(target) == 0:
            strangers = {n: d for n, d in state.items() if c.tree.get(n) != d}
            assert not strangers, f"chex-inspect check --full sees no fault, but {sorted(strangers)}"
        c.check_folder(target)
    finally:
        shutil.rmtree(target, ignore_errors=True)


@case("power loss behind every change, with any choice of what was not synced")
def _(work):
    c = conversion(work)
    folder, log = c.new_folder(), c.new_folder()
    os.mkdir(folder)
    ended = harness.finish(harness.start(c.command(folder), [folder], log=log))
    assert ended.code == 1, ended.err
    ops = replay.read_log(log)
    whole = replay.after(ops + [replay.Op("sync", folder, 0, b"")], folder, random.Random(0))
    harness.differ(whole, c.tree)  # the log has everything, and all of it is synced at the end
    subsets = 64 if SLOW else 6
    cases = [(length, seed) for length in range(len(ops) + 1) for seed in range(subsets)]
    harness.in_parallel(lambda t: lose_power(c, ops, folder, t[0], t[1] and t[1] * 7919 + t[0]), cases)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.argv.append(".")  # CHEX_SLOW asks for more of each case, not for other cases
    code = case.main()
    if Shared.conversion:
        Shared.conversion.close()
    sys.exit(code)
