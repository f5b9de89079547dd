#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the figures of chex-inspect scaling with the wall time of the commands, and with POP's formulas.

    make bench-scaling [BENCH_FLAGS='--images N --epochs N']

It trains densenet-micro with 1, 2 and 4 ranks of one thread each, first on all cores, then all on one core.  For each
number of ranks n it prints

    T              wall time of the command, as time(1) measures it
    start          the part of T outside of training, mostly the start of mpirun
    T1 / (n Tn)    the efficiency that follows from it
    efficiency     of chex-inspect scaling: from the times that the run recorded
    global         global efficiency of chex-inspect scaling (POP)

Global efficiency is U1 / (n Tn) (U1: CPU time of the reference), so it equals T1 / (n Tn) only if the reference had its
core for itself.  The exit status is 1 if a factor differs from POP's formulas, computed here from metrics.jsonl, by
more than 0.00005; or if global efficiency differs from T1 / (n Tn) by more than 0.05 although the reference used its
core for at least 97 % of the time.  The start counts in T only, so training has to take much longer than it.  This is
a measurement: run it on a machine without other work.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILDDIR", ".")
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
TOLERANCE = 0.05
DIGITS = 0.00005
FACTORS = ("parallel_efficiency", "load_balance", "communication_efficiency", "computation_scaling",
           "global_efficiency")


def call(*words):
    return subprocess.run([str(word) for word in words], env=ENVIRONMENT, check=True, stdout=subprocess.PIPE).stdout


def program(name):
    return os.path.join(BUILD, name)


def make_data(work, images):
    call(program("chex-synth"), "-q", "-n", images, "--size", 128, "-o", f"{work}/images")
    call(program("chex-convert"), "-q", "-i", f"{work}/images/images", "-l", f"{work}/images/Data_Entry_2017_v2020.csv",
         "-o", f"{work}/shards", "--size", 64)


def train(work, out, ranks, cores, options):
    """Trains with `ranks` ranks on these cores; returns the wall seconds of the command."""
    began = time.monotonic()
    call("taskset", "-c", cores, os.environ.get("MPIRUN", "mpirun"), "--oversubscribe",
         "--bind-to", "none", "-np", ranks, program("chex-train"), "-q", "-d", f"{work}/shards", "-o", out, "-j", 1,
         "--model", "densenet-micro", "--crop", 56, "--batch", 32 // ranks, "--micro-batch", 8, "--epochs",
         options.epochs, "--bootstrap", 0)
    return time.monotonic() - began


def last_times(out):
    with open(f"{out}/metrics.jsonl", encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == "times"][-1]


def factors(times, reference):
    """POP's factors of a run (https://co-design.pop-coe.eu/metrics/); all runs have the same epochs and images."""
    useful = [rank["useful"] for rank in times["ranks"]]
    total, first = (sum(rank["useful"] * rank["threads"] for rank in run["ranks"]) for run in (times, reference))
    balance, communication = sum(useful) / len(useful) / max(useful), max(useful) / times["seconds"]
    parallel, computation = balance * communication, first / total
    return dict(zip(FACTORS, (parallel, balance, communication, computation, parallel * computation), strict=True))


def sweep(work, name, cores, options):
    """Trains and prints a table; returns the faults found."""
    counts, faults = (1, 2, 4), []
    runs = {ranks: f"{work}/{name.replace(' ', '-')}-{ranks}" for ranks in counts}
    wall = {ranks: train(work, out, ranks, cores, options) for ranks, out in runs.items()}
    document = json.loads(call(program("chex-inspect"), "scaling", "--json", *runs.values()))
    rows = {row["ranks"]: row for row in document["results"][0]["rows"]}
    reference = last_times(runs[1])
    share = reference["ranks"][0]["useful"] / reference["seconds"]
    print(f"\n{name}: the reference used its core for {100 * share:.1f} % of the time")
    print("    ranks      T, s  start, s  T1 / (n Tn)  efficiency   global  difference")
    for ranks in counts:
        row, times, measured = rows[ranks], last_times(runs[ranks]), wall[1] / ranks / wall[ranks]
        start = wall[ranks] - times["seconds"]
        difference = row["global_efficiency"] - measured
        print(f"    {ranks:5} {wall[ranks]:9.2f} {start:9.2f} {measured:12.3f} {row['efficiency']:11.3f} "
              f"{row['global_efficiency']:8.3f} {difference:+11.3f}")
        for key, value in factors(times, reference).items():
            if abs(row[key] - value) > DIGITS:
                faults.append(f"{name}, {ranks} ranks: {key} is {row[key]}, by POP's formula {value}")
        if share >= 0.97 and abs(difference) > TOLERANCE:
            faults.append(f"{name}, {ranks} ranks: global efficiency differs by {difference:+.3f} from T1 / (n Tn)")
    if share < 0.97:
        print("    other programs used the core, so global efficiency is below T1 / (n Tn)")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1300)
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as work:
        make_data(work, options.images)
        faults = sweep(work, f"{len(cores)} cores", ",".join(map(str, cores)), options)
        faults += sweep(work, "one core", str(cores[0]), options)
    print("\nall factors are those of POP's formulas to four digits" if not any("formula" in f for f in faults) else "")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
