# SPDX-License-Identifier: Apache-2.0
# The programs.  What they share is a convenience library.
tools_cppflags = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)

noinst_LTLIBRARIES += libcli.la
libcli_la_SOURCES = \
	tools/cli.c \
	tools/cli.h \
	tools/color.c \
	tools/color.h \
	tools/completion.c \
	tools/completion.h \
	tools/library_exit.c \
	tools/library_exit.h \
	tools/meter.c \
	tools/meter.h \
	tools/plain.c \
	tools/plain.h \
	tools/png_memory.c \
	tools/png_memory.h \
	tools/shell_word.c \
	tools/shell_word.h \
	tools/spec_words.c \
	tools/spec_words.h \
	tools/stop_signals.c \
	tools/stop_signals.h \
	tools/versions.c \
	tools/versions.h \
	tools/wrap.c \
	tools/wrap.h
# versions.c asks every library for its version
libcli_la_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(ZLIB_CFLAGS) $(PROTOBUF_C_CFLAGS) \
	$(CRYPTO_CFLAGS)
tools_ldadd = libcli.la libchexcore.la

# How processes of one job find each other and talk: one of two files.  MPI is linked into the programs: of a convenience
# library libtool hands on -L and -l, and forgets where MPI is found at run time.
noinst_LTLIBRARIES += liblauncher.la
launcher_ldadd = liblauncher.la $(MPI_LIBS)
liblauncher_la_SOURCES = tools/launcher.c tools/launcher.h
liblauncher_la_CPPFLAGS = $(tools_cppflags)
if HAVE_MPI
liblauncher_la_SOURCES += tools/comm_mpi.c
liblauncher_la_CPPFLAGS += $(MPI_CFLAGS)
EXTRA_DIST += tools/comm_none.c
else
liblauncher_la_SOURCES += tools/comm_none.c
EXTRA_DIST += tools/comm_mpi.c
endif

bin_PROGRAMS += chex-convert chex-inspect chex-synth chex-train

chex_convert_SOURCES = \
	tools/chex-convert.c \
	tools/convert_json.c \
	tools/convert_options.c \
	tools/convert_options.h \
	tools/convert_notes.c \
	tools/convert_report.c \
	tools/convert_report.h \
	tools/convert_share.c \
	tools/convert_share.h
chex_convert_CPPFLAGS = $(tools_cppflags)
chex_convert_LDADD = $(launcher_ldadd) $(tools_ldadd)

# what draws and writes pictures
picture_sources = \
	tools/font.c \
	tools/font.h \
	tools/picture.h \
	tools/picture_canvas.c \
	tools/picture_file.c \
	tools/picture_jpeg.c \
	tools/picture_png.c
# the page of --report
report_sources = \
	tools/html.c \
	tools/html.h \
	tools/inspect_report.c \
	tools/report.h \
	tools/report_checks.c \
	tools/report_checks.h \
	tools/report_count.c \
	tools/report_leaks.c \
	tools/report_matrix.c \
	tools/report_page.c \
	tools/report_pictures.c \
	tools/report_plots.c \
	tools/report_scan.c \
	tools/report_sentence.c \
	tools/report_style.c \
	tools/report_style.h \
	tools/report_tables.c \
	tools/svg.c \
	tools/svg.h
chex_inspect_SOURCES = tools/chex-inspect.c $(inspect_parts)
inspect_parts = \
	tools/inspect.h \
	tools/inspect_checkpoint.c \
	tools/inspect_checkpoint.h \
	tools/inspect_checkpoint_diff.c \
	tools/inspect_checkpoint_diff_report.c \
	tools/inspect_describe.c \
	tools/inspect_describe.h \
	tools/inspect_diff.c \
	tools/inspect_diff.h \
	tools/inspect_diff_report.c \
	tools/inspect_events.c \
	tools/inspect_extract.c \
	tools/inspect_labels.c \
	tools/inspect_list.c \
	tools/inspect_options.c \
	tools/inspect_options.h \
	tools/inspect_other.c \
	tools/inspect_output.c \
	tools/inspect_record.c \
	tools/inspect_sheet.c \
	tools/inspect_sheet.h \
	tools/inspect_sheet_draw.c \
	tools/inspect_show.c \
	tools/inspect_show.h \
	tools/inspect_show_escape.c \
	tools/inspect_show_terminal.c \
	tools/inspect_source.c \
	tools/inspect_source.h \
	tools/inspect_source_archive.c \
	tools/inspect_source_look.c \
	tools/inspect_source_report.c \
	tools/inspect_source_rows.c \
	tools/inspect_source_sum.c \
	tools/inspect_split.c \
	tools/inspect_split.h \
	tools/inspect_split_report.c \
	tools/inspect_target.c \
	tools/inspect_verify.c \
	tools/inspect_values.c \
	tools/inspect_values.h \
	tools/inspect_walk.c \
	tools/inspect_where.c \
	tools/inspect_where.h \
	tools/ratio.c \
	tools/ratio.h \
	tools/rows.c \
	tools/rows.h \
	$(picture_sources) \
	$(report_sources)
# the trainer's readers: checkpoints, event files
chex_inspect_CPPFLAGS = $(tools_cppflags) -iquote $(srcdir)/train $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(XXHASH_CFLAGS)
chex_inspect_LDADD = libtrain.la $(tools_ldadd) $(XXHASH_LIBS)

chex_synth_SOURCES = tools/chex-synth.c $(synth_parts)
synth_parts = \
	tools/synth_body.c \
	tools/synth_bones.c \
	tools/synth_canvas.c \
	tools/synth_canvas.h \
	tools/synth_film.c \
	tools/synth_findings.c \
	tools/synth_lists.c \
	tools/synth_people.c \
	tools/synth_people.h \
	tools/synth_png.c \
	tools/synth_png.h \
	tools/synth_random.h \
	tools/synth_scene.c \
	tools/synth_scene.h \
	tools/synth_write.c \
	tools/synth_write.h
chex_synth_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(ZLIB_CFLAGS)
chex_synth_LDADD = $(tools_ldadd)

chex_train_SOURCES = tools/chex-train.c $(train_parts)
train_parts = \
	tools/html.c \
	tools/html.h \
	tools/roc_plot.c \
	tools/roc_plot.h \
	tools/svg.c \
	tools/svg.h \
	tools/train_json.c \
	tools/train_options.c \
	tools/train_options.h \
	tools/train_report.c \
	tools/train_report.h \
	tools/train_report_reading.c \
	tools/train_report_result.c \
	tools/train_values.c \
	tools/train_values.h \
	tools/train_watch.c \
	tools/train_watch.h
chex_train_CPPFLAGS = $(tools_cppflags) -iquote $(srcdir)/train
chex_train_LDADD = libtrain.la $(launcher_ldadd) $(tools_ldadd) -lm

# ---- completion of the command lines: each program prints its own --------------------------------------------------
if COMPLETIONS
bash_completion_DATA = completions/bash/chex-convert completions/bash/chex-inspect completions/bash/chex-synth \
	completions/bash/chex-train
zsh_completion_DATA = completions/zsh/_chex-convert completions/zsh/_chex-inspect completions/zsh/_chex-synth \
	completions/zsh/_chex-train
fish_completion_DATA = completions/fish/chex-convert.fish completions/fish/chex-inspect.fish \
	completions/fish/chex-synth.fish completions/fish/chex-train.fish
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
