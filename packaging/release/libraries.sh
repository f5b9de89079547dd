#!/bin/sh
# libraries.sh - the static libraries of the relocatable programs
#
#     libraries.sh SOURCES TOOLS MACHINE PREFIX     SOURCES: of `libraries.py fetch`; TOOLS: of toolchain.sh
#
# MACHINE is x86_64 or aarch64.  A library that is in PREFIX already is left alone.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
[ $# -eq 4 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
sources=$1 tools=$2 machine=$3 prefix=$4
work=$prefix/work
host=$machine-linux-gnu
mkdir -p "$prefix/lib/pkgconfig" "$prefix/include" "$work"

CC=$tools/cc-$machine AR=$tools/ar RANLIB=$tools/ranlib
# No path of this machine in the programs; no sanitizer, which zig adds to code without optimization.
CFLAGS="-O2 -g0 -fPIC -fno-sanitize=undefined -ffile-prefix-map=$work=. -fstack-protector-strong"
[ "$machine" != x86_64 ] || CFLAGS="$CFLAGS -fcf-protection=full"
CPPFLAGS="-I$prefix/include -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"
LDFLAGS=-L$prefix/lib
PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig PKG_CONFIG_PATH=
PATH=$tools:$PATH # nasm
export CC AR RANLIB CFLAGS CPPFLAGS LDFLAGS PKG_CONFIG_LIBDIR PKG_CONFIG_PATH PATH
jobs=$(nproc 2> /dev/null || echo 1)

# library NAME FUNCTION: build it in a copy of its source, once.
library() {
    [ ! -e "$work/$1.done" ] || return 0
    begun=$(date +%s)
    rm -rf "${work:?}/$1"
    cp -a "$sources/$1" "$work/$1"
    (cd "$work/$1" && $2) > "$work/$1.log" 2>&1 || {
        tail -n 40 "$work/$1.log" >&2
        echo "libraries.sh: $1 failed: $work/$1.log" >&2
        exit 1
    }
    touch "$work/$1.done"
    echo "$1: $(($(date +%s) - begun)) s"
}

# objects LIBRARY FILE...: compile these and put them into lib/LIBRARY.
objects() (
    out=$1
    shift
    # shellcheck disable=SC2016,SC2086  # for the inner shell; lists of words
    printf '%s\n' "$@" | xargs -P "$jobs" -I '{}' sh -c '
        file=$1
        shift
        "$CC" "$@" -c "$file" -o "$(basename "$file" .c).o"' sh '{}' $CPPFLAGS $CFLAGS || exit 1
    rm -f "$prefix/lib/$out"
    for file in "$@"; do
        set -- "$@" "$(basename "$file" .c).o"
        shift
    done
    "$AR" rcs "$prefix/lib/$out" "$@"
)

# version_of PREFIX HEADER: the version that its PREFIX_MAJOR, _MINOR and _RELEASE say.
version_of() {
    awk -v name="$1" '$2 ~ "^" name "_(MAJOR|MINOR|RELEASE)$" { v = v "." $3 } END { print substr(v, 2) }' "$2"
}

# package NAME VERSION LIBS: a file for pkg-config.
package() {
    printf 'Name: %s\nDescription: static\nVersion: %s\nCflags: -I%s/include\nLibs: -L%s/lib %s\n' \
        "$1" "$2" "$prefix" "$prefix" "$3" > "$prefix/lib/pkgconfig/$1.pc"
}

configured() {
    ./configure -q --host="$host" --prefix="$prefix" --libdir="$prefix/lib" --disable-shared --enable-static \
        --disable-dependency-tracking "$@"
}

with_cmake() {
    cmake -G 'Unix Makefiles' -B out -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$machine" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_AR="$AR" -DCMAKE_RANLIB="$RANLIB" -DCMAKE_C_FLAGS_RELEASE=-DNDEBUG \
        -DCMAKE_C_FLAGS="$CPPFLAGS $CFLAGS" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@" &&
        make -C out -j"$jobs" && make -C out install
}

zlib() {
    CHOST=$host ./configure --static --prefix="$prefix" && make -j"$jobs" libz.a && make install
}

libpng() {
    configured && make -s -j"$jobs" libpng16.la && make -s install-libLTLIBRARIES install-pkgincludeHEADERS \
        install-nodist_pkgincludeHEADERS install-header-links install-pkgconfigDATA install-library-links &&
        cp "$prefix/lib/pkgconfig/libpng16.pc" "$prefix/lib/pkgconfig/libpng.pc"
}

libjpeg() {
    with_cmake -DENABLE_SHARED=0 -DWITH_TURBOJPEG=0 -DREQUIRE_SIMD=1 -DCMAKE_ASM_NASM_COMPILER="$tools/nasm"
}

protobuf_c() {
    header=protobuf-c/protobuf-c.h
    objects libprotobuf-c.a protobuf-c/protobuf-c.c &&
        mkdir -p "$prefix/include/protobuf-c" && cp "$header" "$prefix/include/protobuf-c/" &&
        package libprotobuf-c "$(sed -n 's/^#define PROTOBUF_C_VERSION[[:space:]]*"\(.*\)"/\1/p' "$header")" \
            -lprotobuf-c
}

jansson() {
    with_cmake -DJANSSON_BUILD_SHARED_LIBS=OFF -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF \
        -DJANSSON_WITHOUT_TESTS=ON
}

xxhash() {
    objects libxxhash.a xxhash.c && cp xxhash.h xxh3.h "$prefix/include/" &&
        package libxxhash "$(version_of XXH_VERSION xxhash.h)" -lxxhash
}

# Its C code is few percent of it: the processor chooses among versions in assembly.
isa_l() {
    assembler=nasm architecture=
    [ "$machine" = x86_64 ] || { assembler="$CC -D__ASSEMBLY__" architecture=aarch64; }
    # Two instructions as clang's assembler wants them written.
    sed -i 's/next_in, x_dist, uxtw/next_in, w_dist, uxtw/' igzip/aarch64/gen_icf_map.S
    sed -i 's/uxtw\tread_in_length,read_in_length/mov\tread_in_length,read_in_length/' \
        igzip/aarch64/igzip_decode_huffman_code_block_aarch64.S
    make -f Makefile.unx -j"$jobs" lib units='crc igzip' host_cpu="$machine" arch="$architecture" \
        CC="$CC $CFLAGS" AS="$assembler" AR="$AR" DEBUG= &&
        mkdir -p "$prefix/include/isa-l" && cp include/*.h "$prefix/include/isa-l/" &&
        cp bin/isa-l.a "$prefix/lib/libisal.a"
}

xz() {
    configured --disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-scripts --disable-doc \
        --disable-nls --disable-lzma-links && make -s -j"$jobs" -C src/liblzma install
}

bzip2() {
    objects libbz2.a blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c &&
        cp bzlib.h "$prefix/include/"
}

zstd() {
    # The plain C code of its decoder everywhere: one list of files.
    CFLAGS="$CFLAGS -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_ -I lib -I lib/common"
    objects libzstd.a lib/common/*.c lib/decompress/*.c lib/compress/*.c &&
        cp lib/zstd.h lib/zstd_errors.h "$prefix/include/" &&
        package libzstd "$(version_of ZSTD_VERSION lib/zstd.h)" -lzstd
}

# Compiled without its libtool, which is of two versions; none of other systems' files.
archive() {
    configured --disable-acl --disable-xattr --without-libb2 --without-iconv --without-lz4 --without-cng \
        --without-openssl --without-nettle --without-mbedtls --without-xml2 --without-expat --with-zlib --with-bz2lib \
        --with-lzma --with-zstd || return 1
    CFLAGS="$CFLAGS -DHAVE_CONFIG_H -I."
    # shellcheck disable=SC2046  # names without spaces
    objects libarchive.a $(find libarchive -maxdepth 1 -name '*.c' ! -name '*_acl_*' ! -name '*windows*' |
        LC_ALL=C sort) &&
        cp libarchive/archive.h libarchive/archive_entry.h "$prefix/include/" &&
        package libarchive "$(sed -n "s/^VERSION='\(.*\)'/\1/p" config.log)" '-larchive -lzstd -llzma -lbz2 -lz'
}

library zlib zlib
library libpng libpng
library libjpeg-turbo libjpeg
library protobuf-c protobuf_c
library jansson jansson
library xxhash xxhash
library isa-l isa_l
library xz xz
library bzip2 bzip2
library zstd zstd
library libarchive archive
# libtool would leave the static libraries that they name out of a convenience library.
rm -f "$prefix"/lib/*.la
