# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/comm/clock.c \
	train/comm/clock.h \
	train/comm/reduce_host.c \
	train/comm/reduce_host.h
