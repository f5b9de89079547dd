#!/usr/bin/env python3
"""Half precision beside PyTorch's: of the backend for GPUs, in the emulator, and bf16 of the backend cpu.

    check_half.py [PATTERN]      in make check-compare with densenet-micro; in make check-slow with larger networks too

Gradients: from the same weights and the same images, those of all parameters in fp16, bf16 and tf32 are compared with
PyTorch's in float64, and so are the gradients of PyTorch's own autocast in that precision: the error of all gradients
together (norm of the difference over the norm), and the median of the errors of the tensors.  Neither may be more than
1.1 times PyTorch's.  One draw of weights and images says little, so both are means over some.

Autocast on a CPU has bf16 alone in the PyTorch of Debian.  Of fp16 there is a model: Autocast, in which each operator
computes in float32, takes halves and gives halves, forward and backward, with a loss scale.  That the model is right is
seen in bf16, where its errors must be those of autocast.  tf32 rounds operands only, to as many bits as fp16: its
errors are compared with those of fp16.

Few values: where the last maps are one pixel, a normalisation of three values makes large errors of small ones, in
float too, in every program.  The device may not be farther from float64 there than the backends of the CPU are.

Loss curves: 50 steps of Adam in half precision beside the same 50 in float.  The tolerance of the loss at the end is
twice the standard deviation of runs in float with other seeds.

TRAIN_STEP names the program of the CPU, TRAIN_STEP_EMULATED that with the emulated device.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import check_parity as parity  # ends the process where there is no PyTorch
from support import Cases, images, program, run, synth

import torch
import torchvision
from torch.nn import functional as F

case = Cases()
# Minutes: in make check-slow, or by name.
large = case if os.environ.get("CHEX_SLOW", "") not in ("", "0", "compare") or sys.argv[1:] else Cases()
DEVICE = "cuda-emulated"
OUTPUTS, LOSS_SCALE = parity.OUTPUTS, 65536.0
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float16}  # with as many bits of mantissa
WORSE = 1.1  # than PyTorch
SIDE, RATE = 32, 2e-3

parity.MODELS["densenet-micro"] = functools.partial(torchvision.models.DenseNet, growth_rate=16,
                                                    block_config=(4, 4, 4), num_init_features=32)


# ---- images --------------------------------------------------------------------------------------------------------

class Shared:
    folder = None


@functools.lru_cache(None)
def shards(side):
    """Pixels and labels of a synthetic data set of images from which so much can be cut out."""
    Shared.folder = Shared.folder or tempfile.mkdtemp(prefix="chex-half-")
    here = f"{Shared.folder}/{side}"
    os.mkdir(here)
    table = synth(f"{here}/images", 640, "--size", str(2 * side))
    run([program("chex-convert"), "-q", "-i", f"{here}/images/images", "-l", table, "-o", f"{here}/data", "--size",
         str(side + side // 8), "--split", "none"])
    found = list(images(f"{here}/data").values())
    width = int(len(found[0]["image"]) ** 0.5)
    return (np.array([np.frombuffer(r["image"], np.uint8).reshape(width, width) for r in found]),
            np.array([list(r["label"]) for r in found], np.uint8))


def draw(seed, steps, batch, side=SIDE):
    """Crops of so many batches, some of them mirrored, and their labels."""
    pixels, labels = shards(side)
    rng = np.random.default_rng(seed)
    room = pixels.shape[1] - side
    x, y = np.empty((steps, batch, side, side), np.uint8), np.empty((steps, batch, OUTPUTS), np.uint8)
    for step in range(steps):
        for place, which in enumerate(rng.choice(len(pixels), batch, replace=False)):
            top, left = rng.integers(0, room + 1, 2)
            crop = pixels[which, top:top + side, left:left + side]
            x[step, place] = crop[:, ::-1] if rng.random() < 0.5 else crop
            y[step, place] = labels[which]
    return x, y


# ---- PyTorch -------------------------------------------------------------------------------------------------------

class Operator(torch.autograd.Function):
    """Computes in float32 from its inputs; the output has the type `kind`, and each gradient that of its input."""

    @staticmethod
    def forward(ctx, function, kind, *inputs):
        with torch.enable_grad():
            ctx.inputs = [t.detach().float().requires_grad_() for t in inputs]
            ctx.output = function(*ctx.inputs)
        ctx.types = [t.dtype for t in inputs]
        return ctx.output.detach().to(kind)

    @staticmethod
    def backward(ctx, gradient):
        found = torch.autograd.grad(ctx.output, ctx.inputs, gradient.float(), allow_unused=True, retain_graph=True)
        return None, None, *(g if g is None else g.to(t) for g, t in zip(found, ctx.types))


class Autocast(torch.overrides.TorchFunctionMode):
    """What autocast does on a GPU: convolutions and linear layers take input, weights and bias in half precision, what
    follows has the type of what comes in; batch normalisation has its parameters and its sums in float32."""
    CAST = {F.conv2d, F.linear, torch.conv2d}
    KEEP = {F.relu, F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, torch.relu, torch.relu_, torch.max_pool2d}

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        if function in self.CAST:
            tensors = [t for t in arguments[:3] if t is not None]
            rest = arguments[3:]
            return Operator.apply(lambda *t: function(*t, *(() if len(t) == 3 else (None,) if rest else ()), *rest,
                                                      **named),
                                  self.kind, *(t.to(self.kind) for t in tensors))
        if function is F.batch_norm:  # as nn.BatchNorm2d calls it; in training, running statistics left alone
            assert named["training"]
            return Operator.apply(lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0, named["eps"]), self.kind,
                                  arguments[0], named["weight"], named["bias"])
        if function in self.KEEP:
            named.pop("inplace", None)
            return Operator.apply(lambda t: function(t, *arguments[1:], **named), self.kind, arguments[0])
        return function(*arguments, **named)


def gradients(network, start, x, labels, how, scale=1.0):
    """Of one step of PyTorch, one array a tensor in float64; `how` is a context."""
    model = network.model
    network.load(start)
    model.train()
    model.zero_grad()
    with how:
        logits = model(x)
    loss = torch.nn.BCEWithLogitsLoss()(logits.to(x.dtype), torch.from_numpy(labels).to(x.dtype))
    (loss * scale).backward(retain_graph=True)
    while scale > 1 and not all(torch.isfinite(p.grad).all() for _, p in network.params):  # as its GradScaler
        scale /= 2
        model.zero_grad()
        (loss * scale).backward(retain_graph=True)
    return [p.grad.double().numpy().ravel() / scale for _, p in network.params]


def errors(got, wanted):
    """Of all gradients together, and the median over the tensors."""
    apart = [np.linalg.norm(a - b) for a, b in zip(got, wanted)]
    sizes = [np.linalg.norm(b) for b in wanted]
    each = [a / s for a, s in zip(apart, sizes) if s > 0]
    return np.array([np.linalg.norm(apart) / np.linalg.norm(sizes), np.median(each)])


# ---- the program ---------------------------------------------------------------------------------------------------

class Device(parity.Variant):
    """A backend of a program in one precision, and with one engine."""

    def __init__(self, name, backend, precision, engine="own", **more):
        super().__init__(backend, **more)
        self.program, self.precision, self.engine, self.said = program(name), precision, engine, ""
        self.name += f" {precision}"

    def steps(self, network, start, pixels, labels, rate, count):
        """What came out, how many steps were applied, and the loss scale at the end.  0 steps are an evaluation."""
        batch, side = pixels.shape[1:3]
        text = b"".join(a.tobytes() for a in start)
        text += b"".join(p.tobytes() + y.tobytes() for p, y in zip(pixels, labels))
        words = (network.name, side, OUTPUTS, f"{batch}+{self.padding}", count, "adam", rate, parity.THREADS,
                 self.precision, self.engine)
        done = subprocess.run([self.program, self.backend, *map(str, words)], input=text, capture_output=True,
                              env=self.environment, check=False)
        assert done.returncode == 0, f"{self.name} {network.name}: {done.stderr.decode().strip()}"
        self.said = done.stderr.decode()
        said = re.search(r"applied (\d+), loss scale (\S+)\n", self.said)
        outcome = parity.Outcome(np.frombuffer(done.stdout, np.float32), count, batch * OUTPUTS, network)
        return outcome, int(said[1]), float(said[2])

    def run(self, network, start, pixels, labels, steps):
        """As check_parity.py calls it."""
        return self.steps(network, start, pixels, labels, parity.RATE, steps)[0]


def emulated(precision):
    return Device("tests/train-step-emulated", DEVICE, precision)


def cpu(precision):
    return Device("train-step", "cpu", precision)


def fresh(network, seed):
    """Parameters as PyTorch draws them, and running statistics.  A branch of ResNet adds a quarter to what it is added
    to, as after zero_init_residual: else rounding grows tenfold on its way through the fifty layers."""
    torch.manual_seed(seed)
    model = parity.MODELS[network.name](num_classes=OUTPUTS)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("bn3.weight"):
                p.mul_(0.25)
    return (parity.flat(model.named_parameters()),
            parity.flat((n, b) for n, b in model.named_buffers() if b.dim() > 0))


# ---- gradients -----------------------------------------------------------------------------------------------------

def mean_errors(name, precision, draws, batch, side=SIDE, make=emulated):
    """{who: (all together, median)}: ours, PyTorch's, and that of the model of autocast."""
    exact = parity.Network(name)
    single = parity.Network(name)
    single.model.float()
    kind, device = TYPES[precision], make(precision)
    scale = LOSS_SCALE if kind == torch.float16 else 1.0
    seen = {"ours": [], "model": []}
    for seed in range(draws):
        start = fresh(exact, seed)
        pixels, labels = draw(seed, 1, batch, side)
        x = parity.network_input(pixels[0])
        wanted = gradients(exact, start, x, labels[0], contextlib.nullcontext())
        if precision == "bf16":
            there = torch.autocast("cpu", torch.bfloat16)
            seen.setdefault("PyTorch", []).append(errors(gradients(single, start, x.float(), labels[0], there), wanted))
        seen["model"].append(errors(gradients(single, start, x.float(), labels[0], Autocast(kind), scale), wanted))
        got, applied, _ = device.steps(exact, start, pixels, labels, RATE, 1)
        assert applied == 1, f"{device.name}: the step was skipped"
        ours = [g.astype(np.float64) for g in parity.split(got.gradients[0], exact.params)]
        seen["ours"].append(errors(ours, wanted))
    return {who: np.mean(found, axis=0) for who, found in seen.items()}


