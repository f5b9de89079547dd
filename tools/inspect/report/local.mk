# SPDX-License-Identifier: Apache-2.0
inspect_report_sources = \
	tools/inspect/report/checks.c \
	tools/inspect/report/checks.h \
	tools/inspect/report/count.c \
	tools/inspect/report/drift.c \
	tools/inspect/report/leaks.c \
	tools/inspect/report/matrix.c \
	tools/inspect/report/page.c \
	tools/inspect/report/pictures.c \
	tools/inspect/report/plots.c \
	tools/inspect/report/report.c \
	tools/inspect/report/report.h \
	tools/inspect/report/scan.c \
	tools/inspect/report/sentence.c \
	tools/inspect/report/tables.c
# The page: its lines as C.
inspect_made = tools/inspect/report/template.c
tools/inspect/report/template.c: tools/inspect/report/page.html tools/draw/template.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -v name=report_template -f $(srcdir)/tools/draw/template.awk \
	  $(srcdir)/tools/inspect/report/page.html > $@.tmp && mv $@.tmp $@
CLEANFILES += tools/inspect/report/template.c tools/inspect/report/template.c.tmp
EXTRA_DIST += tools/inspect/report/page.html
