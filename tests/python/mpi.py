# SPDX-License-Identifier: Apache-2.0
"""Programs of ours under mpirun (Python 3, stdlib only)."""
import functools
import glob
import os
import shutil
import subprocess
import time

from support import PATIENCE, Skip, program, run, slurp

# Under the address sanitizer: what MPI itself keeps until its end is no leak of ours.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none")


@functools.lru_cache(None)
def mpirun(name):
    """The path of mpirun, if this program of ours is one for it."""
    path = os.environ.get("MPIRUN") or shutil.which("mpirun")
    if not path:
        raise Skip("no mpirun")
    done = run([path, "-np", "2", program(name)], None, env=ENVIRONMENT)
    if "this build has no MPI" in done.stderr:
        raise Skip(f"{name} was built without MPI")
    return path


def ranks(name, count, *words):
    """The command that starts `count` ranks of a program."""
    return [mpirun(name), "-np", str(count), *map(str, words)]


def start(words, **how):
    """mpirun and its ranks in a group of their own."""
    how.setdefault("env", ENVIRONMENT)
    return subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                            text=True, start_new_session=True, **how)


def children(pid, name, found=None):
    """The processes below this one that run this program, by number."""
    found = [] if found is None else found
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            for child in map(int, open(path, encoding="ascii").read().split()):
                if name.encode() + b"\0" in slurp(f"/proc/{child}/cmdline")[:400]:
                    found.append(child)
                children(child, name, found)
        except OSError:
            pass
    return found


def wait_for(what):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def gone(pids):
    def state(pid):
        try:
            return open(f"/proc/{pid}/stat", encoding="ascii", errors="replace").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            return "X"
    return all(state(pid) in "XZ" for pid in pids)


def finish(process):
    return process.communicate(timeout=PATIENCE)[1], process.returncode
