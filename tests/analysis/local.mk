# SPDX-License-Identifier: Apache-2.0
# Static analysis, memcheck, coverage, and what the leak sanitizer ignores.
EXTRA_DIST += \
	tests/analysis/analyze.sh \
	tests/analysis/analyze.txt \
	tests/analysis/coverage.py \
	tests/analysis/lsan.txt \
	tests/analysis/threads.sh \
	tests/analysis/valgrind.sh
