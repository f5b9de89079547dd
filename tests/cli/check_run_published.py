#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report RUN --reference: published results next to those of a run, each with its split.

    check_run_published.py [PATTERN]
"""
import json
import os
import re
import sys

from report_runs import INSPECT, Images, make_run, report  # skips without NumPy and scikit-learn
from support import SOURCE, Cases, program, run, says, slurp, synth, write

case = Cases()


def published(path, *rows, header="source,split,finding,auroc,n"):
    write(path, ("\n".join([header, *rows]) + "\n").encode())
    return path


def official(metrics):
    metrics["split"]["rule"] = "official, fold 1/4"


def plain(page):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


@case("each result has its source, its split, and whether it is of the images of the run")
def _(work):
    images = Images(70)
    folder = make_run(f"{work}/run", images, change=official)
    path = published(f"{work}/p.csv", '"A, 2017",random test,Mass,0.8,25596', "B,official test,Mass,0.7,25596",
                     "B,official test,mean,0.75,", "B,official test,Fracture,0.9,", "C,official test,Hernia,0.9,")
    found, page = report(folder, "--reference", path)
    a, b, c = found["references"]
    assert (a["source"], a["split"], a["images"], a["comparison"]) == (
        "A, 2017", "random test", 25596, "other split: not comparable")
    assert b["auroc"] == [0.7, None, None, None] and b["mean"] == 0.75 and a["mean"] is None
    assert "not known whether of the same images" in b["comparison"] and b["comparison"] == c["comparison"]
    text = plain(page)
    assert "1 result is of findings that the run does not have" in text and "(0.800)" in text
    assert "The split of this run is 'official test'" in text and c["images"] is None


@case("a real run on synthetic images is not compared with published results")
def _(work):
    csv = synth(f"{work}/in", 300, "--size", 64)
    run([program("chex-convert"), "-q", "-i", f"{work}/in/images", "-l", csv, "-o", f"{work}/shards", "--size", 36])
    run([program("chex-train"), "-q", "-d", f"{work}/shards", "-o", f"{work}/run", "--model", "densenet-micro",
         "--crop", 32, "--batch", 16, "--epochs", 1, "-j", 1])
    found, page = report(f"{work}/run", "--reference", f"{SOURCE}/doc/published-auroc.csv")
    assert all("synthetic" in r["comparison"] for r in found["references"]) and len(found["references"]) == 2
    assert "those of this run are synthetic" in page and "SYNTHETIC" in page


@case("without a note that they are synthetic, the name and the size of the split say whether images are the same")
def _(work):
    csv = synth(f"{work}/in", 300, "--size", 64)
    os.mkdir(f"{work}/plain")
    os.rename(f"{work}/in/images", f"{work}/plain/images")
    os.rename(csv, f"{work}/plain/labels.csv")
    run([program("chex-convert"), "-q", "-i", f"{work}/plain/images", "-l", f"{work}/plain/labels.csv", "-o",
         f"{work}/shards", "--size", 36])
    run([program("chex-train"), "-q", "-d", f"{work}/shards", "-o", f"{work}/run", "--model", "densenet-micro",
         "--crop", 32, "--batch", 16, "--epochs", 1, "-j", 1])
    found, _ = report(f"{work}/run")
    assert found["synthetic"] is False
    rule = json.loads(slurp(f"{work}/run/metrics-test.json"))["split"]["rule"]
    path = published(f"{work}/p.csv", f'A,"{rule} test",mean,0.8,{found["images"]}',
                     f'B,"{rule} test",mean,0.8,{found["images"] + 1}', f'C,"{rule} val",mean,0.8,{found["images"]}')
    found, _ = report(f"{work}/run", "--reference", path)
    assert [r["comparison"] for r in found["references"]] == [
        "split of the same name and size", "other images: the split has another size", "other split: not comparable"]


@case("files that are hostile or are not of this form are refused, with the line")
def _(work):
    folder = make_run(f"{work}/run", Images(71, patients=30), change=official)
    many = [f"S{i},x,Mass,0.5," for i in range(13)]
    for rows, message in (
            (["A,x,Mass,1.5,"], r"p\.csv:2: the AUROC is '1.5', not a number from 0 to 1"),
            (["A,x,Mass,nan,"], "the AUROC is 'nan'"), (["A,x,Mass,,"], "the AUROC is ''"),
            (["A,x,Mass,0x1p-1,"], "the AUROC is '0x1p-1'"),
            (["A,,Mass,0.5,"], "no split"), ([",x,Mass,0.5,"], "no source"),
            (["A,x,,0.5,"], "no finding"), (["A,x,Mass,0.5,-1"], "n is '-1'"), (["A,x,Mass,0.5,99999999999"], "n is"),
            (["A,x,Mass,0.5,7", "A,x,Edema,0.5,8"], r"p\.csv:3: this source and split have n 8 here, and 7 above"),
            (["A,x,Mass,0.5,", "A,x,Mass,0.6,"], "'Mass' is there twice"), (many, "more than 12 references"),
            ([f"{'A' * 200},x,Mass,0.5,"], "more than 119 characters"), ([], "has no result")):
        path = published(f"{work}/p.csv", *rows)
        says(run([INSPECT, "report", "-o", f"{work}/x.html", "--reference", path, folder], 6), message)
    path = published(f"{work}/p.csv", "A,x,Mass", header="source,split,finding")
    says(run([INSPECT, "report", "-o", f"{work}/x.html", "--reference", path, folder], 6), "no column 'auroc'")
    _, page = report(folder, "--reference", published(f"{work}/p.csv", "<script>,<b>&,Mass,0.5,"))
    assert "<script" not in page and "&lt;script&gt;" in page and os.path.exists(f"{folder}.html")


sys.exit(case.main())
