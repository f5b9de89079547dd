#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Notes of a release, from CHANGELOG.md.

    notes.py CHANGELOG VERSION SHA256SUMS [-c]     -c: the programs for x86-64 use GPUs

They begin with what a user is to download, because the archive that a forge makes of a tag has no configure.
"""
import re
import sys

import libraries

SYSTEMS = """\
## Where the programs run

On Linux with glibc 2.28 or later (RHEL 8, Debian 10, Ubuntu 18.10 and later), without root and without other libraries.

- The symbols of each program decide that, and auditwheel for the wheel: no system with glibc 2.28 was run.
- The x86-64 programs are run by `tests/tree/check_release.sh` in minimal root file systems of Debian 11 (glibc 2.31)
  and Debian 12 (2.36): synthetic images, conversion, check, report, training, two ranks with the MPI libraries of PyPI.
- Programs for aarch64 were run by qemu on x86-64, if at all, and not on such a machine.
- MPI is opened at run time: Open MPI 4 and 5, and libraries with the interface of MPI 5 (MPICH 5, Intel MPI 2021.19).
"""
WITH_CUDA = """\
- chex-train and chex-predict for x86-64 have kernels for NVIDIA GPUs from V100 (sm_70) to Blackwell (sm_120), and PTX
  for newer ones.  They need driver 525 or newer, on Blackwell 570, and no CUDA toolkit.  The kernels were compiled and
  emulated: **no GPU was available to run them**.  `--device cpu` trains without the GPU of a machine.  Programs for
  aarch64 do not use GPUs.
- These two programs contain NVIDIA's CUDA runtime (libcudart_static), under NVIDIA's licence for it.
"""
WITHOUT_CUDA = "- No program uses a GPU.  Build the source with nvcc for GPUs: doc/install.md.\n"


def changes(path, version):
    """The section of this version."""
    with open(path, encoding="utf-8") as f:
        found = re.search(rf"^## {re.escape(version)}\b.*?\n(.*?)(?=^## |\Z)", f.read(), re.M | re.S)
    if not found:
        sys.exit(f"notes.py: {path} has no section '## {version}'")
    return found.group(1).strip()


def parts():
    _, tables = libraries.pinned()
    for name, table in sorted(tables.items()):
        if table.get("linked", True):
            yield f"| {name} | {libraries.upstream(table)} | Debian {table['version']} | {table['licence']} |"


def main(changelog, version, sums, cuda=None):
    with open(sums, encoding="utf-8") as f:
        files = [line.split() for line in f]
    print(f"# chex-tools {version}\n")
    print(f"The source is chex-tools-{version}.tar.xz; an archive that a forge makes of the tag lacks `configure`.")
    print("The bill of materials is the .cdx.json file.\n")
    print("| file | SHA-256 |\n|---|---|")
    for digest, name in files:
        print(f"| {name} | `{digest}` |")
    print(f"\n{SYSTEMS}{WITH_CUDA if cuda else WITHOUT_CUDA}\n## Libraries in the programs\n")
    print("Static, with Debian's security patches.  Their licences are in share/doc/chex-tools/licenses.\n")
    print("| library | version | source | licence |\n|---|---|---|---|")
    print("\n".join(parts()))
    print("\nzig's compiler-rt (MIT) is in the programs too.\n")
    print("To make a file again and compare: `make verify-release TARBALL=FILE`, in the source.\n")
    print(f"## Changes\n\n{changes(changelog, version)}")


if __name__ == "__main__":
    if len(sys.argv) != 4 and sys.argv[4:] != ["-c"]:
        sys.exit(__doc__)
    main(*sys.argv[1:])
