#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pack.py FOLDER [MAX_BYTES] - the files of FOLDER as finds/TARGET.txt has them (see replay.c), on standard output

The shortest come first, as many as go into MAX_BYTES of text.  A name is that of the file, or, where a fuzzer named it
by its hash, `find-` and the hash's head.
"""
import os
import re
import sys


def escape(data):
    table = {0x0a: r"\n", 0x5c: r"\\"}
    return "".join(table.get(b) or (chr(b) if 0x20 <= b < 0x7f else f"\\x{b:02x}") for b in data)


def main():
    folder, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 62
    files = sorted(os.listdir(folder), key=lambda name: (os.path.getsize(os.path.join(folder, name)), name))
    used = 0
    for name in files:
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        hashed = re.fullmatch(r"(?:crash-|leak-|oom-|timeout-|slow-unit-)?([0-9a-f]{40})", name)
        line = f"{'find-' + hashed.group(1)[:10] if hashed else name}\t{escape(data)}\n"
        used += len(line)
        if used > most:
            break
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
