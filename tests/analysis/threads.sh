#!/bin/sh
# threads.sh [TIMES] - the tests with threads again and again, 1, 2, 3, 8 and 32 of them, and those of ranks, which are
# threads there, and of the loader; default a hundred times
#
# For a build with --enable-sanitizers=thread: `make check-threads TIMES=100`.  The thread sanitizer needs addresses
# where it looks for them; on kernels where it finds others, it runs without their randomisation.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
times=${1:-100} i=0 plain=
pool='env CK_RUN_SUITE=store CK_RUN_CASE=threads'
queue='env CK_RUN_SUITE=store CK_RUN_CASE=queue'
ranks='env CK_RUN_SUITE=collective'
loader='env CK_RUN_SUITE=loader' reader='env CK_RUN_SUITE=reader'
CK_RUN_SUITE=error tests/unit > /dev/null 2>&1 || plain='setarch -R'
while [ "$i" -lt "$times" ]; do
    i=$((i + 1))
    # shellcheck disable=SC2086  # words
    { $pool CK_VERBOSITY=silent $plain tests/unit && $queue CK_VERBOSITY=silent $plain tests/unit &&
        $ranks CK_VERBOSITY=silent $plain tests/unit &&
        $loader CK_VERBOSITY=silent $plain tests/unit && $reader CK_VERBOSITY=silent $plain tests/unit; } || {
        echo "round $i of $times failed"
        exit 1
    }
done
echo "the tests of the pool, of its queue, of ranks and of the loader passed $times times"
