# SPDX-License-Identifier: Apache-2.0
"""What the tests of chex-train share: small data sets, a run that nobody disturbed, and what must be equal to it.

All with densenet-micro on synthetic images of some dozens of pixels, one process.
"""
import json
import os
import re
import shutil
import struct
import tempfile

import harness
from fixtures import fixture
from support import manifest, program, run, slurp, synth, tree, write

EXACT = re.compile(r"step-.*|latest|best\.safetensors|predictions-.*|metrics-.*\.json|auroc.*\.svg")


class Shared:
    """Data sets, made once by the first case that needs them."""
    folder = None
    sets = {}


def scratch():
    """Memory where there is some: a checkpoint is fsync'ed several times."""
    if not Shared.folder:
        Shared.folder = tempfile.mkdtemp(dir=harness.SCRATCH, prefix="chex-train-")
    return Shared.folder


def three_splits(name, images, shard_size, split, *more):
    """A small data set, made now; more are words of chex-synth."""
    folder = os.path.join(scratch(), name)
    labels = synth(folder + ".images", images, "--size", "64", *more)
    run([program("chex-convert"), "-q", "-i", folder + ".images/images", "-l", labels, "-o", folder, "--size", "36",
         "--shard-size", str(shard_size), "--split", split])
    return folder


def data(name="plain"):
    """A small data set of three splits; another one for any other name."""
    if name == "plain":
        return fixture("trainable")
    if name not in Shared.sets:
        Shared.sets[name] = three_splits(name, 120, 16, "patient:50,25,25", "--seed", str(2 + len(Shared.sets)))
    return Shared.sets[name]


def copy(work, name="plain"):
    folder = os.path.join(work, "copy")
    shutil.copytree(data(name), folder)
    return folder


def run_folder(work, name="run"):
    """Where checkpoints are fast, and gone with the work folder."""
    folder = tempfile.mkdtemp(dir=scratch())
    link = os.path.join(work, name)
    os.symlink(folder, link)
    return link


def command(out, *more, source=None):
    return [program("chex-train"), "-d", source or data(), "-o", out, "--model", "densenet-micro", "--crop", "32",
            "--batch", "16", "--epochs", "3", "--bootstrap", "20", "-j", "1", *map(str, more)]


def train(out, *more, code=0, source=None, **options):
    return run(command(out, *more, source=source), code, **options)


def kept(folder):
    """{name: SHA-256} of what must not depend on when a run was killed."""
    return {name: digest for name, digest in tree(folder).items() if EXACT.fullmatch(name)}


def last_step(folder):
    with open(os.path.join(folder, "latest"), encoding="ascii") as f:
        return f.readline().split()[0]


def whole():
    """The folder of a run that nobody disturbed."""
    if "whole" not in Shared.sets:
        folder = os.path.join(scratch(), "whole-run")
        train(folder)
        Shared.sets["whole"] = folder
    return Shared.sets["whole"]


def same_as_whole(folder, reference=None, but=()):
    wanted, got = kept(reference or whole()), kept(folder)
    # Which older checkpoints stayed depends on when there was a save: the newest and the best count.
    names = {n for n in wanted if not n.startswith("step-")} - {"latest", *but}
    newest = last_step(reference or whole())
    names |= {newest + ".safetensors", newest + ".opt.safetensors"}
    differ = [n for n in sorted(names) if wanted.get(n) != got.get(n)]
    assert last_step(folder) == newest, f"{last_step(folder)} instead of {newest}"
    assert not differ, f"other bytes in {differ}"


def header(path):
    """The JSON of a safetensors file."""
    blob = slurp(path)
    size, = struct.unpack_from("<Q", blob)
    return json.loads(blob[8:8 + size])


def with_header(path, change):
    """Rewrite a safetensors file with change(header); the values stay where they are."""
    blob = slurp(path)
    size, = struct.unpack_from("<Q", blob)
    top = json.loads(blob[8:8 + size])
    change(top)
    text = json.dumps(top).encode()
    text += b" " * (-(8 + len(text)) % 64)
    write(path, struct.pack("<Q", len(text)) + text + blob[8 + size:])


def poison(folder, record=0, name=None):
    """Flip a bit in the pixels of a record of the training split."""
    m = manifest(folder)
    shard = os.path.join(folder, name or next(s["name"] for s in m["shards"] if "-train." in s["name"]))
    blob = bytearray(slurp(shard))
    blob[m["record"]["stride"] * record + m["record"]["pixel_offset"] + 5] ^= 1
    write(shard, bytes(blob))
    return shard


def finish(case):
    """Run the cases; the data sets are gone then."""
    code = case.main()
    if Shared.folder:
        shutil.rmtree(Shared.folder, ignore_errors=True)
    return code
