#!/usr/bin/env python3
"""compile_commands.json for clangd and clang-tidy, from the commands that `make -n` prints

    make -n V=1 -W config.h all | compile_commands.py SOURCE-FOLDER > compile_commands.json

A compile command has `-c -o OBJECT SOURCE`; libtool's wrapper is removed.  Other commands are ignored.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import shlex
import sys


def entry(line, folder):
    # Automake writes SOURCE as `test -f 'x.c' || echo '/source/'`x.c
    line = re.sub(r"`test -f '[^']*' \|\| echo '([^']*)'`", r"\1", line)
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if "--mode=compile" in words:
        words = words[words.index("--mode=compile") + 1:]
    if "-c" not in words or not re.search(r"\.(c|cc|cu)$", words[-1]):
        return None
    return {"directory": folder, "file": os.path.normpath(os.path.join(folder, words[-1])), "arguments": words}


def main():
    found = {}
    for line in sys.stdin.read().replace("\\\n", " ").splitlines():
        made = entry(line.split(" && ")[0].split("; ")[-1], os.getcwd())
        if made:
            found.setdefault(made["file"], made)
    json.dump(list(found.values()), sys.stdout, indent=1)
    print()


main()
