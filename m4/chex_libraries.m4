# Libraries that must be there, and those that may.
# SPDX-License-Identifier: Apache-2.0

# CHEX_REQUIRE(PREFIX, MODULES, DEBIAN-PACKAGE): a pkg-config module, or an error that says what to install.
AC_DEFUN([CHEX_REQUIRE], [
  PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_ERROR([$2 is needed (Debian: apt-get install $3): $$1[]_PKG_ERRORS])])
])

# CHEX_REQUIRE_LIBRARY(PREFIX, HEADER, LIBRARY, FUNCTION, DEBIAN-PACKAGE): one that ships no pkg-config file.
AC_DEFUN([CHEX_REQUIRE_LIBRARY], [
  AC_CHECK_HEADER([$2], [], [AC_MSG_ERROR([$2 is needed (Debian: apt-get install $5)])])
  AC_CHECK_LIB([$3], [$4], [$1_LIBS=-l$3],
    [AC_MSG_ERROR([lib$3 is needed (Debian: apt-get install $5)])])
  AC_SUBST([$1_LIBS])
])

# CHEX_WITH(NAME, HELP, CODE-THAT-SETS-have_NAME): --with-NAME=auto|yes|no.  Guessed and missing is a line of the
# summary; asked for and missing is an error.
AC_DEFUN([CHEX_WITH], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$2 (default: auto)])], [], [with_$1=auto])
  have_$1=no
  AS_CASE([$with_$1], [auto|yes], [$3], [no], [],
    [AC_MSG_ERROR([--with-$1 takes auto, yes or no, not '$with_$1'])])
  AS_IF([test "$with_$1" = yes && test "$have_$1" = no], [AC_MSG_ERROR([--with-$1=yes, but it was not found])])
])

AC_DEFUN([CHEX_WITH_LIBARCHIVE], [
  CHEX_WITH([libarchive], [images straight from .tar.gz], [
    PKG_CHECK_MODULES([LIBARCHIVE], [libarchive >= 3.0], [have_libarchive=yes], [:])])
  AM_CONDITIONAL([HAVE_LIBARCHIVE], [test "$have_libarchive" = yes])
])

# The flags come from pkg-config (ompi-c, mpich), else from the compiler wrapper, which says them with -showme
# (Open MPI) or -show (MPICH and its kin); the wrapper itself compiles nothing here.
AC_DEFUN([CHEX_WITH_MPI], [
  AC_ARG_VAR([MPICC], [the compiler wrapper of MPI, asked for its flags])
  CHEX_WITH([mpi], [several machines], [
    AC_PATH_PROG([MPICC], [mpicc])
    AS_IF([test -n "$MPICC"], [
      MPI_CFLAGS=$("$MPICC" -showme:compile 2>/dev/null) && MPI_LIBS=$("$MPICC" -showme:link 2>/dev/null) || {
        MPI_CFLAGS=$("$MPICC" -show -c 2>/dev/null | tr ' ' '\n' | grep -e '^-I' | tr '\n' ' ')
        MPI_LIBS=$("$MPICC" -show 2>/dev/null | tr ' ' '\n' | grep -e '^-L' -e '^-l' -e '^-Wl,' | tr '\n' ' ')
      }], [
      PKG_CHECK_MODULES([MPI], [ompi-c], [:], [PKG_CHECK_MODULES([MPI], [mpich], [:], [:])])])
    AC_MSG_CHECKING([whether an MPI program compiles and links])
    chex_saved_cppflags=$CPPFLAGS
    chex_saved_libs=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
    LIBS="$MPI_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Init(0, 0);]])], [have_mpi=yes])
    CPPFLAGS=$chex_saved_cppflags
    LIBS=$chex_saved_libs
    AC_MSG_RESULT([$have_mpi])])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([HAVE_MPI], [test "$have_mpi" = yes])
  AC_PATH_PROG([MPIRUN], [mpirun])
])

# The toolkit's place: CUDA_HOME, else where nvcc is, else /usr/local/cuda.
AC_DEFUN([CHEX_WITH_CUDA], [
  AC_ARG_VAR([CUDA_HOME], [folder of the CUDA toolkit])
  AC_ARG_VAR([NVCC], [the CUDA compiler])
  CHEX_WITH([cuda], [CUDA toolkit and cuDNN: looked for, not used yet], [
    AC_PATH_PROG([NVCC], [nvcc], [], [$CUDA_HOME/bin:$PATH:/usr/local/cuda/bin])
    AS_IF([test -n "$NVCC"], [
      AS_IF([test -z "$CUDA_HOME"], [CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$NVCC")")")])
      chex_saved_cppflags=$CPPFLAGS
      CPPFLAGS="$CPPFLAGS -I$CUDA_HOME/include"
      AC_CHECK_HEADERS([cuda_runtime_api.h cudnn.h], [], [], [[
#ifdef HAVE_CUDA_RUNTIME_API_H
#include <cuda_runtime_api.h>
#endif
]])
      CPPFLAGS=$chex_saved_cppflags
      AS_IF([test "$ac_cv_header_cuda_runtime_api_h" = yes && test "$ac_cv_header_cudnn_h" = yes],
        [have_cuda=yes])])])
])

AC_DEFUN([CHEX_WITH_NCCL], [
  CHEX_WITH([nccl], [NCCL: looked for, not used yet], [
    AS_IF([test "$have_cuda" = yes], [
      chex_saved_cppflags=$CPPFLAGS
      CPPFLAGS="$CPPFLAGS -I$CUDA_HOME/include"
      AC_CHECK_HEADER([nccl.h], [have_nccl=yes])
      CPPFLAGS=$chex_saved_cppflags])])
])

# There is no GPU backend yet: what was found for it is not used.
AC_DEFUN([CHEX_SUMMARY], [
  AS_IF([test "$have_cuda" = yes], [chex_cuda='found, not used yet'], [chex_cuda=no])
  AS_IF([test "$have_nccl" = yes], [chex_nccl='found, not used yet'], [chex_nccl=no])
  AS_ECHO(["
  +---------------------------------------------------------------------------
  | chex-tools $PACKAGE_VERSION
  |
  |   compiler      $CC $CFLAGS
  |   prefix        $prefix
  |   sanitizers    $enable_sanitizers
  |   hardening     $enable_hardening
  |
  |   programs      chex-convert, chex-inspect, chex-synth, chex-train
  |   archives      $have_libarchive (libarchive: images straight from .tar.gz and .zip)
  |   unit tests    $have_check (Check)
  |   mpi           $have_mpi (several machines)
  |   trains on     CPU
  |   CUDA          $chex_cuda
  |   NCCL          $chex_nccl
  +---------------------------------------------------------------------------
"])
])
