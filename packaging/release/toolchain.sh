#!/bin/sh
# toolchain.sh - the compiler of the relocatable programs, pinned: zig of PyPI, and nasm
#
#     toolchain.sh FOLDER SOURCES     FOLDER/{cc-x86_64,cc-aarch64,ar,ranlib,nasm}; SOURCES: of `libraries.py fetch`
#
# zig has the symbols of every glibc: what it links for 2.28 needs no later one.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
[ $# -eq 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1 sources=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
[ ! -e "$folder/done" ] || exit 0

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --no-deps --require-hashes \
    --only-binary :all: -r "$here/requirements.txt"
zig=$("$folder/venv/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')

# wrapper NAME WORDS
wrapper() {
    printf '#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR="%s" ZIG_LOCAL_CACHE_DIR="%s"\nexec "%s" %s "$@"\n' \
        "$folder/zig-cache" "$folder/zig-cache" "$zig" "$2" > "$folder/$1"
    chmod +x "$folder/$1"
}
# The least that a processor of this architecture has: faster code is chosen at run time.
wrapper cc-x86_64 'cc -target x86_64-linux-gnu.2.28 -mcpu=x86_64'
wrapper cc-aarch64 'cc -target aarch64-linux-gnu.2.28 -mcpu=generic'
wrapper ar ar
wrapper ranlib ranlib

# compiler-rt, a few functions of which are in every program.
cp "$(dirname "$zig")/LICENSE" "$folder/zig-licence"

# The assembler of libjpeg-turbo and ISA-L on x86-64.
rm -rf "$folder/build-nasm"
cp -a "$sources/nasm" "$folder/build-nasm"
jobs=$(nproc 2> /dev/null || echo 1)
(cd "$folder/build-nasm" && ./configure -q && make -s -j"$jobs" nasm) > "$folder/nasm.log" 2>&1 || {
    tail -n 30 "$folder/nasm.log" >&2
    echo "toolchain.sh: nasm failed: $folder/nasm.log" >&2
    exit 1
}
cp "$folder/build-nasm/nasm" "$folder/nasm"
rm -rf "$folder/build-nasm"
touch "$folder/done"