def compare(name, precision, draws, batch, side=SIDE, make=emulated):
    found = mean_errors(name, precision, draws, batch, side, make)
    print(f"     {name} {precision}, {side} px, batch {batch}, {draws} draws; "
          "error of all gradients, median of tensors: "
          + "; ".join(f"{who} {both[0]:.4f}, {both[1]:.4f}" for who, both in found.items()))
    theirs = found.get("PyTorch", found["model"])
    assert all(0 < e < 1 for both in found.values() for e in both), found
    for ours, wanted, what in zip(found["ours"], theirs, ("all gradients", "the median tensor")):
        assert ours <= WORSE * wanted, f"error of {what} {ours:.4f}, PyTorch's {wanted:.4f}"
    return found


@case("gradients of densenet-micro in fp16 are as close to float64 as autocast's", slow=True)
def _(_work):
    compare("densenet-micro", "fp16", 6, 8)


@case("gradients of densenet-micro in tf32 are as close to float64 as those of autocast in fp16", slow=True)
def _(_work):
    compare("densenet-micro", "tf32", 6, 8)


@case("gradients of densenet-micro in bf16 are as near to float64 as those of autocast, and its model is true",
      slow=True)
def _(_work):
    found = compare("densenet-micro", "bf16", 6, 8)
    for model, theirs in zip(found["model"], found["PyTorch"]):
        assert 0.8 < model / theirs < 1.25, f"the model of autocast {model:.4f}, autocast {theirs:.4f}"


