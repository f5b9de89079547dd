#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make doc/contact.png: images of a synthetic data set with their names and findings (needs Pillow).

    chex-synth -n 600 -o demo
    chex-convert -i demo/images -l demo/Data_Entry_2017_v2020.csv -o shards
    doc/make-pictures.py shards doc/contact.png

Names and findings are those of chex-inspect --list, the pictures those of chex-inspect --extract.  $BUILDDIR is the
folder of the programs (default: those in $PATH).
"""
import os
import subprocess
import sys
import tempfile

from PIL import Image, ImageDraw, ImageFont

COLUMNS, ROWS, SIDE, TEXT, GAP = 6, 2, 170, 30, 6
PAPER, INK, DIM = 255, 0, 90
INSPECT = os.path.join(os.environ["BUILDDIR"], "chex-inspect") if "BUILDDIR" in os.environ else "chex-inspect"
FONTS = ["/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "DejaVuSans.ttf"]


def images_of(folder):
    """(name, [finding]) of each image of the test split."""
    listed = subprocess.run([INSPECT, "--list", "--split", "test", "--fields", "name,labels", folder], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    for line in listed.splitlines()[1:]:  # the first one names the fields
        name, findings = line.split("\t")
        yield name, [] if findings == "No Finding" else findings.split("|")


def choose(folder, count):
    """The first image of each finding that it has alone and one without; then others, those with findings first."""
    images = sorted(images_of(folder))
    chosen, seen = [], set()
    for name, findings in images:
        if len(findings) < 2 and tuple(findings) not in seen:
            seen.add(tuple(findings))
            chosen.append((name, findings))
    chosen += sorted((image for image in images if image not in chosen), key=lambda image: not image[1])
    return sorted(chosen[:count])


def extract(folder, name):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "image.png")
        subprocess.run([INSPECT, "-q", "--extract", name, "-o", path, folder], check=True)
        return Image.open(path).convert("L").resize((SIDE, SIDE), Image.LANCZOS)


def font(size):
    for path in FONTS:
        try:
            return ImageFont.truetype(path, size)
        except OSError:
            continue
    return ImageFont.load_default()


def main():
    folder, out = sys.argv[1:]
    sheet = Image.new("L", (COLUMNS * (SIDE + GAP) + GAP, ROWS * (SIDE + TEXT + GAP) + GAP), PAPER)
    draw = ImageDraw.Draw(sheet)
    for i, (name, findings) in enumerate(choose(folder, COLUMNS * ROWS)):
        x = GAP + i % COLUMNS * (SIDE + GAP)
        y = GAP + i // COLUMNS * (SIDE + TEXT + GAP)
        sheet.paste(extract(folder, name), (x, y))
        draw.text((x, y + SIDE + 1), name, INK, font(11))
        draw.text((x, y + SIDE + 15), ", ".join(findings) or "No Finding", DIM, font(11))
    sheet.quantize(64).save(out, optimize=True)


if __name__ == "__main__":
    main()
