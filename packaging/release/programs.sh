#!/bin/sh
# programs.sh - the tree of a relocatable release, from the source tarball
#
#     programs.sh TARBALL SOURCES TOOLS LIBRARIES MACHINE OUT [CUDA]
#
# The tree is OUT/chex-tools-VERSION-linux-MACHINE.  SOURCES is of `libraries.py fetch`, TOOLS of toolchain.sh,
# LIBRARIES of libraries.sh.  The programs of another MACHINE print their completions under qemu.
#
# CUDA is the folder of cuda.sh: with it, chex-train and chex-predict can use GPUs, those of $CUDA_ARCHS.  Its folder
# kept/ has the kernels that were compiled before.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
{ [ $# -ge 6 ] && [ $# -le 7 ]; } || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tarball=$1 sources=$2 tools=$3 libraries=$4 machine=$5 out=$6 cuda=${7-}
here=$(cd "$(dirname "$0")" && pwd)
umask 022
mkdir -p "$out"
work=$out/work-$machine
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

tar -C "$work" -xf "$tarball"
name=$(basename "$work"/chex-tools-*)
tree=$out/$name-linux-$machine
rm -rf "$tree"
mkdir "$work/build"
cd "$work/build"

# quiet COMMAND...: its output only where it fails.
quiet() {
    "$@" > "$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        echo "programs.sh: failed: $*" >&2
        exit 1
    }
}

quiet "$tools/cc-$machine" -O2 -g0 -fPIE -fno-sanitize=undefined -c "$here/runtime.c" -o "$work/runtime.o"

cflags="-O2 -g0 -fPIE -fno-sanitize=undefined -ffile-prefix-map=$work=."
if [ -n "$cuda" ]; then
    printf '#!/bin/sh\nexec python3 "%s" "%s" "%s" "%s" "$@"\n' "$here/nvcc.py" "$cuda" \
        "$tools/cc-$machine $cflags -fcf-protection=full" "$cuda/kept" > "$work/nvcc"
    chmod +x "$work/nvcc"
    set -- --with-cuda=yes NVCC="$work/nvcc" --with-nccl="$cuda/nccl" --with-cudnn="$cuda/cudnn"
else
    set -- --with-cuda=no --with-nccl=no --with-cudnn=no
fi

# The paths, and so __FILE__, begin with the folder of the source, wherever that lies.
quiet "../$name/configure" --build="$(uname -m)-linux-gnu" --host="$machine-linux-gnu" --prefix=/ --disable-shared \
    --enable-static --with-libarchive=yes --with-libcsv=included --with-mpi=opened "$@" --with-nvtx=no \
    CC="$tools/cc-$machine" CXX=no AR="$tools/ar" RANLIB="$tools/ranlib" \
    PKG_CONFIG='pkg-config --static' PKG_CONFIG_LIBDIR="$libraries/lib/pkgconfig" PKG_CONFIG_PATH= PROTOC_C=no \
    CFLAGS="$cflags" CPPFLAGS="-I$libraries/include" \
    LDFLAGS="-L$libraries/lib -pie -s" LIBS="$work/runtime.o"
programs=$(find "../$name/man" -name 'chex-*.1' -exec basename '{}' .1 ';' | sort)
# shellcheck disable=SC2086  # a list of words
quiet make -s -j"$(nproc 2> /dev/null || echo 1)" $programs
quiet make -s install-binPROGRAMS install-man1 install-man5 install-dist_schemasDATA DESTDIR="$tree" \
    mandir=/share/man pkgdatadir=/share/chex-tools
# libchex comes along with the programs, but is not linked with them.
rm -rf "${tree:?}/lib"

# run PROGRAM WORD...: on this machine, or under its emulator.
run() {
    if [ "$machine" = "$(uname -m)" ]; then
        "$@"
    else
        "qemu-$machine" -L "/usr/$machine-linux-gnu" "$@"
    fi
}
for program in $programs; do
    for place in "bash share/bash-completion/completions/$program" "zsh share/zsh/site-functions/_$program" \
        "fish share/fish/vendor_completions.d/$program.fish"; do
        path=$tree/${place#* }
        mkdir -p "$(dirname "$path")"
        run "$tree/bin/$program" --completion "${place%% *}" > "$path"
    done
done

# The documents keep their folders, for the links between them.
doc=$tree/share/doc/chex-tools
mkdir -p "$doc"
(cd "../$name" && cp -R ./*.md CITATION.cff LICENSE doc "$doc/" && cp --parents -R packaging/module "$doc/")
"$here/libraries.py" licences "$sources" "$doc/licenses"
mkdir -p "$doc/licenses/zig"
cp "$tools/zig-licence" "$doc/licenses/zig/LICENSE"
[ -z "$cuda" ] || install -D -m 644 "$cuda/licence" "$doc/licenses/cuda-runtime/LICENSE"
echo "$tree"
