# SPDX-License-Identifier: Apache-2.0
# What needs a GPU.  No build needs one: programs for it are built by build.mk, with nvcc, or brought along in a folder
# that bundle.sh makes; gpu-steps is for any backend of this build.
check_PROGRAMS += gpu-steps
device_word = tests/cuda/device/device_word.c tests/cuda/device/device_word.h
gpu_steps_SOURCES = tests/cuda/device/steps.c $(device_word)
gpu_steps_CPPFLAGS = $(train_cppflags) -iquote $(srcdir)/tests/cuda/device
gpu_steps_LDADD = libtrain.la -lm

# The same on the emulated GPU (tests/cuda/local.mk): check_gpu.py --device cuda-emulated.
if EMULATOR
check_PROGRAMS += tests/gpu-steps-emulated
endif
tests_gpu_steps_emulated_SOURCES = tests/cuda/device/steps.c $(device_word)
nodist_tests_gpu_steps_emulated_SOURCES = tests/emulated/train/backends.c
tests_gpu_steps_emulated_CPPFLAGS = $(train_cppflags) -iquote $(srcdir)/tests/cuda/device
tests_gpu_steps_emulated_LDADD = $(emulated_ldadd) libtrain.la -lm
tests_gpu_steps_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

EXTRA_DIST += \
	tests/cuda/device/build.mk \
	tests/cuda/device/bundle.sh \
	tests/cuda/device/check_gpu.py \
	tests/cuda/device/check_scripts.py \
	tests/cuda/device/curve.py \
	tests/cuda/device/gpu_ranks.py \
	tests/cuda/device/gpu_results.py \
	tests/cuda/device/parity.py \
	tests/cuda/device/runs.py \
	tests/cuda/device/stored/bench.json \
	tests/cuda/device/stored/check.jsonl \
	tests/cuda/device/stored/ncu.csv

# CHECK_FLAGS: names of parts, --device, --budget, ...; OUT: where results go
#: check-gpu          on a GPU: every kernel, whole steps, runs, the tools of compute-sanitizer: ten minutes
check-gpu: chex-convert chex-synth chex-train gpu-loop gpu-steps train-step
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' NVCC='$(NVCC)' \
	$(PYTHON) $(srcdir)/tests/cuda/device/check_gpu.py $(CHECK_FLAGS)

#: gpu-bundle         the folder gpu-bundle/ with all that check-gpu and bench-gpu need on a machine that has nothing
gpu-bundle:
	PATH="$$PATH:/usr/local/cuda/bin" $(SHELL) $(srcdir)/tests/cuda/device/bundle.sh '$(abs_srcdir)' gpu-bundle

.PHONY: check-gpu gpu-bundle
