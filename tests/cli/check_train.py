#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train from outside: exit codes, messages, what is in RUN; what is refused, damaged records, where images are
read.

    check_train.py [PATTERN]      runs that are stopped and resume are in check_resume.py
"""
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import harness
from fixtures import fixture
from support import (PATIENCE, SOURCE, Cases, Skip, manifest, next_command, program, records, run, says, slurp, synth,
                     write)
from training import (command, copy, data, finish, header, kept, last_step, poison, run_folder, same_as_whole, train,
                      whole)

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()


# ---- a run -----------------------------------------------------------------------------------------------------------


@case("a run reports its steps and writes the files that the manual names")
def _(work):
    out = os.path.join(work, "runs", "a")  # its parent is made
    done = train(out)
    says(done, r"chex-train \d+\.\d+\.\d+   1 rank, CPU", r"data     [0-9a-f]{16}, split patient:50,25,25",
         r"model    densenet-micro, 0\.19 M parameters", r"memory   [\d.]+ MB", r"batch    16 images a step, \d+ steps",
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


@case("a count of one is not written as a plural")
def _(work):
    options = "--batch", "128", "--epochs", "1", "--seed", 2 ** 63 - 1
    done = train(os.path.join(work, "run"), *options)
    says(done, r"batch    128 images a step = 1 rank x .*, 1 step an epoch,\s+1 epoch\n",
         r"         1 step, \d+ images in ", r"init     random \(seed 9223372036854775807\)")
    again = train(os.path.join(work, "run"), *options)
    says(again, "resume   step-000001: 1 step, 1 of 1 epoch: complete")
    for text in done.stderr, again.stderr:
        assert not re.search(r"\b1 (steps|epochs|ranks|threads|findings|images|patients)\b", text), text


@case("--version -v has the versions of the libraries, MPI too")
def _(_work):
    for name in ("chex-train", "chex-convert"):
        printed = run([program(name), "--version", "-v"]).stdout
        assert (re.search(r"^jansson        \S+$", printed, re.M)
                and re.search(r"^mpi            \S", printed, re.M)), printed
        first, copyright = run([program(name), "--version"]).stdout.splitlines()[:2]
        assert first.startswith(name + " ") and "Copyright " in copyright and "Apache-2.0" in copyright, copyright
        assert "jansson" not in run([program(name), "--version"]).stdout


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


@case("thresholds chosen on the evaluated split are called optimistic, in metrics-SPLIT.json and metrics.jsonl")
def _(_work):
    for split in ("val", "test"):
        findings = json.loads(slurp(os.path.join(whole(), f"metrics-{split}.json")))["findings"]
        points = [f[name] for f in findings for name in ("youden", "f1") if f[name]]
        assert len(points) > 2 and all(p["optimistic"] is True for p in points), points
    with open(os.path.join(whole(), "metrics.jsonl"), encoding="utf-8") as f:
        lines = [line for line in map(json.loads, f) if line["kind"] == "evaluation"]
    assert lines and all(line["optimistic"] == ["youden", "f1"] for line in lines), lines
    assert all(name in f for line in lines for f in line["findings"] for name in line["optimistic"])


@case("-v has the time of each part, the order and the checkpoints")
def _(work):
    says(train(run_folder(work), "-v"),
         r"time     data_wait \S+ %  forward \S+ %  backward \S+ %  reduce \S+ %  optimizer",
         r"order    [0-9a-f]{16}", r"saved    step-000000 in", r"saved    step-000018 in")


@case("the same bytes whatever the threads; other ones with another seed")
def _(work):
    two, other = run_folder(work, "two"), run_folder(work, "other")
    train(two, "-j", 2, "-q")
    same_as_whole(two)
    assert kept(two) == kept(whole())
    train(other, "--seed", 2, "-q")
    assert kept(other)["best.safetensors"] != kept(whole())["best.safetensors"]


@case("the options of optimizer, loss and schedule run and change the result")
def _(work):
    seen = {kept(whole())["best.safetensors"]}
    weights = write(os.path.join(work, "weights"), "# of positives\n" + "".join(
        f"{name},{i + 1.5}\n" for i, name in enumerate(manifest(data())["labels"])))
    for i, more in enumerate((["--optimizer", "sgd", "--lr", "0.01"], ["--optimizer", "adamw"],
                              ["--optimizer", "adagrad"], ["--optimizer", "adadelta"], ["--optimizer", "rmsprop"],
                              ["--loss", "focal"], ["--label-smoothing", "0.2"],
                              ["--pos-weight", "auto"], ["--pos-weight", weights], ["--augment", "none"],
                              ["--rotate", "10"], ["--brightness", "0.2"], ["--mixup", "0.4"],
                              ["--schedule", "cosine"], ["--warmup", "5"], ["--clip", "0.1"], ["--ema", "0.9"],
                              ["--weight-decay", "0.1"], ["--micro-batch", "8"], ["--accumulate", "2"],
                              ["--batch", "8"], ["--crop", "20"])):
        out = run_folder(work, f"run{i}")
        train(out, "-q", "--epochs", "1", *more)
        seen.add(kept(out)["best.safetensors"])
    assert len(seen) == 23, len(seen)


@case("--label-smoothing: the loss of training is that of smoothed labels, an evaluation has that of the labels")
def _(work):
    losses, out = {}, run_folder(work, "of 0.9")
    for x in ("0.9", "0"):
        folder = out if x == "0.9" else run_folder(work, "of 0")
        train(folder, "-q", "--epochs", 1, "--max-steps", 1, "--label-smoothing", x)
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as f:
            losses[x] = next(line["loss"] for line in map(json.loads, f) if line["kind"] == "step")
    assert losses["0.9"] != losses["0"], losses  # of the same weights
    says(train(out, "--epochs", 1, code=6), r"label-smoothing 0\.9 -> 0\b")
    train(out, "-q", "--epochs", 1, "--label-smoothing", "0.9")
    assert json.loads(slurp(os.path.join(out, "run.json")))["options"]["label-smoothing"] == 0.9
    done = json.loads(train(run_folder(work, "judged"), "--eval-only", "--init", os.path.join(out, "best.safetensors"),
                            "--json", "-q").stdout)["final"]
    trained = json.loads(slurp(os.path.join(out, "metrics-test.json")))
    assert done["loss"] == trained["loss"], (done["loss"], trained["loss"])
    for wrong in ("1", "-0.1", "x"):
        says(train(run_folder(work, "wrong" + wrong), "--label-smoothing", wrong, code=2), "--label-smoothing")


@case("--mixup: run.json has it, a run resumes only with the same, and an evaluation mixes nothing")
def _(work):
    losses, out = {}, run_folder(work, "of 0.4")
    for alpha in ("0.4", "0"):
        folder = out if alpha == "0.4" else run_folder(work, "of 0")
        train(folder, "-q", "--epochs", 1, "--max-steps", 1, "--mixup", alpha)
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as f:
            losses[alpha] = next(line["loss"] for line in map(json.loads, f) if line["kind"] == "step")
    assert losses["0.4"] != losses["0"], losses  # of the same weights
    says(train(out, "--epochs", 1, code=6), r"mixup 0\.4 -> 0\b")
    train(out, "-q", "--epochs", 1, "--mixup", "0.4")
    assert json.loads(slurp(os.path.join(out, "run.json")))["options"]["mixup"] == 0.4
    for zero in ("-0", "0"):  # the same
        train(run_folder(work, f"zero{zero}"), "-q", "--epochs", 1, "--max-steps", 1, "--mixup", zero)
        metadata = header(f"{work}/zero{zero}/step-000001.safetensors")["__metadata__"]
        assert re.search(r"mixup\W+0\b", str(metadata)), metadata
    done = json.loads(train(run_folder(work, "judged"), "--eval-only", "--init", os.path.join(out, "best.safetensors"),
                            "--json", "-q").stdout)["final"]
    trained = json.loads(slurp(os.path.join(out, "metrics-test.json")))
    assert done["loss"] == trained["loss"], (done["loss"], trained["loss"])
    one, many = run_folder(work, "one"), run_folder(work, "many")
    for folder, more in ((one, ()), (many, ("-j", 3, "--cache", "none"))):
        train(folder, "-q", "--mixup", "0.4", "--micro-batch", 1, "--batch", 4, "--epochs", 1, *more)
    assert kept(one)["best.safetensors"] == kept(many)["best.safetensors"]


@case("--pos-weight also works if a data set has no split to train on")
def _(work):
    folder, rule = os.path.join(work, "test-only"), os.path.join(work, "rule.csv")
    labels = synth(folder + ".images", 24, "--size", "64")
    with open(labels, encoding="utf-8") as f:
        write(rule, "Image Index,split\n" + "".join(f"{row['Image Index']},test\n" for row in csv.DictReader(f)))
    run([program("chex-convert"), "-q", "-i", folder + ".images/images", "-l", labels, "-o", folder, "--size", "36",
         "--split", "file:" + rule])
    ones = write(os.path.join(work, "ones"), "".join(f"{name},1\n" for name in manifest(folder)["labels"]))
    loss = [json.loads(train(run_folder(work, f"run{i}"), "--eval-only",
                             "--init", os.path.join(whole(), "best.safetensors"),
                             "--json", "-q", *more, source=folder).stdout)["final"]["loss"]
            for i, more in enumerate(([], ["--pos-weight", ones], ["--pos-weight", "auto"]))]
    assert loss[0] == loss[1] == loss[2], loss


# Of the reference backend, whose gradients check_parity.py compares with PyTorch's in float64.
TEN_STEPS = [0.671065, 0.648130, 0.631551, 0.605663, 0.589765, 0.559354, 0.538034, 0.518259, 0.505127, 0.486594]


@case("ten steps of densenet-micro learn, by these losses, on each backend and instruction set")
def _(work):
    for device, cpu in (("cpu", ""), ("cpu", "avx2"), ("cpu", "plain"), ("ref", "")):
        out = run_folder(work, device + cpu)
        train(out, "-q", "--epochs", 2, "--bootstrap", 0, "--augment", "none", "--device", device,
              env=dict(os.environ, CHEX_CPU=cpu))
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as f:
            losses = [line["loss"] for line in map(json.loads, f) if line["kind"] == "step"][:10]
        assert all(abs(a / b - 1) < 0.01 for a, b in zip(losses, TEN_STEPS, strict=True)), (device, cpu, losses)


@case("accumulated batches are one large one but for batch statistics")
def _(work):
    a, b = run_folder(work, "a"), run_folder(work, "b")
    train(a, "-q", "--batch", 8, "--accumulate", 4)
    train(b, "-q", "--batch", 32, "--micro-batch", 8)
    assert kept(a)["best.safetensors"] == kept(b)["best.safetensors"]


@case("without val the last model is the best; without test there are no metrics at the end")
def _(work):
    folder = os.path.join(work, "all")
    images = fixture("images120")
    run([program("chex-convert"), "-q", "-i", images + "/images", "-l", images + "/Data_Entry_2017_v2020.csv",
         "-o", folder, "--size", "36", "--split", "none"])
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


@case("--eval-only evaluates the best model without naming its kind again; --predict writes to any folder")
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


# ---- what is refused -------------------------------------------------------------------------------------------------


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


@case("T90 a device that no backend of this build has: 2; auto takes the CPU")
def _(work):
    out = os.path.join(work, "run")
    says(train(out, "--device", "tpu", "-n", code=2), r"--device: takes auto\|none\|cuda\|cpu\|ref\|.*, not 'tpu'")
    says(train(out, "-n"), r"1 rank, CPU")
    assert not os.path.exists(out)


@case("the plain reference learns the same as the fast backend, nearly")
def _(work):
    loss = []
    for device in ("cpu", "ref"):
        done = train(run_folder(work, device), "--device", device, "--epochs", 1)
        loss.append(float(re.search(r"ep 1/1   loss (\S+)", done.stderr).group(1)))
    assert abs(loss[0] - loss[1]) <= 2e-3, loss


# ---- records ---------------------------------------------------------------------------------------------------------


@case("T69 a damaged record: stop saves and ends with 1, skip continues and ends with 1")
def _(work):
    folder = copy(work)
    shard = poison(folder, 3)
    out = run_folder(work)
    done = train(out, code=1, source=folder)
    m = manifest(folder)
    name = os.path.basename(shard)
    image = list(records(folder, m["shards"][0], m))[3]["filename"].rstrip(b"\0").decode()
    named = rf"'{re.escape(name)}' record 3 \({re.escape(image)}\): .*checksum"
    step = last_step(out)
    says(done, "chex-train: " + named, rf"\nnext     chex-inspect check --full {re.escape(folder)}\n",
         f"with --on-bad-record skip, the same command resumes from {step}\n")
    # With a repaired file the run resumes, to the same end as without the damage.
    shutil.copy(os.path.join(data(), os.path.basename(shard)), shard)
    says(train(out, source=folder), f"resume   {step}")
    same_as_whole(out)
    poison(folder, 3)
    done = train(run_folder(work, "skip"), "--on-bad-record", "skip", code=1, source=folder)
    says(done, "1 damaged record skipped so far", "done     test",
         r"chex-train: warning: " + named + " mismatch; the next",
         rf"1 damaged record skipped: chex-inspect check --full {re.escape(folder)} names all")
    assert len(re.findall(named, done.stderr)) == 1, done.stderr
    quiet = train(run_folder(work, "quiet"), "-q", "--on-bad-record", "skip", code=1, source=folder)
    assert quiet.stderr == "chex-train: 1 damaged record skipped\n", quiet.stderr


def counted(out):
    """What the state of the newest checkpoint says of damaged records."""
    metadata = header(os.path.join(out, last_step(out)) + ".safetensors")["__metadata__"]
    return int(json.loads(metadata["state"])["skipped"])


@case("a run that skipped damaged records ends with 1 each time it is started, with the reason; also after stops")
def _(work):
    folder, out, stopped = copy(work), run_folder(work), run_folder(work, "stopped")
    shards = {split: [s["name"] for s in manifest(folder)["shards"] if f"-{split}." in s["name"]]
              for split in ("train", "val")}
    poison(folder, 3)
    poison(folder, 1, shards["train"][2])
    poison(folder, 0, shards["val"][0])
    skip = ["--on-bad-record", "skip"]
    says(train(out, *skip, code=1, source=folder), "3 damaged records skipped: chex-inspect check --full")
    assert counted(out) == 9  # in each of three epochs
    before = kept(out)
    for more in (skip, []):
        says(train(out, *more, code=1, source=folder), "done     test",
             r"damaged records skipped 9 times before this start:\s+chex-inspect check --full \S+ names all")
    quiet = train(out, "-q", code=1, source=folder)
    assert quiet.stderr == "chex-train: damaged records skipped 9 times before this start\n", quiet.stderr
    document = json.loads(train(out, "--json", "-q", code=1, source=folder).stdout)
    assert document["exit_code"] == 1 and document["result"]["skipped"] == 9, document["result"]
    assert kept(out) == before
    for step in range(1, 6):  # each start makes one step
        train(stopped, *skip, "-q", "--time-limit", "0.001s", code=75, source=folder)
        assert last_step(stopped) == f"step-{step:06}", last_step(stopped)
    train(stopped, *skip, code=1, source=folder)
    assert kept(stopped) == before, counted(stopped)
    # The run used a damaged record, was stopped, and the record was repaired.
    out = run_folder(work, "repaired")
    for _ in range(5):
        train(out, *skip, "-q", "--time-limit", "0.001s", code=75, source=folder)
    assert counted(out) > 0
    shutil.rmtree(folder)
    shutil.copytree(data(), folder)
    says(train(out, code=1, source=folder), r"damaged records? skipped \d times? before this start")


@case("T69 a damaged record of val: the epoch that was trained is saved before the run ends with 1")
def _(work):
    folder = copy(work)
    shard = poison(folder, 0, next(s["name"] for s in manifest(folder)["shards"] if "-val." in s["name"]))
    out = run_folder(work)
    done = train(out, "--checkpoint-every", "never", code=1, source=folder)
    says(done, rf"'{re.escape(os.path.basename(shard))}' record 0 \(\S+\.png\): .*checksum")
    assert last_step(out) == "step-000006", last_step(out)
    done = train(run_folder(work, "skip"), "--on-bad-record", "skip", "--epochs", 2, code=1, source=folder)
    assert len(re.findall(r"warning: '\S+' record 0 \(\S+\.png\): .*; it is left out\n", done.stderr)) == 1, done.stderr
    shutil.copy(os.path.join(data(), os.path.basename(shard)), shard)
    says(train(out, source=folder), "resume   step-000006: 6 steps, 0 of 3 epochs")
    same_as_whole(out)


@case("T70 a shard that becomes shorter during the run: 1, no SIGBUS")
def _(work):
    folder = copy(work)
    out = run_folder(work)
    process = subprocess.Popen(command(out, "--epochs", 1000, "--cache", "none", source=folder),
                               stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("ep 1/"):
            break
    for shard in os.listdir(folder):
        if "-train." in shard:
            os.truncate(os.path.join(folder, shard), 5000)
    rest = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1, (process.returncode, rest)
    assert re.search(r"'\S+-train\.tfrecord-\S+' record \d+: ", rest), rest
    assert "next     chex-inspect check --full" in rest, rest
    assert os.path.exists(os.path.join(out, "latest"))


# ---- where images are read -------------------------------------------------------------------------------------------


@case("--cache keeps the images or not, --crc looks once or always: the same bytes")
def _(work):
    says(train(run_folder(work, "auto")),
         r"images   train and val, \S+ kB kept in memory \(\S+ GB free\);\s+shuffled as a whole")
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
    rest = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, (process.returncode, rest)


@case("--shuffle by windows: another order, shown, and a run keeps its own")
def _(work):
    out = run_folder(work)
    says(train(out, "--shuffle", 2, "--time-limit", "0.01s", code=75), r";\s+shuffled by windows of 2 of \d shards")
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
    assert re.fullmatch(r"chex-[0-9a-f]{16}-\d+", name), name
    return os.path.join(folder, name)


@case("--stage copies once, and again what is damaged; the run reads the copy, and its result is the same")
def _(work):
    folder, stage = copy(work), os.path.join(work, "stage")
    out = run_folder(work)
    done = train(out, "--stage", stage, source=folder)
    says(done, r"note     (\d+) shards in \S+/chex-[0-9a-f]{16}-\d+: 0 were there, \S+ [kM]B copied in 0:0",
         "from a copy in")
    same_as_whole(out)
    names = set(os.listdir(folder))
    assert set(os.listdir(staged(stage))) == names, os.listdir(staged(stage))
    train_shards = sorted(n for n in names if "-train." in n)
    poison(staged(stage), 0, train_shards[0])
    os.truncate(os.path.join(staged(stage), train_shards[1]), 100)
    write(os.path.join(staged(stage), f".{train_shards[0]}.tmp.1"), b"")
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
    rest = process.communicate(timeout=PATIENCE)[1]
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
    rest = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, (process.returncode, rest)


@case("--stage: a shard that is damaged at its source is not copied but read where it is")
def _(work):
    folder, stage = copy(work), os.path.join(work, "stage")
    shard = os.path.basename(poison(folder, 3))
    done = train(run_folder(work), "--stage", stage, "--on-bad-record", "skip", code=1, source=folder)
    says(done, rf"warning: 1 damaged shards are not copied but read where they are: .*{shard}.*SHA-256",
         "damaged records? skipped")
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
    says(train(out, "--allow-new-data", source=data("other")),
         "note     changed since step-000006: .*data-set", "done ")


@case("a shard of another data set or of another place: 6 before the first step, and it is named")
def _(work):
    folder, out = copy(work), run_folder(work)
    names = [s["name"] for s in manifest(folder)["shards"] if "-train." in s["name"]]
    path = os.path.join(folder, names[1])
    good = slurp(path)
    write(path, slurp(os.path.join(folder, names[0])))
    says(train(out, source=folder, code=6),
         re.escape(names[1]) + "': record of shard 0, place 0, not of shard 1, place 0")
    ours, other = manifest(folder)["dataset_id"], "f" * 16
    write(path, good.replace(ours.encode(), other.encode()))
    says(train(out, "--on-bad-record", "skip", source=folder, code=6),
         re.escape(names[1]) + f"': record of data set {other}, not of {ours}")
    assert os.listdir(out) == [], os.listdir(out)


@case("T73 a finding without positives is n/a and not in the mean")
def _(work):
    done = train(run_folder(work), "--epochs", 1)
    says(done, r"n/a \(0 positives\)")
    absent = len(re.findall(r"n/a \(0 positives\)", done.stderr))
    says(done, rf"over {14 - absent} findings")


@case("from synthetic images to an evaluation by the 'next' lines alone, whatever the folders are called")
def _(work):
    def follow(printed, *options):
        command = next_command(printed)
        assert "\x1b" not in printed and "\n\n" not in printed, "a control character"
        path = {"PATH": os.path.dirname(program("chex-train")) + ":" + os.environ["PATH"]}
        command = " ".join([command, *(shlex.quote(str(o)) for o in options)])
        return run(["bash", "-c", command], cwd=work, env={**os.environ, **path})

    done = run([program("chex-synth"), "-n", 48, "-o", "my images' folder \x1b[31m", "--size", 64], cwd=work)
    done = follow(done.stderr, "--size", 36, "-o", "-data set", "--split", "patient:50,25,25", "--shard-size", 16)
    done = follow(done.stderr)
    assert "good" in done.stdout
    done = run([program("chex-inspect"), "check", "--quick", "./-data set"], cwd=work)
    assert "next     chex-inspect check --full './-data set'" in done.stdout
    done = run([program("chex-train"), "-d", "./-data set", "-o", "./-run; 1\x1b[31m", "--stage", "./stage\x1b[31m",
                "--model", "densenet-micro", "--epochs", 1, "--crop", 32, "--bootstrap", 0], cwd=work)
    says(done, r"from a copy in \./stage\\x1b\[31m", r"\./-run; 1\\x1b\[31m/best")
    done = follow(done.stderr, "--bootstrap", 0)
    says(done, "done     ")
    assert "\x1b" not in done.stderr


if __name__ == "__main__":
    sys.exit(finish(case))
