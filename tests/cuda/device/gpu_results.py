# SPDX-License-Identifier: Apache-2.0
"""What check_gpu.py and bench/gpu.py share: parts with a limit of time each, results that are written at once, the
facts of a machine, and the text that is made of stored results (Python 3.9, standard library alone).

OUT/check.jsonl   one JSON object a line: part, case, outcome ("ok", "FAIL", "skip", "left out", "fact"), seconds, and
                  what was measured
OUT/check.log     what every program wrote
OUT/check.txt     the results as a page, written whenever a part ends
and bench.jsonl, bench.log, bench.txt
"""
import ctypes
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))  # of the sources, or of a bundle
BUILD = os.path.abspath(os.environ.get("BUILDDIR") or ROOT)
EMULATED = "cuda-emulated"  # the device of programs of tests
TOOLKITS = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", "/opt/cuda"]


class Missing(Exception):
    """Something that a case needs is not here: it is skipped, by name."""


class TooLong(Exception):
    """The time of a part is over."""


# ---- the machine -------------------------------------------------------------------------------------------------

def no_gpu():
    """Why no kernel can run here, in words; None where one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "libcuda.so.1, which comes with the driver, was not found"
    count = ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code != 0:
        return f"the driver says error {code}"
    return None if count.value else "the driver knows no device"


def tool(name):
    """The path of a program of the system or the toolkit."""
    places = [os.path.join(t, "bin") for t in TOOLKITS if t] + ["/opt/nvidia/nsight-compute/current"]
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))
    if not found:
        raise Missing(f"{name} was not found (PATH, CUDA_HOME, /usr/local/cuda)")
    return found


def program(name, device=""):
    """One of our programs: of a bundle, of a build folder, or of what build.mk made there; or the one that has the
    emulated GPU."""
    path = os.path.join(BUILD, "tests", f"{name}-emulated")
    if device == EMULATED and os.access(path, os.X_OK):
        return path
    for folder in (os.path.join(ROOT, "bin"), BUILD, os.path.join(BUILD, "gpu")):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise Missing(f"{name} is not built")


def python_with(*modules):
    """A Python that has these: this one, that of PATH, the system's."""
    words = "; ".join(f"import {m}" for m in modules)
    missing = []
    for candidate in dict.fromkeys([sys.executable, shutil.which("python3"), "/usr/bin/python3"]):
        if not candidate or not os.path.exists(candidate):
            continue
        done = subprocess.run([candidate, "-c", words], capture_output=True, text=True, check=False, timeout=120)
        if done.returncode == 0:
            return candidate
        missing.append((done.stderr.strip().splitlines() or ["?"])[-1])
    raise Missing(f"no Python here has {', '.join(modules)}: {missing[0] if missing else ''}")


def capability(r):
    """"90", of the device here."""
    done = r.run([tool("nvidia-smi"), "--query-gpu=compute_cap", "--format=csv,noheader"], None)
    found = re.search(r"(\d+)\.(\d)", done.stdout)
    if not found:
        raise Missing("nvidia-smi does not say which device this is")
    return found.group(1) + found.group(2)


def build_by_nvcc(r, *programs):
    """What build.mk builds, or these of it, for the device here or for $ARCHS."""
    if not os.path.exists(os.path.join(ROOT, "train", "cuda")):
        raise Missing("neither the programs nor their sources are here")
    archs = os.environ.get("ARCHS") or capability(r)
    r.run([tool("make"), "-s", "-j", len(os.sched_getaffinity(0)), "-f", os.path.join(HERE, "build.mk"),
           f"SOURCE={ROOT}", f"NVCC={os.environ.get('NVCC') or tool('nvcc')}", f"OUT={os.path.join(BUILD, 'gpu')}",
           f"BUILD={BUILD}", f"ARCHS={archs}", *([f"PROGRAMS={' '.join(programs)}"] if programs else [])])
    return {"archs": archs}


