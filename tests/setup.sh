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
    libjpeg62-turbo-dev zlib1g-dev libprotobuf-c-dev libjansson-dev libcsv-dev libisal-dev
    libarchive-dev liblzma-dev libxxhash-dev libopenmpi-dev openmpi-bin"
python_packages="python3 python3-venv python3-numpy ca-certificates"
test_packages="check python3-pil python3-jsonschema python3-pandas python3-sklearn protobuf-compiler
    mandoc groff-base jq libjpeg-turbo-progs libarchive-tools locales zstd zsh fish
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user lua5.4 tcl"
slow_packages="python3-torch python3-torchvision chromium"

headline() {
    printf '\n=== %s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# apt_progress: shows how far the apt-get is whose output it reads, and ends with the code in its last line.  If that is
# not 0, it prints what apt-get said last.
apt_progress() (
    terminal=
    [ ! -t 1 ] || terminal=1
    awk -v terminal="$terminal" '
        { last[NR % 20] = $0 }
        /^Get:/ { got++ }
        /^Unpacking / { unpacked++ }
        /^Setting up / { ready++ }
        /^(Get:|Unpacking |Setting up )/ {
            now = sprintf("%d downloaded, %d unpacked, %d set up", got, unpacked, ready)
            if (terminal) printf "\r%s", now
            else if ((got + unpacked + ready) % 100 == 0) print now
            fflush()
        }
        END {
            if (terminal && got + unpacked + ready) print ""
            code = $1
            for (i = NR - 19; code && i < NR; i++) if (i > 0) print last[i % 20] > "/dev/stderr"
            exit code
        }'
)

# Can this user install packages?  sudo may be there and still refuse.
may_install() {
    [ "$(id -u)" -eq 0 ] || command -v sudo > /dev/null
}

# need PACKAGE...: install the Debian packages that are not there.  Who cannot be root goes on without them: configure
# says which of them are needed, and finds libraries that are elsewhere.
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
    may_install || {
        echo "Only root can install these Debian packages: apt-get install$missing"
        exit 0
    }
    as_root=
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    headline "packages:$missing"
    # another apt-get may be running, as on a machine that has just started
    wait_for_lock='-o DPkg::Lock::Timeout=600'
    # shellcheck disable=SC2086  # two words
    $as_root apt-get $wait_for_lock -qq update || echo "apt-get update had errors; the lists that are there are used"
    # shellcheck disable=SC2086  # lists of words
    {
        code=0
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get $wait_for_lock -q install -y --no-install-recommends $missing 2>&1 || code=$?
        echo "$code"
    } | apt_progress || {
        [ -n "$as_root" ] || die "apt-get could not install$missing"
        echo "sudo apt-get could not install these packages; the build goes on without them:$missing"
    }
)

# The system's Python: it has Debian's modules.
python=/usr/bin/python3
[ -x "$python" ] || python=python3

# need_modules REQUIREMENTS: install them into the virtual environment.  Fails where they cannot be had.  On CI, a
# registry that does not answer for a minute is asked again.  The environment's folder may be a link, in whose place
# python's venv refuses to make one.
need_modules() (
    stamp=$venv/.$(basename "$1")
    if cmp -s "$1" "$stamp"; then
        exit 0
    fi
    headline "Python modules: $(grep -v '^#' "$1" | tr '\n' ' ')into $venv"
    "$venv/bin/python" -m pip --version > /dev/null 2>&1 ||
        "$python" -m venv "$(readlink -f "$venv")" || exit 1
    quiet=
    [ -t 1 ] || quiet=--quiet # its progress bars are for a terminal
    for pause in ${CI:+10 30 60 120} 0; do
        # shellcheck disable=SC2086  # one word or none
        "$venv/bin/python" -m pip install $quiet --disable-pip-version-check --no-input --retries 10 --timeout 60 \
            -r "$1" && cp "$1" "$stamp" && exit 0
        [ "$pause" -eq 0 ] || { echo "pip failed; once more in $pause s" >&2; sleep "$pause"; }
    done
    exit 1
)

cores() {
    nproc 2> /dev/null || echo 1
}

# slots: as many ranks as mpirun starts when nothing else is said: the second threads of cores do not count.
slots() (
    count=$(lscpu -p=core,socket 2> /dev/null | grep -v '^#' | sort -u | wc -l)
    [ "$count" -gt 0 ] || count=$(cores)
    echo "$count"
)

