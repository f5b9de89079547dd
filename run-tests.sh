#!/bin/sh
# run-tests.sh - install what the tests need, build, and run them; the last line says how many passed
#
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/setup.sh
. "$source/tests/setup.sh"

usage() {
    cat << 'END'
usage: ./run-tests.sh [--fast]

Installs Debian packages that are missing (as root, or with sudo), builds in the folder build/, runs `make check` and
`make check-slow`.  With --fast only `make check`, and neither TensorFlow, PyTorch nor DALI are installed.

CHEX_NIH=FOLDER   a folder with files of the real data set (images/, csv/, lists/); tests with them are skipped without
END
}

fast=no
for word in "$@"; do
    case $word in
        --fast) fast=yes ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done

# run_tier TARGET TALLY-TARGET: run it and add its counts to the file of totals.
run_tier() {
    headline "make $1"
    code=0
    make -C "$build" -s -j"$(cores)" "$1" VERBOSE=1 || code=$?
    counts=$(make -C "$build" -s --no-print-directory "$2" || true)
    echo "$counts"
    echo "$code $(echo "$counts" | tail -n 1)" >> "$totals"
}

# shellcheck disable=SC2086  # lists of words
need $build_packages $python_packages $test_packages
if [ "$fast" = no ]; then
    # shellcheck disable=SC2086
    need $slow_packages
    need_modules "$source/tests/requirements.txt" || echo "TensorFlow cannot be had here: its tests are skipped"
    need_modules "$source/tests/requirements-dali.txt" || echo "DALI cannot be had here: its tests are skipped"
fi

headline "build"
build_in "$build"

totals=$(mktemp)
trap 'rm -f "$totals"' EXIT
run_tier check tally
[ "$fast" = yes ] || run_tier check-slow tally-slow

headline "all tests"
awk '
    { p += $2; f += $4; s += $6; if ($1 != 0 && $4 == 0) f++ }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$totals"
