#!/bin/sh
# bundle.sh - a folder with all that check_gpu.py and bench/gpu.py need on a machine that has a driver, glibc and Python
#
#     bundle.sh SOURCE OUT             build for GPUs in OUT-build, then pack
#     bundle.sh --pack SOURCE BUILD OUT      pack what this build folder has
#     bundle.sh --try OUT              does it start where nothing but glibc is? (root, or user namespaces)
#
# The programs are linked to find the libraries that travel with them beside themselves (in OUT/lib); what comes with
# glibc is the machine's own, which must not be older than this one's.  The CUDA runtime is linked in; NCCL and
# cuDNN, whose headers configure finds or not, are opened there where they are.  There:
#     python3 OUT/tests/cuda/device/check_gpu.py      python3 OUT/bench/gpu.py
# ARCHS: the capabilities that kernels are compiled for, '80 90'; JOBS: as -j of make.  What is larger than MOST_MIB
# (64) is an error.  Exit status: 0 good, 1 an error, 77 there is no nvcc
#
# SPDX-License-Identifier: Apache-2.0
set -eu

programs='chex-train chex-synth chex-convert chex-inspect chex-predict train-step gpu-steps gpu-loop'
scripts='tests/cuda/device/check_gpu.py tests/cuda/device/curve.py tests/cuda/device/gpu_ranks.py
    tests/cuda/device/gpu_results.py tests/cuda/device/parity.py tests/cuda/device/runs.py
    bench/gpu.py bench/gpu_torch.py'
# Of glibc, which is the machine's own.
system='ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libnss_.*|linux-vdso'

fail() {
    echo "bundle.sh: $*" >&2
    exit 1
}

# The libraries of a program that travel: paths.
libraries() {
    ldd "$1" | awk '$3 ~ /^\// { print $3 }' | grep -vE "/($system)\.so" || :
}

build() { # SOURCE OUT
    nvcc=$(command -v "${NVCC:-nvcc}") || {
        echo 'skip: gpu-bundle: there is no nvcc in PATH'
        exit 77
    }
    build=$2-build
    mkdir -p "$build"
    if ! test -f "$build/Makefile"; then
        (cd "$build" && "$1/configure" -q --disable-shared --with-cuda --without-mpi --without-libarchive \
            CUDA_ARCHS="${ARCHS:-80 90}" NVCC="$nvcc" PYTHON="${PYTHON:-python3}") ||
            fail 'configure failed'
    fi
    # The linker writes it into what it links; no shell and no make reads the dollar sign.
    LD_RUN_PATH="\$ORIGIN/../lib"
    export LD_RUN_PATH
    make -s -C "$build" -j"${JOBS:-2}" all || fail 'make failed'
    # shellcheck disable=SC2086
    make -s -C "$build" -j"${JOBS:-2}" $programs || fail 'make failed'
    # shellcheck disable=SC2086
    make -s -j"${JOBS:-2}" -f "$1/tests/cuda/device/build.mk" SOURCE="$1" OUT="$build/gpu" BUILD="$build" NVCC="$nvcc" \
        ARCHS="${ARCHS:-80 90}" || fail 'nvcc failed'
    grep -q 'backend_cuda;' "$build/train/backends.c" || echo 'bundle.sh: programs without the backend cuda' >&2
    pack "$1" "$build" "$2"
}

pack() { # SOURCE BUILD OUT
    rm -rf "$3"
    mkdir -p "$3/bin" "$3/lib" "$3/tests/cuda/device" "$3/bench"
    kernels=$(find "$1/tests/cuda/kernels" -name '*_kernels.cc' | sed 's|.*/||; s|\.cc$||' | sort)
    for name in $programs $kernels gpu-rates; do
        from=$2/$name
        test -x "$from" || from=$2/gpu/$name
        if ! test -x "$from"; then
            echo "bundle.sh: without $name, which is not built" >&2
            continue
        fi
        cp -L "$from" "$3/bin/$name"
        strip --strip-debug "$3/bin/$name"
        libraries "$3/bin/$name"
    done | sort -u > "$3/lib/.wanted"
    while read -r library; do
        cp -L "$library" "$3/lib/$(basename "$library")"
    done < "$3/lib/.wanted"
    rm "$3/lib/.wanted"
    for file in $scripts; do
        cp "$1/$file" "$3/$file"
    done
    { git -C "$1" describe --always --dirty 2>/dev/null || echo '?'; } > "$3/COMMIT"
    cat > "$3/Makefile" <<'END'
check-gpu:
	python3 tests/cuda/device/check_gpu.py $(CHECK_FLAGS)
bench-gpu:
	python3 bench/gpu.py $(BENCH_FLAGS)
.PHONY: bench-gpu check-gpu
END
    size=$(du -sm "$3" | cut -f1)
    echo "$3: $size MiB, $(find "$3/bin" -type f | wc -l) programs, $(find "$3/lib" -type f | wc -l) libraries"
    test "$size" -le "${MOST_MIB:-64}" || fail "$3 is larger than ${MOST_MIB:-64} MiB: fewer ARCHS?"
}

# In a folder that has the loader and the libraries of glibc, and nothing else.
try() { # OUT
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    mkdir -p "$root/bundle" "$root/tmp" "$root/proc/self"
    cp -r "$1/bin" "$1/lib" "$root/bundle"
    for name in "$1"/bin/*; do
        ldd "$name" | grep -oE "/[^ ]*/($system)\.so[^ ]*" || :
    done | sort -u | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
    PATH=$PATH:/usr/sbin:/sbin
    enter=$(command -v chroot) || fail 'there is no chroot'
    test "$(id -u)" = 0 || enter="$(command -v unshare) -r $enter"
    bad=0
    for name in "$root"/bundle/bin/*; do
        name=$(basename "$name")
        code=0
        # There is no /proc, which tells the loader where a program lies.
        ln -sfn "/bundle/bin/$name" "$root/proc/self/exe"
        # shellcheck disable=SC2086
        said=$(env -i ${LIBRARIES:+LD_LIBRARY_PATH="$LIBRARIES"} $enter "$root" "/bundle/bin/$name" --version 2>&1) ||
            code=$?
        case $code in
            0 | 1 | 2 | 77) echo "ok   $name: $(echo "$said" | head -n 1)" ;;
            *) echo "FAIL $name: exit code $code: $said"; bad=1 ;;
        esac
    done
    return $bad
}

case $#:${1-} in
    4:--pack) pack "$2" "$3" "$4" ;;
    2:--try) try "$2" ;;
    2:*) build "$(cd "$1" && pwd)" "$2" ;;
    *) fail 'usage: bundle.sh SOURCE OUT | --pack SOURCE BUILD OUT | --try OUT' ;;
esac
