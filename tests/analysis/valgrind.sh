#!/bin/sh
# valgrind.sh JOBS COMMAND... - each case of the unit tests by itself under valgrind, JOBS at once
#
# `make check-valgrind` calls this; COMMAND is how valgrind starts, which finds errors and leaks and ends a test's
# process with a code of its own.  A run without it says which cases there are.  One line a case, with its seconds; what
# valgrind said of a bad one is shown.  CASES=REGEX takes only those.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
jobs=$1
shift
folder=$(mktemp -d "${TMPDIR:-/tmp}/valgrind-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

CK_VERBOSITY=verbose tests/unit > "$folder/plain" || {
    grep -E ':[FE]:' "$folder/plain"
    echo 'valgrind.sh: the tests fail without valgrind'
    exit 1
}
sed -n 's/^[^:]*:[0-9]*:P:\([^:]*\):.*/\1/p' "$folder/plain" | sort -u | grep -E -- "${CASES:-}" > "$folder/cases" || {
    echo "valgrind.sh: no case is called '$CASES'"
    exit 1
}

export folder command="$*"
# shellcheck disable=SC2016  # for the script, not for this one
tr '\n' '\0' < "$folder/cases" | xargs -0 -n 1 -P "$jobs" sh -c '
begun=$(date +%s) word=good log=$folder/$$.log
CK_RUN_CASE=$1 CK_TIMEOUT_MULTIPLIER=3 $command tests/unit > "$log" 2>&1 || {
    word=FAILED
    echo "$1" >> "$folder/failed"
    cat "$log"
}
echo "$word, $(($(date +%s) - begun)) s, $(sed -n "s/^[0-9]*%: Checks: \([0-9]*\).*/\1/p" "$log") tests: $1"' sh
if [ -e "$folder/failed" ]; then
    echo "failed: $(sort "$folder/failed" | tr '\n' ';')"
    exit 1
fi
echo "$(wc -l < "$folder/cases") cases, no error and no leak"
