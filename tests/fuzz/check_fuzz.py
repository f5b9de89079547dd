# SPDX-License-Identifier: Apache-2.0
"""The fuzz targets without a fuzzer: the seeds, what fuzzers have found, and a few mutations of each."""
import glob
import os
import re
import sys

import support

check = support.Cases()
FOLDER = os.path.abspath(os.path.join(support.SOURCE, "tests", "fuzz"))
TARGETS = sorted(name for name in (os.path.basename(p)[:-2] for p in glob.glob(os.path.join(FOLDER, "*.c")))
                 if name != "self_test" and "fuzz_seeds(fuzz_seed_fn *give" in open(os.path.join(FOLDER, name + ".c"),
                                                                                    encoding="ascii").read())
# Changed copies of each input.  resample and png are slow: each compares with a plain reference.  checkpoint has many
# fields to draw from.
ROUNDS = {"resample": 4, "png": 50, "checkpoint": 1000}
ALL_FINDS = 300_000


def target(name):
    path = os.path.abspath(os.path.join(support.BUILD, "tests", "fuzz", name))
    if not os.access(path, os.X_OK):
        raise support.Skip(f"{path} is not built")
    return path


def finds(name):
    path = os.path.join(FOLDER, "finds", name + ".txt")
    return ["-f", path] if os.path.exists(path) else []


def replays(name):
    def run(work):
        config = support.run([os.path.join(support.BUILD, "config.status"), "--config"], cwd=support.BUILD).stdout
        rounds = ROUNDS.get(name, 100) // (4 if "--enable-sanitizers" in config else 1) * (20 if support.SLOW else 1)
        done = support.run([target(name), "-n", rounds, *finds(name)], cwd=work)
        inputs = int(re.search(r": (\d+) inputs, [1-9]\d* mutations$", done.stdout.strip()).group(1))
        lines = sum(1 for path in finds(name)[1:] for line in open(path, encoding="ascii") if line[0] not in "#\n")
        assert inputs > lines, f"{inputs} inputs, {lines} of them finds: where are the seeds?"
    return run


for each in TARGETS:
    check(f"fuzz target {each}: seeds, finds and their mutations")(replays(each))
    check(f"fuzz target {each}: many mutations", slow=True)(replays(each))


@check("a corpus for a fuzzer is written, a file for each input")
def _(work):
    done = support.run([target("lists"), "-w", work, *finds("lists")])
    inputs = int(re.search(r"(\d+) inputs", done.stdout).group(1))
    assert inputs == len(os.listdir(work)) > 10, (inputs, os.listdir(work))


@check("an input that breaks what a target requires ends it, with the input's name")
def _(work):
    path = os.path.join(work, "finds.txt")
    with open(path, "w", encoding="ascii") as f:
        f.write("# a line without a tab is no find\nno-tab\n")
    support.says(support.run([target("lists"), "-f", path], code=2), "not a name, a tab and bytes")
    done = support.run([target("self_test")], code=None)
    assert done.returncode == -6, done.returncode  # SIGABRT
    support.says(done, r"self_test\.c:\d+: required: ", r"the input was: breaks")


@check("finds are texts of printable characters, in all below 300 kB")
def _(work):
    total = 0
    for path in glob.glob(os.path.join(FOLDER, "finds", "*.txt")):
        name = os.path.basename(path)[:-4]
        assert name in TARGETS, path
        data = open(path, "rb").read()
        total += len(data)
        assert not set(data) - set(range(0x20, 0x7f)) - {9, 10}, path
        names = [line.split(b"\t")[0] for line in data.split(b"\n") if line and not line.startswith(b"#")]
        assert len(names) == len(set(names)), f"{path}: a name twice"
    assert 0 < total < ALL_FINDS, total


if __name__ == "__main__":
    sys.exit(check.main())
