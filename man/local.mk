# SPDX-License-Identifier: Apache-2.0
# The pages, and what README.md shows.
dist_man_MANS += man/chex-convert.1 man/chex-inspect.1 man/chex-synth.1 man/chex-train.1 \
	man/chex-shard.5 man/libchex.3
EXTRA_DIST += doc/auroc.svg doc/contact.png doc/make-report-picture.py doc/report.png doc/weights.md
dist_doc_DATA += doc/example.c doc/slurm/train.sh
