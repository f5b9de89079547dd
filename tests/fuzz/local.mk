# SPDX-License-Identifier: Apache-2.0
# Fuzz targets.  Each is one program: with replay.c it runs the seeds and the finds, which is what `make check` does;
# with FUZZ_MAIN= FUZZ_ENGINE=-fsanitize=fuzzer, in a build folder for that compiler, it is a fuzzer (fuzz.sh).
FUZZ_MAIN = tests/fuzz/libreplay.la
FUZZ_ENGINE =
fuzz_programs = \
	tests/fuzz/checkpoint \
	tests/fuzz/columns \
	tests/fuzz/inflate \
	tests/fuzz/jpeg \
	tests/fuzz/journal \
	tests/fuzz/labels \
	tests/fuzz/lists \
	tests/fuzz/manifest \
	tests/fuzz/options \
	tests/fuzz/png \
	tests/fuzz/predictions \
	tests/fuzz/record \
	tests/fuzz/resample \
	tests/fuzz/torch_file
check_PROGRAMS += $(fuzz_programs) tests/fuzz/self_test
check_LTLIBRARIES += tests/fuzz/libreplay.la tests/fuzz/libfuzz.la
tests_fuzz_libreplay_la_SOURCES = tests/fuzz/replay.c
tests_fuzz_libfuzz_la_SOURCES = tests/fuzz/fuzz.c tests/fuzz/fuzz.h
fuzz_ldflags = $(AM_LDFLAGS) $(FUZZ_ENGINE)
fuzz_ldadd = $(FUZZ_MAIN) tests/fuzz/libfuzz.la libchexcore.la

tests_fuzz_checkpoint_SOURCES = tests/fuzz/checkpoint.c tests/train/checkpoint/state_cases.c \
	tests/train/checkpoint/state_cases.h
tests_fuzz_checkpoint_CPPFLAGS = $(train_cppflags) -iquote $(srcdir)/tests $(JANSSON_CFLAGS)
tests_fuzz_checkpoint_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_checkpoint_LDADD = $(FUZZ_MAIN) tests/fuzz/libfuzz.la libtrain.la libchexcore.la $(JANSSON_LIBS)
tests_fuzz_columns_SOURCES = tests/fuzz/columns.c
tests_fuzz_columns_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_columns_LDADD = $(fuzz_ldadd)
tests_fuzz_inflate_SOURCES = tests/fuzz/inflate.c
tests_fuzz_inflate_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_inflate_LDADD = $(fuzz_ldadd) $(ZLIB_LIBS)
tests_fuzz_jpeg_SOURCES = tests/fuzz/jpeg.c
tests_fuzz_jpeg_CPPFLAGS = $(AM_CPPFLAGS) $(LIBJPEG_CFLAGS)
tests_fuzz_jpeg_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_jpeg_LDADD = $(fuzz_ldadd) $(LIBJPEG_LIBS)
tests_fuzz_journal_SOURCES = tests/fuzz/journal.c
tests_fuzz_journal_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_journal_LDADD = $(fuzz_ldadd)
tests_fuzz_labels_SOURCES = tests/fuzz/labels.c
tests_fuzz_labels_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_labels_LDADD = $(fuzz_ldadd) $(ZLIB_LIBS)
tests_fuzz_lists_SOURCES = tests/fuzz/lists.c
tests_fuzz_lists_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_lists_LDADD = $(fuzz_ldadd)
tests_fuzz_manifest_SOURCES = tests/fuzz/manifest.c
tests_fuzz_manifest_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_manifest_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_manifest_LDADD = $(fuzz_ldadd)
# the option tables of the tools stand in their main files, which come without main()
tests_fuzz_options_SOURCES = \
	tests/fuzz/options.c \
	tests/fuzz/options.h \
	tests/fuzz/options_inspect.c \
	tests/fuzz/options_synth.c \
	tools/convert/convert_options.c \
	$(inspect_parts) \
	$(synth_sources)
nodist_tests_fuzz_options_SOURCES = $(inspect_made)
tests_fuzz_options_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(ZLIB_CFLAGS) $(XXHASH_CFLAGS)
tests_fuzz_options_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_options_LDADD = $(FUZZ_MAIN) tests/fuzz/libfuzz.la libdraw.la libcli.la libtrain.la libchexcore.la \
	$(XXHASH_LIBS)
