#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-predict --maps: the numbers of PyTorch, the sum that is the logit, names, pictures, random weights.

    check_maps.py [PATTERN]
"""
import csv
import io
import json
import math
import os
import shutil
import struct
import sys
import zlib

from support import SOURCE, Cases, images, program, python_with, run, says, slurp, synth, tree, write
from training import data, finish, header, scratch, whole

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
HERE = os.path.dirname(os.path.abspath(__file__))
SIZE, SIDE = 36, 32  # of the images, of the crop
CROP = (SIZE - SIDE) // 2


def predict(*words, code=0, **options):
    return run([program("chex-predict"), *words], code, **options)


def numbers(path):
    """The shape and the values of a .npy file of float32."""
    blob = slurp(path)
    assert blob[:8] == b"\x93NUMPY\x01\x00", blob[:8]
    size, = struct.unpack_from("<H", blob, 8)
    assert (10 + size) % 64 == 0 and blob[10 + size - 1:10 + size] == b"\n"
    told = eval(blob[10:10 + size], {"__builtins__": {}})  # a dict of constants, as NumPy reads it
    assert told["descr"] == "<f4" and told["fortran_order"] is False
    return told["shape"], [v for v, in struct.iter_unpack("<f", blob[10 + size:])]


def write_pixels(path, pictures, side):
    """uint8 [images][side][side] as .npy."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(pictures)}, {side}, {side}), }}".ljust(117) + "\n"
    write(path, b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + b"".join(pictures))


def document(folder):
    found = json.loads(slurp(f"{folder}/predictions.json"))
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "predict.schema.json"))))
    return found


def rows(folder):
    return list(csv.DictReader(io.StringIO(slurp(f"{folder}/predictions.csv").decode(), newline="")))


def biases(model):
    path = os.path.join(model, "best.safetensors")
    size, = struct.unpack_from("<Q", slurp(path))
    first, end = (8 + size + at for at in header(path)["classifier.bias"]["data_offsets"])
    return [v for v, in struct.iter_unpack("<f", slurp(path)[first:end])]


def logit(probability):
    return math.log(probability / (1 - probability))


def plain():
    """The folder of a result with the maps of all images of the split test, drawn for one finding."""
    out = os.path.join(scratch(), "plain-maps")
    if not os.path.exists(out):
        predict(whole(), data(), "--split", "test", "--maps", "--finding", "Mass,Effusion", "-o", out, "-q", "-j", "1")
    return out


def same_as_pytorch(work, model, shards, out, size, side):
    """The maps of the split test in `out` are those of PyTorch."""
    python, found, edge = python_with("torchvision"), images(shards, "test"), (size - side) // 2
    pictures = []
    for name in sorted(found):
        pixels = found[name]["image"]
        pictures.append(b"".join(pixels[y * size + edge:y * size + edge + side] for y in range(edge, edge + side)))
    write_pixels(f"{work}/pixels.npy", pictures, side)
    run([python, f"{HERE}/hires_cam.py", os.path.join(model, "best.safetensors"), f"{work}/pixels.npy",
         f"{work}/wanted.npy"])
    blob = slurp(f"{work}/wanted.npy")
    length, = struct.unpack_from("<H", blob, 8)
    wanted = [v for v, in struct.iter_unpack("<d", blob[10 + length:])]
    got = [v for name in sorted(found) for v in numbers(f"{out}/maps/{name}.npy")[1]]
    assert len(got) == len(wanted) > 0
    worst = max(abs(a - b) for a, b in zip(got, wanted))
    assert worst <= 1e-5 * max(map(abs, wanted)), worst


@case("a map is PyTorch's HiResCAM at norm5, within 1e-5")
def _(work):
    same_as_pytorch(work, whole(), data(), plain(), SIZE, SIDE)


@case("the maps of densenet121 and resnet50 are PyTorch's, too", slow=True)
def _(work):
    labels = synth(f"{work}/synth", 24, "--size", "128")
    run([program("chex-convert"), "-q", "-i", f"{work}/synth/images", "-l", labels, "-o", f"{work}/shards", "--size",
         "104", "--split", "patient:50,25,25"])
    for model in ("densenet121", "resnet50"):
        out = f"{work}/{model}"
        run([program("chex-train"), "-q", "-d", f"{work}/shards", "-o", f"{out}-run", "--model", model, "--init",
             "random", "--crop", "96", "--batch", "4", "--epochs", "1", "--bootstrap", "20"])
        predict(f"{out}-run", f"{work}/shards", "--split", "test", "--maps", "-o", out, "-q")
        grid = document(out)["maps"]
        assert (grid["height"], grid["jump"], grid["offset"]) == (3, 32, 14 if model == "densenet121" else 0), grid
        same_as_pytorch(work, f"{out}-run", f"{work}/shards", out, 104, 96)


