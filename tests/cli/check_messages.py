#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What all tools have in common where they speak to people: widths, colours, dates of a log, separators of numbers.

    check_messages.py [PATTERN]     stdlib; with CHEX_SLOW=1 the cases that take a minute, and only these
"""
import fcntl
import functools
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

import harness
from fixtures import LABELS, fixture
from support import Cases, cache_folder, helps, next_command, nih, png, program, run, says, write

case = Cases()
CACHE = cache_folder("messages", harness.SCRATCH)  # in memory: it is many files
TOOLS = ["chex-convert", "chex-inspect", "chex-predict", "chex-synth", "chex-train"]
RED, YELLOW, OFF = "\x1b[31m", "\x1b[33m", "\x1b[0m"


@functools.lru_cache(None)
def base():
    """1,100 images, so that counts have four digits, in a data set of many shards; read only."""
    folder, out = os.path.join(CACHE, "base"), os.path.join(CACHE, "shards")
    made = run([program("chex-synth"), "-n", "1100", "-o", folder, "--size", "64"])
    labels = f"{folder}/Data_Entry_2017_v2020.csv"
    done = run([program("chex-convert"), "-i", f"{folder}/images", "-l", labels, "-o", out, "--size", "32",
                "--shard-size", "16", "-v"])
    return folder, labels, out, made.stderr + done.stderr


def on_terminal(command, **environment):
    """(exit code, what a terminal of 80 columns is sent): standard error is one, standard output goes nowhere."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=follower, env=dict(os.environ, **environment))
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other side was closed
            break
        if not piece:
            break
        text += piece
    os.close(leader)
    return process.wait(60), text.decode("utf-8").replace("\r\n", "\n")


def header(text):
    """The lines before the work begins, or all."""
    lines = text.splitlines()
    ends = [i for i, line in enumerate(lines) if re.match(r"(done|convert|next|ep|chex-[a-z]+:) ", line)]
    return lines[:ends[0]] if ends else lines


# ---- widths ----------------------------------------------------------------------------------------------------------


def narrow(name, lines):
    wide = [line for line in lines if len(line) > 80]
    assert lines and not wide, f"{name}: {wide[:3] or 'it says nothing'}"


@case("header lines of every tool fit 80 columns, and break between their parts")
def _(work):
    folder, labels, out, said = base()
    for part in said.split("log      ")[1:]:
        narrow("chex-synth, chex-convert", header(part))
    rule = write(f"{work}/rule.csv", "patient,split\n" + "".join(
        f"{name},{'a_split_of_a_long_name' + str(i % 9)}\n" for i, name in enumerate(
            sorted({name[:8] for name in os.listdir(f"{folder}/images")}))))
    convert = [program("chex-convert"), "-n", "-i", f"{folder}/images", "-l", labels, "-o", f"{work}/new"]
    done = run([*convert, "--split", f"file:{rule}", "--shard-size", "4"])
    narrow("chex-convert with nine splits", header(done.stderr))
    split = re.search(r"^split    (.*?)^plan", done.stderr, re.M | re.S).group(1)
    assert "\n         a_split_of_a_long_name" in split and split.count("images of") == 9, split
    assert not re.search(r"[, ]\n", split.replace(",\n", "\n")), f"blanks at the end: {split!r}"
    other = f"{work}/few"
    os.mkdir(other)
    for name in sorted(os.listdir(f"{folder}/images"))[:9]:
        shutil.copy(f"{folder}/images/{name}", other)
    done = run([*convert[:3], other, *convert[4:], "-v"], 3)
    narrow("chex-convert with images missing", header(done.stderr))
    train = [program("chex-train"), "-n", "-d", out, "-o", f"{work}/run", "--model", "densenet-micro", "--crop", "32"]
    for options in ([], ["--accumulate", "4", "--batch", "64"], ["--shuffle", "2"], ["--model", "densenet121"]):
        narrow(f"chex-train {' '.join(options)}", header(run([*train, *options]).stderr))
    for options in (["-v"], ["diff", out], ["source", "-i", f"{folder}/images", "-l", labels]):
        done = run([program("chex-inspect"), *options, *([] if "source" in options else [out])], None)
        narrow(f"chex-inspect {options[0]}", [line for line in done.stdout.splitlines() if CACHE not in line])
    narrow("chex-synth", header(run([program("chex-synth"), "-n", "3", "--size", "64", "-o", f"{work}/s"]).stderr))


