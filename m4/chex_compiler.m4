# The compiler: C11, warnings, hardening, sanitizers.
# SPDX-License-Identifier: Apache-2.0

# CHEX_TRY_CFLAG(VARIABLE, FLAG): append FLAG to VARIABLE where the compiler takes it.
AC_DEFUN([CHEX_TRY_CFLAG], [
  AC_MSG_CHECKING([whether $CC accepts $2])
  chex_saved_cflags=$CFLAGS
  CFLAGS="$CFLAGS -Werror $2"
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int f(void); int f(void) { return 0; }]])],
    [AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
  CFLAGS=$chex_saved_cflags
])

# AC_PROG_CC asks for C11 itself from Autoconf 2.70 on; here the same with 2.69 (RHEL 8 and 9).
AC_DEFUN([CHEX_C11], [
  chex_c11=
  chex_saved_cc=$CC
  AC_MSG_CHECKING([for the option of $CC for C11])
  for chex_flag in '' -std=gnu11; do
    AS_IF([test -z "$chex_c11"], [
      CC="$chex_saved_cc $chex_flag"
      AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#if !defined __STDC_VERSION__ || __STDC_VERSION__ < 201112L
#error older than C11
#endif
#include <stdatomic.h>
_Static_assert(sizeof(atomic_int) > 0, "C11");
int main(void) { return 0; }
]])], [chex_c11=${chex_flag:-none needed}])])
  done
  CC=$chex_saved_cc
  AC_MSG_RESULT([${chex_c11:-there is none}])
  AS_CASE([$chex_c11], [''], [AC_MSG_ERROR([a C11 compiler is needed])], [-*], [CC="$CC $chex_c11"])
])

AC_DEFUN([CHEX_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors (for CI)])],
    [], [enable_werror=no])
  CHEX_CFLAGS=
  for chex_flag in -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
      -Wundef -Wvla; do
    CHEX_TRY_CFLAG([CHEX_CFLAGS], [$chex_flag])
  done
  AS_IF([test "$enable_werror" = yes], [CHEX_CFLAGS="$CHEX_CFLAGS -Werror"])
  # a*b+c is never contracted: the same bytes from every compiler and CPU
  CHEX_TRY_CFLAG([CHEX_CFLAGS], [-ffp-contract=off])
  AC_SUBST([CHEX_CFLAGS])
])

AC_DEFUN([CHEX_HARDENING], [
  AC_ARG_ENABLE([hardening], [AS_HELP_STRING([--disable-hardening],
    [without stack protector, _FORTIFY_SOURCE, PIE and RELRO])], [], [enable_hardening=yes])
  AS_IF([test "$enable_hardening" = yes], [
    CHEX_TRY_CFLAG([CHEX_CFLAGS], [-fstack-protector-strong])
    CHEX_TRY_CFLAG([CHEX_CFLAGS], [-fstack-clash-protection])
    CHEX_TRY_CFLAG([CHEX_CFLAGS], [-fcf-protection=full])
    CHEX_TRY_CFLAG([CHEX_CFLAGS], [-mbranch-protection=standard])
    AS_CASE([" $CPPFLAGS $CFLAGS "], [*_FORTIFY_SOURCE*|*-O0*], [],
      [*-O*], [AS_IF([test -z "$enable_sanitizers" || test "$enable_sanitizers" = no],
               [CHEX_CFLAGS="$CHEX_CFLAGS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"])])
    CHEX_LDFLAGS="-Wl,-z,relro -Wl,-z,now"
    chex_saved_ldflags=$LDFLAGS
    LDFLAGS="$LDFLAGS $CHEX_LDFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [], [CHEX_LDFLAGS=])
    LDFLAGS=$chex_saved_ldflags
  ])
  AC_SUBST([CHEX_LDFLAGS])
])

AC_DEFUN([CHEX_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers], [AS_HELP_STRING([--enable-sanitizers@<:@=LIST@:>@],
    [build with sanitizers: a list for -fsanitize=, default address,undefined; or thread])],
    [], [enable_sanitizers=no])
  AS_IF([test "$enable_sanitizers" = yes], [enable_sanitizers=address,undefined])
  AS_IF([test "$enable_sanitizers" != no], [
    chex_flags="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=all"
    chex_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS $chex_flags"
    AC_MSG_CHECKING([whether $CC links with -fsanitize=$enable_sanitizers])
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no]); AC_MSG_ERROR([this compiler has no such sanitizer])])
    CFLAGS=$chex_saved_cflags
    CHEX_CFLAGS="$CHEX_CFLAGS $chex_flags"
    CHEX_LDFLAGS="$CHEX_LDFLAGS $chex_flags"
  ])
  AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])
])

AC_DEFUN([AX_CHEX_PTHREAD], [
  AC_SEARCH_LIBS([pthread_create], [pthread], [], [AC_MSG_ERROR([POSIX threads are needed])])
  AC_SEARCH_LIBS([floor], [m])
])

# The products of convolutions in bf16 have a version for AVX-512 BF16 (GCC 10, clang 9).  It runs only where the CPU
# has these instructions.
AC_DEFUN([CHEX_AVX512_BF16], [
  AC_MSG_CHECKING([whether $CC compiles AVX-512 BF16])
  chex_saved_cflags=$CFLAGS
  chex_avx512_bf16=no
  CFLAGS="$CFLAGS -mavx512f -mavx512bf16"
  AS_IF([test "$host_cpu" = x86_64], [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <immintrin.h>]],
    [[__m512 sum = _mm512_setzero_ps();
    sum = _mm512_dpbf16_ps(sum, (__m512bh)sum, (__m512bh)sum);
    return _mm512_reduce_add_ps(sum) > 0;]])], [chex_avx512_bf16=yes])])
  CFLAGS=$chex_saved_cflags
  AC_MSG_RESULT([$chex_avx512_bf16])
  AM_CONDITIONAL([HAVE_AVX512_BF16], [test "$chex_avx512_bf16" = yes])
])
