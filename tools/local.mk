# SPDX-License-Identifier: Apache-2.0
# The programs.  What they share are two convenience libraries, libcli and libdraw, and liblauncher for those with
# ranks.
tools_cppflags = $(AM_CPPFLAGS) -iquote $(srcdir)/train -iquote $(srcdir)/tools $(JANSSON_CFLAGS)
tools_ldadd = libcli.la libchexcore.la

include tools/common/local.mk
include tools/draw/local.mk
include tools/convert/local.mk
include tools/synth/local.mk
include tools/train/local.mk
include tools/predict/local.mk
include tools/inspect/local.mk
include tools/inspect/list/local.mk
include tools/inspect/labels/local.mk
include tools/inspect/check/local.mk
include tools/inspect/sheet/local.mk
include tools/inspect/show/local.mk
include tools/inspect/extract/local.mk
include tools/inspect/diff/local.mk
include tools/inspect/source/local.mk
include tools/inspect/report/local.mk
include tools/inspect/run/local.mk
include tools/inspect/scaling/local.mk
include tools/inspect/program/local.mk

bin_PROGRAMS += chex-convert chex-inspect chex-predict chex-synth chex-train

chex_convert_SOURCES = tools/chex-convert.c $(convert_sources)
chex_convert_CPPFLAGS = $(tools_cppflags)
chex_convert_LDADD = $(launcher_ldadd) $(tools_ldadd)

# the trainer's reader of checkpoints
chex_inspect_SOURCES = tools/chex-inspect.c $(inspect_parts)
nodist_chex_inspect_SOURCES = $(inspect_made)
inspect_parts = $(inspect_sources) $(inspect_list_sources) $(inspect_labels_sources) $(inspect_check_sources) \
	$(inspect_sheet_sources) $(inspect_show_sources) $(inspect_extract_sources) $(inspect_diff_sources) \
	$(inspect_source_sources) $(inspect_report_sources) $(inspect_run_sources) $(inspect_scaling_sources) \
	$(inspect_program_sources) $(run_times_sources)
chex_inspect_CPPFLAGS = $(tools_cppflags) $(XXHASH_CFLAGS)
chex_inspect_LDADD = libdraw.la libtrain.la $(tools_ldadd) $(XXHASH_LIBS)

chex_predict_SOURCES = tools/chex-predict.c $(predict_sources) $(train_values_sources)
chex_predict_CPPFLAGS = $(tools_cppflags)
chex_predict_LDADD = libdraw.la libtrain.la $(tools_ldadd) -lm
tools/predict/chex_predict-predict_options.$(OBJEXT): train/backends.h

chex_synth_SOURCES = tools/chex-synth.c $(synth_sources)
chex_synth_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(ZLIB_CFLAGS)
chex_synth_LDADD = libdraw.la $(tools_ldadd)

chex_train_SOURCES = tools/chex-train.c $(train_sources) $(train_values_sources)
chex_train_CPPFLAGS = $(tools_cppflags)
chex_train_LDADD = libdraw.la libtrain.la $(launcher_ldadd) $(tools_ldadd) -lm
tools/train/chex_train-train_options.$(OBJEXT): train/backends.h

# ---- completion of the command lines: each program prints its own --------------------------------------------------
if COMPLETIONS
bash_completion_DATA = completions/bash/chex-convert completions/bash/chex-inspect completions/bash/chex-predict \
	completions/bash/chex-synth completions/bash/chex-train
zsh_completion_DATA = completions/zsh/_chex-convert completions/zsh/_chex-inspect completions/zsh/_chex-predict \
	completions/zsh/_chex-synth completions/zsh/_chex-train
fish_completion_DATA = completions/fish/chex-convert.fish completions/fish/chex-inspect.fish \
	completions/fish/chex-predict.fish completions/fish/chex-synth.fish completions/fish/chex-train.fish
endif
completion_files = $(bash_completion_DATA) $(zsh_completion_DATA) $(fish_completion_DATA)
CLEANFILES += $(completion_files)
print_completion = $(AM_V_GEN)$(MKDIR_P) $(@D) && ./$< --completion

completions/bash/%: %$(EXEEXT)
	$(print_completion) bash > $@.tmp && mv $@.tmp $@
completions/zsh/_%: %$(EXEEXT)
	$(print_completion) zsh > $@.tmp && mv $@.tmp $@
completions/fish/%.fish: %$(EXEEXT)
	$(print_completion) fish > $@.tmp && mv $@.tmp $@
