#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of the relocatable programs: CycloneDX 1.6, from what libraries.toml pins.

    sbom.py TARBALL VERSION TIME     TARBALL: the source tarball; TIME: seconds, of the release
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


def zig_version():
    with open(os.path.join(libraries.HERE, "requirements.txt"), encoding="utf-8") as f:
        return re.search(r"^ziglang==(\S+)", f.read(), re.M).group(1)


def bill(tarball, version, seconds):
    _, tables = libraries.pinned()
    linked = {name: table for name, table in tables.items() if table.get("linked", True)}
    zig = zig_version()
    parts = [component(name, table) for name, table in sorted(linked.items())]
    parts.append({"type": "library", "bom-ref": "compiler-rt", "name": "compiler-rt", "version": f"zig {zig}",
                  "description": "functions of the compiler, in every program", "licenses": [{"expression": "MIT"}],
                  "purl": f"pkg:pypi/ziglang@{zig}"})
    tools = [{"type": "application", "name": "ziglang", "version": zig, "purl": f"pkg:pypi/ziglang@{zig}"}]
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


def licence():
    """One expression for all of it."""
    _, tables = libraries.pinned()
    words = {"Apache-2.0", "MIT"}
    for table in tables.values():
        if table.get("linked", True):
            words.update(table["licence"].split(" AND "))
    return " AND ".join(sorted(words))


if __name__ == "__main__":
    if sys.argv[1:] == ["licence"]:
        print(licence())
    elif len(sys.argv) == 4:
        json.dump(bill(sys.argv[1], sys.argv[2], int(sys.argv[3])), sys.stdout, indent=2)
        print()
    else:
        sys.exit(__doc__)
