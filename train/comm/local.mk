# SPDX-License-Identifier: Apache-2.0
libtrain_la_SOURCES += \
	train/comm/collective.c \
	train/comm/collective.h \
	train/comm/collective_broadcast.c \
	train/comm/collective_bulk.c \
	train/comm/collective_clock.c \
	train/comm/collective_clock.h \
	train/comm/collective_private.h \
	train/comm/collective_wait.c \
	train/comm/reduce_host.c \
	train/comm/reduce_host.h
