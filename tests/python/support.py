# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: counting, running programs, small files, reading shards (Python 3, stdlib only)."""
import atexit
import concurrent.futures
import csv
import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

# absolute, for those who change the folder
SOURCE = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(os.environ.get("BUILDDIR") or ".")
PATIENCE = 1200  # seconds to wait for something that must happen: against a hang, not a measure of speed
# Open MPI 4 removes the session folder of a host when a job ends, also while another job starts there.
MPI_SESSIONS = tempfile.TemporaryDirectory(prefix="chex-mpi-")
os.environ.setdefault("OMPI_MCA_orte_tmpdir_base", MPI_SESSIONS.name)
SLOW = os.environ.get("CHEX_SLOW", "") not in ("", "0")
FINDINGS = ["Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax",
            "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"]

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # below nohup it is ignored, which programs of ours respect
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a script it is ignored


class Skip(Exception):
    """Something outside the project is missing: the check is skipped, by name."""


class OtherBuild(Exception):
    """A check of a build with other options: it does not count here.  .ci/run has that build too."""


def cache_folder(name, place=None):
    """A folder for what the cases of a program share, gone at its end."""
    folder = tempfile.mkdtemp(prefix=f"chex-{name}-", dir=place)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Cases:
    """Named checks: each is a function that raises AssertionError where something is wrong."""

    def __init__(self):
        self.cases = []
        self.passed = self.failed = self.skipped = 0
        self.lock = threading.Lock()  # of the counts

    def __call__(self, name, slow=False):
        def add(function):
            self.cases.append((name, slow, function))
            return function
        return add

    def run_one(self, name, function):
        work = tempfile.mkdtemp(prefix="chex-test-")
        begun = time.monotonic()
        try:
            function(work)
            self.count("passed")
            took = time.monotonic() - begun
            print(f"ok   {name}" + (f" ({took:.0f} s)" if took >= 5 else ""), flush=True)
        except Skip as e:
            self.count("skipped")
            print(f"skip {name}: {e}", flush=True)
        except OtherBuild as e:
            print(f"none {name}: {e}", flush=True)
        except Exception as e:  # a check that breaks has failed
            self.count("failed")
            where = traceback.extract_tb(e.__traceback__)
            file = getattr(function, "func", function).__code__.co_filename
            line = next((f.lineno for f in reversed(where) if f.filename == file), "?")
            print(f"FAIL {name}: line {line}: {type(e).__name__}: {e}", flush=True)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def count(self, what):
        with self.lock:
            setattr(self, what, getattr(self, what) + 1)

    def main(self, jobs=1):
        """Run the cases whose name matches the pattern on the command line (all: none given); the exit code.

        jobs: as many at once, begun in their order, by threads."""
        pattern = sys.argv[1] if len(sys.argv) > 1 else ""
        chosen = [(name, function) for name, slow, function in self.cases
                  if re.search(pattern, name) and (pattern or slow == SLOW)]
        if not chosen and (pattern or SLOW):
            print(f"FAIL no case {'matches' if pattern else 'is slow'}")
            return 1
        if jobs > 1:
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda case: self.run_one(*case), chosen))
        else:
            for name, function in chosen:
                self.run_one(name, function)
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0 if self.passed or not self.skipped else 77


# ---- programs ----------------------------------------------------------------------------------------------------


def program(name):
    """The path of one of our programs: $CHEX_CONVERT and so on, else in the build folder."""
    path = os.environ.get(name.upper().replace("-", "_")) or os.path.join(BUILD, name)
    path = os.path.abspath(path)
    if not os.access(path, os.X_OK):
        raise Skip(f"{name} is not built")
    return path


def run(command, code=0, **options):
    """Run to the end, with the exit code that is expected; None: any."""
    options.setdefault("timeout", PATIENCE)
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([str(c) for c in command], stderr=subprocess.PIPE, text=True, check=False, **options)
    assert code is None or done.returncode == code, \
        f"exit code {done.returncode} instead of {code}: {' '.join(map(str, command))}\n{tail(done.stderr)}"
    return done


