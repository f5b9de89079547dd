#!/bin/sh
# Make configure from configure.ac; needed in a checkout, not in a release.
# SPDX-License-Identifier: Apache-2.0
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install --force "$@"
