#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make doc/report.png, parts of the page of chex-inspect --report (needs Pillow and Chromium).

    chex-synth -n 600 -o demo
    chex-convert -i demo/images -l demo/Data_Entry_2017_v2020.csv -o shards
    doc/make-report-picture.py shards doc/report.png

$BUILDDIR is the folder of the programs (default: those in $PATH).
"""
import os
import subprocess
import sys
import tempfile

from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from browser import Browser

INSPECT = os.path.join(os.environ["BUILDDIR"], "chex-inspect") if "BUILDDIR" in os.environ else "chex-inspect"


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


if __name__ == "__main__":
    report(*sys.argv[1:])