def peak_kib(command, code, **how):
    """Peak memory of a command that ends with this code, and its output."""
    done = run(["/usr/bin/env", sys.executable, "-c", "import resource, subprocess, sys\n"
                "code = subprocess.run(sys.argv[1:]).returncode\n"
                "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\nsys.exit(code)", *command],
               code, **how)
    return int(re.search(r"^peak (\d+)", done.stdout, re.M).group(1)), done


def helps(tool):
    """{command: its --help} of a tool; "" is the program itself."""
    text = run([program(tool), "--help"]).stdout
    names = re.findall(r"^  (\w+)  ", text.partition("\nCommands\n")[2].partition("\n\n")[0], re.M)
    return {"": text, **{name: run([program(tool), name, "--help"]).stdout for name in names}}


def tail(text, lines=12):
    return "\n".join("     " + line for line in text.splitlines()[-lines:])


def says(done, *patterns):
    """Each pattern is found in what the program wrote to stderr, where a line may go on below its heading."""
    unwrapped = re.sub(r"( \\)?\n {9}(?! )", " ", done.stderr)
    for pattern in patterns:
        found = re.search(pattern, done.stderr) or re.search(pattern, unwrapped)
        assert found, f"no /{pattern}/ in\n{tail(done.stderr)}"


def next_command(text):
    """The command behind the last "next" of a tool's output, with the lines on which it goes on."""
    return re.findall(r"^next +((?:.*\\\n)*.*)$", text, re.M)[-1]


def joined(text):
    """The text with each command on one line."""
    return re.sub(r" \\\n +", " ", text)


def synth(folder, count, *options):
    """A synthetic data set in this folder; the path of its label file."""
    run([program("chex-synth"), "-q", "-n", count, "-o", folder, *options])
    return os.path.join(folder, "Data_Entry_2017_v2020.csv")


def nih(*parts):
    """A path in the folder of real files."""
    folder = os.environ.get("CHEX_NIH")
    if not folder:
        raise Skip("CHEX_NIH is not set")
    path = os.path.join(folder, *parts)
    if not os.path.exists(path):
        raise Skip(f"CHEX_NIH has no {os.path.join(*parts) if parts else 'folder'}")
    return os.path.abspath(path)


def python_with(module):
    """A Python that has this module: $CHEX_PYTHON, this one, the system's, that of the venv of run-tests.sh."""
    candidates = [os.environ.get("CHEX_PYTHON"), sys.executable, "/usr/bin/python3"]
    candidates += [os.path.join(b, "venv", "bin", "python") for b in (BUILD, os.path.join(SOURCE, "build"))]
    for candidate in filter(None, candidates):
        if os.access(candidate, os.X_OK):
            find = f"import importlib.util as u, sys; sys.exit(u.find_spec('{module.split('.')[0]}') is None)"
            try_it = f"import {module}" if "." in module else find
            if run([candidate, "-c", try_it], None).returncode == 0:
                return os.path.abspath(candidate)
    raise Skip(f"no Python here has {module}")


# ---- files -------------------------------------------------------------------------------------------------------


def write(path, data):
    with open(path, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
    return path


def slurp(path):
    with open(path, "rb") as f:
        return f.read()


def tree(folder):
    """{path: SHA-256} of all files below."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            found[os.path.relpath(path, folder)] = hashlib.sha256(slurp(path)).hexdigest()
    return found


def same_tree(a, b):
    """Two folders hold the same."""
    x, y = (t if isinstance(t, dict) else tree(t) for t in (a, b))
    differ = sorted(name for name in set(x) | set(y) if x.get(name) != y.get(name))
    assert not differ, f"folders differ in {differ[:6]}"
    assert x, "an empty folder"


def read_csv(path):
    """Header and rows."""
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    return rows[0], rows[1:]


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as f:
        f.write(",".join(header) + "\n")  # NIH's header has commas inside brackets without quotes
        csv.writer(f, lineterminator="\n").writerows(rows)
    return path


# ---- TFRecord ----------------------------------------------------------------------------------------------------


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


CRC32C = crc32c_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def masked(data):
    """The CRC-32C as a TFRecord file holds it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


# ---- PNG ---------------------------------------------------------------------------------------------------------


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, row=lambda y, width: bytes(width), depth=8, colour=0, extra=b""):
    """An image file; row(y, width) gives the bytes of a row."""
    raw = b"".join(b"\0" + row(y, width) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(raw))
            + chunk(b"IEND", b""))


