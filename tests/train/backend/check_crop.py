#!/usr/bin/env python3
"""Rotation and brightness of training images, compared with torchvision: pixel by pixel, in float64.

CROP_LEVELS names the program.  Exit status: 0 good, 1 something differs, 77 a module is missing.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys

try:
    import numpy as np
    import torch
    from torchvision.transforms import functional
except ImportError as e:
    print(f"skip: {e}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(77)

PROGRAM = os.environ.get("CROP_LEVELS", "./crop-levels")
GAIN = 1 << 16
POSITION = 255 / 2048  # levels: positions are rounded to 1/2048 pixel, by half of it in x and in y
ANGLES = (0.01, 3, 10, 45, 77.7, 120, -5, -33.3, -90, -179)


def ours(image, side, x=0, y=0, flip=0, degrees=0.0, gain=0):
    words = [PROGRAM, len(image), side, x, y, flip, degrees, gain]
    run = subprocess.run([str(w) for w in words], input=image.tobytes(), stdout=subprocess.PIPE, check=True)
    return np.frombuffer(run.stdout, np.uint8).reshape(side, side)


def torch_rotated(image, degrees):
    tensor = torch.from_numpy(image).double()[None]
    return functional.rotate(tensor, degrees, functional.InterpolationMode.BILINEAR)[0].numpy()


def images(rng):
    for side in (1, 2, 7, 64, 255):
        yield rng.integers(0, 256, (side, side), np.uint8)
    yield np.full((31, 31), 255, np.uint8)


def worst_rotation(rng):
    """The largest difference, with a crop and a flip after the rotation."""
    worst = 0
    for image in images(rng):
        for degrees in ANGLES:
            side = (len(image) + 1) // 2
            x, y = rng.integers(0, len(image) - side + 1, 2)
            flip = int(rng.integers(0, 2))
            got = ours(image, side, x, y, flip, degrees).astype(float)
            part = torch_rotated(image, degrees)[y:y + side, x:x + side]
            worst = max(worst, abs(got - (part[:, ::-1] if flip else part)).max())
    return worst


def brightness(rng):
    """Returns the largest difference to a factor, and whether torchvision's level is always this one or one less."""
    image = np.concatenate([np.arange(256), rng.integers(0, 256, 33)]).astype(np.uint8).reshape(17, 17)
    worst, near = 0, True
    for gain in (-GAIN, -GAIN // 2, -9999, -1, 1, 12345, GAIN // 3, GAIN):
        factor = 1 + gain / GAIN
        got = ours(image, 17, gain=gain).astype(float)
        worst = max(worst, abs(got - np.minimum(factor * image, 255)).max())
        theirs = functional.adjust_brightness(torch.from_numpy(image)[None], factor)[0].numpy()
        near = near and set(np.unique(got - theirs)) <= {0, 1}
    return worst, near


def main():
    rng = np.random.default_rng(29)
    rotation, (factor, near) = worst_rotation(rng), brightness(rng)
    results = {f"rotation differs by {rotation:.3f} levels from torchvision": rotation <= 0.5 + POSITION,
               f"brightness differs by {factor:.4f} levels from the product": factor <= 0.5,
               "brightness rounds the level that torchvision rounds down": near}
    for text, good in results.items():
        print(f"{'ok  ' if good else 'FAIL'} {text}")
    print(f"{sum(results.values())} passed, {len(results) - sum(results.values())} failed, 0 skipped")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