@case("gradients of densenet-micro in bf16 on the CPU are as near to float64 as those of autocast", slow=True)
def _(_work):
    compare("densenet-micro", "bf16", 6, 8, make=cpu)


@large("gradients of densenet121 and resnet50 at 64 px in bf16 on the CPU are as near to float64 as those of autocast",
       slow=True)
def _(_work):
    compare("densenet121", "bf16", 2, 8, 64, cpu)
    compare("resnet50", "bf16", 2, 8, 64, cpu)


@large("gradients of densenet121 at 64 px are as near to float64 as those of autocast", slow=True)
def _(_work):
    for precision in TYPES:
        compare("densenet121", precision, 2, 8, 64)


@large("gradients of resnet50 at 64 px are as near to float64 as those of autocast", slow=True)
def _(_work):
    for precision in TYPES:
        compare("resnet50", precision, 2, 8, 64)


# ---- logic: the kernels in float -----------------------------------------------------------------------------------

def two_values(network):
    """Weights for 2 images of 32 px, of which the last block sees one pixel each.  Of two values that are far apart a
    normalisation makes -1 and 1, whatever they are, and no gradient comes through but rounding: so their distance is
    made one of the size of the root of epsilon, and the running means, about which the GPU sums, near them."""
    params, stats = network.random_weights()
    for (name, _), values in zip(network.params, parity.split(params, network.params)):
        if re.search(r"(denseblock4\..*|transition3\.)conv\d?\.weight", name):
            values *= np.float32(3e-3)
    for (name, _), values in zip(network.stats, parity.split(stats, network.stats)):
        if re.search(r"(denseblock4|norm5).*running_mean", name):
            values *= np.float32(3e-3)
    return params, stats


