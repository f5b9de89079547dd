#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replace the constants of a GPU in the cost model by measured ones.

    gpu-rates --table | gpu_table.py [FILE]      FILE: train/cuda/plan/gpu.c

Reads a row of the table `gpus` and writes it in the place of the row with the same name, or as a new row before the
others of its generation, whose last row stands for unknown GPUs.  The figure of cuDNN stays: gpu-rates does not measure
it.  Exit status: 0 good, 1 there is no such row or table, 2 usage
"""
import os
import re
import sys

FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "train", "cuda", "plan", "gpu.c")
MARK = "    /* measured by gpu-rates */"
NAME, MAJOR, CUDNN, MEMBERS = 0, 1, 7, 14
NUMBERS = range(1, 12)


def members(row):
    """The members of struct cuda_gpu in a row, as text; None: this is no row."""
    found = re.fullmatch(r'\s*\{(".*)\},?\s*', row)
    values = found.group(1).split(", ") if found else []
    return values if len(values) == MEMBERS else None


def value_of(text):
    """The number of "0.80 * 100e12" or "6 * MIB"."""
    value = 1.0
    for factor in text.split(" * "):
        value *= {"KIB": 1024, "MIB": 1048576}.get(factor) or float(factor)
    return value


def check(row):
    for i in NUMBERS:
        if i != CUDNN and not 0 < value_of(row[i]) < 1e18:
            raise ValueError(f"member {i} of a row is {row[i]}")


def replaced(text, row):
    """The text of gpu.c with this row."""
    lines = text.split("\n")
    begin = next(i for i, line in enumerate(lines) if line.startswith("static const struct cuda_gpu gpus[]")) + 1
    end = next(i for i in range(begin, len(lines)) if lines[i] == "};")
    rows = {i: members(lines[i]) for i in range(begin, end) if members(lines[i])}
    same = [i for i, other in rows.items() if other[NAME] == row[NAME]]
    if same:
        at = same[0]
        row = row[:CUDNN] + [rows[at][CUDNN]] + row[CUDNN + 1:]
        first = at - (lines[at - 1] == MARK)
        lines[first:at + 1] = [MARK, f"    {{{', '.join(row)}}},"]
    else:
        later = [i for i, other in rows.items() if int(other[MAJOR]) >= int(row[MAJOR])]
        at = later[0] if later else end
        at -= lines[at - 1] == MARK and bool(later)
        lines[at:at] = [MARK, f"    {{{', '.join(row)}}},"]
    return "\n".join(lines)


def main():
    if len(sys.argv) > 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    path = sys.argv[1] if len(sys.argv) > 1 else FILE
    try:
        row = next(filter(None, map(members, sys.stdin)))
        check(row)
        with open(path, encoding="utf-8") as file:
            text = replaced(file.read(), row)
    except (StopIteration, ValueError) as e:
        print(f"gpu_table.py: no row of gpu-rates --table, or no table in {path} {e}", file=sys.stderr)
        return 1
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{path}: {row[NAME]} has measured constants")
    return 0


if __name__ == "__main__":
    sys.exit(main())
