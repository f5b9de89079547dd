#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train with ranks that have an emulated GPU each and sum by NCCL, from outside: which way the sums go, the same
bytes in every run, and what becomes of the others when one rank is gone.

    check_train_nccl.py [PATTERN]      only the cases whose name matches the regular expression

NCCL is that of tests/fakes/nccl/ (fake_nccl.h): the calls that chex-train uses, over memory that the ranks share, as
late as a seed says.  A host that waits for other ranks otherwise than by polling ends there with SIGABRT, in every
case here.
"""
import functools
import os
import re
import shutil
import signal
import sys
import time

import mpi
from check_train_cuda import NAME, distance, ends_same, same, words
from support import BUILD, SOURCE, Cases, run, says, slurp, write
from training import last_step, scratch

case = Cases()
STEPS = 3  # of an epoch, by two ranks with four images each
SMALL = ("--batch", 4, "--micro-batch", 4)


def environment(count, late=0, fail="", streams=0, devices=None, **more):
    return {**mpi.ENVIRONMENT, "EMULATOR_DEVICES": " ".join(["90"] * count) if devices is None else devices,
            "EMULATOR_STREAMS": str(streams), "FAKE_NCCL_LATE": str(late), "FAKE_NCCL_FAIL": fail,
            "FAKE_NCCL_EXIT": "1", **more}


def train(count, out, *more, code=0, **how):
    return run(mpi.ranks(NAME, count, *words(out, *SMALL, *more)), code, env=environment(count, **how))


@functools.lru_cache(None)
def whole():
    """Two epochs of two ranks that nobody disturbed."""
    folder = os.path.join(scratch(), "nccl-whole")
    train(2, folder)
    return folder


@functools.lru_cache(None)
def sums_of_an_epoch():
    """Their number, with those of the start: one of a float, and the sums of a step."""
    told = os.path.join(scratch(), "sums")
    train(2, os.path.join(scratch(), "nccl-epoch"), "--epochs", 1, FAKE_NCCL_COUNT=told)
    counts = set(map(int, open(told, encoding="ascii")))
    assert len(counts) == 1 and (max(counts) - 1) % (STEPS + 1) == 0 and max(counts) > 10 * STEPS, counts
    return counts.pop()


def sums_of_a_step():
    return (sums_of_an_epoch() - 1) // (STEPS + 1)


def in_step(number):
    """A sum in the middle of a step of the first epoch, from 1."""
    return 1 + number * sums_of_a_step() + sums_of_a_step() // 2


# ---- which way -------------------------------------------------------------------------------------------------------


@case("ranks with a GPU each sum by NCCL; -v says so, with its version and what the environment says to it")
def _(work):
    done = train(2, f"{work}/run", "-v", "--epochs", 1, NCCL_ALGO="Ring", NCCL_DEBUG="WARN")
    says(done, r"sums     by NCCL 2\.28\.0 on the GPUs, fp32 on the wire", "NCCL_ALGO=Ring", "NCCL_DEBUG=WARN",
         "reduce")
    assert "not by NCCL" not in done.stderr, done.stderr
    says(done, "NCCL_GRAPH_REGISTER=0")
    says(train(2, f"{work}/registers", "-v", "--epochs", 1, NCCL_GRAPH_REGISTER="1"), "NCCL_GRAPH_REGISTER=1")
    done = run([words("none")[0], "-V", "-v"], env=environment(1))
    assert re.search(r"^nccl +2\.28\.0$", done.stdout, re.M), done.stdout
    assert re.search(r"^cuda +12\.9, kernels for \w", done.stdout, re.M), done.stdout


def falls_back(out, reason, **how):
    done = train(2, out, "--epochs", 1, **how)
    says(done, rf"note     the ranks sum gradients by messages between the hosts, not by NCCL: {reason}")
    assert len(re.findall("not by NCCL", done.stderr)) == 1, done.stderr


@case("two ranks on one GPU, or on parts of one: sums by messages, in one line")
def _(work):
    falls_back(f"{work}/shared", r"rank 0 and rank 1 of \S+ share a GPU", devices="90")
    falls_back(f"{work}/parts", r"rank 0 and rank 1 of \S+ share a GPU", EMULATOR_BUS="7")
    same(f"{work}/shared", f"{work}/parts")


@case("no NCCL, an old one, another on one rank: sums by messages, in one line", slow=True)
def _(work):
    falls_back(f"{work}/none", r"rank 0 \S+: libnccl.so.2 was not found", FAKE_NCCL="none")
    falls_back(f"{work}/old", r"rank 0 \S+: NCCL is older than 2\.14", FAKE_NCCL_VERSION="21303")
    # Of two numbers there is one sum: NCCL has the same one.
    train(2, f"{work}/nccl", "--epochs", 1)
    for name in ("old", "nccl"):
        same(f"{work}/none", f"{work}/{name}")
    done = run(mpi.ranks(NAME, 1, *words(f"{work}/other", *SMALL, "--epochs", 1)) +
               [":", "-np", "1", "-x", "FAKE_NCCL_VERSION=22700", *words(f"{work}/other", *SMALL, "--epochs", 1)],
               env=environment(2))
    says(done, r"not by NCCL: NCCL is 2\.28\.0 on rank 0 and 2\.27\.0 on rank 1 ")
    assert "by NCCL" not in run(words(f"{work}/one", "--epochs", 1), env=environment(1)).stderr


OPENS = """
#include "cuda/comm/nccl_library.h"
#include <stdio.h>
int main(void)
{
    char why[96] = "";
    const struct nccl_calls *calls = nccl_open(why, sizeof(why));
    int version = 0;

    puts(calls && calls->GetVersion(&version) == ncclSuccess && nccl_open(why, 0) == calls ? "opened" : why);
    return 0;
}
"""


def compiled(source, to, *more):
    write(f"{to}.c", source.encode())
    run([os.environ.get("CC") or "cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", to, f"{to}.c", *more])
    return to


def opener(to):
    """(a program that opens NCCL by another name, as this machine may have it, source of a library with its calls)."""
    folders = [f"-I{os.path.join(SOURCE, name)}" for name in ("tests/fakes/nccl", "tests/emulator", "train", "lib")]
    text = slurp(os.path.join(SOURCE, "train/cuda/comm/nccl_library.c")).decode()
    write(f"{to}-library.c", text.replace("libnccl.so.2", "libtest.so.2").replace(" NCCL_LIBRARY,", ' "libtest.so",'))
    opens = compiled(OPENS, to, f"-I{BUILD}", *folders, f"{to}-library.c",
                     os.path.join(SOURCE, "train/backend/shared_library.c"), "-ldl")
    text = slurp(os.path.join(SOURCE, "train/cuda/comm/nccl_library.h")).decode()
    calls = re.findall(r"X\((\w+)\)", text[text.index("define NCCL_CALLS"):])
    assert len(calls) >= 10, calls
    return opens, "extern int lacking;\n" + "".join(f"int nccl{name}(void) {{ return 0; }}\n" for name in calls)


@case("loading the library: none, one without a call, one that cannot be loaded, a file that is not a library")
def _(work):
    opens, source = opener(f"{work}/opens")
    path = f"{work}/libtest.so.2"

    def told(source=None):
        if source is not None:
            compiled(source, path, "-shared", "-fPIC")
        return run([opens], env=dict(os.environ, LD_LIBRARY_PATH=work)).stdout.strip()

    assert told() == "libtest.so.2 was not found"
    assert told(source) == "opened"
    assert told(source.replace("ncclCommFinalize", "ncclOther")) == \
        "libtest.so.2 is too old: it has no ncclCommFinalize()"
    text = told(source.replace("return 0", "return lacking", 1))
    assert "lacking" in text and len(text) < 96, repr(text)
    write(path, b"no library")
    assert "libtest.so.2: " in told() and "was not found" not in told(), told()


@case("loading the library: from the packages of the newest Python next to the program, after LD_LIBRARY_PATH")
def _(work):
    env = f"{work}/env"
    os.makedirs(f"{env}/bin")
    opens, source = opener(f"{env}/bin/opens")

    def told(program=opens, **more):
        clean = {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}
        return run([program], env={**clean, **more}).stdout.strip()

    def put(folder, content=None):
        os.makedirs(f"{env}/{folder}", exist_ok=True)
        path = f"{env}/{folder}/libtest.so.2"
        if content is None:
            return compiled(source, path, "-shared", "-fPIC")
        write(path, content)
        return path

    for folder in ("lib/python3/site-packages/nvidia/nccl/lib", "lib/python3.x/site-packages/nvidia/nccl/lib",
                   "lib/python3.12.bak/site-packages/nvidia/nccl/lib", "lib/python3.9/site-packages/nvidia/cudnn/lib"):
        put(folder, b"not looked for")
    assert told() == "libtest.so.2 was not found"
    put("lib64/python3.9/dist-packages/nvidia/nccl/lib")
    assert told() == "opened"
    broken = put("lib/python3.9/site-packages/nvidia/nccl/lib", b"no library")
    assert told().startswith(f"{broken}: "), told()
    for minor in (7, 8, 10, 11, 13):
        put(f"lib/python3.{minor}/site-packages/nvidia/nccl/lib", b"no library")
    put("lib/python3.12/site-packages/nvidia/nccl/lib")
    assert "/lib/python3.13/" in told(), told()
    shutil.rmtree(f"{env}/lib/python3.13")
    assert told() == "opened"
    os.symlink(opens, f"{work}/link")
    assert told(f"{work}/link") == "opened"
    write(f"{work}/libtest.so.2", b"no library")
    assert told(LD_LIBRARY_PATH=work).startswith(f"{work}/libtest.so.2: "), told(LD_LIBRARY_PATH=work)
    os.rename(f"{env}/bin", f"{env}/programs")
    assert told(f"{env}/programs/opens") == "libtest.so.2 was not found"


# ---- the same bytes --------------------------------------------------------------------------------------------------


@case("two runs leave the same bytes, however late NCCL and whatever the order of streams")
def _(work):
    train(2, f"{work}/late", late=1, streams=3)
    same(whole(), f"{work}/late")


@case("and so does one without graphs", slow=True)
def _(work):
    train(2, f"{work}/single", "--no-graph", late=2)
    same(whole(), f"{work}/single")


@case("three ranks record and replay the same graphs, although only rank 0 has images in the last step, and although "
      "they evaluate 1, 1 and 0 micro-batches")
def _(work):
    for micro in (4, 2):
        out = f"{work}/{micro}"
        train(3, out, "--micro-batch", micro, late=1)
        train(3, f"{out}-single", "--micro-batch", micro, "--no-graph")
        same(out, f"{out}-single")


@case("four ranks leave the same bytes in every run")
def _(work):
    train(4, f"{work}/a", "--epochs", 1)
    train(4, f"{work}/b", "--epochs", 1, late=5, streams=2)
    same(f"{work}/a", f"{work}/b")


@case("four ranks: the sums of messages but for rounding; bf16 on the wire has its own bytes, in every run", slow=True)
def _(work):
    one = ("--epochs", 1)
    train(4, f"{work}/a", *one)
    train(4, f"{work}/staged", *one, FAKE_NCCL="none")
    at = f"{last_step(work + '/a')}.safetensors"
    apart = distance(f"{work}/staged/{at}", f"{work}/a/{at}")
    assert 0 < apart < 1e-3, apart
    for name, how in (("half", {}), ("again", {"late": 4, "streams": 1})):
        done = train(4, f"{work}/{name}", *one, "-v", "--wire", "bf16", **how)
        says(done, "bf16 on the wire")
    same(f"{work}/half", f"{work}/again")
    apart = distance(f"{work}/staged/{at}", f"{work}/half/{at}")
    assert 1e-4 < apart < 0.05, apart


@case("--wire bf16 warns that it has no effect if sums go by messages; another wire on resume is reported", slow=True)
def _(work):
    done = train(2, f"{work}/run", "--epochs", 1, "--wire", "bf16", FAKE_NCCL="none")
    says(done, "--wire bf16 is for sums by NCCL: no effect here")
    says(train(2, f"{work}/run", FAKE_NCCL="none"), "wire bf16 -> fp32")


@case("a run that was stopped resumes to the same end; so does one of two ranks that resumes with messages", slow=True)
def _(work):
    for name, how in (("run", {}), ("other", {"FAKE_NCCL": "none"})):
        out = f"{work}/{name}"
        train(2, out, "--time-limit", "0.001s", code=75)
        assert 0 < int(last_step(out)[-6:]) < STEPS, last_step(out)
        train(2, out, **how)
        ends_same(whole(), out)


# ---- one rank is gone ------------------------------------------------------------------------------------------------

TIMEOUT = 8


def lose(work, what, *patterns, count=2, codes=(8,), more=(), late=0, resumes=True,
         timeout=f"{TIMEOUT}s"):
    """The other ranks end and say why, all processes are gone, the checkpoint is whole and leads on."""
    out = f"{work}/run"
    process = mpi.start(mpi.ranks(NAME, count, *words(out, *SMALL, "--checkpoint-every", "1steps", "--timeout",
                                                      timeout, *more)), env=environment(count, late, what))
    pids = mpi.wait_for(lambda: len(p := mpi.children(process.pid, os.path.basename(NAME))) == count and p)
    text, code = mpi.finish(process)
    assert code in codes, f"{code}: {text}"
    assert "emulator:" not in text, text
    for pattern in patterns:
        assert re.search(pattern, text), f"no '{pattern}' in: {text}"
    mpi.wait_for(lambda: mpi.gone(pids))
    if resumes:
        at = last_step(out)
        says(train(count, out, *more), rf"resume   {at}")
        if count == 2 and not more:
            ends_same(whole(), out)
    return text


@case("a rank that is killed in a bucket: named, and the others do not wait for the timeout")
def _(work):
    lose(work, f"1 sum {in_step(2)} kill", r"chex-train: .*rank 1 ", codes=(8, 137), timeout="10h")


@case("a rank that is stopped in a bucket: no progress, named, exit status 8")
def _(work):
    text = lose(work, f"1 sum {in_step(2)} stop", rf"chex-train: rank 1 \S+ is lost: no message for {TIMEOUT} s\n",
                "next     the same command again resumes from")
    assert len(re.findall("is lost: no message for", text)) == 1, text


@case("pauses of a rank that polls are exact: the slack of its timers is 1 us")
def _(work):
    process = mpi.start(mpi.ranks(NAME, 2, *words(f"{work}/run", *SMALL)), env=environment(2))
    mpi.wait_for(lambda: len(p := mpi.children(process.pid, os.path.basename(NAME))) == 2 and
                 all(slurp(f"/proc/{pid}/timerslack_ns") == b"1000\n" for pid in p))
    text, code = mpi.finish(process)
    assert code == 0, text


@case("rank 0 is stopped: rank 1 says so", slow=True)
def _(work):
    lose(work, f"0 sum {in_step(2)} stop", rf"rank 0 \S+ is lost: no message for {TIMEOUT} s\n", late=3)


@case("a rank is lost in the last step of an epoch", slow=True)
def _(work):
    last = sums_of_an_epoch()
    lose(work, f"1 sum {last} kill", r"chex-train: .*rank 1 ", codes=(8, 137))
    shutil.rmtree(f"{work}/run")
    lose(work, f"1 sum {last} stop", rf"rank 1 \S+ is lost: no message for {TIMEOUT} s\n")


@case("one of four ranks is stopped, and another killed", slow=True)
def _(work):
    lose(work, f"2 sum {in_step(2)} stop", rf"rank 2 \S+ is lost: no message for {TIMEOUT} s\n", count=4)
    shutil.rmtree(f"{work}/run")
    lose(work, f"3 sum {in_step(2)} kill", r"chex-train: .*rank 3 ", count=4, codes=(8, 137))


def fail_to_begin(work, what):
    text = lose(work, what, r"chex-train: rank 1 \S+: NCCL: .* unhandled \w+ error; NCCL_DEBUG=INFO says more",
                resumes=False)
    assert len(re.findall("chex-train: ", text)) == 1, text
    assert not os.path.exists(f"{work}/run/latest")


@case("NCCL fails on one rank when it begins: that rank is named, exit status 8, nothing is begun")
def _(work):
    fail_to_begin(work, "1 ncclCommInitRankConfig 1 2")


@case("likewise in its first sum, or on rank 0 before there is anything", slow=True)
def _(work):
    fail_to_begin(work, "1 ncclAllReduce 1 1")
    lose(work, "0 ncclGetUniqueId 1 2", r"chex-train: NCCL: ncclGetUniqueId: unhandled system error", resumes=False)


@case("NCCL fails on one rank while a step is recorded: the others wait in theirs, and all end with exit status 8")
def _(work):
    # Images are kept on the device.
    for call in (f"0 ncclAllReduce {sums_of_a_step() + 9} 6", "0 capture 9 6"):
        text = lose(work, call, r"chex-train: NCCL: (starting )?a sum of the ranks: remote process exited",
                    resumes=False)
        assert len(re.findall("chex-train: ", text)) == 1 and "kept on the device" in text, text
        shutil.rmtree(f"{work}/run")


@case("and likewise without graphs", slow=True)
def _(work):
    lose(work, f"1 ncclAllReduce {sums_of_a_step() + 30} 1",
         r"chex-train: rank 1 \S+: NCCL: starting a sum of the ranks: unhandled cuda",
         more=("--no-graph",), resumes=False)


@case("a rank that is killed, or lacks memory for its plan, before the sums that connect the ranks")
def _(work):
    lose(work, "1 sum 5 kill", r"chex-train: .*rank 1 ", codes=(8, 137), timeout="10h", resumes=False)
    shutil.rmtree(f"{work}/run", ignore_errors=True)
    line = list(map(str, words(f"{work}/run", *SMALL, "--timeout", "10h")))
    done = run([mpi.mpirun(NAME), "-np", "1", *line, ":", "-np", "1", "-x", f"EMULATOR_MEMORY={2 << 20}", *line], 4,
               env=environment(2))
    says(done, r"chex-train: rank 1 \S+: micro-batches of 4 images: ")


@case("a rank that is stopped, or killed, when NCCL begins", slow=True)
def _(work):
    lose(work, "1 ncclCommInitRankConfig 1 stop", r"rank 1 \S+ is lost: no message for ", resumes=False)
    lose(work, "1 ncclCommInitRankConfig 1 kill", r"chex-train: .*rank 1 ", codes=(8, 137), resumes=False)


@case("NCCL fails on one rank in a bucket, asynchronously: named, exit status 8", slow=True)
def _(work):
    lose(work, f"1 sum {in_step(2)} 6",
         r"chex-train: rank 1 \S+: NCCL: a sum of the ranks: remote process exited or there was a network error")


@case("a connection that hangs while all ranks live: no progress of the GPUs, exit status 8", slow=True)
def _(work):
    lose(work, f"1 sum {in_step(2)} hang",
         r"chex-train: (rank 1 \S+: )?no progress of the GPUs for .* s, although every rank is alive")


@case("a rank whose sum hangs, and that is stopped then: it is named, and not said to be there", slow=True)
def _(work):
    line = words(f"{work}/run", *SMALL, "--timeout", f"{TIMEOUT}s")
    process = mpi.start(mpi.ranks(NAME, 2, *line), env=environment(2, fail=f"1 sum {in_step(1)} hang"))
    pids = mpi.wait_for(lambda: len(p := mpi.children(process.pid, os.path.basename(NAME))) == 2 and p)
    mpi.wait_for(lambda: os.path.exists(f"{work}/run/latest"))
    time.sleep(1.1 * TIMEOUT)  # patience with sums that hang ends after 1.5 timeouts and a second
    rank_1, = [pid for pid in pids if b"OMPI_COMM_WORLD_RANK=1\0" in slurp(f"/proc/{pid}/environ")]
    os.kill(rank_1, signal.SIGSTOP)
    text, code = mpi.finish(process)
    assert code == 8 and re.search(rf"rank 1 \S+ is lost: no message for {TIMEOUT} s", text), f"{code}: {text}"
    mpi.wait_for(lambda: mpi.gone(pids))


@case("a kernel that fails on one rank: the others hear of it while their GPUs wait for sums", slow=True)
def _(work):
    out = f"{work}/run"
    environment_of_one = {**environment(2), "EMULATOR_FAIL": ""}
    line = words(out, *SMALL, "--checkpoint-every", "1steps", "--timeout", f"{TIMEOUT}s")
    done = run([mpi.mpirun(NAME), "-np", "1", *map(str, line), ":", "-np", "1", "-x",
                f"EMULATOR_FAIL=step_decide_fp16 {STEPS + 2} 700", *map(str, line)], 70, env=environment_of_one)
    says(done, r"chex-train: rank 1 \S+: .*a kernel has failed")
    at = last_step(out)
    says(train(2, out), rf"resume   {at}")
    ends_same(whole(), out)


if __name__ == "__main__":
    try:
        code = case.main()
    finally:
        shutil.rmtree(scratch(), ignore_errors=True)
    sys.exit(code)
