#!/bin/sh
# finds.sh SOURCE BUILD TARGET [BYTES] - write tests/fuzz/finds/TARGET.txt from what the fuzzer has found
#
# `make fuzz-finds TARGET=png` calls this, after `make fuzz`.  libFuzzer's merge picks the inputs that reach what the
# seeds do not, the smallest first; as many as go into BYTES of text are kept.  Lines that somebody named (the
# regressions) stay, at the head of the file.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$1 build=$2 target=$3 bytes=${4:-24000}
finds=$source/tests/fuzz/finds/$target.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/all" "$work/new"

# Seeds and named finds are there already: the merge adds to them.
grep -v '^find-' "$finds" > "$work/named" || true
"$build/tests/fuzz/$target" -w "$work/all" -f "$work/named" > /dev/null
ls "$work/all" > "$work/seeds"
"$build/fuzz-build/tests/fuzz/$target" -merge=1 -max_len=65536 -timeout=10 -rss_limit_mb=1024 "$work/all" \
    "$build/fuzz-corpus/$target" > "$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    exit 1
}
for file in "$work/all"/*; do
    grep -qxF "$(basename "$file")" "$work/seeds" || mv "$file" "$work/new/"
done
{
    cat "$work/named"
    "${PYTHON:-python3}" "$source/tests/fuzz/pack.py" "$work/new" "$bytes"
} > "$work/finds"
mv "$work/finds" "$finds"
echo "$target: $(grep -c '^find-' "$finds" || true) of $(find "$work/new" -type f | wc -l) new inputs," \
    "$(wc -c < "$finds") bytes"
