# SPDX-License-Identifier: Apache-2.0
# png_cases.py runs check-images and compares what it prints with formulas and with Pillow.
tests_unit_SOURCES += \
	tests/lib/image/jpeg_fixture.c \
	tests/lib/image/jpeg_fixture.h \
	tests/lib/image/png_fixture.c \
	tests/lib/image/png_fixture.h \
	tests/lib/image/test_decode.c \
	tests/lib/image/test_jpeg.c \
	tests/lib/image/test_png.c \
	tests/lib/image/test_png_bounds.c \
	tests/lib/image/test_png_fast.c \
	tests/lib/image/test_png_faults.c \
	tests/lib/image/test_resample.c

check_PROGRAMS += check-images
check_images_SOURCES = tests/lib/image/check_images.c
check_images_LDADD = libchexcore.la

EXTRA_DIST += \
	tests/lib/image/png_cases.py
