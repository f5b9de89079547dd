# CHEX_COMPLETIONS - where the completions of the shells are installed
# SPDX-License-Identifier: Apache-2.0
#
# The programs print them, so they are not made where the programs cannot run.  The places are below $(datadir), where
# the shells look by themselves for a prefix of /usr or /usr/local.

# CHEX_COMPLETION_DIR(SHELL, SUBFOLDER)
AC_DEFUN([CHEX_COMPLETION_DIR], [
    AC_ARG_WITH([$1-completion-dir],
        [AS_HELP_STRING([--with-$1-completion-dir=DIR], [for $1 (default: DATADIR/$2; no: not installed)])],
        [], [with_$1_completion_dir=yes])
    AS_CASE([$with_$1_completion_dir],
        [yes], [$1_completiondir='${datadir}/$2'],
        [no], [$1_completiondir=],
        [$1_completiondir=$with_$1_completion_dir])
    AC_SUBST([$1_completiondir])
])

AC_DEFUN([CHEX_COMPLETIONS], [
    CHEX_COMPLETION_DIR([bash], [bash-completion/completions])
    CHEX_COMPLETION_DIR([zsh], [zsh/site-functions])
    CHEX_COMPLETION_DIR([fish], [fish/vendor_completions.d])
    AM_CONDITIONAL([COMPLETIONS], [test "$cross_compiling" != yes])
])
