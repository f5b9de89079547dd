# SPDX-License-Identifier: Apache-2.0
"""Ranks on GPUs (a part of check_gpu.py): NCCL with one rank, sums by messages where two ranks share a GPU, and where
there are two GPUs NCCL with two ranks: the same bytes in every run, with and without graphs, and a rank that is lost.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import gpu_results
from gpu_results import Missing, program, tool
from runs import EPOCHS, Lab, finish, kept, newest, same_end, wait_for

RANKS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "OMPI_MCA_hwloc_base_binding_policy": "none"}


def devices(lab):
    """Words of the GPUs here, for the environment."""
    if lab.o.device == gpu_results.EMULATED:
        return os.environ.get("EMULATOR_DEVICES", "90").split()
    if lab.o.device != "cuda":
        raise Missing(f"{lab.o.device} is no GPU")
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    done = lab.r.run([tool("nvidia-smi"), "-L"], None, 20)
    return [str(i) for i, line in enumerate(done.stdout.splitlines()) if line.startswith("GPU ")]


def environment(lab, count):
    """Of a run that sees so many of them."""
    there = devices(lab)
    if len(there) < count:
        raise Missing("there is one GPU" if there else "there is no GPU")
    emulated = lab.o.device == gpu_results.EMULATED
    return dict(os.environ, **RANKS, **{"EMULATOR_DEVICES" if emulated else "CUDA_VISIBLE_DEVICES":
                                        (" " if emulated else ",").join(there[:count])})


def words(lab, name, *more):
    mpirun = os.environ.get("MPIRUN") or shutil.which("mpirun")
    if not mpirun:
        raise Missing("mpirun was not found")
    return [mpirun, "-np", "2", *lab.words(name, "-v", "--batch", "8", "--micro-batch", "8", *more)]


def train(lab, name, gpus, *more):
    done = lab.r.run(words(lab, name, *more), None, 120, env=environment(lab, gpus))
    if "this build has no MPI" in done.stderr:
        raise Missing("chex-train was built without MPI")
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr.strip()[-400:]}"
    return done.stderr


def twice(lab, name, gpus, says, *more):
    for run in ("a", "b"):
        said = train(lab, f"{name}-{run}", gpus, *more)
        assert re.search(says, said), f"it does not say /{says}/: {said[:600]}"
    a, b = kept(lab.folder(f"{name}-a")), kept(lab.folder(f"{name}-b"))
    assert a == b and a, f"other bytes in {sorted(n for n in set(a) | set(b) if a.get(n) != b.get(n))}"
    return {"files": len(a), "says": re.search(says, said).group(0)}


def one_rank(lab, precision):
    done = lab.r.run([program("gpu-steps", lab.o.device), f"{lab.o.device}:{precision}", "ref", "densenet-micro", 32, 8,
                      4], None)
    if done.returncode == 77:
        raise Missing(done.stderr.strip())
    assert done.stdout.startswith("{"), f"exit code {done.returncode}: {done.stderr.strip()[-400:]}"
    found = json.loads(done.stdout)
    if found["same_with_nccl"] is None:
        raise Missing(found["nccl"] or f"{lab.o.device} has no NCCL")
    assert found["same_with_nccl"], f"other bits: {found}"
    return {"nccl": found["nccl"]}


def without_graphs(lab):
    train(lab, "nccl-launched", 2, "--no-graph")
    same_end(lab.folder("nccl-launched"), lab.folder("nccl-a"))


def lost(lab, number, codes, says):
    """A rank in the middle of a run: the other one ends, says who is gone, and the run goes on to the same end."""
    name = f"nccl-lost-{int(number)}"
    each = int(newest(lab.folder("nccl-a"))[5:]) // EPOCHS
    process = subprocess.Popen(words(lab, name, "--epochs", "300", "--checkpoint-every", "3steps", "--timeout", "10s"),
                               env=environment(lab, 2), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, start_new_session=True)
    wait_for(process, rb"^ep +2/", 90)
    pids = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
    assert len(pids) >= 2, f"ranks: {pids}"
    os.kill(int(pids[-1]), number)
    begun = time.monotonic()
    code, said = finish(process, 90)
    assert code in codes, f"exit code {code}: {said[-400:]}"
    assert re.search(says, said), f"it does not say /{says}/: {said[-400:]}"
    took = time.monotonic() - begun
    epochs = int(newest(lab.folder(name))[5:]) // each + 2
    for run in (name, name + "-straight"):
        train(lab, run, 2, "--epochs", epochs)
    # The best model may be one of the run that was lost, and says for how many epochs that was.
    last, (a, b) = newest(lab.folder(name)), (kept(lab.folder(run)) for run in (name, name + "-straight"))
    for file in (f"{last}.safetensors", f"{last}.opt.safetensors"):
        assert a[file] == b.get(file), f"other bytes in {file}"
    return {"step": last, "ended_after": round(took, 1)}


def check_ranks(r, o):
    lab = Lab(r, o)
    try:
        lab.data = lab.make_data("data", 48, 64, 36)
        for precision in o.precisions:
            r.case(f"one rank, {precision}: NCCL in the graph of a step",
                   lambda precision=precision: one_rank(lab, precision))
        r.case("two ranks on one GPU: by messages, the same bytes",
               lambda: twice(lab, "staged", 1, "not by NCCL: rank 0 and rank 1 of .* share a GPU"))
        r.case("two GPUs: NCCL, the same bytes", lambda: twice(lab, "nccl", 2, "sums     by NCCL .* fp32 on the wire"))
        r.case("two GPUs: without graphs the same bytes", lambda: without_graphs(lab))
        r.case("two GPUs: bf16 on the wire, the same bytes",
               lambda: twice(lab, "wire", 2, "sums     by NCCL .* bf16 on the wire", "--wire", "bf16"))
        r.case("two GPUs: a rank is killed", lambda: lost(lab, signal.SIGKILL, (8, 137), r"chex-train: .*rank \d "))
        r.case("two GPUs: a rank is stopped",
               lambda: lost(lab, signal.SIGSTOP, (8,), r"rank \d \S+ is lost: no message for 10 s"))
    finally:
        shutil.rmtree(lab.work, ignore_errors=True)
