#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report: what the page says is true, and a browser shows all of it.

    check_report.py [PATTERN]      $CHEX_INSPECT, $CHEX_CONVERT, $CHEX_SYNTH or in $BUILDDIR; Chromium where it is there
"""
import collections
import functools
import html
import json
import os
import re
import shutil
import sys

from browser import CONTRAST, OVERLAPS, SMALL, Browser
from support import (BUILD, FINDINGS, SOURCE, Cases, cache_folder, images, manifest, nih, png, png_gray, program,
                     read_csv, records, run, says, slurp, synth, write, write_csv)

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
CACHE = cache_folder("report")
SECTIONS = ["checks", "card", "splits", "findings", "pixels", "shards", "rejects", "images", "methods"]


def convert(work, csv, folder, *options, code=0):
    out = os.path.join(work, "shards")
    run([program("chex-convert"), "-q", "-i", folder, "-l", csv, "-o", out, "--shard-size", 16, *options], code)
    return out


@functools.lru_cache(None)
def make_plain(synthetic):
    work = os.path.join(CACHE, "synthetic" if synthetic else "plain")
    os.mkdir(work)
    csv = synth(os.path.join(work, "in"), 120, "--size", 96)
    if not synthetic:
        os.remove(os.path.join(work, "in", "SYNTHETIC.txt"))
    return convert(work, csv, os.path.join(work, "in", "images"), "--size", 48)


def plain(work, synthetic=False):
    return shutil.copytree(make_plain(synthetic), os.path.join(work, "synthetic" if synthetic else "plain"))


def odd(work):
    """A data set with one of each thing that is to be flagged, and the names of its gray images in train."""
    shards, gray = make_odd()
    return shutil.copytree(shards, os.path.join(work, "odd")), gray


@functools.lru_cache(None)
def make_odd():
    work = os.path.join(CACHE, "odd")
    os.mkdir(work)
    csv = synth(os.path.join(work, "in"), 150, "--size", 96)
    folder = os.path.join(work, "in", "images")
    header, rows = read_csv(csv)
    column = {name: i for i, name in enumerate(header)}
    of = {row[0]: row for row in rows}
    test = set(slurp(os.path.join(work, "in", "test_list.txt")).decode().split())
    train = sorted(set(of) - test)
    test = sorted(test)

    def pixels(name, change):
        path = os.path.join(folder, name)
        data = slurp(path)
        width, height, gray = png_gray(data) if data[25] == 0 else (96, 96, bytes(i % 251 for i in range(96 * 96)))
        new = bytes(change(v) for v in gray)
        write(path, png(width, height, lambda y, w: new[y * w:(y + 1) * w]))

    gray = [n for n in train if slurp(os.path.join(folder, n))[25] == 0]
    pixels(gray[0], lambda v: 255 - v)
    pixels(gray[1], lambda v: 255 - v)
    pixels(gray[2], lambda v: v // 9)       # near-black
    pixels(gray[3], lambda v: 77)           # constant
    pixels(gray[4], lambda v: 230 + v // 11)  # near-white
    pixels(gray[5], lambda v: 100 + v // 12)  # flat
    write(os.path.join(folder, test[0]), slurp(os.path.join(folder, gray[10])))   # in two splits
    write(os.path.join(folder, gray[12]), slurp(os.path.join(folder, gray[11])))  # twice in a split, or in train and
                                                                                  # val
    write(os.path.join(folder, gray[20]), b"")                                    # a reject
    of[gray[21]][column["Patient Age"]] = "411"
    of[gray[22]][column["View Position"]] = ""
    write_csv(csv, header, rows)
    return convert(work, csv, folder, "--size", 48, "--allow-rejects", "5", code=None), gray


def schema_holds(document):
    if jsonschema:
        jsonschema.validate(document, json.loads(slurp(os.path.join(SOURCE, "schemas", "inspect.schema.json"))))


def report(shards, work, *options, code=0):
    path = os.path.join(work, "report.html")
    done = run([program("chex-inspect"), "--json", "report", "-o", path, *options, shards], code)
    document = json.loads(done.stdout)
    schema_holds(document)
    result, = document["results"]
    return path, result, {c["id"]: c for c in result["checks"]}


def cells(page, section, row):
    """The cells of the row of a table that begins with this."""
    part = page[page.index(f'<section id="{section}"'):]
    found = re.search(rf"<tr><th>{re.escape(row)}</th>(.*?)</tr>", part, re.S)
    assert found, f"no row '{row}'"
    return [re.sub(r"<[^>]*>", " ", c).split()[0] for c in re.findall(r"<td>(.*?)</td>", found[1], re.S)]


@case("the numbers of the page equal those of the records")
def _(work):
    shards = plain(work)
    path, result, checks = report(shards, work)
    page = slurp(path).decode("ascii")
    splits = [s["name"] for s in manifest(shards)["splits"]]
    per_split = [list(images(shards, s).values()) for s in splits]
    assert cells(page, "splits", "images")[:-1] == [str(len(s)) for s in per_split]
    assert cells(page, "splits", "patients")[:-1] == [str(len({r["patient"] for r in s})) for s in per_split]
    for i, finding in enumerate(FINDINGS):
        assert cells(page, "findings", finding) == [str(sum(r["label"][i] for r in s)) for s in per_split], finding
    assert result["images"] == 120 and result["dataset"] == manifest(shards)["dataset_id"]
    assert checks["records"]["level"] == checks["manifest"]["level"] == checks["patients"]["level"] == "good"
    together = collections.Counter()
    for r in sum(per_split, []):
        for i in range(14):
            for j in range(14):
                together[i, j] += r["label"][i] and r["label"][j]
    for i in range(14):
        for j in range(14):
            assert f"{FINDINGS[i]}: {together[i, j]} of {together[i, i]} images also have {FINDINGS[j]}" in page


@case("the same bytes from one thread and from four, to a file and to standard output")
def _(work):
    shards = plain(work)
    path, _, _ = report(shards, work, "-j", 1)
    first = slurp(path)
    report(shards, work, "-j", 4)
    assert slurp(path) == first
    out = run([program("chex-inspect"), "-q", "report", "-o", "-", shards]).stdout
    assert out.encode() == first
    other = os.path.join(work, "moved")
    os.rename(shards, other)
    assert run([program("chex-inspect"), "-q", "report", "-o", "-", other]).stdout.encode() == first, \
        "the path is in it"


@case("--title is the heading of the page and of the window, and the data set id follows")
def _(work):
    shards = plain(work)
    path, _, _ = report(shards, work, "--title", "Site <B> & 'others'")
    page, name = slurp(path).decode(), manifest(shards)["dataset_id"]
    title = "Site &lt;B&gt; &amp; &#39;others&#39;"
    assert f"<title>{title} - Data set {name}</title>" in page and f"<h1>{title}</h1>" in page
    assert f'</h1>\n<p class="dim">Data set {name}. Report of chex-inspect' in page
    path, _, _ = report(shards, work)
    assert f"<title>Data set {name}</title>" in slurp(path).decode()


@case("a page of synthetic data says SYNTHETIC at the top and names no source at NIH, a page of others does not")
def _(work):
    path, _, _ = report(plain(work, True), work)
    page = slurp(path).decode()
    head = page[page.index("<header>"):page.index("</header>")]
    assert "<title>SYNTHETIC data set " in page and "SYNTHETIC images and labels, drawn by chex-synth" in head
    card = page[page.index('<section id="card">'):page.index("<h3>To make it again")]
    assert "NIH" not in card and "Wang" not in card and "SYNTHETIC" in card and "not for diagnosis" in card
    path, _, _ = report(plain(work), work)
    page = slurp(path).decode()
    assert "SYNTHETIC" not in page and "NIH" in page


@case("nothing is fetched and nothing runs: no script, no address but data:")
def _(work):
    path, _, _ = report(plain(work), work)
    page = slurp(path).decode("ascii")
    assert "<script" not in page and "javascript:" not in page and not re.search(r"\son[a-z]+=", page)
    links = re.findall(r"""(?:src|href)=["']([^"']{0,20})|url\(([^)]{0,20})""", page)
    assert all(re.match(r"data:|#", a or b) for a, b in links), links
    assert "not for diagnosis" in page and "CVPR 2017" in page and "Wang" in page


@case("one of each odd thing is flagged, with its number")
def _(work):
    shards, gray = odd(work)
    path, result, checks = report(shards, work, code=1)
    for name, count in (("inverted", 2), ("black", 1), ("constant", 1), ("white", 1), ("flat", 1), ("images", None),
                        ("rejects", 1), ("ages", 1), ("views", 1), ("contradictions", None)):
        assert checks[name]["level"] != "good", checks[name]
        assert count is None or checks[name]["count"] == count, checks[name]
    assert checks["images"]["level"] == "fault" and gray[10] in checks["images"]["text"]
    assert sorted(re.findall(r"\d{8}_\d{3}.png", checks["inverted"]["text"])) == sorted(gray[:2])
    page = html.unescape(slurp(path).decode("ascii"))
    assert gray[20] in page[page.index('id="rejects"'):], "the reject is not named"
    assert result["faults"] == 0


@case("padding records are a note, not a warning that can never be resolved")
def _(work):
    padded = plain(work)
    records = sum(s["records"] - s["images"] for s in manifest(padded)["shards"])
    path, _, checks = report(padded, work)
    assert records > 0 and (checks["padding"]["level"], checks["padding"]["count"]) == ("note", records)
    page = slurp(path).decode()
    look = sum(c["level"] == "look" for c in checks.values())
    assert f"<b>{look}</b>to look at" in page and "<b>1</b>note<" in page
    assert re.search(r'<tr id="check-padding"><td class="lv note">[^<]*note</td>', page)
    done = run([program("chex-inspect"), "report", "-o", path, padded])
    assert f" 1 note, {look} to look at, 0 faults" in done.stderr, done.stderr
    shards = os.path.join(work, "short")
    csv = synth(os.path.join(work, "in"), 30, "--size", 96)
    run([program("chex-convert"), "-q", "-i", os.path.join(work, "in"), "-l", csv, "-o", shards, "--tail", "short"])
    assert report(shards, work)[2]["padding"]["level"] == "good"


# ---- drift, and few positives ----------------------------------------------------------------------------------------

def by_patient(rows, value):
    """[(n, y)] of each patient: images with a value, and the sum of these."""
    sums = collections.defaultdict(lambda: [0, 0.0])
    for row in rows:
        number = value(row)
        if number is not None:
            sums[row["patient"]][0] += 1
            sums[row["patient"]][1] += number
    return list(sums.values())


def z_of(a, b):
    """Cochran's ratio estimator over patients, p of both together (chex-inspect(1), DRIFT); None: not compared."""
    total = [(sum(n for n, _ in side), sum(y for _, y in side)) for side in (a, b)]
    p = sum(y for _, y in total) / (sum(n for n, _ in total) or 1)
    if min(p * n for n, _ in total) < 5 or min(len(a), len(b)) < 2:
        return None
    variance = sum(len(side) / (len(side) - 1) * sum((y - p * n) ** 2 for n, y in side) / all_n ** 2
                   for side, (all_n, _) in zip((a, b), total))
    return (total[1][1] / total[1][0] - total[0][1] / total[0][0]) / variance ** 0.5


def share(side):
    return sum(y for _, y in side) / sum(n for n, _ in side)


def differences(rows, value):
    """[(z, share in the first split, share in another one)] of those that can be compared."""
    sides = [by_patient(of, value) for of in rows]
    return [(z_of(sides[0], b), share(sides[0]), share(b)) for b in sides[1:] if z_of(sides[0], b) is not None]


@case("a drift within its limits names what was compared, and the largest difference with its figures")
def _(work):
    csv = synth(os.path.join(work, "in"), 200, "--size", 96)
    shards = convert(work, csv, os.path.join(work, "in", "images"), "--size", 48, "--split", "patient:60,20,20:3")
    rows = [list(images(shards, s["name"]).values()) for s in manifest(shards)["splits"]]
    names = [*FINDINGS, "No Finding"]
    found = [(*d, name) for i, name in enumerate(names)
             for d in differences(rows, lambda r, i=i: float(r["label"][i] if i < 14 else not any(r["label"])))]
    z, p, q, name = max(found, key=lambda d: abs(d[0]))
    _, _, checks = report(shards, work)
    drift = checks["prevalence"]
    assert drift["level"] == "good" and abs(z) < 3.29, drift
    assert f"Of 30 differences of prevalence from train, No Finding too, {len(found)} have enough" in drift["text"]
    assert f"is that of {name}: {100 * p:.2f} % in train, {100 * q:.2f} % in " in drift["text"], drift["text"]
    assert f"(z {z:+.1f})" in drift["text"], (z, drift["text"])
    people = checks["people"]
    assert people["level"] == "good"
    for title, scale, value in (("mean age", 1, lambda r: r["age"] if r["age"] >= 0 else None),
                                ("share of women", 100, lambda r: float(r["sex"] == b"F")),
                                ("share of AP views", 100, lambda r: float(r["view"] == b"AP"))):
        z, p, q = max(differences(rows, value), key=lambda d: abs(d[0]))
        said = re.search(rf"{title} ([0-9.]+) [a-z%]+ in train, ([0-9.]+) [a-z%]+ in \w+ \(z ([-+0-9.]+)\)",
                         people["text"])
        assert said and said.groups() == (f"{scale * p:.1f}", f"{scale * q:.1f}", f"{z:+.1f}"), (title, people["text"])
    done = run([program("chex-inspect"), "check", "--leaks", shards])
    without = [[*d, n] for *d, n in found if n != "No Finding"]
    z, p, q, name = max(without, key=lambda d: abs(d[0]))
    assert re.search(rf"largest \|z\|: {name}\n +{100 * p:.2f} % in train, {100 * q:.2f} % in \w+, z {z:.1f}\n",
                     done.stdout), done.stdout


@case("splits that are too small to compare are not said to agree")
def _(work):
    csv = synth(os.path.join(work, "in"), 12, "--size", 96)
    shards = convert(work, csv, os.path.join(work, "in", "images"), "--size", 48)
    _, _, checks = report(shards, work)
    assert checks["prevalence"]["level"] == "note" and "No prevalence can be compared" in checks["prevalence"]["text"]
    assert "cannot be compared with train" in run([program("chex-inspect"), "check", "--leaks", shards]).stdout


def half_interval(positives, negatives, a=0.85):
    """Hanley and McNeil, Radiology 143, 1982, 29-36."""
    q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
    return 1.96 * ((a * (1 - a) + (positives - 1) * (q1 - a * a) + (negatives - 1) * (q2 - a * a)) /
                   (positives * negatives)) ** 0.5


@case("an interval of an AUROC that would reach past 1 is not given: the finding cannot be evaluated")
def _(work):
    csv = synth(os.path.join(work, "in"), 300, "--size", 96)
    shards = convert(work, csv, os.path.join(work, "in", "images"), "--size", 48)
    none, wide, rest = 0, 0, []
    for split in manifest(shards)["splits"]:
        for positives in split["positives"].values():
            negatives = split["images"] - positives
            if positives >= 30:
                continue
            none += positives == 0
            wide += positives > 0 and 0.85 + half_interval(positives, negatives) > 1
            if positives > 0 and 0.85 + half_interval(positives, negatives) <= 1:
                rest.append((positives, half_interval(positives, negatives)))
    assert none and wide and rest
    text = report(shards, work)[2]["positives"]["text"]
    assert f" {none} cannot be evaluated without a positive" in text
    assert f" {wide} cannot be evaluated with so few" in text
    said = re.search(r"With (\d+), an AUROC of 0.85 would be known to within (0\.\d+)", text)
    assert (int(said[1]), said[2]) == (min(rest)[0], f"{min(rest)[1]:.2f}") and 0.85 + float(said[2]) <= 1, text


@case("a part of ChestX-ray14 is not taken for the complete data set")
def _(work):
    shards = os.path.join(work, "part")
    run([program("chex-convert"), "-q", "--allow-missing", "-i", nih("images"), "-l",
         nih("csv", "Data_Entry_2017_v2020.csv.gz"), "-o", shards, "--size", 64])
    _, _, checks = report(shards, work)
    assert (checks["complete"]["level"], checks["complete"]["count"]) == ("look", 112120 - 67)
    assert checks["complete"]["text"].startswith("67 of 112,120 images are here")
    _, _, checks = report(plain(work), work)
    assert "complete" not in checks, "of another label file nothing is known"


@case("a damaged record is a fault, named, and the page is still made")
def _(work):
    shards = plain(work)
    shard = manifest(shards)["shards"][0]
    path = os.path.join(shards, shard["name"])
    data = bytearray(slurp(path))
    data[manifest(shards)["record"]["stride"] * 3 + 100] ^= 1
    write(path, data)
    page, result, checks = report(shards, work, code=1)
    assert result["faults"] == 1 and result["images"] == 119
    assert checks["records"]["level"] == "fault" and shard["name"] in checks["records"]["text"]
    assert "record 3" in slurp(page).decode()
    os.remove(path)
    page, result, checks = report(shards, work, code=1)
    assert checks["records"]["level"] == "fault" and result["images"] == 120 - shard["images"]


@case("names that are HTML stay text")
def _(work):
    csv = synth(os.path.join(work, "in"), 40, "--size", 96)
    header, rows = read_csv(csv)
    folder = os.path.join(work, "in", "images")
    for i, row in enumerate(rows):
        new = f"<img src=x onerror=alert({i})>&amp;'\"{i}.png"
        os.rename(os.path.join(folder, row[0]), os.path.join(folder, new))
        row[0], row[header.index("Patient ID")] = new, f"<script>{i}</script>"
    write_csv(csv, header, rows)
    shards = convert(work, csv, folder, "--size", 48, "--split", "none")
    path, _, _ = report(shards, work)
    page = slurp(path).decode("ascii")
    assert "<script" not in page and "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(" in page
    with Browser() as browser:
        browser.open(path)
        assert not browser.complaints()
        assert browser.run("document.querySelectorAll('[onerror],script').length") == 0


@case("what cannot be done: exit codes and messages")
def _(work):
    shards = plain(work)
    inspect = program("chex-inspect")
    says(run([inspect, "report", "-o", os.path.join(work, "no", "x.html"), shards], 4), "no")
    says(run([inspect, "report", "-o", "x.html", shards, shards], 2), "one PATH")
    for name in os.listdir(shards):  # a slip that would cost a shard
        before = slurp(os.path.join(shards, name))
        says(run([inspect, "report", "-o", os.path.join(shards, name), shards], 2), "must end in .html")
        assert slurp(os.path.join(shards, name)) == before
    says(run([inspect, "report", "-o", "-", "--json", shards], 2), "cannot both")
    shard = os.path.join(shards, manifest(shards)["shards"][0]["name"])
    says(run([inspect, "report", "-o", "x.html", shard], 2), "folder")
    says(run([inspect, "report", "-o", "x.html", os.path.join(work, "nothing")], 3), "cannot open")
    says(run([inspect, "report", "-o", "x.html", "--where", "Mass", shards], 2), "is an option of")
    with open("/dev/full", "w", encoding="ascii") as full:
        run([inspect, "-q", "report", "-o", "-", shards], 4, stdout=full)
    os.remove(os.path.join(shards, "manifest.json"))
    run([inspect, "report", "-o", os.path.join(work, "y.html"), shards], 1)
    assert not os.path.exists(os.path.join(work, "y.html"))


# ---- what the page says --------------------------------------------------------------------------------------------

def likeness(records, side):
    """The least and the most correlation of the 8x8 cell means of an image with those of all."""
    cell = side // 8
    tiny = [[sum(sum(r["image"][(i * cell + y) * side + j * cell:][:cell]) for y in range(cell)) // cell ** 2
             for i in range(8) for j in range(8)] for r in records]
    every = [sum(column) for column in zip(*tiny)]

    def from_mean(values):
        return [v - sum(values) / len(values) for v in values]

    def correlation(a, b):
        a, b = from_mean(a), from_mean(b)
        square = sum(x * x for x in a) * sum(y * y for y in b)
        return sum(x * y for x, y in zip(a, b)) / square ** 0.5 if square else 0

    found = [correlation(t, every) for t in tiny]
    return min(found), max(found)


@case("the limits of likeness are computed from these images")
def _(work):
    for shards, code in ((plain(work), 0), (odd(work)[0], 1)):
        path, _, _ = report(shards, work, code=code)
        page = slurp(path).decode()
        said = re.search(r"Here it is between (-?\d\.\d+) and (-?\d\.\d+)", page)
        assert said, "no range"
        every = [r for s in manifest(shards)["shards"] for r in records(shards, s) if r["weight"] == 1]
        least, most = likeness(every, 48)
        assert abs(float(said[1]) - least) < 0.006 and abs(float(said[2]) - most) < 0.006, (said[0], least, most)
        assert "0.48 and" not in page and "real images" not in page, "a claim about other images"


@case("equal images are named, in the sentences and all of them in a table")
def _(work):
    csv = synth(os.path.join(work, "in"), 60, "--size", 96)
    folder = os.path.join(work, "in", "images")
    name = sorted(os.listdir(folder))
    for group in ((0, 7, 20), (30, 31)):
        for i in group[1:]:
            write(os.path.join(folder, name[i]), slurp(os.path.join(folder, name[group[0]])))
    path, _, checks = report(convert(work, csv, folder, "--size", 48, "--split", "none"), work)
    text = checks["duplicates"]["text"]
    assert checks["duplicates"]["count"] == 3 and "2 groups" in text
    groups = [set(re.findall(r"\d{8}_\d{3}\.png", part)) for part in text.split(":")[1].split(";")]
    wanted = [{name[i] for i in group} for group in ((0, 7, 20), (30, 31))]
    assert sorted(groups, key=len) == sorted(wanted, key=len), text
    page = slurp(path).decode()
    table = re.search(r'<table class="equal">(.*?)</table>', page, re.S)[1]
    assert sorted(re.findall(r"<tr[^>]*><th>(\d{8}_\d{3}\.png)", table)) == sorted(set.union(*wanted))
    assert table.count('class="first"') == 2
    path, _, _ = report(plain(work), work)
    assert "Equal images" not in re.sub(r"(?s)<section id=.(checks|methods).*?</section>", "", slurp(path).decode())


@case("No Finding is listed with the findings, not with age, sex and view")
def _(work):
    csv = synth(os.path.join(work, "in"), 300, "--size", 96)
    header, rows = read_csv(csv)
    test = set(slurp(os.path.join(work, "in", "test_list.txt")).decode().split())
    for i, row in enumerate(rows):
        row[header.index("Finding Labels")] = "No Finding" if i % 10 < (2 if row[0] in test else 8) else "Effusion"
    write_csv(csv, header, rows)
    _, _, checks = report(convert(work, csv, os.path.join(work, "in", "images"), "--size", 48), work)
    assert "No Finding" not in checks["people"]["text"], checks["people"]
    drift = checks["prevalence"]
    assert "No Finding" in drift["text"] and drift["level"] == "look", drift


def number_of(page, what):
    """The class of a number at the head of the page, and the number."""
    return re.search(rf'<span( class="[a-z]+")?><b>(\d+)</b>{what}', page).groups()


@case("only faults that are there have the colour of faults")
def _(work):
    path, _, _ = report(plain(work), work)
    assert number_of(slurp(path).decode(), "faults") == (None, "0")
    path, _, _ = report(odd(work)[0], work, code=1)
    assert number_of(slurp(path).decode(), "fault")[0] == ' class="fault"'


@case("shards are counted in integers")
def _(work):
    csv = synth(os.path.join(work, "in"), 60, "--size", 96)
    for size, rule in ((16, "official"), (100, "none"), (1, "none")):
        run(["rm", "-rf", os.path.join(work, "shards")])
        path, _, _ = report(convert(work, csv, os.path.join(work, "in", "images"), "--size", 48, "--split", rule,
                                    "--shard-size", size), work)
        drawings = re.findall(r'<svg class="(?:broad|slim)"[^>]*aria-label="Mean gray level and state.*?</svg>',
                              slurp(path).decode(), re.S)
        assert len(drawings) == 2
        for drawing in drawings:
            ticks = re.findall(r'class="m d">([^<]*)</text>', drawing)
            numbers = [t for t in ticks if t and not re.fullmatch("[a-z_]+", t)]
            assert numbers and all(re.fullmatch(r"\d+", t) for t in numbers), numbers
            assert numbers[0] == "0" and int(numbers[-1]) < len(manifest(os.path.join(work, "shards"))["shards"])


AGAIN = [
    [],
    ["--split", "patient:60,20,20:9", "--seed", "5", "--align", "512", "--shard-size", "7", "--tail", "short"],
    ["--resize", "none", "--size", "96", "--tail", "drop", "--split", "none", "--shard-size", "8"],
    ["--resize", "area", "--size", "33", "--min-size", "20", "--max-pixels", "1000000", "--view", "PA"],
    ["--split", "file:split.csv"],
    ["--exclude", "exclude.txt"],
    ["--resize", "lanczos", "--lenient", "--allow-rejects", "2", "--view", "AP"],
    ["--allow-missing", "--allow-rejects", "2"],
]


@case("the command to reproduce has the options of this run and, unchanged, gives the same data set")
def _(work):
    csv = synth(os.path.join(work, "in"), 60, "--size", 96)
    folder = os.path.dirname(csv)
    header, rows = read_csv(csv)
    write_csv(os.path.join(folder, "split.csv"), ["name", "split"],
              [[row[0], "abc"[int(row[0][:8]) % 3]] for row in rows])
    write(os.path.join(folder, "exclude.txt"), "\n".join(row[0] for row in rows[10:15]) + "\n")
    view = header.index("View Position")
    path = f"{BUILD}:{os.environ['PATH']}"
    for options in AGAIN:
        if "--lenient" in options:
            for wanted in ("PA", "AP"):
                write(os.path.join(folder, "images", next(row[0] for row in rows if row[view] == wanted)), b"")
        if "--allow-missing" in options:
            os.remove(os.path.join(folder, "images", rows[20][0]))
        shards = os.path.join(work, "shards")
        run(["rm", "-rf", shards, os.path.join(folder, "again")])
        run([program("chex-convert"), "-q", "-i", "images", "-l", os.path.basename(csv), "-o", shards, *options],
            cwd=folder)
        page, _, _ = report(shards, work)
        if jsonschema:
            schema = slurp(os.path.join(SOURCE, "schemas", "manifest.schema.json"))
            jsonschema.validate(manifest(shards), json.loads(schema))
        before = slurp(page)
        command = re.search(r'<pre id="again">(.*?)</pre>', before.decode(), re.S)[1]
        command = html.unescape(re.sub("<[^>]*>", "", command))
        run(["/bin/sh", "-euc", command], cwd=folder, env=dict(os.environ, PATH=path))
        for name in sorted(os.listdir(shards)):
            assert slurp(os.path.join(shards, name)) == slurp(os.path.join(folder, "again", name)), (name, command)
        assert slurp(os.path.join(folder, "report.html")) == before, command


# ---- in a browser ------------------------------------------------------------------------------------------------

# Boxes of HTML that are narrower than what is in them.
CUT = """[...document.querySelectorAll('td,th,p,figcaption,h1,h2,h3,li,pre,summary,nav,span')]
  .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display != 'inline')
  .map(e => e.tagName + ': ' + e.textContent.slice(0, 40))"""

# Words of commands and checks that have a hyphen, and begin on one line and end on another one.
BROKEN = r"""(() => {
  const bad = [];
  for (const e of document.querySelectorAll('pre, code, .checks td')) {
    const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
    while (walk.nextNode())
      for (const word of walk.currentNode.data.matchAll(/\S*-\S*/g)) {
        const range = document.createRange();
        range.setStart(walk.currentNode, word.index);
        range.setEnd(walk.currentNode, word.index + word[0].length);
        if (word[0].length <= 40 && range.getClientRects().length > 1) bad.push(word[0]);
      }
  }
  return bad; })()"""


def look(browser, path):
    browser.size(1100, 900)
    browser.open(path)
    assert not browser.complaints(), browser.complaints()
    assert all(url.startswith(("file://", "data:")) for url in browser.requests()), browser.requests()
    assert sum(url.startswith("file:") for url in browser.requests()) == 1
    missing = [s for s in SECTIONS if browser.run(f"document.getElementById('{s}').offsetHeight") < 40]
    assert not missing, missing
    assert browser.run("[...document.images].every(i => i.naturalWidth > 0)")
    assert browser.run("document.querySelectorAll('svg').length") >= 7
    for dark in (False, True):
        browser.dark(dark)
        assert not browser.run(OVERLAPS), browser.run(OVERLAPS)[:8]
        assert not browser.run(CONTRAST), browser.run(CONTRAST)[:8]
    browser.dark(False)
    browser.run("document.querySelectorAll('.fold > input').forEach(d => d.checked = true)")
    for width in (1400, 1100, 800, 761, 760, 390):
        browser.size(width, 900)
        assert not browser.run(BROKEN), (width, browser.run(BROKEN)[:8])
        assert not browser.run(OVERLAPS), (width, browser.run(OVERLAPS)[:8])
        assert not browser.run(SMALL), (width, browser.run(SMALL)[:8])
        wide = browser.run("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} wide in a window of {width}"
        assert not browser.run(CUT), browser.run(CUT)[:8]
    assert browser.pdf()[:5] == b"%PDF-"


@case("a browser shows every section, without a complaint, a request, an overlap or a cut, light and dark")
def _(work):
    with Browser() as browser:
        path, _, _ = report(plain(work), work)
        look(browser, path)


@case("so it does for a data set with odd images")
def _(work):
    with Browser() as browser:
        shards, _ = odd(work)
        path, _, _ = report(shards, work, code=1)
        look(browser, path)


@case("so it does for one split, and for sixteen with long names")
def _(work):
    csv = synth(os.path.join(work, "in"), 160, "--size", 96)
    _, rows = read_csv(csv)
    people = sorted({row[0][:8] for row in rows})
    lists = os.path.join(work, "lists.csv")
    write(lists, "name,split\n" + "".join(
        f"{row[0]},a_very_long_split_na_{people.index(row[0][:8]) % 16:02d}\n" for row in rows))
    with Browser() as browser:
        for rule in ("none", "file:" + lists):
            run(["rm", "-rf", os.path.join(work, "shards")])
            path, _, _ = report(convert(work, csv, os.path.join(work, "in", "images"), "--size", 48, "--split", rule),
                                work)
            look(browser, path)


@case("on paper folded sections are open, plots have their broad form, and no picture is large")
def _(work):
    shown = "[...document.querySelectorAll('%s')].filter(e => e.getBoundingClientRect().height > 0)"
    with Browser() as browser:
        path, _, _ = report(plain(work), work)
        browser.size(700, 900)
        browser.open(path)
        assert browser.run("document.querySelectorAll('.folded').length") == 2
        assert browser.run((shown % ".folded") + ".length") == 0, "unfolded on the screen"
        browser.run("document.querySelector('.fold > label').click()")
        assert browser.run((shown % ".folded") + ".length") == 1, "a click does not unfold"
        browser.run("document.querySelector('.fold > label').click()")
        folded = len(re.findall(rb"/Type */Page[^s]", browser.pdf()))
        assert folded > 1
        browser.paper(True)
        assert browser.run((shown % ".folded td") + ".length") >= 15 * 3, "folded on paper"
        assert browser.run((shown % "svg.slim") + ".length") == 0
        assert browser.run((shown % "svg.broad") + ".length") == 5
        browser.run("document.querySelectorAll('.zoom input, .fold > input').forEach(e => e.checked = true)")
        assert browser.run("Math.max(...[...document.querySelectorAll('.zoom img')].map(e => e.offsetWidth))") <= 150
        assert len(re.findall(rb"/Type */Page[^s]", browser.pdf())) == folded, "as many pages folded as unfolded"


@case("a click shows an image larger, with more of its pixels, and another one ends that")
def _(work):
    csv = synth(os.path.join(work, "in"), 40, "--size", 600)
    with Browser() as browser:
        path, _, _ = report(convert(work, csv, os.path.join(work, "in", "images"), "--size", 560), work)
        for width in (390, 1100):
            browser.size(width, 900)
            browser.open(path)
            sides = "(() => { const e = document.querySelector('.zoom img'); " \
                "return [e.offsetWidth, e.offsetHeight, e.naturalWidth]; })()"
            small = browser.run(sides)
            assert small[0] <= 150 and small[2] == 280, small
            widths = browser.run("[...document.querySelectorAll('.zoom img')].map(e => e.offsetWidth)")
            assert max(widths) <= 150, widths
            browser.run("document.querySelector('.zoom').click()")
            assert browser.run(sides)[:2] == [width, 900], browser.run(sides)
            assert browser.run("document.elementFromPoint(200, 450) === document.querySelector('.zoom img')")
            browser.run("document.elementFromPoint(200, 450).click()")
            assert browser.run(sides) == small


if __name__ == "__main__":
    sys.exit(case.main())
