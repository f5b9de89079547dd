#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of chex-inspect: sheet, extract, show; exit codes, and that what is drawn is what the records say.

    check_sheet.py [PATTERN]

Writing on a sheet is looked for by the glyphs drawn in tools/draw/font.c; what goes to a terminal is decoded again.
Files are read by Pillow (python3-pil); checks that need it are skipped by name where it is missing.
"""
import base64
import hashlib
import io
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
import fcntl

from support import FINDINGS, PATIENCE, SOURCE, Cases, Skip, manifest, nih, program, records, run, says, slurp, synth

try:
    from PIL import Image
except ImportError:
    Image = None

case = Cases()
INK = (0xf2, 0xf4, 0xf6)
RESEARCH = "Research use only, not for diagnosis"


def need_pillow():
    if not Image:
        raise Skip("no Pillow (Debian: python3-pil)")


def dataset(work, size=32, count=40, *options):
    """A data set of synthetic images; its folder."""
    os.makedirs(work, exist_ok=True)
    labels = synth(os.path.join(work, "synth"), count, "--size", 64)
    out = os.path.join(work, "set")
    run([program("chex-convert"), "-q", "-i", os.path.join(work, "synth"), "-l", labels, "-o", out, "--size", size,
         "--shard-size", 16, *options])
    return out


def inspect(*words, code=0, **options):
    return run([program("chex-inspect"), *words], code, **options)


def listed(folder, *options):
    """A dict for each image, in the order of the records."""
    fields = "name,patient,labels,split,slot,age,sex,view,index"
    result = inspect("--json", "list", "--fields", fields, *options, folder)
    return json.loads(result.stdout)["results"][0]["records"]


def sheet(folder, path, *options):
    """Make a sheet; the result object of --json."""
    return json.loads(inspect("--json", "sheet", "-o", path, *options, folder).stdout)["results"][0]


def names(result):
    return [image["name"] for image in result["images"]]


# ---- writing ---------------------------------------------------------------------------------------------------------

def font(which):
    """{character: rows} as drawn in tools/draw/font.c."""
    with open(os.path.join(SOURCE, "tools", "draw", "font.c"), encoding="ascii") as f:
        body = re.search(rf"{which}_rows\[\] = {{\n(.*?)\n}};", f.read(), re.S).group(1)
    height = {"large": 12, "small": 9}[which]
    rows = [line.strip().rstrip(",").strip('"').split(" ") for line in body.splitlines() if '"' == line.strip()[0]]
    glyphs, code = {}, 32
    for at in range(0, len(rows), height):
        for i in range(len(rows[at])):
            glyphs[chr(code)] = [row[i] for row in rows[at:at + height]]
            code += 1
    assert code == 127, f"the font ends before character {code}"
    return glyphs


def drawn(glyphs, text, spacing):
    return [("." * spacing).join(glyphs[c][y] for c in text) for y in range(len(glyphs["A"]))]


def find_text(image, color, rows):
    """Where the writing stands: all its ink in this colour and no other pixel of its field in it; None: nowhere."""
    width, height = image.size
    data = image.tobytes()
    want = bytes(color)
    lines = []
    for y in range(height):
        row = data[y * width * 3:(y + 1) * width * 3]
        lines.append("".join("#" if row[x:x + 3] == want else "." for x in range(0, width * 3, 3)))
    key = max(range(len(rows)), key=lambda i: rows[i].count("#"))
    for y in range(key, height - len(rows) + key + 1):
        x = lines[y].find(rows[key])
        while x >= 0:
            if all(lines[y - key + i][x:x + len(rows[i])] == rows[i] for i in range(len(rows))):
                return x, y - key
            x = lines[y].find(rows[key], x + 1)
    return None


# ---- the sheet -------------------------------------------------------------------------------------------------------

@case("every glyph of both fonts is its own, and the digits are of one width")
def _(_work):
    for which in ("large", "small"):
        glyphs = font(which)
        assert len({tuple(rows) for rows in glyphs.values()}) == 95
        assert len({len(glyphs[c][0]) for c in "0123456789"}) == 1
        assert all(len({len(row) for row in rows}) == 1 for rows in glyphs.values())
        assert [c for c, rows in glyphs.items() if "#" not in "".join(rows)] == [" "]


@case("a sheet shows name, patient and findings of each image, to the last pixel of its letters")
def _(work):
    need_pillow()
    folder = dataset(work)
    path = os.path.join(work, "sheet.png")
    result = sheet(folder, path, "--first", "12", "--columns", "4")
    image = Image.open(path)
    assert image.format == "PNG" and image.mode == "RGB" and image.size == (result["width"], result["height"])
    glyphs = font("large")
    by_name = {r["name"]: r for r in listed(folder)}
    assert len(result["images"]) == 12 and result["selected"] == len(by_name)
    assert names(result) == sorted(r["name"] for r in listed(folder)[:12])
    for shown in result["images"]:
        record = by_name[shown["name"]]
        assert shown["labels"] == record["labels"] and shown["patient"] == record["patient"]
        assert find_text(image, INK, drawn(glyphs, shown["name"], 2)), f"{shown['name']} cannot be read"
        assert find_text(image, (0xa9, 0xb2, 0xbc), drawn(glyphs, "patient " + record["patient"], 2))
        for finding in record["labels"]:
            assert find_text(image, (0x10, 0x12, 0x14), drawn(glyphs, finding, 2)), finding
    assert find_text(image, (0xff, 0xc8, 0x57), drawn(glyphs, RESEARCH, 2)), "the warning cannot be read"
    assert image.text["dataset"] == manifest(folder)["dataset_id"] and image.text["Comment"] == RESEARCH


@case("the pixels of each image are on the sheet")
def _(work):
    need_pillow()
    folder = dataset(work, 64, 20)
    path = os.path.join(work, "sheet.png")
    result = sheet(folder, path, "--first", "5", "--columns", "5")
    image = Image.open(path).convert("L")
    pixels = {r["filename"].decode(): r["image"] for s in manifest(folder)["shards"] for r in records(folder, s)
              if r["weight"] == 1}
    top = next(y for y in range(image.height) if image.getpixel((17, y)) == image.getpixel((17, y + 257)) == 0x3f
               and all(image.getpixel((x, y)) == 0x3f for x in range(16, 274)))
    for i, shown in enumerate(result["images"]):
        left = 16 + i * (258 + 14) + 1
        tile = image.crop((left, top + 1, left + 256, top + 257)).resize((64, 64), Image.NEAREST)
        assert tile.tobytes() == bytes(pixels[shown["name"]]), f"{shown['name']} differs"


@case("a sheet has the same bytes each time, as PNG and as JPEG")
def _(work):
    folder = dataset(work)
    for name in ("a.png", "b.jpg", "c.JPEG"):
        path = os.path.join(work, name)
        sheet(folder, path, "--random", "7", "--seed", "5")
        first = slurp(path)
        sheet(folder, path, "--random", "7", "--seed", "5", "-j", "3")
        assert slurp(path) == first and len(first) > 10000


@case("a JPEG sheet can be read, and is the PNG one but for its losses")
def _(work):
    need_pillow()
    folder = dataset(work)
    sheet(folder, os.path.join(work, "a.png"), "--columns", "3")
    sheet(folder, os.path.join(work, "a.jpg"), "--columns", "3")
    a, b = (Image.open(os.path.join(work, name)) for name in ("a.png", "a.jpg"))
    assert b.format == "JPEG" and a.size == b.size and RESEARCH.encode() in b.info["comment"]
    differences = sorted(abs(x - y) for x, y in zip(a.convert("L").tobytes(), b.convert("L").tobytes()))
    assert differences[len(differences) * 99 // 100] < 16, differences[len(differences) * 99 // 100]


@case("sheet --where, --split and padding: exactly the images that match")
def _(work):
    folder = dataset(work, 32, 120)
    path = os.path.join(work, "s.png")
    every = listed(folder)
    terms = {
        "Effusion": lambda r: "Effusion" in r["labels"],
        "effusion=0": lambda r: "Effusion" not in r["labels"],
        "No Finding": lambda r: not r["labels"],
        "No_Finding=0": lambda r: bool(r["labels"]),
        "Mass,Nodule": lambda r: bool({"Mass", "Nodule"} & set(r["labels"])),
        "view=ap": lambda r: r["view"] == "AP",
        "sex=F": lambda r: r["sex"] == "F",
        "age=40-59": lambda r: r["age"] is not None and 40 <= r["age"] < 60,
        "patient=" + every[0]["patient"]: lambda r: r["patient"] == every[0]["patient"],
        "name=" + every[3]["name"]: lambda r: r["name"] == every[3]["name"],
    }
    for term, holds in terms.items():
        result = sheet(folder, path, "--first", "1000", "--where", term)
        wanted = sorted(r["name"] for r in every if holds(r))
        assert wanted and names(result) == wanted and result["selected"] == len(wanted), term
    both = sorted(r["name"] for r in every if r["sex"] == "F" and {"Mass", "Nodule", "Effusion"} & set(r["labels"]))
    assert both == names(sheet(folder, path, "--first", "999", "--where", "sex=F", "--where", "Mass,Nodule,Effusion"))
    test = sorted(r["name"] for r in every if r["split"] == "test")
    assert test == names(sheet(folder, path, "--first", "999", "--split", "test"))
    shard = manifest(folder)["shards"][0]
    first = names(sheet(os.path.join(folder, shard["name"]), path, "--first", "999"))
    assert sorted(first) == sorted(r["filename"].decode() for r in records(folder, shard) if r["weight"] == 1)


@case("sheet --title is the first line of the sheet, and in the file")
def _(work):
    need_pillow()
    folder = dataset(work, 32, 12)
    path, title = os.path.join(work, "s.png"), 'Hernia & "co": <24> of 2026'
    inspect("sheet", "-o", path, "--title", title, folder)
    image = Image.open(path)
    assert image.text["Title"] == title
    bold = ["".join("#" if "#" in pair else "." for pair in zip(row + ".", "." + row))
            for row in drawn(font("large"), title, 2)]
    left, top = find_text(image, INK, bold)
    assert left == 16 and top < 24, (left, top)
    sheet(folder, path)
    assert "Title" not in Image.open(path).text


@case("a sheet of synthetic images says SYNTHETIC, one of others does not")
def _(work):
    need_pillow()
    said = "SYNTHETIC images and labels, drawn by chex-synth"
    bold = ["".join("#" if "#" in pair else "." for pair in zip(row + ".", "." + row))
            for row in drawn(font("large"), said, 2)]
    path, amber = os.path.join(work, "s.png"), (0xff, 0xc8, 0x57)
    sheet(dataset(work, 32, 8), path)
    image = Image.open(path)
    assert find_text(image, amber, bold) and image.text["Source"] == said
    os.remove(os.path.join(work, "synth", "SYNTHETIC.txt"))
    out = os.path.join(work, "others")
    run([program("chex-convert"), "-q", "-i", os.path.join(work, "synth"), "-l",
         os.path.join(work, "synth", "Data_Entry_2017_v2020.csv"), "-o", out, "--size", 32])
    sheet(out, path)
    image = Image.open(path)
    assert not find_text(image, amber, bold) and "Source" not in image.text


@case("sheet --random draws by seed and names only")
def _(work):
    folder = dataset(work)
    path = os.path.join(work, "s.png")
    every = [r["name"] for r in listed(folder)]

    def draw(seed, count):
        return sorted(sorted(every, key=lambda n: hashlib.sha256(f"chex-sheet:{seed}:{n}".encode()).digest())[:count])

    assert names(sheet(folder, path, "--random", "9")) == draw(0, 9)
    assert names(sheet(folder, path, "--random", "9", "--seed", "77")) == draw(77, 9) != draw(0, 9)


@case("images of odd sides: drawn larger or shrunk, nothing cut")
def _(work):
    need_pillow()
    for size, shown in ((1, 256), (7, 252), (100, 200), (255, 255), (257, 256), (300, 256)):
        folder = dataset(os.path.join(work, str(size)), size, 3)
        path = os.path.join(work, "s.png")
        for columns in (1, 3, 64):
            result = sheet(folder, path, "--columns", columns)
            image = Image.open(path)
            image.load()
            assert result["columns"] == min(columns, 3) and image.size == (result["width"], result["height"])
            assert image.width == max(32 + min(columns, 3) * (shown + 2) + (min(columns, 3) - 1) * 14, 256)
            for name in names(result):
                assert find_text(image, INK, drawn(font("large"), name, 2)), f"{name} at {size}, {columns} columns"


@case("a damaged image keeps its place on the sheet, and exit code 1 says so")
def _(work):
    folder = dataset(work)
    m = manifest(folder)
    shard = os.path.join(folder, m["shards"][0]["name"])
    with open(shard, "r+b") as f:
        f.seek(m["record"]["stride"] + dict(zip(m["dtype"]["names"], m["dtype"]["offsets"]))["image"])
        f.write(b"\x01\x02\x03")
    path = os.path.join(work, "s.png")
    done = inspect("--json", "sheet", "-o", path, folder, code=1)
    says(done, "record 1: .*checksum")
    shown = json.loads(done.stdout)["results"][0]["images"]
    assert [i["index"] for i in shown if i["damaged"]] == [1] and os.path.exists(path)


@case("mistakes in a sheet are reported, with exit codes 2, 3 and 4, and nothing is written")
def _(work):
    folder = dataset(work)
    path = os.path.join(work, "s.png")
    done = inspect("sheet", "-o", path, "--where", "Hernai", folder, code=2)
    says(done, "did you mean 'Hernia'", "No_Finding", *FINDINGS)
    for words in (["--where", "colour=red"], ["--where", ""], ["--where", "Mass,"], ["--where", "Mass=2"],
                  ["--where", "age=x"], ["--where", "age=60-40"], ["--where", "view="], ["--first", "0"],
                  ["--first", "1001"], ["--random", "3", "--first", "3"], ["--seed", "3"], ["--columns", "65"],
                  ["--split", "nope"], [folder]):
        inspect("sheet", "-o", path, *words, folder, code=2)
    for words in (["check", "--leaks", "--where", "Mass"], ["--columns", "3"],
                  ["sheet", "-o", os.path.join(work, "s.gif")],
                  ["list", "--protocol", "kitty"], ["show", "--json", "0:0"]):
        inspect(*words, folder, code=2)
    says(inspect("sheet", "-o", path, "--where", "name=nobody.png", folder, code=3), "no image of this selection")
    inspect("sheet", "-o", path, os.path.join(work, "nowhere"), code=3)
    inspect("show", folder, "nobody.png", code=3)
    assert not os.path.exists(path)
    inspect("sheet", "-o", os.path.join(work, "no/folder.png"), folder, code=4)
    os.mkdir(path)
    inspect("sheet", "-o", path, folder, code=4)
    assert not [n for n in os.listdir(work) if "tmp" in n]


@case("a sheet of real images")
def _(work):
    need_pillow()
    out = os.path.join(work, "set")
    run([program("chex-convert"), "-q", "-i", nih("images"), "-l", nih("csv", "Data_Entry_2017_v2020.csv.gz"),
         "-o", out, "--allow-missing", "--split", "none"])
    path = os.path.join(work, "s.png")
    result = sheet(out, path, "--random", "12")
    image = Image.open(path)
    for name in names(result):
        assert find_text(image, INK, drawn(font("large"), name, 2)), name


# ---- extract ---------------------------------------------------------------------------------------------------------

@case("an extracted PNG says what the record says")
def _(work):
    need_pillow()
    folder = dataset(work)
    for record in listed(folder)[:5]:
        path = os.path.join(work, "x.png")
        inspect("extract", "-o", path, folder, record["name"])
        image = Image.open(path)
        image.load()
        assert image.mode == "L"
        age = "unknown" if record["age"] is None else f"{record['age']:.9g}"
        wanted = {"name": record["name"], "patient": record["patient"], "split": record["split"],
                  "labels": "|".join(record["labels"]) or "No Finding", "slot": record["slot"], "age": age,
                  "sex": record["sex"], "view": record["view"], "dataset": manifest(folder)["dataset_id"],
                  "weight": "1", "Comment": RESEARCH}
        assert image.text.pop("Software").startswith("chex-tools ")
        assert dict(image.text) == wanted, image.text


@case("a name that is not ASCII is iTXt")
def _(work):
    need_pillow()
    labels = synth(os.path.join(work, "synth"), 3, "--size", 64)
    text = slurp(labels).decode()
    old = text.splitlines()[1].split(",")[0]
    source = next(os.path.join(base, old) for base, _, files in os.walk(os.path.join(work, "synth")) if old in files)
    shutil.move(source, os.path.join(os.path.dirname(source), "Müller_" + old))
    with open(labels, "w", encoding="utf-8") as f:
        f.write(text.replace(old, "Müller_" + old))
    out = os.path.join(work, "set")
    run([program("chex-convert"), "-q", "-i", os.path.join(work, "synth"), "-l", labels, "-o", out, "--size", 32,
         "--split", "none"])
    path = os.path.join(work, "x.png")
    inspect("extract", "-o", path, out, "Müller_" + old)
    assert Image.open(path).text["name"] == "Müller_" + old and b"iTXt" in slurp(path)
    sheet(out, os.path.join(work, "s.png"))


# ---- show ------------------------------------------------------------------------------------------------------------

def sixel_gray(data):
    """A decoder of what DEC STD 070 calls sixel graphics, of gray ones: width, height, rows of per cent or None."""
    body = re.fullmatch(rb'\x1bP0;1q"1;1;(\d+);(\d+)(.*)\x1b\\\n', data, re.S)
    width, height = int(body.group(1)), int(body.group(2))
    rows = [[None] * width for _ in range(-(-height // 6) * 6)]
    palette, color, x, y = {}, None, 0, 0
    for token in re.finditer(rb"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|([?-~])|(\$)|(-)|(.)", body.group(3),
                             re.S):
        define, red, green, blue, use, count, repeated, single, back, down, other = token.groups()
        assert other is None, f"no sixel: {other}"
        if define:
            assert red == green == blue
            palette[int(define)] = int(red)
        elif use:
            color = int(use)
        elif back:
            x = 0
        elif down:
            x, y = 0, y + 6
        else:
            for _ in range(int(count or 1)):
                for bit in range(6):
                    if ((repeated or single)[0] - 63) >> bit & 1:
                        rows[y + bit][x] = palette[color]
                x += 1
    assert all(value is None for row in rows[height:] for value in row)
    return width, height, rows[:height]


def area(pixels, width, height, columns, lines):
    """The mean of the area that each output pixel covers, rounded half up."""
    out = []
    for j in range(lines):
        for i in range(columns):
            total = 0
            for y in range(j * height // lines, -(-(j + 1) * height // lines)):
                dy = min((j + 1) * height, (y + 1) * lines) - max(j * height, y * lines)
                for x in range(i * width // columns, -(-(i + 1) * width // columns)):
                    dx = min((i + 1) * width, (x + 1) * columns) - max(i * width, x * columns)
                    total += dx * dy * pixels[y * width + x]
            out.append((2 * total + width * height) // (2 * width * height))
    return out


def show(folder, *options, **environment):
    """The bytes before the label line, the label, the pixels of the record."""
    quiet = {k: v for k, v in os.environ.items() if k not in ("COLORTERM", "TERM", "NO_COLOR", "TMUX", "STY")}
    done = subprocess.run([program("chex-inspect"), "show", *options, folder, "0:2"], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env={**quiet, **environment}, check=True)
    picture, label = done.stdout[:-1].rsplit(b"\n", 1)
    pixels = list(records(folder, manifest(folder)["shards"][0]))[2]
    assert pixels["filename"] in label
    return picture + b"\n", label.decode(), pixels["image"]


@case("the picture for kitty is the record as PNG")
def _(work):
    need_pillow()
    folder = dataset(work, 150)
    data, label, pixels = show(folder, "--protocol", "kitty")
    pieces = re.findall(rb"\x1b_G([^;]*);([A-Za-z0-9+/=]*)\x1b\\", data)
    assert b"".join(b"\x1b_G" + k + b";" + v + b"\x1b\\" for k, v in pieces) + b"\n" == data
    keys = dict(pair.split(b"=") for pair in pieces[0][0].split(b","))
    assert (keys[b"a"], keys[b"f"], keys[b"q"]) == (b"T", b"100", b"2") and len(pieces) > 1
    assert 1 <= int(keys[b"c"]) <= 80 and 1 <= int(keys[b"r"]) <= 21
    assert all(len(v) <= 4096 for _, v in pieces)
    assert [k.split(b"m=")[1] for k, _ in pieces] == [b"1"] * (len(pieces) - 1) + [b"0"]
    image = Image.open(io.BytesIO(base64.b64decode(b"".join(v for _, v in pieces), validate=True)))
    assert image.size == (150, 150) and image.tobytes() == bytes(pixels)
    record = listed(folder)[2]
    assert record["patient"] in label and ("|".join(record["labels"]) or "No Finding") in label


@case("the picture for iTerm2 is the record as PNG")
def _(work):
    need_pillow()
    folder = dataset(work)
    data, _, pixels = show(folder, "--protocol", "iterm")
    keys, text = re.fullmatch(rb"\x1b\]1337;File=([^:]*):([A-Za-z0-9+/=]*)\x07\n", data).groups()
    keys = dict(pair.split(b"=") for pair in keys.split(b";"))
    png = base64.b64decode(text, validate=True)
    assert keys[b"inline"] == b"1" and int(keys[b"size"]) == len(png)
    assert Image.open(io.BytesIO(png)).tobytes() == bytes(pixels)


@case("the picture in sixels is the record in 64 grays")
def _(work):
    for size in (32, 45):
        folder = dataset(os.path.join(work, str(size)), size, 20)
        data, _, pixels = show(folder, "--protocol", "sixel")
        width, height, rows = sixel_gray(data)
        assert (width, height) == (size, size)
        assert [v for row in rows for v in row] == [p // 4 * 100 // 63 for p in pixels]


@case("half blocks in 24-bit and in 256 colours are the record")
def _(work):
    folder = dataset(work, 32, 20)
    data, _, pixels = show(folder, "--protocol", "blocks", COLORTERM="truecolor")
    upper = lower = None
    got = []
    for line in data.decode().splitlines():
        top, bottom = [], []
        for token in re.finditer(r"\x1b\[38;2;(\d+);\1;\1m|\x1b\[48;2;(\d+);\2;\2m|(▀)|(\x1b\[0m)|(.)", line):
            assert not token.group(5), token.group(5)
            upper = int(token.group(1)) if token.group(1) else upper
            lower = int(token.group(2)) if token.group(2) else lower
            if token.group(3):
                top.append(upper)
                bottom.append(lower)
        got += top + bottom
    assert got == list(pixels)
    data, _, _ = show(folder, "--protocol", "blocks")
    ramp = [int(c) for c in re.findall(rb"[34]8;5;(\d+)m", data)]
    assert set(ramp) <= {16, 231, *range(232, 256)} and len(set(ramp)) > 4 and data.decode().count("▀") == 512


@case("ASCII is the record, shrunk by area")
def _(work):
    folder = dataset(work, 64, 20)
    data, _, pixels = show(folder, "--protocol", "ascii")
    lines = data.decode("ascii").splitlines()
    assert len(lines) <= 21 and len({len(line) for line in lines}) == 1
    wanted = area(pixels, 64, 64, len(lines[0]), len(lines))
    assert "".join(lines) == "".join(" .:-=+*#%@"[v * 10 // 256] for v in wanted)
    assert show(folder)[0] == data, "off a terminal the default is ASCII"


def on_terminal(command, environment, size=(24, 80, 640, 384), answer=None):
    """Run on a pseudo terminal that answers DA1; what was written, and whether the state is as before."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size))
    before = termios.tcgetattr(slave)
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    got, until = b"", time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if select.select([master], [], [], 0.05)[0]:
            got += os.read(master, 65536)
            if answer and b"\x1b[c" in got:
                os.write(master, answer)
                answer = None
        elif child.poll() is not None:
            break
    after = termios.tcgetattr(slave)
    os.close(master)
    os.close(slave)
    assert child.wait(PATIENCE) == 0, got[-300:]
    return got, before == after


