#!/bin/sh
# tally.sh - add up what test programs counted
#
#     tests/tally.sh LOG...
#
# LOG is what a test printed (automake's NAME.log, with NAME.trs beside it).  Its last line "N passed, N failed,
# N skipped" counts, or that of Check.  A test that says neither counts as one.  First come the cases that were skipped
# and the programs that skipped every case ("whole"), then the seconds of each program, the longest first.  Exit code 1
# where something failed.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

# result LOG: PASS, FAIL, SKIP ...
result() {
    sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' "${1%.log}.trs" 2> /dev/null || true
}

sed -n -e '/^skip /p' -e 's/^\(.*\): skipped, /skip \1: /p' "$@" 2> /dev/null || true
for log in "$@"; do
    [ "$(result "$log")" != SKIP ] || echo "whole $(basename "${log%.log}"): every case was skipped"
done
for log in "$@"; do
    sed -n 's/^seconds \([0-9]*\), of processors \([0-9]*\)$/\1 \2/p' "$log" 2> /dev/null | tail -n 1 |
        sed "s|\$| $(basename "${log%.log}")|"
done | sort -k1,1nr | awk '{ printf "took %5d s, processors %5d s: %s\n", $1, $2, $3 }'
for log in "$@"; do
    result=$(result "$log")
    sed -n -e 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/sum \1 \2 \3/p' \
        -e 's/^\([0-9]*\) passed, \([0-9]*\) failed$/sum \1 \2 0/p' \
        -e 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/check \1 \2 \3/p' \
        "$log" 2> /dev/null |
        tail -n 1 | sed "s/^/${result:-MISSING} /; \$!d" | grep . || echo "${result:-MISSING}"
done | awk '
    {
        p = f = s = 0
        if ($2 == "sum") { p = $3; f = $4; s = $5 }
        if ($2 == "check") { f = $4 + $5; p = $3 - f }
        if (p + f + s == 0) { p = $1 == "PASS"; s = $1 == "SKIP" }
        if ($1 != "PASS" && $1 != "SKIP" && f == 0) f = 1
        passed += p; failed += f; skipped += s
    }
    END {
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }'
