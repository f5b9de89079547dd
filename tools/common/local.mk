# SPDX-License-Identifier: Apache-2.0
# The command line: options, messages, completion, signals, progress.
noinst_LTLIBRARIES += libcli.la
libcli_la_SOURCES = \
	tools/common/cli.c \
	tools/common/cli.h \
	tools/common/cli_help.c \
	tools/common/cli_messages.c \
	tools/common/cli_retired.c \
	tools/common/cli_tables.c \
	tools/common/cli_tables.h \
	tools/common/cli_values.c \
	tools/common/color.c \
	tools/common/color.h \
	tools/common/completion.c \
	tools/common/completion.h \
	tools/common/library_exit.c \
	tools/common/library_exit.h \
	tools/common/printable.c \
	tools/common/printable.h \
	tools/common/progress_line.c \
	tools/common/progress_line.h \
	tools/common/ratio.c \
	tools/common/ratio.h \
	tools/common/shell_word.c \
	tools/common/shell_word.h \
	tools/common/spec_words.c \
	tools/common/spec_words.h \
	tools/common/stop_signals.c \
	tools/common/stop_signals.h \
	tools/common/table_writer.c \
	tools/common/table_writer.h \
	tools/common/versions.c \
	tools/common/versions.h \
	tools/common/wrap.c \
	tools/common/wrap.h
# versions.c asks every library for its version
libcli_la_CPPFLAGS = $(tools_cppflags) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(ZLIB_CFLAGS) $(PROTOBUF_C_CFLAGS)

# How processes of one job find each other and talk: one of two files.  MPI is linked into the programs: of a
# convenience library libtool hands on -L and -l, and forgets where MPI is found at run time.
noinst_LTLIBRARIES += liblauncher.la
launcher_ldadd = liblauncher.la $(MPI_LIBS)
liblauncher_la_SOURCES = tools/common/launcher.c tools/common/launcher.h
liblauncher_la_CPPFLAGS = $(tools_cppflags)
mpi_opened_sources = tools/common/comm_mpi.c tools/common/mpi_opened.c tools/common/mpi_opened.h
EXTRA_DIST += $(mpi_opened_sources) tools/common/comm_none.c
if MPI_OPENED
liblauncher_la_SOURCES += $(mpi_opened_sources)
liblauncher_la_CPPFLAGS += -DMPI_OPENED
else
if HAVE_MPI
liblauncher_la_SOURCES += tools/common/comm_mpi.c
liblauncher_la_CPPFLAGS += $(MPI_CFLAGS)
else
liblauncher_la_SOURCES += tools/common/comm_none.c
endif
endif
