#!/bin/sh
# python.sh - run a test written in Python; where there is no Python 3 it is skipped
#
# SPDX-License-Identifier: Apache-2.0
if [ -z "${PYTHON:-}" ]; then
    echo "skip $1: there is no Python 3"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
# The modules that tests share.
here=$(cd "$(dirname "$0")" && pwd)
PYTHONPATH=$here/python:$here/fakes/slurm${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
exec "${SHELL:-/bin/sh}" "$here/timed.sh" "$PYTHON" "$@"
