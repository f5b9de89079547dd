#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Notes of a release, from CHANGELOG.md.

    notes.py CHANGELOG VERSION SHA256SUMS

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
- There is no CUDA in these programs.  Build the source with nvcc for GPUs: doc/install.md.
"""


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


def main(changelog, version, sums):
    with open(sums, encoding="utf-8") as f:
        files = [line.split() for line in f]
    print(f"# chex-tools {version}\n")
    print(f"The source is chex-tools-{version}.tar.xz; an archive that a forge makes of the tag lacks `configure`.")
    print("The bill of materials is the .cdx.json file.\n")
    print("| file | SHA-256 |\n|---|---|")
    for digest, name in files:
        print(f"| {name} | `{digest}` |")
    print(f"\n{SYSTEMS}\n## Libraries in the programs\n")
    print("Static, with Debian's security patches.  Their licences are in share/doc/chex-tools/licenses.\n")
    print("| library | version | source | licence |\n|---|---|---|---|")
    print("\n".join(parts()))
    print("\nzig's compiler-rt (MIT) is in the programs too.\n")
    print("To make a file again and compare: `make verify-release TARBALL=FILE`, in the source.\n")
    print(f"## Changes\n\n{changes(changelog, version)}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
