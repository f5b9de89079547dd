#!/usr/bin/env python3
"""How fast the loader of chex-train gives images, with nobody who computes; beside a DataLoader of PyTorch.

    bench/loader.py [--dataset FOLDER] [--runs N] [--seconds N] [--cold] [--threads 1,2]

Warm: from memory (--cache host), and from the page cache, with and without checksums.  Cold (--cold, with a data set
larger than what is read in a run): the page cache is emptied of the data set before each run, as far as the system lets
go; whole-set shuffle against windows of 16 shards, with and without telling the system what comes.  The DataLoader has
a Dataset that reads the same records of the same shards by os.pread and gives crops as uint8 tensors, batch 16, with
worker processes in place of threads; it checks nothing.  Contenders take turns; medians, quarters, and the middle of
the ratios of neighbours to the first.  Without PyTorch its lines are left out by name.

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

TORCH = r"""
import json, os, random, sys, time
import torch
folder, split, seconds, workers = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
with open(os.path.join(folder, "manifest.json")) as f:
    m = json.load(f)
stride, offset, side = m["record"]["stride"], m["record"]["pixel_offset"], m["record"]["width"]
crop = min(side, 224)
shards = [s for s in m["shards"] if s["split"] == split]
places = [(s["name"], i) for s in shards for i in range(s["images"])]
class Shards(torch.utils.data.Dataset):
    def __init__(self):
        self.files = {}
    def __len__(self):
        return len(places)
    def __getitem__(self, n):
        name, i = places[n]
        if name not in self.files:
            self.files[name] = os.open(os.path.join(folder, name), os.O_RDONLY)
        pixels = os.pread(self.files[name], side * side, i * stride + offset)
        image = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(1, side, side)
        x, y = random.randint(0, side - crop), random.randint(0, side - crop)
        image = image[:, y:y + crop, x:x + crop]
        return image.flip(2) if random.random() < 0.5 else image.contiguous()
loader = torch.utils.data.DataLoader(Shards(), batch_size=16, shuffle=True, num_workers=workers)
def cpu():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system
batches = iter(loader)
next(batches)
begun, used, images = time.monotonic(), cpu(), 0
for b in batches:
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


def ours(a, threads, window=0, cache=0, crc=1, expect=256):
    return [os.path.join(BUILD, "loader-loop"), a.dataset, a.split, str(a.seconds), str(threads), str(window),
            str(cache), str(crc), str(expect)]


def contenders(a, threads):
    if a.cold:
        return {f"whole, {threads} threads": ours(a, threads),
                f"whole, {threads} threads, system not told": ours(a, threads, expect=0),
                f"windows of 16 shards, {threads} threads": ours(a, threads, window=16),
                f"windows of 16 shards, {threads} threads, system not told": ours(a, threads, window=16, expect=0)}
    found = {f"page cache, {threads} threads": ours(a, threads),
             f"page cache, no checksums, {threads} threads": ours(a, threads, crc=0),
             f"page cache, windows of 16 shards, {threads} threads": ours(a, threads, window=16),
             f"memory, {threads} threads": ours(a, threads, cache=1)}
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
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            images, seconds, cpu = (float(v) for v in done.stdout.split())
            rate[name].append(images / seconds)
            used[name].append(1e6 * cpu / images)
    first = next(iter(commands))
    print("| | img/s | best | of the first | processor, us an image |\n|---|---|---|---|---|")
    for name, rates in rate.items():
        ratio = "" if name == first else middle([o / f for f, o in zip(rate[first], rates)], ".2f")
        print(f"| {name} | {middle(rates, '.0f')} | {max(rates):.0f} | {ratio} | {middle(used[name], '.0f')} |",
              flush=True)
    print()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--dataset")
    p.add_argument("--split", default="train")
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--cold", action="store_true")
    p.add_argument("--no-torch", action="store_true")
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
        for threads in a.threads.split(","):
            compare(a, int(threads))


if __name__ == "__main__":
    main()
