#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/wheel/make_wheel.py: the wheel has the same bytes each time, its RECORD is right, and pip installs it."""
import base64
import csv
import email
import functools
import hashlib
import io
import os
import re
import shutil
import stat
import sys
import zipfile

from support import BUILD, SOURCE, Cases, Skip, cache_folder, python_with, run, same_tree, says, slurp, tree, write

case = Cases()
CACHE = cache_folder("wheel")
MAKE_WHEEL = os.path.join(SOURCE, "packaging", "wheel", "make_wheel.py")
PROGRAMS = ["chex-convert", "chex-inspect", "chex-predict", "chex-synth", "chex-train"]


@functools.lru_cache(None)
def installed():
    """The prefix of an installation of this build."""
    if not os.path.exists(os.path.join(BUILD, "Makefile")):
        raise Skip("no Makefile")
    run(["make", "-s", "-C", BUILD, "install-binPROGRAMS", "install-man", "install-dist_docDATA",
         "install-bash_completionDATA", "install-zsh_completionDATA", "install-fish_completionDATA",
         f"DESTDIR={CACHE}/destdir", "prefix=/usr"])
    return os.path.join(CACHE, "destdir", "usr")


def make_wheel(out, *options, code=0, prefix=None, epoch="1700000001", **how):
    if sys.version_info < (3, 11):
        raise Skip("the wheel is made with Python 3.11 or later")
    environment = dict(os.environ, SOURCE_DATE_EPOCH=epoch)
    done = run([sys.executable, MAKE_WHEEL, "-o", out, "--platform", "linux_x86_64", *options, prefix or installed()],
               code, env=environment, **how)
    return done if code else done.stdout.strip()


@functools.lru_cache(None)
def wheel():
    return make_wheel(os.path.join(CACHE, "wheel"))


def version():
    return re.search(r"AC_INIT\(\[chex-tools\], \[([^]]+)\]",
                     slurp(os.path.join(SOURCE, "configure.ac")).decode()).group(1)


@case("name, RECORD, modes and times of the files of a wheel")
def _(_work):
    assert os.path.basename(wheel()) == f"chex_tools-{version()}-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel()) as f:
        entries = {e.filename: e for e in f.infolist()}
        content = {name: f.read(name) for name in entries}
    stem = f"chex_tools-{version()}"
    rows = list(csv.reader(io.StringIO(content[f"{stem}.dist-info/RECORD"].decode())))
    assert len(rows) == len(entries) and {r[0] for r in rows} == entries.keys()
    for name, digest, size in rows:
        if name.endswith("/RECORD"):
            assert digest == size == ""
            continue
        hashed = base64.urlsafe_b64encode(hashlib.sha256(content[name]).digest()).decode().rstrip("=")
        assert (digest, size) == (f"sha256={hashed}", str(len(content[name]))), name
    for name, entry in entries.items():
        mode = entry.external_attr >> 16
        assert stat.S_ISREG(mode) and stat.S_IMODE(mode) == (0o755 if "/scripts/" in name else 0o644), name
        assert entry.date_time[:1] == (2023,), name
    assert {f"{stem}.data/scripts/{p}" for p in PROGRAMS} == {n for n in entries if "/scripts/" in n}
    for page in ("man1/chex-convert.1", "man5/chex-shard.5"):
        assert f"{stem}.data/data/share/man/{page}" in entries
    assert f"{stem}.dist-info/licenses/LICENSE" in entries and "chex_tools/py.typed" in entries


@case("the metadata of a wheel: version of configure.ac, extras, licences")
def _(work):
    tree_with = os.path.join(work, "usr")
    shutil.copytree(installed(), tree_with, symlinks=True)
    os.makedirs(os.path.join(tree_with, "share/doc/chex-tools/licenses/libpng"))
    write(os.path.join(tree_with, "share/doc/chex-tools/licenses/libpng/LICENSE"), "libpng\n")
    path = make_wheel(work, "--license", "Apache-2.0 AND libpng-2.0", prefix=tree_with)
    with zipfile.ZipFile(path) as f:
        said = email.message_from_bytes(f.read(f"chex_tools-{version()}.dist-info/METADATA"))
        assert f.read(f"chex_tools-{version()}.dist-info/licenses/licenses/libpng/LICENSE") == b"libpng\n"
    assert (said["Name"], said["Version"], said["Requires-Python"]) == ("chex-tools", version(), ">=3.9")
    assert said["Metadata-Version"] == "2.4" and said["License-Expression"] == "Apache-2.0 AND libpng-2.0"
    assert said.get_all("License-File") == ["LICENSE", "licenses/libpng/LICENSE"]
    extras = {"torch": "torch", "tensorflow": "tensorflow", "pandas": "pandas", "cuda12": "nvidia-nccl-cu12",
              "cudnn12": "nvidia-cudnn-cu12"}
    assert said.get_all("Provides-Extra") == list(extras)
    needs = said.get_all("Requires-Dist")
    assert needs[0].startswith("numpy") and ";" not in needs[0], needs
    assert all(any(n.startswith(f"{package}>=") and n.endswith(f'; extra == "{extra}"') for n in needs)
               for extra, package in extras.items()), needs
    assert "pip install chex-tools" in said.get_payload()


