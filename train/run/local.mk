# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/run/audit.c \
	train/run/audit.h \
	train/run/audit_compare.c \
	train/run/audit_part.c \
	train/run/audit_predictions.c \
	train/run/audit_private.h \
	train/run/audit_recall.c \
	train/run/audit_texts.c \
	train/run/device_choice.c \
	train/run/device_choice.h \
	train/run/scale_layers.c \
	train/run/scale_layers.h \
	train/run/trainer.c \
	train/run/trainer.h \
	train/run/trainer_artifacts.c \
	train/run/trainer_common.c \
	train/run/trainer_data.c \
	train/run/trainer_dataset.c \
	train/run/trainer_evaluate.c \
	train/run/trainer_folder.c \
	train/run/trainer_gate.c \
	train/run/trainer_order.c \
	train/run/trainer_prepare.c \
	train/run/trainer_preview.c \
	train/run/trainer_private.h \
	train/run/trainer_ranks.c \
	train/run/trainer_resume.c \
	train/run/trainer_save.c \
	train/run/trainer_scale.c \
	train/run/trainer_settings.c \
	train/run/trainer_snapshot.c \
	train/run/trainer_start.c \
	train/run/trainer_step.c \
	train/run/trainer_storage.c \
	train/run/trainer_times.c \
	train/run/trainer_weights.c
