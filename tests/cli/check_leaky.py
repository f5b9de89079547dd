#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leaky splits: chex-convert --allow-leak, certificates, and the marks of chex-train.

    check_leaky.py [PATTERN]      $CHEX_CONVERT, $CHEX_INSPECT, $CHEX_SYNTH, $CHEX_TRAIN or in $BUILDDIR
"""
import csv
import hashlib
import json
import os
import re
import shutil
import sys

from support import SOURCE, Cases, Skip, manifest, program, run, says, slurp, synth, tree, write, write_csv

try:
    import jsonschema
except ImportError:
    jsonschema = None
try:
    import numpy
except ImportError:
    numpy = None

case = Cases()
made = {}


def convert(folder, *more, code=0, split="leaky.csv"):
    source = os.path.dirname(made["labels"])
    return run([program("chex-convert"), "-i", os.path.join(source, "images"), "-l", made["labels"], "-o", folder,
                "--size", "36", "--shard-size", "16", "--split", f"file:{os.path.join(source, split)}", *more], code)


def inspect(*words, code=0):
    return run([program("chex-inspect"), *words], code)


def valid(document, schema):
    if jsonschema:
        jsonschema.validate(document, json.loads(slurp(os.path.join(SOURCE, "schemas", schema))))
    return document


def sources(work):
    """Images with two split files: by image (leaky.csv), and by patient (clean.csv)."""
    folder = os.path.join(work, "source")
    made["labels"] = synth(folder, 120, "--size", "64")
    with open(made["labels"], encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    made["split_of"] = {r["Image Index"]: ("train", "train", "val", "test")[i % 4] for i, r in enumerate(rows)}
    made["patient_of"] = {r["Image Index"]: f"{int(r['Patient ID']):08d}" for r in rows}
    write_csv(os.path.join(folder, "leaky.csv"), ["Image Index", "split"], made["split_of"].items())
    patients = sorted(set(made["patient_of"].values()))
    write_csv(os.path.join(folder, "clean.csv"), ["Patient ID", "split"],
              [[p, ("train", "train", "val", "test")[i % 4]] for i, p in enumerate(patients)])


def leaks():
    """(patients in two splits, their images), from the split file alone."""
    splits = {}
    for image, patient in made["patient_of"].items():
        splits.setdefault(patient, []).append(made["split_of"][image])
    shared = [found for found in splits.values() if len(set(found)) > 1]
    return len(shared), sum(map(len, shared))


@case("a split with a patient in two splits needs --allow-leak, which counts them in the plan and the manifest")
def allowed(work):
    sources(work)
    patients, images = leaks()
    says(convert(f"{work}/out", code=2), rf"{patients} patients are in two splits")
    assert not os.path.exists(f"{work}/out/manifest.json")
    done = convert(f"{work}/out", "--allow-leak", "--json")
    says(done, rf"leaky    {patients} patients with {images} images are in two splits",
         rf"patients in two splits: {patients} \(leaky\)")
    plan = valid(json.loads(done.stdout), "convert.schema.json")["plan"]
    assert (plan["leaky_patients"], plan["leaky_images"]) == (patients, images), plan
    found = valid(manifest(f"{work}/out"), "manifest.schema.json")
    assert found["leaks"] == {"patients": patients, "images": images}, found["leaks"]
    assert sum(s["patients"] for s in found["splits"]) > len(set(made["patient_of"].values()))
    text = inspect(f"{work}/out").stdout
    assert f"leaky: {patients} patients with {images} images in two splits" in text, text
    shown = valid(json.loads(inspect("--json", f"{work}/out").stdout), "inspect.schema.json")["results"][0]
    assert (shown["dataset"]["leaky_patients"], shown["dataset"]["leaky_images"]) == (patients, images)


@case("the report of a leaky data set says so in its title, at the top and in the row of the split rule")
def reported(work):
    sources(work)
    patients, _ = leaks()
    for name, split, found in (("leaky", "leaky.csv", 3), ("clean", "clean.csv", 0)):
        convert(f"{work}/{name}", "--allow-leak", split=split)
        inspect("report", "-o", f"{work}/{name}.html", f"{work}/{name}", code=None)
        page = slurp(f"{work}/{name}.html").decode()
        marks = re.findall(rf"<title>Leaky: |Leaky: {patients} patients in two|, leaky: {patients} patients in", page)
        assert len(marks) == found, (name, marks)


@case("--allow-leak changes no byte of a split without a leak, nor of the shards for any threads")
def unchanged(work):
    sources(work)
    convert(f"{work}/plain", split="clean.csv")
    convert(f"{work}/allowed", "--allow-leak", split="clean.csv")
    assert tree(f"{work}/plain") == tree(f"{work}/allowed")
    assert "leaks" not in manifest(f"{work}/plain")
    convert(f"{work}/one", "--allow-leak", "-j", "1")
    convert(f"{work}/three", "--allow-leak", "-j", "3")
    assert tree(f"{work}/one") == tree(f"{work}/three")


@case("an image in two lists is an error also with --allow-leak")
def image_twice(work):
    sources(work)
    folder = os.path.dirname(made["labels"])
    names = sorted(made["split_of"])
    write(f"{folder}/train_val_list.txt", "".join(n + "\n" for n in names[:90]))
    write(f"{folder}/test_list.txt", "".join(n + "\n" for n in names[89:]))
    done = run([program("chex-convert"), "-i", f"{folder}/images", "-l", made["labels"], "-o", f"{work}/out",
                "--split", "official", "--allow-leak"], 2)
    says(done, f"image {names[89]} is in (train|val) and test")


@case("check --full counts the patients in two splits again: a manifest that hides or invents them is a fault")
def counted_again(work):
    sources(work)
    patients, images = leaks()
    for name, split, lie in (("hidden", "leaky.csv", None), ("fewer", "leaky.csv", {"patients": 1, "images": 2}),
                             ("invented", "clean.csv", {"patients": 1, "images": 2})):
        out = f"{work}/{name}"
        convert(out, "--allow-leak", split=split)
        inspect("check", "--full", out)
        found = manifest(out)
        del found["manifest_sha256"]
        found.pop("leaks", None)
        if lie:
            found["leaks"] = lie
        write(f"{out}/manifest.json", json.dumps(found))
        text = inspect("check", "--full", out, code=1).stdout
        real = (0, 0) if split == "clean.csv" else (patients, images)
        assert f"the records have {real[0]} with {real[1]}" in text, text
        inspect("check", "--quick", out)


@case("the repair command that check prints has --allow-leak, and repairs a leaky data set to the same bytes")
def repaired(work):
    sources(work)
    convert(f"{work}/out", "--allow-leak")
    before = tree(f"{work}/out")
    shard = manifest(f"{work}/out")["shards"][0]["name"]
    os.remove(f"{work}/out/{shard}")
    text = inspect("check", f"{work}/out", code=1).stdout
    assert re.search(r"chex-convert --repair[^#]*--allow-leak", text, re.S), text
    convert(f"{work}/out", "--allow-leak", "--repair")
    assert tree(f"{work}/out") == before


@case("a leaky data set as input needs --allow-leak again, unless it gets a clean split")
def resharded(work):
    sources(work)
    convert(f"{work}/out", "--allow-leak")
    again = [program("chex-convert"), "-i", f"{work}/out", "-o"]
    says(run([*again, f"{work}/refused", "--size", "18"], 2), "are in two splits")
    run([*again, f"{work}/small", "--size", "18", "--allow-leak"])
    assert manifest(f"{work}/small")["leaks"] == manifest(f"{work}/out")["leaks"]
    run([*again, f"{work}/clean", "--size", "18", "--split", "patient:70,10,20"])
    assert "leaks" not in manifest(f"{work}/clean")


# ---- chex-train ------------------------------------------------------------------------------------------------------


def training(folder, out, *more, code=0):
    return run([program("chex-train"), "-d", folder, "-o", out, "--model", "densenet-micro", "--crop", "32", "--batch",
                "16", "--epochs", "2", "--bootstrap", "20", "-j", "1", *more], code)


def unmarked(document, path=""):
    """The paths of objects of JSON that have a loss, a metric or a best value, and no mark."""
    if isinstance(document, list):
        return [p for i, each in enumerate(document) for p in unmarked(each, f"{path}[{i}]")]
    if not isinstance(document, dict):
        return []
    numbers = {"loss", "auroc", "auprc", "value", "best", "gradient_norm"} & set(document)
    own = [path or "."] if numbers and document.get("leaky") is not True else []
    parts = ("auroc", "auprc", "youden", "f1", "options", "operating")
    return own + [p for key, each in document.items() if key not in parts
                  for p in unmarked(each, f"{path}.{key}")]


def tags(path):
    """The tags of the scalars of an event file: field 1 of each value."""
    return set(re.findall(rb"\x0a[\x01-\x7f]\x0a[\x01-\x7f]((?:[a-z0-9_]+/)+[A-Za-z0-9_]+)", slurp(path)))


def marked_files(out):
    """Every file of a run with numbers or figures is marked; the names of those found."""
    seen = set()
    for name in sorted(os.listdir(out)):
        path = os.path.join(out, name)
        kind = re.sub(r"\.\d.*", "", name)
        if name.endswith(".json"):
            document = json.loads(slurp(path))
            assert document["leaky"] is True and unmarked(document) == [], (name, unmarked(document))
        elif name == "metrics.jsonl":
            for line in slurp(path).splitlines():
                found = json.loads(line)
                assert found["leaky"] is True and unmarked(found) == [], (unmarked(found), line)
        elif name.endswith(".csv"):
            rows = list(csv.DictReader(slurp(path).decode().splitlines()))
            assert rows and all(row["leaky"] == "1" for row in rows), name
        elif name.endswith(".svg"):
            text = slurp(path).decode()
            assert re.search("<title>Leaky: ", text) and ">Leaky: " in text, name
            curves = re.findall(r">(0\.\d{3}[^<]*)<", text.partition("ROC curves")[2])
            assert curves and all(c.endswith(" leaky") for c in curves), (name, curves)
        elif name.startswith("events."):
            assert len(tags(path)) > 10 and all(t.startswith(b"leaky/") for t in tags(path)), tags(path)
        elif name.endswith(".safetensors"):
            size = int.from_bytes(slurp(path)[:8], "little")
            head = json.loads(slurp(path)[8:8 + size])
            metadata = head.get("__metadata__", {})
            assert "leaky" in metadata or "state" not in metadata, name
        else:
            continue
        seen.add(kind)
    return seen


def marked_lines(done):
    for line in done.stderr.splitlines():
        if re.search(r"loss \d|AUROC (\d|n/a)|^ {9}[A-Z]\w+ +\d+ +(\d\.|n/a)", line) and "best model" not in line:
            assert "eaky" in line, line


@case("a run with a leaky data set marks every number and figure, also after a resume and with --eval-only")
def marks(work):
    sources(work)
    convert(f"{work}/out", "--allow-leak")
    done = training(f"{work}/out", f"{work}/run", "--json", "--epochs", "1")
    assert re.search(r"leaky: \d+ patients in two splits", done.stderr), done.stderr
    marked_lines(done)
    document = valid(json.loads(done.stdout), "train.schema.json")
    assert document["leaky"] is True and unmarked(document) == [], unmarked(document)
    marked_files(f"{work}/run")
    done = training(f"{work}/out", f"{work}/run")  # resumes
    says(done, "resume .*leaky", "ep 2/2   leaky  loss", "test     leaky  ", "done     leaky  test")
    marked_lines(done)
    seen = marked_files(f"{work}/run")
    assert {"run.json", "metrics.jsonl", "metrics-test.json", "metrics-val.json", "predictions-test.csv", "auroc.svg",
            "auroc-test.svg", "events", "best.safetensors"} <= {re.sub("^events.*", "events", s) for s in seen}, seen
    done = training(f"{work}/out", f"{work}/run", "--eval-only", "--split", "train", "--json", "--predict",
                    f"{work}/all.csv")
    marked_lines(done)
    assert unmarked(json.loads(done.stdout)) == []
    assert all(row["leaky"] == "1" for row in csv.DictReader(slurp(f"{work}/all.csv").decode().splitlines()))
    assert "metrics-train.json" in marked_files(f"{work}/run")
    valid(json.loads(slurp(f"{work}/run/run.json")), "run.schema.json")
    valid(json.loads(slurp(f"{work}/run/metrics-test.json")), "evaluation.schema.json")
    for line in slurp(f"{work}/run/metrics.jsonl").splitlines():
        valid(json.loads(line), "metrics.schema.json")
    inspect("check", f"{work}/run")
    assert "leaky" in inspect(f"{work}/run/best.safetensors").stdout


@case("weights of a leaky run stay leaky: --init for a clean data set, and --eval-only with one")
def weights(work):
    sources(work)
    convert(f"{work}/leaky", "--allow-leak")
    convert(f"{work}/clean", split="clean.csv")
    training(f"{work}/leaky", f"{work}/run", "-q")
    best = f"{work}/run/best.safetensors"
    done = training(f"{work}/clean", f"{work}/evaluated", "--eval-only", "--init", best)
    marked_lines(done)
    assert {"metrics-test.json", "predictions-test.csv", "auroc-test.svg"} <= marked_files(f"{work}/evaluated")
    says(training(f"{work}/clean", f"{work}/tuned", "--init", best), "init .*leaky")
    assert "run.json" in marked_files(f"{work}/tuned")


@case("a run without a leak has no mark in any file or line")
def clean(work):
    sources(work)
    convert(f"{work}/out", split="clean.csv")
    done = training(f"{work}/out", f"{work}/run", "--json")
    assert "eaky" not in done.stdout + done.stderr, done.stderr
    for name in os.listdir(f"{work}/run"):
        assert b"eaky" not in slurp(f"{work}/run/{name}"), name


# ---- certificates ----------------------------------------------------------------------------------------------------


def certify(folder, *more, code=0, out=None):
    """Write the certificate; its path."""
    path = out or os.path.join(folder, "split-certificate.json")
    inspect("check", "--near", "--certificate", path, folder, *more, code=code)
    return path


def hashed(texts):
    return hashlib.sha256("".join(t + "\n" for t in sorted(set(texts))).encode()).hexdigest()


def certified_run(work, folder, code=0):
    """A run of one epoch: what it printed, and the data set in its run.json."""
    done = training(folder, work, "--epochs", "1", "--resume", "none", code=code)
    return done, valid(json.loads(slurp(f"{work}/run.json")), "run.schema.json")["dataset"]


@case("the certificate has the hashes, patients and equal images that NumPy finds in the records, in the same bytes")
def certificate(work):
    if numpy is None:
        raise Skip("no NumPy")
    sources(work)
    convert(f"{work}/out", "--allow-leak")
    path = certify(f"{work}/out", code=1)
    found = valid(json.loads(slurp(path)), "certificate.schema.json")
    about = manifest(f"{work}/out")
    names, patients, pixels = {}, {}, {}
    for shard in about["shards"]:
        for record in numpy.memmap(f"{work}/out/{shard['name']}", numpy.dtype(about["dtype"]), "r"):
            if record["weight"] == 1:
                names.setdefault(shard["split"], []).append(record["filename"].decode())
                patients.setdefault(record["patient"].decode(), []).append(shard["split"])
                pixels.setdefault(record["image"].tobytes(), set()).add(shard["split"])
    for split in found["splits"]:
        own = names[split["name"]]
        people = [p for p, splits in patients.items() if split["name"] in splits]
        assert (split["images"], split["patients"]) == (len(own), len(people)), split
        assert (split["images_sha256"], split["patients_sha256"]) == (hashed(own), hashed(people)), split
        assert split["members_sha256"] == split["images_sha256"], split
    shared = {p: splits for p, splits in patients.items() if len(set(splits)) > 1}
    assert found["leaky"] is True and found["leaky_patients"] == len(shared)
    assert {e["patient"]: e["images"] for e in found["patients_in_two_splits"]} == \
        {p: {s: splits.count(s) for s in set(splits)} for p, splits in shared.items()}
    assert found["leaky_images"] == len(found["images_in_two_splits"]) == sum(len(s) > 1 for s in pixels.values())
    sums = "".join(s["sha256"] + "\n" for s in about["shards"])
    assert found["shards_sha256"] == hashlib.sha256(sums.encode()).hexdigest()
    text = slurp(path)
    body = text[:text.index(b'  "certificate_sha256"')]
    assert found["certificate_sha256"] == hashlib.sha256(body).hexdigest()
    assert slurp(certify(f"{work}/out", "-j", "3", code=1, out=f"{work}/again.json")) == text
    assert str(work).encode() not in text
    inspect("check", "--full", f"{work}/out")  # it may be in the folder
    says(inspect("check", "--certificate", f"{work}/x", f"{work}/out", code=2), "goes with --near")
    says(inspect("check", "--near", "--certificate", f"{work}/none/x", f"{work}/out", code=4), "No such file")


@case("chex-train names the certificate in the plan, run.json, metrics and picture, or says there is none")
def named(work):
    sources(work)
    convert(f"{work}/out", split="clean.csv")
    done, dataset = certified_run(f"{work}/run", f"{work}/out")
    says(done, "no certificate of the split")
    assert dataset["certificate"] is None and "No certificate" in slurp(f"{work}/run/auroc.svg").decode()
    path = certify(f"{work}/out", code=None)
    near = json.loads(slurp(path))["near_pairs"]
    digest = hashlib.sha256(slurp(path)).hexdigest()
    done, dataset = certified_run(f"{work}/run", f"{work}/out")
    says(done, f"certificate {digest[:16]}: 0 patients and 0 images in two splits, {near} nearly equal pair")
    wanted = {"sha256": digest, "leaky_patients": 0, "leaky_images": 0, "near_pairs": near}
    assert dataset["certificate"] == wanted, dataset["certificate"]
    document = valid(json.loads(slurp(f"{work}/run/metrics-test.json")), "evaluation.schema.json")
    assert document["split"]["certificate"] == wanted and "leaky" not in document
    for name in ("auroc.svg", "auroc-test.svg"):
        assert f"Certificate of the split {digest[:16]}" in slurp(f"{work}/run/{name}").decode()


@case("a certificate that was edited, cut, or made for another data set is not used, and a warning says so")
def refused(work):
    sources(work)
    convert(f"{work}/out", "--allow-leak")
    convert(f"{work}/other", "--allow-leak", "--size", "40")
    path = certify(f"{work}/out", code=1)
    text = slurp(path).decode()
    foreign = slurp(certify(f"{work}/other", code=1)).decode()
    document = json.loads(text)
    del document["certificate_sha256"]
    unsealed = json.dumps(document, indent=2) + "\n"

    def sealed(**changes):
        body = json.dumps({**document, **changes}, indent=2)[:-2] + ",\n"
        return f'{body}  "certificate_sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'

    assert json.loads(sealed())["leaky"] is True
    for bad, why in ((text.replace('"leaky": true', '"leaky": false'), "was edited"),
                     (re.sub('"leaky_patients": .*', '"leaky_patients": 0,', text), "was edited"),
                     (unsealed, "certificate_sha256 is missing"), (text[:500], "line"), ("", "."), ("[]", "not the"),
                     (foreign, "of another data set"), (sealed(format=2), "newer format"),
                     (sealed(leaky=False), "not those of the manifest"), (sealed(leaky_patients=0), "not those of"),
                     (sealed(leaky_images=-1), "not the form"), (sealed(near_pairs="1"), "not the form"),
                     (sealed(splits=document["splits"][:-1]), "of another data set"),
                     (sealed(rule="official"), "of another data set"), ("[" * 100, ".")):
        write(path, bad)
        done = run([program("chex-train"), "-d", f"{work}/out", "-o", f"{work}/run", "--model", "densenet-micro",
                    "--crop", "32", "-n"])
        says(done, f"warning: .*split-certificate.json.*{why}.*not used", "no certificate of the split")
    write(path, sealed())
    done = training(f"{work}/out", f"{work}/run", "-n")
    assert "not used" not in done.stderr, done.stderr
    says(done, "certificate [0-9a-f]{16}: ")


def equal_image(work):
    """A data set with equal images in two splits, which has no certificate yet."""
    sources(work)
    folder = os.path.join(os.path.dirname(made["labels"]), "images")
    with open(os.path.join(os.path.dirname(folder), "clean.csv"), encoding="utf-8") as file:
        split_of = {row["Patient ID"]: row["split"] for row in csv.DictReader(file)}
    by_split = {split_of[p]: name for name, p in made["patient_of"].items()}
    write(f"{folder}/{by_split['test']}", slurp(f"{folder}/{by_split['train']}"))
    convert(f"{work}/out", split="clean.csv")
    return f"{work}/out"


@case("equal images in two splits, which only the certificate knows, mark a run as leaky")
def equal_images(work):
    equal_image(work)
    done = training(f"{work}/out", f"{work}/before", "-n")
    assert "eaky" not in done.stderr, done.stderr
    path = certify(f"{work}/out", code=1)
    found = json.loads(slurp(path))
    assert found["leaky"] is True and (found["leaky_patients"], found["leaky_images"]) == (0, 1), found
    done, dataset = certified_run(f"{work}/run", f"{work}/out")
    says(done, "leaky: 1 image in two splits")
    marked_lines(done)
    assert dataset["certificate"]["leaky_images"] == 1
    assert {"run.json", "auroc-test.svg", "metrics-test.json"} <= marked_files(f"{work}/run")


def without_early(work):
    """Leave out what no resume rewrites: event files and checkpoints of the time before the certificate."""
    for name in os.listdir(work):
        if name.startswith(("events.", "step-")):
            os.remove(f"{work}/{name}")


@case("a certificate that arrives after the best epoch was saved marks its model, numbers and figures at the resume")
def arrives_later(work):
    data = equal_image(work)
    for epochs in 1, 2:
        run_folder = f"{work}/run{epochs}"
        training(data, run_folder, "--epochs", "1")
        training(data, run_folder, "--eval-only", "--split", "train")
        assert not any(b"eaky" in slurp(f"{run_folder}/{n}") for n in os.listdir(run_folder))
        before = slurp(f"{run_folder}/metrics-val.json")
        certify(data, code=1)
        done = training(data, run_folder, "--epochs", str(epochs))
        says(done, "removed the results of split train, which had no mark: the run is leaky", "leaky: 1 image in two")
        inspect("check", run_folder)
        without_early(run_folder)
        seen = marked_files(run_folder)
        assert {"run.json", "metrics.jsonl", "metrics-val.json", "metrics-test.json", "predictions-val.csv",
                "auroc.svg", "auroc-test.svg", "best.safetensors"} <= seen, seen
        os.remove(f"{data}/split-certificate.json")
        again, first = (json.loads(t) for t in (slurp(f"{run_folder}/metrics-val.json"), before))
        best_hash = hashlib.sha256(slurp(f"{run_folder}/best.safetensors")).hexdigest()
        assert again["model"]["checkpoint_sha256"] == best_hash
        assert again["model"]["step"] != first["model"]["step"] or again["mean"]["auroc"] == first["mean"]["auroc"]
        done = training(data, f"{work}/evaluated{epochs}", "--eval-only", "--init", f"{run_folder}/best.safetensors")
        marked_lines(done)
        assert "metrics-test.json" in marked_files(f"{work}/evaluated{epochs}")


@case("a marked run stays marked when it resumes without the certificate, also in another folder")
def resumes_without(work):
    data = equal_image(work)
    training(data, f"{work}/run", "--epochs", "1")
    early = next(f"{work}/run/{n}" for n in os.listdir(f"{work}/run") if re.fullmatch(r"step-\d+\.safetensors", n))
    certify(data, code=1)
    training(data, f"{work}/run", "--epochs", "1")
    certificate = f"{data}/split-certificate.json"
    for fault in "gone", "damaged":
        if fault == "gone":
            os.remove(certificate)
        else:
            write(certificate, "{")
        for epochs in 1, 2:
            again = f"{work}/{fault}{epochs}"
            shutil.copytree(f"{work}/run", again)
            marked_lines(training(data, again, "--epochs", str(epochs)))
            without_early(again)
            assert {"run.json", "metrics-test.json", "auroc-test.svg", "best.safetensors"} <= marked_files(again)
        other = f"{work}/other-{fault}"
        marked_lines(training(data, other, "--epochs", "2", "--resume", early))
        assert {"run.json", "metrics-test.json", "auroc-test.svg", "best.safetensors"} <= marked_files(other)


@case("--eval-only marks its results if run.json is marked, also if the weights and the data set have no mark")
def run_is_marked(work):
    data = equal_image(work)
    training(data, f"{work}/run", "--epochs", "1")
    certify(data, code=1)
    document = json.loads(slurp(f"{work}/run/run.json"))
    write(f"{work}/run/run.json", json.dumps({**document, "leaky": True}))
    os.remove(f"{data}/split-certificate.json")
    done = training(data, f"{work}/run", "--eval-only")
    marked_lines(done)
    last = next(n for n in os.listdir(f"{work}/run") if re.fullmatch(r"step-\d+\.safetensors", n))
    training(data, f"{work}/out2", "--eval-only", "--init", f"{work}/run/{last}")
    for name in "run", "out2":
        assert json.loads(slurp(f"{work}/{name}/metrics-test.json"))["leaky"] is True
        assert "Leaky: " in slurp(f"{work}/{name}/auroc-test.svg").decode()


@case("a data set with a damaged record gets no certificate")
def no_certificate(work):
    sources(work)
    convert(f"{work}/out", split="clean.csv")
    shard = f"{work}/out/{manifest(f'{work}/out')['shards'][0]['name']}"
    data = bytearray(slurp(shard))
    data[3000] ^= 1
    write(shard, bytes(data))
    path = certify(f"{work}/out", code=1)
    assert not os.path.exists(path)


if __name__ == "__main__":
    sys.exit(case.main())
