#!/bin/sh
# fuzz.sh SOURCE BUILD TARGET SECONDS [OPTION...] - build one fuzz target for libFuzzer with the sanitizers, and run it
#
# `make fuzz TARGET=png TIME=3600` calls this.  The build is BUILD/fuzz-build; the corpus, BUILD/fuzz-corpus/TARGET,
# begins with the target's seeds and finds and stays from run to run; what fails is written to
# BUILD/fuzz-corpus/TARGET.failures.  OPTIONs go to libFuzzer.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
if [ $# -lt 4 ] || [ -z "$3" ]; then
    echo 'usage: make fuzz TARGET=png [TIME=3600]; the targets are the *.c of tests/fuzz with seeds' >&2
    exit 2
fi
source=$1 build=$2 target=$3 seconds=${4:-60}
shift 4
tree=$build/fuzz-build corpus=$build/fuzz-corpus/$target
finds=$source/tests/fuzz/finds/$target.txt
dictionary=$source/tests/fuzz/dictionaries/$target.dict

[ -x "$build/tests/fuzz/$target" ] || {
    echo "no fuzz target '$target'" >&2
    exit 2
}
mkdir -p "$tree" "$corpus" "$corpus.failures"
# Several targets may be built at once, and share most of it: one after the other.
exec 9< "$tree"
! command -v flock > /dev/null || flock 9
[ -f "$tree/Makefile" ] || (
    cd "$tree"
    "$source/configure" -q CC="${FUZZ_CC:-clang}" CFLAGS='-g -O1' --disable-hardening --with-cuda=no \
        --enable-sanitizers=fuzzer-no-link,address,undefined
)
make -s -C "$tree" schemas/example.pb-c.h schemas/event.pb-c.h schemas/onnx.pb-c.h train/backends.c
make -s -j"${JOBS:-2}" -C "$tree" FUZZ_MAIN= FUZZ_ENGINE=-fsanitize=fuzzer "tests/fuzz/$target"
exec 9<&-

if [ -f "$finds" ]; then
    "$build/tests/fuzz/$target" -w "$corpus" -f "$finds" > /dev/null
else
    "$build/tests/fuzz/$target" -w "$corpus" > /dev/null
fi
if [ -f "$dictionary" ]; then
    set -- -dict="$dictionary" "$@"
fi

# Bounds: an input of 64 KiB must not need more than 256 MiB at once, nor ten seconds.
exec "$tree/tests/fuzz/$target" -max_total_time="$seconds" -max_len="${FUZZ_MAX_LEN:-65536}" -timeout=10 \
    -rss_limit_mb=1024 -malloc_limit_mb=256 -artifact_prefix="$corpus.failures/" -print_final_stats=1 "$@" "$corpus"