def chunks(data):
    """(type, offset of the length, size) of each chunk."""
    at = 8
    while at + 8 <= len(data):
        size, = struct.unpack_from(">I", data, at)
        yield data[at + 4:at + 8], at, size
        at += size + 12


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def png_gray(data):
    """Pixels of an 8-bit gray PNG without interlacing (PNG specification, section 9): width, height, bytes."""
    width, height, depth, colour, _, _, interlace = struct.unpack_from(">IIBBBBB", data, 16)
    assert (depth, colour, interlace) == (8, 0, 0), "not plain gray"
    raw = zlib.decompress(b"".join(data[at + 8:at + 8 + size] for kind, at, size in chunks(data) if kind == b"IDAT"))
    above, out = bytearray(width), bytearray()
    for y in range(height):
        kind, row = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        for x in range(width):
            a, b, c = (row[x - 1] if x else 0), above[x], (above[x - 1] if x else 0)
            row[x] = (row[x] + (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 255
        out += row
        above = row
    return width, height, bytes(out)


# ---- data sets ---------------------------------------------------------------------------------------------------


def manifest(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        return json.load(f)


def rejects(folder):
    """The lines of rejects.jsonl, [] where there is none."""
    path = os.path.join(folder, "rejects.jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def numbers(format_text):
    """"(64,64)u1" -> (how many, struct code)"""
    shape, kind = re.fullmatch(r"(?:\(([\d,]*)\))?(.*)", format_text).groups()
    count = 1
    for side in filter(None, (shape or "").split(",")):
        count *= int(side)
    if kind[0] == "S":
        return int(kind[1:]), "s"
    return count, {"u1": "B", "<f4": "f"}[kind]


def records(folder, shard, m=None):
    """The records of one shard of the manifest, each a dict by the manifest's dtype."""
    m = m or manifest(folder)
    data = slurp(os.path.join(folder, shard["name"]))
    size = m["dtype"]["itemsize"]
    assert len(data) == shard["size"] == size * shard["records"], f"{shard['name']} has {len(data)} bytes"
    for at in range(0, len(data), size):
        record = {}
        for name, kind, offset in zip(m["dtype"]["names"], m["dtype"]["formats"], m["dtype"]["offsets"]):
            count, code = numbers(kind)
            if code == "s" or count > 100:
                record[name] = data[at + offset:at + offset + count]
            else:
                values = struct.unpack_from(f"<{count}{code}", data, at + offset)
                record[name] = list(values) if "(" in kind else values[0]
        yield record


def images(folder, split=None):
    """{file name: record} of all records of weight 1."""
    m, found = manifest(folder), {}
    for shard in m["shards"]:
        if split in (None, shard["split"]):
            for record in records(folder, shard, m):
                name = record["filename"].decode()
                if record["weight"] == 1:
                    assert name not in found, f"{name} twice"
                    found[name] = record
    return found


def complete(folder):
    """A finished data set: all files are there, nothing else of ours is."""
    m = manifest(folder)
    for shard in m["shards"]:
        data = slurp(os.path.join(folder, shard["name"]))
        assert hashlib.sha256(data).hexdigest() == shard["sha256"], f"{shard['name']} is not what the manifest says"
    left = [n for n in os.listdir(folder) if n.startswith(".")]
    assert not left, f"left behind: {left}"
    return m


class Tally:
    """Checks that passed, failed, were skipped."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, faults):
        """faults: a list of lines, empty where all is well."""
        if faults:
            self.failed += 1
            print(f"FAIL {name}")
            for line in faults[:80]:
                print(f"     {line}")
        else:
            self.passed += 1
            print(f"ok   {name}")

    def skip(self, name, why):
        self.skipped += 1
        print(f"skip {name}: {why}")
