#!/usr/bin/env python3
"""The backends of the trainer beside PyTorch: same weights, same images, same numbers.

For DenseNet-121 and ResNet-50 of torchvision, on every backend that ./train-step has and every instruction set of the
CPU backend:

- One step from random weights: logits, loss, each gradient, running statistics and the logits of an evaluation equal
  those of PyTorch in float64, whose own rounding errors are negligible.  The same with images of weight 0 around them,
  which PyTorch does not get.
- Unknown labels, in all steps but the first: PyTorch takes the mean of the loss over the known labels.
- Smoothed labels, in the step after Adam: PyTorch gets the smoothed targets.
- Mix-up: PyTorch gets images that NumPy has mixed, and the mixed targets.
- Ten steps of Adam (two except for the first variant): each parameter tensor equals PyTorch's after the same steps,
  within 1e-3.  Its change is what PyTorch's Adam computes from the gradients of the backend.  The last step, repeated
  from the parameters and statistics before it, gives the same bits: no step depends on state of earlier steps.  From
  these weights, one more step is compared with PyTorch.

Errors are relative: the norm of the difference over the norm of PyTorch's tensor.

A gradient jumps where a ReLU's input is zero, and where two values of a max pool are equal.  Of some ten million inputs
a few always lie so close that rounding decides, differently for each instruction set, and one of them moves a gradient
by 1e-3.  No tolerance is right for that, so such inputs are moved out of the way: see Settled.  After steps of two
programs no more than whole tensors are compared: Adam divides a gradient by its own size and makes a whole step of one
that is nothing but rounding.

TRAIN_STEP names the program; arguments are models.  make check-slow does all of this at several sizes.  make
check-compare has only the smallest size and three steps of Adam.  There the images of weight 0 and the step after Adam
are tested with one instruction set of each backend: test_padding.c and test_backends.c compare the others with `ref`.
Exit status: 0 good, 1 something differs, 77 PyTorch or torchvision is missing.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys

try:
    import numpy as np
    import torch
    import torchvision
except ImportError as e:
    print(f"skip: {e}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(77)

PROGRAM = os.environ.get("TRAIN_STEP", "./train-step")
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OUTPUTS, RATE, THREADS, PADDING = 14, 1e-4, 2, 3
UNKNOWN = 255  # a label
MODELS = {"densenet121": torchvision.models.densenet121, "resnet50": torchvision.models.resnet50}
RELUS = {"densenet121": 121, "resnet50": 49}
INSTRUCTION_SETS = {"cpu": ("avx512", "avx2", "plain")}  # CHEX_CPU; one that the machine lacks gives the best it has
TOLERANCE = 1e-4  # of logits, loss, gradients and statistics
SMOOTHING = 0.2
SHARES = np.array([0.25, 0, 45678 / 65536, 1])  # of the partners, for mix-up
OPPOSED = 2  # a bit of a label: the partner has the opposite one
STEPS_TOLERANCE = 1e-3  # of a parameter tensor after ten steps, which move a weight by up to 1e-3
CHANGE_TOLERANCE = 1e-2  # of what Adam changed: a parameter of 2 is rounded to 1e-7 in each step of up to RATE


# ---- PyTorch -------------------------------------------------------------------------------------------------------

class Settled:
    """While this is active, a training forward of the model moves its weights away from where a gradient jumps.

    ReLU: where an input of a channel lies within MARGIN of zero, the beta before the ReLU is moved, by at most REACH,
    so that zero lies in the middle of the widest gap between inputs; the forward continues with the new beta.
    Max pool: where the two largest values of a window are within POOL_MARGIN, the channel gets another filter.

    Unit: the deviation of a normalised channel, times gamma, 0.5 to 1.  Measured over all inputs of all layers, float32
    of any backend is off by 1e-5 (root of the mean square, worst layer) and at most 2.3e-4; before the pool by 2.2e-7
    and at most 3e-6.
    """
    MARGIN, REACH, POOL_MARGIN = 1e-3, 0.25, 2e-5

    def __init__(self, model, x):
        self.model, self.x = model, x
        self.nearest, self.relus = float("inf"), 0
        self.hooks = []
        self.beta = None  # of the normalisation that ran last

    def __enter__(self):
        self.part_maxima(*self.stem())
        for module in self.model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                self.hooks.append(module.register_forward_hook(self.note_norm))
            elif isinstance(module, torch.nn.ReLU):
                self.hooks.append(module.register_forward_pre_hook(lambda _, x: self.part_zeros(x[0])))
        if hasattr(self.model, "features"):  # DenseNet's last ReLU is no module
            self.hooks.append(self.model.features.register_forward_hook(lambda _, __, x: self.part_zeros(x)))
        return self

    def __exit__(self, *unused):
        for hook in self.hooks:
            hook.remove()

    def stem(self):
        """The convolution and normalisation before the max pool."""
        m = self.model
        return (m.features.conv0, m.features.norm0) if hasattr(m, "features") else (m.conv1, m.bn1)

    def note_norm(self, module, _, __):
        self.beta = module.bias

    @torch.no_grad()
    def part_maxima(self, conv, norm):
        """The filters whose maxima are too close are drawn again until there is none."""
        for _ in range(100):
            y = torch.nn.functional.batch_norm(conv(self.x), None, None, norm.weight, norm.bias, True)
            planes = torch.nn.functional.pad(y.flatten(0, 1)[:, None], (1, 1, 1, 1), value=float("-inf"))
            first, second = torch.nn.functional.unfold(planes, 3, stride=2).topk(2, dim=1).values.unbind(1)
            close = ((first - second).amin(1).view(y.shape[:2]).amin(0) < self.POOL_MARGIN).nonzero().ravel()
            if len(close) == 0:
                return
            size = conv.weight.std()
            conv.weight[close] = (torch.randn_like(conv.weight[close]) * size).float().to(conv.weight.dtype)
        raise AssertionError("no filters without close maxima were found")

    def part_zeros(self, x):
        with torch.no_grad():
            rows = x.transpose(0, 1).flatten(1)
            old = self.beta.clone()
            for c in (rows.abs().amin(1) < self.MARGIN).nonzero().ravel().tolist():
                near = rows[c][rows[c].abs() < self.REACH].sort().values
                edges = torch.cat([near.new_tensor([-self.REACH]), near, near.new_tensor([self.REACH])])
                gap, at = edges.diff().max(0)
                self.beta[c] = (old[c] - edges[at] - gap / 2).float()
            shift = (self.beta - old)[None, :, None, None]
            self.nearest = min(self.nearest, float((x + shift).abs().min()))
            self.relus += 1
        return x + shift


class Network:
    """A model of torchvision in float64, and its tensors in the order of the program."""

    def __init__(self, name):
        self.name, self.model = name, MODELS[name](num_classes=OUTPUTS).double()
        self.params = list(self.model.named_parameters())
        self.stats = [(n, b) for n, b in self.model.named_buffers() if not n.endswith("num_batches_tracked")]
        self.params_size, self.stats_size = (sum(t.numel() for _, t in part) for part in (self.params, self.stats))

    def random_weights(self):
        """Weights with which every branch matters.  Beta stands three gammas from zero: a thousandth of the values is
        cut off, and in a tenth of the channels all but a thousandth."""
        torch.manual_seed(7)
        model = MODELS[self.name](num_classes=OUTPUTS)
        with torch.no_grad():
            for module in model.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.weight.uniform_(0.5, 1.0)
                    sign = torch.where(torch.rand_like(module.bias) < 0.1, -1.0, 1.0)
                    module.bias.copy_(3 * sign * module.weight)
                    module.running_mean.uniform_(-0.2, 0.2)
                    module.running_var.uniform_(0.5, 1.5)
        return flat(model.named_parameters()), flat((n, b) for n, b in model.named_buffers() if b.dim() > 0)

    def load(self, start):
        load(self.params, start[0])
        load(self.stats, start[1])


def random_images(rng, steps, images, side):
    """From the second step on, a quarter of the labels is unknown, and all labels of an image and of a finding.  In the
    fourth step all labels are unknown."""
    pixels = rng.integers(0, 256, (steps, images, side, side), dtype=np.uint8)
    labels = (rng.random((steps, images, OUTPUTS)) < 0.3).astype(np.uint8)
    labels[1:][rng.random(labels[1:].shape) < 0.25] = UNKNOWN
    labels[1:, 1] = labels[1:, :, 2] = UNKNOWN
    labels[3:4] = UNKNOWN
    return pixels, labels


def mix(pixels, labels):
    """Each image but the last mixed with the next one, by SHARES: pixels, targets, and the labels of a backend."""
    share, own, partner = SHARES[:, None], labels[:-1], labels[1:]
    levels = pixels[:-1] * (1 - share[..., None]) + pixels[1:] * share[..., None]
    unknown = (own == UNKNOWN) | (partner == UNKNOWN)
    targets = np.where(unknown, UNKNOWN, own * (1 - share) + partner * share)
    coded = np.where(unknown, UNKNOWN, own + OPPOSED * (own != partner)).astype(np.uint8)
    return np.floor(levels + 0.5).astype(np.uint8), targets, coded


def masked_loss(logits, labels, smoothing=0.0):
    """The mean over the known labels; 0, with the gradient 0, if there is none.  Labels may be targets from 0 to 1."""
    known = torch.from_numpy(labels != UNKNOWN)
    targets = torch.from_numpy(labels).double() * (1 - smoothing) + smoothing / 2
    each = torch.nn.BCEWithLogitsLoss(reduction="none")(logits, targets)
    return torch.where(known, each, 0).sum() / max(int(known.sum()), 1)


def flat(tensors):
    return np.concatenate([t.detach().numpy().astype(np.float32).ravel() for _, t in tensors])


def split(flat_array, tensors):
    at, out = 0, []
    for _, t in tensors:
        out.append(flat_array[at:at + t.numel()])
        at += t.numel()
    return out


@torch.no_grad()
def load(tensors, flat_array):
    for (_, t), values in zip(tensors, split(flat_array, tensors)):
        t.copy_(torch.from_numpy(values.copy()).view(t.shape))


def network_input(pixels):
    x = torch.from_numpy(pixels).double()[:, None].repeat(1, 3, 1, 1) / 255
    mean, deviation = (torch.tensor(t).double()[None, :, None, None] for t in (MEAN, DEVIATION))
    return (x - mean) / deviation


@torch.no_grad()
def evaluate(model, pixels):
    model.eval()
    return model(network_input(pixels)).numpy().ravel()


# ---- the program ---------------------------------------------------------------------------------------------------

class Variant:
    """A backend, the instruction set that it is asked for, and the number of images of weight 0 in each micro-batch."""

    def __init__(self, backend, cpu=None, padding=0):
        self.backend, self.name = backend, f"{backend} ({cpu})" if cpu else backend
        self.cpu, self.padding = cpu, padding
        if padding:
            self.name += f" with {padding} of padding"
        self.environment = dict(os.environ, CHEX_CPU=cpu) if cpu else None

    def run(self, network, start, pixels, labels, steps, optimizer="adam", rate=RATE, smoothing=0.0,
            shares=None):
        """So many steps from start = (parameters, statistics); 0 is an evaluation.  shares: for mix-up, in one step"""
        images, side = labels.shape[1], pixels.shape[2]
        text = b"".join(a.tobytes() for a in start)
        text += b"" if shares is None else shares.astype(np.float32).tobytes()
        text += b"".join(p.tobytes() + y.tobytes() for p, y in zip(pixels, labels))
        batch = f"{images}+{self.padding}"
        arguments = (network.name, side, OUTPUTS, batch, steps, optimizer, rate, THREADS, "auto", "own", smoothing,
                     "plain" if shares is None else "mixed")
        run = subprocess.run([PROGRAM, self.backend] + [str(a) for a in arguments], input=text, capture_output=True,
                             env=self.environment, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{self.name} {network.name}: {run.stderr.decode().strip()}")
        return Outcome(np.frombuffer(run.stdout, dtype=np.float32), steps, images * OUTPUTS, network)


class Outcome:
    """What the program wrote: logits, loss and gradients of each step; parameters, statistics and logits at the end."""

    def __init__(self, data, steps, logits, network):
        pieces = [logits, 1, network.params_size] * steps + [network.params_size, network.stats_size, logits]
        if steps == 0:
            pieces = [logits, 1, network.params_size, network.stats_size, logits]
        parts = np.split(data, np.cumsum(pieces))
        self.logits, self.loss, self.gradients = parts[0:3 * steps:3], parts[1:3 * steps:3], parts[2:3 * steps:3]
        self.params, self.stats, self.evaluated, rest = parts[-4:]
        assert len(rest) == 0


# ---- comparison ----------------------------------------------------------------------------------------------------

class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def count(self, good, what):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(f"  differs: {what}")

    def compare(self, what, ours, theirs, tolerance=TOLERANCE, least=0.0):
        """least: where a norm is smaller, the error is relative to this (a gradient that is zero but for rounding)."""
        norm = max(float(np.linalg.norm(theirs)), least)
        error = float(np.linalg.norm(ours.astype(np.float64) - theirs)) / (norm or 1)
        self.count(error <= tolerance, f"{what}: relative error {error:.2e}, allowed {tolerance:.0e}")
        return error


def compare_order(tally, network):
    out = subprocess.run([PROGRAM, "--list", network.name, "64", str(OUTPUTS)], capture_output=True, text=True,
                         check=True).stdout
    ours = [line.split() for line in out.splitlines() if not line.startswith("buffer")]
    wanted = [[kind, n, str(t.numel())] for kind, tensors in (("param", network.params), ("stat", network.stats))
              for n, t in tensors]
    tally.count(ours == wanted, f"names, shapes and order of the tensors of {network.name} are not torchvision's")


def compare_step(tally, variants, network, pixels, labels, start=None, smoothing=0.0, mixed=False):
    """One step of every variant beside PyTorch, from start or from random weights; gives those it began with.
    mixed: mix-up, with an additional image at the end"""
    ours, targets, coded = pixels, labels, labels
    if mixed:
        pixels, targets, coded = mix(pixels, labels)
    images, side = pixels.shape[:2]
    here = f"{network.name} {side} px batch {images}" + (" mixed" if mixed else "")
    network.load(start or network.random_weights())
    x = network_input(pixels)
    model = network.model
    model.train()
    model.zero_grad()
    before = flat(network.stats)
    with Settled(model, x) as settled:
        logits = model(x)
    loss = masked_loss(logits, targets, smoothing)
    loss.backward()
    tally.count(settled.nearest > 0.99 * Settled.MARGIN and settled.relus == RELUS[network.name],
                f"{here}: an input of a ReLU is only {settled.nearest:.1e} from zero, {settled.relus} ReLUs")
    start = flat(network.params), before
    # Where a ReLU cuts nothing off, the gradient of the beta before the next normalisation is exactly zero.
    least = 3e-3 * float(np.sqrt(np.mean([float(p.grad.norm()) ** 2 for _, p in network.params])))
    for variant in variants:
        there = f"{variant.name} {here}"
        got = variant.run(network, start, ours[None], coded[None], 1, smoothing=smoothing,
                          shares=SHARES if mixed else None)
        tally.compare(f"{there}: logits", got.logits[0], logits.detach().numpy().ravel())
        tally.compare(f"{there}: loss", got.loss[0], loss.detach().numpy().ravel())
        worst = max(tally.compare(f"{there}: gradient of {n}", g, p.grad.numpy().ravel(), least=least)
                    for (n, p), g in zip(network.params, split(got.gradients[0], network.params)))
        for (n, b), g in zip(network.stats, split(got.stats, network.stats)):
            tally.compare(f"{there}: {n} after the step", g, b.numpy().ravel())
        print(f"{there}: largest error of {len(network.params)} gradients {worst:.1e}; "
              f"no input of a ReLU within {settled.nearest:.1e} of zero")
    load(network.stats, before)
    evaluated = evaluate(model, pixels)
    for variant in variants:
        got = variant.run(network, start, pixels[None], coded[None], 0)
        tally.compare(f"{variant.name} {here}: logits in evaluation", got.evaluated, evaluated)
    return start


def torch_training(network, start, pixels, labels, wanted):
    """{steps: parameters} after as many steps of Adam as are wanted, which PyTorch makes by itself."""
    model = MODELS[network.name](num_classes=OUTPUTS).double()
    tensors, found = list(model.named_parameters()), {}
    load(tensors, start[0])
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for step, (x, y) in enumerate(zip(pixels, labels), 1):
        optimizer.zero_grad()
        masked_loss(model(network_input(x)), y).backward()
        optimizer.step()
        if step in wanted:
            found[step] = flat(tensors)
    return found


def compare_training(tally, variant, network, start, pixels, labels, theirs):
    """Steps of Adam from these weights, theirs: the parameters of PyTorch behind them; gives the weights before the
    last step."""
    steps = len(pixels)
    here = f"{variant.name} {network.name}"
    whole = variant.run(network, start, pixels, labels, steps)
    short = variant.run(network, start, pixels, labels, steps - 1)
    again = variant.run(network, (short.params, short.stats), pixels[-1:], labels[-1:], 1)
    for what, one, other in (("logits", whole.logits[-1], again.logits[0]), ("loss", whole.loss[-1], again.loss[0]),
                             ("gradients", whole.gradients[-1], again.gradients[0]),
                             ("statistics", whole.stats, again.stats)):
        tally.count(one.tobytes() == other.tobytes(), f"{here}: {what} of step {steps} and of the same step made alone")
    network.load(start)
    optimizer = torch.optim.Adam(network.model.parameters(), RATE)
    for gradient in whole.gradients:
        for (_, p), g in zip(network.params, split(gradient, network.params)):
            p.grad = torch.from_numpy(g.astype(np.float64)).view(p.shape)
        optimizer.step()
    worst = max(tally.compare(f"{here}: change of {n} by {steps} steps", after.astype(np.float64) - before,
                              p.detach().numpy().ravel() - before, CHANGE_TOLERANCE, RATE * np.sqrt(len(before)))
                for (n, p), after, before in zip(network.params, split(whole.params, network.params),
                                                 split(start[0].astype(np.float64), network.params)))
    network.load((whole.params, whole.stats))
    tally.compare(f"{here}: logits in evaluation after {steps} steps", whole.evaluated,
                  evaluate(network.model, pixels[-1]))
    print(f"{here}, {steps} steps: largest error of a change {worst:.1e}")
    worst = max(tally.compare(f"{here}: {n} after {steps} steps", ours, wanted, STEPS_TOLERANCE)
                for (n, _), ours, wanted in zip(network.params, split(whole.params, network.params),
                                                split(theirs, network.params)))
    print(f"{here}, {steps} steps: largest error of a parameter tensor {worst:.1e}")
    return short.params, short.stats


def compare_optimizers(tally, variant, network, start, pixels, labels):
    """Two steps of each optimizer but Adam: the change of all parameters, and that of torch.optim by our gradients."""
    kinds = {"adamw": (torch.optim.AdamW, 1e-3, {}), "sgd": (torch.optim.SGD, 1e-3, {"momentum": 0.9}),
             "adagrad": (torch.optim.Adagrad, 1e-2, {}), "adadelta": (torch.optim.Adadelta, 1.0, {}),
             "rmsprop": (torch.optim.RMSprop, 1e-2, {})}
    for name, (kind, rate, more) in kinds.items():
        got = variant.run(network, start, pixels[:2], labels[:2], 2, name, rate)
        network.load(start)
        optimizer = kind(network.model.parameters(), rate, **more)
        for gradient in got.gradients:
            for (_, p), g in zip(network.params, split(gradient, network.params)):
                p.grad = torch.from_numpy(g.astype(np.float64)).view(p.shape)
            optimizer.step()
        theirs = np.concatenate([p.detach().numpy().ravel() for _, p in network.params])
        tally.compare(f"{variant.name} {network.name}: parameters after 2 steps of {name}", got.params, theirs, 1e-6)
        tally.count(np.linalg.norm(theirs - start[0]) > 1e-5 * np.linalg.norm(start[0]), f"{name} moved parameters")


def main():
    quick = os.environ.get("CHEX_SLOW", "") in ("", "0", "compare")
    listed = subprocess.run([PROGRAM], capture_output=True, text=True, check=False).stderr
    variants = [Variant(name, cpu) for name in listed.split("backends:")[1].split()
                for cpu in INSTRUCTION_SETS.get(name, (None,))]
    first = {v.backend: v for v in reversed(variants)}.values() if quick else variants
    padded = [Variant(v.backend, v.cpu, PADDING) for v in first]
    most = 3 if quick else 10
    tally = Tally()
    torch.set_num_threads(THREADS)
    for name in sys.argv[1:] or MODELS:
        network = Network(name)
        compare_order(tally, network)
        rng = np.random.default_rng(6404)
        pixels, labels = random_images(rng, most, 4, 64)
        start, late = compare_step(tally, variants + padded, network, pixels[0], labels[0]), None
        theirs = torch_training(network, start, pixels, labels, (2, most))
        for variant in variants:
            steps = most if variant is variants[0] else 2
            before_last = compare_training(tally, variant, network, start, pixels[:steps], labels[:steps],
                                           theirs[steps])
            late = late or before_last
        for variant in first:
            compare_optimizers(tally, variant, network, start, pixels, labels)
        compare_step(tally, list(first), network, pixels[-1], labels[-1], late, SMOOTHING)
        pixels, labels = random_images(rng, 2, len(SHARES) + 1, 64)
        compare_step(tally, list(first) + padded, network, pixels[1], labels[1], late, SMOOTHING, mixed=True)
        if not quick:
            for side, images in ((96, 3), (224, 2)):
                pixels, labels = random_images(rng, 1, images, side)
                # ref takes a minute for 224 px, and is the same few lines for any size.
                fast = [v for v in variants if side < 224 or v.backend != "ref"]
                compare_step(tally, fast, network, pixels[0], labels[0])
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
