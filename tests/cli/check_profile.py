#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-convert --profile: what it measures, that it writes nothing, and what it refuses.

    check_profile.py [PATTERN]      only the cases whose name matches the regular expression
"""
import json
import os
import re
import sys
import tarfile

from fixtures import LABELS, fixture
from support import SOURCE, Cases, program, run, says, slurp, tree, write

try:
    import jsonschema
except ImportError:
    jsonschema = None

case = Cases()
STAGES = ["read", "inflate", "unfilter", "resize", "record", "other"]


def profile(*words, folder=None, inputs=None, code=0, **options):
    source = folder or fixture("larger")
    return run([program("chex-convert"), "-i", inputs or os.path.join(source, "images"), "-l",
                os.path.join(source, LABELS), "--profile", *map(str, words)], code, **options)


def document(*words, **options):
    found = json.loads(profile("--json", *words, **options).stdout)
    if jsonschema:
        jsonschema.validate(found, json.loads(slurp(os.path.join(SOURCE, "schemas", "convert.schema.json"))))
    return found


@case("every image is measured once for each number of threads, and nothing is written")
def _(work):
    before = tree(fixture("larger"))
    found = document("-j", "1..3", "-o", os.path.join(work, "out"), cwd=work)
    runs = found["profile"]["runs"]
    assert [r["threads"] for r in runs] == [1, 2, 3], runs
    size = sum(os.path.getsize(os.path.join(fixture("larger"), "images", name))
               for name in os.listdir(os.path.join(fixture("larger"), "images")))
    for r in runs:
        assert (r["images"], r["rejects"], r["bytes"]) == (120, 0, size), r
        assert list(r["stages"]) == STAGES and all(r["stages"][name] > 0 for name in STAGES[:5]), r
        assert abs(sum(r["stages"].values()) - r["cpu_seconds"]) < 0.05 * r["cpu_seconds"] + 1e-3, r
        assert r["stages"]["inflate"] > r["stages"]["read"], r  # images of 384 x 384 from the page cache
    assert runs[0]["speedup"] == 1 and runs[0]["efficiency"] == 1, runs
    last = runs[-1]
    wanted = last["cpu_seconds"] / last["images"] * found["plan"]["images"] / 3600
    assert abs(found["profile"]["core_hours"] / wanted - 1) < 1e-9 and found["profile"]["cores_for_an_hour"] == 1, found
    assert os.listdir(work) == [] and tree(fixture("larger")) == before


@case("-j N measures one number of threads, without a speed-up; a range doubles up to its end")
def _(work):
    runs = document("-j", 2)["profile"]["runs"]
    assert [(r["threads"], r["speedup"]) for r in runs] == [(2, None)], runs
    assert [r["threads"] for r in document("-j", "1..6", "--limit", 8)["profile"]["runs"]] == [1, 2, 4, 6]
    assert [r["threads"] for r in document("-j", "3..6", "--limit", 8)["profile"]["runs"]] == [3, 6]


@case("--limit ends a run early, also in an archive")
def _(work):
    archive = os.path.join(work, "images.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as f:
        f.add(os.path.join(fixture("larger"), "images"), "images")
    for inputs in (None, archive):
        found = document("-j", 2, "--limit", 10, inputs=inputs)["profile"]["runs"][0]
        assert 10 <= found["images"] <= 10 + 2 * 4, found  # two threads take up to four images each at a time
    runs = document("-j", "1..2", inputs=archive)["profile"]["runs"]
    assert [r["images"] for r in runs] == [120, 120], runs


@case("the table and the last lines name threads, stages and cores; damaged images are counted")
def _(work):
    source = fixture("larger")
    folder = os.path.join(work, "images")
    os.mkdir(folder)
    for i, name in enumerate(sorted(os.listdir(os.path.join(source, "images")))):
        blob = slurp(os.path.join(source, "images", name))
        write(os.path.join(folder, name), blob[:len(blob) // 2] if i < 3 else blob)
    done = profile("-j", "1..2", inputs=folder)
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["threads", "seconds", "img/s", "speed-up", "effic.", "cores", *STAGES, "all"], lines
    assert [line.split()[0] for line in lines[2:]] == ["1", "2"], done.stdout
    says(done, "3 of 120 measured images cannot be used", r"done     120 images in 1 hour need 1 core: \S+ core-hours",
         "nothing was written")
    assert re.search(r"^source ", done.stderr, re.M), done.stderr
    assert profile("-q", inputs=folder).stderr == ""


@case("no image to measure: 3; options of a conversion: 2")
def _(work):
    empty = os.path.join(work, "empty")
    os.mkdir(empty)
    says(profile(inputs=empty, code=3), "none of the 120 images")
    for words, text in ((["-n"], "--dry-run is for a conversion"), (["--verify"], "--verify is for a conversion"),
                        (["-j", "4..2"], "takes a number or a range such as 1..8, up to 1024, not '4..2'"),
                        (["-j", "1.."], "takes a number"),
                        (["-j", "..2"], "takes a number"), (["--limit", "0"], "--limit")):
        says(profile(*words, code=2), text)


if __name__ == "__main__":
    sys.exit(case.main())
