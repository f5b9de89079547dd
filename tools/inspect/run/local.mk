# SPDX-License-Identifier: Apache-2.0
inspect_run_sources = \
	tools/inspect/run/answer.c \
	tools/inspect/run/answers.c \
	tools/inspect/run/details_json.c \
	tools/inspect/run/each.c \
	tools/inspect/run/each.h \
	tools/inspect/run/each_ensemble.c \
	tools/inspect/run/each_report.c \
	tools/inspect/run/floor.c \
	tools/inspect/run/group_file.c \
	tools/inspect/run/group_file.h \
	tools/inspect/run/group_tables.c \
	tools/inspect/run/groups.c \
	tools/inspect/run/image_file.c \
	tools/inspect/run/image_file.h \
	tools/inspect/run/json.c \
	tools/inspect/run/json_file.c \
	tools/inspect/run/json_file.h \
	tools/inspect/run/label_file.c \
	tools/inspect/run/label_file.h \
	tools/inspect/run/label_tables.c \
	tools/inspect/run/labels.c \
	tools/inspect/run/many.c \
	tools/inspect/run/many_report.c \
	tools/inspect/run/map_file.c \
	tools/inspect/run/map_file.h \
	tools/inspect/run/map_report.c \
	tools/inspect/run/measure.c \
	tools/inspect/run/more_answers.c \
	tools/inspect/run/page.c \
	tools/inspect/run/plots.c \
	tools/inspect/run/read.c \
	tools/inspect/run/reference_report.c \
	tools/inspect/run/references.c \
	tools/inspect/run/references.h \
	tools/inspect/run/release.c \
	tools/inspect/run/run.c \
	tools/inspect/run/run.h \
	tools/inspect/run/subset.c \
	tools/inspect/run/suspect_sheet.c \
	tools/inspect/run/suspects.c \
	tools/inspect/run/suspects.h \
	tools/inspect/run/tables.c \
	tools/inspect/run/tables.h
# The page: its lines as C.
inspect_made += tools/inspect/run/template.c
tools/inspect/run/template.c: tools/inspect/run/page.html tools/draw/template.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -v name=run_template -f $(srcdir)/tools/draw/template.awk \
	  $(srcdir)/tools/inspect/run/page.html > $@.tmp && mv $@.tmp $@
CLEANFILES += tools/inspect/run/template.c tools/inspect/run/template.c.tmp
EXTRA_DIST += tools/inspect/run/page.html
