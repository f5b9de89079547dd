#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run went: what chex-train and chex-inspect say of it, and the trace of all ranks.

    check_times.py [PATTERN]      only the cases whose name matches the regular expression

A rank is made slow by reads that wait (tests/faults/inject.c), for so long that other work on the machine does not
matter.  Python 3, stdlib only; jsonschema where it is there.  What needs mpirun is skipped without.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys

import mpi
import harness
from fixtures import fixture
from mpi import ENVIRONMENT
from support import SOURCE, Cases, OtherBuild, Skip, program, run, slurp

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
PARTS = ["data_wait", "copy", "forward", "backward", "reduce", "optimizer", "meet", "evaluation", "save", "peers"]
WORK = ["data_wait", "copy", "forward", "backward", "optimizer", "evaluation", "save"]
STEPS, HOST, DEVICE = range(3)


def shows(text, *patterns):
    """Each pattern is found; ^ and $ are those of a line."""
    for pattern in patterns:
        assert re.search(pattern, text, re.M), f"no /{pattern}/ in\n{text}"


def data():
    """A small data set of three splits, 90 images to train on; read only."""
    return fixture("trainable")


def words(out, *more, name="chex-train", batch=8):
    return [program(name), "-d", data(), "-o", out, "--model", "densenet-micro", "--crop", "32", "--micro-batch", "4",
            "--batch", str(batch), "--epochs", "2", "--bootstrap", "20", "-j", "1", *map(str, more)]


def job(count, slow=None, how=(), line=()):
    """mpirun of so many ranks, of which one is started in another way."""
    mpirun = mpi.mpirun("chex-train")
    if slow is None:
        return [mpirun, "-np", str(count), *line]
    groups = [(slow, line), (1, [*how, *line]), (count - slow - 1, line)]
    parts = [["-np", str(n), *part] for n, part in groups if n > 0]
    return [mpirun, *(word for i, part in enumerate(parts) for word in ([":"] if i else []) + part)]


def reads_wait(milliseconds):
    """How a rank is started that waits before each read of the data set."""
    library = harness.library()
    return ["env", f"LD_PRELOAD={library}", f"CHEX_FAULT=read:1:ever:wait{milliseconds}",
            f"CHEX_FAULT_BELOW={os.path.realpath(data())}"]


def times_of(out):
    """The lines about times, which fit their schema, and whose sums are right."""
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as f:
        found = [line for line in map(json.loads, f) if line["kind"] == "times"]
    if jsonschema is not None:
        with open(os.path.join(SOURCE, "schemas", "metrics.schema.json"), encoding="utf-8") as f:
            validator = jsonschema.Draft202012Validator(json.load(f))
        for line in found:
            validator.validate(line)
    for line in found:
        check_line(line)
    return found


COMPUTING = ["forward", "backward", "optimizer", "evaluation"]


def pop(line):
    """The factors of POP from useful time: https://co-design.pop-coe.eu/metrics/; CPU time per core of computing."""
    useful, seconds = [r["useful"] for r in line["ranks"]], line["seconds"]
    ideal = min(seconds, max([line["ideal_seconds"], *useful]))
    balance, communication = sum(useful) / len(useful) / max(useful), max(useful) / seconds
    found = {"load_balance": balance, "communication_efficiency": communication,
             "parallel_efficiency": balance * communication, "serialisation_efficiency": max(useful) / ideal,
             "transfer_efficiency": ideal / seconds}
    if line["ranks"][0]["busy"] is None:
        cpu = sum(r["cpu_parts"][part] for r in line["ranks"] for part in COMPUTING)
        wall = sum(r["parts"][part] * r["threads"] for r in line["ranks"] for part in COMPUTING)
        found["core_share"] = min(1, cpu / wall)
    return found


def scaling(reference, line):
    """Computation scaling, and global efficiency: the parallel efficiency times that."""
    def useful(times):
        return sum(r["useful"] * r["threads"] for r in times["ranks"])
    computation = useful(reference) / useful(line)
    return computation, computation * pop(line)["parallel_efficiency"]


