#!/usr/bin/env python3
"""How fast the loader of chex-train gives images, with nobody who computes; beside a DataLoader of PyTorch.

    bench/loader.py [--dataset FOLDER] [--runs N] [--seconds N] [--cold] [--threads 1,2] [--processes 1,4,8] [--rate R]

Warm: from memory (--cache host), and from the page cache, with and without checksums.  Cold (--cold, with a data set
larger than what is read in a run): the page cache is emptied of the data set before each run, as far as the system lets
go; whole-set shuffle against windows of 16 shards, with and without telling the system what comes.  The DataLoader has
the Dataset and the Sampler of chex_tools.torch and gives crops as uint8 tensors, batch 16, with worker processes in
place of threads; it checks nothing.  Contenders take turns; medians, quarters, and the middle of
the ratios of neighbours to the first.  Without PyTorch its lines are left out by name.

Then 1, 4 and 8 processes at once, as the ranks of a node, which share its page cache and the copy of --stage: what they
get at most, and what share of the time a GPU that uses up --rate images a second waits for them (default: 15,000,
modelled for an H200; a clock stands in its place).  --cache device is the store of the emulated GPU, from which nothing
is copied.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILDDIR", "build")
MODULE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
EMULATED = "cuda-emulated"
EPOCH = 78_484  # images: patient:70,10,20 of 112,120

TORCH = r"""
import os, random, sys, time
import torch
from chex_tools.torch import Sampler, Shards
folder, split, seconds, workers = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
def augment(image):
    crop = min(image.shape[2], 224)
    x, y = (random.randint(0, n - crop) for n in image.shape[1:])
    image = image[:, y:y + crop, x:x + crop]
    return image.flip(2) if random.random() < 0.5 else image
shards = Shards(folder, split, augment)
loader = torch.utils.data.DataLoader(shards, batch_size=None, sampler=Sampler(shards, 16), num_workers=workers)
def cpu():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system
batches = iter(loader)
next(batches)
begun, used, images = time.monotonic(), cpu(), 0
for b, label, about in batches:
    images += len(b)
    if time.monotonic() - begun >= seconds:
        break
