#!/usr/bin/env python3
"""Decoding and resizing, compared with other software.

Runs check-images (CHECK_IMAGES names it, ./check-images by default) over
  - PNGs of every colour type, depth, interlacing and tRNS, written here with zlib alone and random row filters;
    expected: the formulas of lib/image/image.h
  - random sizes, shrunk and enlarged; expected: Pillow's resize(), and for `area` a mean in float64
  - the real images under CHEX_NIH, if that is set; expected: Pillow, djpeg
and compares every byte.  Prints a line for each group, at the end "N passed, 0 failed, K skipped".
Exit status: 0 good, 1 something differs, 77 Pillow or numpy is missing.

SPDX-License-Identifier: Apache-2.0
"""
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
    import PIL
    from PIL import Image
except ImportError as e:
    print(f"skip: {e}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(77)

CHECK_IMAGES = os.environ.get("CHECK_IMAGES", "./check-images")
NIH = os.environ.get("CHEX_NIH")
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "lanczos": Image.Resampling.LANCZOS} \
    if hasattr(Image, "Resampling") else {"bilinear": Image.BILINEAR, "lanczos": Image.LANCZOS}
PILLOW_MAJOR = int(PIL.__version__.split(".")[0])
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a PNG colour type
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


class Tally:
    """Counts and reports."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def group(self, name, checks):
        """checks: (what, good) pairs."""
        good = bad = 0
        for what, ok in checks:
            good += bool(ok)
            bad += not ok
            if not ok and bad <= 10:
                print(f"  differs: {what}")
        print(f"{name}: {good} passed, {bad} failed")
        self.passed += good
        self.failed += bad

    def skip(self, name, why):
        print(f"{name}: skipped, {why}")
        self.skipped += 1


# ---- the program under test ----------------------------------------------------------------------------------------


def check_images(method, width, height, paths):
    """[(header words, array or None)] for the files."""
    command = [CHECK_IMAGES, method, str(width), str(height), *paths]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    if method == "gray":
        # The fast path for plain PNGs and libpng say the same of every file, pixels, facts and errors.
        slow = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "CHEX_ONLY_LIBPNG": "1"})
        assert slow.stdout == out, "the fast path differs from libpng"
    results, at = [], 0
    for _ in paths:
        end = out.index(b"\n", at)
        words = out[at:end].decode().split(" ")
        at = end + 1
        pixels = None
        if words[0] == "ok":
            w, h = int(words[1]), int(words[2])
            pixels = np.frombuffer(out, np.uint8, w * h, at).reshape(h, w)
            at += w * h
        results.append((words, pixels))
    assert at == len(out)
    return results


def same(a, b):
    return a is not None and a.shape == b.shape and np.array_equal(a, b)


# ---- formulas of lib/image/image.h -----------------------------------------------------------------------------------


def luma(rgb):
    rgb = rgb.astype(np.int64)
    return (19595 * rgb[..., 0] + 38470 * rgb[..., 1] + 7471 * rgb[..., 2] + 32768) >> 16


def gray_of(samples, colour, depth, palette=None, trns=None):
    """Samples [h][w][channels] as stored to 8-bit gray."""
    s = samples.astype(np.int64)
    alpha = None
    if colour == 3:
        entries = np.array(palette, np.int64)
        alphas = np.full(len(palette), 255, np.int64)
        if trns is not None:
            alphas[:len(trns)] = trns
        alpha = alphas[s[..., 0]]
        s = entries[s[..., 0]]
    elif trns is not None:
        alpha = np.where((s == np.array(trns)).all(axis=2), 0, 255)
    elif colour in (4, 6):
        alpha = s[..., -1]
        s = s[..., :-1]
    if colour != 3 and depth == 16:
        s = (s * 255 + 32767) // 65535
        if colour in (4, 6):
            alpha = (alpha * 255 + 32767) // 65535
    elif colour != 3:
        s = s * 255 // ((1 << depth) - 1)
    v = luma(s) if s.shape[2] == 3 else s[..., 0]
    if alpha is not None:
        v = (v * alpha + 127) // 255
    return v.astype(np.uint8)


# ---- writing PNGs --------------------------------------------------------------------------------------------------


def pack_row(row, depth):
    """One row [w][channels] to bytes."""
    flat = [int(v) for v in row.reshape(-1)]
    if depth == 16:
        return b"".join(struct.pack(">H", v) for v in flat)
    if depth == 8:
        return bytes(flat)
    per = 8 // depth
    out = bytearray((len(flat) + per - 1) // per)
    for i, v in enumerate(flat):
        out[i // per] |= v << (8 - depth * (i % per + 1))
    return bytes(out)


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def filter_row(kind, row, above, bpp):
    out = bytearray([kind])
    for i, x in enumerate(row):
        a = row[i - bpp] if i >= bpp else 0
        b = above[i]
        c = above[i - bpp] if i >= bpp else 0
        out.append((x - (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 255)
    return bytes(out)


def filtered(samples, colour, depth, rng):
    """The bytes of one (sub)image before compression."""
    if samples.shape[0] == 0 or samples.shape[1] == 0:
        return b""
    bpp = max(1, CHANNELS[colour] * depth // 8)
    out, above = b"", None
    for row in samples:
        packed = pack_row(row, depth)
        out += filter_row(rng.randrange(5), packed, above or bytes(len(packed)), bpp)
        above = packed
    return out


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, samples, colour, depth, rng, interlaced=False, palette=None, trns=None):
    height, width = samples.shape[:2]
    if interlaced:
        raw = b"".join(filtered(samples[y::dy, x::dx], colour, depth, rng) for x, y, dx, dy in ADAM7)
    else:
        raw = filtered(samples, colour, depth, rng)
    stream = zlib.compress(raw, rng.choice([0, 1, 6, 9]))
    cut = rng.randrange(len(stream) + 1)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        f.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))))
        f.write(chunk(b"gAMA", struct.pack(">I", 100000)))  # to be ignored
        if palette is not None:
            f.write(chunk(b"PLTE", b"".join(bytes(e) for e in palette)))
        if trns is not None:
            f.write(chunk(b"tRNS", bytes(trns) if colour == 3 else b"".join(struct.pack(">H", v) for v in trns)))
        f.write(chunk(b"IDAT", stream[:cut]))
        f.write(chunk(b"IDAT", stream[cut:]))
        f.write(chunk(b"IEND", b""))


# ---- reading PNGs of 16 bits, which Pillow cuts to 8 -----------------------------------------------------------------


def unfilter(raw, height, row_size, bpp):
    """All rows at once along diagonals: what pixel (y, x) needs lies on the two diagonals before."""
    rows = np.frombuffer(raw, np.uint8).reshape(height, row_size + 1)
    kind = rows[:, 0]
    src = rows[:, 1:].reshape(height, -1, bpp).astype(np.int32)
    width = src.shape[1]
    out = np.zeros((height + 1, width + 1, bpp), np.int32)  # a row and a column of zeros in front
    for d in range(height + width - 1):
        y = np.arange(max(0, d - width + 1), min(height, d + 1))
        x = d - y
        a, b, c = out[y + 1, x], out[y, x + 1], out[y, x]
        p = a + b - c
        pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
        best = np.where((pa <= pb) & (pa <= pc), a, np.where(pb <= pc, b, c))
        k = kind[y][:, None]
        guess = np.select([k == 1, k == 2, k == 3, k == 4], [a, b, (a + b) // 2, best], 0)
        out[y + 1, x + 1] = (src[y, x] + guess) & 255
    return out[1:, 1:].astype(np.uint8).reshape(height, row_size)


def read_png16(path):
    """Gray of a PNG of 16 bits without interlacing and tRNS; None for another."""
    with open(path, "rb") as f:
        data = f.read()
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    if depth != 16 or interlaced:
        return None
    at, stream = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT":
            stream += data[at + 8:at + 8 + size]
        at += 12 + size
    bpp = CHANNELS[colour] * 2
    rows = unfilter(zlib.decompress(stream), height, width * bpp, bpp)
    return gray_of(rows.view(">u2").reshape(height, width, -1), colour, depth)


def read_pillow(path):
    """What lib/image/image.h says, with Pillow's samples; where nothing is transparent, Pillow's own convert("L")."""
    image = Image.open(path)
    rgba = np.array(image.convert("RGBA"))
    gray = gray_of(rgba, 6, 8)
    if (rgba[..., 3] == 255).all():
        assert np.array_equal(gray, np.array(image.convert("L"))), path
    return gray


# ---- groups --------------------------------------------------------------------------------------------------------


def generated_cases(folder, rng):
    """Writes the files; yields (path, expected gray, expected header words)."""
    depths = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
    sizes = [(1, 1), (3, 2), (5, 9), (8, 8), (33, 17)]
    cases = [(c, d, i, t, s) for c in depths for d in depths[c] for i in (False, True)
             for t in ((False, True) if c < 4 else (False,)) for s in sizes]
    for n, (colour, depth, interlaced, with_trns, (width, height)) in enumerate(cases):
        top = 1 << depth
        palette = trns = None
        if colour == 3:
            top = rng.randrange(1, top + 1)
            palette = [[rng.randrange(256) for _ in range(3)] for _ in range(top)]
        noise = np.random.default_rng(n)
        samples = noise.integers(0, top, (height, width, CHANNELS[colour]))
        if with_trns and colour == 3:
            trns = [rng.randrange(256) for _ in range(rng.randrange(1, top + 1))]
        elif with_trns:
            trns = [int(v) for v in samples[height // 2, width // 2]]
        path = os.path.join(folder, f"c{colour}-d{depth}-i{int(interlaced)}-t{int(with_trns)}-{width}x{height}.png")
        write_png(path, samples, colour, depth, rng, interlaced, palette, trns)
        yield path, gray_of(samples, colour, depth, palette, trns), (str(depth), str(CHANNELS[colour]))


def check_generated(tally, folder, rng):
    cases = list(generated_cases(folder, rng))
    results = check_images("gray", 0, 0, [c[0] for c in cases])
    tally.group("every colour type, depth, interlacing, tRNS against the formulas",
                ((os.path.basename(path), same(pixels, gray) and tuple(words[3:5]) == stored)
                 for (path, gray, stored), (words, pixels) in zip(cases, results)))


def area_matrix(size_in, size_out):
    """Whole numbers: what an output sample covers of each input sample, times size_out."""
    i, o = np.arange(size_in), np.arange(size_out)[:, None]
    shared = np.minimum((i + 1) * size_out, (o + 1) * size_in) - np.maximum(i * size_out, o * size_in)
    return np.maximum(shared, 0).astype(np.float64)


def area(gray, width, height):
    mean = area_matrix(gray.shape[0], height) @ gray @ area_matrix(gray.shape[1], width).T / gray.size
    return np.floor(mean + 0.5).astype(np.uint8)


def resized(gray, method, width, height):
    if method == "area":
        return area(gray, width, height)
    image = Image.fromarray(gray)
    if PILLOW_MAJOR >= 13:  # takes columns first where the height shrinks much more than the width (Pillow #9549)
        image = image.resize((width, gray.shape[0]), FILTERS[method])
    return np.array(image.resize((width, height), FILTERS[method]))


def check_sizes(tally, folder, rng):
    """Random sizes, among them one row, one column, one pixel and a change of one side only."""
    checks = []
    for n in range(60):
        w, h, w2, h2 = (rng.choice([1, 2, 3, rng.randrange(1, 40), rng.randrange(1, 300)]) for _ in range(4))
        w2, h2 = (w if n % 10 == 3 else w2), (h if n % 10 == 7 else h2)
        noise = np.random.default_rng(n)
        gray = (noise.integers(0, 256, (h, w)) if n % 2 else noise.integers(0, 2, (h, w)) * 255).astype(np.uint8)
        path = os.path.join(folder, f"size-{n}.png")
        write_png(path, gray[..., None], 0, 8, rng)
        for method in ("bilinear", "lanczos", "area"):
            pixels = check_images(method, w2, h2, [path])[0][1]
            checks.append((f"{method} {w}x{h} to {w2}x{h2}", same(pixels, resized(gray, method, w2, h2))))
    tally.group("random sizes against Pillow and float64", checks)


def check_real(tally):
    paths = [os.path.join(d, f) for d in (f"{NIH}/images", f"{NIH}/odd") for f in sorted(os.listdir(d))]
    own = [read_png16(p) for p in paths]
    grays = [read_pillow(p) if g is None else g for p, g in zip(paths, own)]
    tally.group("real images, decoded, against Pillow",
                ((p, same(r[1], g)) for p, g, r in zip(paths, grays, check_images("gray", 0, 0, paths))))
    for method in FILTERS:
        checks = []
        for size in (224, 256, 320):
            for p, g, r in zip(paths, grays, check_images(method, size, size, paths)):
                checks.append((f"{p} to {size}", same(r[1], resized(g, method, size, size))))
        tally.group(f"real images, {method} to 224, 256, 320, against Pillow", checks)
    some = list(range(0, len(paths), 8))
    checks = []
    for size in (224, 256, 320):
        for i, r in zip(some, check_images("area", size, size, [paths[i] for i in some])):
            checks.append((f"{paths[i]} to {size}", same(r[1], area(grays[i], size, size))))
    tally.group("real images, area to 224, 256, 320, against float64", checks)


def read_pgm(data):
    """What djpeg writes: P5, width height, 255."""
    kind, width, height, top = data[:64].split(None, 4)[:4]
    assert kind == b"P5" and top == b"255"
    size = int(width) * int(height)
    return np.frombuffer(data[len(data) - size:], np.uint8).reshape(int(height), int(width))


def check_jpeg(tally):
    paths = [os.path.join(NIH, "jpeg", f) for f in sorted(os.listdir(f"{NIH}/jpeg"))]
    djpeg = [read_pgm(subprocess.run(["djpeg", "-grayscale", p], check=True, stdout=subprocess.PIPE).stdout)
             for p in paths]
    tally.group("real JPEGs against djpeg -grayscale",
                ((p, same(r[1], d)) for p, d, r in zip(paths, djpeg, check_images("gray", 0, 0, paths))))


def main():
    tally = Tally()
    rng = random.Random(20171117)
    with tempfile.TemporaryDirectory(prefix="chex-png-") as folder:
        check_generated(tally, folder, rng)
        check_sizes(tally, folder, rng)
    if not NIH:
        tally.skip("real images", "CHEX_NIH is not set")
        tally.skip("real JPEGs", "CHEX_NIH is not set")
    else:
        check_real(tally)
        if shutil.which("djpeg"):
            check_jpeg(tally)
        else:
            tally.skip("real JPEGs", "no djpeg")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
