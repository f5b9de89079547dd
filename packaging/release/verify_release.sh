#!/bin/sh
# verify_release.sh - make a file of a release again, and compare the bytes
#
#     verify_release.sh TARBALL [COMMIT]
#
# The source tarball is made from COMMIT (default: the tag vVERSION where this checkout has it).  Outside a checkout, or
# without that tag, it is made from its own files, of which those that are not in git are generated first (autoreconf,
# protoc-c).  A relocatable tarball, a wheel and the bill of materials are made by the scripts in the source tarball next
# to them.  The same versions of autoconf, automake and libtool are needed: a release is made on Debian 12.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
{ [ $# -ge 1 ] && [ -f "$1" ]; } || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
checkout=$here/../..
tarball=$(readlink -f "$1")
file=$(basename "$tarball")
case $file in
*.tar.gz) name=${file%-linux-*} machine=${file##*-linux-} machine=${machine%.tar.gz} ;;
*.whl) name=${file%%-py3-*} machine=${file##*_2_28_} machine=${machine%.whl} ;;
*.tar.xz) name=${file%.tar.xz} machine= ;;
*.cdx.json) name=${file%.cdx.json} machine= ;;
*) echo "verify_release.sh: not a file of a release: $file" >&2; exit 2 ;;
esac
name=chex-tools${name#chex?tools}
commit=${2:-}
umask 022
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

quiet() {
    "$@" > "$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        echo "verify_release.sh: failed: $*" >&2
        exit 1
    }
}

# of_commit COMMIT, of_itself: the source into work/source.
of_commit() {
    echo "from commit $1"
    git clone -q "$checkout" "$work/source"
    git -C "$work/source" checkout -q --detach "$1"
}

of_itself() {
    echo "from its own files; those that are not in git are generated"
    mkdir "$work/source"
    tar -C "$work/source" -xf "$tarball" --strip-components=1
    (cd "$work/source" && rm -rf configure aclocal.m4 Makefile.in config.h.in build-aux m4/libtool.m4 m4/lt*.m4 \
        schemas/*.pb-c.[ch])
}

# Files of autoreconf get new times; `make dist` takes that of configure.ac for all.
source_again() {
    if [ -z "$commit" ] && git -C "$checkout" rev-parse -q --verify "refs/tags/v${name#chex-tools-}" > "$work/log" 2>&1
    then
        commit=v${name#chex-tools-}
    fi
    if [ -n "$commit" ]; then of_commit "$commit"; else of_itself; fi
    cd "$work/source"
    quiet ./autogen.sh
    mkdir build
    cd build
    quiet ../configure -q --with-mpi=no --with-cuda=no
    quiet make -s dist
    again=$work/source/build/$file
}

# from_source WORD...: by make_release.sh, with these options, of the source tarball.
from_source() {
    beside=$(dirname "$tarball")/$name.tar.xz
    [ -f "$beside" ] || { echo "verify_release.sh: needs the source beside it: $beside" >&2; exit 1; }
    mkdir "$work/source"
    tar -C "$work/source" -xf "$beside" --strip-components=1
    "$work/source/packaging/release/make_release.sh" "$@" "$beside" "$work/again"
    again=$work/again/$file
}

# remade WORD...: from the source, without CUDA (-n) where nothing on standard input names the CUDA runtime.
remade() {
    if grep -q cuda-runtime; then from_source "$@"; else from_source -n "$@"; fi
}

case $file in
*.tar.gz) tar -tzf "$tarball" > "$work/contents" && remade -t -m "$machine" < "$work/contents" ;;
*.whl) python3 -m zipfile -l "$tarball" > "$work/contents" && remade -m "$machine" < "$work/contents" ;;
*.cdx.json) remade -b < "$tarball" ;;
*) source_again ;;
esac
cmp "$tarball" "$again" || {
    tar -tvf "$tarball" > "$work/there"
    tar -tvf "$again" > "$work/here"
    diff "$work/there" "$work/here" || true
    echo "FAIL $file: made again, it has other bytes"
    exit 1
}
echo "ok   $file: made again, it has the same bytes"
