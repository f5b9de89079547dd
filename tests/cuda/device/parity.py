#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradients of one step in half precision, ours and those of PyTorch's autocast, both beside PyTorch in float64.

    parity.py TRAIN_STEP DEVICE PRECISION MODEL SIDE IMAGES

Random weights of torchvision, random images, 14 outputs.  Errors are relative: of all gradients together, the norm of
the difference over the norm; and the median over tensors.  A half type has no tolerance of its own that would be right
for every network: the one that counts is what PyTorch's own autocast of that precision is off, on the same weights and
images.  fp32: beside PyTorch's float32.

The last line of the output is a JSON object.  Exit status: 0 compared, 1 an error, 77 something is missing.
"""
import json
import re
import subprocess
import sys

try:
    import numpy as np
    import torch
    import torchvision
except ImportError as e:
    print(f"skip: {e}")
    sys.exit(77)

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OUTPUTS, THREADS, MOST_SKIPPED, SCALE = 14, 4, 20, 1024.0
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": None}


def make_model(name):
    torch.manual_seed(7)
    return getattr(torchvision.models, name)(num_classes=OUTPUTS)


def flat(tensors):
    return np.concatenate([t.detach().float().cpu().numpy().ravel() for t in tensors])


def gradients(name, pixels, labels, device, kind):
    """Of float64, of float32 or of autocast; the loss is scaled for fp16, where small gradients would be zero."""
    model = make_model(name).to(device)
    double = kind == "fp64"
    model = model.double() if double else model.to(memory_format=torch.channels_last)
    x = torch.from_numpy(pixels).to(device)[:, None].repeat(1, 3, 1, 1)
    x = x.double() if double else x.float()
    mean, deviation = (torch.tensor(t, device=device, dtype=x.dtype)[None, :, None, None] for t in (MEAN, DEVIATION))
    target = torch.from_numpy(labels).to(device).to(x.dtype)
    model.train()
    half = TYPES.get(kind)
    with torch.autocast(torch.device(device).type, dtype=half or torch.bfloat16, enabled=half is not None):
        logits = model((x / 255 - mean) / deviation)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits.to(x.dtype), target)
    scale = SCALE if kind == "fp16" else 1.0
    (loss * scale).backward()
    return [(p.grad / scale).double().cpu().numpy().ravel() for p in model.parameters()], float(loss)


def ours(program, device, precision, name, pixels, labels):
    """Of the first step that was applied: a loss scale that is too large at first costs some."""
    model = make_model(name)
    start = flat(model.parameters()), flat(b for b in model.buffers() if b.dim() > 0)
    count, logits = len(start[0]), len(pixels) * OUTPUTS
    step = pixels.tobytes() + labels.tobytes()
    for steps in range(1, MOST_SKIPPED):
        words = [program, device, name, pixels.shape[1], OUTPUTS, len(pixels), steps, "adam", 1e-4, THREADS]
        words += [precision] if precision != "fp32" else []
        done = subprocess.run([str(w) for w in words], input=b"".join(a.tobytes() for a in start) + step * steps,
                              capture_output=True, check=False)
        said = done.stderr.decode(errors="replace")
        if done.returncode == 2:
            print(f"skip: {said.strip().splitlines()[0]}")
            sys.exit(77)
        if done.returncode != 0:
            sys.exit(f"train-step: {said.strip()[-400:]}")
        applied = re.search(r"applied (\d+)", said)
        if not applied or int(applied.group(1)) > 0:
            break
    data = np.frombuffer(done.stdout, dtype=np.float32)
    at = (steps - 1) * (logits + 1 + count) + logits
    return split(data[at + 1:at + 1 + count].astype(np.float64), model.parameters()), float(data[at]), steps - 1


def split(array, tensors):
    at, out = 0, []
    for t in tensors:
        out.append(array[at:at + t.numel()])
        at += t.numel()
    return out


def errors(got, wanted):
    """(all together, median over tensors); one that is zero but for rounding is compared with the others' mean."""
    whole = np.sqrt(sum(float(np.sum((g - w) ** 2)) for g, w in zip(got, wanted)))
    norm = np.sqrt(sum(float(np.sum(w ** 2)) for w in wanted))
    least = 3e-3 * norm / np.sqrt(len(wanted))
    each = [float(np.linalg.norm(g - w)) / max(float(np.linalg.norm(w)), least) for g, w in zip(got, wanted)]
    return float(whole / norm), float(np.median(each))


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    program, device, precision, name = sys.argv[1:5]
    side, images = int(sys.argv[5]), int(sys.argv[6])
    where = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (images, side, side), dtype=np.uint8)
    labels = (rng.random((images, OUTPUTS)) < 0.3).astype(np.uint8)
    wanted, wanted_loss = gradients(name, pixels, labels, where, "fp64")
    theirs, their_loss = gradients(name, pixels, labels, where, precision)
    mine, my_loss, skipped = ours(program, device, precision, name, pixels, labels)
    (mine_all, mine_median), (theirs_all, theirs_median) = errors(mine, wanted), errors(theirs, wanted)
    print(json.dumps({"gradients": mine_all, "torch_gradients": theirs_all, "median": mine_median,
                      "torch_median": theirs_median, "loss": my_loss, "torch_loss": their_loss,
                      "float64_loss": wanted_loss, "skipped": skipped, "torch": torch.__version__, "torch_on": where}))


if __name__ == "__main__":
    main()
