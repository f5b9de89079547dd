# SPDX-License-Identifier: Apache-2.0
"""Images, data sets and runs that several test programs read: made once for all of them, kept in the build folder.

A fixture is a folder that one command of ours made.  Its place is named after the command and the programs, so that a
program that was built again makes its fixtures again.  It appears by rename: test programs that run side by side may
make the same one, and the first wins.  Nobody writes into it.
"""
import hashlib
import os
import shutil
import tempfile

from support import BUILD, program, run

LABELS = "Data_Entry_2017_v2020.csv"

# name: (program, words); "@other" is the path of another fixture
TABLE = {
    # small images with both lists, images that take a while, and data sets of them
    "images": ("chex-synth", "-n 60 --size 64"),
    "images120": ("chex-synth", "-n 120 --size 64"),
    "larger": ("chex-synth", "-n 120 --size 384"),
    "dataset": ("chex-convert", f"-i @images/images -l @images/{LABELS} --size 32 --shard-size 8"),
    "seed9": ("chex-convert", f"-i @images/images -l @images/{LABELS} --size 32 --shard-size 8 --seed 9"),
    # three splits for small runs, and one such run
    "trainable": ("chex-convert", f"-i @images120/images -l @images120/{LABELS} --size 36 --shard-size 16"
                                  " --split patient:50,25,25"),
    "trainable8": ("chex-convert", f"-i @images120/images -l @images120/{LABELS} --size 36 --shard-size 8"
                                   " --split patient:50,25,25"),
    "run": ("chex-train", "-d @trainable --model densenet-micro --crop 32 --batch 16 --epochs 1 --bootstrap 0 -j 1"),
}


def stamp():
    """What the fixtures depend on: the table, and the programs by size and time."""
    seen = [os.stat(program(name)) for name in sorted({name for name, _ in TABLE.values()})]
    return hashlib.sha256(repr([TABLE, *((s.st_size, s.st_mtime_ns) for s in seen)]).encode()).hexdigest()[:16]


def fixture(name):
    """The folder of this fixture; read only."""
    maker, words = TABLE[name]
    home = os.path.join(BUILD, "tests", "fixtures")
    folder = os.path.join(home, stamp())
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        return path
    words = [expand(word) for word in words.split()]
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(home):
        if old != stamp():
            shutil.rmtree(os.path.join(home, old), ignore_errors=True)
    made = tempfile.mkdtemp(dir=folder, prefix=".new-")
    run([program(maker), "-q", *words, "-o", os.path.join(made, name)])
    try:
        os.rename(os.path.join(made, name), path)
    except OSError:
        assert os.path.isdir(path)  # somebody else was first
    shutil.rmtree(made)
    return path


def expand(word):
    """@name and @name/path: that of the fixture; @@: an @."""
    before, at, rest = word.partition("@")
    if not at:
        return word
    if rest.startswith("@"):
        return before + "@" + rest[1:]
    name, slash, below = rest.partition("/")
    return before + fixture(name) + slash + below