def first_line(*command):
    try:
        done = subprocess.run([tool(command[0]), *command[1:]], capture_output=True, text=True, timeout=30, check=False)
    except (Missing, OSError, subprocess.TimeoutExpired) as e:
        return f"none: {e}"
    lines = [line.strip() for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    return lines[0] if lines else ""


def version_line(command, pattern):
    try:
        done = subprocess.run([tool(command[0]), *command[1:]], capture_output=True, text=True, timeout=30, check=False)
    except (Missing, OSError, subprocess.TimeoutExpired) as e:
        return f"none: {e}"
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(0) if found else "?"


def commit():
    """Of the sources, or of what a bundle was made from."""
    try:
        with open(os.path.join(ROOT, "COMMIT"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                              check=False) if shutil.which("git") else None
        return done.stdout.strip() if done and done.returncode == 0 else "?"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.M)
            return found.group(1) if found else platform.machine()
    except OSError:
        return platform.machine()


def machine_facts():
    """{what: words}; what is missing is "none: why"."""
    fields = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,ecc.mode.current"
    facts = {"date": datetime.date.today().isoformat(), "commit": commit(),
             "gpu": first_line("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"),
             "gpu_fields": fields,
             "nvcc": version_line(["nvcc", "--version"], r"release [^\n]*"),
             "compute-sanitizer": version_line(["compute-sanitizer", "--version"], r"(?i)version [^\n]*"),
             "ncu": version_line(["ncu", "--version"], r"(?i)version [^\n]*"),
             "cpu": f"{processor()}, {len(os.sched_getaffinity(0))} cores",
             "kernel": platform.release(), "libc": " ".join(platform.libc_ver()),
             "python": platform.python_version()}
    try:
        words = ("import torch, torchvision; print(torch.__version__, 'torchvision', torchvision.__version__, 'CUDA', "
                 "torch.version.cuda, 'cuDNN', torch.backends.cudnn.version())")
        done = subprocess.run([python_with("torch", "torchvision"), "-c", words], capture_output=True, text=True,
                              timeout=120, check=False)
        facts["torch"] = done.stdout.strip() or "none: " + (done.stderr.strip().splitlines() or ["?"])[-1]
    except (Missing, subprocess.TimeoutExpired) as e:
        facts["torch"] = f"none: {e}"
    return facts


# ---- times of kernels --------------------------------------------------------------------------------------------

def measured_launches(r, device, precision, model, side, batch, *words):
    """What `gpu-loop kernels` measured: "launches" and "kernels" of a step, each beside the model.  No profiler."""
    done = r.run([program("gpu-loop", device), "kernels", f"{device}:{precision}", model, side, batch, "graph", *words],
                 None, 120)
    if done.returncode == 77:
        raise Missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr.strip()[-300:]
    return json.loads(done.stdout)


def record_kernels(r, found):
    """A result for each kernel of a step, those with the most time first; and its launches, as one fact."""
    for kind, values in sorted(found["kernels"].items(), key=lambda item: -item[1]["ms"]):
        r.record(kind, "ok", batch=found["batch"], precision=found["precision"], **values)
    r.record("launches of a step", "fact", **found)


# ---- results -----------------------------------------------------------------------------------------------------

class Results:
    """Where results go, and how much time is left."""

    def __init__(self, out, name, budget):
        os.makedirs(out, exist_ok=True)
        self.out, self.name = out, name
        self.begun, self.end = time.monotonic(), time.monotonic() + budget
        self.part_name, self.part_end, self.case_begun = "", self.end, self.begun
        self.lines, self.only = [], ""
        for ending in ("jsonl", "log", "txt"):  # not those of an earlier run
            if os.path.exists(self.path(ending)):
                os.remove(self.path(ending))

    def path(self, ending):
        return os.path.join(self.out, f"{self.name}.{ending}")

    def record(self, case, outcome, **values):
        line = {"part": self.part_name, "case": case, "outcome": outcome,
                "seconds": round(time.monotonic() - self.case_begun, 2), **values}
        self.case_begun = time.monotonic()
        self.lines.append(line)
        with open(self.path("jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        print(result_line(line), flush=True)

    def log(self, text):
        with open(self.path("log"), "a", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") or not text else text + "\n")

    def left(self):
        return self.part_end - time.monotonic()

    def part(self, name, limit, function):
        """Run function(self) for so many seconds at most; what it raises is its last result."""
        now = time.monotonic()
        self.part_name, self.case_begun = name, now
        self.part_end = min(now + limit, self.end)
        if self.end - now < min(5, limit):
            self.record("all of it", "left out", why="no time was left")
            return
        self.log(f"==== {name}, {self.left():.0f} s at most")
        try:
            function(self)
        except Missing as e:
            self.record("all of it", "skip", why=str(e))
        except TooLong as e:
            self.record(str(e), "left out", why=f"the part has {limit:.0f} s")
        except Exception as e:  # a part that breaks has failed, and no other with it
            self.record("the part itself", "FAIL", why=f"{type(e).__name__}: {e}"[:600])
        with open(self.path("txt"), "w", encoding="utf-8") as file:
            file.write(summary(self.lines))

    def case(self, name, function):
        """One case of a part: what it returns is recorded with "ok"."""
        self.case_begun = time.monotonic()
        if not re.search(self.only, name):
            return None
        if self.left() < 1:
            self.record(name, "left out", why="no time was left")
            return None
        try:
            values = function() or {}
            self.record(name, "ok", **values)
            return values
        except Missing as e:
            self.record(name, "skip", why=str(e))
        except TooLong as e:
            self.record(name, "left out", why=f"took longer than the time that was left: {e}")
        except AssertionError as e:
            self.record(name, "FAIL", why=str(e)[-600:])
        return None

    def run(self, command, code=0, limit=600, text=True, **options):
        """Run a program to its end, or to that of the part; code: the exit code that is expected, None: any."""
        words = [str(c) for c in command]
        seconds = max(1.0, min(limit, self.left()))
        self.log("$ " + " ".join(words))
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                   text=text, **options)
        try:
            out, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its children too: sanitizers and profilers have some
            process.communicate()
            raise TooLong(f"{os.path.basename(words[0])}, {seconds:.0f} s") from None
        if text:
            self.log(out)
            self.log(errors)
        done = subprocess.CompletedProcess(words, process.returncode, out, errors)
        said = errors if text else errors.decode(errors="replace")
        assert code is None or done.returncode == code, \
            f"exit code {done.returncode} instead of {code}: {' '.join(words[-8:])}: {said.strip()[-400:]}"
        return done

    def code(self):
        """The exit code: 1 where something failed, 77 where nothing could run."""
        count = counts(self.lines)
        return 1 if count["FAIL"] else 0 if count["ok"] else 77


def facts_of(lines):
    return {line["case"]: line["value"] for line in lines if line["outcome"] == "fact" and "value" in line}


def page_of(facts, folder, suffix=""):
    """Where the pages of a run go, without the ending: FOLDER/DATE-DEVICE, or -2, -3 where these exist."""
    os.makedirs(folder, exist_ok=True)
    gpu = facts.get("gpu", "none")
    device = "no-gpu" if gpu.startswith("none") else re.sub(r"[^a-z0-9]+", "-", gpu.split(",")[0].lower()).strip("-")
    path = first = os.path.join(folder, f"{facts.get('date', 'undated')}-{device}{suffix}")
    count = 1
    while os.path.exists(path + ".json"):
        count += 1
        path = f"{first}-{count}"
    return path


def counts(lines):
    found = {"ok": 0, "FAIL": 0, "skip": 0, "left out": 0, "fact": 0}
    for line in lines:
        found[line["outcome"]] += 1
    return found


def number(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def result_line(line):
    """ok   kernels: conv_kernels (12.1 s) worst=0.0003"""
    values = {k: v for k, v in line.items() if k not in ("part", "case", "outcome", "seconds", "why")}
    text = f"{line['outcome']:<8} {line['part']}: {line['case']}"
    if line["seconds"] >= 1:
        text += f" ({line['seconds']:.0f} s)"
    for name, value in values.items():
        text += f" {name}={number(value)}" if not isinstance(value, (list, dict)) else ""
    return text + (f": {line['why']}" if line.get("why") else "")


def summary(lines):
    """The page for people: what failed first, then each part."""
    text = []
    failed = [line for line in lines if line["outcome"] == "FAIL"]
    if failed:
        text += ["Failed", "------", *map(result_line, failed), ""]
    for part in dict.fromkeys(line["part"] for line in lines):
        mine = [line for line in lines if line["part"] == part]
        text += [part, "-" * len(part), *map(result_line, mine), ""]
    count = counts(lines)
    text.append(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped, "
                f"{count['left out']} left out for want of time")
    return "\n".join(text) + "\n"


def read_results(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