@case("the same tree and SOURCE_DATE_EPOCH make the same wheel, whatever the umask and the times of the files")
def _(work):
    copy = os.path.join(work, "usr")
    shutil.copytree(installed(), copy, copy_function=shutil.copyfile)
    again = make_wheel(os.path.join(work, "again"), prefix=copy, umask=0o077)
    assert slurp(again) == slurp(wheel())


@case("a SOURCE_DATE_EPOCH that is no time of a zip file makes no wheel, and says so")
def _(work):
    for epoch in ("abc", "9999999999", "-1", "1" * 30):
        says(make_wheel(work, code=1, epoch=epoch), "make_wheel.py: SOURCE_DATE_EPOCH is seconds since 1970")
    assert not os.listdir(work)


@case("RECORD quotes the names of files with commas and quotes")
def _(work):
    copy = os.path.join(work, "usr")
    shutil.copytree(installed(), copy, symlinks=True)
    name = 'a, "b"'
    os.makedirs(os.path.join(copy, "share/doc/chex-tools/licenses", name))
    write(os.path.join(copy, "share/doc/chex-tools/licenses", name, "LICENSE"), "text\n")
    with zipfile.ZipFile(make_wheel(work, prefix=copy)) as f:
        rows = list(csv.reader(io.StringIO(f.read(f"chex_tools-{version()}.dist-info/RECORD").decode())))
        assert [row[0] for row in rows] == f.namelist() and all(len(row) == 3 for row in rows)
    assert any(name in row[0] for row in rows)


@case("a tree without programs or licence, and a wrong tag, make no wheel")
def _(work):
    copy = os.path.join(work, "usr")
    shutil.copytree(installed(), copy, symlinks=True)
    os.remove(os.path.join(copy, "share/doc/chex-tools/LICENSE"))
    says(make_wheel(work, code=1, prefix=copy), "has no share/doc/chex-tools/LICENSE")
    shutil.rmtree(os.path.join(copy, "bin"))
    says(make_wheel(work, code=1, prefix=copy), "has no bin/chex-")
    says(make_wheel(work, "--platform", "../x", code=2), "platform tag")
    assert not [n for n in os.listdir(work) if n.endswith((".whl", ".part"))]


@case("pip installs the wheel into an empty environment: programs, man pages and the module; and removes all of it")
def _(work):
    python = python_with("numpy")
    venv = os.path.join(work, "venv")
    if run([python, "-m", "venv", "--system-site-packages", venv], None).returncode:
        raise Skip("this Python makes no virtual environments (Debian: python3-venv)")
    shutil.rmtree(os.path.join(work, "home"), ignore_errors=True)
    before = tree(venv)
    environment = {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": work}
    pip = [f"{venv}/bin/python", "-m", "pip", "--no-cache-dir", "--disable-pip-version-check"]
    run([*pip, "install", "--no-index", "--no-deps", wheel()], env=environment)
    for name in PROGRAMS:
        assert os.access(f"{venv}/bin/{name}", os.X_OK), name
        assert slurp(f"{venv}/bin/{name}") == slurp(os.path.join(installed(), "bin", name)), name
    assert version() in run([f"{venv}/bin/chex-convert", "--version"], env=environment).stdout
    assert os.path.exists(f"{venv}/share/man/man1/chex-convert.1")
    said = run([f"{venv}/bin/python", "-c", "import chex_tools; print(chex_tools.__version__, chex_tools.__file__)"],
               env=environment, cwd=work).stdout.split()
    assert said[0] == version() and said[1].startswith(venv), said
    run([*pip, "uninstall", "-y", "-q", "chex-tools"], env=environment)
    left = {name: digest for name, digest in tree(venv).items() if "__pycache__" not in name}
    same_tree({name: digest for name, digest in before.items() if "__pycache__" not in name}, left)


if __name__ == "__main__":
    sys.exit(case.main())