@large("densenet121 in float, 2 images of 32 px: every gradient and statistic beside float64, and beside ref",
       slow=True)
def _(_work):
    tally, network = parity.Tally(), parity.Network("densenet121")
    # Noise: values that are alike have small differences, of which float32 keeps less.
    pixels, labels = parity.random_images(np.random.default_rng(1), 1, 2, SIDE)
    devices = [emulated("fp32"), Device("train-step", "ref", "fp32")]
    start = parity.compare_step(tally, devices, network, pixels[0], labels[0], two_values(network))
    ours, theirs = (d.run(network, start, pixels, labels, 1) for d in devices)
    for (name, _), a, b in zip(network.params, *(parity.split(o.gradients[0], network.params) for o in (ours, theirs))):
        tally.compare(f"gradient of {name} beside ref", a, b.astype(np.float64), 2 * parity.TOLERANCE,
                      1e-3 * np.linalg.norm(theirs.gradients[0]) / np.sqrt(len(network.params)))
    assert tally.failed == 0 and tally.passed > 1500, f"{tally.failed} differ, {tally.passed} do not"


@large("resnet50 in float, 4 images of 48 px: step and evaluation by cuDNN's convolutions are those of ref",
       slow=True)
def _(_work):
    network, device = parity.Network("resnet50"), Device("tests/train-step-emulated", DEVICE, "fp32", "cudnn")
    start = fresh(network, 5)
    pixels, labels = draw(5, 1, 4, 48)
    got, wanted = (d.run(network, start, pixels, labels, 1) for d in (device, Device("train-step", "ref", "fp32")))
    assert "engine 52 of 53 convolutions by cuDNN" in device.said, device.said
    apart, median = errors(*(parity.split(o.gradients[0].astype(np.float64), network.params) for o in (got, wanted)))
    norms = [float(np.linalg.norm(o.gradients[0])) for o in (got, wanted)]
    losses = [float(o.loss[0]) for o in (got, wanted)]
    print(f"     loss {losses}, norm {norms}, error of all gradients {apart:.1e}, median of tensors {median:.1e}")
    assert abs(losses[0] - losses[1]) < 1e-4 * losses[1], losses
    assert abs(norms[0] - norms[1]) < 1e-4 * norms[1] and apart < 1e-4 and median < 1e-4, (norms, apart, median)
    for a, b in ((got.stats, wanted.stats), (got.evaluated, wanted.evaluated)):
        assert np.linalg.norm(a - b) < 1e-3 * np.linalg.norm(b)


# ---- few values ----------------------------------------------------------------------------------------------------

def few_values(name, side, batch, draws):
    """Float beside float64 where the last maps are one pixel, so that statistics come from `batch` values.

    {who: (logarithm of the error of all gradients, one a draw; median of the errors of variances)}
    """
    network = parity.Network(name)
    devices = [emulated("fp32"), Device("tests/train-step-emulated", DEVICE, "fp32", padding=parity.PADDING),
               Device("train-step", "ref", "fp32")]
    devices += [Device("train-step", "cpu", "fp32", cpu=cpu) for cpu in ("plain", "avx512")]
    gradient, variance = {d.name: [] for d in devices}, {d.name: [] for d in devices}
    for seed in range(draws):
        params, stats = fresh(network, seed)
        start = params, np.zeros_like(stats)  # what a step adds to a running variance of 0 keeps its digits
        pixels, labels = parity.random_images(np.random.default_rng(seed), 1, batch, side)
        wanted = gradients(network, start, parity.network_input(pixels[0]), labels[0], contextlib.nullcontext())
        exact = [(n, b.numpy().ravel().copy()) for n, b in network.stats]
        for device in devices:
            got = device.run(network, start, pixels, labels, 1)
            ours = [g.astype(np.float64) for g in parity.split(got.gradients[0], network.params)]
            gradient[device.name].append(np.log(errors(ours, wanted)[0]))
            for (tensor, b), a in zip(exact, parity.split(got.stats, network.stats)):
                if tensor.endswith("running_var"):
                    variance[device.name].append(np.abs(a - b) / (b + 1e-6))  # a tenth of epsilon: so are variances
    return {d.name: (np.array(gradient[d.name]), np.median(np.concatenate(variance[d.name]))) for d in devices}


