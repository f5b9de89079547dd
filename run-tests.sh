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
usage: ./run-tests.sh [--fast | --slow]

Installs Debian packages that are missing (as root, or with sudo), builds in the folder build/, runs `make check` and
`make check-compare`, which compares with TensorFlow, PyTorch and DALI.

  --fast   only `make check`; neither TensorFlow, PyTorch nor DALI are installed
  --slow   `make check-slow` instead of `make check-compare`: more kills, faults and mutations too

A suite that cannot run, as the unit tests without Check, is a failure and named; single cases may be skipped.

CHEX_NIH=FOLDER   a folder with files of the real data set (images/, csv/, lists/); tests with them are skipped without
END
}

fast=no
second=compare
for word in "$@"; do
    case $word in
        --fast) fast=yes ;;
        --slow) second=slow ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done
totals=$(mktemp)
trap 'rm -f "$totals"' EXIT

# not_run WHAT...: one that is skipped whole is a failure.
not_run() {
    echo "FAIL not run: $*"
    echo "1 0 passed, 1 failed, 0 skipped" >> "$totals"
}

# modules REQUIREMENTS WHAT: where there may be packages for this machine.
modules() {
    case $(uname -s)-$(uname -m) in
        Linux-x86_64 | Linux-aarch64)
            need_modules "$source/tests/$1" || not_run "the tests with $2: it could not be installed"
            ;;
        *) echo "skip tests with $2: there are no packages for this machine" ;;
    esac
}

# run_tier TARGET TALLY-TARGET: run it and add its counts to the file of totals.
# There is one job more than there are cores: some tests wait more than they compute.
run_tier() {
    headline "make $1"
    code=0
    make -C "$build" -s -j$(($(cores) + 1)) "$1" VERBOSE=1 || code=$?
    counts=$(make -C "$build" -s --no-print-directory "$2" || true)
    echo "$counts"
    echo "$code $(echo "$counts" | tail -n 1)" >> "$totals"
    echo "$counts" | sed -n 's/^whole //p' > "$totals.whole"
    while read -r program; do
        not_run "$program"
    done < "$totals.whole"
    rm -f "$totals.whole"
}

# shellcheck disable=SC2086  # lists of words
need $build_packages $python_packages $test_packages
if [ "$fast" = no ]; then
    # shellcheck disable=SC2086
    need $slow_packages
    modules requirements.txt TensorFlow
    modules requirements-dali.txt DALI
    modules requirements-lint.txt mypy
fi

headline "build"
build_in "$build"
[ "$fast" = yes ] || make -C "$build" -s mpi-of-pypi || not_run "the tests with MPICH and Open MPI 5: not installed"

run_tier check tally
[ "$fast" = yes ] || run_tier "check-$second" "tally-$second"

headline "all tests"
make -C "$build" -s --no-print-directory missing-suites > "$totals.missing"
while read -r suite; do
    not_run "$suite"
done < "$totals.missing"
rm -f "$totals.missing"
awk '
    { p += $2; f += $4; s += $6; if ($1 != 0 && $4 == 0) f++ }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$totals"
