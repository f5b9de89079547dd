#!/bin/sh
# timed.sh PROGRAM... - run a test; its log ends with the seconds that it took, which tally.sh reads
#
# The seconds of the processors are the program's and those of the processes that it waited for.
#
# SPDX-License-Identifier: Apache-2.0
begun=$(date +%s)
code=0
"$@" || code=$?
ended=$(date +%s)
# Into a file: in a pipe `times` would be that of another shell.  Line 2 is of what ran here, as 0m1.23s 0m0.45s.
used=$(mktemp)
times > "$used"
echo "seconds $((ended - begun)), of processors" \
    "$(awk -F '[ms ]+' 'NR == 2 { printf "%.0f", 60 * ($1 + $3) + $2 + $4 }' "$used")"
rm -f "$used"
exit "$code"
