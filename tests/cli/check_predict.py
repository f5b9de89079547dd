#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-predict: the bytes of --eval-only, whatever the threads, micro-batches and order of paths; images that cannot be
scored, or should not; several models.

    check_predict.py [PATTERN]
"""
import csv
import functools
import io
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import zipfile

import harness
from fixtures import LABELS, fixture
from support import FINDINGS, SOURCE, Cases, manifest, png, program, run, says, slurp, tree, write
from training import data, run_folder, scratch, three_splits, train, whole, with_header

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()


def predict(*words, code=0, **options):
    return run([program("chex-predict"), *words], code, **options)


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def scores(path):
    """{image: {column: text}} of the probabilities of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return {row["image"]: {key: value for key, value in row.items() if key.startswith("prob_")}
                for row in csv.DictReader(file)}


def document(text):
    found = json.loads(text)
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "predict.schema.json"))))
    return found


@functools.lru_cache(None)
def evaluated():
    """{image: scores} of all splits, by chex-train --eval-only, and the folder of the run."""
    out = os.path.join(scratch(), "evaluated")
    shutil.copytree(whole(), out)
    found = {}
    for split in ("train", "val", "test"):
        train(out, "--eval-only", "--split", split)
        found.update(scores(os.path.join(out, f"predictions-{split}.csv")))
    return found, out


def images():
    """The files that became data()."""
    return os.path.join(fixture("images120"), "images")


def folder_of(work, name, files):
    """A folder with these files: {name: bytes}."""
    path = os.path.join(work, name)
    os.makedirs(path)
    for file, content in files.items():
        write(os.path.join(path, file), content)
    return path


def gray(width=64, height=64, level=lambda x, y: (3 * x + 5 * y) % 256):
    return png(width, height, lambda y, w: bytes(level(x, y) for x in range(w)))


# ---- the same bytes ------------------------------------------------------------------------------------------------


@case("shards and the files that were converted get the probabilities of --eval-only, digit by digit")
def _(work):
    wanted, model = evaluated()
    for name, path in (("shards", data()), ("files", images())):
        predict(model, path, "-o", f"{work}/{name}", "-q")
        found = scores(f"{work}/{name}/predictions.csv")
        assert found == wanted, [n for n in wanted if found.get(n) != wanted[n]][:3]
    assert slurp(f"{work}/shards/predictions.csv") == slurp(f"{work}/files/predictions.csv")
    predict(model, data(), "--split", "test", "-o", f"{work}/test", "-q")
    assert scores(f"{work}/test/predictions.csv") == scores(os.path.join(model, "predictions-test.csv"))


@case("views, area and lanczos: also those of --eval-only")
def _(work):
    labels = os.path.join(fixture("images120"), LABELS)
    run([program("chex-convert"), "-q", "-i", images(), "-l", labels, "-o", f"{work}/area", "--size", "36", "--split",
         "patient:50,25,25", "--resize", "area"])
    out = run_folder(work)
    train(out, "--epochs", "1", source=f"{work}/area")
    train(out, "--eval-only", "--tta", "tencrop", source=f"{work}/area")
    done = predict(out, images(), "--tta", "tencrop", "-o", f"{work}/out")
    says(done, r"shrunk to 36x36 \(area\)")
    done = predict(whole(), f"{work}/area", "-o", f"{work}/other")
    says(done, r"of 36x36, shrunk for the data set \(area\)",
         "note .* was made with --resize area, the images of the training with --resize bilinear")
    assert document(slurp(f"{work}/other/predictions.json"))["images"]["resize"] == "area"
    wanted, found = scores(f"{out}/predictions-test.csv"), scores(f"{work}/out/predictions.csv")
    assert wanted and all(found[name] == wanted[name] for name in wanted)
    predict(out, images(), "--tta", "tencrop", "-o", f"{work}/lanczos", "--resize", "lanczos", "-q")
    assert scores(f"{work}/lanczos/predictions.csv") != found


