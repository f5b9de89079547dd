# SPDX-License-Identifier: Apache-2.0
# Tests that run several processes.
check_PROGRAMS += collective-ranks
collective_ranks_SOURCES = tests/ranks/collective_ranks.c
collective_ranks_CPPFLAGS = $(tools_cppflags)
collective_ranks_LDADD = libtrain.la $(launcher_ldadd) $(tools_ldadd)

EXTRA_DIST += \
	tests/ranks/check_ranks.py \
	tests/ranks/check_slurm.py \
	tests/ranks/check_storage.py \
	tests/ranks/check_storage.py \
	tests/ranks/check_train_ranks.py
