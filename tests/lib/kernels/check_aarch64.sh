#!/bin/sh
# The NEON kernels on a machine that has none: cross-compiled, and run by an emulator.
#
#     make check-aarch64       Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
#
# CROSS_CC and EMULATOR name others.  Where one is missing the check is skipped by name.
# SPDX-License-Identifier: Apache-2.0
set -eu

source=$(dirname "$0")/../../..
compiler=${CROSS_CC:-aarch64-linux-gnu-gcc}
emulator=${EMULATOR:-qemu-aarch64}

for program in "$compiler" "$emulator"; do
  if ! command -v "$program" >/dev/null; then
    echo "skip check-aarch64: no $program"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
: >"$folder/config.h"
"$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror -static -I"$folder" -iquote "$source/lib" -o "$folder/check-kernels" \
  "$source/tests/lib/kernels/check_kernels.c" "$source"/lib/kernels/unfilter*.c "$source"/lib/kernels/convolve*.c \
  "$source"/lib/base/sha256*.c "$source/lib/base/cpu.c" "$source/lib/base/memory.c" "$source/lib/base/error.c"
"$emulator" "$folder/check-kernels" >"$folder/output" || { cat "$folder/output"; exit 1; }
cat "$folder/output"
for kernel in 'unfilter neon' 'convolve neon' 'sha256 sha2'; do
  grep -q "^$kernel: compared" "$folder/output" || { echo "no $kernel in it"; exit 1; }
done
