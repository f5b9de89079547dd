#!/usr/bin/env python3
"""The CPU backend beside PyTorch: a training step and inference of DenseNet-121, in one go.

Each candidate is a process of its own, so that its peak memory is its own.  They take turns step by step, since a
shared machine is not the same from second to second; while one works the others wait for a line of input.  A figure is
the median over all steps but the first ones (--warm).  A training step is forward, backward and Adam, with batch-norm
in training mode.  Beside the time by the clock stands processor time, which other work on the machine changes less, and
the middle of the ratios of neighbouring steps.  Prints a Markdown table.

With --precision bf16, ours in bf16 stands beside ours in fp32 and PyTorch's bf16 autocast.

BUILDDIR holds train-loop.  Without PyTorch its lines are left out by name.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import statistics
import subprocess
import sys

PROGRAM = os.path.join(os.environ.get("BUILDDIR", "."), "train-loop")
OURS = "chex-tools"

TORCH = r"""
import contextlib, resource, sys, time
import torch, torchvision
model, side, batch, threads, mode, precision, layout = sys.argv[1], *map(int, sys.argv[2:5]), *sys.argv[5:8]
def cast():
    return torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()
torch.manual_seed(1)
torch.set_num_threads(threads)
net = getattr(torchvision.models, model)(num_classes=14)
format = torch.contiguous_format if layout == "first" else torch.channels_last
net = net.to(memory_format=format)
x = torch.rand(batch, 3, side, side).contiguous(memory_format=format)
y = (torch.rand(batch, 14) < 0.1).float()
loss, adam = torch.nn.BCEWithLogitsLoss(), torch.optim.Adam(net.parameters(), 1e-4)
net.train(mode == "train")
if layout == "compiled":
    net = torch.compile(net)
def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
while sys.stdin.readline():
    begin, t = cpu(), [time.monotonic()]
    if mode == "train":
        adam.zero_grad(set_to_none=True)
        with cast():
            logits = net(x)
        out = loss(logits.float(), y)
        t.append(time.monotonic())
        out.backward()
        t.append(time.monotonic())
        adam.step()
    else:
        with torch.no_grad(), cast():
            net(x)
    t.append(time.monotonic())
    print(*(f"{b - a:.4f}" for a, b in zip(t, t[1:])), f"{cpu() - begin:.4f}", flush=True)
print("memory peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch, torchvision"], capture_output=True,
                          check=False).returncode == 0


class Candidate:
    """A process that makes a step for each line of its input."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.steps = []  # of each: the seconds of its parts, and of the processors

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended early")
        self.steps.append([float(v) for v in line.split()])

    def end(self):
        """Peak bytes."""
        out, _ = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit(f"{self.process.args[0]} ended with exit status {self.process.returncode}")
        return int(out.split()[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--model", default="densenet121")
    p.add_argument("--side", type=int, default=224)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--steps", type=int, default=10, help="of each candidate that are counted")
    p.add_argument("--warm", type=int, default=1, help="steps before those")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--mode", choices=("train", "infer"), action="append", help="default: both")
    p.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    p.add_argument("--nchw", action="store_true", help="PyTorch without channels last too, which is slower")
    p.add_argument("--compile", action="store_true", help="PyTorch with its compiler too, which needs minutes first")
    p.add_argument("--no-torch", action="store_true")
    a = p.parse_args()
    torch_runs = not a.no_torch and has_torch()
    if not torch_runs and not a.no_torch:
        print("PyTorch with torchvision is missing (Debian: python3-torch python3-torchvision): left out\n")
    print(f"{a.model}, {a.side}x{a.side}, batch {a.batch}, {a.precision}, {a.threads} threads; median of {a.steps} "
          f"steps each, in turns; load {os.getloadavg()[0]:.1f}\n")
    for mode in a.mode or ("train", "infer"):
        size = [a.model, str(a.side), str(a.batch), str(a.threads), mode]
        commands = {OURS: [PROGRAM, "cpu", *size, a.precision]}
        if a.precision != "fp32":
            commands[f"{OURS}, fp32"] = [PROGRAM, "cpu", *size, "fp32"]
        size.append(a.precision)
        if torch_runs:
            commands["PyTorch, channels last"] = [sys.executable, "-c", TORCH, *size, "last"]
        if torch_runs and a.nchw:
            commands["PyTorch, NCHW"] = [sys.executable, "-c", TORCH, *size, "first"]
        if torch_runs and a.compile:
            commands["PyTorch, compiled"] = [sys.executable, "-c", TORCH, *size, "compiled"]
        candidates = {name: Candidate(command) for name, command in commands.items()}
        for _ in range(a.warm + a.steps):
            for c in candidates.values():
                c.step()
        peaks = {name: c.end() for name, c in candidates.items()}
        report(mode, a.batch, {name: c.steps[a.warm:] for name, c in candidates.items()}, peaks)


def middle(values, form):
    """Median, and the quarters around it: 1.50 (1.45-1.61)."""
    values = sorted(values)
    quarters = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{quarters[1]:{form}} ({quarters[0]:{form}}-{quarters[2]:{form}})"


def report(mode, batch, steps, peaks):
    parts = ["forward", "backward", "update"] if mode == "train" else []
    print("| " + " | ".join([mode, "img/s", "best", "ours is", "processor s an image", "ours takes",
                             *(f"{p}, s" for p in parts), "peak MB", "ours is"]) + " |")
    print("|---" * (8 + len(parts)) + "|")
    wall = {n: [sum(s[:-1]) for s in steps[n]] for n in steps}
    cpu = {n: [s[-1] for s in steps[n]] for n in steps}
    for name in steps:
        medians = [f"{statistics.median(s[i] for s in steps[name]):.3f}" for i in range(len(parts))]
        faster = less = memory = ""
        if name != OURS:
            faster = middle([t / o for o, t in zip(wall[OURS], wall[name])], ".2f") + " x"
            less = middle([o / t for o, t in zip(cpu[OURS], cpu[name])], ".2f") + " x"
            memory = f"{peaks[OURS] / peaks[name]:.2f} x"
        print("| " + " | ".join([name, f"{batch / statistics.median(wall[name]):.2f}", f"{batch / min(wall[name]):.2f}",
                                 faster, f"{statistics.median(cpu[name]) / batch:.4f}", less, *medians,
                                 f"{peaks[name] / 1e6:.0f}", memory]) + " |", flush=True)
    print()


if __name__ == "__main__":
    main()
