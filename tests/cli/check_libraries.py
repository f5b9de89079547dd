#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which library does what, and when: calls of libpng, zlib and protobuf-c, counted by a preloaded library.

    check_libraries.py [PATTERN]

What README.md, ARCHITECTURE.md and chex-convert(1) say about the libraries is tested here.  With CHEX_NIH the images
are real ones, else synthetic ones in their format.
"""
import gzip
import os
import re
import shutil
import sys

import harness
from fixtures import LABELS, fixture
from support import BUILD, Cases, Skip, program, run, same_tree, says, slurp, write

case = Cases()
COUNTED = {"png_create_read_struct_2", "inflateInit_", "inflateInit2_", "crc32", "crc32_z", "protobuf_c_message_unpack"}


def preloaded(name, tool):
    """The path of a library to be preloaded into the tool."""
    library = os.path.abspath(os.path.join(BUILD, "tests", "faults", name))
    if not os.path.exists(library):
        raise Skip(f"{name} is not built")
    if harness.sanitizer(tool):
        raise Skip("the sanitizer has to be the first library")
    return library


def calls(work, *command):
    """The functions that the command called."""
    library = preloaded("count_calls.so", command[0])
    path = write(os.path.join(work, "calls"), "")
    run(command, env=dict(os.environ, LD_PRELOAD=library, CHEX_CALLS=path))
    counts = dict(line.split() for line in slurp(path).decode().splitlines())
    assert counts.keys() == COUNTED, counts
    return {name for name, count in counts.items() if count != "0"}


def images():
    """(folder of images, plain label file): real ones if there are any."""
    nih = os.environ.get("CHEX_NIH")
    if not nih or not os.path.isdir(os.path.join(nih, "images")):
        return os.path.join(fixture("images"), "images"), slurp(os.path.join(fixture("images"), LABELS))
    return os.path.join(nih, "images"), gzip.decompress(slurp(os.path.join(nih, "csv", LABELS + ".gz")))


def convert(out, images_at, labels, *options):
    return calls(os.path.dirname(out), program("chex-convert"), "-q", "-i", images_at, "-l", labels, "-o", out,
                 "--split", "none", "--size", "64", "--allow-missing", "--verify", *options)


@case("a conversion of NIH's images and --full of the result call neither libpng, zlib nor protobuf-c")
def _(work):
    folder, csv = images()
    labels = write(os.path.join(work, "labels.csv"), csv)
    inputs = [folder]
    if not re.search(r"^libarchive +none$", run([program("chex-convert"), "-Vv"]).stdout, re.M):
        inputs.append(shutil.make_archive(os.path.join(work, "images"), "gztar", folder))
    for number, path in enumerate(inputs):
        out = os.path.join(work, f"out{number}")
        assert convert(out, path, labels) == set(), path
        assert calls(work, program("chex-inspect"), "-q", "check", "--full", "--sha256", out) == set(), path


@case("zlib reads label files that are compressed by gzip")
def _(work):
    folder, csv = images()
    labels = write(os.path.join(work, "labels.csv.gz"), gzip.compress(csv))
    called = convert(os.path.join(work, "out"), folder, labels)
    assert "inflateInit2_" in called and called <= {"inflateInit2_", "crc32", "crc32_z"}, called


@case("libpng, with zlib, decodes every other PNG")
def _(work):
    run([program("chex-synth"), "-q", "-n", 20, "--size", 64, "--odd", "100%", "-o", os.path.join(work, "odd")])
    folder, labels = os.path.join(work, "odd", "images"), os.path.join(work, "odd", LABELS)
    called = convert(os.path.join(work, "out"), folder, labels)
    assert {"png_create_read_struct_2", "crc32_z"} <= called and called & {"inflateInit_", "inflateInit2_"}, called
    assert "protobuf_c_message_unpack" not in called


@case("--cross-check decodes the chosen images again with libpng, and writes the same data set")
def _(work):
    folder, csv = images()
    labels = write(os.path.join(work, "labels.csv"), csv)
    assert convert(os.path.join(work, "plain"), folder, labels) == set()
    assert "png_create_read_struct_2" in convert(os.path.join(work, "checked"), folder, labels, "--cross-check", "100%")
    same_tree(os.path.join(work, "plain"), os.path.join(work, "checked"))


@case("--cross-check ends with 70 and names the image if libpng decodes another pixel")
def _(work):
    folder, csv = images()
    labels = write(os.path.join(work, "labels.csv"), csv)
    tool = program("chex-convert")
    command = [tool, "-i", folder, "-l", labels, "-o", os.path.join(work, "out"), "--allow-missing", "--size", "64"]
    env = dict(os.environ, LD_PRELOAD=preloaded("other_pixels.so", tool))
    says(run([*command, "--cross-check", "100%"], code=70, env=env),
         r"'\S+\.png': libpng decodes other pixels: \d+, not \d+, in row 0, column 0")
    assert not os.path.exists(os.path.join(work, "out", "manifest.json"))
    run(command, env=env)


@case("protobuf-c reads TFRecord files that no manifest names")
def _(work):
    source = fixture("dataset")
    shard = sorted(name for name in os.listdir(source) if ".tfrecord-" in name)[0]
    path = shutil.copy(os.path.join(source, shard), os.path.join(work, "alone.tfrecord"))
    assert calls(work, program("chex-inspect"), "-q", "check", "--full", path) == {"protobuf_c_message_unpack"}


if __name__ == "__main__":
    sys.exit(case.main())
