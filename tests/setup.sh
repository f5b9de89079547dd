# shellcheck shell=sh disable=SC2034,SC2154
# setup.sh - what quickstart.sh, run-tests.sh and .ci/run share; sourced, with $source set to the source folder
#
# Functions with a body in ( ) leave the variables of the caller alone.  Everything here first looks whether its work
# is done already: a second run needs neither network nor root.
#
# SPDX-License-Identifier: Apache-2.0
build=$source/build
venv=$build/venv

build_packages="build-essential autoconf automake libtool pkg-config protobuf-c-compiler libpng-dev
    libjpeg62-turbo-dev zlib1g-dev libprotobuf-c-dev libjansson-dev libssl-dev libcsv-dev libisal-dev
    libarchive-dev liblzma-dev libxxhash-dev"
python_packages="python3 python3-venv python3-numpy ca-certificates"
test_packages="check python3-pil python3-jsonschema python3-pandas python3-sklearn protobuf-compiler
    mandoc libjpeg-turbo-progs locales libopenmpi-dev openmpi-bin zstd zsh fish gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
slow_packages="python3-torch python3-torchvision chromium"

headline() {
    printf '\n=== %s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# need PACKAGE...: install the Debian packages that are not there.
need() (
    if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
        echo "This is not Debian: nothing is installed; if something is missing, configure says what."
        exit 0
    fi
    missing=
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2> /dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -n "$missing" ] || exit 0
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null ||
            die "these Debian packages are missing, and only root can install them: apt-get install$missing"
        as_root=sudo
    fi
    headline "packages:$missing"
    $as_root apt-get -qq update || echo "apt-get update had errors; going on with the lists that are there"
    # shellcheck disable=SC2086  # a list of words
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing \
        > "${TMPDIR:-/tmp}/chex-packages.$$" 2>&1 || {
        tail -n 20 "${TMPDIR:-/tmp}/chex-packages.$$" >&2
        die "apt-get could not install$missing"
    }
    rm -f "${TMPDIR:-/tmp}/chex-packages.$$"
)

# The system's Python: it has Debian's modules.
python=/usr/bin/python3
[ -x "$python" ] || python=python3

# need_modules REQUIREMENTS: install them into the virtual environment.  Fails where they cannot be had.
need_modules() (
    stamp=$venv/.$(basename "$1")
    if cmp -s "$1" "$stamp"; then
        exit 0
    fi
    headline "Python modules: $(grep -v '^#' "$1" | tr '\n' ' ')into $venv"
    [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv" || exit 1
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input -r "$1" || exit 1
    cp "$1" "$stamp"
)

cores() {
    nproc 2> /dev/null || echo 1
}

# configure_in FOLDER OPTION...: make configure where that is needed, and run it in this folder.
configure_in() (
    folder=$1
    shift
    if [ ! -x "$source/configure" ] || [ -n "$(find "$source/configure.ac" "$source/m4" "$source/Makefile.am" \
        "$source"/*/local.mk -newer "$source/configure" -print -quit)" ]; then
        "$source/autogen.sh" > "${TMPDIR:-/tmp}/chex-autogen.$$" 2>&1 || {
            cat "${TMPDIR:-/tmp}/chex-autogen.$$" >&2
            die "autogen.sh failed"
        }
        rm -f "${TMPDIR:-/tmp}/chex-autogen.$$"
    fi
    mkdir -p "$folder"
    (cd "$folder" && "$source/configure" --quiet PYTHON="$python" "$@")
)

# build_in FOLDER: make, configured first where that is needed, with the options of $CHEX_CONFIGURE.
build_in() {
    # shellcheck disable=SC2086  # a list of words
    [ -f "$1/Makefile" ] || configure_in "$1" ${CHEX_CONFIGURE:-}
    make -C "$1" -s -j"$(cores)" > "$1/make.log" 2>&1 || {
        tail -n 40 "$1/make.log" >&2
        die "the build failed; all of it is in $1/make.log"
    }
    echo "built in $1"
}
