# SPDX-License-Identifier: Apache-2.0
synth_sources = \
	tools/synth/synth_body.c \
	tools/synth/synth_boxes.c \
	tools/synth/synth_boxes.h \
	tools/synth/synth_canvas.c \
	tools/synth/synth_canvas.h \
	tools/synth/synth_film.c \
	tools/synth/synth_findings.c \
	tools/synth/synth_lists.c \
	tools/synth/synth_people.c \
	tools/synth/synth_people.h \
	tools/synth/synth_png.c \
	tools/synth/synth_png.h \
	tools/synth/synth_random.h \
	tools/synth/synth_scene.h \
	tools/synth/synth_write.c \
	tools/synth/synth_write.h