@case("threads, micro-batches, order of the paths, archives and parts change no byte")
def _(work):
    names = sorted(os.listdir(images()))
    first = folder_of(work, "first", {n: slurp(os.path.join(images(), n)) for n in names[:50]})
    with tarfile.open(f"{work}/second.tar.gz", "w:gz") as tar:
        for name in reversed(names[45:80]):
            tar.add(os.path.join(images(), name), f"some/{name}")
    with zipfile.ZipFile(f"{work}/third.zip", "w") as archive:
        for name in names[80:]:
            archive.write(os.path.join(images(), name), name)
    predict(whole(), images(), "-o", f"{work}/reference", "-q", "-j", "1")
    reference = tree(f"{work}/reference")
    assert document(slurp(f"{work}/reference/predictions.json"))["synthetic"] is True
    write(f"{work}/SYNTHETIC.txt", "")  # next to the folder and the archives, as chex-synth's
    paths = [first, f"{work}/second.tar.gz", f"{work}/third.zip"]
    for number, words in enumerate((["-j", "2"], ["-j", "1", "--micro-batch", "1"], ["-j", "3", "--micro-batch", "7"],
                                    ["-j", "2", "--micro-batch", "200"])):
        out = f"{work}/out{number}"
        predict(*(paths if number % 2 else paths[::-1]), whole(), *words, "-o", out, "-q")
        assert tree(out) == reference, f"{words}: other bytes"
    lines = []
    for part in (3, 1, 2):
        text = predict(whole(), *paths, "--part", f"{part}/3", "-q").stdout.splitlines(keepends=True)
        lines += text[1:] if lines else text
    assert sorted(lines[1:]) == sorted(slurp(f"{work}/reference/predictions.csv").decode().splitlines(True)[1:])


@case("the document names model, thresholds and images, and neither path, host nor time")
def _(work):
    folder = folder_of(work, "secret-place", {"a.png": gray(), "b.png": b"no image"})
    done = predict(whole(), folder, "--json", "-q", "-o", f"{work}/out", code=1)
    shown, stored = document(done.stdout), document(slurp(f"{work}/out/predictions.json"))
    assert shown.pop("exit_code") == 1 and shown == stored
    assert stored["counts"]["images"] == 2 and stored["counts"]["scored"] == 1 and stored["images"]["size"] == 36
    assert [r["image"] for r in stored["refused"]] == ["b.png"] and stored["threshold"]["chosen_on"] == "val"
    for name in os.listdir(f"{work}/out"):
        assert b"secret-place" not in slurp(f"{work}/out/{name}"), name
    assert "error" in document(predict(whole(), "--json", code=2).stdout)


# ---- flags ---------------------------------------------------------------------------------------------------------


