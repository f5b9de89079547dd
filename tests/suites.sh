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

# A suite NAME is made by NAME_suite(), and one of the main files runs it.
run_by() {
    sed -n 's/.*srunner_.*[( ]\([a-z0-9_]*\)_suite()).*/\1/p' "$@" | sort -r
}
find "$here" -name 'test_*.c' -exec sed -n 's/.*suite_create("\([^"]*\)").*/\1/p' {} + | sort -r > "$folder/made"
run_by "$here/unit.c" "$here/cuda/run/unit_gpu.c" | cmp -s - "$folder/made" || {
    echo 'suites.sh: unit.c and unit_gpu.c run other suites than those that test_*.c create'
    exit 1
}
main=$(basename "$program" | tr - _).c
run_by "$(find "$here" -name "$main")" > "$folder/names"
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
