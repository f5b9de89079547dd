# shellcheck shell=sh
# verdict.sh - what the tests in shell share: counting; sourced
#
# SPDX-License-Identifier: Apache-2.0
passed=0
failed=0

# verdict NAME CODE
verdict() {
    if [ "$2" -eq 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
}
