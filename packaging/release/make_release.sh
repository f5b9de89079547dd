#!/bin/sh
# make_release.sh - everything that a release consists of, from the source tarball
#
#     make_release.sh [-n] [-m MACHINE]... [-b | -t] TARBALL OUT
#     make_release.sh [-a GENERATIONS] [-m MACHINE]... -t TARBALL OUT
#     make_release.sh [-n] -p
#
#     -a GENERATIONS kernels for these GPUs only, as '80 90' for sm_80 and sm_90: for a test, not for a release
#     -b             the bill of materials only
#     -m MACHINE     x86_64 or aarch64; without it both
#     -n             no CUDA: no program uses a GPU
#     -p             only download; 77 where that is not possible
#     -t             the relocatable tarballs only
#
# OUT gets the source tarball, a relocatable tarball and a wheel of each machine, the bill of materials, notes and
# SHA256SUMS.  The programs for x86-64 use NVIDIA GPUs, unless -n says otherwise.  The compilers, the static libraries
# and the compiled kernels are kept in $CHEX_RELEASE_CACHE (default: ~/.cache/chex-release).  The first time takes about
# 20 minutes of CPU time and downloads 1 GB.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
here=$(cd "$(dirname "$0")" && pwd)
machines='' trees_only='' prepare_only='' bill_only='' without='' generations=
usage() {
    sed -n '2,19s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
while getopts a:bm:npt option; do
    case $option in
    a)
        case $OPTARG in '' | *[!0-9\ ]*) usage ;; esac
        generations=$OPTARG
        ;;
    b) bill_only=yes ;;
    m)
        [ "$OPTARG" = x86_64 ] || [ "$OPTARG" = aarch64 ] || usage
        machines="$machines $OPTARG"
        ;;
    n) without=yes ;;
    p) prepare_only=yes ;;
    t) trees_only=yes ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 2 ] || { [ $# -eq 0 ] && [ -n "$prepare_only" ]; } || usage
[ -z "$generations" ] || [ -n "$trees_only" ] || usage
[ -n "$machines" ] || machines='x86_64 aarch64'
: "${generations:=70 75 80 90 100 120}"
umask 022
LC_ALL=C TZ=UTC
TAR_OPTIONS='' GZIP=''
export LC_ALL TZ TAR_OPTIONS GZIP
# Settings of one machine.
unset CONFIG_SITE CC CFLAGS CPATH CPLUS_INCLUDE_PATH CPPFLAGS CUDA_HOME CXX CXXFLAGS C_INCLUDE_PATH DESTDIR LDFLAGS \
    LIBRARY_PATH LIBS MAKEFLAGS MAKELEVEL MFLAGS NVCC PKG_CONFIG_SYSROOT_DIR
for program in cmake make patch pkg-config python3 readelf xz; do
    command -v "$program" > /dev/null || { echo "make_release.sh: needs $program" >&2; exit 1; }
done

# The programs of another machine print their completions.
for machine in $machines; do
    [ "$machine" = "$(uname -m)" ] || [ -n "$bill_only$prepare_only" ] ||
        { command -v "qemu-$machine" > /dev/null && [ -d "/usr/$machine-linux-gnu" ]; } || {
        echo "make_release.sh: needs qemu-$machine and /usr/$machine-linux-gnu for the programs of $machine" >&2
        exit 1
    }
done

# What is built once has these files as its key.
cache=${CHEX_RELEASE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/chex-release}
key=$(cd "$here" && cat libraries.toml libraries.sh toolchain.sh requirements.txt | sha256sum | cut -c1-16)
kept=$cache/$key
mkdir -p "$kept"
[ -e "$kept/fetched" ] || {
    "$here/libraries.py" fetch "$cache/downloads" "$kept/sources"
    touch "$kept/fetched"
}
"$here/toolchain.sh" "$kept/tools" "$kept/sources" || {
    [ -e "$kept/tools/cc-x86_64" ] || exit 77 # PyPI did not give the compiler
    exit 1
}
# A release without CUDA is one only on request: a user with a GPU would not see why it is not used.
cuda=
if [ -z "$without" ] && [ "$machines" != ' aarch64' ]; then
    cuda=$cache/cuda-$(cd "$here" && cat requirements-cuda.txt cuda.sh | sha256sum | cut -c1-16)
    code=0
    [ -n "$bill_only" ] || "$here/cuda.sh" "$cuda" || code=$?
    [ "$code" -ne 77 ] || echo "make_release.sh: CUDA could not be downloaded; -n makes programs without it" >&2
    [ "$code" -eq 0 ] || exit "$code"
fi
[ -z "$prepare_only" ] || exit 0

tarball=$(readlink -f "$1")
mkdir -p "$2"
out=$(cd "$2" && pwd)
name=$(tar -tf "$tarball" | sed -n '1s|/.*||p')
version=${name#chex-tools-}
# The time of the commit, which `make dist` gave to every file.
SOURCE_DATE_EPOCH=$(python3 -c 'import sys, tarfile; print(int(tarfile.open(sys.argv[1]).next().mtime))' "$tarball")
export SOURCE_DATE_EPOCH

# What gates.py wants to find.
CUDA_ARCHS=$generations
export CUDA_ARCHS
cuda_words="$(echo "$generations" | sed 's/[0-9][0-9]*/sm_&/g') compute_${generations##* }"

# pack TREE: TREE.tar.gz, the same bytes from every machine.  A minimal Debian has gzip but no xz.
pack() {
    tar -C "$(dirname "$1")" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
        --mtime="@$SOURCE_DATE_EPOCH" -cf "$1.tar" "$(basename "$1")"
    gzip -9n "$1.tar"
}

# wheel TREE MACHINE CUDA: only with the tag that its symbols allow.
wheel() {
    wheel=$("$here/../wheel/make_wheel.py" -o "$out" --platform "manylinux_2_28_$2" \
        --license "$("$here/sbom.py" ${3:+-c} licence)" "$1")
    [ -x "$kept/checks/bin/auditwheel" ] || {
        python3 -m venv "$kept/checks"
        "$kept/checks/bin/python" -m pip install -q --disable-pip-version-check --no-input \
            -r "$here/requirements-checks.txt"
    }
    said=$("$kept/checks/bin/auditwheel" show "$wheel") || { echo "$said" >&2; exit 1; }
    tag=$(echo "$said" | tr '\n' ' ' | sed -n 's/.*following platform tag: "\([^"]*\)".*/\1/p')
    minor=$(echo "$tag" | sed -n 's/^manylinux_2_\([0-9]*\)_.*/\1/p')
    { [ -n "$minor" ] && [ "$minor" -le 28 ]; } || {
        echo "make_release.sh: auditwheel does not agree with manylinux_2_28: $said" >&2
        exit 1
    }
    echo "$(basename "$wheel"): auditwheel says $tag"
}

bill() {
    "$here/sbom.py" ${cuda:+-c} "$tarball" "$version" "$SOURCE_DATE_EPOCH" > "$out/$name.cdx.json"
}

[ -z "$bill_only" ] || { bill; exit 0; }
trees=$(mktemp -d)
trap 'rm -rf "$trees"' EXIT
trap 'exit 1' HUP INT TERM
for machine in $machines; do
    echo "libraries for $machine"
    "$here/libraries.sh" "$kept/sources" "$kept/tools" "$machine" "$kept/$machine"
    echo "programs for $machine"
    of_machine=
    [ "$machine" != x86_64 ] || of_machine=$cuda
    tree=$("$here/programs.sh" "$tarball" "$kept/sources" "$kept/tools" "$kept/$machine" "$machine" "$trees" \
        ${of_machine:+"$of_machine"})
    set --
    [ -z "$of_machine" ] || set -- -c "$cuda/cuobjdump" "$cuda_words"
    "$here/gates.py" "$tree" "$machine" "$@" "$cache" "$trees" "$(dirname "$tarball")"
    pack "$tree"
    mv "$tree.tar.gz" "$out/"
    [ -n "$trees_only" ] || wheel "$tree" "$machine" "$of_machine"
done
[ -z "$trees_only" ] || exit 0

[ "$tarball" = "$out/$name.tar.xz" ] || install -m 644 "$tarball" "$out/"
bill
"$kept/checks/bin/python" "$here/check_sbom.py" "$out/$name.cdx.json"
(cd "$out" && sha256sum "$name".tar.xz "$name"-linux-*.tar.gz chex_tools-*.whl "$name.cdx.json") > "$trees/sums"
mv "$trees/sums" "$out/SHA256SUMS"
tar -xOf "$tarball" "$name/CHANGELOG.md" > "$trees/CHANGELOG.md"
"$here/notes.py" "$trees/CHANGELOG.md" "$version" "$out/SHA256SUMS" ${cuda:+-c} > "$out/NOTES.md"
grep -q "^## $version - [0-9]" "$trees/CHANGELOG.md" ||
    echo "make_release.sh: CHANGELOG.md gives $version no date: not a release yet" >&2
cat "$out/SHA256SUMS"
