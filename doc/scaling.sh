#!/bin/sh
# scaling.sh - makes the sweep of doc/scaling.md again: its table, and doc/scaling.svg
#
#     BUILDDIR=build doc/scaling.sh      by hand, on a machine without other work
#
# SPDX-License-Identifier: Apache-2.0
set -eu
page=$(cd "$(dirname "$0")" && pwd)/scaling.md
PATH=$(cd "${BUILDDIR:-.}" && pwd):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

sed -n '/^<!-- sweep commands -->/,/^<!-- \/sweep commands -->/s/^    //p' "$page" > commands.sh
sh -eu commands.sh > table.txt
cp scaling.svg "$(dirname "$page")/scaling.svg"
awk '/^<!-- \/sweep -->/ { inside = 0 }
     !inside
     /^<!-- sweep -->/ { inside = 1
         print ""
         while ((getline line < "table.txt") > 0) print line == "" ? "" : "    " line
         print "" }' "$page" > page.md
cp page.md "$page"
