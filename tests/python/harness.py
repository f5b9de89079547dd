# SPDX-License-Identifier: Apache-2.0
"""A small conversion that is run under injected faults, and what must be true of its folder afterwards."""
import concurrent.futures
import copy
import functools
import itertools
import os
import re
import shutil
import subprocess
import tempfile

import support

WORKERS = max(2, len(os.sched_getaffinity(0)))
# Memory where there is some: a power loss is simulated from a log and not by pulling a plug, and an fsync costs time.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 28 else None


class Ended:
    """A process that has ended: code (negative: a signal; None: it hung), output, messages, counts of calls."""

    def __init__(self, code, out, err, counts):
        self.code, self.out, self.err, self.counts = code, out, err, counts


def library():
    path = os.environ.get("CHEX_INJECT") or os.path.join(support.BUILD, "tests", "faults", "inject.so")
    if not os.path.exists(path):
        raise support.Skip("the library of tests/faults is not built")
    return os.path.abspath(path)


class SanitizerFault(Exception):
    """The sanitizer itself cannot do without the call that failed."""


SANITIZED = 99  # exit code of what a sanitizer found


@functools.lru_cache(None)
def sanitizer(program):
    """The address sanitizer's library that a program is linked with, or None."""
    listed = subprocess.run(["ldd", program], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = re.search(r"libasan\S* => (\S+)", listed.stdout)
    return found and found.group(1)


def start(command, below, fault=None, log=None, report=None, until=None):
    environment = dict(os.environ, LC_ALL="C", LD_PRELOAD=library(), CHEX_FAULT_BELOW=":".join(below))
    asan = sanitizer(command[0])
    if asan:  # behind ours, which passes on to it what does not fail; then leaks of every error path are seen
        environment["LD_PRELOAD"] += " " + asan
        environment["ASAN_OPTIONS"] = (f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0:"
                                       f"exitcode={SANITIZED}:allocator_may_return_null=1").lstrip(":")
    for name, value in (("CHEX_FAULT", fault), ("CHEX_FAULT_LOG", log), ("CHEX_FAULT_REPORT", report),
                        ("CHEX_FAULT_UNTIL", until)):
        environment.pop(name, None)
        if value:
            environment[name] = value
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=environment, close_fds=False)


def finish(process, report=None, timeout=support.PATIENCE):
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        code = None
    counts = {}
    if report and os.path.exists(report):
        with open(report, encoding="ascii") as f:
            counts = {name: int(n) for name, n in (line.split() for line in f)}
        os.unlink(report)
    text = err.decode("utf-8", "replace")
    if code == SANITIZED and "CHECK failed: sanitizer_" in text:
        raise SanitizerFault(text)
    return Ended(code, out, text, counts)


def run(command, below, fault=None, report=None):
    return finish(start(command, below, fault, report=report), report)


class Conversion:
    """Six small images, one of them damaged, into three shards with DALI indexes: every kind of file there is."""

    def __init__(self, work):
        self.work = tempfile.mkdtemp(dir=SCRATCH, prefix="chex-faults-") if SCRATCH else work
        self.source = os.path.join(self.work, "source")
        labels = support.synth(self.source, 6, "--size", "64")
        images = os.path.join(self.source, "images")
        bad = os.path.join(images, sorted(os.listdir(images))[3])
        support.write(bad, support.slurp(bad)[:-40])
        self.options = ["-q", "--progress", "none", "-j", "1", "-i", images, "-l", labels, "--size", "16",
                        "--shard-size", "2", "--split", "none", "--index", "dali"]
        self.convert = support.program("chex-convert")
        self.inspect = support.program("chex-inspect")
        self.numbers = itertools.count()
        self.out = self.new_folder()
        plain = subprocess.run(self.command(self.out), check=False, stderr=subprocess.PIPE)
        assert plain.returncode == 1, plain.stderr  # one image is damaged
        self.tree = read_tree(self.out)

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def new_folder(self):
        return os.path.join(self.work, f"out{next(self.numbers)}")

    def reading(self, path):
        """The same conversion, with another input of the same images."""
        other = copy.copy(self)
        other.options = [path if before == "-i" else option
                         for before, option in zip([""] + self.options, self.options)]
        return other

    def command(self, folder, *more):
        return [self.convert, *self.options, "-o", folder, *more]

    def counts(self):
        """How many calls of each kind a run without faults makes."""
        folder = self.new_folder()
        report = folder + ".report"
        ended = run(self.command(folder), [folder, self.source], report=report)
        assert ended.code == 1 and read_tree(folder) == self.tree, ended.err
        shutil.rmtree(folder)
        return ended.counts

    def say(self, folder):
        """What chex-inspect check --full says of a folder: the exit code, which must be true."""
        ended = finish(subprocess.Popen([self.inspect, "-q", "check", "--full", folder], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, close_fds=False))
        return ended.code

    def check_folder(self, folder):
        """Whatever happened to it: chex-inspect tells the truth, and the same command again completes it."""
        there = read_tree(folder) if os.path.isdir(folder) else None
        said = self.say(folder)
        whole = there == self.tree
        if whole:
            assert said == 0, f"chex-inspect says {said} of a whole data set"
        elif there is None or not there:
            assert said == 3, f"chex-inspect says {said} of nothing"
        else:
            assert said in (1, 3), f"chex-inspect says {said} of {sorted(there)}"
        again = finish(subprocess.Popen(self.command(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, close_fds=False))
        assert again.code == 1, f"the same command again ends with {again.code}: {again.err}"
        differ(read_tree(folder), self.tree)


def read_tree(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def differ(a, b):
    names = sorted(n for n in set(a) | set(b) if a.get(n) != b.get(n))
    assert not names, f"other bytes than a straight run: {names}"


def in_parallel(function, cases):
    """function(case) for all; the first few that failed as (case, error)."""
    failed = []

    def one(case):
        try:
            function(case)
        except AssertionError as e:
            return case, e
        except SanitizerFault:
            pass
        return None

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for bad in pool.map(one, cases):
            if bad:
                failed.append(bad)
    assert not failed, f"{len(failed)} cases, the first: " + "; ".join(f"{c}: {e}" for c, e in failed[:4])
