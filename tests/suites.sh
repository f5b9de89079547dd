#!/bin/sh
# suites.sh PROGRAM - the suites of the unit tests, each by itself and as many at once as there are cores
#
# `make check` runs tests/unit by this: one after the other they wait more than they compute.  The last line is that of
# Check for all.  With CK_RUN_SUITE only that one runs, with SUITES="name name" these.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
program=$1
here=$(dirname "$0")
[ -z "${CK_RUN_SUITE:-}" ] || exec "$program"
folder=$(mktemp -d "${TMPDIR:-/tmp}/suites-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# A file that is linked with neither program would not run.
find "$here" -name 'test_*.c' | while read -r file; do
    grep -rqE --include=local.mk "/${file##*/}( |\$)" "$here" || echo "suites.sh: no local.mk has $file"
done > "$folder/forgotten"
if [ -s "$folder/forgotten" ]; then
    cat "$folder/forgotten"
    exit 1
fi
"$program" --suites | sort -r > "$folder/names"
if [ -n "${SUITES:-}" ]; then
    # shellcheck disable=SC2086  # a list of words
    printf '%s\n' $SUITES > "$folder/names"
fi
export folder program
# shellcheck disable=SC2016  # for that shell
xargs -n 1 -P "$(nproc 2> /dev/null || echo 2)" sh -c '
code=0
CK_RUN_SUITE=$1 "$program" > "$folder/$1.log" 2>&1 || code=$?
[ "$code" -eq 0 ] || echo "suites.sh: suite $1 ended with $code" >> "$folder/$1.log"
echo "$code" > "$folder/$1.code"' sh < "$folder/names"

failed=0
while read -r name; do
    cat "$folder/$name.log"
    [ "$(cat "$folder/$name.code")" -eq 0 ] || failed=1
    # A suite of which nothing ran was not found.
    grep -q '^[0-9]*%: Checks: [1-9]' "$folder/$name.log" || { echo "suites.sh: suite $name ran no test"; failed=1; }
done < "$folder/names"
sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' "$folder"/*.log | awk '
    { checks += $1; failures += $2; errors += $3 }
    END {
        printf "%d%%: Checks: %d, Failures: %d, Errors: %d\n",
            checks ? 100 * (checks - failures - errors) / checks : 0, checks, failures, errors
    }'
exit "$failed"
