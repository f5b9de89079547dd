#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the pictures in doc/ by the commands of doc/tour.md (make doc-pictures).

    doc/pictures.py [NAME...]      contact.png, report.png, auroc.svg, scale.svg; default: all

$BUILDDIR is the folder of the programs (default: those in $PATH).  report.png needs Pillow and Chromium.  It holds the
SHA-256 of the text of the page that it shows: tests/cli/check_pictures.py makes the page again and compares that,
because the letters of a browser differ between machines.
"""
import hashlib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(SOURCE, "tests", "python"))

PAGE_KEY = "page-sha256"


def tour():
    with open(os.path.join(HERE, "tour.md"), encoding="utf-8") as page:
        return page.read()


def command(pattern, text=None):
    """The first command of the tour, or of a part of it, that matches."""
    found = re.search(rf"^    \$ ({pattern}.*)$", text or tour(), re.M)
    assert found, f"doc/tour.md has no command {pattern}"
    return found[1]


def run(line, folder):
    """A command of the tour, in this folder."""
    path = os.environ["PATH"]
    if "BUILDDIR" in os.environ:
        path = f"{os.path.abspath(os.environ['BUILDDIR'])}:{path}"
    subprocess.run(["/bin/sh", "-c", line], cwd=folder, env=dict(os.environ, PATH=path), check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def convert(folder):
    """Its data set, in FOLDER/shards."""
    if not os.path.exists(os.path.join(folder, "shards")):
        run(command("chex-synth -n 600"), folder)
        run(command("chex-convert -i demo"), folder)


def contact(folder):
    """The contact sheet: a file of its own drawing, whose pixels depend on the data alone."""
    convert(folder)
    run(command("chex-inspect sheet -o contact.png"), folder)
    return os.path.join(folder, "contact.png")


def report_page(folder):
    convert(folder)
    run("chex-inspect report -o report.html shards", folder)
    return os.path.join(folder, "report.html")


def page_sum(page):
    """SHA-256 of a page without the bytes of its pictures, which depend on the versions of libjpeg and libpng."""
    with open(page, encoding="ascii") as f:
        return hashlib.sha256(re.sub(r'src="data:[^"]*"', "", f.read()).encode()).hexdigest()


def report(folder):
    """The top of the page, and its plots of prevalence and co-occurrence, side by side."""
    from browser import Browser
    from PIL import Image, PngImagePlugin

    page, shot = report_page(folder), os.path.join(folder, "shot.png")
    with Browser() as browser:
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
    notes = PngImagePlugin.PngInfo()
    notes.add_text(PAGE_KEY, page_sum(page))
    out = os.path.join(folder, "report.png")
    small.quantize(128, Image.Quantize.MAXCOVERAGE).save(out, optimize=True, pnginfo=notes)
    return out


def auroc(folder):
    """Of the training run; its bits are the same on processors of one kind."""
    training = re.search(r"<!-- training session -->\n(.*?)<!-- /training session -->", tour(), re.S)[1]
    for tool in ("chex-synth", "chex-convert", "chex-train"):
        run(command(tool, training), folder)
    return os.path.join(folder, "runs", "small", "auroc-test.svg")


def scale(folder):
    out = os.path.join(folder, "scale.svg")
    subprocess.run([sys.executable, os.path.join(SOURCE, "bench", "scale.py"), "--svg", out], check=True)
    return out


PICTURES = {"contact.png": contact, "report.png": report, "auroc.svg": auroc, "scale.svg": scale}


def main(names):
    with tempfile.TemporaryDirectory() as folder:
        for name in names or PICTURES:
            with open(PICTURES[name](folder), "rb") as made:
                data = made.read()
            with open(os.path.join(HERE, name), "rb") as old:
                print(f"{name}: {'the same' if data == old.read() else 'made again'}")
            with open(os.path.join(HERE, name), "wb") as out:
                out.write(data)


if __name__ == "__main__":
    main(sys.argv[1:])
