# SPDX-License-Identifier: Apache-2.0
"""Ten epochs on 8,192 synthetic images, on a device and on the CPU: two curves beside each other (a part of
check_gpu.py).

The same seed, order and augmentation; the precisions differ, so the curves need not be equal: at the end the training
loss is at most a tenth above the CPU's, and the best validation AUROC at most 0.02 below it.  Recorded are both curves,
images a second, the share of the time in which the device waited for images, and that in which it computed.
"""
import json
import os
import shutil

from runs import Lab

SIDE, CROP, BATCH = 96, 80, 64
LOSS, AUROC = 1.1, 0.02


def lines_of(folder, kind):
    """The last line of this kind of each epoch."""
    found = {}
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        for line in map(json.loads, file):
            if line["kind"] == kind and (kind != "evaluation" or line["split"] == "val") and \
                    (kind != "times" or line["over"] == "epoch"):
                found[line["epoch"]] = line
    return [found[epoch] for epoch in sorted(found)]


def curve_of(folder):
    """What a run says of its epochs."""
    epochs, scores, times = (lines_of(folder, kind) for kind in ("epoch", "evaluation", "times"))
    waited = sum(line["parts"]["data_wait"] for line in epochs) / sum(line["seconds"] for line in epochs)
    busy = [line["factors"]["device_busy"] for line in times]
    return {"loss": [round(line["loss"], 4) for line in epochs], "auroc": [round(line["auroc"], 4) for line in scores],
            "img_s": round(epochs[-1]["images_per_second"], 1), "data_wait": round(waited, 4),
            "busy": None if None in busy or not busy else round(sum(busy) / len(busy), 4)}


def judge(ours, theirs):
    """Both curves; what is wrong with ours."""
    assert len(ours["loss"]) == len(theirs["loss"]) and len(ours["auroc"]) == len(ours["loss"]), (ours, theirs)
    assert ours["loss"][-1] <= LOSS * theirs["loss"][-1], \
        f"loss {ours['loss'][-1]}, {theirs['loss'][-1]} on the other device: {ours['loss']}, {theirs['loss']}"
    assert max(ours["auroc"]) >= max(theirs["auroc"]) - AUROC, \
        f"AUROC {max(ours['auroc'])}, {max(theirs['auroc'])} on the other device: {ours['auroc']}, {theirs['auroc']}"


def check_curve(r, o):
    lab = Lab(r, o)

    def train(name, device, precision=None):
        more = ["--crop", CROP, "--batch", BATCH, "--epochs", o.epochs, "-v"]
        r.run(lab.words(name, *more, device=device, precision=precision), 0, r.left())
        return curve_of(lab.folder(name))

    def beside(precision):
        ours = train(f"device-{precision}", o.device, precision)
        judge(ours, theirs)
        return ours

    try:
        lab.data = lab.make_data("data", o.images, SIDE, SIDE, split="patient:80,10,10", shard=256)
        theirs = r.case(f"{o.images} images, {o.epochs} epochs on {o.against}", lambda: train("other", o.against))
        for precision in o.precisions if theirs else ():
            r.case(f"the same on {o.device}, {precision}", lambda precision=precision: beside(precision))
    finally:
        shutil.rmtree(lab.work, ignore_errors=True)
