#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests ran of lib/, by gcov.

    coverage.py BUILD       a build folder, configured with --coverage, in which `make check` was run
"""
import collections
import glob
import os
import re
import subprocess
import sys

# What neither reads bytes that others made nor reads and writes files or messages: arithmetic, threads, the clock.
REST = "comm convolve convolve_x86 crc32c image memory plan progress queue resample resample_axis threads".split()
LEAST = 90  # per cent of the branches of all other files


def main():
    build = sys.argv[1]
    counts = {}
    for data in sorted(glob.glob(os.path.join(build, "lib", "**", "*.gcda"), recursive=True)):
        text = subprocess.run(["gcov", "-b", "-n", os.path.basename(data)], cwd=os.path.dirname(data), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        for part in re.split(r"(?=^File ')", text, flags=re.M):
            name = re.match(r"File '(?:.*/)?lib/(?:[a-z]+/)?([^/']+)\.c'", part)
            if name:
                found = {what: (float(share) * int(n) / 100, int(n)) for what, share, n in
                         re.findall(r"^(Lines executed|Taken at least once):([\d.]+)% of (\d+)", part, flags=re.M)}
                counts[name.group(1)] = (found.get("Lines executed", (0, 0)), found.get("Taken at least once", (0, 0)))
    if not counts:
        sys.exit(f"no .gcda in {build}/lib: was it configured with --coverage, and make check run?")
    print(f"{'lib/':18} {'lines':>12} {'branches':>12}")
    sums = collections.defaultdict(lambda: [0.0, 0, 0.0, 0])
    for name, ((lines, all_lines), (branches, all_branches)) in sorted(counts.items()):
        print(f"{name:18} {100 * lines / max(all_lines, 1):5.1f} % {all_lines:5} "
              f"{100 * branches / max(all_branches, 1):5.1f} % {all_branches:5}")
        for kind in ("all", "the rest" if name in REST else "parsers and I/O"):
            for i, value in enumerate((lines, all_lines, branches, all_branches)):
                sums[kind][i] += value
    for kind, (lines, all_lines, branches, all_branches) in sums.items():
        print(f"{kind:18} {100 * lines / all_lines:5.1f} % {all_lines:5} {100 * branches / all_branches:5.1f} % "
              f"{all_branches:5}")
    print(f"the rest: {', '.join(REST)}; parsers and I/O: every other file")
    _, _, branches, all_branches = sums["parsers and I/O"]
    if 100 * branches < LEAST * all_branches:
        sys.exit(f"fewer than {LEAST} % of the branches of parsers and I/O were taken")


if __name__ == "__main__":
    main()
