# Libraries that must be there, and those that may.
# SPDX-License-Identifier: Apache-2.0

# CHEX_LACKS(WHAT, DEBIAN, FEDORA, SPACK): this is needed and was not found.  The packages that hold it; none: '-'.
# Nothing ends here: CHEX_CHECK_LACKING names all that is missing at once.
AC_DEFUN([CHEX_LACKS], [
  chex_lacking="$chex_lacking
    $1"
  AS_IF([test "$2" != -], [chex_debian="$chex_debian $2"])
  AS_IF([test "$3" != -], [chex_fedora="$chex_fedora $3"])
  AS_CASE(["$2:$chex_spack :$4"],
    [-:*], [],
    [*:-], [chex_not_in_spack="$chex_not_in_spack; it has no $1"],
    [*" $4 "*:*], [],
    [chex_spack="$chex_spack $4"])
])

AC_DEFUN([CHEX_CHECK_LACKING], [
  AS_IF([test -n "$chex_lacking"], [
    AS_IF([test -n "$chex_debian"], [chex_lacking="$chex_lacking
  Debian, Ubuntu:  apt-get install$chex_debian"])
    AS_IF([test -n "$chex_fedora"], [chex_lacking="$chex_lacking
  Fedora, RHEL with EPEL and CRB:  dnf install$chex_fedora"])
    AS_IF([test -n "$chex_spack"], [chex_lacking="$chex_lacking
  Spack:  spack install$chex_spack && spack load$chex_spack$chex_not_in_spack"])
    AC_MSG_ERROR([these are missing; config.log says what was tried:$chex_lacking])
  ])
])

# CHEX_REQUIRE(PREFIX, MODULE, DEBIAN, FEDORA, SPACK): a pkg-config module.
AC_DEFUN([CHEX_REQUIRE], [
  PKG_CHECK_MODULES([$1], [$2], [], [CHEX_LACKS([$2], [$3], [$4], [$5])])
])

# CHEX_REQUIRE_LIBRARY(PREFIX, HEADER, LIBRARY, FUNCTION, DEBIAN, FEDORA, SPACK): one that ships no pkg-config file.
AC_DEFUN([CHEX_REQUIRE_LIBRARY], [
  chex_found=no
  AC_CHECK_HEADER([$2], [AC_CHECK_LIB([$3], [$4], [chex_found=yes; $1_LIBS=-l$3])])
  AS_IF([test "$chex_found" = no], [CHEX_LACKS([lib$3 ($2)], [$5], [$6], [$7])])
  AC_SUBST([$1_LIBS])
])

# CHEX_WITH(NAME, HELP, CODE-THAT-SETS-have_NAME, DEBIAN, FEDORA, SPACK): --with-NAME=auto|yes|no.  Guessed and missing
# is a line of the summary; asked for and missing is an error.
AC_DEFUN([CHEX_WITH], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$2 (default: auto)])], [], [with_$1=auto])
  have_$1=no
  AS_CASE([$with_$1], [auto|yes], [$3], [no], [],
    [AC_MSG_ERROR([--with-$1 takes auto, yes or no, not '$with_$1'])])
  AS_IF([test "$with_$1" = yes && test "$have_$1" = no],
    [CHEX_LACKS([$1: --with-$1=yes, but it was not found], [m4_default([$4], [-])], [m4_default([$5], [-])],
      [m4_default([$6], [-])])])
])

# Spack, EasyBuild and conda-forge have no libcsv: lib/io/csv_included.c stands in for it.
AC_DEFUN([CHEX_WITH_LIBCSV], [
  AC_ARG_WITH([libcsv],
    [AS_HELP_STRING([--with-libcsv=auto|system|included], [parse CSV files with libcsv or with code of this package
      (default: auto, with libcsv where it is installed)])], [], [with_libcsv=auto])
  AS_CASE([$with_libcsv], [auto|system|included], [],
    [AC_MSG_ERROR([--with-libcsv takes auto, system or included, not '$with_libcsv'])])
  have_libcsv=no
  AS_IF([test "$with_libcsv" != included],
    [AC_CHECK_HEADER([csv.h], [AC_CHECK_LIB([csv], [csv_parse], [have_libcsv=yes])])])
  AS_IF([test "$with_libcsv:$have_libcsv" = system:no],
    [CHEX_LACKS([libcsv (csv.h)], [libcsv-dev], [libcsv-devel], [-])])
  AS_IF([test "$have_libcsv" = yes], [LIBCSV_LIBS=-lcsv
    AC_DEFINE([HAVE_LIBCSV], [1], [Define to 1 if libcsv parses CSV files.])])
  AC_SUBST([LIBCSV_LIBS])
  AM_CONDITIONAL([HAVE_LIBCSV], [test "$have_libcsv" = yes])
])

# With liblzma, whose limit of memory libarchive does not set.
AC_DEFUN([CHEX_WITH_LIBARCHIVE], [
  CHEX_WITH([libarchive], [images straight from .tar.gz], [
    PKG_CHECK_MODULES([LIBARCHIVE], [libarchive >= 3.0],
      [PKG_CHECK_MODULES([LZMA], [liblzma], [have_libarchive=yes], [:])], [:])],
    [libarchive-dev liblzma-dev], [libarchive-devel xz-devel], [libarchive xz])
  AM_CONDITIONAL([HAVE_LIBARCHIVE], [test "$have_libarchive" = yes])
])

# CHEX_MPI_FLAGS(COMMAND-LINE): MPI_CFLAGS and MPI_LIBS from the line that a wrapper of MPICH's kin would run.  All that
# says which MPI it is and where: a definition chooses its ABI (mpicc_abi), a run path its place.  Nothing that says how
# to compile, which this build decides itself.
AC_DEFUN([CHEX_MPI_FLAGS], [
  MPI_CFLAGS= MPI_LIBS= chex_goes_to=
  for chex_word in $1; do
    AS_CASE([$chex_goes_to:$chex_word],
      [cflags:*], [MPI_CFLAGS="$MPI_CFLAGS $chex_word" chex_goes_to=],
      [libs:*], [MPI_LIBS="$MPI_LIBS $chex_word" chex_goes_to=],
      [-?:*], [MPI_LIBS="$MPI_LIBS $chex_goes_to$chex_word" chex_goes_to=], # libtool takes no space behind -L
      [:-I|:-D|:-U|:-isystem|:-idirafter|:-include], [MPI_CFLAGS="$MPI_CFLAGS $chex_word" chex_goes_to=cflags],
      [:-L|:-l], [chex_goes_to=$chex_word],
      [:-Xlinker], [MPI_LIBS="$MPI_LIBS $chex_word" chex_goes_to=libs],
      [:-I*|:-D*|:-U*|:-isystem*], [MPI_CFLAGS="$MPI_CFLAGS $chex_word"],
      [:-L*|:-l*|:-Wl,*|:*.a|:*.so|:*.so.*], [MPI_LIBS="$MPI_LIBS $chex_word"],
      [:-pthread], [MPI_CFLAGS="$MPI_CFLAGS $chex_word" MPI_LIBS="$MPI_LIBS $chex_word"])
  done
])

# The flags come from the compiler wrapper, which says them with -showme (Open MPI) or -show (MPICH and its kin), else
# from pkg-config (ompi-c, mpich); the wrapper itself compiles nothing here.
AC_DEFUN([CHEX_WITH_MPI], [
  AC_ARG_VAR([MPICC], [the compiler wrapper of MPI, asked for its flags])
  AC_ARG_VAR([MPIRUN], [starts the ranks of tests])
  mpi_opened=no
  AS_CASE([$with_mpi], [opened], [with_mpi=auto mpi_opened=yes])
  CHEX_WITH([mpi], [several machines; or =opened: the library is opened at run time, which needs no MPI now], [
    AS_IF([test "$mpi_opened" = no], [CHEX_FIND_MPI])],
    [libopenmpi-dev], [openmpi-devel], [openmpi])
  # No MPI to link with: open one at run time.
  AS_CASE([$with_mpi:$have_mpi], [auto:no], [mpi_opened=yes have_mpi=opened])
  AS_IF([test "$have_mpi" != yes], [MPI_CFLAGS= MPI_LIBS=])
  AS_IF([test "$mpi_opened" = yes], [AC_SEARCH_LIBS([dlopen], [dl])])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([HAVE_MPI], [test "$have_mpi" != no])
  AM_CONDITIONAL([MPI_LINKED], [test "$have_mpi" = yes])
  AM_CONDITIONAL([MPI_OPENED], [test "$mpi_opened" = yes])
  AC_PATH_PROG([MPIRUN], [mpirun])
])

# Sets have_mpi, MPI_CFLAGS and MPI_LIBS.
AC_DEFUN([CHEX_FIND_MPI], [
    AS_IF([test -z "$MPICC"], [AC_PATH_PROG([MPICC], [mpicc])])
    AS_IF([test -n "$MPICC"], [
      MPI_CFLAGS=$($MPICC -showme:compile 2>/dev/null) && MPI_LIBS=$($MPICC -showme:link 2>/dev/null) || {
        chex_line=$($MPICC -show 2>/dev/null)
        CHEX_MPI_FLAGS([$chex_line])
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
    AC_MSG_RESULT([$have_mpi])
])

AC_DEFUN([CHEX_SUMMARY], [
  AS_CASE([$have_mpi], [yes], [chex_mpi='yes (several machines)'],
    [opened], [chex_mpi='opened at run time (Open MPI 4, 5; MPI 5)'], [chex_mpi=no])
  AS_CASE([$have_libcsv], [yes], [chex_csv=libcsv], [chex_csv='included parser'])
  AS_CASE([$with_cuda:$have_cuda],
    [*:yes], [chex_devices='CPU, NVIDIA GPUs' chex_cuda="yes ($NVCC:$chex_archs)"],
    [no:*], [chex_devices=CPU chex_cuda=no],
    [chex_devices=CPU chex_cuda="no: $chex_cuda_why"])
  AS_CASE([$with_nccl:$have_nccl], [*:yes], [chex_nccl="yes ($chex_nccl_library, opened when it is needed)"],
    [no:*], [chex_nccl=no], [chex_nccl="no: $chex_nccl_why"])
  AS_CASE([$with_cudnn:$have_cudnn], [*:yes], [chex_cudnn="yes ($chex_cudnn_library, opened when it is needed)"],
    [no:*], [chex_cudnn=no], [chex_cudnn="no: $chex_cudnn_why"])
  AS_CASE([$with_nvtx:$have_nvtx], [*:yes], [chex_nvtx='yes (ranges for Nsight)'], [no:*], [chex_nvtx=no],
    [chex_nvtx='no: there is no nvtx3/nvToolsExt.h'])
  AS_ECHO(["
  +---------------------------------------------------------------------------
  | chex-tools $PACKAGE_VERSION
  |
  |   compiler      $CC $CFLAGS
  |   prefix        $prefix
  |   sanitizers    $enable_sanitizers
  |   hardening     $enable_hardening
  |
  |   programs      chex-convert, chex-inspect, chex-predict, chex-synth, chex-train
  |   archives      $have_libarchive (libarchive, liblzma: images straight from .tar.gz and .zip)
  |   CSV files     $chex_csv
  |   unit tests    $have_check (Check)
  |   mpi           $chex_mpi
  |   trains on     $chex_devices
  |   CUDA          $chex_cuda
  |   emulated GPU  $have_emulator${emulator_lacks:+: $emulator_lacks} (tests: CUDA without a device)
  |   NCCL          $chex_nccl
  |   cuDNN         $chex_cudnn
  |   NVTX          $chex_nvtx
  +---------------------------------------------------------------------------
"])
])
