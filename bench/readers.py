#!/usr/bin/env python3
"""How fast Python reads shuffled batches of 64 gray images with their labels: chex_tools and other libraries.

    bench/readers.py [--dataset FOLDER] [--runs N] [--seconds N] [--workers 0,2] [--python PROGRAM]... [--only PATTERN]

Everything is in the page cache.  batches() of chex_tools.torch (gray bytes; threads), with a random order and with a
Sampler, floats made on the CPU (DataLoader), NumPy's memmap, tf.data on the shards, WebDataset and MosaicML streaming
on copies of the same images in their own formats, uncompressed, read by PyTorch's DataLoader.  Contenders take turns.
A first epoch is not measured; the processor time is that of a process and its workers after it.  A contender runs in
the first Python that has its modules: this one, the system's, or one that --python names; one without a Python is left
out by name.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

from loader import make, manifest, middle, remember

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")

# The arguments of each contender: the data set, the split, its own folder, seconds, workers.
BEGIN = """import json, os, sys, time
shards, split, own, seconds, workers = sys.argv[1:4] + [float(sys.argv[4]), int(sys.argv[5])]
manifest = json.load(open(os.path.join(shards, "manifest.json")))
paths = [os.path.join(shards, s["name"]) for s in manifest["shards"] if s["split"] == split]
side = manifest["record"]["width"]
"""

# images() of each contender gives the number of images of a batch, for one epoch.
END = """
def ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return int(words[1]), int(words[11]) + int(words[12])

def cpu():  # of this process and of those below it that still run
    below, total = {os.getpid()}, 0
    for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) >= os.getpid()):
        try:
            parent, used = ticks(pid)
        except OSError:
            continue
        if pid in below or parent in below:
            below.add(pid)
            total += used
    return total / os.sysconf("SC_CLK_TCK")

if __name__ == "__main__":
    for count in images():  # workers start, and pages are mapped
        pass
    begun, used, total = time.monotonic(), cpu(), 0
    while time.monotonic() - begun < seconds:
        for count in images():
            total += count
            if time.monotonic() - begun >= seconds:
                break
    print(total, time.monotonic() - begun, cpu() - used)
"""

MODULE = """
from chex_tools.torch import Shards, batches
data = Shards(shards, split)
def images():
    for image, label, about in batches(data, 64, threads=max(workers, 1)):
        yield len(image)
"""

SAMPLER = """
from chex_tools.torch import Sampler, Shards, batches
data = Shards(shards, split)
sampler = Sampler(data, 64)
def images():
    for image, label, about in batches(data, sampler=sampler, threads=max(workers, 1)):
        yield len(image)
"""

FLOATS = """
import numpy as np, torch
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
class Floats(torch.utils.data.Dataset):
    def __init__(self):
        self.maps = [np.memmap(p, np.dtype(manifest["dtype"]), mode="r") for p in paths]
        self.slots = [(i, j) for i, m in enumerate(self.maps) for j in np.flatnonzero(m["weight"])]
    def __len__(self):
        return len(self.slots)
    def __getitem__(self, k):
        record = self.maps[self.slots[k][0]][self.slots[k][1]]
        image = torch.from_numpy(np.repeat(record["image"][None], 3, 0))
        return (image / 255 - MEAN) / STD, torch.from_numpy(record["label"].astype(np.float32))
loader = torch.utils.data.DataLoader(Floats(), 64, True, num_workers=workers, persistent_workers=workers > 0)
def images():
    return (len(image) for image, label in loader)
"""

MEMMAP = """
import numpy as np
maps = [np.memmap(p, np.dtype(manifest["dtype"]), mode="r").view(np.ndarray) for p in paths]
slots = np.array([(i, j) for i, m in enumerate(maps) for j in np.flatnonzero(m["weight"])])
pixels, labels = [m["image"] for m in maps], [m["label"] for m in maps]
def images():
    order = np.random.permutation(len(slots))
    for at in range(0, len(order), 64):
        these = slots[order[at:at + 64]].tolist()
        image, label = np.stack([pixels[i][j] for i, j in these]), np.stack([labels[i][j] for i, j in these])
        yield len(image)
"""

TFDATA = """
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(max(workers, 1))
def parse(data):
    record = tf.io.parse_single_example(data, {
        "image/raw": tf.io.FixedLenFeature([], tf.string), "image/label": tf.io.FixedLenFeature([14], tf.int64),
        "image/weight": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.reshape(tf.io.decode_raw(record["image/raw"], tf.uint8), [side, side, 1])
    return image, record["image/label"], record["image/weight"]
data = tf.data.TFRecordDataset(tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)))
data = data.map(parse, num_parallel_calls=max(workers, 1)).filter(lambda image, label, weight: weight == 1)
data = data.shuffle(1024).batch(64).prefetch(2)
def images():
    return (image.shape[0] for image, label, weight in data)
"""

# Both write their own files at the first run.
RECORDS = """
import numpy as np, torch
def records():
    for p in paths:
        for r in np.memmap(p, np.dtype(manifest["dtype"]), mode="r"):
            if r["weight"]:
                yield r
