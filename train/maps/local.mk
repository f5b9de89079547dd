# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/maps/boxes.c \
	train/maps/boxes.h \
	train/maps/maps.c \
	train/maps/maps.h \
	train/maps/rank.c \
	train/maps/rank.h
