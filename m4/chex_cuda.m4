# CUDA: the toolkit for devices, a C++ compiler for the emulator of the tests.
# SPDX-License-Identifier: Apache-2.0

# CHEX_CXX: the C++ compiler that belongs to CC, before LT_INIT: clang++-14 for clang-14.
AC_DEFUN([CHEX_CXX], [
  chex_cc=${CC%% -*}
  chex_cxx=$(AS_ECHO(["${chex_cc##* }"]) |
    sed 's|clang\([[^/]]*\)$|clang++\1|; t; s|gcc\([[^/]]*\)$|g++\1|; t; s|cc$|c++|')
  AC_PROG_CXX([$chex_cxx])
])

# The emulator of the tests (tests/emulator/) is C++17 and of the same maker as the C code, so that both have the same
# sanitizers.  Under the thread sanitizer `make check-emulator` has it.
AC_DEFUN([CHEX_EMULATOR], [
  have_emulator=yes emulator_lacks=
  CHEX_CXXFLAGS="-std=c++17 -Wall -Wextra -Wshadow -Wno-unknown-pragmas -Wno-pass-failed"
  AS_IF([test "$enable_werror" = yes], [CHEX_CXXFLAGS="$CHEX_CXXFLAGS -Werror"])
  AS_CASE([$enable_sanitizers],
    [no], [],
    [*thread*|*memory*], [have_emulator=no emulator_lacks="not with -fsanitize=$enable_sanitizers"],
    [CHEX_CXXFLAGS="$CHEX_CXXFLAGS $chex_flags"])
  AS_IF([test "$have_emulator" = yes], [
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#ifndef __clang__
#error
#endif
]])], [chex_clang=defined], [chex_clang='!defined'])
    AC_LANG_PUSH([C++])
    AC_MSG_CHECKING([whether $CXX compiles C++17 and is of the maker of $CC])
    chex_saved_cxxflags=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS $CHEX_CXXFLAGS"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <vector>
#if $chex_clang __clang__
int main(int n, char **) { if constexpr (sizeof n == 4) return std::vector<int>(n).size() == 0; }
#endif
]])], [], [have_emulator=no emulator_lacks="no C++17 compiler beside $CC (Debian: g++)"])
    CXXFLAGS=$chex_saved_cxxflags
    AC_MSG_RESULT([$have_emulator])
    AC_LANG_POP([C++])
  ])
  # tests run on this machine: its instruction that rounds to half precision
  AS_IF([grep -qsw f16c /proc/cpuinfo && test "$host_cpu" = x86_64 && test "$cross_compiling" = no],
    [CHEX_CXXFLAGS="$CHEX_CXXFLAGS -mf16c"])
  AC_SUBST([CHEX_CXXFLAGS])
  AC_SUBST([emulator_lacks])
  AM_CONDITIONAL([EMULATOR], [test "$have_emulator" = yes])
])

