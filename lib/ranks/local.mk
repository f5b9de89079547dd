# SPDX-License-Identifier: Apache-2.0
libchexcore_la_SOURCES += \
	lib/ranks/collective.c \
	lib/ranks/collective.h \
	lib/ranks/collective_broadcast.c \
	lib/ranks/collective_private.h \
	lib/ranks/collective_sum.c \
	lib/ranks/collective_wait.c \
	lib/ranks/comm.c \
	lib/ranks/comm.h
