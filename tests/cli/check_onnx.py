#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-predict --export: an ONNX file of each network gives the numbers of chex-train in onnxruntime.

    check_onnx.py [PATTERN]     cases with onnx and onnxruntime run with CHEX_SLOW=1
"""
import csv
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

from support import FINDINGS, SOURCE, Cases, Skip, program, python_with, run, says, slurp, tree, write
from training import data, header, scratch, three_splits, train, whole, with_header

case = Cases()
MODELS = ("densenet-micro", "densenet121", "resnet50")
TOLERANCE = 2e-6

# In Python with onnx and onnxruntime: the outputs for the images of val, from a file of pixels, in batches of 1 and 7.
SCORE = """
import json, sys
import numpy as np
import onnx, onnxruntime

path, dataset, crop, split = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
model = onnx.load(path)
onnx.checker.check_model(model, full_check=True)
with open(dataset + "/manifest.json") as f:
    manifest = json.load(f)
dtype = np.dtype(manifest["dtype"])
records = np.concatenate([np.fromfile(f"{dataset}/{s['name']}", dtype) for s in manifest["shards"]
                          if s["split"] == split])
records = records[records["weight"] == 1]
pixels = records["image"].reshape(len(records), *records["image"].shape[1:3])
top = (pixels.shape[1] - crop) // 2
pixels = np.ascontiguousarray(pixels[:, None, top:top + crop, top:top + crop])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
names = [o.name for o in session.get_outputs()]
by_batch = []
for batch in (1, 7):
    parts = [session.run(names, {"image": pixels[i:i + batch]}) for i in range(0, len(pixels), batch)]
    by_batch.append([np.concatenate(column) for column in zip(*parts)])
for one, seven in zip(*by_batch):
    assert np.allclose(one, seven, rtol=0, atol=2e-5, equal_nan=True)
