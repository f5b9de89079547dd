#!/bin/sh
# check_configure.sh BUILD - what configure says of missing libraries and compilers and takes from MPI's wrapper, and
# chex.pc
#
# BUILD is a folder in which everything is built.  `make check-configure` runs this.
#
# SPDX-License-Identifier: Apache-2.0
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work" "$build/chex-convert.check"' EXIT
# shellcheck source=tests/tree/verdict.sh
. "$source/tests/tree/verdict.sh"

# has FILE WORDS...: each stands in the file.
has() {
    file=$1
    shift
    for words in "$@"; do
        grep -qF -- "$words" "$file" || {
            echo "not there: $words"
            cat "$file"
            return 1
        }
    done
}

# A pkg-config without three modules, and a system without the header of libcsv.
names_all_that_is_missing() {
    printf '%s\n' '#!/bin/sh' 'case "$*" in *libpng* | *jansson* | *libarchive*) exit 1 ;; esac' \
        'exec pkg-config "$@"' > "$work/pkg-config"
    chmod +x "$work/pkg-config"
    mkdir "$work/missing"
    if (cd "$work/missing" && "$source/configure" -q --with-mpi=no --with-cuda=no --with-libarchive=yes \
        --with-libcsv=system PKG_CONFIG="$work/pkg-config" ac_cv_header_csv_h=no) > "$work/missing/said" 2>&1; then
        echo "configure found what is not there"
        return 1
    fi
    has "$work/missing/said" 'libpng >= 1.6.0' 'jansson >= 2.10' 'libcsv (csv.h)' \
        '--with-libarchive=yes, but it was not found' \
        'apt-get install libpng-dev libjansson-dev libcsv-dev libarchive-dev liblzma-dev' \
        'dnf install libpng-devel jansson-devel libcsv-devel libarchive-devel xz-devel' \
        'spack install libpng jansson libarchive xz &&' 'it has no libcsv (csv.h)'
}

# An MPI of which the ABI is chosen by a definition and whose library is found by a run path alone, as MPICH's mpicc_abi
# shows them.
takes_all_flags_of_the_wrapper() {
    mpi=$work/mpi
    mkdir "$work/build" "$mpi"
    printf '%s\n' '#ifndef MPI_ABI' '#error another ABI' '#endif' 'int MPI_Init(int *, char ***);' > "$mpi/mpi.h"
    echo 'int MPI_Init(int *n, char ***words) { return n && words; }' > "$mpi/mpi.c"
    cc -shared -fPIC "$mpi/mpi.c" -o "$mpi/libstand_in_mpi.so" || return 1
    # shellcheck disable=SC2016  # for the script, not for this one
    printf '%s\n' '#!/bin/sh' '[ "$1 $2" = "-mpi-abi -show" ] || exit 1' \
        "echo gcc -std=gnu89 -DMPI_ABI -I$mpi -O1 -L $mpi -Wl,-rpath -Wl,$mpi -lstand_in_mpi" > "$mpi/mpicc"
    chmod +x "$mpi/mpicc"
    (cd "$work/build" && "$source/configure" -q --with-mpi=yes --with-cuda=no --with-libarchive=no \
        MPICC="$mpi/mpicc -mpi-abi") > "$work/build/said" 2>&1 || {
        cat "$work/build/said"
        return 1
    }
    sed -n 's/^\(MPI_[A-Z]*\) = */\1 = /p' "$work/build/Makefile" > "$work/build/flags"
    libs="-L$mpi -Wl,-rpath -Wl,$mpi -lstand_in_mpi"
    has "$work/build/flags" "MPI_CFLAGS = -DMPI_ABI -I$mpi" "MPI_LIBS = $libs" || return 1
    # The run path arrives in a program: that of the build, linked once more under another name.
    own=$(sed -n 's/^MPI_LIBS = *//p' "$build/Makefile")
    make -C "$build" -s chex-convert.check EXEEXT=.check MPI_LIBS="$libs $own" > "$work/link" 2>&1 || {
        cat "$work/link"
        return 1
    }
    readelf -d "$build/chex-convert.check" > "$work/dynamic" || return 1
    grep -E 'R(UN)?PATH' "$work/dynamic" | grep -qF "$mpi" || {
        cat "$work/dynamic"
        return 1
    }
}

