#!/usr/bin/env python3
"""chex-inspect check --full beside cat, on a data set that is in the page cache.

    bench/full_check.py [--dataset FOLDER] [--runs N] [--threads N] [--bytes N]

cat to /dev/null copies every byte once and looks at none: what there is to be had.  Both read the same shards, taking
turns, so that a noisy machine disturbs both alike; medians are shown, and the ratio.  The seconds of CPU say what a
loaded machine hides: two threads that share a core are not faster than one.  A data set of less than --bytes is read
several times in a run.  Without --dataset half a gigabyte is made from synthetic images.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import glob
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

BUILD = os.environ.get("BUILDDIR", "build")


def tool(name):
    return os.path.join(BUILD, name)


def make(folder):
    synthetic, shards = os.path.join(folder, "synthetic"), os.path.join(folder, "shards")
    subprocess.run([tool("chex-synth"), "-q", "-n", "2000", "--size", "64", "-o", synthetic], check=True)
    subprocess.run([tool("chex-convert"), "-q", "-i", os.path.join(synthetic, "images"), "-l",
                    os.path.join(synthetic, "Data_Entry_2017_v2020.csv"), "--size", "512", "-o", shards], check=True)
    return shards


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(command):
    """(by the clock, of CPU)"""
    begun, used = time.perf_counter(), cpu()
    with open(os.devnull, "wb") as null:
        subprocess.run(command, stdout=null, check=True)
    return time.perf_counter() - begun, cpu() - used


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bytes", type=int, default=4 << 30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dataset = options.dataset or make(folder)
        with open(os.path.join(dataset, "manifest.json"), encoding="utf-8") as f:
            size = sum(s["size"] for s in json.load(f)["shards"])
        times = -(-options.bytes // size)
        shards = sorted(glob.glob(os.path.join(glob.escape(dataset), "*.tfrecord-?????-of-?????")))
        full = [tool("chex-inspect"), "check", "-q", "-j", str(options.threads), "--full"]
        commands = {"cat": ["cat"] + shards * times, "--full": full + [dataset] * times,
                    "--full --sha256": full + ["--sha256", dataset]}
        taken = {name: [] for name in commands}
        seconds(commands["cat"])  # and so into the page cache
        for i in range(options.runs):
            for name, command in commands.items():
                if name != "--full --sha256" or i == 0:  # twenty times as slow, and only for comparison
                    taken[name].append(seconds(command))
    print(f"{size * times / 1e9:.2f} GB a run ({times} times {size / 1e9:.2f} GB), medians of {options.runs} runs, "
          f"{options.threads} threads")
    rate = {}
    for name, all_taken in taken.items():
        read = size if name == "--full --sha256" else size * times
        clock = [t[0] for t in all_taken]
        rate[name] = read / statistics.median(clock) / 1e9
        print(f"{name:16} {rate[name]:6.2f} GB/s   {100 * rate[name] / rate['cat']:5.0f} % of cat   "
              f"({read / max(clock) / 1e9:.2f} to {read / min(clock) / 1e9:.2f}; "
              f"{statistics.median(t[1] for t in all_taken) / read * 1e9:.3f} s of CPU a GB)")


if __name__ == "__main__":
    main()