tests_fuzz_png_SOURCES = tests/fuzz/png.c tests/fuzz/png_file.c tests/fuzz/png_file.h
tests_fuzz_png_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_png_LDADD = $(fuzz_ldadd) $(ZLIB_LIBS)
tests_fuzz_predictions_SOURCES = tests/fuzz/predictions.c
tests_fuzz_predictions_CPPFLAGS = $(train_cppflags) $(JANSSON_CFLAGS)
tests_fuzz_predictions_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_predictions_LDADD = $(FUZZ_MAIN) tests/fuzz/libfuzz.la libtrain.la libchexcore.la $(JANSSON_LIBS)
tests_fuzz_record_SOURCES = tests/fuzz/record.c
tests_fuzz_record_CPPFLAGS = $(AM_CPPFLAGS) $(PROTOBUF_C_CFLAGS)
tests_fuzz_record_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_record_LDADD = $(fuzz_ldadd) $(PROTOBUF_C_LIBS)
tests_fuzz_resample_SOURCES = tests/fuzz/resample.c
tests_fuzz_resample_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_resample_LDADD = $(fuzz_ldadd)
tests_fuzz_torch_file_SOURCES = tests/fuzz/torch_file.c
tests_fuzz_torch_file_CPPFLAGS = $(train_cppflags) -iquote $(srcdir)/tests $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
tests_fuzz_torch_file_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_torch_file_LDADD = $(FUZZ_MAIN) tests/fuzz/libfuzz.la libtrain.la libchexcore.la $(JANSSON_LIBS) $(ZLIB_LIBS)
# images from archives, where there is libarchive
if HAVE_LIBARCHIVE
check_PROGRAMS += tests/fuzz/archive
archive_program = tests/fuzz/archive
else
archive_program =
endif
tests_fuzz_archive_SOURCES = tests/fuzz/archive.c
tests_fuzz_archive_CPPFLAGS = $(AM_CPPFLAGS) $(LIBARCHIVE_CFLAGS)
tests_fuzz_archive_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_archive_LDADD = $(fuzz_ldadd) $(LIBARCHIVE_LIBS) $(ZLIB_LIBS)
# fails, as it should
tests_fuzz_self_test_SOURCES = tests/fuzz/self_test.c
tests_fuzz_self_test_LDADD = $(fuzz_ldadd)

EXTRA_DIST += \
	tests/fuzz/check_fuzz.py \
	tests/fuzz/finds.sh \
	tests/fuzz/fuzz.sh \
	tests/fuzz/pack.py \
	tests/fuzz/dictionaries/archive.dict \
	tests/fuzz/finds/archive.txt \
	tests/fuzz/dictionaries/checkpoint.dict \
	tests/fuzz/dictionaries/columns.dict \
	tests/fuzz/dictionaries/jpeg.dict \
	tests/fuzz/dictionaries/journal.dict \
	tests/fuzz/dictionaries/labels.dict \
	tests/fuzz/dictionaries/lists.dict \
	tests/fuzz/dictionaries/manifest.dict \
	tests/fuzz/dictionaries/options.dict \
	tests/fuzz/dictionaries/png.dict \
	tests/fuzz/dictionaries/predictions.dict \
	tests/fuzz/dictionaries/record.dict \
	tests/fuzz/finds/jpeg.txt \
	tests/fuzz/finds/journal.txt \
	tests/fuzz/finds/labels.txt \
	tests/fuzz/finds/lists.txt \
	tests/fuzz/finds/manifest.txt \
	tests/fuzz/finds/options.txt \
	tests/fuzz/finds/png.txt \
	tests/fuzz/finds/record.txt \
	tests/fuzz/finds/resample.txt

# The corpora that a fuzzer begins with: seeds and finds, a folder for each target.
#: fuzz-corpus        the corpus of a fuzz target, a file for each input
fuzz-corpus: $(fuzz_programs) $(archive_program)
	@for program in $(fuzz_programs) $(archive_program); do \
	  target=$${program##*/}; finds=$(srcdir)/tests/fuzz/finds/$$target.txt; test -f $$finds || finds=/dev/null; \
	  $(MKDIR_P) fuzz-corpus/$$target && $$program -w fuzz-corpus/$$target -f $$finds || exit 1; \
	done

# make fuzz TARGET=png TIME=3600
#: fuzz               continue fuzzing; TARGET=png TIME=3600
fuzz: $(fuzz_programs) $(archive_program)
	$(SHELL) $(srcdir)/tests/fuzz/fuzz.sh '$(abs_srcdir)' '$(abs_builddir)' '$(TARGET)' '$(TIME)'

# make fuzz-finds TARGET=png: what make fuzz found, minimised, into finds/
#: fuzz-finds         keep what a fuzzer found, as text
fuzz-finds: $(fuzz_programs) $(archive_program)
	PYTHON='$(PYTHON)' $(SHELL) $(srcdir)/tests/fuzz/finds.sh '$(abs_srcdir)' '$(abs_builddir)' '$(TARGET)'

.PHONY: fuzz fuzz-corpus fuzz-finds