# In a fresh build, the folder of the function before: one object has the made header that it includes.
one_object_alone_has_its_header() {
    make -C "$work/build" -n tools/train/chex_train-train_options.o > "$work/alone" 2>&1
    has "$work/alone" 'define BACKEND_NAMES'
}

# chex.pc alone is there, as where libchex is installed without the -dev packages of what it uses.
chex_pc_needs_no_other() {
    mkdir "$work/pc"
    cp "$build/lib/chex.pc" "$work/pc" || return 1
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$work/pc pkg-config --cflags --libs chex > "$work/pc/shared" 2>&1
    code=$?
    has "$work/pc/shared" -lchex && [ "$code" -eq 0 ] || return 1
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$work/pc pkg-config --static --libs chex > "$work/pc/static" 2>&1 &&
        has "$work/pc/static" -lpng -lcsv -lisal
}

# nvcc that is wanted and not there; one that compiles nothing; no C++ compiler.  The latter two leave something out.
says_what_cuda_lacks() {
    mkdir "$work/cuda" "$work/toolkit" "$work/toolkit/bin"
    printf '%s\n' '#!/bin/sh' 'exit 1' > "$work/toolkit/bin/nvcc"
    chmod +x "$work/toolkit/bin/nvcc"
    for place in none toolkit; do
        if (cd "$work/cuda" && "$source/configure" -q --with-mpi=no --with-cuda="$work/$place") \
            > "$work/cuda/$place" 2>&1; then
            echo "configure took $place for a toolkit"
            return 1
        fi
    done
    (cd "$work/cuda" && "$source/configure" -q --with-mpi=no --with-cuda=auto NVCC="$work/toolkit/bin/nvcc" CXX=false) \
        > "$work/cuda/without" 2>&1 || {
        cat "$work/cuda/without"
        return 1
    }
    needs='CUDA 11.8 or newer is needed'
    has "$work/cuda/none" "cuda: --with-cuda=$work/none, but there is no nvcc; $needs" &&
        has "$work/cuda/toolkit" "$work/toolkit/bin/nvcc does not compile a kernel (config.log); $needs" &&
        has "$work/cuda/without" "no: $work/toolkit/bin/nvcc does not compile a kernel" 'no: no C++17 compiler beside'
}

# A toolkit that compiles one kernel, by cc, and headers of NCCL and cuDNN that are too old, in its folder.
stand_in_toolkit() {
    kit=$work/kit
    mkdir -p "$kit/bin" "$kit/include" "$kit/lib" "$work/stub"
    echo 'int cudaGetDeviceCount(int *n);' > "$kit/include/cuda_runtime_api.h"
    echo 'int cudaGetDeviceCount(int *n) { return *n = 0; }' > "$work/stub/cudart.c"
    echo 'void kernel(int a) { (void)a; }' > "$work/stub/kernel.c"
    cc -fPIC -c "$work/stub/cudart.c" -o "$work/stub/cudart.o" &&
        ar rc "$kit/lib/libcudart_static.a" "$work/stub/cudart.o"
    cat > "$kit/bin/nvcc" <<END
#!/bin/sh
case "\$*" in
    *--dryrun*) printf '#$ %s\n' 'INCLUDES="-I$kit/include" ' 'LIBRARIES=  "-L$kit/lib"'; exit ;;
    *--list-gpu-arch*) echo compute_80; exit ;;