took = time.monotonic() - begun
del batches
print(images, took, cpu() - used)
"""


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def make(folder):
    synthetic, shards = os.path.join(folder, "synthetic"), os.path.join(folder, "shards")
    subprocess.run([os.path.join(BUILD, "chex-synth"), "-q", "-n", "4000", "--size", "128", "-o", synthetic],
                   check=True)
    subprocess.run([os.path.join(BUILD, "chex-convert"), "-q", "-i", os.path.join(synthetic, "images"), "-l",
                    os.path.join(synthetic, "Data_Entry_2017_v2020.csv"), "-o", shards], check=True)
    return shards


def manifest(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        return json.load(f)


def forget(folder):
    """The data set leaves the page cache."""
    for shard in manifest(folder)["shards"]:
        fd = os.open(os.path.join(folder, shard["name"]), os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def remember(folder, split):
    for shard in manifest(folder)["shards"]:
        if shard["split"] == split:
            with open(os.path.join(folder, shard["name"]), "rb") as f:
                while f.read(1 << 20):
                    pass


def ours(a, threads, **more):
    words = {"seconds": a.seconds, "threads": threads, **more}
    name = "loader-loop-emulated" if more.get("cache") == EMULATED else "loader-loop"
    return [os.path.join(BUILD, name), a.dataset, a.split, *(f"{key}={value}" for key, value in words.items())]


def contenders(a, threads):
    if a.cold:
        return {f"whole, {threads} threads": ours(a, threads),
                f"whole, {threads} threads, system not told": ours(a, threads, expect=0),
                f"windows of 16 shards, {threads} threads": ours(a, threads, window=16),
                f"windows of 16 shards, {threads} threads, system not told": ours(a, threads, window=16, expect=0)}
    found = {f"page cache, {threads} threads": ours(a, threads),
             f"page cache, no checksums, {threads} threads": ours(a, threads, crc="never"),
             f"page cache, windows of 16 shards, {threads} threads": ours(a, threads, window=16),
             f"memory, {threads} threads": ours(a, threads, cache="host")}
    if a.torch:
        found[f"DataLoader of PyTorch, {threads} worker processes"] = [sys.executable, "-c", TORCH, a.dataset, a.split,
                                                                       str(a.seconds), str(threads)]
    return found


def middle(values, form):
    values = sorted(values)
    quarters = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{quarters[1]:{form}} ({quarters[0]:{form}}-{quarters[2]:{form}})"


def compare(a, threads):
    commands = contenders(a, threads)
    rate, used = {n: [] for n in commands}, {n: [] for n in commands}
    for _ in range(a.runs):
        for name, command in commands.items():
            if a.cold:
                forget(a.dataset)
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True,
                                  env=dict(os.environ, PYTHONPATH=MODULE))
            images, seconds, cpu = (float(v) for v in done.stdout.split()[:3])
            rate[name].append(images / seconds)
            used[name].append(1e6 * cpu / images)
    first = next(iter(commands))
    print("| | img/s | best | of the first | processor, us an image |\n|---|---|---|---|---|")
    for name, rates in rate.items():
        ratio = "" if name == first else middle([o / f for f, o in zip(rate[first], rates)], ".2f")
        print(f"| {name} | {middle(rates, '.0f')} | {max(rates):.0f} | {ratio} | {middle(used[name], '.0f')} |",
              flush=True)
    print()


# ---- the ranks of a node -------------------------------------------------------------------------------------------


def sources(a):
    """Where the images of a rank come from."""
    found = {"page cache": {}, "--stage, page cache": {"stage": os.path.join(a.scratch, "near")},
             "--cache host": {"cache": "host"}}
    if os.access(os.path.join(BUILD, "loader-loop-emulated"), os.X_OK):
        found["--cache device, emulated"] = {"cache": EMULATED}
    return found


def together(a, count, rate, more):
    """So many processes at once; of all: images a second, microseconds of a processor an image, share of waiting."""
    lines = [ours(a, 2, crc="first", batch=64, images=EPOCH, rate=rate, seed=n + 1, wait=1, **more)
             for n in range(count)]
    started = [subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for line in lines]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    done = [[float(v) for v in process.communicate()[0].split()] for process in started]
    images = sum(d[0] for d in done)
    return (sum(d[0] / d[1] for d in done), 1e6 * sum(d[2] for d in done) / images,
            100 * sum(d[3] for d in done) / sum(d[1] for d in done))


def ranks(a):
    """The table: each count of processes, as fast as they come and at the rate of a GPU."""
    counts = [int(n) for n in a.processes.split(",")]
    print(f"Processes at once, as the ranks of a node: micro-batches of 64, 2 threads each, epochs of {EPOCH:,} "
          f"images; at most, and with GPUs that use up {a.rate:,} img/s each ({a.runs} runs, medians and quarters)\n")
    print("| images from | processes | img/s at most | of all GPUs' rate | processor, us an image | img/s with GPUs | "
          "data wait |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, more in sources(a).items():
        for count in counts:
            most, paced = [], []
            for _ in range(1 if EMULATED in more.values() else a.runs):  # the emulator takes its time to store images
                most.append(together(a, count, 0, more))
                paced.append(together(a, count, a.rate, more))
            share = statistics.median(m[0] for m in most) / (count * a.rate)
            print(f"| {name} | {count} | {middle([m[0] for m in most], '.0f')} | {share:.2f} | "
                  f"{middle([m[1] for m in most], '.1f')} | {middle([m[0] for m in paced], '.0f')} | "
                  f"{middle([m[2] for m in paced], '.1f')} % |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--dataset")
    p.add_argument("--split", default="train")
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--cold", action="store_true")
    p.add_argument("--no-torch", action="store_true")
    p.add_argument("--processes", default="1,4,8", help="'': leave out the table of ranks")
    p.add_argument("--only-processes", action="store_true")
    p.add_argument("--rate", type=int, default=15_000, help="img/s of a GPU, modelled")
    a = p.parse_args()
    a.torch = not a.no_torch and not a.cold and has_torch()
    if not a.torch and not a.no_torch and not a.cold:
        print("PyTorch is missing (Debian: python3-torch): left out\n")
    with tempfile.TemporaryDirectory() as folder:
        a.dataset = a.dataset or make(folder)
        m = manifest(a.dataset)
        size = sum(s["size"] for s in m["shards"] if s["split"] == a.split)
        if not a.cold:
            remember(a.dataset, a.split)
        print(f"{size / 1e9:.2f} GB of {m['record']['width']}x{m['record']['height']}, {a.runs} runs of "
              f"{a.seconds:g} s, in turns; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        for threads in [] if a.only_processes else a.threads.split(","):
            compare(a, int(threads))
        if a.processes and not a.cold:
            a.scratch = folder
            ranks(a)


if __name__ == "__main__":
    main()
