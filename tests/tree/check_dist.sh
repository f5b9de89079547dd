#!/bin/sh
# check_dist.sh - the release is the same from two checkouts, and a tar that fails is noticed
#
# Takes the last commit, whatever else lies in the source folder; needs git and what autogen.sh needs.
# `make check-dist` runs this.
#
# SPDX-License-Identifier: Apache-2.0
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
# shellcheck source=tests/tree/verdict.sh
. "$source/tests/tree/verdict.sh"

# checkout FOLDER UMASK LOCALE: a clone of the last commit, configured in FOLDER/BUILD.
checkout() (
    umask "$2"
    LC_ALL=$3
    export LC_ALL
    git clone -q "$source" "$1" && cd "$1" && ./autogen.sh && mkdir build && cd build &&
        ../configure -q --with-mpi=no --with-cuda=no
) > "$1.log" 2>&1

# release FOLDER UMASK
release() (
    umask "$2"
    unset SOURCE_DATE_EPOCH
    make -C "$1/build" -s dist
) >> "$1.log" 2>&1

same_archives() {
    checkout "$work/a" 022 C &
    checkout "$work/another-place" 077 C.UTF-8
    code=$?
    wait $! || code=1
    { [ "$code" -eq 0 ] && release "$work/a" 022 && sleep 1 && release "$work/another-place" 077; } || {
        tail -n 20 "$work"/*.log
        return 1
    }
    archive=$(basename "$work"/a/build/*.tar.xz)
    cmp "$work/a/build/$archive" "$work/another-place/build/$archive" || {
        for folder in a another-place; do
            tar -tvf "$work/$folder/build/$archive" > "$work/$folder.list"
        done
        diff "$work/a.list" "$work/another-place.list"
        return 1
    }
    sha256sum < "$work/a/build/$archive"
}

# From the unpacked release the same again, on a machine without protoc-c.
same_from_itself() {
    mkdir "$work/unpacked" || return 1
    tar -C "$work/unpacked" -xf "$work/a/build/$archive" --strip-components=1 || return 1
    mkdir "$work/unpacked/build" || return 1
    { (cd "$work/unpacked/build" && ac_cv_path_PROTOC_C='' ../configure -q --with-mpi=no --with-cuda=no &&
        make -s lib/dataset/libchexcore_la-example.lo train/log/libtrain_la-events.lo) > "$work/unpacked.log" 2>&1 &&
        release "$work/unpacked" 027; } || {
        tail -n 20 "$work/unpacked.log"
        return 1
    }
    cmp "$work/a/build/$archive" "$work/unpacked/build/$archive"
}

failing_tar() {
    mkdir "$work/bin"
    printf '%s\n' '#!/bin/sh' 'echo "tar: no space" >&2' 'exit 2' > "$work/bin/tar"
    chmod +x "$work/bin/tar"
    if (PATH=$work/bin:$PATH && release "$work/a" 022); then
        echo "make dist ended with 0 and this behind it:"
        ls -l "$work"/a/build/*.tar*
        return 1
    fi
    if ls "$work"/a/build/*.tar* 2> /dev/null; then
        return 1
    fi
}

same_archives
verdict "two checkouts give the same release, to the byte" $?
same_from_itself
verdict "the unpacked release gives itself again, without protoc-c" $?
failing_tar
verdict "a tar that fails ends make dist with an error, and leaves no archive" $?
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