def check_line(line):
    ranks, factor = line["ranks"], line["factors"]
    assert [r["rank"] for r in ranks] == list(range(len(ranks)))
    for r in ranks:
        assert list(r["parts"]) == PARTS, r
        assert r["work"] <= r["seconds"] * 1.001 and r["seconds"] <= line["seconds"] * 1.001, r
        known = sum(seconds for part, seconds in r["parts"].items() if part != "meet" or r["busy"] is None)
        assert known <= r["seconds"] * 1.01 + 1e-3, r
        waits = r["parts"]["reduce"] + r["parts"]["peers"]
        if r["busy"] is None:
            assert abs(r["work"] + waits - r["seconds"]) < 0.02 * r["seconds"] + 1e-3, r
        assert 0 < r["useful"] <= r["work"] and list(r["cpu_parts"]) == PARTS, r
        assert sum(r["cpu_parts"].values()) <= r["cpu"] * 1.01 + 1e-3, r
    for name, value in pop(line).items():
        assert abs(factor[name] - value) < 1e-4, (name, value, factor)
    work = [r["work"] for r in ranks]
    assert max(work) <= line["ideal_seconds"] * 1.001 and line["ideal_seconds"] <= line["seconds"] * 1.05, line


def inspect(out, code=0):
    text = run([program("chex-inspect"), out], code).stdout
    document = json.loads(run([program("chex-inspect"), "--json", out], code).stdout)
    if jsonschema is not None:
        with open(os.path.join(SOURCE, "schemas", "inspect.schema.json"), encoding="utf-8") as f:
            jsonschema.Draft202012Validator(json.load(f)).validate(document)
    return text, document["results"][0]["checkpoint"]["times"]


# ---- one rank --------------------------------------------------------------------------------------------------------


@case("a run of one rank tells its times once an epoch and at its end, says nothing of ranks without -v, and "
      "chex-inspect shows them")
def _(work):
    out = f"{work}/run"
    done = run(words(out))
    assert "efficiency" not in done.stderr and "ranks work" not in done.stderr, done.stderr
    found = times_of(out)
    assert [(e["over"], e["epoch"], e["step"]) for e in found] == \
        [("epoch", 1, 12), ("epoch", 2, 24), ("run", 2, 24)]
    assert [e["steps"] for e in found] == [12, 12, 24]
    for line in found:
        assert line["factors"]["load_balance"] == 1 and line["factors"]["device_busy"] is None
        assert line["factors"]["roofline_share"] is None and line["ranks"][0]["modelled"] is None
        assert line["ranks"][0]["parts"]["peers"] == 0
    assert found[0]["ranks"][0]["parts"]["evaluation"] > 0 and found[1]["ranks"][0]["parts"]["save"] > 0
    text, times = inspect(out)
    shows(text, r"^time     the last start: 24 steps of 1 rank in 0:\d\d$",
          r"^         parallel efficiency \d.\d\d = load balance 1.00 x communication \d.\d\d "
          r"\(serialisation \d.\d\d x transfer \d.\d\d\); share of the cores \d.\d\d$",
          r"^percent  rank  host *cores data wait forward  back  sums update  eval  save peers  rest$",
          r"^            0  \S+ +\d+( +\d+\.\d){9}$")
    assert times["advice"] == found[-1]["advice"] and ("         " + times["advice"]) in text.splitlines()
    assert times["ranks"] == found[-1]["ranks"]
    loud = run(words(f"{work}/loud", "-v", "--epochs", 1)).stderr
    advice = times_of(f"{work}/loud")[-1]["advice"]
    shows(loud, r"^ranks    parallel efficiency", "^         " + re.escape(advice) + "$")


@case("a stopped run reports its own times, and the next start reports its own")
def _(work):
    out = f"{work}/run"
    run(words(out, "--time-limit", "0.001s", "--epochs", 5), 75)
    first = times_of(out)
    assert first[-1]["over"] == "run" and first[-1]["steps"] >= 1, first
    run(words(out))
    found = times_of(out)
    assert found[-1]["over"] == "run" and first[-1]["steps"] + found[-1]["steps"] == 24, found


