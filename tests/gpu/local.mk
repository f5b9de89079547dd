# SPDX-License-Identifier: Apache-2.0
# What needs a GPU.  No build needs one: programs for it are built by build.mk, with nvcc, or brought along in a folder
# that bundle.sh makes; gpu-steps is for any backend of this build.
check_PROGRAMS += gpu-steps
device_word = tests/gpu/device_word.c tests/gpu/device_word.h
gpu_steps_SOURCES = tests/gpu/steps.c $(device_word)
gpu_steps_CPPFLAGS = $(train_cppflags) -iquote $(srcdir)/tests/gpu
gpu_steps_LDADD = libtrain.la -lm

# The same on the emulated GPU (emulator/local.mk): check_gpu.py --device cuda-emulated.
if EMULATOR
check_PROGRAMS += tests/gpu-steps-emulated
endif
tests_gpu_steps_emulated_SOURCES = tests/gpu/steps.c $(device_word)
nodist_tests_gpu_steps_emulated_SOURCES = tests/emulated/train/backends.c
tests_gpu_steps_emulated_CPPFLAGS = $(train_cppflags) -iquote $(srcdir)/tests/gpu
tests_gpu_steps_emulated_LDADD = $(emulated_ldadd) libtrain.la -lm
tests_gpu_steps_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

TESTS += tests/gpu/check_scripts.py
EXTRA_DIST += \
	tests/gpu/build.mk \
	tests/gpu/bundle.sh \
	tests/gpu/check_gpu.py \
	tests/gpu/check_sass.py \
	tests/gpu/check_scripts.py \
	tests/gpu/curve.py \
	tests/gpu/gpu_ranks.py \
	tests/gpu/gpu_results.py \
	tests/gpu/kernel_sizes.c \
	tests/gpu/kernels.txt \
	tests/gpu/parity.py \
	tests/gpu/runs.py \
	tests/gpu/stored/bench.json \
	tests/gpu/stored/check.jsonl \
	tests/gpu/stored/ncu.csv

# CHECK_FLAGS: names of parts, --device, --budget, ...; OUT: where results go
#: check-gpu          on a GPU: every kernel, whole steps, runs, the tools of compute-sanitizer: ten minutes
check-gpu: chex-convert chex-synth chex-train gpu-steps train-step
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' NVCC='$(NVCC)' \
	$(PYTHON) $(srcdir)/tests/gpu/check_gpu.py $(CHECK_FLAGS)

#: gpu-bundle         the folder gpu-bundle/ with all that check-gpu and bench-gpu need on a machine that has nothing
gpu-bundle:
	PATH="$$PATH:/usr/local/cuda/bin" $(SHELL) $(srcdir)/tests/gpu/bundle.sh '$(abs_srcdir)' gpu-bundle

#: check-sass         machine code of the kernels for sm_80 and sm_90: spills, accesses, the table tests/gpu/kernels.txt
check-sass:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/gpu/check_sass.py $(CHECK_CASES)

#: kernels-table      that table, written anew after a kernel has changed
kernels-table:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/gpu/check_sass.py --write

.PHONY: check-gpu check-sass gpu-bundle kernels-table