@case("on a terminal the protocol is the one that it says it can")
def _(work):
    folder = dataset(work, 64, 20)
    command = [program("chex-inspect"), "show", folder, "0:2"]
    plain = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    kinds = [({"TERM": "xterm-kitty"}, None, b"\x1b_Ga=T", False),
             ({"KITTY_WINDOW_ID": "1"}, None, b"\x1b_Ga=T", False),
             ({"TERM_PROGRAM": "iTerm.app"}, None, b"\x1b]1337;File=", False),
             ({"TERM_PROGRAM": "WezTerm"}, None, b"\x1b]1337;File=", False),
             ({}, b"\x1b[?62;4;6c", b'q"1;1;64;64', True), ({}, b"\x1b[?62;6;22c", "▀".encode(), True),
             ({}, b"\x1b[?64;14c", b"\x1b[38;5;", True), ({"COLORTERM": "truecolor"}, None, b"\x1b[38;2;", True),
             ({"KITTY_WINDOW_ID": "1", "TMUX": "x"}, None, b"\x1b[38;5;", True),
             ({"LANG": "C"}, b"\x1b[?6c", b"=+", True), ({"NO_COLOR": "1"}, b"\x1b[?6c", b"=+", True),
             ({"TERM": "dumb"}, None, b"=+", False)]
    for more, answer, wanted, asked in kinds:
        got, same = on_terminal(command, {**plain, **more}, answer=answer)
        assert same, f"{more}: the terminal is not as it was"
        assert wanted in got, f"{more} {answer}: {got[:200]}"
        assert (b"\x1b[c" in got) == asked, f"{more}: asked {not asked}"


@case("the picture fits the window")
def _(work):
    folder = dataset(work, 200, 20)
    plain = {"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8"}
    for rows, columns in ((24, 80), (10, 40), (50, 20), (2, 5), (60, 200)):
        size = (rows, columns, columns * 8, rows * 16)
        for protocol in ("ascii", "blocks", "sixel", "kitty"):
            got, _ = on_terminal([program("chex-inspect"), "show", "--protocol", protocol, folder, "0:2"], plain,
                                 size)
            room = max(rows - 3, 1)
            if protocol == "sixel":
                width, height = map(int, re.search(rb'q"1;1;(\d+);(\d+)', got).groups())
                assert width <= columns * 8 and height <= room * 16, (rows, columns, width, height)
            elif protocol == "kitty":
                c, r = map(int, re.search(rb"c=(\d+),r=(\d+)", got).groups())
                assert c <= columns and r <= room
            else:
                lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in got.decode().split("\r\n")[:-2]]
                assert len(lines) <= room and max(map(len, lines)) <= columns, (protocol, rows, columns, len(lines))


if __name__ == "__main__":
    sys.exit(case.main())
