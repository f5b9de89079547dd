# SPDX-License-Identifier: Apache-2.0
predict_sources = \
	tools/predict/box_published.c \
	tools/predict/box_report.c \
	tools/predict/box_write.c \
	tools/predict/map_check.c \
	tools/predict/map_picture.c \
	tools/predict/map_picture.h \
	tools/predict/map_sheet.c \
	tools/predict/map_sheet.h \
	tools/predict/predict_batches.c \
	tools/predict/predict_batches.h \
	tools/predict/predict_boxes.c \
	tools/predict/predict_boxes.h \
	tools/predict/predict_ensemble.c \
	tools/predict/predict_ensemble.h \
	tools/predict/predict_export.c \
	tools/predict/predict_export.h \
	tools/predict/predict_flags.c \
	tools/predict/predict_flags.h \
	tools/predict/predict_gate.c \
	tools/predict/predict_gate.h \
	tools/predict/predict_images.c \
	tools/predict/predict_images.h \
	tools/predict/predict_maps.c \
	tools/predict/predict_maps.h \
	tools/predict/predict_model.c \
	tools/predict/predict_model.h \
	tools/predict/predict_options.c \
	tools/predict/predict_options.h \
	tools/predict/predict_report.c \
	tools/predict/predict_report.h \
	tools/predict/predict_run.c \
	tools/predict/predict_run.h \
	tools/predict/predict_score.c \
	tools/predict/predict_score.h \
	tools/predict/predict_write.c \
	tools/predict/predict_write.h
