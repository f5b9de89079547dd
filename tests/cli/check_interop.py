#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What chex-convert writes, read by others and compared with the sources, to the last byte.

    check_interop.py [PATTERN]
    check_interop.py --tensorflow DATASET IMAGES LABELS     every record of a data set that exists already

The quick part: framing and checksums by the definition, protoc, NumPy, Pillow.  With CHEX_SLOW=1: TensorFlow, PyTorch
and DALI, and the real images in $CHEX_NIH.  Each is used from whichever Python has it: this one, the system's, that of
build/venv.
"""
import csv
import functools
import glob
import gzip
import hashlib
import io
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from support import (FINDINGS, SOURCE, Cases, Skip, cache_folder, images, manifest, masked, nih, png, program,
                     python_with, run, same_tree, slurp, synth, write)

try:
    import numpy
    from PIL import Image
except ImportError:
    numpy = Image = None

case = Cases()
CACHE = cache_folder("interop")
HERE = os.path.dirname(os.path.abspath(__file__))


# ---- data sets -----------------------------------------------------------------------------------------------------


class Made:
    """A data set and what it was made from."""

    def __init__(self, images, labels, *options):
        self.images, self.labels = images, labels
        self.out = tempfile.mkdtemp(dir=CACHE)
        run([program("chex-convert"), "-q", "-i", images, "-l", labels, "-o", self.out, *options])
        self.manifest = manifest(self.out)
        self.rows = rows_of(labels)

    def path(self, shard):
        return os.path.join(self.out, shard["name"])

    def frames(self):
        """(shard, index, bytes of the record) of all records."""
        stride = self.manifest["record"]["stride"]
        for shard in self.manifest["shards"]:
            data = slurp(self.path(shard))
            for i in range(shard["records"]):
                yield shard, i, data[i * stride:(i + 1) * stride]


def rows_of(path):
    """{file name: (labels, patient, age, sex, view)} as the label file says, in the form of a record."""
    data = slurp(path)
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8-sig")
    rows = {}
    for row in list(csv.reader(text.splitlines()))[1:]:
        name, findings, _, patient, age, sex, view = row[:7]
        age = float(age) if 0 <= float(age) <= 120 else math.nan
        rows[name] = [int(f in findings.split("|")) for f in FINDINGS], patient.zfill(8), age, sex, view
    return rows


@functools.lru_cache(None)
def small(*options):
    folder = os.path.join(CACHE, "small")
    if not os.path.isdir(folder):
        synth(folder, 40, "--size", "96")
    return Made(f"{folder}/images", f"{folder}/Data_Entry_2017_v2020.csv", "--size", "40", "--shard-size", "8",
                "--index", "dali", *options)


@functools.lru_cache(None)
def real(*options):
    return Made(nih("images"), nih("csv", "Data_Entry_2017_v2020.csv.gz"), "--allow-missing", "--split", "official",
                "--lists", nih("lists"), "--shard-size", "16", "--index", "dali", *options)


# ---- by definition: TFRecord and CRC-32C ---------------------------------------------------------------------------


@case("framing and both checksums of each record follow the TFRecord format")
def _(_work):
    assert masked(b"123456789") == 0xc78ab0e5
    count = 0
    for _, i, frame in small().frames():
        length, length_crc = struct.unpack_from("<QI", frame)
        data_crc, = struct.unpack_from("<I", frame, len(frame) - 4)
        assert length == len(frame) - 16, f"record {i}: length {length}"
        assert length_crc == masked(frame[:8]) and data_crc == masked(frame[12:-4]), f"record {i}: checksum"
        count += 1
    assert count == sum(s["records"] for s in small().manifest["shards"])


# ---- protoc --------------------------------------------------------------------------------------------------------


def unescape(text):
    """A string of protoc's text format."""
    return re.sub(rb"\\([0-7]{3}|.)", lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else
                  {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(m[1], m[1]), text)


def protoc_decode(protoc, data):
    """{key: list of values} as `protoc --decode` prints them; keys in their order."""
    done = subprocess.run([protoc, "--decode=chex.Example", f"-I{SOURCE}/schemas", "example.proto"], input=data,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found, key = {}, None
    for line in done.stdout.splitlines():
        word, _, value = line.strip().partition(b": ")
        if word == b"key":
            key = unescape(value[1:-1]).decode()
            assert key not in found, f"{key} twice"
            found[key] = []
        elif word == b"value":
            found[key].append(unescape(value[1:-1]) if value[:1] == b'"' else float(value))
        else:
            assert not re.match(rb"\d+", word), f"protoc met a field that it does not know: {line}"
    return found


def check_protoc(made, every):
    protoc = os.environ.get("PROTOC") or shutil.which("protoc")
    if not protoc:
        raise Skip("no protoc")
    for shard, i, frame in made.frames():
        if i % every:
            continue
        found = protoc_decode(protoc, frame[12:-4])
        assert list(found)[0] == "_p0" and list(found)[-1] == "_p1"
        name = found["image/filename"][0].decode()
        labels, patient, age, sex, view = made.rows[name]
        assert found["image/label"] == labels, name
        assert [found[k][0].decode() for k in ("patient/id", "patient/sex", "image/view")] == [patient, sex, view], name
        assert found["patient/age"][0] == age or math.isnan(age), name
        assert found["image/height"] == [made.manifest["record"]["height"]] and found["image/channels"] == [1]
        assert found["record/slot"][0].decode().startswith(made.manifest["dataset_id"] + "/")
        offset = made.manifest["record"]["pixel_offset"]
        assert frame[offset:].startswith(found["image/raw"][0]), name
        assert found["image/weight"][0] in (0, 1) and i < shard["records"]


@case("protoc --decode reads every record, and its output equals the row of the label file")
def _(_work):
    check_protoc(small(), 1)


# ---- NumPy and Pillow ----------------------------------------------------------------------------------------------


def need(module, name):
    if module is None:
        raise Skip(f"this Python has no {name}")


@functools.lru_cache(None)
def pillow_pixels(path, size, method):
    """The bytes of Pillow's own resize() of the gray image."""
    with Image.open(path) as image:
        return image.convert("L").resize((size, size), getattr(Image, method)).tobytes()


def paths_of(folder):
    return {os.path.basename(p): p for p in glob.glob(f"{folder}/**/*", recursive=True) if os.path.isfile(p)}


def check_numpy(made, method):
    """Through numpy.memmap with the manifest's dtype; pixels are Pillow's, everything else the label file's."""
    need(Image, "NumPy and Pillow")
    m, paths, seen = made.manifest, paths_of(made.images), set()
    dtype, size = numpy.dtype(m["dtype"]), m["record"]["height"]
    for shard in m["shards"]:
        shard_records = numpy.memmap(made.path(shard), dtype, mode="r")
        assert len(shard_records) == shard["records"] and int(shard_records["weight"].sum()) == shard["images"]
        for record in shard_records:
            name = bytes(record["filename"]).decode()
            labels, patient, age, sex, view = made.rows[name]
            assert record["image"].tobytes() == pillow_pixels(paths[name], size, method), f"pixels of {name}"
            assert record["label"].tolist() == labels and bytes(record["patient"]).decode() == patient, name
            assert record["age"] == age or (math.isnan(age) and math.isnan(record["age"])), name
            assert (bytes(record["sex"]).decode(), bytes(record["view"]).decode()) == (sex, view), name
            if record["weight"] == 1:
                assert name not in seen, f"{name} twice"
                seen.add(name)
    assert seen == set(made.rows) & set(paths)


@case("numpy.memmap with the manifest's dtype reads the pixels of Pillow and the values of the label file")
def _(_work):
    check_numpy(small(), "BILINEAR")
    check_numpy(small("--resize", "lanczos"), "LANCZOS")


@case("numpy.memmap: the real images at 224, 256 and 320", slow=True)
def _(_work):
    for size in ("224", "256", "320"):
        check_numpy(real("--size", size), "BILINEAR")


@case("protoc --decode: the real images", slow=True)
def _(_work):
    check_protoc(real("--size", "256"), 5)


# ---- image files of every form ---------------------------------------------------------------------------------------


SIDE = 64


def gray8(samples, depth, alpha=None):
    """The steps of chex-convert(1), section IMAGES: samples [y][x] or [y][x][3] of this depth to 8-bit gray."""
    v = samples.astype(numpy.int64)
    v = (v * 255 + 32767) // 65535 if depth == 16 else v * 255 // (2**depth - 1)
    if v.ndim == 3:
        v = (19595 * v[..., 0] + 38470 * v[..., 1] + 7471 * v[..., 2] + 32768) >> 16
    return (v if alpha is None else (v * alpha + 127) // 255).astype(numpy.uint8)


def gray_png(samples, depth):
    """A gray PNG of any depth; Pillow cannot write those of 2 and 4 bits."""
    def row(y, _width):
        if depth == 16:
            return samples[y].astype(">u2").tobytes()
        bits = numpy.unpackbits(samples[y].astype(numpy.uint8)[:, None], axis=1)[:, 8 - depth:]
        return numpy.packbits(bits.ravel()).tobytes()
    return png(SIDE, SIDE, row, depth)


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpeg_gray(data):
    """What libjpeg decodes if gray is requested."""
    image = Image.open(io.BytesIO(data))
    image.draft("L", image.size)
    assert image.mode == "L"
    return numpy.asarray(image)


def image_forms():
    """{form: (bytes of the file, its gray pixels)}"""
    noise = numpy.random.default_rng(27)
    rgb, alpha = noise.integers(0, 256, (SIDE, SIDE, 3), numpy.uint8), noise.integers(0, 256, (SIDE, SIDE), numpy.uint8)
    forms = {}
    for depth in (1, 2, 4, 8, 16):
        samples = noise.integers(0, 2**depth, (SIDE, SIDE))
        forms[f"gray, {depth} bits"] = gray_png(samples, depth), gray8(samples, depth)
    forms["RGB"] = saved(Image.fromarray(rgb), "PNG"), gray8(rgb, 8)
    forms["RGBA"] = saved(Image.fromarray(numpy.dstack([rgb, alpha])), "PNG"), gray8(rgb, 8, alpha)
    pair = Image.fromarray(rgb[..., :2].copy(), "LA")
    forms["gray with alpha"] = saved(pair, "PNG"), gray8(rgb[..., 0], 8, rgb[..., 1])
    palette = Image.fromarray(alpha, "P")
    palette.putpalette(rgb.reshape(-1)[:768].tobytes())
    forms["palette"] = saved(palette, "PNG"), gray8(rgb.reshape(-1)[:768].reshape(256, 3)[alpha], 8)
    smooth = Image.fromarray(rgb).resize((16, 16)).resize((SIDE, SIDE))
    for form, data in (("JPEG, gray", saved(smooth.convert("L"), "JPEG")), ("JPEG, colour", saved(smooth, "JPEG"))):
        forms[form] = data, jpeg_gray(data)
    return forms


def write_forms(work):
    """A set in the form of PadChest with a file of each form: its folder, its label file, {name: (form, gray)}."""
    folder, forms = os.path.join(work, "padchest"), image_forms()
    synth(folder, 2 * len(forms), "--size", str(SIDE), "--labels", "padchest")
    paths = sorted(paths_of(f"{folder}/images").items())
    found = {}
    for (name, path), (form, (data, gray)) in zip(paths, forms.items()):
        write(path, data)
        found[name] = form, gray
    assert len(found) == len(forms)
    return f"{folder}/images", glob.glob(f"{folder}/*.csv")[0], found


@case("a file of every form becomes gray by the rule gray8-1, which the manifest names")
def _(work):
    need(Image, "NumPy and Pillow")
    folder, labels, forms = write_forms(work)
    command = [program("chex-convert"), "-q", "-i", folder, "-l", labels, "--size", str(SIDE), "--resize", "none",
               "--shard-size", "4"]
    out = f"{work}/out"
    run([*command, "-j", "1", "-o", out])
    assert manifest(out)["gray_rule"] == "gray8-1"
    stored = images(out)
    for name, (form, gray) in forms.items():
        assert stored[name]["image"] == gray.tobytes(), form
    inspect = [program("chex-inspect"), out]
    assert f"images   {SIDE}x{SIDE} gray8-1, none" in run(inspect).stdout
    assert json.loads(run([*inspect, "--json"]).stdout)["results"][0]["dataset"]["gray_rule"] == "gray8-1"
    run([*command, "-j", "3", "-o", f"{work}/threads"])
    same_tree(f"{work}/threads", out)
    for part in (2, 1, 3):  # the last part writes the manifest, and decodes only its own images
        run([*command, "--part", f"{part}/3", "-o", f"{work}/parts"])
    run([*command, "-o", f"{work}/parts"])
    same_tree(f"{work}/parts", out)


@case("data sets made from shards keep gray_rule, also after a merge and a withdrawal")
def _(work):
    need(Image, "NumPy and Pillow")
    folder, labels, _forms = write_forms(work)
    convert, source, plain = program("chex-convert"), f"{work}/source", small()
    run([convert, "-q", "-i", folder, "-l", labels, "--size", str(SIDE), "-o", source])
    run([convert, "-q", "-i", source, "--size", "32", "-o", f"{work}/smaller"])
    assert manifest(f"{work}/smaller")["gray_rule"] == "gray8-1"
    run([convert, "-q", "-i", source, "--where", "sex=M", "-o", f"{work}/men"])
    run([convert, "-q", "-i", source, "--where", "sex=F", "-o", f"{work}/women"])
    run([convert, "-q", "-i", f"{work}/men", "-i", f"{work}/women", "-o", f"{work}/merged"])
    assert manifest(f"{work}/merged")["gray_rule"] == "gray8-1"
    patient = next(iter(images(source).values()))["patient"].decode()
    run([convert, "-q", "--withdraw", patient, source])
    after = manifest(source)
    assert after["withdrawals"] and after["gray_rule"] == "gray8-1"
    assert "gray_rule" not in plain.manifest


@case("NIH's label file has gray_rule only if it names a JPEG")
def _(work):
    need(Image, "NumPy and Pillow")
    synth(f"{work}/nih", 8, "--size", "64")
    labels = f"{work}/nih/Data_Entry_2017_v2020.csv"
    command = [program("chex-convert"), "-q", "-i", f"{work}/nih/images", "-l", labels, "--size", "32"]
    run([*command, "-o", f"{work}/png"])
    assert "gray_rule" not in manifest(f"{work}/png")
    assert "gray8, bilinear" in run([program("chex-inspect"), f"{work}/png"]).stdout
    name, path = sorted(paths_of(f"{work}/nih/images").items())[0]
    with Image.open(path) as image:
        image.convert("L").save(path[:-3] + "JPG", "JPEG")
    os.remove(path)
    write(labels, slurp(labels).replace(name.encode(), name[:-3].encode() + b"JPG"))
    for entry in ("train_val_list.txt", "test_list.txt"):
        listed = f"{work}/nih/{entry}"
        write(listed, slurp(listed).replace(name.encode(), name[:-3].encode() + b"JPG"))
    run([*command, "-o", f"{work}/jpeg"])
    assert manifest(f"{work}/jpeg")["gray_rule"] == "gray8-1"


# ---- TensorFlow ----------------------------------------------------------------------------------------------------


def check_tensorflow(made, paths):
    """Each record through TFRecordDataset and parse_single_example."""
    need(Image, "NumPy and Pillow")
    python = python_with("tensorflow")
    m = made.manifest
    size, method = m["record"]["height"], m["decode"]["resize"].upper()
    digests, seen, count = {}, set(), 0
    # pylint: disable=consider-using-with
    reader = subprocess.Popen([python, f"{HERE}/read_tensorflow.py", made.out], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    for line in reader.stdout:
        r = json.loads(line)
        name = r["image/filename"]
        labels, patient, age, sex, view = made.rows[name]
        inode = os.stat(paths[name]).st_ino
        if inode not in digests:
            digests[inode] = hashlib.sha256(pillow_pixels(paths[name], size, method)).hexdigest()
        assert r["image/raw"] == digests[inode], f"pixels of {name}"
        assert r["image/label"] == labels and r["patient/id"] == patient, name
        assert (r["patient/sex"], r["image/view"]) == (sex, view), name
        assert r["patient/age"] == (None if math.isnan(age) else age), name
        assert [r["image/height"], r["image/width"], r["image/channels"]] == [size, size, 1]
        assert r["record/slot"].split("/")[0] == m["dataset_id"]
        count += 1
        if r["image/weight"] == 1:
            assert name not in seen, f"{name} twice"
            seen.add(name)
    assert reader.wait() == 0, f"the reader ended with {reader.returncode}"
    assert seen == set(made.rows) & set(paths)
    assert count == sum(s["records"] for s in m["shards"])
    return count, len(seen)


@case("TensorFlow reads every record of a synthetic data set", slow=True)
def _(_work):
    check_tensorflow(small(), paths_of(small().images))


@case("TensorFlow reads every record of the real images", slow=True)
def _(_work):
    made = real("--size", "256")
    check_tensorflow(made, paths_of(made.images))


# ---- PyTorch, DALI -------------------------------------------------------------------------------------------------

TORCH = """
import hashlib, json, os, sys
import numpy as np, torch
folder = sys.argv[1]
m = json.load(open(os.path.join(folder, "manifest.json")))
for s in m["shards"]:
    records = np.memmap(os.path.join(folder, s["name"]), np.dtype(m["dtype"]), mode="c")
    images = torch.from_numpy(records["image"].copy())
    weights = torch.from_numpy(records["weight"].copy())
    for i in torch.nonzero(weights).flatten().tolist():
        print(bytes(records["filename"][i]).decode(), hashlib.sha256(images[i].numpy().tobytes()).hexdigest())
"""

DALI = """
import hashlib, json, os, sys
from nvidia.dali import fn, pipeline_def, tfrecord
folder = sys.argv[1]
m = json.load(open(os.path.join(folder, "manifest.json")))
files = [os.path.join(folder, s["name"]) for s in m["shards"]]
@pipeline_def(batch_size=8, num_threads=2, device_id=None)
def pipeline():
    r = fn.readers.tfrecord(name="r", path=files, index_path=[f + ".idx" for f in files], features={
        "image/raw": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/filename": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/weight": tfrecord.FixedLenFeature([1], tfrecord.int64, 0)})
    return r["image/raw"], r["image/filename"], r["image/weight"]
pipe = pipeline()
pipe.build()
left = pipe.epoch_size("r")
while left > 0:
    raw, name, weight = (x.as_cpu() for x in pipe.run())
    for i in range(min(left, 8)):
        if weight.at(i)[0] == 1:
            print(name.at(i).tobytes().decode(), hashlib.sha256(raw.at(i).tobytes()).hexdigest())
    left -= 8
"""


def check_script(made, module, script):
    """The script prints name and SHA-256 of the pixels of each image."""
    done = run([python_with(module), "-c", script, made.out])
    found = dict(line.split() for line in done.stdout.splitlines())
    offset, size = made.manifest["record"]["pixel_offset"], made.manifest["record"]["height"] ** 2
    where = dict(zip(made.manifest["dtype"]["names"], made.manifest["dtype"]["offsets"]))
    wanted = {}
    for _, _, frame in made.frames():
        if frame[where["weight"]] == 1:
            name = frame[where["filename"]:where["filename"] + 16].decode()
            wanted[name] = hashlib.sha256(frame[offset:offset + size]).hexdigest()
    assert found == wanted, f"{len(found)} images instead of {len(wanted)}, or other pixels"


@case("PyTorch reads the pixels that are in the shards", slow=True)
def _(_work):
    check_script(small(), "torch", TORCH)


@case("DALI reads the pixels that are in the shards through the index", slow=True)
def _(_work):
    check_script(small(), "nvidia.dali", DALI)


# ---- a data set that exists ----------------------------------------------------------------------------------------


class Existing(Made):
    """One that was made before."""

    def __init__(self, out, images, labels):  # pylint: disable=super-init-not-called
        self.images, self.labels, self.out = images, labels, out
        self.manifest = manifest(out)
        self.rows = rows_of(labels)


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--tensorflow":
        made = Existing(*sys.argv[2:])
        count, weighted = check_tensorflow(made, paths_of(made.images))
        print(f"TensorFlow read {count} records, {weighted} of weight 1: pixels, labels and names are those of the "
              "sources")
        return 0
    return case.main()


if __name__ == "__main__":
    sys.exit(main())
