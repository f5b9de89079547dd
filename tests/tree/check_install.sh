#!/bin/sh
# check_install.sh - runs the commands of doc/install.md, for one user, and those that build the example in C
#
#     tests/tree/check_install.sh
#
# It runs the lines between the marks `install` and `example in C` of these pages, in a copy of the source folder,
# with an empty folder as $HOME.  The programs and the example must run with only $PATH and the variables that the
# pages export.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/chex-install-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
passed=0

good() {
    passed=$((passed + 1))
    echo "ok   $*"
}

bad() {
    echo "FAIL $*"
    echo "$passed passed, 1 failed, 0 skipped"
    exit 1
}

# commands NAME PAGE: the indented lines of doc/PAGE between the marks of this name.
commands() {
    awk -v mark="<!-- $1 -->" -v end="<!-- /$1 -->" '
        $0 == end { exit }
        $0 == mark { inside = 1 }
        inside && /^    / { print substr($0, 5) }' "$source/doc/$2"
}

# quiet COMMAND...: run it, its output only where it fails.
quiet() {
    "$@" > "$scratch/log" 2>&1 || {
        tail -n 40 "$scratch/log"
        return 1
    }
}

# The files of the project: those that git knows, or all of a release but what was built.
copy_source() {
    mkdir "$scratch/chex-tools"
    if git -C "$source" rev-parse --git-dir > /dev/null 2>&1; then
        (cd "$source" && git ls-files -z | tar --null --files-from=- -cf -) | tar -C "$scratch/chex-tools" -xf -
    else
        (cd "$source" && tar --exclude=./build --exclude=./build-ci -cf - .) | tar -C "$scratch/chex-tools" -xf -
    fi
}

unset PKG_CONFIG_PATH LD_LIBRARY_PATH LD_RUN_PATH DESTDIR MAKEFLAGS MFLAGS MAKELEVEL
MAKEFLAGS=-j$(nproc 2> /dev/null || echo 1)
# A compiler cache keeps its files below $HOME too.
CCACHE_DIR=${CCACHE_DIR:-${HOME:-/root}/.cache/ccache}
HOME=$scratch/home
export MAKEFLAGS HOME CCACHE_DIR
mkdir "$HOME"
copy_source
cd "$scratch/chex-tools"

commands install install.md > "$scratch/install.sh"
grep -q -- '--prefix=.HOME/.local' "$scratch/install.sh" || bad "doc/install.md does not install into \$HOME/.local"
[ -f autogen.sh ] || sed -i '/autogen/d' "$scratch/install.sh"
quiet sh -eu "$scratch/install.sh" || bad "doc/install.md: install"
good "doc/install.md: configure --prefix=\$HOME/.local, make, make install"

PATH=$HOME/.local/bin:$PATH
quiet chex-synth -q -n 24 --size 64 -o synth || bad "chex-synth as installed"
quiet chex-convert -q -i synth/images -l synth/Data_Entry_2017_v2020.csv --size 32 -o shards ||
    bad "chex-convert as installed"
[ "$(command -v chex-convert)" = "$HOME/.local/bin/chex-convert" ] || bad "another chex-convert was run"
good "chex-synth and chex-convert as installed"

commands 'example in C' reading.md > "$scratch/example.sh"
grep -q 'cc doc/example.c' "$scratch/example.sh" || bad "doc/reading.md does not compile the example"
sh -eu "$scratch/example.sh" > "$scratch/out" 2> "$scratch/log" || {
    cat "$scratch/log"
    bad "doc/reading.md: the example in C"
}
[ "$(awk '/ images$/ { n += $2 } END { print n }' "$scratch/out")" = 24 ] || {
    cat "$scratch/out"
    bad "the example does not count 24 images"
}
good "doc/reading.md: doc/example.c is built, runs, and counts all images"

echo "$passed passed, 0 failed, 0 skipped"
