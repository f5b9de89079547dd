#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sources that libraries.toml pins.

    libraries.py fetch DOWNLOADS FOLDER       FOLDER/NAME: unpacked, with Debian's patches
    libraries.py licences FOLDER OUT          OUT/NAME: the texts of what is linked

Exit code 77: no mirror has a file.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))


def pinned():
    """The mirrors, and {name: table}."""
    with open(os.path.join(HERE, "libraries.toml"), "rb") as f:
        tables = tomllib.load(f)
    return tables.pop("mirrors"), tables


def upstream(table):
    """The version without Debian's epoch and revision."""
    return table["version"].split(":")[-1].rsplit("-", 1)[0].split(".dfsg")[0].split("+dfsg")[0]


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def download(mirrors, folder, name, sha256, into):
    """The file in `into`, from there or from the first mirror that has it with this digest."""
    path = os.path.join(into, name)
    if os.path.exists(path) and digest(path) == sha256:
        return path
    os.makedirs(into, exist_ok=True)
    said = []
    for mirror in mirrors:
        url = f"{mirror}/{folder}/{urllib.parse.quote(name)}"
        partial = f"{path}.{os.getpid()}"
        try:
            with urllib.request.urlopen(url, timeout=120) as source, open(partial, "wb") as f:
                shutil.copyfileobj(source, f)
        except (urllib.error.URLError, OSError) as error:
            said.append(f"{url}: {error}")
            continue
        if digest(partial) == sha256:
            os.replace(partial, path)
            return path
        said.append(f"{url}: SHA-256 {digest(partial)}, but {sha256} is pinned")
        os.remove(partial)
    print("libraries.py:", "\n".join(said), file=sys.stderr)
    sys.exit(77)


def unpack(archive, folder, strip):
    with tarfile.open(archive) as tar:
        members = []
        for member in tar:
            if strip:
                member.name = member.name.partition("/")[2]
            if member.name and not member.name.startswith(("/", "..")):
                members.append(member)
        tar.extractall(folder, members, filter="data")


def patches(folder):
    series = os.path.join(folder, "debian", "patches", "series")
    if not os.path.exists(series):
        return []
    with open(series, encoding="utf-8") as f:
        lines = [line.split(" #")[0].strip() for line in f]
    return [os.path.join(folder, "debian", "patches", line.split()[0])
            for line in lines if line and not line.startswith("#")]


def fetch(downloads, into):
    mirrors, tables = pinned()
    for name, table in tables.items():
        folder = os.path.join(into, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for file, sha256 in table["files"]:
            path = download(mirrors, table["folder"], file, sha256, downloads)
            unpack(path, folder, strip=".orig.tar" in file)
        for patch in patches(folder):
            with open(patch, "rb") as f:
                subprocess.run(["patch", "--quiet", "-p1", "--no-backup-if-mismatch"], stdin=f, cwd=folder, check=True)


def licences(sources, out):
    _, tables = pinned()
    for name, table in tables.items():
        if not table.get("linked", True):
            continue
        os.makedirs(os.path.join(out, name))
        for text in table["texts"]:
            shutil.copyfile(os.path.join(sources, name, text), os.path.join(out, name, os.path.basename(text)))


if __name__ == "__main__":
    commands = {"fetch": fetch, "licences": licences}
    if len(sys.argv) != 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
