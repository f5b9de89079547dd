# SPDX-License-Identifier: Apache-2.0
# Pictures: a canvas, its files, a font, SVG and HTML.
noinst_LTLIBRARIES += libdraw.la
libdraw_la_SOURCES = \
	tools/draw/canvas.c \
	tools/draw/canvas.h \
	tools/draw/canvas_file.c \
	tools/draw/canvas_jpeg.c \
	tools/draw/canvas_png.c \
	tools/draw/font.c \
	tools/draw/font.h \
	tools/draw/html.c \
	tools/draw/html.h \
	tools/draw/png_memory.c \
	tools/draw/png_memory.h \
	tools/draw/svg.c \
	tools/draw/svg.h \
	tools/draw/template.c \
	tools/draw/template.h
libdraw_la_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS)
libdraw_la_LIBADD = libchexcore.la
# The style sheet of the pages: its lines as C.
nodist_libdraw_la_SOURCES = tools/draw/page_style.c
tools/draw/page_style.c: tools/draw/page.css tools/draw/template.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -v name=page_style -f $(srcdir)/tools/draw/template.awk \
	  $(srcdir)/tools/draw/page.css > $@.tmp && mv $@.tmp $@
CLEANFILES += tools/draw/page_style.c tools/draw/page_style.c.tmp
EXTRA_DIST += tools/draw/page.css tools/draw/template.awk
