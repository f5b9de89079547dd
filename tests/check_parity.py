#!/usr/bin/env python3
"""The backends of the trainer beside PyTorch: same weights, same images, same numbers.

For DenseNet-121 and ResNet-50 of torchvision (random weights in which every branch matters), on every backend that
./train-step has: logits, loss and each gradient of the first step, all parameters and running statistics after ten steps
of Adam, and the logits in evaluation mode, at several sizes and batches.  Errors are relative: the norm of the difference
over the norm of PyTorch's tensor.

TRAIN_STEP names the program.  The large cases take minutes and run only with
CHEX_SLOW (make check-slow).
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
OUTPUTS = 14
TOLERANCE, AFTER_STEPS = 1e-4, 1e-3  # of logits, loss and gradients; of parameters after ten steps


def make_model(name):
    """Random weights for which gradients can be compared to 1e-4 at all.

    A ReLU whose input rounds to the other side of zero changes a gradient by a finite amount: PyTorch's own float32 is
    1e-2 away from its float64 at the default initialisation.  So beta stands three gammas from zero: a thousandth of
    the values is cut off (a tenth of the channels: all but a thousandth), and almost none lies within rounding of zero.
    """
    torch.manual_seed(7)
    model = {"densenet121": torchvision.models.densenet121, "resnet50": torchvision.models.resnet50}[name](
        num_classes=OUTPUTS)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.0)
                sign = torch.where(torch.rand_like(module.bias) < 0.1, -1.0, 1.0)
                module.bias.copy_(3 * sign * module.weight)
                module.running_mean.uniform_(-0.2, 0.2)
                module.running_var.uniform_(0.5, 1.5)
    return model


def tensors_of(model):
    """(parameters, statistics) in the order of the program, each a list of (name, tensor)."""
    params = [(n, p) for n, p in model.named_parameters()]
    stats = [(n, b) for n, b in model.named_buffers() if not n.endswith("num_batches_tracked")]
    return params, stats


def flat(tensors):
    return np.concatenate([t.detach().numpy().astype(np.float32).ravel() for _, t in tensors])


def network_input(pixels):
    x = torch.from_numpy(pixels).float()[:, None].repeat(1, 3, 1, 1) / 255
    return (x - torch.tensor(MEAN)[None, :, None, None]) / torch.tensor(DEVIATION)[None, :, None, None]


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def compare(self, what, ours, theirs, tolerance, least=0.0):
        """least: where a norm is smaller, the error is relative to this (a gradient that is zero but for rounding)."""
        norm = max(float(np.linalg.norm(theirs.astype(np.float64))), least)
        error = float(np.linalg.norm(ours.astype(np.float64) - theirs.astype(np.float64))) / (norm or 1)
        if error <= tolerance:
            self.passed += 1
        else:
            self.failed += 1
            print(f"  differs: {what}: relative error {error:.2e}, allowed {tolerance:.0e}")
        return error


def order_is_torchvisions(name, side, params, stats, tally):
    out = subprocess.run([PROGRAM, "--list", name, str(side), str(OUTPUTS)], capture_output=True, text=True, check=True)
    ours = [line.split() for line in out.stdout.splitlines() if not line.startswith("buffer")]
    wanted = [["param", n, str(p.numel())] for n, p in params] + [["stat", n, str(b.numel())] for n, b in stats]
    same = ours == wanted
    tally.passed += same
    tally.failed += not same
    print(f"{name}: names, shapes and order of {len(params)} parameters and {len(stats)} statistics "
          f"{'are' if same else 'ARE NOT'} those of torchvision")
    return same


def split(flat_array, tensors):
    at, out = 0, []
    for _, t in tensors:
        out.append(flat_array[at:at + t.numel()])
        at += t.numel()
    return out


def check_case(tally, backend, name, side, batch, steps, threads, dtype):
    """steps of Adam on both sides; PyTorch computes in dtype."""
    model = make_model(name).to(dtype)
    params, stats = tensors_of(model)
    rng = np.random.default_rng(side * 100 + batch)
    pixels = rng.integers(0, 256, (steps, batch, side, side), dtype=np.uint8)
    labels = (rng.random((steps, batch, OUTPUTS)) < 0.3).astype(np.uint8)
    text = flat(params).tobytes() + flat(stats).tobytes()
    for i in range(steps):
        text += pixels[i].tobytes() + labels[i].tobytes()
    run = subprocess.run([PROGRAM, backend, name, str(side), str(OUTPUTS), str(batch), str(steps), "adam", "1e-4",
                          str(threads)], input=text, capture_output=True, check=False)
    if run.returncode != 0:
        print(f"  differs: {backend} {name}: {run.stderr.decode().strip()}")
        tally.failed += 1
        return
    ours = np.frombuffer(run.stdout, dtype=np.float32)
    count = sum(p.numel() for _, p in params)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    at, worst = 0, 0.0
    for i in range(steps):
        model.train()
        optimizer.zero_grad()
        logits = model(network_input(pixels[i]).to(dtype))
        loss = torch.nn.BCEWithLogitsLoss()(logits, torch.from_numpy(labels[i]).to(dtype))
        loss.backward()
        if i == 0:
            here = f"{backend} {name} {side} px batch {batch}"
            got = ours[at:at + batch * OUTPUTS + 1]
            tally.compare(f"{here}: logits", got[:-1], logits.detach().numpy().ravel(), TOLERANCE)
            tally.compare(f"{here}: loss", got[-1:], loss.detach().numpy().ravel(), TOLERANCE)
            gradients = split(ours[at + batch * OUTPUTS + 1:][:count], params)
            # Where a ReLU cuts nothing off, the gradient of the beta before the next normalisation is exactly zero.
            least = 1e-3 * float(np.sqrt(np.mean([float(p.grad.norm()) ** 2 for _, p in params])))
            for (n, p), g in zip(params, gradients):
                worst = max(worst, tally.compare(f"{here}: gradient of {n}", g, p.grad.numpy().ravel(), TOLERANCE,
                                                 least))
        at += batch * OUTPUTS + 1 + count
        optimizer.step()
    for (n, p), g in zip(params, split(ours[at:], params)):
        tally.compare(f"{here}: {n} after {steps} steps", g, p.detach().numpy().ravel(), AFTER_STEPS)
    at += count
    for (n, b), g in zip(stats, split(ours[at:], stats)):
        tally.compare(f"{here}: {n} after {steps} steps", g, b.numpy().ravel(), AFTER_STEPS)
    at += sum(b.numel() for _, b in stats)
    model.eval()
    with torch.no_grad():
        logits = model(network_input(pixels[-1]).to(dtype))
    tally.compare(f"{here}: logits in evaluation after {steps} steps", ours[at:], logits.numpy().ravel(), AFTER_STEPS)
    print(f"{here}, {steps} steps, {threads} threads: largest error of {len(params)} gradients {worst:.1e}")


def main():
    quick = not os.environ.get("CHEX_SLOW")
    listed = subprocess.run([PROGRAM], capture_output=True, text=True, check=False).stderr
    names = listed.split("backends:")[1].split()
    tally = Tally()
    for model in ("densenet121", "resnet50"):
        params, stats = tensors_of(make_model(model))
        order_is_torchvisions(model, 64, params, stats, tally)
        for backend in names:
            # In float64 PyTorch has no rounding of its own that would count against a backend.
            slow = backend == "ref"
            check_case(tally, backend, model, 64, 4, 2 if quick and slow else 10, 2, torch.float64)
            if not quick:
                check_case(tally, backend, model, 96, 3, 1, 1, torch.float64)
                check_case(tally, backend, model, 224, 2, 1, 2, torch.float64)
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
