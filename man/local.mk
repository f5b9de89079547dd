# SPDX-License-Identifier: Apache-2.0
# The man pages, and the pages and pictures in doc/.
dist_man_MANS += man/chex-convert.1 man/chex-inspect.1 man/chex-predict.1 man/chex-synth.1 \
	man/chex-train.1 man/chex-shard.5 man/libchex.3
EXTRA_DIST += doc/auroc.svg doc/contact.png doc/pictures.py doc/report.png doc/scaling.sh doc/scaling.svg
dist_doc_DATA += doc/cluster.md doc/example.c doc/install.md doc/published-auroc.csv doc/python.md doc/reading.md \
	doc/scaling.md doc/slurm/scaling.sh doc/slurm/train.sh \
	doc/tour.md doc/weights.md

#: doc-pictures       the pictures in doc/, by the commands of doc/tour.md (Chromium, Pillow)
doc-pictures: chex-convert chex-inspect chex-synth chex-train
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/doc/pictures.py
.PHONY: doc-pictures