"""

WEBDATASET = RECORDS + """
import glob, webdataset
if not glob.glob(f"{own}/*.tar"):
    with webdataset.ShardWriter(f"{own}/%05d.tar", maxcount=256) as f:
        for n, r in enumerate(records()):
            f.write({"__key__": f"{n:06d}", "image": r["image"].tobytes(), "label": r["label"].tobytes()})
def read(sample):
    return (torch.frombuffer(bytearray(sample["image"]), dtype=torch.uint8).view(1, side, side),
            torch.frombuffer(bytearray(sample["label"]), dtype=torch.uint8).float())
data = webdataset.WebDataset(sorted(glob.glob(f"{own}/*.tar")), shardshuffle=100, empty_check=False)
data = data.shuffle(1024).map(read).batched(64)
loader = torch.utils.data.DataLoader(data, None, num_workers=workers, persistent_workers=workers > 0)
def images():
    return (len(batch[0]) for batch in loader)
"""

MOSAIC = RECORDS + """
import streaming
if not os.path.exists(f"{own}/index.json"):
    columns = {"image": f"ndarray:uint8:1,{side},{side}", "label": "ndarray:float32:14"}
    with streaming.MDSWriter(out=own, columns=columns, size_limit=1 << 24) as f:
        for r in records():
            f.write({"image": np.array(r["image"][None]), "label": r["label"].astype(np.float32)})
data = streaming.StreamingDataset(local=own, shuffle=True, batch_size=64, num_canonical_nodes=1)
loader = torch.utils.data.DataLoader(data, 64, num_workers=workers, persistent_workers=workers > 0)
def images():
    return (len(batch["image"]) for batch in loader)
"""

CONTENDERS = {"chex_tools.torch, gray bytes": ("torch", MODULE),
              "chex_tools.torch, Sampler": ("torch", SAMPLER),
              "floats on the CPU, DataLoader": ("torch", FLOATS),
              "numpy.memmap, no workers": ("numpy", MEMMAP),
              "tf.data on the shards": ("tensorflow", TFDATA),
              "WebDataset": ("torch, webdataset", WEBDATASET),
              "MosaicML streaming": ("torch, streaming", MOSAIC)}


def python_with(modules, programs):
    for program in programs:
        line = f"import {modules}; print([getattr(m, '__version__', '') for m in ({modules},)])"
        done = subprocess.run([program, "-c", line], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return program, done.stdout.split("\n")[-2].strip("[]").replace("'", "")
    return None, None


def prepare(a, folder):
    """The commands, by the name of a contender, without its last argument."""
    found = {}
    for n, (name, (modules, text)) in enumerate(CONTENDERS.items()):
        program, version = python_with(modules, [sys.executable, "/usr/bin/python3", *a.python])
        if not program or not re.search(a.only, name):
            print(f"{name}: left out, " + ("not asked for" if program else f"no Python has {modules}"))
            continue
        print(f"{name}: {modules} {version}")
        own, path = os.path.join(folder, str(n)), os.path.join(folder, f"contender{n}.py")
        os.mkdir(own)
        with open(path, "w", encoding="utf-8") as out:
            out.write(BEGIN + text + END)
        found[name] = [program, path, a.dataset, a.split, own, str(a.seconds)]
    return found


def measure(command, workers):
    # threads of OpenMP that wait use up processor time
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.path.join(SOURCE, "python"))
    done = subprocess.run([*command, str(workers)], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"{command[1]}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return [float(v) for v in done.stdout.split("\n")[-2].split()]


def compare(a, commands, workers):
    done = {name: [] for name in commands}
    for _ in range(a.runs):
        for name, command in commands.items():
            done[name].append(measure(command, workers))
    print(f"\n{workers} workers:\n\n| | img/s | img/s of a core | processor, us an image |\n|---|---:|---:|---:|")
    for name, runs in done.items():
        print(f"| {name} | {middle([n / wall for n, wall, _ in runs], '.0f')} | "
              f"{middle([n / cpu for n, _, cpu in runs], '.0f')} | "
              f"{middle([1e6 * cpu / n for n, _, cpu in runs], '.1f')} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--dataset")
    p.add_argument("--split", default="train")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--workers", default="0,2")
    p.add_argument("--python", action="append", default=[], help="another Python, for what this one does not have")
    p.add_argument("--only", default="", metavar="PATTERN")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        a.dataset = os.path.abspath(a.dataset or make(folder))
        remember(a.dataset, a.split)
        m = manifest(a.dataset)
        images = sum(s["images"] for s in m["shards"] if s["split"] == a.split)
        print(f"{images} images of {m['record']['width']}x{m['record']['height']}, batches of 64, {a.runs} runs of "
              f"{a.seconds:g} s, in turns; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        commands = prepare(a, folder)
        for workers in a.workers.split(","):
            compare(a, commands, int(workers))


if __name__ == "__main__":
    main()
