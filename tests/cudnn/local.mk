# SPDX-License-Identifier: Apache-2.0
# cuDNN for the emulated GPU, which emulator/local.mk builds; and what NVIDIA's own says of our convolutions, which
# needs neither a GPU nor CUDA, but the library: the values of this folder's header are those of it.
EXTRA_DIST += \
	tests/cudnn/a100.json \
	tests/cudnn/cudnn_graph.h \
	tests/cudnn/fake_cudnn.h \
	tests/cudnn/h200.json \
	tests/cudnn/library.c

if EMULATOR
check_PROGRAMS += tests/cudnn-ask
endif
tests_cudnn_ask_SOURCES = tests/cudnn/ask.c train/cuda/cudnn/library.c
nodist_tests_cudnn_ask_SOURCES = tests/emulated/train/backends.c
tests_cudnn_ask_CPPFLAGS = $(emulated_cppflags)
tests_cudnn_ask_LDADD = $(emulated_ldadd) libtrain.la -lm
tests_cudnn_ask_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@

TESTS += tests/cudnn/check_cudnn.py
EXTRA_DIST += tests/cudnn/check_cudnn.py

#: check-cudnn        the wheel of cuDNN of tests/requirements-cudnn.txt, asked about our convolutions without a GPU
check-cudnn: tests/cudnn-ask
	CUDNN=pypi BUILDDIR='$(abs_builddir)' srcdir='$(srcdir)' \
	$(PYTHON) $(srcdir)/tests/cudnn/check_cudnn.py $(CHECK_CASES)

.PHONY: check-cudnn