found = dict(zip(names, by_batch[1]))
weight = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
bias = weight.get("classifier.bias", weight.get("fc.bias"))
cam = found.pop("cam").astype(np.float64)
mean = cam.mean((2, 3)) + bias
json.dump({
    "images": [n.decode() for n in records["filename"]],
    "outputs": {k: v.astype(np.float64).tolist() for k, v in found.items()},
    "cam": {"shape": cam.shape, "error": float(abs(mean - found["logit"]).max()), "range": float(np.ptp(cam))},
    "metadata": {p.key: p.value for p in model.metadata_props},
    "input": [model.graph.input[0].name, model.graph.input[0].type.tensor_type.elem_type,
              [d.dim_value or d.dim_param for d in model.graph.input[0].type.tensor_type.shape.dim]],
    "opset": [[o.domain, o.version] for o in model.opset_import], "ir": model.ir_version,
    "tensors": {i.name: list(i.dims) for i in model.graph.initializer},
    "nodes": [n.op_type for n in model.graph.node],
}, sys.stdout)
"""


def export(*words, code=0):
    return run([program("chex-predict"), *words], code)


@functools.lru_cache(None)
def images():
    return three_splits("onnx-data", 400, 16, "patient:30,45,25", "--seed", "5")


@functools.lru_cache(None)
def trained(model):
    out = os.path.join(scratch(), f"onnx-{model}")
    epochs = "6" if model == "densenet-micro" else "1"
    train(out, "--model", model, "--epochs", epochs, source=images())
    return out


@functools.lru_cache(None)
def runtime():
    python = python_with("onnxruntime")
    if run([python, "-c", "import onnx, onnxruntime"], None).returncode != 0:
        raise Skip("no Python here has onnx and onnxruntime")
    return python


def score(work, path, dataset, split="val", crop=32):
    script = write(os.path.join(work, "score.py"), SCORE)
    return json.loads(run([runtime(), script, path, dataset, str(crop), split]).stdout)


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["image"]: row for row in csv.DictReader(file)}


def worst_of(found, key, table, prefix):
    """The largest difference between an output and the columns of a CSV; both lack the same numbers."""
    worst = 0
    for name, values in zip(found["images"], found["outputs"][key]):
        for finding, value in zip(FINDINGS, values):
            text = table[name][prefix + finding]
            assert (text == "") == (value != value), f"{name} {finding}: {text!r} and {value}"
            if text:
                worst = max(worst, abs(float(text) - value))
    return worst


# ---- numbers -------------------------------------------------------------------------------------------------------


def compare(work, model):
    folder, path = trained(model), f"{work}/m.onnx"
    export(folder, "--export", path, "-q")
    found = score(work, path, images())
    table = rows(f"{folder}/predictions-val.csv")
    assert sorted(found["images"]) == sorted(table) and len(table) > 100
    worst = worst_of(found, "probability", table, "prob_")
    values = [v for row in found["outputs"]["probability"] for v in row]
    assert max(values) - min(values) > 0.02, "nothing is compared"
    assert worst < TOLERANCE, worst
    export(folder, images(), "--split", "val", "-o", f"{work}/out", "-q")
    table = rows(f"{work}/out/predictions.csv")
    calibrated = [f for f in FINDINGS if any(row["cal_" + f] for row in table.values())]
    assert ("calibrated" in found["outputs"]) == bool(calibrated), calibrated
    calibration = worst_of(found, "calibrated", table, "cal_") if calibrated else 0
    assert calibration < TOLERANCE, calibration
    cam = found["cam"]
    assert cam["shape"][0] == len(table) and cam["shape"][1] == 14 and cam["range"] > 1e-3, cam
    assert cam["error"] < 2e-5, cam
    print(f"     {model}: largest difference of a probability {worst:.1e}, of {len(calibrated)} calibrated "
          f"{calibration:.1e}, of mean(cam) + bias and the logit {cam['error']:.1e}")
    return found


@case("densenet-micro in onnxruntime: the probabilities of predictions-val.csv, calibration, maps", slow=True)
def _(work):
    found = compare(work, "densenet-micro")
    assert "calibrated" in found["outputs"], "no finding of this run is calibrated: nothing is compared"
    assert found["input"] == ["image", 2, ["N", 1, 32, 32]] and found["opset"] == [["", 13]] and found["ir"] == 8
    assert found["cam"]["shape"][2:] == [2, 2], found["cam"]


@case("densenet121 in onnxruntime: the same", slow=True)
def _(work):
    compare(work, "densenet121")


@case("resnet50 in onnxruntime: the same", slow=True)
def _(work):
    compare(work, "resnet50")


@case("a crop of another size gives maps of another size", slow=True)
def _(work):
    out = os.path.join(scratch(), "onnx-wide")
    wide = os.path.join(scratch(), "onnx-wide-data")
    run([program("chex-convert"), "-q", "-i", f"{images()}.images/images", "-l",
         f"{images()}.images/Data_Entry_2017_v2020.csv", "-o", wide, "--size", "64", "--shard-size", "16",
         "--split", "patient:30,45,25"])
    train(out, "--epochs", "1", "--crop", "60", source=wide)
    export(out, "--export", f"{work}/m.onnx", "-q")
    found = score(work, f"{work}/m.onnx", wide, crop=60)
    assert found["cam"]["shape"][2:] == [3, 3] and found["cam"]["error"] < 2e-5, found["cam"]
    assert worst_of(found, "probability", rows(f"{out}/predictions-val.csv"), "prob_") < TOLERANCE


@case("the tensors keep torchvision's names, and each node of the graph is an operation", slow=True)
def _(work):
    export(trained("densenet121"), "--export", f"{work}/m.onnx", "-q")
    found = score(work, f"{work}/m.onnx", images(), "test")
    tensors = {name: entry["shape"] for name, entry in header(f"{trained('densenet121')}/best.safetensors").items()
               if name != "__metadata__" and not name.endswith("num_batches_tracked")}
    added = set(found["tensors"]) - set(tensors)
    assert all(found["tensors"][n] == s for n, s in tensors.items()) and len(tensors) == 606
    assert added == {"image.levels", "image.mean", "image.deviation", "cam.weight"} | \
        {n for n in added if n.startswith("calibration.")}, added
    # 120 convolutions and the maps; 121 normalisations with a ReLU; 58 layers, of which 54 read several pieces, and
    # each transition and norm5 reads all; the Concat of the input
    count = {op: found["nodes"].count(op) for op in set(found["nodes"])}
    assert (count["Conv"], count["BatchNormalization"], count["Relu"], count["Concat"]) == (121, 121, 121, 59), count


# ---- the file ------------------------------------------------------------------------------------------------------


def decode(path):
    """The messages of the file as text, by protoc with our excerpt; the weights are left out."""
    protoc = os.environ.get("PROTOC") or shutil.which("protoc")
    if not protoc:
        raise Skip("there is no protoc")
    with open(path, "rb") as file:
        done = subprocess.run([protoc, "--decode=chex.ModelProto", f"-I{SOURCE}/schemas", "onnx.proto"], stdin=file,
                              capture_output=True, check=True)
    return re.sub(r'raw_data: ".*"', "raw_data", done.stdout.decode())


@case("metadata: findings, thresholds, data set, split, SHA-256 of the model, research use only")
def _(work):
    folder, path = whole(), f"{work}/m.onnx"
    done = export(folder, "--export", path)
    says(done, r"wrote +.*m\.onnx: densenet-micro in ONNX \(opset 13\), image uint8 \[N,1,32,32\]",
         "research use only, not for diagnosis")
    text = decode(path)
    found = dict(re.findall(r'metadata_props \{\s+key: "(.*?)"\s+value: "(.*?)"', text))
    with open(f"{data()}/manifest.json", encoding="utf-8") as file:
        manifest = json.load(file)
    assert found["findings"] == ",".join(FINDINGS)
    assert found["use"] == "Research use only, not for diagnosis" and f'doc_string: "{found["use"]}"' in text
    assert found["sha256"] == hashlib.sha256(slurp(f"{folder}/best.safetensors")).hexdigest()
    assert found["dataset_id"] == manifest["dataset_id"] and found["trained_on"] == "train" and found["network"] == \
        "densenet-micro"
    assert (found["image_size"], found["image_resize"], found["image_crop"]) == ("36", "bilinear", "32"), found
    assert "ir_version: 8" in text and re.search(r"opset_import \{\s+domain: \"\"\s+version: 13", text), text[-300:]
    export(folder, data(), "--split", "val", "-o", f"{work}/out", "-q")
    with open(f"{work}/out/predictions.json", encoding="utf-8") as file:
        wanted = ["" if f["threshold"] is None else f"{f['threshold']:.9g}" for f in json.load(file)["findings"]]
    assert found.get("thresholds", "," * 13) == ",".join(wanted), found


@case("--threshold FILE is the metadata's; the thresholds of val say so")
def _(work):
    write(f"{work}/t", "Hernia,0.125\nMass,0.5\n")
    export(whole(), "--export", f"{work}/m.onnx", "--threshold", f"{work}/t", "-q")
    found = dict(re.findall(r'metadata_props \{\s+key: "(.*?)"\s+value: "(.*?)"', decode(f"{work}/m.onnx")))
    wanted = ["0.125" if f == "Hernia" else "0.5" if f == "Mass" else "" for f in FINDINGS]
    assert found["thresholds"] == ",".join(wanted) and found["threshold_rule"] == "file"
    assert "thresholds_chosen_on" not in found, found
    export(trained("densenet-micro"), "--export", f"{work}/m.onnx", "--threshold", "sens90", "-q")
    found = dict(re.findall(r'metadata_props \{\s+key: "(.*?)"\s+value: "(.*?)"', decode(f"{work}/m.onnx")))
    assert (found["threshold_rule"], found["thresholds_chosen_on"]) == ("sensitivity_90", "val"), found


@case("the same model gives the same bytes from another folder, and a file without run.json lacks only its facts")
def _(work):
    shutil.copytree(whole(), f"{work}/other place")
    export(whole(), "--export", f"{work}/a.onnx", "-q")
    export(f"{work}/other place", "--export", f"{work}/b.onnx", "-q", "-j", "2")
    assert slurp(f"{work}/a.onnx") == slurp(f"{work}/b.onnx")
    os.mkdir(f"{work}/alone")
    shutil.copy(f"{whole()}/best.safetensors", f"{work}/alone/x.safetensors")
    export(f"{work}/alone/x.safetensors", "--export", f"{work}/c.onnx", "-q")
    keys = [set(re.findall(r'metadata_props \{\s+key: "(.*?)"', decode(f"{work}/{n}.onnx"))) for n in "ac"]
    assert keys[0] - keys[1] == {"image_size", "image_resize", "trained_on"} and keys[1] < keys[0], keys


@case("the file appears by rename: a failed write leaves the earlier one")
def _(work):
    os.mkdir(f"{work}/out")
    write(f"{work}/out/m.onnx", "earlier")
    done = run(["sh", "-c", f"ulimit -f 20; exec '{program('chex-predict')}' '{whole()}' --export '{work}/out/m.onnx'"],
               4)
    says(done, "m.onnx")
    assert tree(f"{work}/out") == {"m.onnx": hashlib.sha256(b"earlier").hexdigest()}, os.listdir(f"{work}/out")
    export(whole(), "--export", f"{work}/out/m.onnx", "-q")
    assert os.listdir(f"{work}/out") == ["m.onnx"] and os.path.getsize(f"{work}/out/m.onnx") > 100000
    says(export(whole(), "--export", f"{work}/none/m.onnx", code=4), "none")


@case("--json: where the file comes from")
def _(work):
    done = export(whole(), "--export", f"{work}/m.onnx", "--json", "-q")
    found = json.loads(done.stdout)
    try:
        import jsonschema
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "predict.schema.json"))))
    except ImportError:
        pass
    assert found["exported"]["sha256"] == hashlib.sha256(slurp(f"{work}/m.onnx")).hexdigest()
    assert found["exported"]["file"] == f"{work}/m.onnx" and found["exit_code"] == 0


@case("a leaky run marks the file; a model that is not ours is refused")
def _(work):
    shutil.copytree(whole(), f"{work}/leaky")
    with_header(f"{work}/leaky/best.safetensors", lambda top: top["__metadata__"].update(leaky="1"))
    export(f"{work}/leaky", "--export", f"{work}/m.onnx", "-q")
    assert ("leaky", "1") in re.findall(r'metadata_props \{\s+key: "(.*?)"\s+value: "(.*?)"', decode(f"{work}/m.onnx"))
    write(f"{work}/bad.safetensors", b"\0" * 100)
    says(export(f"{work}/bad.safetensors", "--export", f"{work}/n.onnx", code=3), "bad.safetensors")
    assert not os.path.exists(f"{work}/n.onnx")


sys.exit(case.main())
