# SPDX-License-Identifier: Apache-2.0
"""Calls chex-convert and chex-inspect, and returns their JSON documents."""
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np

from ._maps import Path, text_path
from .errors import BY_EXIT_CODE, ChexError, InputError, UsageError


def find_program(name: str) -> str:
    """The path of a program: next to this Python, where pip puts the scripts of a package, or in PATH."""
    folders = [os.path.dirname(sys.executable or ""), sysconfig.get_path("scripts")]
    if "posix_user" in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", "posix_user"))
    for folder in folders:
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if not found:
        raise InputError(f"there is no program {name} next to {sys.executable or 'python'} or in PATH; "
                         "the wheel of chex-tools has it (pip install chex-tools)")
    return found


def _words(options: dict[str, Any]) -> list[str]:
    """shard_size=64 is --shard-size 64; True is an option without a value; a list repeats the option."""
    words = []
    for name, value in options.items():
        option = "--" + name.strip("_").replace("_", "-")
        if isinstance(value, (set, frozenset)):
            value = sorted(value, key=str)
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, (bool, np.bool_)):
                words += [option] if each else []
            elif isinstance(each, (str, bytes, os.PathLike)):
                words.append(f"{option}={text_path(each)}")
            elif isinstance(each, (int, float, np.number)):
                words.append(f"{option}={each}")
            elif each is not None:
                raise UsageError(f"{name} is a text, a path, a number, True, or a list of them, not {each!r}")
    return words


def _paths(paths: Union[Path, Sequence[Path], None]) -> list[str]:
    """Paths as the programs take them: one that begins with '-' is no option."""
    many = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths or ())
    names = [text_path(path) for path in many]
    return [f"./{name}" if name.startswith("-") else name for name in names]


def _fault(part: dict[str, Any]) -> Optional[str]:
    """What a document, or a result in it, says of its failure."""
    error = part.get("error")
    if isinstance(error, dict):
        error = error.get("text")
    if isinstance(error, str):
        return error
    faults, changes, result = (part.get(key) for key in ("fault_list", "changes", "result"))
    if isinstance(faults, list) and faults and isinstance(faults[0], dict):
        first = faults[0]
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        return f"'{part.get('path')}' is damaged: {first.get('file')}: {first.get('text')}{more}"
    if part.get("same") is False and isinstance(changes, list):
        kinds = sorted({str(c["kind"]) for c in changes if isinstance(c, dict) and "kind" in c})
        return f"they differ{' in ' if kinds else ''}{', '.join(kinds)}: see document"
    if isinstance(result, dict) and result.get("rejects"):
        count = result["rejects"]
        return f"{count} image{'' if count == 1 else 's'} could not be used: see rejects.jsonl"
    return None


def _message(document: Any, errors: str, program: str, code: int) -> str:
    """The message of the program for its failure."""
    if errors.strip():
        return errors.strip()
    parts = [document]
    if isinstance(document, dict) and isinstance(document.get("results"), list):
        parts += document["results"]
    for part in parts:
        fault = _fault(part) if isinstance(part, dict) else None
        if fault is not None:
            return fault
    return f"{program} ended with {code}"


def _run(program: str, words: Sequence[str], progress: bool) -> dict[str, Any]:
    """Run a program with --json to its end, and return its document."""
    command = [find_program(program), *words, "--json", *([] if progress else ["--quiet"])]
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=None if progress else subprocess.PIPE, encoding="utf-8", errors="replace")
    except ValueError as e:  # a NUL character
        raise UsageError(f"{program}: {e}") from None
    except OSError as e:
        raise InputError(f"cannot run '{command[0]}': {e.strerror or e}") from e
    with child:
        try:
            output, errors = child.communicate()
        except BaseException:
            child.terminate()  # it saves what it has, and the same call resumes
            child.wait()
            raise
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    try:
        document = json.loads(output)
    except ValueError:
        document = None
    if code == 0 and isinstance(document, dict):
        return document
    if code == 0:
        raise UsageError(f"this call of {program} gives no JSON: {' '.join(words)}")
    error = BY_EXIT_CODE.get(code, ChexError)(_message(document, errors or "", program, code), code)
    error.document = document
    raise error


def convert(output: Path, images: Union[Path, Sequence[Path], None] = None, labels: Optional[Path] = None, *,
            progress: bool = False, **options: Any) -> dict[str, Any]:
    """Convert images to shards with chex-convert; returns its JSON document, see --json in chex-convert(1).

        convert("shards", ["images_001.tar.gz"], "Data_Entry_2017_v2020.csv", size=320, allow_missing=True)

    options are those of chex-convert(1): size=320 is --size=320, where=["sex=F", "Mass"] repeats --where, and
    dry_run=True shows the plan only.  progress=True: the program shows its progress on stderr.  The same call again
    resumes a conversion that was stopped.  convert("shards", withdraw="00000013") removes a patient from a data set.

    A ChexError has the exit code, the message and the document of the program.  So DamagedError, exit code 1, means
    that the shards are complete, but that some images could not be used."""
    words = [f"--input={path}" for path in _paths(images)]
    words += [] if labels is None else [f"--labels={text_path(labels)}"]
    place = _paths(output) if options.get("withdraw") else [f"--output={text_path(output)}"]
    return _run("chex-convert", [*words, *_words(options), *place], progress)


def inspect(command: str, *paths: Path, progress: bool = False, **options: Any) -> dict[str, Any]:
    """Call a command of chex-inspect(1); returns its JSON document, see --json there.

        inspect("check", "shards", full=True)
        inspect("list", "shards", where=["Hernia"], fields="name,age")

    options are those of the command, as in convert().  DamagedError: it found faults, which its document names."""
    return _run("chex-inspect", [command, *_words(options), *_paths(paths)], progress)