esac
while [ \$# -gt 1 ]; do
    [ "\$1" != -o ] || out=\$2
    shift
done
exec cc -fPIC -c '$work/stub/kernel.c' -o "\$out"
END
    chmod +x "$kit/bin/nvcc"
    headers "$kit" 21300 91000
}

# headers FOLDER NCCL CUDNN: of these versions, in FOLDER/include.
headers() {
    mkdir -p "$1/include"
    printf '%s\n' "#define NCCL_VERSION_CODE $2" '#define NCCL_MAJOR 2' '#define NCCL_MINOR 14' > "$1/include/nccl.h"
    echo "#define CUDNN_VERSION $3" > "$1/include/cudnn_graph.h"
}

# with NAME CODE OPTION...: configure in $work/NAME; its words are in $work/NAME/said.
with() {
    name=$1 expected=$2
    shift 2
    mkdir "$work/$name"
    (cd "$work/$name" && "$source/configure" --with-mpi=no --with-libarchive=no --with-cuda="$work/kit" "$@") \
        > "$work/$name/said" 2>&1
    code=$?
    [ $((code != 0)) -eq "$expected" ] || {
        echo "configure $* ended with $code"
        tail -n 30 "$work/$name/said"
        return 1
    }
}

# auto leaves out what is too old and says so, yes is refused then, DIR is where header and library are taken from, no
# asks nothing; another word is refused.
libraries_of_a_gpu() {
    stand_in_toolkit || return 1
    headers "$work/nccl" 21400 0
    headers "$work/cudnn" 0 91100
    mkdir "$work/nccl/lib" "$work/cudnn/lib64"
    touch "$work/nccl/lib/libnccl.so.2" "$work/cudnn/lib64/libcudnn.so.9"
    old='there is no cudnn_graph.h of cuDNN 9.11 or newer'
    with gpu-auto 0 --with-nccl=auto --with-cudnn=auto &&
        has "$work/gpu-auto/said" 'NCCL          no: there is no nccl.h' "cuDNN         no: $old" || return 1
    with gpu-yes 1 --with-nccl=yes --with-cudnn=yes &&
        has "$work/gpu-yes/said" 'nccl: --with-nccl=yes, but there is no nccl.h' \
            "cudnn: --with-cudnn=yes, but $old" libnccl-dev || return 1
    with gpu-dir 0 --with-nccl="$work/nccl" --with-cudnn="$work/cudnn" &&
        has "$work/gpu-dir/config.h" "#define NCCL_LIBRARY \"$work/nccl/lib/libnccl.so.2\"" \
            "#define CUDNN_LIBRARY \"$work/cudnn/lib64/libcudnn.so.9\"" &&
        has "$work/gpu-dir/said" 'NCCL          yes' 'cuDNN         yes' || return 1
    with gpu-no 0 --with-nccl=no --with-cudnn=no || return 1
    ! grep -E 'checking for (NCCL|cuDNN)|N[CN][CN]L? +yes' "$work/gpu-no/said" || return 1
    with gpu-cpu 1 --with-cuda=no --with-nccl=yes &&
        has "$work/gpu-cpu/said" 'nccl: --with-nccl=yes, but CUDA is not there' || return 1
    for word in nccl cudnn; do
        with "gpu-$word" 1 "--with-$word=maybe" &&
            has "$work/gpu-$word/said" "--with-$word takes auto, yes, no or the folder of" || return 1
    done
}

names_all_that_is_missing
verdict "all that is missing is named at once, with its packages" $?
says_what_cuda_lacks
verdict "what CUDA and its emulator lack is said" $?
libraries_of_a_gpu
verdict "--with-nccl and --with-cudnn: auto, yes, no, a folder, another word" $?
takes_all_flags_of_the_wrapper
verdict "definitions and run paths of MPI's wrapper arrive in the programs" $?
one_object_alone_has_its_header
verdict "an object that is made alone has its header" $?
chex_pc_needs_no_other
verdict "pkg-config finds libchex where no other library is installed for development" $?
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
