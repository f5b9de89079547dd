# SPDX-License-Identifier: Apache-2.0
# The three programs.  What they share is a convenience library.
tools_cppflags = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)

noinst_LTLIBRARIES += libcli.la
libcli_la_SOURCES = tools/cli.c tools/cli.h tools/meter.c tools/meter.h tools/png_memory.c tools/png_memory.h \
	tools/versions.c tools/versions.h
# versions.c asks every library for its version
libcli_la_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(ZLIB_CFLAGS) $(PROTOBUF_C_CFLAGS) \
	$(CRYPTO_CFLAGS)
tools_ldadd = libcli.la libchexcore.la

bin_PROGRAMS += chex-convert chex-inspect chex-synth

chex_convert_SOURCES = tools/chex-convert.c tools/convert_json.c tools/convert_options.c tools/convert_options.h \
	tools/convert_report.c tools/convert_report.h
chex_convert_CPPFLAGS = $(tools_cppflags)
chex_convert_LDADD = $(tools_ldadd)

chex_inspect_SOURCES = tools/chex-inspect.c $(inspect_parts)
inspect_parts = tools/inspect.h tools/inspect_describe.c tools/inspect_describe.h tools/inspect_extract.c tools/inspect_labels.c \
	tools/inspect_list.c tools/inspect_output.c tools/inspect_split.c tools/inspect_split.h \
	tools/inspect_split_report.c tools/inspect_target.c tools/inspect_verify.c tools/inspect_walk.c
chex_inspect_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS)
chex_inspect_LDADD = $(tools_ldadd)

chex_synth_SOURCES = tools/chex-synth.c $(synth_parts)
synth_parts = tools/synth_body.c tools/synth_bones.c tools/synth_canvas.c tools/synth_canvas.h tools/synth_film.c \
	tools/synth_findings.c tools/synth_lists.c tools/synth_people.c tools/synth_people.h tools/synth_png.c \
	tools/synth_png.h tools/synth_random.h tools/synth_scene.c tools/synth_scene.h tools/synth_write.c \
	tools/synth_write.h
chex_synth_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(ZLIB_CFLAGS)
chex_synth_LDADD = $(tools_ldadd)