@case("chex-inspect takes the times of the last good line, and a run without such lines has no table")
def _(work):
    out = f"{work}/run"
    run(words(out, "--epochs", 1))
    path = f"{out}/metrics.jsonl"
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines(True)
    good = [line for line in lines if line.startswith('{"kind":"times"')]
    last = json.loads(good[-1])
    hostile = dict(last, ranks=[dict(last["ranks"][0], host="\x1b[31mred")])
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(hostile, separators=(",", ":")) + "\n")
        for bad in ('{"kind":"times"}', '{"kind":"times","over":"run","epoch":-1}', '{"kind":"times', "\0\0",
                    good[-1].replace('"steps":', '"steps":-'), good[-1].rstrip("\n").replace("seconds", "minutes")):
            f.write(bad.rstrip("\n") + "\n")
        f.write(good[-1].rstrip("\n"))  # half a line: the run is writing it
    text, times = inspect(out, 1)
    shows(text, r"metrics\.jsonl line 2: 'time' is missing, not a number from 0, and 5 more$")
    assert times["ranks"][0]["host"].startswith("\x1b") and "\x1b" not in text and "[31mred" in text
    os.remove(path)
    text, times = inspect(out)
    assert times is None and "percent" not in text


# ---- ranks that share a core -----------------------------------------------------------------------------------------


