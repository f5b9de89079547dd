#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures in doc/ show what the programs draw today; `make doc-pictures` makes them again.

    check_pictures.py [PATTERN]     needs Pillow; with CHEX_SLOW=1 the training run of doc/tour.md
"""
import functools
import os
import re
import sys

from support import (FINDINGS, SOURCE, Cases, Skip, cache_folder, chunks, manifest, program, python_with, run, slurp,
                     synth)

sys.path.insert(0, os.path.join(SOURCE, "doc"))
import pictures

case = Cases()
CACHE = cache_folder("pictures")
AGAIN = "is another picture: make doc-pictures"
os.environ.setdefault("BUILDDIR", os.path.dirname(program("chex-inspect")))


def ours(name):
    return os.path.join(SOURCE, "doc", name)


@functools.lru_cache(None)
def session():
    """The folder in which the session of doc/tour.md made its data set."""
    pictures.convert(CACHE)
    return CACHE


@case("doc/contact.png is the sheet that the commands of doc/tour.md make, pixel by pixel")
def _(_work):
    text = re.search(r"<!-- session -->\n(.*?)<!-- /session -->", pictures.tour(), re.S)[1]
    name = re.search(r"data set ([0-9a-f]{16})", text)[1]
    assert manifest(os.path.join(session(), "shards"))["dataset_id"] == name, "the session is of another data set"
    same = "import sys; from PIL import Image\n" \
        "a, b = (Image.open(path) for path in sys.argv[1:])\n" \
        "sys.exit((a.size, a.text, a.convert('RGB').tobytes()) != (b.size, b.text, b.convert('RGB').tobytes()))"
    done = run([python_with("PIL"), "-c", same, pictures.contact(session()), ours("contact.png")], None)
    assert done.returncode == 0, f"doc/contact.png {AGAIN}"


@case("doc/report.png is of the page that the commands of doc/tour.md make")
def _(_work):
    data = slurp(ours("report.png"))
    notes = dict(data[at + 8:at + 8 + size].split(b"\0", 1) for kind, at, size in chunks(data) if kind == b"tEXt")
    made = pictures.page_sum(pictures.report_page(session()))
    assert notes[pictures.PAGE_KEY.encode()].decode() == made, f"doc/report.png {AGAIN}"


def form(svg):
    """What a plot consists of: its elements without places, numbers, hashes and names of findings."""
    names = "|".join(name.replace("_", " ") for name in FINDINGS)
    lines = (re.sub(r'points="[^"]*"', "", line) for line in svg[svg.index("</style>"):].splitlines())
    return {re.sub(r"\d[\d,.]*", "0", re.sub(rf"\b([0-9a-f]{{16}}|{names})\b", "X", line)) for line in lines}


@case("doc/auroc.svg has the form of the plots that chex-train draws")
def _(work):
    labels, shards, out = synth(f"{work}/in", 120, "--size", 64), f"{work}/shards", f"{work}/run"
    run([program("chex-convert"), "-q", "-i", f"{work}/in", "-l", labels, "-o", shards, "--size", 36])
    run([program("chex-train"), "-q", "-d", shards, "-o", out, "--model", "densenet-micro", "--crop", 32,
         "--epochs", 1])
    made, shown = slurp(f"{out}/auroc-test.svg").decode(), slurp(ours("auroc.svg")).decode()
    style = r"<style>.*?</style>"
    assert re.search(style, made, re.S)[0] == re.search(style, shown, re.S)[0], f"doc/auroc.svg {AGAIN}"
    width = r'<svg [^>]*viewBox="0 0 (\d+) '
    assert re.search(width, made)[1] == re.search(width, shown)[1], f"doc/auroc.svg {AGAIN}"
    assert form(shown) <= form(made), f"doc/auroc.svg {AGAIN}: {sorted(form(shown) - form(made))[:3]}"


@case("doc/auroc.svg is what the training run of doc/tour.md draws, to the byte on processors of that kind", slow=True)
def _(work):
    kind = re.search(r"^    chex-train .* 1 rank, CPU, ([\w-]+)", pictures.tour(), re.M)[1]
    if kind.lower().replace("-", "") not in run([program("chex-train"), "--version", "-v"]).stdout:
        raise Skip(f"no {kind} here")
    assert slurp(pictures.auroc(work)) == slurp(ours("auroc.svg")), f"doc/auroc.svg {AGAIN}"


if __name__ == "__main__":
    sys.exit(case.main())