@case("the mean of a map and the bias are the logit of the probability")
def _(_work):
    bias = biases(whole())
    for row in rows(plain()):
        shape, values = numbers(f"{plain()}/maps/{row['image']}.npy")
        cells = shape[1] * shape[2]
        names = [key for key in row if key.startswith("prob_")]
        assert shape == (len(names), SIDE // 16, SIDE // 16), shape
        for k, name in enumerate(names):
            mean = sum(values[k * cells:(k + 1) * cells]) / cells
            assert abs(mean + bias[k] - logit(float(row[name]))) < 2e-5, (row["image"], name)


@case("threads, micro-batches, order of the paths and parts change no byte")
def _(work):
    reference = tree(plain())
    for number, words in enumerate((["-j", "2"], ["-j", "3", "--micro-batch", "1"], ["--micro-batch", "7"])):
        out = f"{work}/out{number}"
        predict(*words, data(), "--finding", "Effusion,Mass", whole(), "--split", "test", "--maps", "-o", out, "-q")
        assert tree(out) == reference, words
    for part in (1, 2):
        out = f"{work}/part{part}"
        predict(whole(), data(), "--split", "test", "--maps", "--finding", "Mass,Effusion", "--part", f"{part}/2", "-o",
                out, "-q")
        found = tree(f"{out}/maps")
        assert found and all(reference[f"maps/{name}"] == digest for name, digest in found.items())


@case("predictions.json names sizes, scale and the check with random weights; the terminal prints the check")
def _(work):
    maps = document(plain())["maps"]
    count = len(rows(plain()))
    assert (maps["images"], maps["pictures"], maps["jump"], maps["offset"]) == (count, 2 * count, 16, 6)
    assert maps["scale"] == 10 and maps["random_weights"]["images"] == min(count, 64)
    random = maps["random_weights"]
    assert abs(random["rank_correlation"]) < 0.95, maps  # 1: the weights were not random
    each = [f["rank_correlation"] for f in random["findings"]]
    assert [f["name"] for f in random["findings"]] == [f["name"] for f in document(plain())["findings"]]
    # Each map has a correlation here, so the mean of the findings is that of all maps.
    assert abs(sum(each) / len(each) - random["rank_correlation"]) < 1e-12 and len(set(each)) > 1, each
    done = predict(whole(), data(), "--split", "test", "--maps", "--map-scale", "3", "-o", f"{work}/out")
    says(done, r"rank correlation with the maps of random weights: -?\d\.\d\d", "maps +.* pictures? of .* images",
         rf"maps +{count} files of 352 bytes \([\d.]+ kB in all\), and a picture for each flag")
    files = os.listdir(f"{work}/out/maps")
    assert {os.path.getsize(f"{work}/out/maps/{n}") for n in files if n.endswith(".npy")} == {352}
    other = document(f"{work}/out")["maps"]
    assert other["scale"] == 3 and other["random_weights"] == maps["random_weights"]
    flags = sum(row[key] == "1" for row in rows(f"{work}/out") for key in row if key.startswith("flag_"))
    assert other["pictures"] == flags


def chunks_of(path):
    blob, at = slurp(path), 8
    while at < len(blob):
        size, kind = struct.unpack_from(">I4s", blob, at)
        yield kind, blob[at + 8:at + 8 + size]
        at += 12 + size


@case("every picture says that it is for research only, and where its data are synthetic")
def _(_work):
    pictures = [name for name in os.listdir(f"{plain()}/maps") if name.endswith(".png")]
    assert pictures and all(name.endswith((".Mass.png", ".Effusion.png")) for name in pictures)
    for name in pictures:
        texts = b"".join(body for kind, body in chunks_of(f"{plain()}/maps/{name}") if kind in (b"tEXt", b"iTXt"))
        assert b"Research use only" in texts and b"SYNTHETIC" in texts, name


def picture(path):
    """Rows of RGB of a PNG; every filter."""
    parts = list(chunks_of(path))
    width, = struct.unpack_from(">I", parts[0][1])
    raw = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    step, lines, above = 1 + 3 * width, [], bytes(3 * width)
    for at in range(0, len(raw), step):
        line = bytearray(raw[at + 1:at + step])
        for i in range(len(line)):
            left, up, corner = (line[i - 3] if i >= 3 else 0), above[i], (above[i - 3] if i >= 3 else 0)
            guess = min((left, up, corner), key=lambda v, p=left + up - corner: abs(p - v))
            line[i] = (line[i] + (0, left, up, (left + up) // 2, guess)[raw[at]]) & 255
        lines.append(line)
        above = line
    return lines


@case("only the crop is coloured, and with a fine scale all of it is")
def _(work):
    predict(whole(), data(), "--split", "test", "--maps", "--finding", "Mass", "--map-scale", "1", "-o", f"{work}/out",
            "-q", "--part", "1/20")
    name = next(n for n in sorted(os.listdir(f"{work}/out/maps")) if n.endswith(".png"))
    lines, times, left, top = picture(f"{work}/out/maps/{name}"), 512 // SIZE, 12, 12 + 3 * 17 + 4
    coloured = {(y // times, x // times) for y in range(SIZE * times) for x in range(SIZE * times)
                if len(set(lines[top + y][3 * (left + x):3 * (left + x) + 3])) > 1}
    inside = {(y, x) for y in range(CROP, CROP + SIDE) for x in range(CROP, CROP + SIDE)}
    assert coloured and coloured <= inside, sorted(coloured - inside)[:3]


@case("with --boxes, a picture of a listed finding has its box and regions; others have the bytes of a run without")
def _(work):
    names = sorted(images(data(), "test"))[:2]
    write(f"{work}/boxes.csv", f"Image Index,Finding Label,Bbox [x,y,w,h],,,\n{names[0]},Mass,16,8,20,24\n".encode())
    words = [whole(), data(), "--split", "test", "--part", "1/20", "--maps", "--finding", "Mass,Effusion", "-q"]
    predict(*words, "-o", f"{work}/without")
    predict(*words, "--boxes", f"{work}/boxes.csv", "--box-size", "64", "-o", f"{work}/out")
    found, before = (tree(f"{work}/{name}/maps") for name in ("out", "without"))
    assert {name for name in found if found[name] != before[name]} == {f"{names[0]}.Mass.png"}
    lines, times, left, top = picture(f"{work}/out/maps/{names[0]}.Mass.png"), 512 // SIZE, 12, 12 + 3 * 17 + 4
    colour = {(y, x): bytes(lines[top + y][3 * (left + x):3 * (left + x) + 3])
              for y in range(SIZE * times) for x in range(SIZE * times)}
    x0, y0, x1, y1 = (int(v * SIZE / 64 * times) for v in (16, 8, 36, 32))
    outline = {(y, x) for y in range(y0, y1 + 1) for x in range(x0, x1 + 1)
               if min(x - x0, x1 - x, y - y0, y1 - y) < 2}
    assert {at for at, rgb in colour.items() if rgb == b"\x3d\xdc\x5b"} == outline
    plain_lines = picture(f"{work}/without/maps/{names[0]}.Mass.png")
    white = {at for at, rgb in colour.items() if rgb == b"\xf2\xf4\xf6"}
    shown = {at for at, rgb in colour.items() if at not in outline | white}
    assert white and all(colour[y, x] == bytes(plain_lines[top + y][3 * (left + x):3 * (left + x) + 3])
                         for y, x in shown)


def sheets(out, *words, code=0):
    write(f"{out}.csv", b"Mass,0.5\nEffusion,0.45\nHernia,1\n")
    return predict(whole(), data(), "--maps", "--sheet", "--threshold", f"{out}.csv", "-o", out, *words, code=code)


@case("sheets count hits, false alarms and misses by the labels of the shards, and show them in a fixed order")
def _(work):
    sheets(f"{work}/out", "-j", "1")
    label = {name: record["label"] for name, record in images(data()).items()}
    model = [f["name"] for f in document(f"{work}/out")["findings"]]
    found = {s["finding"]: s for s in document(f"{work}/out")["maps"]["sheets"]}
    assert set(found) == {"Mass", "Effusion", "Hernia"}
    assert {n for n in os.listdir(f"{work}/out/maps") if n.startswith("sheet")} == {f"sheet+{n}.png" for n in found}
    for name, sheet in found.items():
        pairs = [(row[f"flag_{name}"], label[row["image"]][model.index(name)]) for row in rows(f"{work}/out")]
        wanted = {"finding": name, "file": f"sheet+{name}.png", "labelled": len(pairs), "hits": pairs.count(("1", 1)),
                  "false_alarms": pairs.count(("1", 0)), "misses": pairs.count(("0", 1))}
        assert sheet == wanted, (sheet, wanted)
    assert sum(found[n][key] > 6 for n in found for key in ("hits", "false_alarms", "misses")) > 0, found
    sheets(f"{work}/one", "--finding", "Mass", "--split", "test")
    assert [(s["finding"], s["file"]) for s in document(f"{work}/one")["maps"]["sheets"] if s["file"]] == [
        ("Mass", "sheet+Mass.png")] and not os.path.exists(f"{work}/one/maps/sheet+Effusion.png")
    sheets(f"{work}/again", "-j", "3", "--micro-batch", "5")
    assert tree(f"{work}/again") == tree(f"{work}/out")


@case("sheets need labels and thresholds")
def _(work):
    says(predict(whole(), data(), "--maps", "--sheet", "-o", f"{work}/a", code=2), "--sheet needs thresholds")
    name = sorted(images(data(), "test"))[0]
    run([program("chex-inspect"), "extract", data(), name, "-o", f"{work}/one.png"])
    write(f"{work}/t.csv", b"Mass,0.5\n")
    says(predict(whole(), f"{work}/one.png", "--maps", "--sheet", "--threshold", f"{work}/t.csv", "-o", f"{work}/b",
                 code=2), "--sheet needs labels")
    says(predict(whole(), data(), "--maps", "--sheet", "--finding", "Mass,Edema", "--threshold", f"{work}/t.csv", "-o",
                 f"{work}/b", code=2), "--sheet: the model has no threshold for Edema")
    assert not os.path.exists(f"{work}/a") and not os.path.exists(f"{work}/b")


@case("hostile names stay in the folder, and names that differ have files that differ")
def _(work):
    found = sorted(images(data(), "test"))[:2]
    source = os.path.join(work, "in")
    names = ["%2F x\n.png", "a" * 200 + ".png", "a" * 199 + "b.png", "%2F x\t.png", "sheet+Mass.png"]
    run([program("chex-inspect"), "extract", data(), found[0], "-o", f"{work}/one.png"])
    os.makedirs(source)
    for name in names:
        shutil.copy(f"{work}/one.png", os.path.join(source, name))
    predict(whole(), source, "--maps", "-o", f"{work}/out", "-q")
    scored = len(rows(f"{work}/out"))
    files = [n for n in os.listdir(f"{work}/out/maps") if n.endswith(".npy")]
    assert scored == len(files) == len(names), (scored, files)
    assert all(n[0] != "." and len(n) <= 255 and set(n) <= set("%.~-_") | set(map(chr, range(48, 123))) for n in files)
    assert any(n.startswith("%252F%20x%0A.png") for n in files), files
    assert "sheet%2BMass.png.npy" in files, files  # sheet+Mass.png is a contact sheet


@case("--force removes the maps of the earlier result, and only them")
def _(work):
    out = f"{work}/out"
    predict(whole(), data(), "--split", "test", "--maps", "--finding", "Mass", "-o", out, "-q")
    write(f"{out}/maps/notes.txt", b"mine")
    done = predict(whole(), data(), "--split", "val", "--maps", "-o", out, code=2)
    says(done, "has a .* already")
    predict(whole(), data(), "--split", "val", "--maps", "--finding", "Mass", "-o", out, "--force", "-q")
    kept = {n[:-4] for n in os.listdir(f"{out}/maps") if n.endswith(".npy")}
    assert kept == {row["image"] for row in rows(out)} and os.path.exists(f"{out}/maps/notes.txt")


@case("--force without --maps leaves no map of the earlier result, and removes the folder if it has no other file")
def _(work):
    out = f"{work}/out"
    for kept in ([], ["notes.txt"]):
        predict(whole(), data(), "--split", "test", "--maps", "--finding", "Mass", "-o", out, "-q", "--force")
        assert len(os.listdir(f"{out}/maps")) > 1
        for name in kept:
            write(f"{out}/maps/{name}", b"mine")
        predict(whole(), data(), "--split", "val", "-o", out, "--force", "-q")
        assert (os.listdir(f"{out}/maps") if os.path.exists(f"{out}/maps") else []) == kept
        assert os.path.exists(f"{out}/maps") == bool(kept)


if __name__ == "__main__":
    sys.exit(finish(case))
