#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the pictures of README.md from a synthetic data set (needs Pillow; Chromium for the report).

    chex-synth -n 600 -o demo
    chex-convert -i demo/images -l demo/Data_Entry_2017_v2020.csv -o shards
    doc/make-pictures.py shards doc/contact.png
    doc/make-pictures.py shards doc/report.png

contact.png: images with names and findings; report.png: parts of the page of chex-inspect --report.
Names and findings are those of chex-inspect --list, the pictures those of chex-inspect --extract.  $BUILDDIR is the
folder of the programs (default: those in $PATH).
"""
import os
import subprocess
import sys
import tempfile

from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from browser import Browser  # noqa: E402 pylint: disable=wrong-import-position

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


def contact(folder, out):
    sheet = Image.new("L", (COLUMNS * (SIDE + GAP) + GAP, ROWS * (SIDE + TEXT + GAP) + GAP), PAPER)
    draw = ImageDraw.Draw(sheet)
    for i, (name, findings) in enumerate(choose(folder, COLUMNS * ROWS)):
        x = GAP + i % COLUMNS * (SIDE + GAP)
        y = GAP + i // COLUMNS * (SIDE + TEXT + GAP)
        sheet.paste(extract(folder, name), (x, y))
        draw.text((x, y + SIDE + 1), name, INK, font(11))
        draw.text((x, y + SIDE + 15), ", ".join(findings) or "No Finding", DIM, font(11))
    sheet.quantize(64).save(out, optimize=True)


def report(folder, out):
    """The top of the page, and its plots of prevalence and co-occurrence, side by side."""
    with tempfile.TemporaryDirectory() as scratch, Browser() as browser:
        page, shot = os.path.join(scratch, "report.html"), os.path.join(scratch, "report.png")
        subprocess.run([INSPECT, "-q", "--report", page, folder], check=False)
        browser.size(1060, 900)
        browser.open(page)
        browser.screenshot(shot)
        top = browser.run("document.getElementById('findings').offsetTop")
        whole = Image.open(shot).convert("RGB")
    height, width = 1480, whole.width
    sheet = Image.new("RGB", (2 * width + 8, height), "#999")
    sheet.paste(whole.crop((0, 0, width, height)), (0, 0))
    sheet.paste(whole.crop((0, top, width, top + height)), (width + 8, 0))
    small = sheet.resize((sheet.width * 9 // 20, sheet.height * 9 // 20), Image.LANCZOS)
    small.quantize(128, Image.Quantize.MAXCOVERAGE).save(out, optimize=True)


def main():
    folder, out = sys.argv[1:]
    (report if os.path.basename(out) == "report.png" else contact)(folder, out)


if __name__ == "__main__":
    main()
