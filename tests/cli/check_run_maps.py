#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-inspect report RUN --maps: whether the maps of the run depend on its weights, and find boxes; other results.

    check_run_maps.py [PATTERN]
"""
import base64
import copy
import json
import os
import re
import struct
import sys

from report_runs import INSPECT, Images, make_run, report  # skips without NumPy and scikit-learn
from support import Cases, images, program, run, says, slurp, write
from training import data, finish, scratch, whole

case = Cases()


def measured(value, low=None, high=None):
    return {"value": value, "low": low, "high": high}


def method(point, overlaps):
    """The measures of a method, as chex-predict writes them."""
    return {"pointing_game": measured(point, point - 0.0625, point + 0.0625), "mass": measured(0.3),
            "iou": [{"threshold": t, **measured(v)} for t, v in zip((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7), overlaps)]}


def boxes(name, count, maps, constant, chance):
    fall = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
    return {"name": name, "boxes": count, "patients": count, "too_few": False, "map": method(maps, fall),
            "constant": method(constant, [x / 2 for x in fall]), "gauss": method(0.2, fall),
            "chance": method(chance, [0.0] * 7)}


RESULT = {
    "format": 1, "tool": "chex-predict", "models": [{"sha256": "f" * 64}], "synthetic": False, "split": "test",
    "part": 1, "parts": 1,
    "maps": {"images": 321, "random_weights": {"rank_correlation": 0.125, "images": 64, "findings": [
        {"name": "Nodule", "rank_correlation": -0.25}, {"name": "Mass", "rank_correlation": 0.375},
        {"name": "Edema", "rank_correlation": None}]}},
    "boxes": {"synthetic": False, "list": {"images": 90}, "findings": [
        boxes("Mass", 85, 0.4375, 0.1875, 0.0625), {"name": "Nodule", "boxes": 4, "patients": 4, "too_few": True}],
        "mean": None}}


def table(numbers, status="ok", name="{:08d}_{:03d}.png"):
    """predictions.csv of the images with these numbers in an Images."""
    return ("image,status,prob_Mass\n" + "".join(f"{name.format(i // 3, i % 3)},{status},\n" for i in numbers)).encode()


def result(folder, change=lambda found: None):
    found = copy.deepcopy(RESULT)
    change(found)
    os.makedirs(folder, exist_ok=True)
    write(f"{folder}/predictions.json", json.dumps(found).encode())
    count = found.get("maps", {}).get("images")
    write(f"{folder}/predictions.csv", table(range(count)) if isinstance(count, int) else table([0], "refused"))
    return folder


def plain(page):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


def answer(found):
    return {a["id"]: a for a in found["answers"]}["maps"]


@case("the correlation of each finding, and boxes next to their controls, are those of predictions.json")
def _(work):
    folder = make_run(f"{work}/run", Images(90))
    found, page = report(folder, "--maps", result(f"{work}/out"))
    maps, text = found["maps"], plain(page)
    assert (maps["images"], maps["compared"], maps["rank_correlation"], maps["synthetic"]) == (321, 64, 0.125, False)
    assert {f["name"]: f["rank_correlation"] for f in maps["findings"]} == {"Mass": 0.375, "Nodule": -0.25,
                                                                          "Edema": None, "Hernia": None}
    mass, nodule, edema, _hernia = (f["boxes"] for f in maps["findings"])
    assert mass["boxes"] == 85 and nodule == {"boxes": 4, "measures": []} and edema is maps["mean_boxes"] is None
    assert [(m["measure"], m["threshold"], m["map"]["value"], m["constant"]["value"]) for m in mass["measures"]] == [
        ("pointing_game", None, 0.4375, 0.1875), ("iou", 0.1, 0.9, 0.45), ("iou", 0.3, 0.7, 0.35),
        ("iou", 0.5, 0.5, 0.25)]
    assert mass["measures"][0]["map"] == measured(0.4375, 0.375, 0.5)
    assert "pointing game 0.438 (0.375 to 0.500) 0.188 (0.125 to 0.250)" in text and "SYNTHETIC" not in page
    assert "Nodule 4 too few" in text and "Class activation maps of 321 images" in text
    assert "Adebayo et al." in text and "Mass 0.375 Nodule -0.250 Edema - Hernia - mean 0.125" in text
    assert answer(found)["level"] == "good"
    assert "weights: 0.125, over 64 images; the largest is that of Mass, 0.375. A" in answer(found)["text"]
    assert "0.438 of the boxes, that of the best control (a maximum in the middle) in 0.200" in answer(found)["text"]


@case("maps of other images are refused with their split; of some others, and of a part, the page says it")
def _(work):
    folder, out = make_run(f"{work}/run", Images(95)), f"{work}/out"

    def val(found):
        found.update(split="val")

    def part(found):
        found.update(split=None, part=2, parts=4)

    page = report(folder, "--maps", result(out))[1]
    assert "made by chex-predict --split test with the weights of this run: 321 of the 750 images" in plain(page)
    assert "not in this report" not in page
    found, page = report(folder, "--maps", result(out, part))
    assert "chex-predict --part 2/4 made maps of 321 of the 750 images of this report. Rank" in answer(found)["text"]
    assert (found["maps"]["split"], found["maps"]["part"], found["maps"]["parts"]) == (None, 2, 4)
    result(out)
    write(f"{out}/predictions.csv", table(range(600, 921)))
    found, page = report(folder, "--maps", out)
    assert found["maps"]["covered"] == 150 and answer(found)["level"] == "look"
    assert "of 150 of the 750 images of this report, and of 171 others, which its numbers include." in \
        answer(found)["text"]
    assert "171 of the maps are of images that are not in this report." in plain(page)
    for numbers, words in ((range(750, 1071), "maps of other images than the report, of the split 'val': names"),
                           (range(300), "does not belong to predictions.json: it has 300 images, .* of 321"),
                           (range(700), "does not belong to predictions.json: it has 700 images, .* of 321")):
        result(out, val)
        write(f"{out}/predictions.csv", table(numbers))
        says(run([INSPECT, "report", "-o", f"{work}/x.html", "--maps", out, folder], 6), words)
    for text, words in ((table(range(321), "refused"), "maps of other images than the report"),
                        (b"image,prob\n00000000_000.png,1\n", "no column 'status'"),
                        (b"status,image\nok,00000000_000.png\nok,00000000_000.png\n", "is there twice")):
        write(f"{out}/predictions.csv", text)
        says(run([INSPECT, "report", "-o", f"{work}/x.html", "--maps", out, folder], 6), words)
    os.remove(f"{out}/predictions.csv")
    says(run([INSPECT, "report", "-o", f"{work}/x.html", "--maps", out, folder], 3), "predictions.csv")
    assert not os.path.exists(f"{work}/x.html")


@case("maps that the weights do not change, and maps that are no better than a control, need a look")
def _(work):
    folder = make_run(f"{work}/run", Images(91))

    def alike(found):
        found["maps"]["random_weights"]["rank_correlation"] = 0.5
        del found["boxes"]

    def worse(found):
        found["boxes"]["findings"][1] = boxes("Nodule", 4, 0.1, 0.1, 0.1)
        found["boxes"]["findings"].append({"name": "Hernia", "boxes": 7, "patients": 4, "too_few": True})
        found["boxes"]["mean"] = boxes("mean", 96, 0.25, 0.25, 0.1)

    def centre(found):
        found["boxes"]["findings"][1] = boxes("Nodule", 4, 0.1, 0.1, 0.1)
        found["boxes"]["mean"] = boxes("mean", 89, 0.1875, 0.125, 0.1)

    def one(found):
        found["maps"]["random_weights"]["findings"][1]["rank_correlation"] = -0.9375

    def uncompared(found):
        found["maps"]["random_weights"]["images"] = 0

    def none(found):
        found["maps"]["random_weights"]["rank_correlation"] = None
        found["boxes"]["findings"][0] = {"name": "Mass", "boxes": 1, "too_few": True}
        found["boxes"]["synthetic"] = True

    for change, level, words in ((alike, "look", "0.500"), (one, "look", "Mass, -0.938"), (uncompared, "note", "n/a"),
                                 (centre, "look", "middle. in 0.200. So the maps .* no better"),
                                 (worse, "look", "no better than a control without"),
                                 (none, "note", "n/a: no map .* No finding has enough boxes")):
        found, page = report(folder, "--maps", result(f"{work}/out", change))
        assert answer(found)["level"] == level and re.search(words, answer(found)["text"]), answer(found)
        assert ("SYNTHETIC" in page) == found["maps"]["synthetic"] == (change is none)
        assert ("<h3>Boxes of" in page) == (change is not alike)
        assert ("mean of 2 findings 89 pointing game" in plain(page)) == (change in (worse, centre))
    found, page = report(folder)
    assert found["maps"] is None and 'id="maps"' not in page


def png(width=3, height=2):
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(9)


@case("contact sheets are in the page; a file that is none, or is in another folder, is refused")
def _(work):
    folder, out = make_run(f"{work}/run", Images(92)), f"{work}/out"
    os.makedirs(f"{out}/maps")

    def sheet(name, finding="Mass"):
        def change(found):
            found["maps"]["sheets"] = [{"finding": finding, "file": name, "hits": 1234, "false_alarms": 5, "misses": 6}]
        return change

    write(f"{out}/maps/sheet+Mass.png", png())
    found, page = report(folder, "--maps", result(out, sheet("sheet+Mass.png")))
    assert [f["sheet"] for f in found["maps"]["findings"]] == [True, False, False, False]
    assert "Sheet of Mass: 1,234 hits, 5 false alarms, 6 misses" in page
    picture, = re.findall(r'<img width="3" height="2" [^>]*src="data:image/png;base64,([^"]*)"', page)
    assert base64.b64decode(picture) == png()
    assert not any(f["sheet"] for f in report(folder, "--maps", result(out, sheet(None)))[0]["maps"]["findings"])
    for number, (content, name, code, words) in enumerate((
            (png(width=0), "sheet+Mass.png", 6, "is no contact sheet"),
            (png()[:32], "sheet+Mass.png", 6, "is no contact sheet"), (b"", "sheet+Mass.png", 6, "is no contact sheet"),
            (b"GIF89a" + bytes(60), "sheet+Mass.png", 6, "is no contact sheet"),
            (png(), "../maps/sheet+Mass.png", 6, "is no file of a folder of maps"),
            (png(), "none.png", 3, "none.png"))):
        write(f"{out}/maps/sheet+Mass.png", content)
        result(out, sheet(name))
        says(run([INSPECT, "report", "-o", f"{work}/{number}.html", "--maps", out, folder], code), words)
        assert not os.path.exists(f"{work}/{number}.html")
    with open(f"{out}/maps/sheet+Mass.png", "wb") as f:
        f.truncate((64 << 20) + 1)
    page = report(folder, "--maps", result(out, sheet("sheet+Mass.png")))[1]
    assert "1 contact sheet is too large for this page" in page


@case("results of other weights, of several models, without maps, and files that are none, are refused (6)")
def _(work):
    folder = make_run(f"{work}/run", Images(93))

    def twice(found):
        found["models"] *= 2

    for change, words in ((lambda found: found["models"][0].update(sha256="e" * 64), "other weights .* e{64}, not f"),
                          (twice, "several models"), (lambda found: found.pop("maps"), "no maps: give chex-predict --"),
                          (lambda found: found.update(models=[]), "not a file of chex-predict"),
                          (lambda found: found.update(tool="chex-train"), "not a file of chex-predict"),
                          (lambda found: found.clear(), "not a file of chex-predict")):
        result(f"{work}/out", change)
        says(run([INSPECT, "report", "-o", f"{work}/x.html", "--maps", f"{work}/out", folder], 6), words)
    write(f"{work}/out/predictions.json", b"{")
    says(run([INSPECT, "report", "-o", f"{work}/x.html", "--maps", f"{work}/out", folder], 6), "not a file of")
    says(run([INSPECT, "report", "-o", f"{work}/x.html", "--maps", f"{work}/none", folder], 3),
         "none' has no predictions.json: --maps takes the folder -o of chex-predict --maps")
    says(run([INSPECT, "report", "-o", f"{work}/x.html", "--maps", f"{work}/out", data()], 2),
         "--maps is for the folder of a run")
    assert not os.path.exists(f"{work}/x.html")


@case("values of another type or out of range are undefined, and a hostile name does not reach the page")
def _(work):
    def change(found):
        found["maps"].update(images="many", sheets={"finding": "Mass"})
        found["maps"]["random_weights"] = {"rank_correlation": 7, "images": -1, "findings": [
            3, {"name": 5}, {"name": "Mass", "rank_correlation": "1"}, {"name": "<script>", "rank_correlation": 1}]}
        found["boxes"] = {"list": [], "findings": {"Mass": 1}, "mean": {"boxes": 9, "too_few": False, "map": 5}}

    found, page = report(make_run(f"{work}/run", Images(94)), "--maps", result(f"{work}/out", change))
    assert found["maps"]["images"] == found["maps"]["compared"] == 0 and found["maps"]["rank_correlation"] is None
    assert all(f["rank_correlation"] is None for f in found["maps"]["findings"]) and "<script" not in page


@case("chex-predict --maps --sheet --boxes of a real run: the page has its numbers and sheets, and says synthetic")
def _(work):
    out = os.path.join(scratch(), "report-maps")
    listed = [f"{name},Mass,{i % 30},{i % 20},{9 + i % 25},{9 + i % 30}\n" for i, name in enumerate(images(data()))]
    write(f"{work}/boxes.csv", ("Image Index,Finding Label,Bbox [x,y,w,h],,,\n" + "".join(listed)).encode())
    write(f"{work}/t.csv", b"Mass,0.5\n")
    run([program("chex-predict"), "-q", whole(), data(), "--maps", "--sheet", "--threshold", f"{work}/t.csv", "--boxes",
         f"{work}/boxes.csv", "--box-size", 64, "-o", out])
    told = json.loads(slurp(f"{out}/predictions.json"))
    done = run([INSPECT, "report", "--json", "-o", f"{work}/x.html", "--maps", out, whole()])
    maps, page = json.loads(done.stdout)["results"][0]["maps"], slurp(f"{work}/x.html").decode()
    random = told["maps"]["random_weights"]
    assert maps["rank_correlation"] == random["rank_correlation"] and maps["compared"] == random["images"] == 64
    assert [f["rank_correlation"] for f in maps["findings"]] == [f["rank_correlation"] for f in random["findings"]]
    mass = next(f for f in maps["findings"] if f["name"] == "Mass")
    wanted, = told["boxes"]["findings"]
    assert mass["boxes"]["measures"][0]["map"] == wanted["map"]["pointing_game"] and mass["sheet"] and maps["synthetic"]
    assert mass["boxes"]["measures"][2]["chance"]["value"] == wanted["chance"]["iou"][2]["value"]
    picture, = re.findall(r'src="data:image/png;base64,([^"]*)"', page)
    sheet = slurp(f"{out}/maps/sheet+Mass.png")
    assert base64.b64decode(picture) == sheet and b"Research use only" in sheet
    assert "SYNTHETIC images: the maps show nothing about a disease" in page
    run([INSPECT, "report", "-q", "-j", 1, "-o", f"{work}/again.html", "--maps", out, whole()])
    assert slurp(f"{work}/again.html").decode() == page and out not in page


if __name__ == "__main__":
    sys.exit(finish(case))
