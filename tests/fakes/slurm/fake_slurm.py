# SPDX-License-Identifier: Apache-2.0
"""sbatch, srun and scontrol for tests of job scripts: no Slurm, one machine, mpirun below (Python 3, stdlib only).

    install(folder, chex_train, mpirun)   makes the commands; the folder is for PATH, $FAKE_STATE for what they note.
                                          chex-inspect there only notes its words

sbatch takes the script's #SBATCH lines and then its own options, sets what Slurm sets for the script, and runs a copy
of it, again when it was requeued.  srun drops its options and starts a rank for each task.  What sbatch does to
a start is in $FAKE_EVENTS, a word for each: "none"; a signal for the ranks, once the start has saved; "preempt": TERM
for ranks and script; "lose": the last rank stops for good.  $FAKE_STATE/sbatch.jsonl gets a line for each start.
"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SRUN = """#!/bin/sh
tasks=$SLURM_NTASKS
while case $1 in --ntasks=*) tasks=${{1#*=}} ;; -*) true ;; *) false ;; esac; do
    echo "$1" >> "$FAKE_STATE/srun"
    shift
done
exec {mpirun} -np "$tasks" "$@"
"""
SCONTROL = """#!/bin/sh
[ "$1" = requeue ] && [ "$2" = "$SLURM_JOB_ID" ] && echo "$2" > "$FAKE_STATE/requeued"
"""
INSPECT = """#!/bin/sh
printf '%s\\n' "$@" > "$FAKE_STATE/inspect"
"""
MPIRUN = """#!/bin/sh
echo "$*" >> "$FAKE_STATE/mpirun"
exec {mpirun} "$@"
"""


def install(folder, chex_train, mpirun):
    os.makedirs(folder)
    os.symlink(chex_train, os.path.join(folder, "chex-train"))
    sbatch = f"#!/bin/sh\nexec {sys.executable} {HERE}/fake_slurm.py \"$@\"\n"
    for name, text in (("srun", SRUN.format(mpirun="mpirun")), ("scontrol", SCONTROL), ("sbatch", sbatch),
                       ("chex-inspect", INSPECT), ("mpirun", MPIRUN.format(mpirun=mpirun))):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)


def options(script, words):
    """{option: value} of the #SBATCH lines up to the first command, then of the command line."""
    given = []
    with open(script, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                break
            if line.startswith("#SBATCH"):
                given += shlex.split(line.removeprefix("#SBATCH"))
    pairs = (word.removeprefix("--").partition("=") for word in given + words)
    return {name: value for name, _, value in pairs}


def newest(run):
    try:
        with open(os.path.join(run, "latest"), encoding="ascii") as f:
            return f.readline().split()[0]
    except (OSError, IndexError):
        return ""


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def act(event, script, run, was):
    """Wait until this start has saved, then do it."""
    import mpi  # pylint: disable=import-outside-toplevel
    while script.poll() is None and newest(run) in ("", was):
        time.sleep(0.01)
    found = [pid for pid in mpi.children(script.pid, "chex-train") if name_of(pid) == "chex-train"]  # not mpirun
    if script.poll() is not None or not found:
        return
    if event == "lose":
        os.kill(found[-1], signal.SIGSTOP)
        return
    number = signal.SIGTERM if event == "preempt" else getattr(signal, "SIG" + event)
    for pid in found:
        os.kill(pid, number)
    if event == "preempt":
        script.send_signal(number)


def start(job, words, run, event, count):
    state, nodes = os.environ["FAKE_STATE"], int(job["nodes"])
    environment = dict(os.environ, SLURM_JOB_ID="42", SLURM_JOB_NUM_NODES=str(nodes),
                       SLURM_NTASKS=str(nodes * int(job["ntasks-per-node"])),
                       SLURM_CPUS_PER_TASK=job["cpus-per-task"])
    if count:
        environment["SLURM_RESTART_COUNT"] = str(count)
    was, log = newest(run), os.path.join(state, "log")
    with open(log, "ab") as out:  # --open-mode=append
        script = subprocess.Popen(words, env=environment, cwd=state, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        if event != "none":
            act(event, script, run, was)
        code = script.wait()
    requeued = os.path.join(state, "requeued")
    again = os.path.exists(requeued)
    if again:
        os.remove(requeued)
    with open(os.path.join(state, "sbatch.jsonl"), "a", encoding="utf-8") as f:
        print(json.dumps({"event": event, "code": code, "requeued": again, "tasks": environment["SLURM_NTASKS"],
                          "from": was, "to": newest(run), "options": job}), file=f)
    return code, again


def main(words):
    first = next(i for i, word in enumerate(words) if not word.startswith("-"))
    script, rest = words[first], words[first + 1:]
    job = options(script, words[:first])
    assert "requeue" not in job or re.fullmatch(r"[A-Z0-9]+@\d+", job["signal"]), job
    copy = os.path.join(os.environ["FAKE_STATE"], "slurm_script")  # as in the spool folder of a node
    shutil.copy(script, copy)
    run = rest[rest.index("-o") + 1] if "-o" in rest else ""
    events = os.environ.get("FAKE_EVENTS", "none").split()
    for count in range(10):
        code, again = start(job, [copy, *rest], run, events[count] if count < len(events) else "none", count)
        if not again:
            return code
    return 99


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
