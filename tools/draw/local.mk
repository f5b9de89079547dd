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
	tools/draw/svg.h
libdraw_la_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS)
libdraw_la_LIBADD = libchexcore.la
