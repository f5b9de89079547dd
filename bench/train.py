#!/usr/bin/env python3
"""The CPU backend beside PyTorch: a training step and inference of DenseNet-121, in one go.

Each measurement is a process of its own, so that its peak memory is its own; the candidates take turns, --rounds times,
since a shared machine is not the same from minute to minute.  A figure is the median over all steps but the first of
each process.  A training step is forward, backward and Adam, with batch-norm in training mode.  Prints a Markdown table.

BUILDDIR holds train-loop.  Without PyTorch its lines are left out by name.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import statistics
import subprocess
import sys

PROGRAM = os.path.join(os.environ.get("BUILDDIR", "."), "train-loop")

TORCH = r"""
import resource, sys, time
import torch, torchvision
model, side, batch, steps, threads, mode, layout = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6], sys.argv[7]
torch.manual_seed(1)
torch.set_num_threads(threads)
net = getattr(torchvision.models, model)(num_classes=14)
format = torch.channels_last if layout == "last" else torch.contiguous_format
net = net.to(memory_format=format)
x = torch.rand(batch, 3, side, side).contiguous(memory_format=format)
y = (torch.rand(batch, 14) < 0.1).float()
loss, adam = torch.nn.BCEWithLogitsLoss(), torch.optim.Adam(net.parameters(), 1e-4)
net.train(mode == "train")
for _ in range(steps):
    t = [time.monotonic()]
    if mode == "train":
        adam.zero_grad(set_to_none=True)
        out = loss(net(x), y)
        t.append(time.monotonic())
        out.backward()
        t.append(time.monotonic())
        adam.step()
    else:
        with torch.no_grad():
            net(x)
    t.append(time.monotonic())
    print(*(f"{b - a:.4f}" for a, b in zip(t, t[1:])), flush=True)
print("memory peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch, torchvision"], capture_output=True,
                          check=False).returncode == 0


def measure(command):
    """(parts of each step but the first, peak bytes)"""
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    steps = [[float(v) for v in line.split()] for line in out if line and not line.startswith("memory")]
    peak = int([line for line in out if line.startswith("memory")][0].split()[-1])
    return steps[1:], peak


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--model", default="densenet121")
    p.add_argument("--side", type=int, default=224)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--steps", type=int, default=4, help="of a process, the first is not counted")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a = p.parse_args()
    size = [a.model, str(a.side), str(a.batch), str(a.steps), str(a.threads)]
    torch_runs = has_torch()
    if not torch_runs:
        print("PyTorch with torchvision is missing (Debian: python3-torch python3-torchvision): left out\n")
    print(f"{a.model}, {a.side}x{a.side}, batch {a.batch}, float32, {a.threads} threads; median of {a.rounds} rounds\n")
    for mode in ("train", "infer"):
        runs = {"chex-tools": [PROGRAM, "cpu", *size, mode]}
        if torch_runs:
            runs["PyTorch, NCHW"] = [sys.executable, "-c", TORCH, *size, mode, "first"]
            runs["PyTorch, channels last"] = [sys.executable, "-c", TORCH, *size, mode, "last"]
        seconds, peaks = {name: [] for name in runs}, {name: 0 for name in runs}
        for _ in range(a.rounds):
            for name, command in runs.items():
                steps, peak = measure(command)
                seconds[name] += steps
                peaks[name] = max(peaks[name], peak)
        report(mode, a.batch, seconds, peaks)


def report(mode, batch, seconds, peaks):
    parts = ["forward", "backward", "update"] if mode == "train" else []
    print("| " + " | ".join([f"{mode}", "img/s", "ours is", *(f"{p}, s" for p in parts), "peak MB", "ours is"]) + " |")
    print("|---" * (5 + len(parts)) + "|")
    rate = {n: batch / statistics.median(sum(s) for s in seconds[n]) for n in seconds}
    for name in seconds:
        medians = [f"{statistics.median(s[i] for s in seconds[name]):.3f}" for i in range(len(parts))]
        ratio = "" if name == "chex-tools" else f"{rate['chex-tools'] / rate[name]:.2f} x"
        memory = "" if name == "chex-tools" else f"{peaks['chex-tools'] / peaks[name]:.2f} x"
        print("| " + " | ".join([name, f"{rate[name]:.1f}", ratio, *medians, f"{peaks[name] / 1e6:.0f}", memory]) + " |")
    print()


if __name__ == "__main__":
    main()