@case("header lines with the counts of the real label file fit 80 columns, and have separators")
def _(work):
    done = run([program("chex-convert"), "-n", "-i", nih("images"), "-l", nih("csv", "Data_Entry_2017_v2020.csv.gz"),
                "--lists", nih("lists"), "-o", f"{work}/out", "--allow-missing"])
    narrow("chex-convert", header(done.stderr))
    says(done, r"labels   NIH Data_Entry, 112,120 rows, 30,805 patients", r"stride 65,984 bytes")
    bare = [line for line in done.stderr.splitlines() if re.search(r"(?<![\w.,:/+-])\d{4,}(?![\w.:/-])", line)]
    assert not bare, bare


# ---- logs ------------------------------------------------------------------------------------------------------------


@case("a log has date, time and host; a terminal has not")
def _(work):
    folder, labels, out, _said = base()
    environment = dict(os.environ, TZ="UTC-1")
    stamp = rf"log      \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\+0100 {re.escape(socket.gethostname())}  "
    for tool, options in (("chex-convert", ["-n", "-i", f"{folder}/images", "-l", labels, "-o", f"{work}/new"]),
                          ("chex-train", ["-n", "-d", out, "-o", f"{work}/run", "--model", "densenet-micro"]),
                          ("chex-synth", ["-n", "3", "--size", "64", "-o", f"{work}/synth"])):
        first = run([program(tool), *options], env=environment).stderr.splitlines()[0]
        assert re.fullmatch(rf"{stamp}{tool} \d+\.\d+\.\d+", first), first
        code, text = on_terminal([program(tool), *options], TERM="xterm", TZ="UTC-1")
        assert code == 0 and text and "+0100" not in text and "log " not in text, text
        assert not run([program(tool), "-q", *options]).stderr


@case("the first line of chex-train is its version, also where a note is said before the plan is made")
def _(work):
    _folder, _labels, out, _said = base()
    train = [program("chex-train"), "-n", "-d", out, "-o", f"{work}/run", "--model", "densenet-micro", "--crop", "32",
             "--wire", "bf16"]
    done = run(train)
    assert re.match(r"log      .*\nchex-train \S+   1 rank, CPU", done.stderr), done.stderr
    _code, text = on_terminal(train, TERM="xterm")
    assert re.match(r"chex-train \S+   1 rank, CPU", text), text
    for said in (done.stderr, text):
        assert 0 < said.index("\nmemory ") < said.index("\nnote     --wire bf16 ") < said.index("\ninit "), said
    assert not run([*train, "-q"]).stderr


@case("the line a minute of a log begins with date and host, the one of a terminal does not", slow=True)
def _(work):
    folder, labels, _out, _said = base()
    environment = dict(os.environ, TZ="UTC", TERM="xterm")
    with open(f"{work}/log", "wb") as log:
        started = time.time()
        process = subprocess.Popen([program("chex-synth"), "-n", "4000", "--size", "256", "-j", "1", "-o", f"{work}/s"],
                                   stderr=log, env=environment)
        time.sleep(1)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(61)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(2)
        process.kill()
        process.wait()
    with open(f"{work}/log", encoding="utf-8") as log:
        lines = log.read().splitlines()
    found = [re.fullmatch(rf"(\S+)\+0000 {re.escape(socket.gethostname())}  synth .*", line) for line in lines]
    assert any(found), lines
    said = next(m.group(1) for m in found if m)
    assert started <= time.mktime(time.strptime(said, "%Y-%m-%dT%H:%M:%S")) - time.timezone + 1 <= time.time() + 1, said
    code, text = on_terminal([program("chex-convert"), "--progress", "line", "-i", f"{folder}/images", "-l", labels,
                              "-o", f"{work}/out"], TZ="UTC", TERM="xterm")
    assert code == 0 and "+0000" not in text, text


# ---- colours ---------------------------------------------------------------------------------------------------------


def wrong(tool):
    return [program(tool), "--nonsense"]


