#!/usr/bin/env python3
"""What an image costs in every epoch: PNGs, decoded each time, compared with shards.

    bench/stream.py [--dataset FOLDER] [--png-folder FOLDER] [--runs N] [--seconds N] [--python PROGRAM]...

Three contenders take turns, all from the page cache, in shuffled batches of 64:

- chex-train --device none on shards of 256x256: the loader of a run, with its checksums at the first reading
- tf.data on the same shards (bench/readers.py)
- Pillow and PyTorch's DataLoader on PNGs of 1024x1024: decode, shrink to 256x256

A first epoch of the Python programs is not measured.  CPU time includes worker processes.  The last lines have the CPU
time of the conversion (chex-convert --profile), and after how many epochs it has paid off.  Medians, quartiles in
brackets; ratios are medians of the ratios of consecutive runs.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

from loader import BUILD, make, manifest, middle, remember
from readers import BEGIN, END, TFDATA, measure, python_with

SPLIT = "train"

PNGS = """
import glob, numpy as np, torch
from PIL import Image
files = sorted(glob.glob(f"{own}/*.png"))
class Pngs(torch.utils.data.Dataset):
    def __len__(self):
        return len(files)
    def __getitem__(self, k):
        with Image.open(files[k]) as image:
            gray = image.convert("L").resize((side, side), Image.BILINEAR)
        return torch.from_numpy(np.array(gray))[None]
loader = torch.utils.data.DataLoader(Pngs(), 64, True, num_workers=workers, persistent_workers=workers > 0)
def images():
    return (len(batch) for batch in loader)
"""

OURS, TF, PIL = "chex-train --device none, shards", "tf.data, shards", "Pillow and DataLoader, PNGs"
CONTENDERS = {TF: ("tensorflow", TFDATA), PIL: ("torch, PIL", PNGS)}


def run_ours(dataset, epochs):
    line = [os.path.join(BUILD, "chex-train"), "-d", dataset, "--device", "none", "--epochs", str(epochs), "-q",
            "--json"]
    done = json.loads(subprocess.run(line, stdout=subprocess.PIPE, check=True).stdout)["storage"]
    return [done["images"], done["seconds"], done["cpu_seconds"]]


def convert_cost(pngs, threads):
    """CPU seconds of converting one image."""
    line = [os.path.join(BUILD, "chex-convert"), "-i", os.path.join(pngs, "images"), "-l",
            os.path.join(pngs, "Data_Entry_2017_v2020.csv"), "--profile", "-j", str(threads), "-q", "--json"]
    done = json.loads(subprocess.run(line, stdout=subprocess.PIPE, check=True).stdout)["profile"]["runs"][-1]
    return done["cpu_seconds"] / done["images"]


def prepare(a, folder):
    found = {}
    for n, (name, (modules, text)) in enumerate(CONTENDERS.items()):
        program, version = python_with(modules, [sys.executable, "/usr/bin/python3", *a.python])
        if not program:
            print(f"{name}: left out, no Python has {modules}")
            continue
        print(f"{name}: {modules} {version}")
        path = os.path.join(folder, f"contender{n}.py")
        with open(path, "w", encoding="utf-8") as out:
            out.write(BEGIN + text + END)
        own = os.path.join(a.png_folder, "images")
        found[name] = [program, path, a.dataset, SPLIT, own, str(a.seconds)]
    return found


def compare(a, commands):
    done = {name: [] for name in (OURS, *commands)}
    epochs = 1
    while (first := run_ours(a.dataset, epochs))[1] < a.seconds / 2:  # as long as the others
        epochs = max(2 * epochs, int(epochs * a.seconds / first[1]))
    cost = []
    for _ in range(a.runs):
        done[OURS].append(run_ours(a.dataset, epochs))
        for name, command in commands.items():
            done[name].append(measure(command, a.workers))
        cost.append(convert_cost(a.png_folder, a.workers))
    print("\n| | img/s | CPU time, us an image | CPU time, times ours | time, times ours |\n|---|---:|---:|---:|---:|")
    for name, runs in done.items():
        pairs = list(zip(runs, done[OURS]))
        print(f"| {name} | {middle([n / wall for n, wall, _ in runs], '.0f')} | "
              f"{middle([1e6 * cpu / n for n, _, cpu in runs], '.1f')} | "
              f"{middle([r[2] / r[0] / (o[2] / o[0]) for r, o in pairs], '.1f')} | "
              f"{middle([r[1] / r[0] / (o[1] / o[0]) for r, o in pairs], '.1f')} |", flush=True)
    print(f"| chex-convert, PNGs to shards, once | | {middle([1e6 * c for c in cost], '.0f')} | | |")
    if PIL in done:
        saved = [p[2] / p[0] - o[2] / o[0] for p, o in zip(done[PIL], done[OURS])]
        print(f"\nThe conversion has paid off after {middle([c / s for c, s in zip(cost, saved)], '.2f')} epochs of "
              "reading PNGs.")


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown CPU")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--workers", type=int, default=2, help="of DataLoader; threads of tf.data and chex-convert")
    p.add_argument("--dataset", help="shards; default: 4,000 synthetic images")
    p.add_argument("--pngs", type=int, default=256, help="number of synthetic PNGs")
    p.add_argument("--png-folder", help="PNGs that are there, in the form that chex-synth writes")
    p.add_argument("--python", action="append", default=[], help="another Python, for what this one does not have")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        a.dataset = os.path.abspath(a.dataset or make(folder))
        if not a.png_folder:
            a.png_folder = os.path.join(folder, "pngs")
            subprocess.run([os.path.join(BUILD, "chex-synth"), "-q", "-n", str(a.pngs), "--size", "1024", "-o",
                            a.png_folder], check=True)
        remember(a.dataset, SPLIT)
        size, pngs = manifest(a.dataset)["record"]["width"], len(os.listdir(os.path.join(a.png_folder, "images")))
        print(f"{os.cpu_count()} cores, {cpu_name()}, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}; "
              f"shards of {size}x{size}, {pngs} PNGs; {a.runs} runs in turns, {a.workers} workers\n", flush=True)
        compare(a, prepare(a, folder))


if __name__ == "__main__":
    main()
