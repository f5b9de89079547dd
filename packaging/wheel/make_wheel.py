#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the wheel of chex-tools from an installed tree: programs, man pages, completions and the module chex_tools.

    packaging/wheel/make_wheel.py -o DIR --platform TAG [--license EXPRESSION] TREE

TREE is a prefix, such as the folder that `make install DESTDIR=DIR prefix=/usr` fills.  The wheel gets

    TREE/bin/chex-*                         the programs; pip installs them next to python
    TREE/share/man/man1 and man5            man pages, into share/man of the environment
    TREE/share/bash-completion, fish, zsh   completions, into share of the environment
    TREE/share/doc/chex-tools/LICENSE*, COPYING*, NOTICE*, licenses/
                                            licences of chex-tools and of the linked libraries; one LICENSE at least
    python/chex_tools                       the module, from the source folder of this program

TAG is a platform tag, such as manylinux_2_28_x86_64 or linux_x86_64.  The wheel has the tag py3-none-TAG, because the
programs need no Python and the module has no C.  Name, version, extras and description are those of
python/pyproject.toml.  EXPRESSION is the SPDX licence expression for everything in the wheel, with the linked
libraries; default Apache-2.0.

All times in the wheel are SOURCE_DATE_EPOCH (1980 without it), so the same TREE and source give the same bytes.  The
path of the wheel is printed.  Only the standard library is needed, of Python 3.11 or later.
"""
import argparse
import base64
import csv
import hashlib
import io
import os
import re
import sys
import time
import tomllib
import zipfile
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent.parent / "python"
MODULE = "chex_tools"
COMPLETIONS = ("bash-completion", "fish", "zsh")
LICENSES = ("LICENSE*", "COPYING*", "NOTICE*", "licenses/**/*")
EARLIEST = 315532800  # 1980: a zip file has no earlier time
LATEST = 4354819199  # 2107: and no later one


def version():
    """The version of the module, which a test compares with that of configure.ac."""
    text = (PYTHON / MODULE / "_version.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "([^"]+)"$', text, re.M).group(1)


def metadata(expression, licenses):
    """The text of METADATA (core metadata 2.4)."""
    with open(PYTHON / "pyproject.toml", "rb") as f:
        project = tomllib.load(f)["project"]
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", f"Keywords: {','.join(project['keywords'])}",
             *(f"Classifier: {c}" for c in project["classifiers"] if not c.startswith("License ::")),
             f"License-Expression: {expression}",
             *(f"License-File: {name}" for name in licenses), f"Requires-Python: {project['requires-python']}",
             *(f"Requires-Dist: {need}" for need in project["dependencies"])]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + (PYTHON / project["readme"]).read_text(encoding="utf-8")


def files_below(folder, pattern="**/*"):
    """{path below the folder: content}; a link counts as the file that it names."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.glob(pattern)) if p.is_file()}


def contents(tree, expression):
    """{path in the wheel: (content, mode)}, without RECORD; the folder dist-info is last."""
    stem = f"{MODULE}-{version()}"
    data, info = f"{stem}.data", f"{stem}.dist-info"
    found = {}
    module = files_below(PYTHON / MODULE)
    for name, content in module.items():
        if name.endswith((".py", "py.typed")):
            found[f"{MODULE}/{name}"] = (content, 0o644)
    programs = files_below(tree / "bin", "chex-*")
    for name, content in programs.items():
        found[f"{data}/scripts/{name}"] = (content, 0o755)
    shared = {f"man/{p}/{name}": content for p in ("man1", "man5")
              for name, content in files_below(tree / "share/man" / p).items()}
    for shell in COMPLETIONS:
        shared.update({f"{shell}/{name}": content for name, content in files_below(tree / "share" / shell).items()})
    for name, content in shared.items():
        found[f"{data}/data/share/{name}"] = (content, 0o644)
    licenses = {}
    for pattern in LICENSES:
        licenses.update(files_below(tree / "share/doc/chex-tools", pattern))
    for what, there in (("bin/chex-*", programs), ("share/man/man1", any(n.startswith("man/man1") for n in shared)),
                        ("share/doc/chex-tools/LICENSE", "LICENSE" in licenses)):
        if not there:
            sys.exit(f"make_wheel.py: {tree} has no {what}")
    for name, content in licenses.items():
        found[f"{info}/licenses/{name}"] = (content, 0o644)
    found[f"{info}/METADATA"] = (metadata(expression, sorted(licenses)).encode(), 0o644)
    return found


def digest(content):
    """A hash as RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def time_of_files():
    """The time of all files in the wheel, as zip files have it."""
    text = os.environ.get("SOURCE_DATE_EPOCH") or str(EARLIEST)
    if not re.fullmatch("[0-9]{1,12}", text) or int(text) > LATEST:
        sys.exit(f"make_wheel.py: SOURCE_DATE_EPOCH is seconds since 1970, up to {LATEST}, not '{text}'")
    return time.gmtime(max(int(text), EARLIEST))[:6]


def record(found, name):
    """The text of RECORD, whose own path is name."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerows((path, digest(content), len(content)) for path, (content, _) in found.items())
    rows.writerow((name, "", ""))
    return out.getvalue()


def write_wheel(path, found, when):
    """Write a zip file of these files, in this order, with one time for all."""
    temporary = path.with_name(path.name + ".part")
    with zipfile.ZipFile(temporary, "w") as wheel:
        for name, (content, mode) in found.items():
            entry = zipfile.ZipInfo(name, when)
            entry.create_system = 3  # Unix: the mode counts
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content, compresslevel=9)
    temporary.replace(path)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("-o", "--output", required=True, metavar="DIR", type=Path, help="the folder for the wheel")
    p.add_argument("--platform", required=True, metavar="TAG", help="such as manylinux_2_28_x86_64")
    p.add_argument("--license", default="Apache-2.0", metavar="EXPRESSION", help="SPDX, of everything in the wheel")
    p.add_argument("tree", metavar="TREE", type=Path, help="an installed tree with bin and share")
    a = p.parse_args()
    if not re.fullmatch(r"[a-z0-9_]+", a.platform):
        p.error(f"a platform tag has lower-case letters, digits and '_', not '{a.platform}'")
    if not re.fullmatch(r"[A-Za-z0-9.+() -]+", a.license):
        p.error(f"not an SPDX expression: '{a.license}'")
    when = time_of_files()
    tag = f"py3-none-{a.platform}"
    info = f"{MODULE}-{version()}.dist-info"
    found = contents(a.tree, a.license)
    found[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: chex-tools make_wheel.py ({version()})\n"
                              f"Root-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)
    found[f"{info}/RECORD"] = (record(found, f"{info}/RECORD").encode(), 0o644)
    a.output.mkdir(parents=True, exist_ok=True)
    path = a.output / f"{MODULE}-{version()}-{tag}.whl"
    write_wheel(path, found, when)
    print(path)


if __name__ == "__main__":
    main()
