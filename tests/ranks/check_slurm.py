#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The job scripts doc/slurm/train.sh, which doc/cluster.md shows, and doc/slurm/scaling.sh, with stand-ins for Slurm's
commands (fake_slurm.py).  A job that runs out of time, is preempted or loses a rank is requeued, resumes, and ends with
the bytes of an uninterrupted job.

    check_slurm.py [PATTERN]      only the cases whose name matches the regular expression

No Slurm was asked; what it does is taken from its manual pages sbatch(1), srun(1), scontrol(1).
"""
import json
import os
import re
import shutil
import sys

import fake_slurm
import mpi
from fixtures import fixture
from support import SOURCE, Cases, Skip, program, run, slurp, tree

case = Cases()
SCRIPT = os.path.join(SOURCE, "doc", "slurm", "train.sh")
SCALING = os.path.join(SOURCE, "doc", "slurm", "scaling.sh")
EXACT = re.compile(r"latest|best\.safetensors|predictions-.*|metrics-.*\.json|auroc.*\.svg")
OPTIONS = ("--model", "densenet-micro", "--crop", "32", "--micro-batch", "1", "--bootstrap", "20", "-j", "1",
           "--checkpoint-every", "2steps", "--cache", "none", "--timeout", "10s")


def submit(work, name, *words, events="none", code=0, batch=4, epochs=3):
    """sbatch WORDS train.sh ...; the starts of the job, its log and the folder of the run."""
    state, out = f"{work}/{name}.state", f"{work}/{name}"
    os.makedirs(state)
    if not os.path.isdir(f"{work}/bin"):
        fake_slurm.install(f"{work}/bin", program("chex-train"), mpi.mpirun("chex-train"))
    environment = dict(mpi.ENVIRONMENT, PATH=f"{work}/bin:{os.environ['PATH']}", FAKE_STATE=state, FAKE_EVENTS=events,
                       TMPDIR=f"{work}/near")
    os.makedirs(f"{work}/near", exist_ok=True)
    done = run(["sbatch", *words, SCRIPT, "-d", fixture("trainable"), "-o", out, "--batch", batch, "--epochs", epochs,
         *OPTIONS], None, env=environment)
    log = slurp(f"{state}/log").decode()
    assert done.returncode == code, f"exit code {done.returncode} instead of {code}: {done.stderr}\n{log}"
    with open(f"{state}/sbatch.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f], log, out


def kept(out):
    """What does not depend on when a run was stopped; of the checkpoints the newest."""
    newest = slurp(f"{out}/latest").split()[0].decode()
    found = {name: digest for name, digest in tree(out).items()
             if EXACT.fullmatch(name) or name.startswith(newest + ".")}
    found.pop("latest")  # the one before it depends on that
    return newest, found


def ends_same(a, b):
    assert kept(a) == kept(b), f"{kept(a)[0]}, {kept(b)[0]}: " + \
        ", ".join(name for name, digest in kept(a)[1].items() if kept(b)[1].get(name) != digest)


def weights(path):
    """{name: bytes} of what the number of ranks must not change; running statistics are equal within rounding."""
    blob = slurp(path)
    begins = 8 + int.from_bytes(blob[:8], "little")
    return {name: blob[begins + about["data_offsets"][0]:begins + about["data_offsets"][1]]
            for name, about in json.loads(blob[8:begins]).items() if name != "__metadata__" and "running_" not in name}


def codes(starts):
    return [(start["code"], start["requeued"]) for start in starts]


@case("the job script is clean to shellcheck, and has the options that doc/cluster.md shows")
def _(_work):
    text = slurp(SCRIPT).decode()
    assert os.access(SCRIPT, os.X_OK) and text.startswith("#!/bin/sh\n")
    job = fake_slurm.options(SCRIPT, [])
    assert (job["nodes"], job["ntasks-per-node"], job["gpus-per-node"]) == ("1", "4", "4"), job
    assert {"requeue", "signal", "open-mode"} <= job.keys(), job
    assert re.fullmatch(r"1@\d+:\d\d:\d\d", job["switches"]), job
    assert fake_slurm.options(SCALING, [])["switches"] == job["switches"]
    page = slurp(os.path.join(SOURCE, "doc", "cluster.md")).decode()
    lines = re.findall(r"^    (sbatch .*train\.sh.*?)(?:  +#.*)?$", page, re.M)
    assert {line.split("train.sh")[0] for line in lines} >= {"sbatch doc/slurm/", "sbatch --nodes=4 doc/slurm/"}, lines
    body = text[text.index("#SBATCH"):]
    quoted = re.search(r"<!-- job script -->\n(.*?)<!-- /job script -->", page, re.S)
    assert quoted, "doc/cluster.md shows no job script"
    shown = re.sub(r"^    ", "", quoted[1], flags=re.M).strip()
    assert shown == body.strip(), "doc/cluster.md shows another job script"
    if not shutil.which("shellcheck"):
        raise Skip("no shellcheck")
    run(["shellcheck", SCRIPT])


@case("one node, four ranks: out of time, then preempted: queued again, resumes, ends as one that was not")
def _(work):
    starts, log, out = submit(work, "run", events="USR1 preempt")
    assert codes(starts) == [(75, True), (75, True), (0, False)], starts
    assert {start["tasks"] for start in starts} == {"4"}, starts
    assert starts[0]["to"] == starts[1]["from"] < starts[1]["to"] == starts[2]["from"] < starts[2]["to"], starts
    assert len(re.findall(r"stopped at step \d+", log)) == 2 and log.count("done     test") == 1, log
    assert re.search(rf"resume   {starts[1]['to']}", log), log
    copies = re.findall(r"note     (\d+) shards in \S+: (\d+) were there, (.*) copied", log)
    assert len(copies) == 3 and len(os.listdir(f"{work}/near")) == 1, f"four ranks of a host, one copy: {copies}"
    assert copies[0][1] == "0" and [c[1:] for c in copies[1:]] == 2 * [(copies[0][0], "0 bytes")], copies
    whole, _, straight = submit(work, "straight")
    assert codes(whole) == [(0, False)], whole
    ends_same(straight, out)


@case("a job with a wrong command or a permanent error is not queued again")
def _(work):
    starts, log, _ = submit(work, "options", code=2, batch="none")
    assert codes(starts) == [(2, False)] and "--batch" in log, (starts, log)


@case("a rank that is lost: exit status 8 is queued again, and resumes; after three times no more", slow=True)
def _(work):
    starts, log, out = submit(work, "run", events="lose")
    assert codes(starts) == [(8, True), (0, False)], (starts, log)
    _, _, straight = submit(work, "straight")
    ends_same(straight, out)
    starts, log, _ = submit(work, "ever", events="lose lose lose lose lose", code=8, epochs=12)
    assert codes(starts) == [(8, True)] * 3 + [(8, False)], (starts, log)


@case("starts that ended in good order do not count as losses", slow=True)
def _(work):
    starts, log, _ = submit(work, "run", events="USR1 USR1 USR1 lose", epochs=8)
    assert codes(starts) == [(75, True)] * 3 + [(8, True), (0, False)], (starts, log)
    assert not [name for name in os.listdir(f"{work}/run.state") if name.endswith(".lost")], "a count is left"


@case("four nodes, sixteen ranks: the same, and the weights of one node with the same global batch", slow=True)
def _(work):
    starts, log, out = submit(work, "run", "--nodes=4", events="USR1 USR1", batch=1)
    assert codes(starts) == [(75, True), (75, True), (0, False)], (starts, log)
    assert {start["tasks"] for start in starts} == {"16"}, starts
    _, _, straight = submit(work, "straight", "--nodes=4", batch=1)
    ends_same(straight, out)
    starts, log, other = submit(work, "other", batch=4)  # four ranks of four images are as many
    assert kept(other)[0] == kept(out)[0], log
    here, there = (weights(f"{folder}/{kept(out)[0]}.safetensors") for folder in (out, other))
    assert here == there and len(here) > 50, [name for name in here if here[name] != there.get(name)]


def scale(work, *words, code=0, steps="3", more=()):
    """sbatch WORDS scaling.sh ...; the words of each srun, and what the log says."""
    state, out = f"{work}/state", f"{work}/of scaling"
    for folder in (state, f"{work}/near"):
        os.makedirs(folder, exist_ok=True)
    if not os.path.isdir(f"{work}/bin"):
        fake_slurm.install(f"{work}/bin", program("chex-train"), mpi.mpirun("chex-train"))
    environment = dict(mpi.ENVIRONMENT, PATH=f"{work}/bin:{os.environ['PATH']}", FAKE_STATE=state,
                       TMPDIR=f"{work}/near", STEPS=steps)
    run(["sbatch", *words, SCALING, out, "-d", fixture("trainable"), "--batch", "4", *OPTIONS, *more], code,
        env=environment)
    log = slurp(f"{state}/log").decode()
    return re.findall(r"--nodes=(\d+)\n--ntasks=(\d+)\n", slurp(f"{state}/srun").decode()), log, out


@case("the job of scaling runs 1, 2 and all 3 ranks for some steps each, and hands the runs to chex-inspect scaling")
def _(work):
    tasks, log, out = scale(work, "--ntasks-per-node=3")
    assert tasks == [("1", "1"), ("1", "2"), ("1", "3")], (tasks, log)
    for ranks in (1, 2, 3):
        document = json.loads(slurp(f"{out}/{ranks}/run.json"))
        session, = document["sessions"]
        assert (session["ranks"], session["to_step"], session["exit"]) == (ranks, 3, 0), session
        assert document["short_run"] == "--max-steps 3" and document["global_batch"] == 4 * ranks, document
        assert not os.path.exists(f"{out}/{ranks}/best.safetensors")
    assert slurp(f"{work}/state/inspect").decode().splitlines() == \
        ["scaling", f"{out}/1", f"{out}/2", f"{out}/3", "-o", f"{out}/scaling.svg"]
    scale(work, "--ntasks-per-node=1", steps="2")  # measured again, not resumed
    assert json.loads(slurp(f"{out}/1/run.json"))["sessions"][-1]["to_step"] == 2


@case("the job of scaling on two nodes uses as few nodes as it can; it ends with the code of the first run that fails")
def _(work):
    tasks, log, _ = scale(work, "--nodes=2", "--ntasks-per-node=2", steps="1")
    assert tasks == [("1", "1"), ("1", "2"), ("2", "4")], (tasks, log)
    os.remove(f"{work}/state/inspect")
    scale(work, code=2, more=("--lr", "fast"))
    assert not os.path.exists(f"{work}/state/inspect")
    run(["shellcheck", SCALING] if shutil.which("shellcheck") else ["true"])


if __name__ == "__main__":
    sys.exit(case.main())