# The toolkit: its folder from --with-cuda or CUDA_HOME, else that of an nvcc in PATH, else /usr/local/cuda.  nvcc
# itself says where headers and libraries lie.
AC_DEFUN([CHEX_WITH_CUDA], [
  AC_ARG_VAR([CUDA_HOME], [folder of the CUDA toolkit])
  AC_ARG_VAR([CUDA_ARCHS], [compute capabilities that kernels are compiled for, as "80 90" (default: all)])
  AC_ARG_VAR([NVCC], [the CUDA compiler])
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=auto|yes|no|DIR],
    [training on NVIDIA GPUs, with the CUDA toolkit in DIR (default: auto)])], [], [with_cuda=auto])
  have_cuda=no chex_cuda_why= chex_cuda_code='no GPU'
  AS_CASE([$with_cuda], [auto|yes|no], [], [/*], [CUDA_HOME=$with_cuda],
    [AC_MSG_ERROR([--with-cuda takes auto, yes, no or the folder of a CUDA toolkit, not '$with_cuda'])])
  AS_IF([test "$with_cuda" != no], [
    AS_CASE([$with_cuda], [/*], [NVCC=; chex_path=$CUDA_HOME/bin],
      [chex_path=${CUDA_HOME:+$CUDA_HOME/bin:}$PATH:/usr/local/cuda/bin])
    AS_IF([test -z "$NVCC"], [AC_PATH_PROG([NVCC], [nvcc], [], [$chex_path])])
    AS_IF([test -z "$NVCC"], [chex_cuda_why='there is no nvcc'], [CHEX_TRY_CUDA])
    AS_IF([test "$with_cuda" != auto && test "$have_cuda" = no], [
      chex_cuda_why="$chex_cuda_why; CUDA 11.8 or newer is needed, https://developer.nvidia.com/cuda-downloads"
      CHEX_LACKS([cuda: --with-cuda=$with_cuda, but $chex_cuda_why], [-], [-], [cuda])])
  ])
  AC_DEFINE_UNQUOTED([CUDA_CODE], ["$chex_cuda_code"], [the GPUs that kernels are compiled for])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([CUDA_CODE_fp16])
  AC_SUBST([CUDA_CODE_bf16])
  AM_CONDITIONAL([CUDA], [test "$have_cuda" = yes])
])

# A kernel is compiled by nvcc and linked by CC with the static runtime, which looks for the driver only at run time.
AC_DEFUN([CHEX_TRY_CUDA], [
  AC_MSG_CHECKING([whether $NVCC compiles a kernel that $CC links])
  cat > chex_cuda.cu <<'_CHEX'
#if CUDART_VERSION < 11080
#error too old
#endif
extern "C" __global__ void kernel(const __grid_constant__ int a) { (void)a; }
_CHEX
  $NVCC --dryrun -c chex_cuda.cu > chex_cuda.log 2>&1
  CUDA_CPPFLAGS=$(sed -n 's/"//g; s/^.* INCLUDES=//p' chex_cuda.log | sed 's/-I/-isystem /g')
  CUDA_LIBS=$(sed -n 's/"//g; s/^.* LIBRARIES=//p' chex_cuda.log | sed 's/-L[[^ ]]*stubs//g')
  CUDA_LIBS="$CUDA_LIBS -lcudart_static -ldl -lrt -lpthread"
  NVCCFLAGS="-std=c++17 -O3 -forward-unknown-to-host-compiler -fno-exceptions -fno-threadsafe-statics"
  AS_IF([test "$enable_werror" = yes], [NVCCFLAGS="$NVCCFLAGS --Werror all-warnings"])
  CHEX_CUDA_CODE
  AS_IF([$NVCC $NVCCFLAGS $CUDA_CODE_fp16 -fPIC -c chex_cuda.cu -o chex_cuda.o >&AS_MESSAGE_LOG_FD 2>&1], [
    chex_saved_cppflags=$CPPFLAGS chex_saved_libs=$LIBS
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
    LIBS="chex_cuda.o $CUDA_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>
void kernel(int);]], [[int n; return cudaGetDeviceCount(&n) || (void *)kernel == (void *)main;]])],
      [have_cuda=yes], [chex_cuda_why="$CC does not link what $NVCC compiled (config.log)"])
    CPPFLAGS=$chex_saved_cppflags LIBS=$chex_saved_libs
  ], [chex_cuda_why="$NVCC does not compile a kernel (config.log)"])
  rm -f chex_cuda.*
  AC_SUBST([NVCCFLAGS])
  AC_MSG_RESULT([$have_cuda])
])

# Machine code for each generation that nvcc knows, and PTX of the newest one, which drivers compile for later GPUs.  A
# program for 8.0 also runs on 8.6 and 8.9.  bf16 and tf32 need 8.0: if all of CUDA_ARCHS are older, their kernels are
# compiled to PTX for 8.0, which those GPUs never load.
AC_DEFUN([CHEX_CUDA_CODE], [
  CUDA_CODE_fp16= CUDA_CODE_bf16= chex_archs= chex_newest= chex_cuda_code=
  chex_known=" $(echo $($NVCC --list-gpu-arch 2>/dev/null)) "
  for chex_arch in ${CUDA_ARCHS:-70 75 80 90 100 120}; do
    AS_CASE([$chex_known], [*" compute_$chex_arch "*], [chex_archs="$chex_archs $chex_arch"])
  done
  for chex_arch in $chex_archs; do
    chex_code="-gencode arch=compute_$chex_arch,code=sm_$chex_arch"
    CUDA_CODE_fp16="$CUDA_CODE_fp16 $chex_code"
    AS_IF([test $chex_arch -ge 80], [CUDA_CODE_bf16="$CUDA_CODE_bf16 $chex_code"])
    chex_newest="-gencode arch=compute_$chex_arch,code=compute_$chex_arch"
    chex_cuda_code="${chex_cuda_code}sm_$chex_arch "
  done
  chex_cuda_code="${chex_cuda_code}compute_$chex_arch"
  CUDA_CODE_fp16="$CUDA_CODE_fp16 $chex_newest"
  AS_IF([test -n "$CUDA_CODE_bf16"], [CUDA_CODE_bf16="$CUDA_CODE_bf16 $chex_newest"],
    [CUDA_CODE_bf16="-gencode arch=compute_80,code=compute_80"])
])

# Programs open NCCL at run time (train/cuda/comm/nccl_library.c), so only its header is needed: in DIR, else in the
# toolkit, else where the compiler finds it.  The last place that a program tries is the library next to that header.
AC_DEFUN([CHEX_WITH_NCCL], [
  AC_ARG_WITH([nccl], [AS_HELP_STRING([--with-nccl=auto|yes|no|DIR],
    [sums over several GPUs by NCCL, with nccl.h in DIR/include (default: auto)])], [], [with_nccl=auto])
  have_nccl=no chex_nccl_why='CUDA is not there' NCCL_CPPFLAGS= chex_nccl_library=libnccl.so
  AS_CASE([$with_nccl], [auto|yes|no], [], [/*], [NCCL_CPPFLAGS="-isystem $with_nccl/include"],
    [AC_MSG_ERROR([--with-nccl takes auto, yes, no or the folder of NCCL, not '$with_nccl'])])
  AS_IF([test "$with_nccl" != no && test "$have_cuda" = yes], [
    chex_nccl_why='there is no nccl.h'
    AC_MSG_CHECKING([for NCCL 2.14 or newer])
    chex_saved_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $NCCL_CPPFLAGS $CUDA_CPPFLAGS"
    AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <nccl.h>
#if NCCL_VERSION_CODE < 21400
#error too old
#endif
the header: NCCL_MAJOR.NCCL_MINOR]])], [
      have_nccl=yes
      AC_LANG_CONFTEST([AC_LANG_SOURCE([[#include <nccl.h>]])])
      chex_header=$($CPP $CPPFLAGS conftest.c 2>/dev/null | sed -n 's/^# [[0-9]]* "\(.*\)nccl\.h".*/\1/p' | sed 1q)
      for chex_dir in "${chex_header}../lib" "${chex_header}../lib64" "${chex_header}../lib/x86_64-linux-gnu"; do
        AS_IF([test -n "$chex_header" && test -e "$chex_dir/libnccl.so.2"],
          [chex_nccl_library=$(cd "$chex_dir" && pwd)/libnccl.so.2; break])
      done])
    CPPFLAGS=$chex_saved_cppflags
    AC_MSG_RESULT([$have_nccl])
  ])
  AC_DEFINE_UNQUOTED([NCCL_LIBRARY], ["$chex_nccl_library"], [where NCCL is looked for behind the usual places])
  AS_CASE([$with_nccl:$have_nccl], [auto:*|no:*|*:yes], [],
    [CHEX_LACKS([nccl: --with-nccl=$with_nccl, but $chex_nccl_why], [libnccl-dev], [-], [nccl])])
  AC_SUBST([NCCL_CPPFLAGS])
  AM_CONDITIONAL([NCCL], [test "$have_nccl" = yes])
])