@case("--color: errors are red in every tool, on a terminal or where it is asked for")
def _(_work):
    for tool in TOOLS:
        text = f"{tool}: unknown option '--nonsense'"
        assert run([*wrong(tool)], 2).stderr.startswith(text + "\n")
        assert run([program(tool), "--color", "always", "--nonsense"], 2).stderr.startswith(f"{RED}{text}{OFF}\n")
        assert f"{RED}{text}{OFF}\n" in on_terminal(wrong(tool), TERM="xterm", NO_COLOR="")[1]
        for environment in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
            said = on_terminal(wrong(tool), **environment)[1]
            assert text in said and "\x1b" not in said, said
        said = on_terminal([program(tool), "--color", "never", "--nonsense"], TERM="xterm", NO_COLOR="")[1]
        assert text in said and "\x1b" not in said, said
    for tool, options, code in (("chex-convert", ["-i", "/nowhere", "-l", "/nowhere", "-o", "/nowhere"], 3),
                                ("chex-inspect", ["/nowhere"], 3),
                                ("chex-synth", ["-n", "1", "-o", "/dev/null/x"], 4),
                                ("chex-train", ["-d", "/nowhere", "-o", "/nowhere"], 3)):
        done = run([program(tool), "--color", "always", *options], code)
        assert re.search(rf"^{re.escape(RED)}{tool}: .*{re.escape(OFF)}$", done.stderr, re.M), done.stderr
    with open("/dev/full", "wb") as full:
        done = run([program("chex-synth"), "--color", "always", "--json", "-n", "1", "--size", "64", "-q", "-o",
                    f"{_work}/s"], 4, stdout=full)
    assert re.search(rf"{re.escape(RED)}chex-synth: .*standard output", done.stderr), done.stderr


@case("--color: rejects are red, and what a name brings is not obeyed; warnings are yellow")
def _(work):
    folder, _labels, out, _said = base()
    names = sorted(os.listdir(f"{folder}/images"))[:20]
    os.mkdir(f"{work}/images")
    for name in names[1:]:
        shutil.copy(f"{folder}/images/{name}", f"{work}/images")
    write(f"{work}/images/{names[0]}", png(64, 64)[:-30])
    labels = write(f"{work}/x.csv", "Image Index,Finding Labels,Patient ID\n" + "".join(
        f"{name},No Finding,{name[:8]}\n" for name in names))
    convert = [program("chex-convert"), "--color", "always", "-i", f"{work}/images", "-l", labels, "-o", f"{work}/out",
               "--size", "32"]
    done = run(convert, 1)
    says(done, rf"(?m)^{re.escape(RED)}reject {names[0]}: .*{re.escape(OFF)}$",
         rf"{re.escape(RED)}1 rejected{re.escape(OFF)}:")
    says(run([*convert, "-q"], 1), rf"^{re.escape(RED)}chex-convert: 1 image of .* rejected.*{re.escape(OFF)}\n")
    done = run([program("chex-inspect"), "--color", "always", f"{work}/no\x1b[2Jwhere"], 3)
    says(done, rf"^{re.escape(RED)}chex-inspect: .*no\\x1b\[2Jwhere.*{re.escape(OFF)}\n")
    done = run([program("chex-train"), "--color", "always", "-d", out, "-o", f"{work}/run", "--model", "densenet-micro",
                "--crop", "32", "--epochs", "2", "--bootstrap", "0"])
    with open(f"{work}/run/latest", encoding="ascii") as latest:
        os.truncate(f"{work}/run/{latest.read().split()[0]}.safetensors", 100)
    for tool, options in (("chex-inspect", [f"{work}/run"]),
                          ("chex-train", ["-d", out, "-o", f"{work}/run", "--model", "densenet-micro", "--crop", "32",
                                          "--epochs", "2", "--bootstrap", "0"])):
        done = run([program(tool), "--color", "always", *options], None)
        says(done, rf"(?m)^{re.escape(YELLOW)}{tool}: warning: .*{re.escape(OFF)}$")


# ---- inputs that are not regular files -------------------------------------------------------------------------------

OUTPUTS = {"--output", "--stage", "--predict", "--metrics-file", "--trace", "--certificate", "--export"}


FOLDERS = {("chex-convert", "--input"), ("chex-convert", "--lists"), ("chex-inspect", "--input"),
           ("chex-train", "--data"), ("chex-train", "--resume")}  # a folder is an input too


