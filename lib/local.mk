# SPDX-License-Identifier: Apache-2.0
# libchexcore holds everything; the programs and tests link it, so that they may use what is not public.
# libchex is the same objects, of which a program sees what chex.h marks with CHEX_API: lib/libchex.symbols.  The
# regular expression keeps away what a static library of a vendor would bring along.
noinst_LTLIBRARIES += libchexcore.la
libchexcore_la_SOURCES = lib/chex.h
include lib/base/local.mk
include lib/ranks/local.mk
include lib/io/local.mk
include lib/kernels/local.mk
include lib/image/local.mk
include lib/dataset/local.mk
include lib/labels/local.mk
include lib/input/local.mk
include lib/plan/local.mk
include lib/store/local.mk
include lib/verify/local.mk
include lib/convert/local.mk
nodist_libchexcore_la_SOURCES = schemas/example.pb-c.c schemas/example.pb-c.h
libchexcore_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(ZLIB_CFLAGS) $(PROTOBUF_C_CFLAGS) \
	$(JANSSON_CFLAGS) $(XXHASH_CFLAGS) $(LIBARCHIVE_CFLAGS) $(LZMA_CFLAGS)
libchexcore_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libchexcore_la_LIBADD = $(LIBPNG_LIBS) $(LIBJPEG_LIBS) $(ZLIB_LIBS) $(PROTOBUF_C_LIBS) $(JANSSON_LIBS) \
	$(XXHASH_LIBS) $(LIBCSV_LIBS) $(ISAL_LIBS) $(LIBARCHIVE_LIBS) $(LZMA_LIBS)

lib_LTLIBRARIES += libchex.la
libchex_la_SOURCES =
libchex_la_LIBADD = libchexcore.la
# -version-info CURRENT:REVISION:AGE.  A release that changes code only: REVISION + 1.  One that adds functions, or
# members at the ends or in `reserved`: CURRENT + 1, REVISION 0, AGE + 1.  Another change of chex.h: CURRENT + 1, 0, 0.
libchex_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined -export-symbols-regex '^chex_[a-z]'
EXTRA_DIST += lib/libchex.symbols
include_HEADERS += lib/chex.h
pkgconfig_DATA = lib/chex.pc