# Programs open cuDNN at run time (train/cuda/cudnn/library.c), so only its header is needed: in DIR, else in the
# toolkit, else where the compiler finds it.  The last place that a program tries is the library next to that header.
AC_DEFUN([CHEX_WITH_CUDNN], [
  AC_ARG_WITH([cudnn], [AS_HELP_STRING([--with-cudnn=auto|yes|no|DIR],
    [convolutions by cuDNN, with cudnn_graph.h in DIR/include (default: auto)])], [], [with_cudnn=auto])
  have_cudnn=no chex_cudnn_why='CUDA is not there' CUDNN_CPPFLAGS= chex_cudnn_library=libcudnn.so
  AS_CASE([$with_cudnn], [auto|yes|no], [], [/*], [CUDNN_CPPFLAGS="-isystem $with_cudnn/include"],
    [AC_MSG_ERROR([--with-cudnn takes auto, yes, no or the folder of cuDNN, not '$with_cudnn'])])
  AS_IF([test "$with_cudnn" != no && test "$have_cuda" = yes], [
    chex_cudnn_why='there is no cudnn_graph.h of cuDNN 9.11 or newer'
    AC_MSG_CHECKING([for cuDNN 9.11 or newer])
    chex_saved_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $CUDNN_CPPFLAGS $CUDA_CPPFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <cudnn_graph.h>
#if CUDNN_VERSION < 91100 || CUDNN_VERSION >= 100000
#error another version
#endif
]])], [
      have_cudnn=yes
      AC_LANG_CONFTEST([AC_LANG_SOURCE([[#include <cudnn_graph.h>]])])
      chex_header=$($CC -E $CPPFLAGS conftest.c 2>/dev/null | sed -n 's/^# [[0-9]]* "\(.*\)cudnn_graph\.h".*/\1/p' |
        sed 1q)
      for chex_dir in "${chex_header}../lib" "${chex_header}../lib64" "${chex_header}../lib/x86_64-linux-gnu"; do
        AS_IF([test -n "$chex_header" && test -e "$chex_dir/libcudnn.so.9"],
          [chex_cudnn_library=$(cd "$chex_dir" && pwd)/libcudnn.so.9; break])
      done])
    CPPFLAGS=$chex_saved_cppflags
    AC_MSG_RESULT([$have_cudnn])
  ])
  AC_DEFINE_UNQUOTED([CUDNN_LIBRARY], ["$chex_cudnn_library"], [where cuDNN is looked for behind the usual places])
  AS_CASE([$with_cudnn:$have_cudnn], [auto:*|no:*|*:yes], [],
    [CHEX_LACKS([cudnn: --with-cudnn=$with_cudnn, but $chex_cudnn_why], [-], [-], [cudnn])])
  AC_SUBST([CUDNN_CPPFLAGS])
  AM_CONDITIONAL([CUDNN], [test "$have_cudnn" = yes])
])