def on_one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@case("four ranks on one core: a warning, an efficiency by CPU time, and a global efficiency as the clock shows it")
def _(work):
    seconds, last, said = {}, {}, {}
    for count in (1, 4):
        out = f"{work}/{count}"
        line = words(out, "--epochs", 12, "--bootstrap", 0, "--select", "loss", batch=16 // count)
        if count > 1:
            line = [mpi.mpirun("chex-train"), "--oversubscribe", "--bind-to", "none", "-np", str(count), *line]
        for _attempt in range(5):
            shutil.rmtree(out, ignore_errors=True)
            said[count] = run(line, env=ENVIRONMENT, preexec_fn=on_one_core).stderr
            last[count] = times_of(out)[-1]
            seconds[count] = last[count]["seconds"]
            # The comparison with the clock needs a reference run that has the core for itself.
            if count > 1 or pop(last[1])["parallel_efficiency"] > 0.8:
                break
    warning = r"warning: 4 ranks of 1 thread each share 1 core;"
    assert "warning" not in said[1], said[1]
    shows(said[4], warning, r"^         ranks had \d+ % of their cores", r"^ranks    parallel efficiency 0\.[0-3]")
    assert 0 < last[4]["factors"]["parallel_efficiency"] < 0.3, last[4]["factors"]  # near 0 on a busy machine
    assert last[4]["factors"]["core_share"] < 0.5, last[4]["factors"]
    computation, whole = scaling(last[1], last[4])
    if pop(last[1])["parallel_efficiency"] > 0.8:
        assert abs(whole - seconds[1] / (4 * seconds[4])) < 0.05, (whole, seconds)
    done = run([program("chex-inspect"), "diff", f"{work}/1", f"{work}/4"], 1).stdout
    shows(done, rf"^time     from A to B: computation scaling {computation:.2f}, global efficiency {whole:.2f}$")
    found = json.loads(run([program("chex-inspect"), "--json", "diff", f"{work}/1", f"{work}/4"], 1).stdout)
    found = found["results"][0]["scaling"]
    assert abs(found["computation_scaling"] - computation) < 1e-4 and abs(found["global_efficiency"] - whole) < 1e-4


@case("times of a version without CPU times: n/a, and neither an efficiency nor 'nothing to change'")
def _(work):
    out = f"{work}/run"
    run(words(out, "--epochs", 1))
    path = f"{out}/metrics.jsonl"
    with open(path, encoding="utf-8") as f:
        lines = list(map(json.loads, f))
    for rank in (r for line in lines if line["kind"] == "times" for r in line["ranks"]):
        for name in ("cpu", "useful", "threads", "cpu_parts"):
            del rank[name]
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    text, times = inspect(out)
    shows(text, r"^         parallel efficiency n/a = load balance n/a x communication n/a ",
          r"^            0  \S+ +n/a( +\d+\.\d){9}$")
    assert times["factors"]["parallel_efficiency"] is None and "nothing to change" not in text


# ---- a rank that is slow ---------------------------------------------------------------------------------------------


def slow_reader(work, count, slow, milliseconds):
    out = f"{work}/run"
    line = words(out, "--cache", "none", "--epochs", 1, batch={2: 8, 4: 4}[count])
    done = run(job(count, slow, reads_wait(milliseconds), line), env=ENVIRONMENT)
    found = times_of(out)
    waits = [r["parts"]["data_wait"] for r in found[0]["ranks"]]
    assert max(waits) == waits[slow] > 0.5 * found[0]["seconds"], found[0]
    told = rf"ranks wait \d+ % for rank {slow}, \S+: its reading; --stage"
    shows(done.stderr, rf"^         {told}$")
    text, times = inspect(out)
    shows(text, rf"^         {told}$", rf"time     the last start: \d+ steps of {count} ranks in ",
         *(rf"^ +{r}  \S+ +\d+( +\d+\.\d){{9}}$" for r in range(count)))
    work = [r["work"] for r in times["ranks"]]  # a rank that waits for its disk uses no CPU
    assert sum(work) / count < 0.9 * max(work) and times["factors"]["parallel_efficiency"] < 0.6, times


@case("two ranks of which one reads slowly: the sentence names it, its reading, and --stage")
def _(work):
    slow_reader(work, 2, 1, 150)


@case("four ranks of which one reads slowly: whichever it is, it is named", slow=True)
def _(work):
    for slow in (0, 2, 3):
        slow_reader(f"{work}/{slow}", 4, slow, 500)
        shutil.rmtree(f"{work}/{slow}")


@case("two ranks of which one computes slowly: the sentence names it, and its computing")
def _(work):
    how = ["env", f"LD_PRELOAD={os.path.dirname(harness.library())}/slow_math.so", "CHEX_SLOW_MATH=900"]
    for slow in (1, 0):
        out = f"{work}/{slow}"
        done = run(job(2, slow, how, words(out, "--cache", "host", "--bootstrap", 0)), env=ENVIRONMENT)
        ranks = times_of(out)[-1]["ranks"]
        assert ranks[slow]["parts"]["forward"] > 0.5 + ranks[1 - slow]["parts"]["forward"], ranks
        assert ranks[1 - slow]["parts"]["reduce"] > ranks[slow]["parts"]["reduce"], ranks
        told = rf"ranks wait \d+ % for rank {slow}, \S+: its computing; look for other processes on that machine, " \
            r"and for a lower clock"
        shows(done.stderr, rf"^         {told}$")
        shows(inspect(out)[0], rf"^         {told}$")


def reads_of(work, out, *more):
    """How often each of two ranks reads from the data set, and from the folder of --stage."""
    counts = []
    for folder in (data(), f"{work}/stage"):
        os.makedirs(folder, exist_ok=True)
        shutil.rmtree(out, ignore_errors=True)
        how = ["env", f"LD_PRELOAD={harness.library()}", f"CHEX_FAULT_BELOW={os.path.realpath(folder)}"]
        line = words(out, "--cache", "none", *more)
        groups = [["-np", "1", *how, f"CHEX_FAULT_REPORT={work}/{rank}", *line] for rank in (0, 1)]
        run([mpi.mpirun("chex-train"), *groups[0], ":", *groups[1]], env=ENVIRONMENT)
        counts.append([int(re.search(r"^read (\d+)$", slurp(f"{work}/{rank}").decode(), re.M)[1]) for rank in (0, 1)])
    return counts


@case("the ranks of a node share a copy: one of them reads the data set for --stage, once; all images are read from it")
def _(work):
    out = f"{work}/run"
    (plain, none), images = reads_of(work, out), 2 * 90
    assert none == [0, 0] and sum(plain) >= images, (plain, none)
    for _ in range(2):  # the second time the copy is there
        source, copied = reads_of(work, out, "--stage", f"{work}/stage")
        assert sum(copied) >= images, copied
        assert source[1] < 20 and min(copied) >= images // 2 - 20, (source, copied)
    twice = reads_of(work, out, "--stage", f"{work}/stage", "--epochs", 4)[0]
    assert twice == source, (twice, source)  # epochs read none of it


@case("if only one of the ranks wants a trace, the difference is reported and nothing is begun")
def _(work):
    line = words(f"{work}/run")
    groups = [mpi.mpirun("chex-train"), "-np", "1", *line, "--trace", f"{work}/t.json", ":", "-np", "1", *line]
    shows(run(groups, 2, env=ENVIRONMENT).stderr,
          r"does not do the same as rank 0: it has 'trace no', rank 0 'trace yes'")
    assert os.listdir(work) == []


# ---- the trace -------------------------------------------------------------------------------------------------------


def spans(path):
    """{(rank, track): [(name, begin, end), ...]}; each by its time, and none over another of its track."""
    events = json.loads(slurp(path))
    found = {}
    for e in events:
        assert e["ph"] in "MX", e
        if e["ph"] == "X":
            found.setdefault((e["pid"], e["tid"]), []).append((e["name"], e["ts"], e["ts"] + e["dur"]))
    for track in found.values():
        for (_, begin, end), (_, follows, _) in zip(track, track[1:]):
            assert begin <= end <= follows + 0.002, (begin, end, follows)
    return found


def check_ranks(found, count, steps):
    """Parts of a step lie inside it; a sum that a rank has is behind the beginning of that step on every other rank."""
    begun = []
    for rank in range(count):
        track = found[rank, STEPS]
        numbered = [s for s in track if s[0].startswith("step ")]
        assert [name for name, _, _ in numbered] == [f"step {i}" for i in range(1, steps + 1)], numbered
        assert {name for name, _, _ in track} >= {"evaluation", "save"}, track
        parts = [s for s in found[rank, HOST] if s[0] in ("forward", "backward", "reduce", "optimizer", "data_wait")]
        for name, begin, end in parts:
            assert any(a - 1 <= begin and end <= b + 1 for _, a, b in numbered), f"{name} {begin} {end} is in no step"
        reduced = [end for name, _, end in parts if name == "reduce"]
        assert len(reduced) == steps
        begun.append(list(zip((begin for _, begin, _ in numbered), reduced)))
    for step in range(steps):
        latest = max(begun[rank][step][0] for rank in range(count))
        for rank in range(count):
            assert begun[rank][step][1] > latest - 500, f"rank {rank} has the sum of step {step + 1} before it began"


@case("a trace of two ranks: spans nest, none overlaps another, and all use one clock")
def _(work):
    out, path = f"{work}/run", f"{work}/t.json"
    run(job(2, line=words(out, "--trace", path)), env=ENVIRONMENT)
    check_ranks(spans(path), 2, 12)
    names = [e["args"]["name"] for e in json.loads(slurp(path)) if e["name"] == "process_name"]
    assert [re.sub(r", \S+$", "", n) for n in names] == ["chex-train, rank 0", "chex-train, rank 1"], names
    assert sorted(os.listdir(work)) == ["run", "t.json"], "a temporary file is left"


@functools.lru_cache(None)
def other_clock():
    """How a process is started whose clock is five thousand seconds ahead."""
    how = ["unshare", "--time", "--monotonic", "5000"]
    if not shutil.which("unshare") or subprocess.run([*how, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no time namespace may be made here")
    return how


@case("ranks whose clocks are an hour apart are on one clock in the trace")
def _(work):
    out, path = f"{work}/run", f"{work}/t.json"
    run(job(2, 1, other_clock(), words(out, "--trace", path)), env=ENVIRONMENT)
    check_ranks(spans(path), 2, 12)


@case("a rank whose clock runs a quarter faster: its spans nest, in all epochs, and are on one clock")
def _(work):
    out, path = f"{work}/run", f"{work}/t.json"
    how = ["env", f"LD_PRELOAD={os.path.dirname(harness.library())}/fast_clock.so", "CHEX_CLOCK_RATE=1.25"]
    run(job(2, 1, how, words(out, "--trace", path)), env=ENVIRONMENT)
    check_ranks(spans(path), 2, 12)


@case("four ranks whose clocks differ, one of them slow, are on one clock", slow=True)
def _(work):
    out, path = f"{work}/run", f"{work}/t.json"
    line = words(out, "--trace", path, "--cache", "none", batch=4)
    run(job(4, 2, [*other_clock(), *reads_wait(20)], line), env=ENVIRONMENT)
    check_ranks(spans(path), 4, 12)


@case("a run that diverges leaves the trace of rank 0")
def _(work):
    path = f"{work}/t.json"
    run(words(f"{work}/run", "--trace", path, "--lr", "1e30", "--optimizer", "sgd"), 7)
    assert any(name.startswith("step ") or name == "forward" for track in spans(path).values() for name, _, _ in track)


# ---- a device with a clock of its own --------------------------------------------------------------------------------


def emulated():
    for name in ("tests/chex-train-emulated", "chex-train-emulated"):
        try:
            program(name)
            return name
        except Skip:
            pass
    raise OtherBuild("there is no emulated GPU")


@case("the emulated GPU: its parts by its own clock, busy for less than all of the time, with a track of its own")
def _(work):
    out, path = f"{work}/run", f"{work}/t.json"
    line = words(out, "--device", "cuda-emulated", "--trace", path, "-v", "--epochs", 1, "--cache", "none",
                 name=emulated(), batch=16)
    shows(run(line).stderr, r"^         device busy \d\.\d\d, share of the roofline 0\.00$")
    epoch, whole = times_of(out)
    rank, = epoch["ranks"]
    parts = rank["parts"]
    assert abs(rank["busy"] - parts["forward"] - parts["backward"] - parts["optimizer"]) < 1e-9
    assert 0 < epoch["factors"]["device_busy"] < 1, epoch
    assert abs(epoch["factors"]["device_busy"] - rank["busy"] / epoch["seconds"]) < 1e-9, epoch
    # The model of a dry run, in full steps: five of 16 images, and one of 10, in micro-batches of 4.
    model = re.search(r"launches a step of 16 images, .* ([0-9,]+) img/s$", run([*line, "-n"]).stderr, re.M)
    wanted = (5 + 3 / 4) * 16 / float(model[1].replace(",", ""))
    assert abs(rank["modelled"] / wanted - 1) < 1e-3, (rank, model[0])
    assert abs(epoch["factors"]["roofline_share"] - rank["modelled"] / rank["busy"]) < 1e-12, epoch
    assert parts["backward"] > 0 and parts["evaluation"] > 0 and whole["steps"] == epoch["steps"] == 6
    found = spans(path)
    device = [name for name, _, _ in found[0, DEVICE]]
    assert set(device) <= {"copy", "forward", "backward", "optimizer"} and device.count("optimizer") == 6
    assert device.count("forward") == device.count("backward") >= 6
    assert {name for name, _, _ in found[0, HOST]} <= {"data_wait", "meet"}
    text, _ = inspect(out)
    shows(text, r"; device busy \d\.\d\d, share of the roofline 0\.00$", r"data wait  copy forward")


@case("the emulated GPU: it waits for the first images of a run, however long they take")
def _(work):
    out = f"{work}/run"
    line = words(out, "--device", "cuda-emulated", "--time-limit", "0.001s", "--cache", "none", name=emulated())
    run([*reads_wait(400), *line], 75)
    with open(f"{out}/metrics.jsonl", encoding="utf-8") as f:
        first = next(line for line in map(json.loads, f) if line["kind"] == "step")
    assert first["step"] == 1 and first["parts"]["data_wait"] >= 0.39, first


@case("ranks that sum by NCCL: what a device does in an evaluation is evaluation, and no wait for other ranks")
def _(work):
    spent = {}
    for name in ("nccl", "none"):  # none: sums by messages
        out = f"{work}/{name}"
        line = words(out, "--device", "cuda-emulated", "--epochs", 1, "--cache", "none", name=emulated(), batch=4)
        run(job(2, line=line), env={**ENVIRONMENT, "EMULATOR_DEVICES": "90 90", "FAKE_NCCL": name})
        spent[name] = sum(rank["parts"]["evaluation"] for rank in times_of(out)[-1]["ranks"])
    assert spent["nccl"] > spent["none"] / 3, spent


if __name__ == "__main__":
    sys.exit(case.main())
