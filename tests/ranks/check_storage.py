#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train --device none: what is read, by 1, 2 and 4 ranks; its figures and exit codes.

    check_storage.py [PATTERN]      only the cases whose name matches the regular expression

Cases with several ranks are skipped where there is no mpirun, or the programs were built without MPI.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

import mpi
from mpi import ENVIRONMENT
from support import PATIENCE, SOURCE, Cases, Skip, manifest, program, run, says, slurp, tree
from training import copy, data, finish, poison, run_folder, train

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
BATCH = {1: 16, 2: 8, 4: 4}  # images of a step of each rank: 16 of all


def train_images():
    return sum(s["images"] for s in manifest(data())["shards"] if s["split"] == "train")


def command(count, *more, source=None):
    line = [program("chex-train"), "-d", source or data(), "--device", "none", *map(str, more)]
    return line if count == 1 else mpi.ranks("chex-train", count, *line)


def check(count, *more, code=0, source=None, **options):
    options.setdefault("env", ENVIRONMENT)
    return run(command(count, *more, source=source), code, **options)


def result(done):
    document = json.loads(done.stdout)
    if jsonschema:
        jsonschema.validate(document, json.loads(slurp(os.path.join(SOURCE, "schemas", "train.schema.json"))))
    return document["storage"]


def epoch_orders(out):
    lines = [json.loads(line) for line in slurp(os.path.join(out, "metrics.jsonl")).splitlines()]
    return [line["order"] for line in lines if line["kind"] == "epoch"]


@case("an epoch reads every image of train once, in the order of a run, and writes nothing")
def _(work):
    before = tree(data())
    found = result(check(1, "--batch", 16, "--json", cwd=work))
    images, stride = train_images(), manifest(data())["record"]["stride"]
    assert found["images"] == images and images <= found["bytes"] / stride < images + 16, found  # with padding
    assert found["steps"] == -(-images // 16) and found["global_batch"] == 16, found
    assert found["rate"] is None and found["gpus"] is None and found["cpu_seconds"] > 0, found
    assert tree(data()) == before and os.listdir(work) == []
    out = run_folder(work)
    train(out, "--epochs", 2)
    orders = epoch_orders(out)
    second = result(check(1, "--batch", 16, "--epochs", 2, "--json"))
    assert orders == [found["order"], second["order"]] and orders[0] != orders[1], (orders, found, second)
    assert second["images"] == 2 * images and second["bytes"] == 2 * found["bytes"], second


@case("1, 2 and 4 ranks read the same images in the same order, each its part")
def _(work):
    alone = result(check(1, "--batch", BATCH[1], "--json"))
    for count in (2, 4):
        done = check(count, "--batch", BATCH[count], "--json", "--ranks", count)
        found = result(done)
        assert found["ranks"] == count, found
        for key in ("images", "steps", "order", "global_batch"):
            assert found[key] == alone[key], (key, found, alone)
    done = check(2, "--ranks", 4, code=2)
    says(done, "--ranks 4, and this job has 2: start them with mpirun -np 4 or srun")


@case("--max-steps and --limit make the check shorter")
def _(work):
    found = result(check(1, "--batch", 16, "--max-steps", 3, "--epochs", 5, "--json"))
    assert found["steps"] == 3 and found["images"] == 48, found
    found = result(check(1, "--batch", 16, "--limit", 40, "--json"))
    assert 0 < found["images"] <= 40, found


@case("a simulated GPU of a low rate takes its time and does not wait; one of an absurd rate waits")
def _(work):
    done = check(1, "--batch", 16, "--rate", 200, "--json")
    found = result(done)
    assert found["seconds"] >= 0.99 * train_images() / 200, found  # never faster than its rate
    found = result(check(1, "--batch", 16, "--rate", 1e9, "--json"))
    assert found["ranks_waited"] == 1 and found["gpus"] == 0 and found["wait_share_most"] > 0.01, found
    done = check(1, "--batch", 1, "--rate", 1e9, "--max-steps", 1)
    says(done, r"done     too short to say how many GPUs this file system.* feeds: 1 of at least 10 steps")
    assert result(check(1, "--batch", 1, "--rate", 1e9, "--max-steps", 1, "--json"))["gpus"] is None
    done = check(1, "--batch", 16, "--rate", 1e9)
    says(done, "wait     1 of 1 rank waited for images", r"feeds 0 GPUs of 1,000,000,000 img/s: all ranks together got")


@case("the report says what came from the page cache, and the command it gives drops the shards from it")
def _(work):
    check(1)  # now they are cached
    found = result(check(1, "--json"))
    if found["disk_bytes"] is None:
        raise Skip("this kernel does not count the bytes from disks")
    done = check(1)
    says(done, r"source   \d+ % of .* came from a disk")
    if found["disk_bytes"] < 0.9 * found["bytes"]:
        line = next(line for line in done.stderr.splitlines() if "iflag=nocache" in line)
        run(["sh", "-c", line])
        assert "chestxray" in subprocess.run(["sh", "-c", line.replace("dd if", "echo if")], check=True,
                                             capture_output=True, text=True).stdout


@case("--stage copies first, and --cache host reads each image once for all epochs")
def _(work):
    stage = os.path.join(work, "stage")
    found = result(check(1, "--stage", stage, "--json"))
    assert found["images"] == train_images() and len(os.listdir(stage)) == 1, found
    found = result(check(1, "--cache", "host", "--epochs", 4, "--json"))
    assert found["images"] == 4 * train_images(), found
    assert found["bytes"] < 4 * train_images() * manifest(data())["record"]["stride"], found


@case("a missing, truncated or damaged shard ends the check with the exit code and the error of a run")
def _(work):
    for how in ("missing", "truncated", "damaged"):
        place = os.path.join(work, how)
        os.mkdir(place)
        folder = copy(place)
        shard = os.path.join(folder, next(s["name"] for s in manifest(folder)["shards"] if s["split"] == "train"))
        if how == "missing":
            os.unlink(shard)
        elif how == "truncated":
            os.truncate(shard, 5000)
        else:
            poison(folder)
        trained = train(os.path.join(place, "run"), "--device", "cpu", code=None, source=folder)
        assert trained.returncode in (1, 3), trained.stderr
        for count in (1, 2):
            if count == 2 and not mpi.mpirun("chex-train"):
                continue
            checked = check(count, "--batch", BATCH[count], code=trained.returncode, source=folder)
            error = next(line for line in checked.stderr.splitlines() if line.startswith("chex-train: "))
            assert os.path.basename(shard) in error, error
    done = check(1, "--on-bad-record", "skip", code=1, source=os.path.join(work, "damaged", "copy"))
    says(done, "1 damaged record skipped", "done     this file system")


@case("SIGTERM ends the check with 75, and the figures until then are printed")
def _(work):
    process = subprocess.Popen(command(1, "--batch", 4, "--rate", 8), stderr=subprocess.PIPE, text=True,
                               env=ENVIRONMENT)
    seen = []
    while not any(line.startswith("images ") for line in seen):  # the check begins after the plan
        line = process.stderr.readline()
        assert line, seen
        seen.append(line)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 75, rest
    assert "stopped after" in rest and "img/s" in rest and "resumes" not in rest, rest
    images, seconds = re.search(r"read +(\d+) images? in ([0-9.]+) s", rest).groups()
    assert int(images) <= 8 * (float(seconds) + 0.05) + 1, rest  # not all of a micro-batch that it has begun


if __name__ == "__main__":
    sys.exit(finish(case))
