# SPDX-License-Identifier: Apache-2.0
# Python modules that tests share; python.sh puts this folder on the path.
EXTRA_DIST += \
	tests/python/box_measures.py \
	tests/python/browser.py \
	tests/python/draws.py \
	tests/python/emulator_builds.py \
	tests/python/fixtures.py \
	tests/python/harness.py \
	tests/python/man_pages.py \
	tests/python/mpi.py \
	tests/python/replay.py \
	tests/python/report_runs.py \
	tests/python/support.py \
	tests/python/training.py
