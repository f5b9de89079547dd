#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of the relocatable programs: CycloneDX 1.6, from what libraries.toml pins.

    sbom.py [-c] TARBALL VERSION TIME     TARBALL: the source tarball; TIME: seconds, of the release
    sbom.py [-c] licence                  the SPDX expression for all that is in the programs

-c: the programs for x86-64 contain the CUDA runtime.
"""
import datetime
import json
import os
import re
import sys
import urllib.parse

import libraries


def component(name, table):
    purl = f"pkg:deb/debian/{os.path.basename(table['folder'])}@{urllib.parse.quote(table['version'])}" \
           "?arch=source&distro=debian-12"
    return {
        "type": "library", "bom-ref": name, "name": name, "version": libraries.upstream(table),
        "licenses": [{"expression": table["licence"]}], "purl": purl,
        "externalReferences": [
            {"type": "source-distribution",
             "url": f"https://deb.debian.org/debian/{table['folder']}/{urllib.parse.quote(file)}",
             "hashes": [{"alg": "SHA-256", "content": sha256}]} for file, sha256 in table["files"]]}


CUDA_LICENCE = "LicenseRef-NVIDIA-End-User-License-Agreement"


def wheels(name):
    """{package: version} of a list of requirements."""
    with open(os.path.join(libraries.HERE, name), encoding="utf-8") as f:
        return dict(re.findall(r"^([\w-]+)==(\S+)", f.read(), re.M))


def bill(tarball, version, seconds, cuda):
    _, tables = libraries.pinned()
    linked = {name: table for name, table in tables.items() if table.get("linked", True)}
    zig = wheels("requirements.txt")["ziglang"]
    parts = [component(name, table) for name, table in sorted(linked.items())]
    parts.append({"type": "library", "bom-ref": "compiler-rt", "name": "compiler-rt", "version": f"zig {zig}",
                  "description": "functions of the compiler, in every program", "licenses": [{"expression": "MIT"}],
                  "purl": f"pkg:pypi/ziglang@{zig}"})
    tools = [{"type": "application", "name": "ziglang", "version": zig, "purl": f"pkg:pypi/ziglang@{zig}"}]
    for name, of_wheel in wheels("requirements-cuda.txt").items() if cuda else ():
        purl = f"pkg:pypi/{name}@{of_wheel}"
        if name == "nvidia-cuda-runtime-cu12":
            parts.append({"type": "library", "bom-ref": "cuda-runtime", "name": "cuda-runtime", "version": of_wheel,
                          "description": "libcudart_static and headers, in chex-train and chex-predict for x86-64",
                          "licenses": [{"expression": CUDA_LICENCE}], "purl": purl})
        else:
            tools.append({"type": "application", "name": name, "version": of_wheel, "purl": purl})
    tools += [{"type": "application", "name": name, "version": libraries.upstream(table)}
              for name, table in sorted(tables.items()) if name not in linked]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(),
            "tools": {"components": tools},
            "component": {
                "type": "application", "bom-ref": "chex-tools", "name": "chex-tools", "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
                "hashes": [{"alg": "SHA-256", "content": libraries.digest(tarball)}]}},
        "components": parts,
        "dependencies": [{"ref": "chex-tools", "dependsOn": [p["bom-ref"] for p in parts]}]}


def licence(cuda):
    """One expression for all of it."""
    _, tables = libraries.pinned()
    words = {"Apache-2.0", "MIT", *([CUDA_LICENCE] if cuda else [])}
    for table in tables.values():
        if table.get("linked", True):
            words.update(table["licence"].split(" AND "))
    return " AND ".join(sorted(words))


if __name__ == "__main__":
    with_cuda = sys.argv[1:2] == ["-c"]
    words_of_caller = sys.argv[1 + with_cuda:]
    if words_of_caller == ["licence"]:
        print(licence(with_cuda))
    elif len(words_of_caller) == 3:
        json.dump(bill(*words_of_caller[:2], int(words_of_caller[2]), with_cuda), sys.stdout, indent=2)
        print()
    else:
        sys.exit(__doc__)