@case("flags and calibration are those that val chose")
def _(work):
    source, (out, *_) = ensemble()
    with open(f"{out}/best.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    fitted = {f["name"]: f for f in json.loads(header["__metadata__"]["operating"])["findings"]}
    assert any(f["platt"] for f in fitted.values()), "no finding was fitted"
    for which, rule in (("youden", "youden"), ("sens90", "sensitivity_90")):
        for row in rows(predict(out, source, "--split", "test", "--threshold", which, "-q").stdout):
            for name in FINDINGS:
                p, f = float(row[f"prob_{name}"]), fitted[name]
                flag = str(int(p >= f[rule]["threshold"])) if f[rule] else ""
                assert row[f"flag_{name}"] == flag, (row["image"], name)
                if not f["platt"]:
                    assert row[f"cal_{name}"] == ""
                    continue
                z = math.log(p) - math.log1p(-p)
                calibrated = 1 / (1 + math.exp(-(f["platt"]["a"] * z + f["platt"]["b"])))
                assert math.isclose(float(row[f"cal_{name}"]), calibrated, rel_tol=1e-4), (row["image"], name)


def youden(scores, labels):
    """The threshold with the largest sensitivity + specificity - 1, the lowest of equal ones first; by trying all."""
    positives = sum(labels)
    return max(((sum(lab for s, lab in zip(scores, labels) if s >= t) / positives
                 - sum(1 - lab for s, lab in zip(scores, labels) if s >= t) / (len(labels) - positives)), t)
               for t in set(scores))[0]


@functools.lru_cache(None)
def ensemble():
    """A data set with enough positives in val, and three runs on it that differ in their seeds."""
    source = three_splits("fitted", 260, 16, "patient:25,50,25")
    runs = [os.path.join(scratch(), f"member{seed}") for seed in (1, 2, 3)]
    for seed, out in enumerate(runs, 1):
        train(out, "--epochs", "1", "--seed", seed, source=source)
    return source, runs


def best_youden(scores, labels):
    """The largest sensitivity + specificity - 1 of any threshold."""
    positives, negatives = sum(labels), len(labels) - sum(labels)
    return max(sum((1 / positives if label else -1 / negatives) for score, label in zip(scores, labels) if score >= t)
               for t in set(scores))


@case("the mean and the deviation of several models, with thresholds and calibration of their mean on val")
def _(work):
    source, models = ensemble()
    test = (source, "--split", "test")
    single = [rows(predict(m, *test, "-q").stdout) for m in models]
    done = predict(*models, *test, "-o", f"{work}/out")
    says(done, r"flags +\d+ of 14 findings, thresholds youden, chosen on val; \d+ calibrated")
    told = {f["name"]: f for f in document(slurp(f"{work}/out/predictions.json"))["findings"]}
    val = [rows(slurp(f"{m}/predictions-val.csv").decode()) for m in models]
    fitted = [name for name in FINDINGS if told[name]["platt"]]
    assert fitted, told
    for name in fitted:
        mean = [statistics.fmean(float(v[f"prob_{name}"]) for v in line) for line in zip(*val)]
        labels = [int(v[f"label_{name}"]) for v in val[0]]
        threshold, a, b = told[name]["threshold"], told[name]["platt"]["a"], told[name]["platt"]["b"]
        positives, negatives = sum(labels), len(labels) - sum(labels)
        gain = sum((1 / positives if label else -1 / negatives) for p, label in zip(mean, labels)
                   if p >= threshold * (1 - 1e-7))
        assert math.isclose(gain, best_youden(mean, labels), abs_tol=1e-9), (name, gain)
        off = [1 / (1 + math.exp(-(a * math.log(p / (1 - p)) + b)))  # the gradient of Platt's likelihood is 0
               - ((positives + 1) / (positives + 2) if label else 1 / (negatives + 2))
               for p, label in zip(mean, labels)]
        assert abs(statistics.fmean(off)) < 1e-5, (name, statistics.fmean(off))
    text = slurp(f"{work}/out/predictions.csv").decode()
    for number, row in enumerate(rows(text)):
        for name in FINDINGS:
            members, p = [float(s[number][f"prob_{name}"]) for s in single], float(row[f"prob_{name}"])
            assert math.isclose(p, statistics.mean(members), rel_tol=1e-6)
            assert math.isclose(float(row[f"sd_{name}"]), statistics.stdev(members), rel_tol=1e-3, abs_tol=1e-8)
            if name not in fitted:
                assert row[f"cal_{name}"] == ""
                continue
            logit = told[name]["platt"]["a"] * math.log(p / (1 - p)) + told[name]["platt"]["b"]
            assert math.isclose(float(row[f"cal_{name}"]), 1 / (1 + math.exp(-logit)), rel_tol=1e-4)
            assert row[f"flag_{name}"] == str(int(p >= told[name]["threshold"]))
    assert predict(*models, *test, "-q", "--micro-batch", "5").stdout == text
    write(f"{work}/thresholds", "Hernia,0.5\n")
    for row in rows(predict(*models, *test, "--threshold", f"{work}/thresholds", "-q").stdout):
        assert row["flag_Hernia"] == str(int(float(row["prob_Hernia"]) >= 0.5)) and row["flag_Mass"] == ""


@case("several models have no thresholds without the predictions of each on the same images of val; a line says why")
def _(work):
    source, runs = ensemble()

    def why(other):
        done = predict(runs[0], other, source, "--split", "test")
        assert all(row[key] == "" for row in rows(done.stdout) for key in row if key.startswith(("flag_", "cal_")))
        return re.sub(r"\s+", " ", done.stderr)

    other, fold = f"{work}/other", f"{work}/fold"
    shutil.copytree(runs[1], other)
    train(fold, "--epochs", "1", "--fold", "1/3", source=source)
    shutil.copy(f"{runs[2]}/predictions-val.csv", other)
    assert "predictions-val.csv' does not hold the predictions of" in why(other)
    os.unlink(f"{other}/predictions-val.csv")
    assert re.search("predictions-val.csv'.* No such file", why(other)), why(other)
    assert "chose its thresholds on other images" in why(fold)


@case("models of other findings or other images are refused")
def _(work):
    def copy(name, change):
        other = os.path.join(work, name)
        shutil.copytree(whole(), other)
        with_header(f"{other}/best.safetensors", lambda top: change(top["__metadata__"]))
        return other

    for number, change in enumerate((lambda m: m.update(labels=m["labels"].replace("Hernia", "Cold")),
                                     lambda m: m.update(labels="Mass"), lambda m: m.update(labels="Mass,,Mass"),
                                     lambda m: m.pop("labels"), lambda m: m.update(operating="[]"),
                                     lambda m: m.update(labels="A," * 300), lambda m: m.update(state="{}"))):
        says(predict(whole(), copy(f"other{number}", change), images(), code=6), "chex-predict: .*other")
    other = os.path.join(work, "larger")
    shutil.copytree(whole(), other)
    text = json.loads(slurp(f"{other}/run.json"))
    text["dataset"]["width"] = 40
    write(f"{other}/run.json", json.dumps(text))
    says(predict(whole(), other, images(), code=6), "is for images of 36 x 36, and .* for 40 x 40")
    says(predict(other, data(), code=6), "has images of 36 x 36, and the model is for 40 x 40")


@case("the marks of a leaky and of a short run are on every line")
def _(work):
    other = os.path.join(work, "marked")
    shutil.copytree(whole(), other)
    text = json.loads(slurp(f"{other}/run.json"))
    text["leaky"] = True
    write(f"{other}/run.json", json.dumps(text))
    with_header(f"{other}/best.safetensors", lambda top: top["__metadata__"].update(short_run="--limit 9"))
    predict(whole(), other, data(), "--split", "val", "-o", f"{work}/out", "-q")
    found = rows(slurp(f"{work}/out/predictions.csv").decode())
    assert found and all((row["leaky"], row["short_run"]) == ("1", "--limit 9") for row in found)
    assert document(slurp(f"{work}/out/predictions.json"))["leaky"] is True


# ---- images that cannot be scored, or should not -------------------------------------------------------------------


@case("refused images have a reason and an empty line; the others are scored as without them")
def _(work):
    good = slurp(os.path.join(images(), sorted(os.listdir(images()))[0]))
    files = {"good.png": good, "empty.png": b"", "cut.png": good[:len(good) // 2], "page.png": b"<html>404</html>",
             "dicom.png": b"\0" * 128 + b"DICM" + b"\0" * 100, "evil,\"\n.png": good[:20],
             "huge.png": png(1, 1).replace(b"\0\0\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\0"),
             "flipped.png": good[:60] + bytes([good[60] ^ 1]) + good[61:], "cut.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF"}
    folder = folder_of(work, "files", files)
    done = predict(whole(), folder, "-o", f"{work}/out", code=1)
    says(done, "8 images refused", "refused  cut.png: truncated", "dcmj2pnm .* dicom.png IMAGE.png")
    found = {row["image"]: row for row in rows(slurp(f"{work}/out/predictions.csv").decode())}
    assert sorted(found) == sorted(files), sorted(found)
    refused = rows(slurp(f"{work}/out/refused.csv").decode())
    assert [r["image"] for r in refused] == sorted(set(files) - {"good.png"}), refused
    assert all(re.fullmatch("[a-z_-]+", r["reason"].replace(" ", "-")) and r["detail"] for r in refused), refused
    for name, row in found.items():
        assert row["status"] == ("ok" if name == "good.png" else "refused")
        assert (row["prob_Mass"] == "") == (name != "good.png")
    alone = rows(predict(whole(), os.path.join(folder, "good.png"), "-q").stdout)
    assert alone == [found["good.png"]]


@case("a damaged record is refused, and a damaged archive is reported with the images that it lost")
def _(work):
    shards = os.path.join(work, "shards")
    shutil.copytree(data(), shards)
    name = sorted(n for n in os.listdir(shards) if "-test" in n)[0]
    blob = bytearray(slurp(os.path.join(shards, name)))
    stride = manifest(shards)["record"]["stride"]
    blob[3 * stride + stride // 2] ^= 1  # a pixel
    write(os.path.join(shards, name), bytes(blob))
    done = predict(whole(), shards, "-o", f"{work}/out", code=1)
    says(done, "1 image refused")
    assert [r["reason"] for r in rows(slurp(f"{work}/out/refused.csv").decode())] == ["checksum"]
    with tarfile.open(f"{work}/a.tar", "w") as tar:
        for image in sorted(os.listdir(images()))[:20]:
            tar.add(os.path.join(images(), image), image)
    blob = slurp(f"{work}/a.tar")
    write(f"{work}/a.tar", blob[:len(blob) // 2])
    done = predict(whole(), f"{work}/a.tar", "-o", f"{work}/cut", code=1)
    says(done, "1 archive damaged")
    listed = rows(slurp(f"{work}/cut/refused.csv").decode())
    assert listed[-1]["image"] == "a.tar" and listed[-1]["reason"] == "damaged", listed
    assert document(slurp(f"{work}/cut/predictions.json"))["counts"]["damaged_archives"] == 1


@case("doubtful images are scored and named; --strict refuses them")
def _(work):
    coloured = png(64, 64, lambda y, w: b"".join(bytes((x * 4, y * 4, 0)) for x in range(w)), colour=2)
    files = {"blank.png": gray(level=lambda x, y: 100), "colour.png": coloured, "good.png": gray(),
             "wide.png": gray(129, 64), "limit.png": gray(128, 64), "small.png": gray(31, 40),
             "dark.png": gray(40, 20, lambda x, y: x % 9)}
    wanted = {"blank.png": "blank", "colour.png": "colour", "good.png": "ok", "wide.png": "aspect", "limit.png": "ok",
              "small.png": "small", "dark.png": "blank+small"}
    folder = folder_of(work, "files", files)
    done = predict(whole(), folder, "-o", f"{work}/out")
    says(done, "5 images scored although doubtful: 2 blank, 1 colour, 1 aspect, 2 small")
    found = rows(slurp(f"{work}/out/predictions.csv").decode())
    assert {r["image"]: r["status"] for r in found} == wanted, found
    assert all(r["prob_Mass"] for r in found)
    done = predict(whole(), folder, "-o", f"{work}/strict", "--strict", code=1)
    says(done, "5 images refused")
    reasons = {r["image"]: r["reason"] for r in rows(slurp(f"{work}/strict/refused.csv").decode())}
    assert reasons == {n: w.split("+")[0] for n, w in wanted.items() if w != "ok"}, reasons
    kept = [r for r in rows(slurp(f"{work}/strict/predictions.csv").decode()) if r["status"] == "ok"]
    assert kept == [r for r in found if r["status"] == "ok"]


@case("two files of one name: equal ones are one image, different ones need --name-parts")
def _(work):
    for day, content in (("day1", gray()), ("day2", gray())):
        folder_of(work, day, {"1.png": content})
    assert len(rows(predict(whole(), f"{work}/day1", f"{work}/day2", "-q").stdout)) == 1
    write(f"{work}/day2/1.png", gray(65))
    says(predict(whole(), f"{work}/day1", f"{work}/day2", code=2), "'1.png' found twice with .*--name-parts 2 keeps")
    for day in ("day1", "day2"):
        with tarfile.open(f"{work}/{day}.tar", "w") as tar:
            tar.add(f"{work}/{day}", day)
    says(predict(whole(), f"{work}/day1.tar", f"{work}/day2.tar", code=2), r"day2.tar' \(--name-parts 2 keeps")
    predict(whole(), f"{work}/day1.tar", f"{work}/day2.tar", "--name-parts", "2", "-q")
    found = rows(predict(whole(), f"{work}/day2", f"{work}/day1", "--name-parts", "2", "-q").stdout)
    assert [r["image"] for r in found] == ["day1/1.png", "day2/1.png"], found


@case("a data set that cannot be listed ends with 3 or 6, and another split is scored")
def _(work):
    shards = os.path.join(work, "shards")
    shutil.copytree(data(), shards)
    name = sorted(n for n in os.listdir(shards) if "-test" in n)[0]
    write(os.path.join(shards, name), slurp(os.path.join(shards, name))[:1000])
    done = predict(whole(), shards, "-o", f"{work}/out", code=3)
    says(done, rf"chex-predict: repair .*{name}")
    assert not os.path.exists(f"{work}/out")
    predict(whole(), shards, "--split", "val", "-q")
    write(f"{shards}/manifest.json", "{")
    says(predict(whole(), shards, code=6), "chex-predict: .*manifest.json")


@case("notes name the images of a data set that the model was trained on")
def _(work):
    fold = run_folder(work)
    train(fold, "--epochs", "1", "--fold", "2/3")
    for split in ("val", "train"):
        done = predict(fold, data(), "--split", split)
        says(done, "trained with --fold 2/3: its training images are in train and val of")
    assert "trained" not in predict(fold, data(), "--split", "test").stderr
    says(predict(whole(), data(), "--split", "train"), "was trained on the images of the split train of")
    says(predict(whole(), data()), "was trained on the images of the split train of")
    assert "trained" not in predict(whole(), data(), "--split", "val").stderr
    says(predict(whole(), whole(), data(), "--split", "val"), "is the same model as .*: the mean counts it again")


@case("a note if the precision or the views differ from those that chose the thresholds")
def _(work):
    note = "thresholds and calibration were chosen with --precision fp32 --tta none; these scores have"
    says(predict(whole(), images(), "--tta", "flip"), note, "--precision\\s+fp32 --tta flip")
    assert "were chosen with" not in " ".join(predict(whole(), images()).stderr.split())


@case("every CSV says research_use_only in its last column")
def _(work):
    broken = os.path.join(work, "scans")
    os.mkdir(broken)
    write(f"{broken}/broken.png", b"no image")
    predict(whole(), images(), broken, "-o", f"{work}/out", code=1)
    for name in ("predictions.csv", "refused.csv"):
        found = rows(slurp(f"{work}/out/{name}").decode())
        assert found and all(list(row)[-1] == "research_use_only" and row["research_use_only"] == "1" for row in found)


@case("two processes do not write one folder (5)")
def _(work):
    out = os.path.join(work, "out")
    os.mkdir(out)
    write(f"{out}/.chex.lock", b"host elsewhere pid 1 since 10:31\n")
    done = predict(whole(), images(), "-o", out, code=5)
    says(done, "is in use")
    assert os.listdir(out) == [".chex.lock"]
    predict(whole(), images(), "-o", out, "--break-lock")
    assert sorted(os.listdir(out)) == ["predictions.csv", "predictions.json", "refused.csv"], os.listdir(out)


# ---- output that fails, and stops ----------------------------------------------------------------------------------


@case("a folder that cannot be released ends with 4, and --json prints one document")
def _(work):
    command = [program("chex-predict"), whole(), images(), "-o", f"{work}/out", "-f", "--json", "-q"]
    good = harness.run(command, [f"{work}/out"], report=f"{work}/report")
    assert good.code == 0 and json.loads(good.out)["exit_code"] == 0 and good.counts["unlink"] > 1, good
    again = harness.run(command, [f"{work}/out"], report=f"{work}/report")
    bad = harness.run(command, [f"{work}/out"], f"unlink:{again.counts['unlink']}:once:EIO")  # the last: of the lock
    told = json.loads(bad.out)
    assert bad.code == told["exit_code"] == 4 and ".chex.lock" in told["error"] and ".chex.lock" in bad.err, bad
    assert os.path.exists(f"{work}/out/predictions.json")


@case("a full disk ends with 4, and no file of the result is there")
def _(work):
    os.mkdir(f"{work}/out")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = predict(whole(), images(), "-o", f"{work}/out", code=4, preexec_fn=limit)
    says(done, "chex-predict: .*predictions.csv")
    assert not {"predictions.csv", "predictions.json"} & set(os.listdir(f"{work}/out")), os.listdir(f"{work}/out")
    assert not [n for n in os.listdir(f"{work}/out") if n.startswith(".")]
    with open("/dev/full", "w", encoding="ascii") as full:
        done = predict("-q", whole(), images(), code=4, stdout=full)
    says(done, r"\Achex-predict: cannot write to standard output: disk full\n\Z")
    predict(whole(), images(), "-o", f"{work}/out", "--force")


@case("a signal stops with 75 and writes nothing")
def _(work):
    command = [program("chex-predict"), whole(), fixture("larger"), "-o", f"{work}/out", "-j", "1", "--device", "ref",
               "--tta", "tencrop"]  # ten times the work: seconds
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("device"):
                process.terminate()
        assert process.wait() == 75, process.returncode
    assert not os.path.exists(f"{work}/out")


if __name__ == "__main__":
    sys.exit(case.main())