# NVTX 3 is a header, which opens the library of a tool where the tool says so: of DIR, else that of the toolkit, which
# may be there without a compiler for kernels.
AC_DEFUN([CHEX_WITH_NVTX], [
  AC_ARG_WITH([nvtx], [AS_HELP_STRING([--with-nvtx=auto|yes|no|DIR],
    [ranges for Nsight, with nvtx3/nvToolsExt.h in DIR/include (default: auto)])], [], [with_nvtx=auto])
  have_nvtx=no NVTX_CPPFLAGS= chex_nvtx_places="$CUDA_CPPFLAGS;-isystem ${CUDA_HOME:-/usr/local/cuda}/include"
  AS_CASE([$with_nvtx], [auto|yes|no], [], [/*], [chex_nvtx_places="-isystem $with_nvtx/include"],
    [AC_MSG_ERROR([--with-nvtx takes auto, yes, no or the folder of NVTX, not '$with_nvtx'])])
  AS_IF([test "$with_nvtx" != no], [
    chex_saved_cppflags=$CPPFLAGS chex_saved_libs=$LIBS
    AC_SEARCH_LIBS([dlopen], [dl])
    AC_MSG_CHECKING([for NVTX 3])
    chex_saved_ifs=$IFS; IFS=';'
    for chex_place in $chex_nvtx_places; do
      IFS=$chex_saved_ifs
      CPPFLAGS="$chex_saved_cppflags $chex_place"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <nvtx3/nvToolsExt.h>]], [[return nvtxDomainCreateA("x") != 0;]])],
        [have_nvtx=yes NVTX_CPPFLAGS=$chex_place; break])
    done
    IFS=$chex_saved_ifs
    CPPFLAGS=$chex_saved_cppflags
    AS_IF([test "$have_nvtx" = no], [LIBS=$chex_saved_libs])
    AC_MSG_RESULT([$have_nvtx])
  ])
  AS_CASE([$with_nvtx:$have_nvtx], [auto:*|no:*|*:yes], [],
    [CHEX_LACKS([nvtx: --with-nvtx=$with_nvtx, but there is no nvtx3/nvToolsExt.h], [-], [-], [nvtx])])
  AC_SUBST([NVTX_CPPFLAGS])
  AM_CONDITIONAL([NVTX], [test "$have_nvtx" = yes])
])
