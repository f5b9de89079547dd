#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kernel of train/cuda/ compiled by NVRTC 12.9 for sm_70, sm_75, sm_80 and sm_90, with its registers and spills
(make check-sm70).

    check_sm70.py [PATTERN]     all cases, or those whose name matches

Where NVRTC comes from: nvrtc.py.  Without it all is skipped.  No GPU is needed.  Spills are a failure: each is a trip
to memory in an inner loop.
"""
import os
import sys

from nvrtc import FILES, compile_file
from support import Cases

TARGETS = [("sm_70", "fp16"), ("sm_75", "fp16"), *((arch, value) for arch in ("sm_80", "sm_90")
                                                     for value in ("fp16", "bf16", "tf32"))]

case = Cases()


for the_arch, the_value in TARGETS:
    for the_path in FILES:
        @case(f"{os.path.basename(the_path)} for {the_arch}, {the_value}")
        def compiles(_, path=the_path, arch=the_arch, value=the_value):
            found, _ = compile_file(path, arch, value)
            for name, (registers, spilled) in sorted(found.items()):
                print(f"     {name}: {registers} registers, {spilled} bytes spilled")
            with open(path, encoding="utf-8") as file:
                assert "KERNEL" in file.read()
            spilling = [name for name, (_, spilled) in found.items() if spilled]
            assert not spilling, f"spills: {' '.join(spilling)}"


if __name__ == "__main__":
    sys.exit(case.main(os.cpu_count() or 1))
