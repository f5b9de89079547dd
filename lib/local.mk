# SPDX-License-Identifier: Apache-2.0
# libchexcore holds everything; the programs and tests link it, so that they may use what is not public.
# libchex is the same objects with only the names of chex.h visible.
noinst_LTLIBRARIES += libchexcore.la
libchexcore_la_SOURCES = \
	lib/chex.h \
	lib/error.c \
	lib/error.h \
	lib/mem.c \
	lib/mem.h \
	lib/crc32c.c \
	lib/digest.c \
	lib/digest.h \
	lib/file.c \
	lib/file_calls.c \
	lib/file_folder.c \
	lib/file_own.c \
	lib/file_same.c \
	lib/file.h \
	lib/lock.c \
	lib/lock_holder.c \
	lib/lock.h \
	lib/lock_private.h \
	lib/image.c \
	lib/image.h \
	lib/png.c \
	lib/png.h \
	lib/png_chunk.c \
	lib/png_chunk.h \
	lib/jpeg.c \
	lib/jpeg.h \
	lib/decode.c \
	lib/decode.h \
	lib/png_fast.c \
	lib/png_fast.h \
	lib/inflate.c \
	lib/inflate.h \
	lib/inflate_private.h \
	lib/inflate_tables.c \
	lib/unfilter.c \
	lib/unfilter.h \
	lib/unfilter_private.h \
	lib/unfilter_wave.h \
	lib/unfilter_x86.c \
	lib/unfilter_neon.c \
	lib/resample.c \
	lib/resample.h \
	lib/resample_axis.c \
	lib/resample_axis.h \
	lib/convolve.c \
	lib/convolve.h \
	lib/convolve_private.h \
	lib/convolve_small.h \
	lib/convolve_x86.c \
	lib/convolve_neon.c \
	lib/ascii.c \
	lib/ascii.h \
	lib/text.c \
	lib/text.h \
	lib/table.c \
	lib/table.h \
	lib/patients.c \
	lib/patients.h \
	lib/findings.c \
	lib/findings.h \
	lib/label_row.c \
	lib/label_row.h \
	lib/labels.c \
	lib/labels.h \
	lib/names.c \
	lib/notes.c \
	lib/notes.h \
	lib/names.h \
	lib/split.c \
	lib/split.h \
	lib/split_file.c \
	lib/split_work.h \
	lib/source.c \
	lib/source.h \
	lib/strays.c \
	lib/strays.h \
	lib/gunzip.c \
	lib/gunzip.h \
	lib/image_archive.h \
	lib/json.c \
	lib/json.h \
	lib/tfrecord.c \
	lib/tfrecord.h \
	lib/example.c \
	lib/example.h \
	lib/layout.c \
	lib/layout.h \
	lib/plan.c \
	lib/plan.h \
	lib/manifest_check.c \
	lib/manifest_format.c \
	lib/manifest_parse.c \
	lib/manifest.h \
	lib/manifest_json.h \
	lib/dataset.c \
	lib/dataset.h \
	lib/journal.c \
	lib/journal_line.c \
	lib/keyed_hash.c \
	lib/keyed_hash.h \
	lib/journal.h \
	lib/share.h \
	lib/store.c \
	lib/store_folder.c \
	lib/store_open.c \
	lib/store_finish.c \
	lib/store_repair.c \
	lib/store.h \
	lib/store_private.h \
	lib/pipeline.c \
	lib/pipeline.h \
	lib/comm.c \
	lib/comm.h \
	lib/crew.c \
	lib/crew.h \
	lib/convert.c \
	lib/convert_run.c \
	lib/convert_image.c \
	lib/convert_publish.c \
	lib/convert_retry.c \
	lib/convert_crew.c \
	lib/convert_crew.h \
	lib/convert.h \
	lib/convert_private.h \
	lib/feed.c \
	lib/feed.h \
	lib/convert_intake.c \
	lib/convert_index.c \
	lib/convert_missing.c \
	lib/dali_index.c \
	lib/dali_index.h \
	lib/preflight.c \
	lib/preflight.h \
	lib/verify.c \
	lib/verify_file.c \
	lib/verify_index.c \
	lib/verify_report.c \
	lib/verify_shard.c \
	lib/verify.h \
	lib/verify_private.h \
	lib/progress.c \
	lib/progress.h \
	lib/inflate_turn.h \
	lib/inflate_x86.c
if HAVE_LIBARCHIVE
libchexcore_la_SOURCES += lib/image_archive.c lib/image_archive_fault.c lib/image_archive_private.h \
	lib/image_archive_stream.c lib/unxz.c lib/unxz.h
else
libchexcore_la_SOURCES += lib/image_archive_none.c
endif
nodist_libchexcore_la_SOURCES = schemas/example.pb-c.c schemas/example.pb-c.h
libchexcore_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(ZLIB_CFLAGS) $(PROTOBUF_C_CFLAGS) \
	$(JANSSON_CFLAGS) $(CRYPTO_CFLAGS) $(LIBARCHIVE_CFLAGS) $(LZMA_CFLAGS)
libchexcore_la_LIBADD = $(LIBPNG_LIBS) $(LIBJPEG_LIBS) $(ZLIB_LIBS) $(PROTOBUF_C_LIBS) $(JANSSON_LIBS) \
	$(CRYPTO_LIBS) $(LIBCSV_LIBS) $(ISAL_LIBS) $(LIBARCHIVE_LIBS) $(LZMA_LIBS)

lib_LTLIBRARIES += libchex.la
libchex_la_SOURCES =
libchex_la_LIBADD = libchexcore.la
libchex_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-export-symbols-regex '^chex_(version|status_name|finding_name|crc32c|crc32c_mask|dataset_.*|shard_.*|record_view)$$'
include_HEADERS += lib/chex.h
pkgconfig_DATA = lib/chex.pc