def inputs_of_tools(work, path):
    """{(tool, option): [command]} of every option that names an input, here `path`; "" is an operand."""
    images, shards, out = f"{fixture('images')}/images", fixture("trainable"), f"{work}/out"
    labels = f"{fixture('images')}/{LABELS}"
    convert = [program("chex-convert"), "-o", out, "--size", "32"]
    inspect = program("chex-inspect")
    report = [inspect, "report", "-o", f"{out}.html"]
    train = [program("chex-train"), "-o", f"{work}/run", "--model", "densenet-micro", "--crop", "32", "--epochs", "1"]
    evaluate = [program("chex-train"), "--eval-only", "--predict", f"{out}.csv"]
    return {
        ("chex-convert", "--input"): [[*convert, "-l", labels, "-i", path]],
        ("chex-convert", "--labels"): [[*convert, "-i", images, "-l", path]],
        ("chex-convert", "--columns"): [[*convert, "-i", images, "-l", labels, "--columns", path]],
        ("chex-convert", "--exclude"): [[*convert, "-i", images, "-l", labels, "--exclude", path]],
        ("chex-convert", "--split"): [[*convert, "-i", images, "-l", labels, "--split", f"file:{path}"]],
        ("chex-convert", "--lists"): [[*convert, "-i", images, "-l", labels, "--lists", path]],
        ("chex-inspect", "--input"): [[inspect, "source", "-l", labels, "-i", images, path]],
        ("chex-inspect", "--labels"): [[inspect, "source", "-l", path, "-i", images],
                                       [*report, "--labels", path, fixture("run")]],
        ("chex-inspect", "--columns"): [[inspect, "source", "-l", labels, "--columns", path, "-i", images, shards]],
        ("chex-inspect", "--data"): [[*report, "-d", path, fixture("run")]],
        ("chex-inspect", "--groups"): [[*report, "--groups", path, fixture("run")]],
        ("chex-inspect", "--maps"): [[*report, "--maps", path, fixture("run")]],
        ("chex-inspect", "--reference"): [[*report, "--reference", path, fixture("run")]],
        ("chex-inspect", ""): [[inspect, *words] for words in (
            [path], ["check", "--full", path], ["list", path], ["labels", path], ["check", "--leaks", path],
            ["extract", "-o", f"{out}.png", path, "0:0"], ["show", path, "0:0"], ["sheet", "-o", f"{out}.png", path],
            ["report", "-o", f"{out}.html", path], ["diff", shards, path])],
        ("chex-predict", "--boxes"): [[program("chex-predict"), fixture("run"), images, "-o", out, "--boxes", path]],
        ("chex-train", "--data"): [[*train, "-d", path]],
        ("chex-train", "--init"): [[*words, "-d", shards, "--init", path]
                                   for words in (train, [*train, "-n"], evaluate)],
        ("chex-train", "--resume"): [[*train, "-d", shards, "--resume", path]],
        ("chex-train", "--pos-weight"): [[*train, "-d", shards, "--pos-weight", path]],
    }


@case("an input that is not a regular file ends with 3 at once, whatever option of whatever tool names it")
def _(work):
    paths = [f"{work}/{name}" for name in ("fifo", "fifo.png", "fifo.safetensors", "link", "socket", "folder")]
    for path in paths[:3]:
        os.mkfifo(path)
    os.symlink("fifo", paths[3])
    os.mkdir(paths[5])
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(paths[4])
    for path in (*paths, "/dev/null", "/dev/zero"):
        for option, commands in inputs_of_tools(work, path).items():
            if path != paths[5] or option not in FOLDERS:
                for words in commands:
                    says(run(words, 3), "not a regular file|Not a directory|No such file|no data set|"
                         "does not hold both train_val_list.txt|has no predictions.json")
    assert {f"{work}/{name}" for name in os.listdir(work)} <= {*paths, f"{work}/run"}
    named = {(tool, option) for tool in TOOLS
             for text in helps(tool).values()
             for option in re.findall(r"^ +(?:-\w, )?(--[\w-]+) (?:FILE|PATH|DIR)\b", text, re.M)
             if option not in OUTPUTS}
    assert named <= set(inputs_of_tools(work, "")), f"not tried: {named - set(inputs_of_tools(work, ''))}"


# ---- the last lines --------------------------------------------------------------------------------------------------


def last_lines(text):
    """From the first "done", "next" or "again" on: the lines that say what was done, and what to do."""
    found = re.search(r"^(done|next|again) .*", text, re.M | re.S)
    assert found, text
    return found[0].splitlines()


