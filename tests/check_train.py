#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train from outside: exit codes, messages, what is in RUN; runs that are stopped, killed, faulty or misled.

    check_train.py [PATTERN]

All with densenet-micro on synthetic images of some dozens of pixels, one process.  KILLS is the number of kills at random
times (default 20, with CHEX_SLOW 200); 1000 and more: and one at every change of the folder.
"""
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from faults import harness
from support import SLOW, SOURCE, Cases, Skip, manifest, program, run, says, slurp, synth, tree, write

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
KILLS = int(os.environ.get("KILLS") or (200 if SLOW else 20))
SEED = int(os.environ.get("CHEX_SEED") or 1)
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


def data(name="plain"):
    """A small data set of three splits; another one for any other name."""
    if name not in Shared.sets:
        folder = os.path.join(scratch(), name)
        seed = 1 + len(Shared.sets)
        labels = synth(folder + ".images", 120, "--size", "64", "--seed", str(seed))
        run([program("chex-convert"), "-q", "-i", folder + ".images/images", "-l", labels, "-o", folder, "--size", "36",
             "--shard-size", "16", "--split", "patient:50,25,25"])
        Shared.sets[name] = folder
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


# ---- a run -----------------------------------------------------------------------------------------------------------


@case("a run says what it does and leaves what the manual names")
def _(work):
    out = os.path.join(work, "runs", "a")  # its parent is made
    done = train(out)
    says(done, r"chex-train \d+\.\d+\.\d+   1 rank, CPU", r"data     [0-9a-f]{16}, split patient:50,25,25",
         r"model    densenet-micro, 0\.16 M parameters", r"memory   [\d.]+ MB", r"batch    16 images a step, \d+ steps",
         r"init     random \(seed 1\)", r"ep 3/3   loss \d\.\d+  lr 0\.001  \S+ img/s  data wait",
         r"val 3    loss \d\.\d+  AUROC (\S+ \[\S+, \S+\]|n/a) over \d+ findings   best \S+ @\d",
         r"done     test \(patient:50,25,25:\d+, [0-9a-f]{8}\): AUROC \S+ \[\S+, \S+\] over \d+ findings",
         r"research use only, not for diagnosis", r"next     chex-train -d")
    assert not done.stdout
    names = set(os.listdir(out))
    assert {"best.safetensors", "latest", "predictions-val.csv", "predictions-test.csv", "metrics-val.json",
            "metrics-test.json", "auroc.svg", "auroc-test.svg"} <= names, names
    assert len([n for n in names if re.fullmatch(r"step-\d{6}\.safetensors", n)]) == 2, names
    assert not [n for n in names if n.startswith(".")], names


@case("-q says nothing, and a complete run says so and judges again")
def _(work):
    out = run_folder(work)
    assert not train(out, "-q").stderr
    before = kept(out)
    says(train(out), r"resume   step-\d+: \d+ steps, 3 of 3 epochs: complete", "done     test")
    assert kept(out) == before


@case("one of a thing is no plural")
def _(work):
    options = "--batch", "128", "--epochs", "1", "--seed", 2 ** 63 - 1
    done = train(os.path.join(work, "run"), *options)
    says(done, r"batch    128 images a step = 1 rank x .*, 1 step an epoch, 1 epoch\n", r"         1 step, \d+ images in ",
         r"init     random \(seed 9223372036854775807\)")
    again = train(os.path.join(work, "run"), *options)
    says(again, "resume   step-000001: 1 step, 1 of 1 epoch: complete")
    for text in done.stderr, again.stderr:
        assert not re.search(r"\b1 (steps|epochs|ranks|threads|findings|images|patients)\b", text), text


@case("--version -v has the versions of the libraries, MPI too")
def _(_work):
    for name in ("chex-train", "chex-convert"):
        printed = run([program(name), "--version", "-v"]).stdout
        assert re.search(r"^openssl        \S+$", printed, re.M) and re.search(r"^mpi            \S", printed, re.M), printed
        assert "\n" not in run([program(name), "--version"]).stdout.strip()


@case("--json is one document, valid by its schema, after a success and after a failure")
def _(work):
    if not jsonschema:
        raise Skip("no Python module jsonschema")
    schema = json.loads(slurp(os.path.join(SOURCE, "schemas", "train.schema.json")))
    good = json.loads(train(run_folder(work), "--json", "-q").stdout)
    jsonschema.validate(good, schema)
    assert good["exit_code"] == 0 and good["result"]["epochs"] == 3 and good["final"]["split"] == "test"
    bad = json.loads(train(os.path.join(work, "none"), "--json", "-q", code=3, source="/nonexistent").stdout)
    jsonschema.validate(bad, schema)
    assert bad["exit_code"] == 3 and bad["plan"] is None and "nonexistent" in bad["error"]
    train(run_folder(work, "full"), "--json", "-q", code=4, stdout=open("/dev/full", "w"))  # row 92


@case("-v has the time of each part, the order and the checkpoints")
def _(work):
    says(train(run_folder(work), "-v"), r"time     data_wait \S+ %  forward \S+ %  backward \S+ %  reduce \S+ %  optimizer",
         r"order    [0-9a-f]{16}", r"saved    step-000000 in", r"saved    step-000018 in")


@case("the same bytes whatever the threads; other ones with another seed")
def _(work):
    two, other = run_folder(work, "two"), run_folder(work, "other")
    train(two, "-j", 2, "-q")
    same_as_whole(two)
    assert kept(two) == kept(whole())
    train(other, "--seed", 2, "-q")
    assert kept(other)["best.safetensors"] != kept(whole())["best.safetensors"]


@case("what goes into a step: options of optimizer, loss and schedule run and differ")
def _(work):
    seen = {kept(whole())["best.safetensors"]}
    weights = write(os.path.join(work, "weights"), "# of positives\n" + "".join(
        f"{name},{i + 1.5}\n" for i, name in enumerate(manifest(data())["labels"])))
    for i, more in enumerate((["--optimizer", "sgd", "--lr", "0.01"], ["--optimizer", "adamw"], ["--loss", "focal"],
                              ["--pos-weight", "auto"], ["--pos-weight", weights], ["--augment", "none"],
                              ["--schedule", "cosine"], ["--warmup", "5"], ["--clip", "0.1"], ["--ema", "0.9"],
                              ["--weight-decay", "0.1"], ["--micro-batch", "8"], ["--accumulate", "2"],
                              ["--batch", "8"], ["--crop", "20"])):
        out = run_folder(work, f"run{i}")
        train(out, "-q", "--epochs", "1", *more)
        seen.add(kept(out)["best.safetensors"])
    assert len(seen) == 16, len(seen)


@case("accumulated batches are one large one but for batch statistics")
def _(work):
    a, b = run_folder(work, "a"), run_folder(work, "b")
    train(a, "-q", "--batch", 8, "--accumulate", 4)
    train(b, "-q", "--batch", 32, "--micro-batch", 8)
    assert kept(a)["best.safetensors"] == kept(b)["best.safetensors"]


@case("without val the last model is the best; without test nothing is judged at the end")
def _(work):
    folder = os.path.join(work, "all")
    images = data() + ".images"
    run([program("chex-convert"), "-q", "-i", images + "/images", "-l", images + "/Data_Entry_2017_v2020.csv", "-o", folder,
         "--size", "36", "--split", "none"])
    out = run_folder(work)
    done = train(out, "--epochs", 2, source=folder)
    says(done, "no split train: trained on all images", "no split val: the learning rate follows the training loss",
         r"done     .*best\.safetensors", r"next     .*--eval-only --split all --tta ")
    names = os.listdir(out)
    assert "best.safetensors" in names and not [n for n in names if n.startswith("predictions")], names
    says(train(run_folder(work, "early"), "--early-stop", 2, code=2, source=folder), "--early-stop needs a split 'val'")


@case("--early-stop ends a run that gets no better, and it stays ended")
def _(work):
    out = run_folder(work)
    done = train(out, "--epochs", 40, "--early-stop", 2, "--lr", "1e-12", "--schedule", "constant")
    epochs = len(re.findall(r"^val ", done.stderr, re.M))
    assert 3 <= epochs < 40, epochs
    says(done, "ended early")
    before = kept(out)
    says(train(out, "--epochs", 40, "--early-stop", 2, "--lr", "1e-12", "--schedule", "constant"), "complete")
    assert kept(out) == before


@case("--eval-only judges the best model without naming its kind again; --predict goes anywhere")
def _(work):
    out = os.path.join(work, "run")
    shutil.copytree(whole(), out)
    os.unlink(os.path.join(out, "predictions-test.csv"))
    base = [program("chex-train"), "-d", data(), "--eval-only", "--bootstrap", "20"]
    run([*base, "-o", out])
    assert kept(out)["predictions-test.csv"] == kept(whole())["predictions-test.csv"]
    csv = os.path.join(work, "p.csv")
    run([*base, "--init", os.path.join(whole(), "best.safetensors"), "--predict", csv])
    assert slurp(csv) == slurp(os.path.join(whole(), "predictions-test.csv"))
    says(run([*base, "-o", out, "--split", "train", "--tta", "flip"]), r"done     train \(.*/auroc-train\.svg")
    before = kept(out)
    says(run([*base, "-o", out, "--split", "val", "--tta", "flip"]), r"done     val \(.*/auroc-val\.svg")
    changed = {name for name, digest in kept(out).items() if before.get(name) != digest}
    assert changed == {"auroc-val.svg", "metrics-val.json", "predictions-val.csv"}, changed
    results = os.path.join(work, "no", "such", "folder")
    done = run([*base, "--init", os.path.join(whole(), "best.safetensors"), "-o", results])
    says(done, "done     test .*" + re.escape(os.path.join(results, "auroc-test.svg")))
    assert "best.safetensors   " not in done.stderr.splitlines()[-2]
    assert set(os.listdir(results)) == {"auroc-test.svg", "metrics-test.json", "predictions-test.csv"}
    assert kept(results)["predictions-test.csv"] == kept(whole())["predictions-test.csv"]
    says(run([*base, "--init", os.path.join(work, "none"), "-o", os.path.join(work, "unmade")], 3), "cannot open")
    assert not os.path.exists(os.path.join(work, "unmade"))
    says(run([*base, "-o", out, "--split", "nothing"], 2), "no split 'nothing'")
    says(run([*base], 2), "needs RUN")
    says(run([*base, "-o", os.path.join(work, "empty")], 3), "empty")


@case("--dry-run shows the plan and writes nothing")
def _(work):
    out = os.path.join(work, "run")
    says(train(out, "-n"), "memory ", "batch ")
    assert not os.path.exists(out)


# ---- what is refused ---------------------------------------------------------------------------------------------------


@case("usage that cannot be ends with 2 before anything is written")
def _(work):
    out = os.path.join(work, "run")
    for more, text in ((["--batch", "0"], "--batch"), (["--lr", "fast"], "takes a number"),
                       (["--lr", "nan"], "takes a number"), (["--batch", "20", "--micro-batch", "16"], "no multiple"),
                       (["--crop", "500"], "--crop 500 of images of 36"), (["--crop", "4"], "densenet-micro"),
                       (["--split", "test"], "goes with --eval-only"), (["--time-limit", "1x"], "takes a time"),
                       (["--augment", "turn"], "takes flip"), (["--precision", "fp16"], "fp32 only"),
                       (["--pos-weight", data() + "/manifest.json"], "not a line"),
                       (["--checkpoint-every", "0"], "takes a time"), (["stray"], "not an option"),
                       (["--seed", "9223372036854775808"], "--seed: takes a number from 0 to 9223372036854775807, not"),
                       (["--lr"], "option '--lr' needs a value"), (["--dry-run=1"], "'--dry-run=1' takes no value"),
                       (["-o"], "option -o needs a value")):
        says(train(out, *more, code=2), text)
        assert not os.path.exists(out), more
    says(run([program("chex-train"), "-o", out], 2), "no data set")
    says(run([program("chex-train"), "-d", data()], 2), "no folder for the run")


@case("T68 a shard that is not there: 3, named, nothing written")
def _(work):
    folder, out = copy(work), os.path.join(work, "run")
    shard = [s["name"] for s in manifest(folder)["shards"] if "-val." in s["name"]][-1]
    os.unlink(os.path.join(folder, shard))
    says(train(out, code=3, source=folder), re.escape(shard))
    assert not os.path.exists(out)
    write(os.path.join(folder, shard), b"short")
    says(train(out, code=3, source=folder), re.escape(shard))
    says(train(out, code=3, source=os.path.join(work, "none")), "none")
    assert not os.path.exists(out)


@case("T90 a device that is not there: 2; auto says that it takes the CPU")
def _(work):
    out = os.path.join(work, "run")
    done = train(out, "--device", "cuda", "-n", code=None)
    if done.returncode == 0:
        raise Skip("there is a GPU")
    assert done.returncode == 2, done.returncode
    says(done, "--device cuda")
    says(train(out, "-n"), r"CPU.*\(no GPU in use\)")
    assert not os.path.exists(out)


@case("the plain reference learns the same as the fast backend, nearly")
def _(work):
    loss = []
    for device in ("cpu", "ref"):
        done = train(run_folder(work, device), "--device", device, "--epochs", 1)
        loss.append(float(re.search(r"ep 1/1   loss (\S+)", done.stderr).group(1)))
    assert abs(loss[0] - loss[1]) <= 2e-3, loss


# ---- records -----------------------------------------------------------------------------------------------------------


@case("T69 a damaged record: stop saves and ends with 1, skip goes on and ends with 1")
def _(work):
    folder = copy(work)
    shard = poison(folder, 3)
    out = run_folder(work)
    done = train(out, code=1, source=folder)
    says(done, r"shard 0 record 3: .*checksum")
    step = last_step(out)
    # Whoever repairs the file goes on from there, and it is as if nothing had been.
    shutil.copy(os.path.join(data(), os.path.basename(shard)), shard)
    says(train(out, source=folder), f"resume   {step}")
    same_as_whole(out)
    poison(folder, 3)
    done = train(run_folder(work, "skip"), "--on-bad-record", "skip", code=1, source=folder)
    says(done, "damaged records replaced", "done     test")


@case("T70 a shard that becomes shorter under the run: 1, no SIGBUS")
def _(work):
    folder = copy(work)
    out = run_folder(work)
    process = subprocess.Popen(command(out, "--epochs", 1000, "--cache", "none", source=folder), stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("ep 1/"):
            break
    for shard in os.listdir(folder):
        if "-train." in shard:
            os.truncate(os.path.join(folder, shard), 5000)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 1, (process.returncode, rest)
    assert "shard" in rest and "record" in rest, rest
    assert os.path.exists(os.path.join(out, "latest"))


# ---- where images are read ---------------------------------------------------------------------------------------------


@case("--cache keeps the images or not, --crc looks once or always: the same bytes")
def _(work):
    says(train(run_folder(work, "auto")), r"images   train and val, \S+ kB kept in memory \(\S+ GB free\); shuffled as a whole")
    for cache, crc in (("host", "always"), ("none", "first"), ("none", "never")):
        out = run_folder(work, cache + crc)
        kept_or_not = "kept in memory" if cache == "host" else "read in every epoch"
        says(train(out, "--cache", cache, "--crc", crc), kept_or_not)
        same_as_whole(out)
    out = os.path.join(work, "device")
    says(train(out, "--cache", "device", "--device", "cpu", code=2), "--cache device needs a GPU")
    assert not os.path.exists(out)


@case("images that are in memory need no file any more")
def _(work):
    folder, out = copy(work), run_folder(work)
    process = subprocess.Popen(command(out, "--epochs", 6, "--cache", "host", source=folder), stderr=subprocess.PIPE,
                               text=True)
    for line in process.stderr:
        if line.startswith("val 1"):
            break
    for shard in os.listdir(folder):
        if "-train." in shard or "-val." in shard:
            os.truncate(os.path.join(folder, shard), 5000)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 0, (process.returncode, rest)


@case("--shuffle by windows: another order, shown, and a run keeps its own")
def _(work):
    out = run_folder(work)
    says(train(out, "--shuffle", 2, "--time-limit", "0.01s", code=75), r"; shuffled by windows of 2 of \d shards")
    for other in ("whole", "1"):
        says(train(out, "--shuffle", other, code=6), f"made with other options: shuffle 2 -> {other}")
    # Without the option, and so on any machine, the order is that of the run.
    says(train(out), r"note     the order stays that of this run: --shuffle 2", "resume ")
    again = run_folder(work, "again")
    train(again, "--shuffle", 2)
    same_as_whole(out, again)
    assert kept(out)["best.safetensors"] != kept(whole())["best.safetensors"]
    says(train(run_folder(work, "bad"), "--shuffle", "0", code=2), "--shuffle")


def staged(folder):
    """Where the copy lies."""
    name, = os.listdir(folder)
    assert re.fullmatch("chex-[0-9a-f]{16}", name), name
    return os.path.join(folder, name)


@case("--stage copies once, and again what is not right; the run reads the copy, and is the same")
def _(work):
    folder, stage = copy(work), os.path.join(work, "stage")
    out = run_folder(work)
    done = train(out, "--stage", stage, source=folder)
    says(done, r"note     (\d+) shards in \S+/chex-[0-9a-f]{16}: 0 were there, \S+ [kM]B copied in 0:0", "from a copy in")
    same_as_whole(out)
    names = {n for n in os.listdir(folder)}
    assert set(os.listdir(staged(stage))) == names, os.listdir(staged(stage))
    train_shards = sorted(n for n in names if "-train." in n)
    poison(staged(stage), 0, train_shards[0])
    os.truncate(os.path.join(staged(stage), train_shards[1]), 100)
    write(os.path.join(staged(stage), ".left.tmp.1"), b"")
    out = run_folder(work, "two")
    done = train(out, "--stage", stage, source=folder)
    says(done, rf"{len(names) - 1} shards in .*: {len(names) - 3} were there")
    assert set(os.listdir(staged(stage))) == names
    for name in train_shards:
        assert slurp(os.path.join(staged(stage), name)) == slurp(os.path.join(folder, name)), name
    same_as_whole(out)
    # Another data set lies beside it, and takes nothing from it.
    train(run_folder(work, "other"), "--stage", stage, "--epochs", 1, source=data("other"))
    assert len(os.listdir(stage)) == 2


@case("--stage: the copy alone is read once the run has begun, and the source where the copy fails")
def _(work):
    folder, stage, out = copy(work), os.path.join(work, "stage"), run_folder(work)
    process = subprocess.Popen(command(out, "--epochs", 4, "--cache", "none", "--stage", stage, source=folder),
                               stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("ep 1/"):
            break
    for shard in os.listdir(folder):
        if "-train." in shard:
            os.unlink(os.path.join(folder, shard))
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 0, (process.returncode, rest)
    folder = copy(os.path.join(work, "second"))
    process = subprocess.Popen(command(out, "--epochs", 8, "--cache", "none", "--stage", stage, source=folder),
                               stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("ep 5/"):
            break
    for shard in os.listdir(staged(stage)):
        if "-train." in shard:
            os.truncate(os.path.join(staged(stage), shard), 100)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 0, (process.returncode, rest)


@case("--stage: a shard that is damaged at its source is not copied, and judged where it is")
def _(work):
    folder, stage = copy(work), os.path.join(work, "stage")
    shard = os.path.basename(poison(folder, 3))
    done = train(run_folder(work), "--stage", stage, "--on-bad-record", "skip", code=1, source=folder)
    says(done, rf"warning: 1 damaged shards are not copied but read where they are: .*{shard}.*SHA-256",
         "damaged records replaced")
    assert shard not in os.listdir(staged(stage))


@case("--stage: a disk that is full, or a folder that cannot be: 4, and nothing half")
def _(work):
    stage, out = os.path.join(work, "stage"), run_folder(work)
    os.mkdir(stage)
    done = harness.run(command(out, "--stage", stage), [stage], "write:3:ever:ENOSPC")
    assert done.code == 4 and "disk full" in done.err, (done.code, done.err)
    assert not [n for n in os.listdir(staged(stage)) if n.startswith(".") or n == "manifest.json"]
    train(out, "--stage", stage)
    same_as_whole(out)
    blocked = write(os.path.join(work, "file"), "")
    says(train(run_folder(work, "two"), "--stage", blocked, code=4), "cannot open the folder|cannot create the folder")
    small = os.path.join(work, "small")
    os.mkdir(small)
    mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && exec "$@"', small]
    if run(mount + ["true"], None).returncode != 0:
        raise Skip("no tmpfs can be mounted here")
    done = run(mount + command(run_folder(work, "three"), "--stage", small), 4)
    says(done, r"--stage: '\S+' needs \S+ kB more, \S+ kB are free")


@case("T71 another data set: 6, unless it is allowed")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--epochs", 1)
    says(train(out, code=6, source=data("other")), "data-set [0-9a-f]{16} -> [0-9a-f]{16}", "--allow-new-data")
    says(train(out, "--allow-new-data", source=data("other")), "note     changed since step-000006: .*data-set", "done ")


@case("T73 a finding without positives is n/a and not in the mean")
def _(work):
    done = train(run_folder(work), "--epochs", 1)
    says(done, r"n/a \(0 positives\)")
    absent = len(re.findall(r"n/a \(0 positives\)", done.stderr))
    says(done, rf"over {14 - absent} findings")


# ---- diverging ---------------------------------------------------------------------------------------------------------


@case("T72 a loss that is not finite: 7, with what helps; the last good checkpoint stays the latest")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--epochs", 1)
    before = kept(out)
    done = train(out, "--lr", "1e30", "--optimizer", "adam", code=7)
    says(done, r"diverged at step \d+ \(epoch 2\): the (loss|gradient) is not finite (with|after) \d+_\d+\.png",
         r"learning rate 1e\+30; last good checkpoint step-000006; try --lr 5e\+29", "lr 0.001 -> 1e\\+30")
    assert kept(out) == before
    says(train(out, "--lr", "1e-3"), "resume   step-000006", "done ")
    same_as_whole(out)


# ---- signals -----------------------------------------------------------------------------------------------------------


def start(out, *more, **options):
    return subprocess.Popen(command(out, *more, **options), stderr=subprocess.PIPE, text=True)


def wait_for(process, pattern):
    seen = ""
    for line in process.stderr:
        seen += line
        if re.search(pattern, line):
            return seen
    raise AssertionError(f"it never said /{pattern}/:\n{seen}")


def stopped_by(work, number):
    out = run_folder(work, f"by{number}")
    process = start(out, "--epochs", 300, "-v")
    wait_for(process, "^ep 2/")
    process.send_signal(number)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 75, (process.returncode, rest)
    assert re.search(r"next     the same command again goes on from step-\d+", rest), rest
    assert f"saved    {last_step(out)}" in rest, rest
    assert not os.path.exists(os.path.join(out, ".chex.lock"))
    return out


@case("T78 T80 SIGTERM, SIGINT and SIGUSR1: save after the step, 75, and go on to the same end")
def _(work):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        out = stopped_by(work, number)
    step = int(last_step(out)[5:])
    epochs = step // 6 + 2
    straight = run_folder(work, "straight")
    train(straight, "-q", "--epochs", epochs)
    says(train(out, "--epochs", epochs), rf"resume   step-{step:06}", rf"epochs 300 -> {epochs}")
    same_as_whole(out, straight)


@case("T80 SIGUSR2: save and go on, which changes nothing")
def _(work):
    out = run_folder(work)
    process = start(out, "--epochs", 12, "-v", "--checkpoint-every", "never")
    wait_for(process, "^init")
    for _ in range(6):
        process.send_signal(signal.SIGUSR2)
        time.sleep(0.05)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 0, rest
    straight = run_folder(work, "straight")
    train(straight, "-q", "--epochs", 12)
    same_as_whole(out, straight)


@case("--time-limit saves and ends with 75")
def _(work):
    out = run_folder(work)
    done = train(out, "--epochs", 100000, "--time-limit", "1.5s", code=75)
    says(done, "next     the same command again", "stopped at step")
    assert os.path.exists(os.path.join(out, "latest"))


# ---- checkpoints ---------------------------------------------------------------------------------------------------------


@case("T81 a --resume that is not there: 3, and no new run")
def _(work):
    out = run_folder(work)
    says(train(out, "--resume", os.path.join(work, "step-000100.safetensors"), code=3), "step-000100")
    says(train(out, "--resume", os.path.join(work, "nowhere", "x.safetensors"), code=3), "nowhere")
    assert not os.path.exists(os.path.join(out, "latest"))
    # One that is there is taken, whatever RUN holds; --resume none begins anew.
    source = os.path.join(whole(), "step-000012.safetensors")
    says(train(out, "--resume", source), "resume   step-000012: 12 steps, 2 of 3 epochs")
    judged = ("predictions-val.csv", "metrics-val.json")  # of the best model, which came from there
    same_as_whole(out, but=judged)
    says(train(out, "--resume", whole()), "resume   step-000018")
    same_as_whole(out, but=judged)
    says(train(out, "--resume", "none"), "init     random")
    same_as_whole(out)


@case("a run that is taken back and goes another way does not keep the best model of the first one")
def _(work):
    out = run_folder(work)
    more = ["--keep", 0, "--epochs", 6, "--select", "loss"]
    best = json.loads(train(out, "--json", "-q", *more).stdout)["result"]["best_step"]
    assert best >= 12, best
    source = os.path.join(out, "step-{:06}.safetensors")
    other = ["--lr", "1e-9", *more]
    done = train(out, "--resume", source.format(best), *other)
    assert "is not there" not in done.stderr, done.stderr
    done = train(out, "--resume", source.format(best - 6), *other)
    says(done, rf"changed since step-{best - 6:06}: lr 0\.001 -> 1e-09",
         rf"the best model of step {best - 6} is not there \(it is of another step\)", rf"val {best // 6} .* best .* @{best // 6} ")


def damage(path, how):
    blob = bytearray(slurp(path))
    if how == "cut":
        blob = blob[:len(blob) // 2]
    else:
        blob[len(blob) * 2 // 3] ^= 4
    write(path, bytes(blob))


@case("T82 a damaged latest: the one before is used and the file kept as .bad; an explicit path is an error")
def _(work):
    for how in ("cut", "flip"):
        for suffix in (".safetensors", ".opt.safetensors"):
            out = os.path.join(work, how + suffix)
            shutil.copytree(whole(), out)
            newest = last_step(out) + suffix
            damage(os.path.join(out, newest), how)
            says(train(out, "--resume", os.path.join(out, last_step(out) + ".safetensors"), code=6), newest)
            done = train(out)
            says(done, rf"warning: the latest checkpoint is damaged \(.*{newest}.*\); using step-000012",
                 "resume   step-000012")
            assert os.path.exists(os.path.join(out, newest + ".bad"))
            same_as_whole(out)


@case("T82 no whole checkpoint: 6, and no new run over it; a damaged list of them does not matter")
def _(work):
    out = os.path.join(work, "run")
    shutil.copytree(whole(), out)
    write(os.path.join(out, "latest"), "nonsense\n")
    says(train(out), "using step-000018")
    for name in os.listdir(out):
        if name.startswith("step-"):
            damage(os.path.join(out, name), "cut")
    before = kept(out)
    says(train(out, code=6), "no whole checkpoint")
    assert kept(out) == before


@case("T83 a checkpoint of another kind: 6, and what differs")
def _(work):
    for more, text in ((["--model", "densenet121"], "model densenet-micro -> densenet121"), (["--crop", "24"], "crop 32 -> 24"),
                       (["--seed", "9"], "seed 1 -> 9"), (["--optimizer", "sgd"], "optimizer adam -> sgd"),
                       (["--loss", "focal"], "loss bce -> focal"), (["--ema", "0.9"], "ema 0 -> 0.9"),
                       (["--pos-weight", "auto"], "pos-weight none -> auto"),
                       (["--augment", "none", "--seed", "3"], "augment flip,crop -> none")):
        before = kept(whole())
        says(train(whole(), *more, "--epochs", "4", code=6), re.escape(text))
        assert kept(whole()) == before
    best = os.path.join(whole(), "best.safetensors")
    says(train(run_folder(work), "--model", "resnet50", "--crop", "32", "--init", best, code=6),
         r"tensors of resnet50 do not fit: conv1\.weight: wanted 64x3x7x7, found none")
    other = shutil.copy(best, os.path.join(work, "labels.safetensors"))

    def swap(top):
        names = top["__metadata__"]["labels"].split(",")
        top["__metadata__"]["labels"] = ",".join(names[::-1])
    with_header(other, swap)
    says(run([program("chex-train"), "-d", data(), "--eval-only", "--model", "densenet-micro", "--crop", "32", "--init", other,
              "--predict", os.path.join(work, "p.csv")], 6), "findings are 'Hernia,")


@case("T84 hostile checkpoints: 6 before anything is allocated")
def _(work):
    best = slurp(os.path.join(whole(), "best.safetensors"))
    size, = struct.unpack_from("<Q", best)
    text = best[8:8 + size]
    first = json.loads(text)
    tensor = next(k for k in first if k != "__metadata__")
    last = max((k for k in first if k != "__metadata__"), key=lambda k: first[k]["data_offsets"][1])

    def packed(top):
        blob = top if isinstance(top, bytes) else json.dumps(top).encode()
        return struct.pack("<Q", len(blob)) + blob + best[8 + size:]

    def changed(name, **values):
        top = json.loads(text)
        top[name].update(values)
        return packed(top)
    hostile = {
        "length": struct.pack("<Q", 2 ** 63) + best[8:], "longer": struct.pack("<Q", len(best) + 1) + best[8:],
        "overlap": changed(last, data_offsets=first[tensor]["data_offsets"]),
        "shape": changed(last, shape=[2 ** 40, 2 ** 40]), "negative": changed(last, shape=[-1]),
        "twice": packed(text.rstrip()[:-1] + b"," + json.dumps({tensor: first[tensor]}).encode()[1:]),
        "deep": packed(b"[" * 100000), "pickle": b"\x80\x02}q\x00.", "zip": b"PK\x03\x04" + bytes(100), "empty": b"",
        "nan": best[:8 + size] + b"\xff" * (len(best) - 8 - size),
    }
    for name, blob in hostile.items():
        path = write(os.path.join(work, name + ".safetensors"), blob)
        out = os.path.join(work, "run-" + name)

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        done = train(out, "--init", path, code=6, preexec_fn=None if os.environ.get("ASAN_OPTIONS") else limit)
        says(done, re.escape(name + ".safetensors"))
        assert not os.path.exists(os.path.join(out, "latest")), name


@case("T85 a checkpoint of a newer version: 6")
def _(work):
    out = os.path.join(work, "run")
    shutil.copytree(whole(), out)
    name = last_step(out) + ".safetensors"
    os.unlink(os.path.join(out, "latest"))

    def newer(top):
        top["__metadata__"]["chex_format"] = "3"
    with_header(os.path.join(out, name), newer)
    says(train(out, "--resume", os.path.join(out, name), code=6), "format 3, this build reads up to 1")


@case("T86 another batch: 6 unless allowed; the same images in other parts are no change")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--epochs", 1)
    says(train(out, "--batch", 32, "--micro-batch", 16, code=6), "global-batch 16 -> 32", "--allow-batch-change")
    says(train(out, "--batch", 32, "--micro-batch", 16, "--allow-batch-change"), "note .*global-batch 16 -> 32", "done ")
    out = run_folder(work, "parts")
    train(out, "-q", "--epochs", 1, "--batch", 16, "--micro-batch", 8)
    train(out, "-q", "--batch", 8, "--accumulate", 2)  # the same micro-batches
    straight = run_folder(work, "straight")
    train(straight, "-q", "--batch", 16, "--micro-batch", 8)
    wanted, got = (header(os.path.join(f, "best.safetensors")) for f in (straight, out))
    assert wanted.keys() == got.keys()
    assert slurp(os.path.join(straight, "predictions-test.csv")) == slurp(os.path.join(out, "predictions-test.csv"))


@case("what may change does, and is said: the rate, the epochs")
def _(work):
    out = run_folder(work)
    train(out, "-q", "--epochs", 1)
    says(train(out, "--epochs", 2, "--lr", "1e-4"), r"changed since step-000006: epochs 1 -> 2, lr 0\.001 -> 0\.0001",
         r"ep 2/2   loss \S+  lr 0\.0001")


@case("--init takes the weights of a file, and random ones for a last layer that does not fit")
def _(work):
    best = os.path.join(whole(), "best.safetensors")
    out = run_folder(work)
    says(train(out, "--init", best, "--epochs", 1), r"init     .*best\.safetensors, \d+ of \d+ tensors$|init ")
    fewer = shutil.copy(best, os.path.join(work, "other.safetensors"))

    def rename(top):
        for kind in ("weight", "bias"):
            top["other." + kind] = top.pop("classifier." + kind)
        del top["__metadata__"]
    with_header(fewer, rename)
    says(train(run_folder(work, "head"), "--init", fewer, "--epochs", 1), "the last layer random",
         "2 tensors of the file are not used")


@case("T88 two jobs in one folder: 5, and the first is not disturbed")
def _(work):
    out = run_folder(work)
    first = start(out, "--epochs", 30)
    wait_for(first, "^init")
    says(train(out, "--epochs", 30, code=5), "is in use by")
    says(run([program("chex-train"), "-d", data(), "-o", out, "--eval-only"], 5), "is in use by")
    assert first.communicate(timeout=120) and first.returncode == 0


# ---- disks ---------------------------------------------------------------------------------------------------------------


@case("T87 a disk that is full for checkpoints: training goes on, warns, and ends with 4")
def _(work):
    out = run_folder(work)
    done = harness.run(command(out), [os.path.realpath(out)], "sync:4:ever:ENOSPC")
    assert done.code == 4, (done.code, done.err)
    assert len(re.findall(r"warning: checkpoint of step \d+ NOT saved: .*; training goes on", done.err)) >= 1, done.err
    assert "ep 3/3" in done.err and "its last checkpoint could not be written" in done.err, done.err
    # Nothing half: the next start begins where something whole is, and comes to the same end.
    train(out, "-q")
    same_as_whole(out)


@case("T87 a disk that was full for a while: the run ends well and with the same bytes")
def _(work):
    tries = 0
    for nth in (3, 5, 8, 11, 14):
        out = run_folder(work, f"run{nth}")
        done = harness.run(command(out), [os.path.realpath(out)], f"sync:{nth}:once:ENOSPC")
        tries += "NOT saved" in done.err or "tried again" in done.err
        if done.code == 0:
            same_as_whole(out)
        else:
            assert done.code == 4, (done.code, done.err)
            train(out, "-q")
            same_as_whole(out)
    assert tries >= 3, tries


@case("a folder that cannot be written to: 4 before the first step")
def _(work):
    blocked = write(os.path.join(work, "file"), "")
    says(train(blocked, code=4), "cannot open the folder|cannot create the folder")
    says(train(os.path.join(blocked, "run"), code=4), "file/run")


# ---- those who watch -----------------------------------------------------------------------------------------------------


def lines(folder):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@case("metrics.jsonl has each step, epoch and evaluation once, whatever was killed in between; run.json each start")
def _(work):
    out = run_folder(work)
    more = ["--checkpoint-every", "4steps"]
    for nth in (90, 130):
        assert harness.run(command(out, *more), [os.path.realpath(out)], f"change:{nth}:once:kill").code == -9
    train(out, "-q", *more)
    seen = lines(out)
    assert [s["step"] for s in seen if s["kind"] == "step"] == list(range(1, 19)), seen
    assert [e["epoch"] for e in seen if e["kind"] == "epoch"] == [1, 2, 3]
    assert [(e["split"], e["step"]) for e in seen if e["kind"] == "evaluation"] == [
        ("val", 6), ("val", 12), ("val", 18), ("test", last_best(out))]
    about = json.loads(slurp(os.path.join(out, "run.json")))
    assert [s["exit"] for s in about["sessions"]] == [None, None, 0], about["sessions"]
    assert about["options"]["lr"] == 0.001 and about["options"]["model"] == "densenet-micro", about["options"]
    assert "--checkpoint-every" in about["sessions"][0]["command"]
    assert {r["split"] for r in about["results"]} == {"val", "test"}
    assert any(name.startswith("events.out.tfevents.") for name in os.listdir(out))
    if jsonschema:
        schemas = [json.loads(slurp(os.path.join(SOURCE, "schemas", f"{name}.schema.json"))) for name in ("metrics", "run")]
        for line in seen:
            jsonschema.Draft202012Validator(schemas[0]).validate(line)
        jsonschema.Draft202012Validator(schemas[1]).validate(about)


def last_best(folder):
    state = json.loads(header(os.path.join(folder, "best.safetensors"))["__metadata__"]["state"])
    return int(state["step"])


@case("T91 what only people watch cannot be written: one warning, and the run is the same")
def _(work):
    out = run_folder(work)
    os.makedirs(os.path.join(out, "metrics.jsonl"))
    os.makedirs(os.path.join(out, "run.json"))
    done = train(out)
    says(done, "warning: .*metrics.jsonl", "warning: .*run.json")
    assert len(re.findall(r"warning: .*metrics\.jsonl", done.stderr)) == 1, done.stderr
    same_as_whole(out)


@case("--trace and --metrics-file write what their readers take")
def _(work):
    trace, prom = os.path.join(work, "t.json"), os.path.join(work, "m.prom")
    train(run_folder(work), "-q", "--trace", trace, "--metrics-file", prom)
    events = json.loads(slurp(trace))
    assert {"forward", "backward", "optimizer", "evaluation"} <= {e["name"] for e in events}, events[:20]
    assert b"chex_train_running 0" in slurp(prom)
    says(train(run_folder(work, "bad"), "--metrics-file", os.path.join(work, "m.txt"), code=2), r"--metrics-file: .*\.prom")


# ---- kills ---------------------------------------------------------------------------------------------------------------


@case("kill -9 at every change of the folder: the rerun ends with the same bytes")
def _(work):
    report = os.path.join(work, "report")
    out = run_folder(work)
    more = ["--checkpoint-every", "4steps"]
    straight = harness.run(command(out, *more), [os.path.realpath(out)], report=report)
    assert straight.code == 0, straight.err
    changes = straight.counts["change"]
    assert changes > 100, changes
    same_as_whole(out)
    step = 1 if KILLS >= 1000 else max(1, changes // (200 if SLOW else 25))
    for nth in range(1, changes + 1, step):
        out = run_folder(work, f"kill{nth}")
        killed = harness.run(command(out, *more), [os.path.realpath(out)], f"change:{nth}:once:kill")
        assert killed.code == -signal.SIGKILL, (nth, killed.code, killed.err)
        done = train(out, *more)
        assert "damaged" not in done.stderr, (nth, done.stderr)
        same_as_whole(out)
        assert not [n for n in os.listdir(out) if ".tmp." in n or n.startswith(".")], os.listdir(out)
        shutil.rmtree(os.path.realpath(out))


@case("kill -9 at random times, again and again: the same bytes in the end")
def _(work):
    choose = random.Random(SEED)
    out = run_folder(work)
    straight = run_folder(work, "straight")
    more = ["--epochs", "6", "--checkpoint-every", "2steps"]
    since = time.monotonic()
    train(straight, "-q", *more)
    seconds = time.monotonic() - since
    kills = 0
    while kills < KILLS:
        process = subprocess.Popen(command(out, "-q", *more), stderr=subprocess.PIPE)
        try:
            process.communicate(timeout=choose.uniform(0, seconds * 0.7))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            continue
        assert process.returncode == 0, process.returncode
        same_as_whole(out, straight)
        shutil.rmtree(os.path.realpath(out))
        os.makedirs(os.path.realpath(out))
    train(out, "-q", *more)
    same_as_whole(out, straight)


@case("a run that is stopped while it judges begins with that, and ends with the same bytes")
def _(work):
    out = run_folder(work)
    more = ["--bootstrap", "200000", "--epochs", "1"]  # an evaluation that takes a while
    process = start(out, *more)
    wait_for(process, "^ep 1/1")
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=300)[1]
    assert process.returncode in (0, 75), (process.returncode, rest)
    train(out, "--epochs", 3, "-q")
    same_as_whole(out)


if __name__ == "__main__":
    code = case.main()
    if Shared.folder:
        shutil.rmtree(Shared.folder, ignore_errors=True)
    sys.exit(code)
