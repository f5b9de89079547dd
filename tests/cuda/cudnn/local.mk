# SPDX-License-Identifier: Apache-2.0
# What NVIDIA's own cuDNN says of our convolutions, which needs neither a GPU nor CUDA, but the library: the values of
# fakes/cudnn/cudnn_graph.h are those of it.

if EMULATOR
check_PROGRAMS += tests/cudnn-ask
endif
tests_cudnn_ask_SOURCES = tests/cuda/cudnn/ask.c train/cuda/cudnn/library.c
nodist_tests_cudnn_ask_SOURCES = tests/emulated/train/backends.c
tests_cudnn_ask_CPPFLAGS = $(emulated_cppflags)
tests_cudnn_ask_LDADD = $(emulated_ldadd) libtrain.la -lm
tests_cudnn_ask_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

EXTRA_DIST += tests/cuda/cudnn/a100.json tests/cuda/cudnn/check_cudnn.py tests/cuda/cudnn/h200.json

#: check-cudnn        the wheel of cuDNN of tests/requirements-cudnn.txt, asked about our convolutions without a GPU
check-cudnn: tests/cudnn-ask
	PYTHON='$(PYTHON)' CUDNN=pypi BUILDDIR='$(abs_builddir)' srcdir='$(srcdir)' \
	$(PY_LOG_COMPILER) $(srcdir)/tests/cuda/cudnn/check_cudnn.py $(CHECK_CASES)

.PHONY: check-cudnn
