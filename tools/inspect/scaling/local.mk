# SPDX-License-Identifier: Apache-2.0
inspect_scaling_sources = \
	tools/inspect/scaling/compare.c \
	tools/inspect/scaling/plot.c \
	tools/inspect/scaling/predict.c \
	tools/inspect/scaling/read.c \
	tools/inspect/scaling/reference.c \
	tools/inspect/scaling/scaling.c \
	tools/inspect/scaling/scaling.h \
	tools/inspect/scaling/tables.c
# The published points: rows of a CSV file as C.
inspect_made += tools/inspect/scaling/published.c
tools/inspect/scaling/published.c: tools/inspect/scaling/published.csv tools/inspect/scaling/published.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -f $(srcdir)/tools/inspect/scaling/published.awk \
	  $(srcdir)/tools/inspect/scaling/published.csv > $@.tmp && mv $@.tmp $@
CLEANFILES += tools/inspect/scaling/published.c tools/inspect/scaling/published.c.tmp
EXTRA_DIST += tools/inspect/scaling/published.csv tools/inspect/scaling/published.awk