def compare_few(name, side, batch, draws):
    """A normalisation of few values that lie near each other makes large errors of small ones, layer by layer; how
    large is chance, within factors of hundreds.  So logarithms are compared draw by draw; their spread is the limit."""
    found = few_values(name, side, batch, draws)
    print(f"     {name} in float, {side} px, batch {batch}, {draws} draws; error of all gradients (geometric mean), "
          "median error of variances: "
          + "; ".join(f"{who} {np.exp(g.mean()):.1e}, {v:.1e}" for who, (g, v) in found.items()))
    theirs = {who: both for who, both in found.items() if DEVICE not in who}
    assert len(theirs) == 3 and len(found) == 5, found.keys()
    for who, (ours, variance) in found.items():
        if who in theirs:
            continue
        worse = ours - np.mean([g for g, _ in theirs.values()], axis=0)
        limit = 3 * np.std(worse, ddof=1) / np.sqrt(draws)
        assert np.mean(worse) <= limit, \
            f"{who}: gradients are {np.exp(np.mean(worse)):.1f} times as far off, {np.exp(limit):.1f} may be chance"
        others = np.mean([v for _, v in theirs.values()])
        assert variance <= WORSE * others, f"{who}: variances are off by {variance:.1e}, the others' by {others:.1e}"


@case("gradients and variances of 3 values in float are as close to float64 as those of ref and cpu", slow=True)
def _(_work):
    compare_few("densenet-micro", 16, 3, 24)


@large("densenet121 and resnet50 in float, whose last maps are one pixel, are as near to float64 as ref and cpu",
       slow=True)
def _(_work):
    compare_few("densenet121", 47, 3, 4)
    compare_few("resnet50", 32, 4, 4)


# ---- loss curves ---------------------------------------------------------------------------------------------------

STEPS, LAST, RUNS, BATCH = 50, 10, 8, 8


def curve(device, network, seed, pixels, labels):
    """The loss of each step, and how many were applied."""
    got, applied, scale = device.steps(network, fresh(network, seed), pixels, labels, RATE, STEPS)
    return np.array([float(loss[0]) for loss in got.loss]), applied, scale


def end_of(losses):
    return float(np.mean(losses[-LAST:]))


@functools.lru_cache(None)
def float_curves():
    """In float on the CPU: the same batches from the weights of several seeds."""
    network, device = parity.Network("densenet-micro"), Device("train-step", "cpu", "fp32")
    return [curve(device, network, seed, *draw(99, STEPS, BATCH))[0] for seed in range(RUNS)]


def compare_curves(precision, make=emulated, seeds=1):
    """Compares the mean of several seeds: two runs from the same weights soon differ as those of two seeds do."""
    network, device = parity.Network("densenet-micro"), make(precision)
    ends = [end_of(losses) for losses in float_curves()]
    spread = float(np.std(ends, ddof=1))
    whole, wanted = float_curves()[0], float(np.mean(ends[:seeds]))
    halves = [curve(device, network, seed, *draw(99, STEPS, BATCH)) for seed in range(seeds)]
    got = float(np.mean([end_of(losses) for losses, _, _ in halves]))
    half, applied, scale = halves[0]
    print(f"     {STEPS} steps of densenet-micro in {precision}, loss of each tenth step: "
          f"{' '.join(f'{x:.3f}' for x in half[9::10])}; in float {' '.join(f'{x:.3f}' for x in whole[9::10])}; "
          f"mean of the last {LAST}, of {seeds} seeds {got:.4f}, in float {wanted:.4f}, "
          f"spread of {RUNS} seeds {spread:.4f}; {applied} steps applied, loss scale {scale:g}")
    assert end_of(whole) < 0.7 * whole[0], "the run in float has learned nothing"
    for _, count, _ in halves:
        assert count >= STEPS - 3, f"{count} of {STEPS} steps were applied"
    assert abs(got - wanted) <= 2 * spread / seeds ** 0.5, f"{got:.4f}, in float {wanted:.4f}, spread {spread:.4f}"


@case("50 steps in fp16 end with the loss of 50 steps in float, within the spread of seeds", slow=True)
def _(_work):
    compare_curves("fp16")


@case("50 steps in bf16 end with the loss of 50 steps in float, within the spread of seeds", slow=True)
def _(_work):
    compare_curves("bf16")


@case("50 steps in bf16 on the CPU end with the loss of 50 steps in float, within the spread of seeds", slow=True)
def _(_work):
    compare_curves("bf16", cpu, RUNS)


if __name__ == "__main__":
    try:
        torch.set_num_threads(parity.THREADS)
        code = case.main()
    finally:
        if Shared.folder:
            shutil.rmtree(Shared.folder, ignore_errors=True)
    sys.exit(code)