# make_configure: make configure and Makefile.in where they are missing or older than what they are made of.
make_configure() (
    if [ ! -x "$source/configure" ] || [ ! -f "$source/Makefile.in" ] ||
        [ -n "$(find "$source/configure.ac" "$source/m4" -newer "$source/configure" -print -quit)" ] ||
        [ -n "$(find "$source" -name 'build*' -prune -o '(' -name Makefile.am -o -name local.mk ')' \
            -newer "$source/Makefile.in" -print -quit)" ]; then
        said=$("$source/autogen.sh" 2>&1) || {
            echo "$said" >&2
            die "autogen.sh failed"
        }
    fi
)

# configure_in FOLDER OPTION...: make configure where that is needed, and run it in this folder.
configure_in() (
    folder=$1
    shift
    make_configure || exit 1
    mkdir -p "$folder"
    cd "$folder" && "$source/configure" --quiet PYTHON="$python" "$@"
)

# The programs that configure looks for by path, but for pkg-config, and the modules that it asks pkg-config for.
# configure itself says which: no second list can fall behind.
programs_looked_for() {
    awk '
        /^ *for ac_prog in / { sub(/^ *for ac_prog in /, ""); sub(/;.*/, ""); list = $0 }
        /^ *set dummy / { word = $3; sub(/;$/, "", word); if (word == "$ac_prog") word = list }
        /ac_cv_prog_/ { word = "" }
        /ac_cv_path_/ && word != "" { n = split(word, words, " "); for (i = 1; i <= n; i++) print words[i]; word = "" }
    ' "$source/configure" | grep '^[a-z0-9_.+-]*$' | grep -vx pkg-config | sort -u
}
modules_looked_for() {
    # shellcheck disable=SC2016  # a variable of configure
    sed -n 's/.*\$PKG_CONFIG --exists --print-errors "\([A-Za-z0-9_.+-]*\)[ "].*/\1/p' "$source/configure" | sort -u
}

# answers: what configure would find now, a line for each module and program that is there.
answers() (
    for module in $(modules_looked_for); do
        version=$("${PKG_CONFIG:-pkg-config}" --modversion "$module" 2> /dev/null) && echo "module $module $version"
    done
    for program in $(programs_looked_for); do
        path=$(command -v "$program") && echo "program $program $(readlink -f "$path")"
    done
    true
)

# configure_again FOLDER: with the options that it was configured with, and the place of pkg-config's modules of now.
configure_again() (
    cd "$1" || exit 1
    eval "set -- $(./config.status --config)"
    [ -z "${PKG_CONFIG_PATH+set}" ] || set -- "$@" PKG_CONFIG_PATH="$PKG_CONFIG_PATH"
    "$source/configure" --quiet "$@"
)

# configured FOLDER: configure there, with the options of $CHEX_CONFIGURE; once more, with the options it has, where it
# would find something else than it found then.  What was built with a library that is gone or has another version now
# is built once more too.
configured() {
    if [ ! -f "$1/Makefile" ]; then
        # shellcheck disable=SC2086  # a list of words
        configure_in "$1" ${CHEX_CONFIGURE:-} || return 1
        answers > "$1/.answers"
        return
    fi
    [ -x "$source/configure" ] || make_configure || return 1
    answers > "$1/.answers.now"
    if ! cmp -s "$1/.answers" "$1/.answers.now"; then
        headline "configure again: what is installed has changed"
        touch "$1/.answers"
        diff "$1/.answers" "$1/.answers.now" > "$1/.answers.diff" ||
            sed -n 's/^</gone/p; s/^>/come/p' "$1/.answers.diff"
        configure_again "$1" || return 1
        ! grep -q '^<' "$1/.answers.diff" || make -C "$1" -s clean || return 1
        mv "$1/.answers.now" "$1/.answers"
    fi
    rm -f "$1/.answers.now" "$1/.answers.diff"
}

# without_root: what else can be done where libraries are missing and this user is not root.
without_root() {
    cat << END

Without root, libraries in another folder will do, such as those of conda or ~/sysroot:
    export PKG_CONFIG_PATH=FOLDER/lib/pkgconfig CPPFLAGS=-IFOLDER/include LDFLAGS="-LFOLDER/lib -Wl,-rpath,FOLDER/lib"
doc/install.md has the commands that fill such a folder, and tarballs of programs.  Or take the wheel:
    pip install chex-tools
END
}

# build_in FOLDER: make, configured first where that is needed.
build_in() {
    configured "$1" || {
        echo "$(basename "$0"): configure failed in $1" >&2
        [ "$(id -u)" -eq 0 ] || without_root >&2
        exit 1
    }
    make -C "$1" -s -j"$(cores)" > "$1/make.log" 2>&1 || {
        tail -n 40 "$1/make.log" >&2
        die "the build failed; all of it is in $1/make.log"
    }
    echo "built in $1"
}