@case("the last lines fit 80 columns with paths that do, and their commands can be copied")
def _(work):
    path = os.path.dirname(program("chex-train")) + ":" + os.environ["PATH"]
    out, said = {}, []

    def last(*command, code=0, follow=True):
        done = run(command, code, cwd=work, env=dict(os.environ, PATH=path))
        lines = last_lines(done.stdout + done.stderr)
        assert max(map(len, lines)) <= 80, "\n".join(lines)
        said.extend(lines)
        if follow:
            out["next"] = next_command(done.stdout + done.stderr)

    folder = "a-folder-with-a-long-name/"
    os.mkdir(f"{work}/{folder}")
    last("chex-synth", "-n", "60", "-o", f"{work}/{folder}synth", "--size", "64")
    last("sh", "-c", out["next"] + f" --size 36 --split patient:50,25,25:12345678 -o {work}/{folder}shards")
    damage = f"rm $(ls {folder}shards/*-train.tfrecord-* | tail -n 1)"
    last("sh", "-c", f"{out['next']} && {damage} && {out['next']}", code=1)
    assert any(line.endswith("\\") for line in said[-6:]), said[-6:]
    last("sh", "-c", out["next"].replace("IMAGES", f"{folder}synth/images")
         .replace("LABELS.csv", f"{folder}synth/Data_Entry_2017_v2020.csv"))
    last("chex-train", "-d", f"{work}/{folder}shards", "-o", f"{work}/{folder}run", "--model", "densenet-micro",
         "--crop", "32", "--epochs", "1", "--bootstrap", "20")
    last("sh", "-c", out["next"], follow=False)
    done = run(["chex-inspect", "report", "-o", f"{work}/{folder}a-report-with-a-long-name.html", f"{folder}shards"],
               cwd=work, env=dict(os.environ, PATH=path))
    assert max(map(len, done.stderr.splitlines())) <= 80 and work not in done.stderr, done.stderr
    for i in range(3):
        shutil.copytree(f"{work}/{folder}synth/images", f"{work}/{folder}images_{i}")
    last("chex-inspect", "source", "-l", f"{work}/{folder}synth/Data_Entry_2017_v2020.csv",
         *(f"{work}/{folder}images_{i}" for i in range(3)))
    last("sh", "-c", out["next"] + " && echo 'next     none'", follow=False)
    assert not [line for line in said if work in line], "an absolute path of a file below the current folder"
    last("chex-convert", "--part", "1/3", "-i", f"{folder}images_0", "-l", f"{folder}synth/Data_Entry_2017_v2020.csv",
         "-o", f"{folder}part", "--size", "36", follow=False)


# ---- numbers ---------------------------------------------------------------------------------------------------------


@case("counts have separators in what every tool says")
def _(work):
    folder, labels, out, said = base()
    texts = {"chex-synth and chex-convert": said}
    for options in (["-v"], ["check", "--full"], ["labels"], ["check", "--leaks"], ["diff", out],
                    ["source", "-i", f"{folder}/images", "-l", labels]):
        done = run([program("chex-inspect"), *options, *([] if "source" in options else [out])])
        texts[f"chex-inspect {options[0]}"] = done.stdout + done.stderr
    os.makedirs(f"{work}/few")
    for name in sorted(os.listdir(f"{folder}/images"))[:9]:
        shutil.copy(f"{folder}/images/{name}", f"{work}/few")
    done = run([program("chex-convert"), "-i", f"{work}/few", "-l", labels, "-o", f"{work}/out"], 3)
    says(done, "1,091 of 1,100 images are missing")
    texts["chex-train"] = run([program("chex-train"), "-n", "-d", out, "-o", f"{work}/run", "--model", "densenet-micro",
                               "--crop", "32", "--batch", "2000", "--epochs", "2000"]).stderr
    for name, text in texts.items():
        text = re.sub(r"[0-9a-f]{16,}|\S*/\S*|\d{4}-\d\d-\d\dT\S+|\bseed \d+|\d{8}_\d{3}\S*|\S+\.\d+ ", " ", text)
        bare = [line for line in text.splitlines() if re.search(r"(?<![\w.,:x-])\d{4,}(?![\w.:x-])", line)]
        assert text.strip() and not bare, f"{name}: {bare[:3]}"
    assert "2,000 images a step" in texts["chex-train"], texts["chex-train"]


if __name__ == "__main__":
    sys.exit(case.main())
